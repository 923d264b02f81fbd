/* probe.cpp - kernels of single instructions, for test_emulation.c. */
#include "tests/emulation/probe.h"
#include "compute/cuda/kernels/sm90.h"

static void multiply(const uint32_t *a, const uint32_t *b, float *c)
{
    bm_multiply_add(c + threadIdx.x * 4, a + threadIdx.x * 4,
                    b[threadIdx.x * 2], b[threadIdx.x * 2 + 1]);
}

cudaError_t bm_probe_multiply(cudaStream_t stream, const uint32_t *a,
                              const uint32_t *b, float *c)
{
    return BM_LAUNCH(stream, multiply, 1, 32, 0, a, b, c);
}

void *bm_probe_multiply_kernel(void)
{
    return (void *)multiply;
}

/* In shared memory each row has 16 numbers, of which 8 are the matrix's. */
static void matrices(const uint16_t *x, uint32_t *r, uint32_t *transposed,
                     uint32_t *one, uint16_t *y)
{
    BM_SHARED(uint16_t, room);
    uint16_t *row = room + threadIdx.x * 16;

    for (int i = 0; i < 8; i++)
        row[i] = x[threadIdx.x * 8 + i];
    __syncthreads();
    bm_matrices_get(r + threadIdx.x * 4, row);
    bm_matrices_get_transposed(transposed + threadIdx.x * 4, row);
    one[threadIdx.x] = bm_matrix_get_transposed(row);
    for (int i = 0; i < 8; i++)
        row[i] = 0;
    __syncthreads();
    bm_matrices_put(row, transposed + threadIdx.x * 4);
    __syncthreads();
    for (int i = 0; i < 8; i++)
        y[threadIdx.x * 8 + i] = row[i];
    __syncthreads();
    bm_matrix_put(row, one[threadIdx.x] + 0x10001);
    __syncthreads();
    for (int i = 0; i < 8; i++)
        y[(32 + threadIdx.x) * 8 + i] = row[i];
}

cudaError_t bm_probe_matrices(cudaStream_t stream, const uint16_t *x,
                              uint32_t *r, uint32_t *transposed, uint32_t *one,
                              uint16_t *y)
{
    return BM_LAUNCH(stream, matrices, 1, 32, 32 * 16 * sizeof(uint16_t), x, r,
                     transposed, one, y);
}
