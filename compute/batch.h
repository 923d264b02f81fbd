/*
 * batch.h - sequences side by side, time-major, padded at the end.
 */
#ifndef BM_COMPUTE_BATCH_H
#define BM_COMPUTE_BATCH_H

#include "compute/tensor.h"

#include <stdint.h>

/* How B sequences of unequal length lie in a [T, B, ...] tensor. */
typedef struct bm_extent {
    size_t T;              /* at least the frames of the longest sequence */
    size_t B;              /* sequences */
    const int32_t *frames; /* [B] on the host, each in 0 .. T; borrowed */
} bm_extent;

/* Reference labels. Classes count from 0, which for CTC is the blank. */
typedef struct bm_targets {
    const int32_t *classes; /* all label sequences end to end, on the host */
    const int32_t *count;   /* [B] on the host: labels of each sequence */
} bm_targets;

/* The number of adjacent equal labels. CTC needs a blank between them, hence at
 * least n + repeats frames for n labels. */
static inline size_t bm_ctc_repeats(const int32_t *labels, size_t n)
{
    size_t repeats = 0;

    for (size_t i = 1; i < n; i++)
        repeats += labels[i] == labels[i - 1];
    return repeats;
}

/* The frames of a sequence as they are stored. */
typedef struct bm_stored {
    const void *x; /* [frames, D]; borrowed */
    size_t bytes;  /* per number: 4: a float; 2: a half; 1: an integer q for
                      offset[d] + scale[d] q */
    const float *scale, *offset; /* [D]; borrowed */
} bm_stored;

/* A mini-batch, owned by the reader that made it. */
typedef struct bm_batch {
    bm_extent extent;
    bm_tensor x; /* [T, B, D] on the backend; zero past a sequence's end */
    bm_targets targets;
    const int64_t *id; /* [B]: numbers of the sequences in the data set */
} bm_batch;

/* Sums, so that scores of batches and of workers can be added. */
typedef struct bm_score {
    double loss;      /* nats, over the sequences that count */
    double chance;    /* their loss if all classes were equally likely */
    double errors;    /* wrong frames, or edit distance of the best path */
    double count;     /* the errors' denominator: frames, or reference labels */
    double sequences; /* the sequences that count */
    double skipped;   /* those that do not: infeasible, or loss not finite */
    double zeroed;    /* infeasible ones that count with loss 0 */
    double frames;    /* input frames of the loss, after subsampling */
    double blank;     /* CTC: sum over frames of the blank's probability */
} bm_score;

static inline void bm_score_add(bm_score *sum, const bm_score *more)
{
    sum->loss += more->loss;
    sum->chance += more->chance;
    sum->errors += more->errors;
    sum->count += more->count;
    sum->sequences += more->sequences;
    sum->skipped += more->skipped;
    sum->zeroed += more->zeroed;
    sum->frames += more->frames;
    sum->blank += more->blank;
}

#endif
