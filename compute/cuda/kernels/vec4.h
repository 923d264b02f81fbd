/*
 * vec4.h - loads and stores of four numbers, floats or bf16. `wide`: all
 * vectors are aligned to 16 bytes (8 for bf16), and a thread moves four numbers
 * at once; else one after the other. Past the first n, loads give zeros and
 * stores are no-ops.
 */
#ifndef BM_COMPUTE_CUDA_KERNELS_VEC4_H
#define BM_COMPUTE_CUDA_KERNELS_VEC4_H

#include "compute/cuda/kernels/kernel.h"

struct bm_vec4 {
    float x[4];
};

BM_INLINE float bm_as_float(float x)
{
    return x;
}
BM_INLINE float bm_as_float(bm_bf16 x)
{
    return bm_of_bf16(x);
}
BM_INLINE void bm_set(float *y, float x)
{
    *y = x;
}
BM_INLINE void bm_set(bm_bf16 *y, float x)
{
    *y = bm_to_bf16(x);
}

BM_INLINE bm_vec4 bm_load4(const float *x)
{
    float4 v = *(const float4 *)x;
    return {{v.x, v.y, v.z, v.w}};
}
BM_INLINE bm_vec4 bm_load4(const bm_bf16 *x)
{
    ushort4 v = *(const ushort4 *)x;
    return {{bm_of_bf16({v.x}), bm_of_bf16({v.y}), bm_of_bf16({v.z}),
             bm_of_bf16({v.w})}};
}
BM_INLINE void bm_store4(float *y, bm_vec4 q)
{
    *(float4 *)y = make_float4(q.x[0], q.x[1], q.x[2], q.x[3]);
}
BM_INLINE void bm_store4(bm_bf16 *y, bm_vec4 q)
{
    *(ushort4 *)y =
        make_ushort4(bm_to_bf16(q.x[0]).bits, bm_to_bf16(q.x[1]).bits,
                     bm_to_bf16(q.x[2]).bits, bm_to_bf16(q.x[3]).bits);
}

/* Numbers i .. i + 3 of x [n]. */
template <typename T>
BM_INLINE bm_vec4 bm_load(const T *x, size_t i, size_t n, bool wide)
{
    bm_vec4 q = {};

    if (wide && i + 4 <= n)
        return bm_load4(x + i);
    for (int k = 0; k < 4; k++)
        if (i + k < n)
            q.x[k] = bm_as_float(x[i + k]);
    return q;
}
template <typename T>
BM_INLINE void bm_store(T *y, size_t i, size_t n, bool wide, bm_vec4 q)
{
    if (wide && i + 4 <= n) {
        bm_store4(y + i, q);
        return;
    }
    for (int k = 0; k < 4; k++)
        if (i + k < n)
            bm_set(&y[i + k], q.x[k]);
}

__host__ __device__ static inline size_t bm_vec4_count(size_t n)
{
    return n / 4 + (n % 4 != 0);
}

/* Does a vector begin where four of its numbers can be taken at once? */
template <typename T> static inline bool bm_is_wide(const T *x)
{
    return (uintptr_t)x % (4 * sizeof *x) == 0;
}

#endif
