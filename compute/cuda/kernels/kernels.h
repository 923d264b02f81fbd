/*
 * kernels.h - launchers of kernels, in plain C types: what C calls of CUDA C.
 * Each queues one kernel on `stream`, or a few, and returns the launch error.
 * Pointers are device memory.
 */
#ifndef BM_COMPUTE_CUDA_KERNELS_KERNELS_H
#define BM_COMPUTE_CUDA_KERNELS_KERNELS_H

#include "compute/backend.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The upper half of a float. */
typedef struct bm_bf16 {
    uint16_t bits;
} bm_bf16;

/* A vector to read or to write in one of its forms. */
typedef struct bm_in {
    const void *x;
    bool half; /* bm_bf16, else floats */
} bm_in;
typedef struct bm_out {
    void *x;
    bool half;
} bm_out;

enum { BM_PARTIALS = 1024 }; /* partial results of a reduction, at most */

/* loops.cu */

/* y = a x + b y, over n floats. A term with factor 0 is not read. */
cudaError_t bm_kernel_axpby(cudaStream_t stream, size_t n, float a,
                            const float *x, float b, float *y);

/* One form from the other. */
cudaError_t bm_kernel_round(cudaStream_t stream, size_t n, const float *x,
                            bm_bf16 *y);
cudaError_t bm_kernel_widen(cudaStream_t stream, size_t n, const bm_bf16 *x,
                            float *y);

/* The operations of operations.h. An output in floats takes inputs in floats.
 */
cudaError_t bm_kernel_add_rows(cudaStream_t stream, size_t rows, size_t cols,
                               float *y, const float *b);
cudaError_t bm_kernel_activate(cudaStream_t stream, bm_activation f, size_t n,
                               bm_in x, bm_out y);
cudaError_t bm_kernel_activate_back(cudaStream_t stream, bm_activation f,
                                    size_t n, bm_in y, bm_in dy, bm_out dx);
cudaError_t bm_kernel_dropout(cudaStream_t stream, size_t n, float p,
                              uint64_t key, bm_in x, bm_out y);
cudaError_t bm_kernel_clear_padding(cudaStream_t stream, size_t T, size_t B,
                                    size_t D, const int32_t *frames, bm_out x);
/* x and y have the same form. */
cudaError_t bm_kernel_copy_runs(cudaStream_t stream, const bm_runs *r, bm_in x,
                                bm_out y);

/* stage.cu */

/* A sequence in a packet: numbers of so many bytes (bm_stored) and, where they
 * need them, D floats of scale and D of offset. */
typedef struct bm_packet_column {
    size_t at, scale_at; /* offsets in the packet, multiples of 16 bytes */
    int32_t frames, bytes;
} bm_packet_column;

/* Unpacks a packet, which begins with its columns [B], to x [T, B, D], with
 * zeros past each sequence's end, and to x16 unless that is NULL. */
cudaError_t bm_kernel_unpack(cudaStream_t stream, size_t T, size_t B, size_t D,
                             const void *packet, float *x, bm_bf16 *x16);

/* sum_rows.cu */

/* Floats of `work` for the next two. */
size_t bm_kernel_sum_rows_work(size_t rows, size_t cols);

/* b [cols] = the sum of the rows of y. */
cudaError_t bm_kernel_sum_rows(cudaStream_t stream, size_t rows, size_t cols,
                               bm_in y, float *work, float *b);

/* dx = dy f'(x), from y = f(x), all [rows, cols], and b [cols] = the sum of the
 * rows of dx. dx may be dy. If dx is floats, y and dy are. */
typedef struct bm_back {
    bm_activation f;
    size_t rows, cols;
    bm_in y, dy;
    bm_out dx;
    float *work, *b; /* as for bm_kernel_sum_rows */
} bm_back;
cudaError_t bm_kernel_sum_back(cudaStream_t stream, const bm_back *p);

/* layernorm.cu */

/* Frames [T B, width], of which those past the end of their sequence are not
 * read and become zero. forward writes y and the moments; backward writes dx;
 * slopes writes dgamma and dbeta [width]. */
typedef struct bm_layernorm_pass {
    size_t frames, B, width;
    const int32_t *lengths; /* [B] */
    const float *gamma, *beta;
    bm_in x, dy;
    bm_out y, dx;
    float *moments; /* [T B, 2]: mean, inverse deviation */
    float *dgamma, *dbeta;
    float *work; /* [bm_kernel_layernorm_work] */
} bm_layernorm_pass;
size_t bm_kernel_layernorm_work(const bm_layernorm_pass *p);
cudaError_t bm_kernel_layernorm_forward(cudaStream_t stream,
                                        const bm_layernorm_pass *p);
cudaError_t bm_kernel_layernorm_backward(cudaStream_t stream,
                                         const bm_layernorm_pass *p);
cudaError_t bm_kernel_layernorm_slopes(cudaStream_t stream,
                                       const bm_layernorm_pass *p);

/* gate.cu: the operations of operations.h */
cudaError_t bm_kernel_swish(cudaStream_t stream, size_t n, bm_in x, bm_out y);
cudaError_t bm_kernel_swish_back(cudaStream_t stream, size_t n, bm_in x,
                                 bm_in dy, bm_out dx);
