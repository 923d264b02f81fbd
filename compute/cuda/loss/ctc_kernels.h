/*
 * ctc_kernels.h - launchers of CTC, like kernels.h.
 *
 * Scratch has one sequence after the other. A sequence has T frames, L labels
 * and W = L + 1 pairs of a blank and a symbol in each frame.
 */
#ifndef BM_COMPUTE_CUDA_LOSS_CTC_KERNELS_H
#define BM_COMPUTE_CUDA_LOSS_CTC_KERNELS_H

#include "compute/batch.h"
#include "compute/cuda/kernels/kernels.h"

#include <stdalign.h>
#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* m 2^e, see cpu_loss_loops.h. Aligned, as the others here, so that the device
 * moves it in one access. */
typedef struct bm_ctc_wide {
    alignas(8) float m;
    int32_t e;
} bm_ctc_wide;

/* The states of a symbol and of the blank before it on a path. */
typedef struct bm_ctc_pair {
    alignas(16) bm_ctc_wide blank;
    bm_ctc_wide symbol;
} bm_ctc_pair;

/* What the softmax of a frame needs, and the best path. */
typedef struct bm_ctc_frame {
    alignas(16) float top; /* largest logit */
    float sum;             /* of exp(x - top) */
    float blank;           /* probability */
    int32_t best;          /* first class of the largest logit */
} bm_ctc_frame;

/* p(labels) without the softmax's denominators: end 2^scale. */
typedef struct bm_ctc_verdict {
    alignas(16) double end;
    int32_t scale;
    int32_t counts; /* 1: it is in the mean; 0: it is skipped */
} bm_ctc_verdict;

typedef struct bm_ctc_sums {
    double log_sum; /* of the softmax's denominators, over the frames */
    double blank, errors;
} bm_ctc_sums;

typedef struct bm_ctc_sequence {
    int32_t frames, labels; /* T, L */
    int32_t heads;          /* classes among the labels */
    int32_t feasible;
    size_t frame_at,
        label_at;   /* frames and labels of the sequences before it */
    size_t pair_at; /* sum of T W of the sequences before it */
    double chance;
} bm_ctc_sequence;

typedef struct bm_ctc_job {
    size_t T, B, C;
    size_t most_labels;   /* of a sequence */
    bool zero_infeasible; /* BM_INFEASIBLE_ZERO */
    float smoothing;      /* of the gradient, see cpu_ctc.c */
    const float *y;       /* [T, B, C] */

    /* From the host. Equal labels of a sequence form a chain: heads has the
     * first of each, next the one that follows, or -1. */
    const bm_ctc_sequence *sequence; /* [B] */
    const int32_t *labels, *next, *heads;

    /* Scratch: sizes are those of one sequence. */
    bm_ctc_pair *states;     /* [T, W] */
    bm_ctc_frame *frame;     /* [T] */
    bm_ctc_verdict *verdict; /* [B] */
    bm_ctc_wide *emit; /* [T, W]: exp(x - top) of symbols, then of the blank */
    float *posterior;  /* [T, 2, W]: of blanks and of symbols, not normalised */
    bm_ctc_wide *edges; /* [2, T]: between strips */
    bm_ctc_sums *sums;  /* [B] */
    bm_score *own;      /* [B] */
    int32_t *path;      /* [T]: best path, repeats and blanks left out */
    int32_t *border;    /* [T]: between strips of edit distances */
} bm_ctc_job;

/* Writes frame and emit. */
cudaError_t bm_kernel_ctc_look(cudaStream_t stream, const bm_ctc_job *c);

/* After look: writes verdict, and posteriors if there will be a gradient. */
cudaError_t bm_kernel_ctc_walk(cudaStream_t stream, const bm_ctc_job *c,
                               bool posteriors);

/* After look: writes sums. It may run beside the walk. */
cudaError_t bm_kernel_ctc_errors(cudaStream_t stream, const bm_ctc_job *c);

/* After the walk: writes dy [T, B, C] as floats, or dy16 if it is not NULL. */
cudaError_t bm_kernel_ctc_gradient(cudaStream_t stream, const bm_ctc_job *c,
                                   float *dy, bm_bf16 *dy16);

/* After all others: adds to *score, in the order of the sequences. */
cudaError_t bm_kernel_ctc_score(cudaStream_t stream, const bm_ctc_job *c,
                                bm_score *score);

#ifdef __cplusplus
}
#endif
#endif
