/*
 * batch.h - sequences side by side, time-major, padded at the end.
 */
#ifndef BM_COMPUTE_BATCH_H
#define BM_COMPUTE_BATCH_H

#include "compute/tensor.h"

#include <stdint.h>

/* How B sequences of unequal length lie in a [T, B, ...] tensor. */
typedef struct bm_extent {
    size_t T;              /* frames of the longest sequence, or some more */
    size_t B;              /* sequences */
    const int32_t *frames; /* [B] on the host, each in 0 .. T; borrowed */
} bm_extent;

/* What the sequences say. Classes count from 0, which for CTC is the blank. */
typedef struct bm_targets {
    const int32_t *classes; /* all label sequences end to end, on the host */
    const int32_t *count;   /* [B] on the host: labels of each sequence */
} bm_targets;

/* Adjacent equal labels, which a blank must part: with n labels CTC needs
 * n + repeats frames. */
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
    size_t bytes;  /* of a number. 4: a float; 2: a half; 1: q, which stands for
                      offset[d] + scale[d] q */
    const float *scale, *offset; /* [D]; borrowed */
} bm_stored;

/* Made by a reader, owned by it. */
typedef struct bm_batch {
    bm_extent extent;
    bm_tensor x; /* [T, B, D] on the backend; zero past a sequence's end */
    bm_targets targets;
    const int64_t *id; /* [B]: which sequences of the data set these are */
} bm_batch;

/* Sums, so that scores of batches and of workers add up. */
typedef struct bm_score {
    double loss;      /* nats, of the sequences that count */
    double chance;    /* their loss if all classes were equally likely */
    double errors;    /* wrong frames, or edit distance of the best path */
    double count;     /* what errors are out of: frames, or reference labels */
    double sequences; /* that count */
    double skipped;   /* sequences that do not: infeasible, or no numbers */
    double zeroed;    /* infeasible ones that count with loss 0 */
    double frames;    /* that the loss saw, after the network's subsampling */
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