cudaError_t bm_kernel_gelu(cudaStream_t stream, size_t n, bm_in x, bm_out y);
cudaError_t bm_kernel_gelu_back(cudaStream_t stream, size_t n, bm_in x,
                                bm_in dy, bm_out dx);
cudaError_t bm_kernel_glu(cudaStream_t stream, size_t rows, size_t n, bm_in x,
                          bm_out y);
cudaError_t bm_kernel_glu_back(cudaStream_t stream, size_t rows, size_t n,
                               bm_in x, bm_in dy, bm_out dx);

/* depthwise.cu */

/* bm_depthwise of x [frames, B, width]. forward writes y [out_frames, B,
 * width]; backward writes dx; slopes writes dw and db. */
typedef struct bm_depthwise_pass {
    size_t frames, out_frames, B, width;
    size_t size, stride, before; /* of the window */
    const int32_t *in, *out;     /* [B]: frames of each sequence */
    const float *w, *b;
    bm_in x, dy;
    bm_out y, dx;
    float *dw, *db;
    float *work; /* [bm_kernel_depthwise_work] */
} bm_depthwise_pass;
size_t bm_kernel_depthwise_work(const bm_depthwise_pass *p);
cudaError_t bm_kernel_depthwise_forward(cudaStream_t stream,
                                        const bm_depthwise_pass *p);
cudaError_t bm_kernel_depthwise_backward(cudaStream_t stream,
                                         const bm_depthwise_pass *p);
cudaError_t bm_kernel_depthwise_slopes(cudaStream_t stream,
                                       const bm_depthwise_pass *p);

/* attention.cu: the operations of operations.h */
typedef struct bm_attention_pass {
    size_t T, B, heads;
    float scale;
    const int32_t *lengths; /* [B] */
    const float *r, *from;  /* of the scores, of weights */
    float *s, *dr;          /* forward writes s; backward both */
} bm_attention_pass;
cudaError_t bm_kernel_positions(cudaStream_t stream, size_t T, size_t D,
                                float *y);
cudaError_t bm_kernel_attention_weights(cudaStream_t stream,
                                        const bm_attention_pass *p);
cudaError_t bm_kernel_attention_back(cudaStream_t stream,
                                     const bm_attention_pass *p);

/* update.cu */

/* bm_momentum_step on a device with so many multiprocessors. w16, unless NULL,
 * becomes w in bf16. partial [BM_PARTIALS] is scratch. */
typedef struct bm_momentum_update {
    bm_momentum of;
    size_t n, statistics;
    const float *g;
    float *v, *w;
    bm_bf16 *w16;
    double *skipped;
} bm_momentum_update;
cudaError_t bm_kernel_update(cudaStream_t stream, const bm_momentum_update *u,
                             int multiprocessors, double *partial);

/* bm_squares. */
cudaError_t bm_kernel_squares(cudaStream_t stream, size_t n, const float *x,
                              double *sum, double *partial);

/* bm_unit, likewise. */
cudaError_t bm_kernel_unit(cudaStream_t stream, size_t n, const float *x,
                           float *y, int multiprocessors, double *partial);

/* exchange.cu */

/* bm_difference. *non_finite must be 0 before. */
cudaError_t bm_kernel_difference(cudaStream_t stream, size_t n, const float *x,
                                 const float *from, float *y,
                                 float *non_finite);
cudaError_t bm_kernel_blend(cudaStream_t stream, size_t n, double a, float *y,
                            double b, const float *x);
cudaError_t bm_kernel_filter(cudaStream_t stream, const bm_filter_step *f,
                             size_t n, const float *g, float *y,
                             double *products);
/* bm_adam_step, likewise. */
typedef struct bm_adam_update {
    bm_adam of;
    size_t n, statistics;
    const float *g;
    float *m, *v, *w;
    bm_bf16 *w16;
    float *t;
    double *skipped;
} bm_adam_update;
cudaError_t bm_kernel_adam(cudaStream_t stream, const bm_adam_update *u,
                           int multiprocessors, double *partial);

/* cross_entropy.cu */

/* The sums of a frame or of a sequence. The loss of a skipped sequence is
 * NaN. */
typedef struct bm_cross_sum {
    double loss, errors;
} bm_cross_sum;

typedef struct bm_cross_verdict {
    double frames;  /* of sequences that are not skipped */
    double skipped; /* sequences */
} bm_cross_verdict;

/* bm_cross_entropy of y [T, B, C]. */
typedef struct bm_cross {
    size_t T, B, C;
    const int32_t *frames, *begins; /* [B]; indices in classes */
    const int32_t *classes;
    const float *y;
    bm_out dy;                  /* x may be NULL */
    float factor;               /* of the mean, if no sequence is skipped */
    float on, other;            /* target: of the class, more for each class */
    double chance;              /* log C */
    bm_cross_sum *of_frames;    /* [B, T], scratch */
    bm_cross_sum *of_sequences; /* [B] */
    bm_cross_verdict *verdict;
    bm_score *score;
} bm_cross;
cudaError_t bm_kernel_cross_entropy(cudaStream_t stream, const bm_cross *c);

#ifdef __cplusplus
}
#endif
#endif
