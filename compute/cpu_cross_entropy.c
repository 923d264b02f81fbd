/* cpu_cross_entropy.c - a class for every frame: loss -log y, dy = y - onehot,
 * one sequence after the other. */
#include "compute/cpu_loss.h"

#include <math.h>

/* The score of sequence b by itself; its rows of dy for the sum of losses. */
static bm_score sequence(bm_extent e, size_t b, const int32_t *classes,
                         bm_tensor y, bm_tensor dy)
{
    size_t frames = (size_t)e.frames[b];
    bm_score own = {
        .sequences = 1, .frames = (double)frames, .count = (double)frames};

    for (size_t t = 0; t < frames; t++) {
        const float *x = bm_cpu_frame(y, t, b);
        float *dx = bm_cpu_frame(dy, t, b);
        size_t k = (size_t)classes[t];
        bm_softmax s = bm_cpu_softmax(y.dim[2], x, dx);

        own.loss -= (double)(x[k] - s.top) - (double)s.log_sum;
        own.errors += s.best != k;
        if (dx != NULL)
            dx[k] -= 1;
    }
    return own;
}

void bm_cpu_cross_entropy(bm_backend *be, bm_extent e, bm_targets t,
                          bm_tensor y, bm_tensor dy, bm_score *score)
{
    const int32_t *classes = t.classes;
    double frames = 0;

    (void)be;
    for (size_t b = 0; b < e.B; classes += t.count[b++]) {
        bm_score own = sequence(e, b, classes, y, dy);

        if (isfinite(own.loss)) {
            frames += own.frames;
        } else {
            own = (bm_score){.skipped = 1};
            bm_cpu_clear_sequence(dy, b);
        }
        bm_score_add(score, &own);
    }
    bm_cpu_mean_gradient(e, dy, frames);
}
