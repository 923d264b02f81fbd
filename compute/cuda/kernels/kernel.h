/*
 * kernel.h - what every file of kernels begins with. Kernels are started with
 * BM_LAUNCH, or BM_LAUNCH_CLUSTER where blocks of a cluster work together, or
 * BM_LAUNCH_TOGETHER where all do, and take their shared memory from BM_SHARED;
 * so the tests can run them on the host as well, see tests/emulation.
 *
 * A sum has a fixed order: threads first, then blocks, in doubles where people
 * read it or it steers training. No float is added by an atomic.
 */
#ifndef BM_COMPUTE_CUDA_KERNELS_KERNEL_H
#define BM_COMPUTE_CUDA_KERNELS_KERNEL_H

#include "compute/cuda/kernels/kernels.h"

#ifdef BM_EMULATED
#include "tests/emulation/device.h"
#else
#include <cuda_bf16.h>
#include <tuple>
#define BM_SHARED(type, name)                                                  \
    extern __shared__ __align__(128) unsigned char bm_shared_[];               \
    type *name = (type *)(void *)bm_shared_
template <typename... P> static inline void bm_emulate_know(void (*)(P...)) {}
#endif

#define BM_LAUNCH(stream, kernel, grid, block, shared, ...)                    \
    bm_start(stream, kernel, 1, grid, block, shared, __VA_ARGS__)
#define BM_LAUNCH_CLUSTER(stream, kernel, cluster, grid, block, shared, ...)   \
    bm_start(stream, kernel, cluster, grid, block, shared, __VA_ARGS__)
#define BM_LAUNCH_TOGETHER(stream, kernel, grid, block, shared, ...)           \
    bm_start(stream, kernel, 0, grid, block, shared, __VA_ARGS__)

/* Gaps of arguments become zeros, so that equal launches have equal bytes. */
template <typename... P, typename... A>
static inline cudaError_t bm_start(cudaStream_t stream, void (*kernel)(P...),
                                   unsigned cluster, dim3 grid, dim3 block,
                                   size_t shared, A... arguments)
{
    std::tuple<P...> given(arguments...);

    bm_emulate_know(kernel);
    return std::apply(
        [=](auto &...each) {
            (__builtin_clear_padding(&each), ...);
            void *at[] = {(void *)&each...};
            const size_t sizes[] = {sizeof each...};
            bm_launch l = {stream,  (void *)kernel, grid, block, shared,
                           cluster, sizeof...(P),   at,   sizes};

            return bm_step_launch(&l);
        },
        given);
}

#define BM_INLINE [[maybe_unused]] static __device__ __forceinline__

static const unsigned bm_block = 256; /* threads, unless there is a reason */

/* Blocks for n elements, each thread going on with strides of the grid. */
static inline unsigned bm_grid(size_t n)
{
    size_t blocks = (n + bm_block - 1) / bm_block;
    return (unsigned)(blocks < 4096 ? blocks : 4096);
}

#define BM_EACH(i, n)                                                          \
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < (n);    \
         i += (size_t)gridDim.x * blockDim.x)

BM_INLINE float bm_of_bf16(bm_bf16 x)
{
    return __int_as_float((int)((uint32_t)x.bits << 16));
}

/* To nearest even; no number stays none. */
BM_INLINE bm_bf16 bm_to_bf16(float x)
{
    __nv_bfloat16 r = __float2bfloat16(x);
    bm_bf16 y;
    memcpy(&y, &r, sizeof y);
    return y;
}

/* The sum over a block of up to 1024 threads, on all of them, in a fixed order.
 * `room`: 32 numbers in shared memory. */
template <typename T> __device__ static T bm_block_sum(T x, T *room)
{
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned warps = (blockDim.x + 31) / 32;

    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    __syncthreads(); /* room may still be in use */
    if (lane == 0)
        room[warp] = x;
    __syncthreads();
    x = 0;
    for (unsigned w = 0; w < warps; w++)
        x += room[w];
    return x;
}

#endif
