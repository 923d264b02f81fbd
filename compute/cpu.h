/* cpu.h - what the files of the cpu backend share. */
#ifndef BM_COMPUTE_CPU_H
#define BM_COMPUTE_CPU_H

#include "compute/backend_ops.h"
#include "compute/cpu_isa.h"

typedef struct bm_cpu {
    const bm_isa *isa; /* borrowed */
} bm_cpu;

static inline const bm_isa *bm_cpu_isa(const bm_backend *be)
{
    return ((const bm_cpu *)be->self)->isa;
}

/* See backend.h. */
void bm_cpu_sum_rows(bm_backend *be, bm_tensor y, float *b);
void bm_cpu_clear_padding(bm_backend *be, bm_extent e, bm_tensor x);
size_t bm_cpu_lstm_kept(bm_backend *be, const bm_lstm *l, bm_extent e);
void bm_cpu_lstm_forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                         const float *x, float *y, float *kept);
void bm_cpu_lstm_backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                          const float *x, const float *y, const float *dy,
                          float *kept, float *dx, float *dwx, float *dwh,
                          float *db);
size_t bm_cpu_conv_work(bm_backend *be, const bm_conv *c);
void bm_cpu_conv_forward(bm_backend *be, const bm_conv *c, bm_extent in,
                         bm_extent out, const float *x, float *y, float *work);
void bm_cpu_conv_backward(bm_backend *be, const bm_conv *c, bm_extent in,
                          bm_extent out, const float *x, const float *dy,
                          float *work, float *dx, float *dw, float *db);
void bm_cpu_pool_forward(bm_backend *be, const bm_pool *p, bm_extent in,
                         bm_extent out, const float *x, float *y);
void bm_cpu_pool_backward(bm_backend *be, const bm_pool *p, bm_extent in,
                          bm_extent out, const float *x, const float *y,
                          const float *dy, float *dx);
size_t bm_cpu_norm_kept(bm_backend *be, const bm_norm *n);
void bm_cpu_norm_forward(bm_backend *be, const bm_norm *n, bm_extent e,
                         bool training, const float *x, float *y, float *kept);
void bm_cpu_norm_backward(bm_backend *be, const bm_norm *n, bm_extent e,
                          const float *x, const float *dy, float *kept,
                          float *dx, float *dgamma, float *dbeta,
                          float *mean_off, float *var_off);

/* Frame t of sequence b among frames of n floats. */
static inline size_t bm_cpu_at(bm_extent e, size_t t, size_t b, size_t n)
{
    return (t * e.B + b) * n;
}

#endif
