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
size_t bm_cpu_lstm_kept(bm_backend *be, const bm_lstm *l, bm_extent e);
void bm_cpu_lstm_forward(bm_backend *be, const bm_lstm *l, bm_extent e,
                         const float *x, float *y, float *kept);
void bm_cpu_lstm_backward(bm_backend *be, const bm_lstm *l, bm_extent e,
                          const float *x, const float *y, const float *dy,
                          float *kept, float *dx, float *dwx, float *dwh,
                          float *db);

#endif
