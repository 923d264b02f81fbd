/*
 * sm90.h - instructions of sm_90 beyond CUDA C, for kernels that are started
 * with BM_LAUNCH_CLUSTER. Names and layouts are those of the PTX manual.
 *
 * Products of a warp, m16n8k16: C += A B with A [16, 16] and B [16, 8] in bf16,
 * C [16, 8] in fp32. Of lane 4 g + q, a register with two numbers holds
 *
 *     A  a[0] row g      columns 2 q, 2 q + 1     a[2] the same, columns + 8
 *        a[1] row g + 8  columns 2 q, 2 q + 1     a[3] the same, columns + 8
 *     B  b[0] column g   rows 2 q, 2 q + 1        b[1] the same, rows + 8
 *     C  c[0], c[1]  row g, columns 2 q, 2 q + 1  c[2], c[3]  row g + 8
 *
 * bm_matrices_get reads four matrices [8, 8] of 16-bit numbers. Lane l gives
 * the address of row l % 8 of matrix l / 8: 16 bytes, aligned to 16. Register i
 * then holds columns 2 q and 2 q + 1 of row g of matrix i; or of its transpose.
 * bm_matrices_put writes what the transposed one reads.
 *
 * A bm_arrivals, an mbarrier in shared memory, counts the bytes that other
 * blocks of the cluster have sent: the phase that bm_arrivals_expect opens ends
 * when so many have arrived. Phases are 0, 1, 0, 1 and so on.
 */
#ifndef BM_COMPUTE_CUDA_KERNELS_SM90_H
#define BM_COMPUTE_CUDA_KERNELS_SM90_H

#include "compute/cuda/kernels/kernel.h"

typedef uint64_t bm_arrivals;

#ifndef BM_EMULATED
#if __CUDA_ARCH__ >= 900
#define BM_SM90 1
#else
#define BM_SM90 0 /* kernels are empty, and are never started */
#endif

BM_INLINE uint32_t bm_shared_address(const void *x)
{
    return (uint32_t)__cvta_generic_to_shared(x);
}

BM_INLINE void bm_multiply_add(float c[4], const uint32_t a[4], uint32_t b0,
                               uint32_t b1)
{
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

BM_INLINE void bm_matrices_get(uint32_t r[4], const void *row)
{
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(bm_shared_address(row))
                 : "memory");
}

BM_INLINE void bm_matrices_get_transposed(uint32_t r[4], const void *row)
{
    asm volatile(
        "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
        : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
        : "r"(bm_shared_address(row))
        : "memory");
}

/* One matrix: lanes 0 to 7 give the addresses of its rows. */
BM_INLINE uint32_t bm_matrix_get_transposed(const void *row)
{
    uint32_t r;

    asm volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];"
                 : "=r"(r)
                 : "r"(bm_shared_address(row))
                 : "memory");
    return r;
}

BM_INLINE void bm_matrices_put(void *row, const uint32_t r[4])
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::
            "r"(bm_shared_address(row)),
        "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3])
        : "memory");
}

BM_INLINE void bm_matrix_put(void *row, uint32_t r)
{
    asm volatile(
        "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%0], {%1};" ::"r"(
            bm_shared_address(row)),
        "r"(r)
        : "memory");
}

/* Relative error up to 2^-11. */
BM_INLINE float bm_tanh_quick(float x)
{
    float y;

    asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* Global to shared, 16 bytes at multiples of 16. Copies that this thread began
 * up to a call of bm_copies_commit are a group; after bm_copies_wait<n> all
 * groups but its last n are complete, to be seen by others after a barrier. */
BM_INLINE void bm_copy_begin(void *shared, const void *global)
{
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(
                     bm_shared_address(shared)),
                 "l"(__cvta_generic_to_global(global))
                 : "memory");
}

BM_INLINE void bm_copies_commit(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

template <int n> BM_INLINE void bm_copies_wait(void)
{
    asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
}

/* 16 bytes at a multiple of 16. */
BM_INLINE uint4 bm_get16(const void *x)
{
    return *(const uint4 *)x;
}

BM_INLINE void bm_put16(void *x, uint4 v)
{
    *(uint4 *)x = v;
}

/* A barrier of so many threads of a block, whole warps, with a number from 1 to
 * 15. Threads that wait see what all wrote to shared memory before they came;
 * threads that only come do not wait. */
BM_INLINE void bm_meeting_come(int number, int threads)
{
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

BM_INLINE void bm_meeting_wait(int number, int threads)
{
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* The place of this block in its cluster. */
BM_INLINE unsigned bm_cluster_rank(void)
{
    unsigned rank;

    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

BM_INLINE void bm_cluster_sync(void)
{
    asm volatile("barrier.cluster.arrive.release.aligned;\n"
                 "barrier.cluster.wait.acquire.aligned;" ::
                     : "memory");
}

/* By one thread. Other blocks may send after a bm_cluster_sync. `threads` must
 * call bm_arrivals_expect in a phase. */
BM_INLINE void bm_arrivals_open(bm_arrivals *bar, unsigned threads)
{
    asm volatile(
        "mbarrier.init.shared::cta.b64 [%0], %1;\n"
        "fence.mbarrier_init.release.cluster;" ::"r"(bm_shared_address(bar)),
        "r"(threads)
        : "memory");
}

/* By one thread, once a phase. */
BM_INLINE void bm_arrivals_expect(bm_arrivals *bar, unsigned bytes)
{
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                     bm_shared_address(bar)),
                 "r"(bytes)
                 : "memory");
}

/* After this, what was sent in the phase may be read. The fence is one for
 * shared memory only: others invalidate cached global memory. */
BM_INLINE void bm_arrivals_wait(bm_arrivals *bar, unsigned phase)
{
    uint32_t over;

    do {
        asm volatile("{\n"
                     ".reg .pred p;\n"
                     "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 "
                     "p, [%1], %2;\n"
                     "selp.u32 %0, 1, 0, p;\n"
                     "}"
                     : "=r"(over)
                     : "r"(bm_shared_address(bar)), "r"(phase)
                     : "memory");
    } while (!over);
    asm volatile("fence.acquire.sync_restrict::shared::cluster.cluster;" ::
                     : "memory");
}

BM_INLINE uint32_t bm_cluster_address(const void *x, unsigned block)
{
    uint32_t there;

    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(bm_shared_address(x)), "r"(block));
    return there;
}

/* Sends to the address of `x` in another block, or in this one, and counts the
 * bytes in `bar` there. Nothing else orders it. */
BM_INLINE void bm_send8(void *x, float2 v, bm_arrivals *bar, unsigned block)
{
    asm volatile(
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
        ".v2.b32 [%0], {%1,%2}, [%3];" ::"r"(bm_cluster_address(x, block)),
        "r"(__float_as_int(v.x)), "r"(__float_as_int(v.y)),
        "r"(bm_cluster_address(bar, block))
        : "memory");
}

BM_INLINE void bm_send16(void *x, uint4 v, bm_arrivals *bar, unsigned block)
{
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes"
                 ".v4.b32 [%0], {%1,%2,%3,%4}, [%5];" ::"r"(
                     bm_cluster_address(x, block)),
                 "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w),
                 "r"(bm_cluster_address(bar, block))
                 : "memory");
}
#endif
#endif
