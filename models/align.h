/*
 * align.h - CTC forced alignment (Graves and others 2006): in which frames a
 * network hears each label of a text that is known. On the host.
 *
 *     bm_label_span *spans = malloc(n * sizeof *spans);
 *     double log_p = 0;
 *
 *     BM_TRY(bm_ctc_align(y, frames, stride, C, labels, n, spans, &log_p));
 *     if (isfinite(log_p)) // spans[i].first .. spans[i].last: frames of label i
 */
#ifndef BM_MODELS_ALIGN_H
#define BM_MODELS_ALIGN_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

/* The frames of a label in the best path; frames between spans are blanks. */
typedef struct bm_label_span {
    int32_t first, last; /* both belong to it */
    double log_p;        /* mean over them of ln p(label) */
} bm_label_span;

/*
 * The most probable path through the states blank l1 blank l2 .. blank; of
 * equally probable ones the path whose state is lower in the last frame in which
 * they differ. y: as of bm_decode_greedy; class 0 is the blank; labels [n] are
 * in [1, n_classes). *log_p <- ln p(path); spans [n] <- its labels.
 *
 * *log_p is -INFINITY where no path fits, without frames or with frames < n +
 * bm_ctc_repeats, or all have probability 0; NAN where a logit is NaN. Spans are
 * then unchanged.
 *
 * Needs memory for about (frames (2 n + 1))^(2/3) numbers, 0.1 GB for an hour
 * of speech in characters. Fails only with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_ctc_align(const float *y, size_t frames, size_t stride,
                                  size_t n_classes, const int32_t *labels,
                                  size_t n, bm_label_span *spans,
                                  double *log_p);

#endif
