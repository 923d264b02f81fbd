/*
 * device.h - CUDA C for a C++ compiler of the host: a kernel is a function, and
 * each of its threads a fiber that runs until it waits for others. The build
 * includes this file before each file of kernels (-include).
 *
 * Blocks run one after the other, those of a cluster together. It cannot show
 * races within a warp, the memory model, or speed.
 */
#ifndef BM_TESTS_EMULATION_DEVICE_H
#define BM_TESTS_EMULATION_DEVICE_H

#define BM_EMULATED

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <tuple>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __constant__
#undef __forceinline__
#undef __launch_bounds__
#undef __restrict__
#define __global__
#define __device__
#define __host__
#define __shared__      static /* blocks take turns; not for clusters */
#define __constant__    static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __restrict__

/* The thread that runs. */
struct bm_thread {
    uint3 thread, block;
    dim3 block_size, grid_size;
    unsigned rank;     /* in its block */
    unsigned cluster;  /* of its block in the cluster */
    unsigned clusters; /* blocks of a cluster */
    unsigned char *shared;
};
extern bm_thread bm_now;
#define threadIdx bm_now.thread
#define blockIdx  bm_now.block
#define blockDim  bm_now.block_size
#define gridDim   bm_now.grid_size
static const int warpSize = 32;

/* Copies the arguments of a launch, and returns what each thread does. */
typedef std::function<std::function<void()>(void **arguments)> bm_emulated;
void bm_emulate_add(const void *kernel, const bm_emulated &what);

/* Aborts if an argument holds an address of host memory. */
void bm_emulate_look(const void *argument, size_t bytes);

template <typename... P, size_t... i>
std::tuple<P...> bm_emulate_copy(void **arguments, std::index_sequence<i...>)
{
    (bm_emulate_look(arguments[i], sizeof(P)), ...);
    return std::tuple<P...>(*(P *)arguments[i]...);
}

/* Tells cudaLaunchKernelExC the types of the arguments, and clears their
 * padding, where bm_emulate_look could find an old address. */
template <typename... P>
void bm_before_launch(void (*kernel)(P...), P &...arguments_)
{
    (__builtin_clear_padding(&arguments_), ...);
    bm_emulate_add((const void *)kernel, [kernel](void **arguments) {
        auto now =
            bm_emulate_copy<P...>(arguments, std::index_sequence_for<P...>());
        return [=]() { std::apply([=](P... a) { kernel(a...); }, now); };
    });
}
#define BM_SHARED(type, name) type *name = (type *)(void *)bm_now.shared

/* Waits until `done` returns true, while other threads run. */
void bm_fiber_wait(const std::function<bool()> &done);
void __syncthreads();
int __syncthreads_or(int x);
void __syncwarp(unsigned mask = ~0u);
void bm_cluster_sync();

/* Shared memory of another block of the cluster, at the place of `x` in ours.
 */
void *bm_cluster_map(const void *x, unsigned block);

/* 8 bytes of one lane of the warp, each lane giving its own. */
uint64_t bm_warp_get(uint64_t own, unsigned lane);

template <typename T> T bm_shuffle(T x, unsigned lane)
{
    uint64_t bits = 0;
    static_assert(sizeof x <= sizeof bits, "a shuffle moves 8 bytes");
    memcpy(&bits, &x, sizeof x);
    bits = bm_warp_get(bits, lane);
    memcpy(&x, &bits, sizeof x);
    return x;
}
template <typename T> T __shfl_sync(unsigned, T x, int lane)
{
    return bm_shuffle(x, (unsigned)lane);
}
template <typename T> T __shfl_xor_sync(unsigned, T x, int mask)
{
    return bm_shuffle(x, bm_now.rank % 32 ^ (unsigned)mask);
}
template <typename T> T __shfl_down_sync(unsigned, T x, unsigned by)
{
    unsigned lane = bm_now.rank % 32;
    return bm_shuffle(x, lane + by < 32 ? lane + by : lane);
}
template <typename T> T __shfl_up_sync(unsigned, T x, unsigned by)
{
    unsigned lane = bm_now.rank % 32;
    return bm_shuffle(x, lane >= by ? lane - by : lane);
}
unsigned __ballot_sync(unsigned mask, int x);
static inline int __any_sync(unsigned mask, int x)
{
    return __ballot_sync(mask, x) != 0;
}
static inline int __all_sync(unsigned mask, int x)
{
    return __ballot_sync(mask, !x) == 0;
}

/* Arithmetic. Rounding functions keep the compiler from fusing. */
static inline float __fadd_rn(float a, float b)
{
    return a + b;
}
static inline float __fsub_rn(float a, float b)
{
    return a - b;
}
static inline float __fmul_rn(float a, float b)
{
    return a * b;
}
static inline float __fdiv_rn(float a, float b)
{
    return a / b;
}
static inline float __fsqrt_rn(float x)
{
    return sqrtf(x);
}
static inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}
static inline double __dadd_rn(double a, double b)
{
    return a + b;
}
static inline double __dsub_rn(double a, double b)
{
    return a - b;
}
static inline double __dmul_rn(double a, double b)
{
    return a * b;
}
static inline double __ddiv_rn(double a, double b)
{
    return a / b;
}
static inline double __fma_rn(double a, double b, double c)
{
    return fma(a, b, c);
}
static inline float __fdividef(float a, float b)
{
    return a / b;
}
#define __expf expf /* glibc has other functions of these names */
#define __logf logf
#define __sinf sinf
static inline float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}
static inline float __frcp_rn(float x)
{
    return 1 / x;
}
static inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}
static inline int __ffs(int x)
{
    return __builtin_ffs(x);
}
static inline int __clz(int x)
{
    return x == 0 ? 32 : __builtin_clz((unsigned)x);
}
static inline int __float_as_int(float x)
{
    int i;
    memcpy(&i, &x, sizeof i);
    return i;
}
static inline float __int_as_float(int i)
{
    float x;
    memcpy(&x, &i, sizeof x);
    return x;
}
template <typename T> T min(T a, T b)
{
    return a < b ? a : b;
}
template <typename T> T max(T a, T b)
{
    return a > b ? a : b;
}
template <typename T> T __ldg(const T *x)
{
    return *x;
}
template <typename T> T __ldcs(const T *x)
{
    return *x;
}
template <typename T> T __ldcg(const T *x)
{
    return *x;
}
template <typename T> void __stcs(T *x, T value)
{
    *x = value;
}
template <typename T> void __stcg(T *x, T value)
{
    *x = value;
}
template <typename T, typename U> T atomicAdd(T *x, U by)
{
    T before = *x;
    *x += (T)by;
    return before;
}
template <typename T, typename U> T atomicMax(T *x, U other)
{
    T before = *x;
    if ((T)other > before)
        *x = (T)other;
    return before;
}
template <typename T, typename U> T atomicOr(T *x, U bits)
{
    T before = *x;
    *x |= (T)bits;
    return before;
}
static inline void __threadfence() {}
static inline void __threadfence_block() {}

#endif
