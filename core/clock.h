/* clock.h - seconds of the monotonic clock, for intervals. Cannot fail. */
#ifndef BM_CORE_CLOCK_H
#define BM_CORE_CLOCK_H

#include <time.h>

static inline double bm_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
