/*
 * cuda_forms.h - vectors on the device, as floats and as bf16.
 *
 * With BM_BF16 a vector has two forms: the floats that callers see, and a bf16
 * twin. One of them is current, or both. An operation reads and writes through
 *
 *     x   = bm_cuda_read(be, x, n)         floats, made current
 *     x16 = bm_cuda_read16(be, x, n)       bf16, made current
 *     y   = bm_cuda_write(be, y, n)        floats; all n will be written
 *     y16 = bm_cuda_write16(be, y, n)      bf16, likewise
 *     y16 = bm_cuda_write_both(be, y, n)   both; the floats go to y
 *
 *     in  = bm_cuda_in(be, x, n)           bf16 if that is current, else floats
 *     out = bm_cuda_out(be, y, n)          the form that products read
 *     out = bm_cuda_change(be, y, n, half) one form; parts may be written
 *
 * A conversion is queued only when the form that is asked for is not current.
 * x and y are vectors from bm_alloc, or parts of them: anything else is an
 * assertion. An idle vector (bm_alloc_idle) has no bf16 form, and its address is
 * not that of its memory, which may change. No operation touches a caller's
 * vector in another way. What an operation keeps for its backward pass is its
 * own and has no forms.
 *
 * These functions return NULL only if there is no memory for a twin; the
 * backend has failed then.
 */
#ifndef BM_COMPUTE_CUDA_MEMORY_CUDA_FORMS_H
#define BM_COMPUTE_CUDA_MEMORY_CUDA_FORMS_H

#include "compute/cuda/device/cuda_room.h"
#include "compute/cuda/kernels/kernels.h"

/* BM_ERR_MEMORY: no memory on the host. */
BM_CHECKED bm_status bm_cuda_memory_open(bm_backend *be);
void bm_cuda_memory_close(bm_backend *be); /* frees what is left */

/* The operations alloc, alloc_idle and free of backend.h. */
bm_status bm_cuda_alloc(bm_backend *be, size_t n, float **out);
bm_status bm_cuda_alloc_idle(bm_backend *be, size_t n, float **out);
void bm_cuda_free(bm_backend *be, float *x);

const float *bm_cuda_read(bm_backend *be, const float *x, size_t n);
const bm_bf16 *bm_cuda_read16(bm_backend *be, const float *x, size_t n);
float *bm_cuda_write(bm_backend *be, float *x, size_t n);
bm_bf16 *bm_cuda_write16(bm_backend *be, float *x, size_t n);
bm_bf16 *bm_cuda_write_both(bm_backend *be, float *x, size_t n);
bm_in bm_cuda_in(bm_backend *be, const float *x, size_t n);
bm_out bm_cuda_out(bm_backend *be, float *x, size_t n);
bm_out bm_cuda_change(bm_backend *be, float *x, size_t n, bool half);

#endif
