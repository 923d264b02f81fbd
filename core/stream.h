/*
 * stream.h - loops over vectors that are longer than any cache: what will be
 * read soon is asked for in time, what will not is written past the caches.
 * Neither changes a result.
 */
#ifndef BM_CORE_STREAM_H
#define BM_CORE_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* A loop takes so many floats between two requests. */
enum { BM_STRIDE = 64 };

/* Asks for the BM_STRIDE floats that come 512 after x, existing or not. */
static inline void bm_ask(const float *x)
{
    enum { AHEAD = 512, LINE = 16 };

    for (size_t i = 0; i < BM_STRIDE; i += LINE)
        __builtin_prefetch(x + AHEAD + i);
}

/* y = x, where nobody reads y soon; bm_stream_end has to come before anybody
 * else does. */
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
