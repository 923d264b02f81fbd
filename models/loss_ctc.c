/* loss_ctc.c - label sequences without times: the arithmetic is the backend's,
 * see bm_ctc. */
#include "models/loss.h"

/* Two equal labels in a row need a blank between them. */
static bool feasible(size_t frames, const int32_t *labels, size_t n)
{
    size_t needed = n;

    for (size_t i = 1; i < n; i++)
        needed += labels[i] == labels[i - 1];
    return frames >= needed;
}

const bm_loss_ops bm_loss_ctc = {
    .name = "ctc",
    .help = "label sequences without times; class 0 is the blank",
    .unit = "sequence",
    .work = bm_ctc_work,
    .run = bm_ctc,
    .feasible = feasible,
};
