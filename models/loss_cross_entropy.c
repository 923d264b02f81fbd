/* loss_cross_entropy.c - cross entropy of each frame's class. */
#include "models/loss.h"

static void run(bm_backend *be, bm_extent e, bm_targets t, bm_infeasible policy,
                float smoothing, bm_tensor y, bm_tensor dy, float *work,
                bm_score *score)
{
    (void)policy;
    (void)work;
    bm_cross_entropy(be, e, t, smoothing, y, dy, score);
}

const bm_loss_ops bm_loss_cross_entropy = {
    .name = "cross_entropy",
    .help = "a class for every frame",
    .per = "frame",
    .per_frame = true,
    .run = run,
};
