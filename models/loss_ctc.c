/* loss_ctc.c - connectionist temporal classification, by bm_ctc. */
#include "models/loss.h"

static bool feasible(size_t frames, const int32_t *labels, size_t n)
{
    return frames > 0 && frames >= n + bm_ctc_repeats(labels, n);
}

const bm_loss_ops bm_loss_ctc = {
    .name = "ctc",
    .help = "label sequences without times; class 0 is the blank",
    .per = "sequence",
    .work = bm_ctc_work,
    .run = bm_ctc,
    .feasible = feasible,
};
