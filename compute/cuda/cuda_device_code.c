#include "compute/cuda/cuda_device_code.h"
#include "compute/cuda/kernels/code.h"
#include "compute/cuda/memory/cuda_forms.h"

static void carry(bm_backend *be, const bm_pieces *p, const float *residual,
                  float *y, float *non_finite)
{
    cudaStream_t stream = bm_cuda_of(be)->stream;

    residual = bm_cuda_read(be, residual, p->elements);
    y = bm_cuda_change(be, y, p->elements, false).x;
    non_finite = bm_cuda_write(be, non_finite, 1);
    BM_CUDA(be, cudaMemsetAsync(non_finite, 0, sizeof *non_finite, stream));
    BM_CUDA(be, bm_kernel_carry(stream, p, residual, y, non_finite));
}

static void encode(bm_backend *be, const bm_pieces *p, const float *x,
                   float *residual, float *code)
{
    x = bm_cuda_read(be, x, p->elements);
    residual = bm_cuda_change(be, residual, p->elements, false).x;
    code = bm_cuda_write(be, code, bm_device_code_floats(p));
    BM_CUDA(be, bm_kernel_encode(bm_cuda_of(be)->stream, p, x, residual, code));
}

static void decode(bm_backend *be, const bm_pieces *p, const float *code,
                   bool adds, float *y)
{
    code = bm_cuda_read(be, code, bm_device_code_floats(p));
    y = bm_cuda_change(be, y, p->elements, false).x;
    BM_CUDA(be, bm_kernel_decode(bm_cuda_of(be)->stream, p, code, adds, y));
}

const bm_device_code_ops bm_cuda_device_code_ops = {
    .carry = carry,
    .encode = encode,
    .decode = decode,
};
