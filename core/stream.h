/*
 * stream.h - loops over vectors that are larger than the caches: prefetching,
 * and stores that bypass the caches. Neither changes a result.
 */
#ifndef BM_CORE_STREAM_H
#define BM_CORE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Floats between two prefetches of a loop. */
enum { BM_STRIDE = 64 };

/* Prefetches BM_STRIDE floats from x + 512; these need not exist. */
static inline void bm_prefetch(const float *x)
{
    enum { AHEAD = 512, LINE = 16 };

    for (size_t i = 0; i < BM_STRIDE; i += LINE)
        __builtin_prefetch(x + AHEAD + i);
}

/* y = x with stores that bypass the caches. Call bm_stream_end before another
 * thread or process reads y. */
static inline void bm_stream(size_t n, const float *x, float *y)
{
#ifdef __SSE2__
    for (; n > 0 && (uintptr_t)y % 16 != 0; n--)
        *y++ = *x++;
    for (; n >= 4; n -= 4, x += 4, y += 4)
        _mm_stream_ps(y, _mm_loadu_ps(x));
#endif
    memcpy(y, x, n * sizeof *y);
}

static inline void bm_stream_end(void)
{
#ifdef __SSE2__
    _mm_sfence();
#endif
}

#endif
