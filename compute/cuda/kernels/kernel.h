/*
 * kernel.h - what every file of kernels includes. Kernels are started with
 * BM_LAUNCH, or with BM_LAUNCH_CLUSTER where the blocks of a cluster work
 * together, and take their shared memory from BM_SHARED. So a build with
 * BM_EMULATED, which brings its own definitions of CUDA C, can run them on the
 * host: the tests have one.
 *
 * A sum has a fixed order: threads first, then blocks, in doubles where people
 * read it or it steers training. No float is added by an atomic.
 */
#ifndef BM_COMPUTE_CUDA_KERNELS_KERNEL_H
#define BM_COMPUTE_CUDA_KERNELS_KERNEL_H

#include "compute/cuda/kernels/kernels.h"

#ifndef BM_EMULATED
#include <cuda_bf16.h>
#include <tuple>
#define BM_SHARED(type, name)                                                  \
    extern __shared__ __align__(128) unsigned char bm_shared_[];               \
    type *name = (type *)(void *)bm_shared_
template <typename... P>
static inline void bm_before_launch(void (*)(P...), P &...)
{
}
#endif

#define BM_LAUNCH(stream, kernel, grid, block, shared, ...)                    \
    bm_start(stream, kernel, 1, grid, block, shared, __VA_ARGS__)
#define BM_LAUNCH_CLUSTER(stream, kernel, cluster, grid, block, shared, ...)   \
    bm_start(stream, kernel, cluster, grid, block, shared, __VA_ARGS__)

/* Converts the arguments to the kernel's types, and launches it. `shared`:
 * bytes; `cluster`: blocks of a cluster, 1: no clusters. */
template <typename... P, typename... A>
static inline cudaError_t bm_start(cudaStream_t stream, void (*kernel)(P...),
                                   unsigned cluster, dim3 grid, dim3 block,
                                   size_t shared, A... arguments)
{
    std::tuple<P...> given(arguments...);
    cudaLaunchAttribute attribute = {};
    cudaLaunchConfig_t config = {grid,   block,      shared,
                                 stream, &attribute, cluster > 1};

    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster, 1, 1};
    return std::apply(
        [&](P &...each) {
            void *at[] = {(void *)&each...};

            bm_before_launch(kernel, each...);
            return cudaLaunchKernelExC(&config, (const void *)kernel, at);
        },
        given);
}

#define BM_INLINE [[maybe_unused]] static __device__ __forceinline__

static const unsigned bm_block = 256; /* threads, unless there is a reason */

/* Blocks for n elements; BM_EACH strides over the rest. */
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

/* To nearest even; NaN stays NaN. */
BM_INLINE bm_bf16 bm_to_bf16(float x)
{
    __nv_bfloat16 r = __float2bfloat16(x);
    bm_bf16 y;
    memcpy(&y, &r, sizeof y);
    return y;
}

/* Number i of a vector in either form. */
BM_INLINE float bm_number(bm_in x, size_t i)
{
    return x.half ? bm_of_bf16(((const bm_bf16 *)x.x)[i])
                  : ((const float *)x.x)[i];
}

BM_INLINE void bm_give(bm_out y, size_t i, float x)
{
    if (y.half)
        ((bm_bf16 *)y.x)[i] = bm_to_bf16(x);
    else
        ((float *)y.x)[i] = x;
}

BM_INLINE float bm_warp_sum(float x)
{
    for (int step = 16; step > 0; step /= 2)
        x += __shfl_xor_sync(~0u, x, step);
    return x;
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
