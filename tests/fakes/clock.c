/*
 * clock.c - a wall clock that is set a day back and forth, for programs that
 * load it with LD_PRELOAD:
 *
 *     BMUF_CLOCK=3      every third look finds that it was set again
 *
 * The monotonic clock is left alone, as by the kernel.
 */
#define _GNU_SOURCE /* RTLD_NEXT */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int clock_gettime(clockid_t which, struct timespec *out);
time_t time(time_t *out);

enum { DAY_S = 86400 };
static atomic_long looks;

/* Seconds by which the wall clock is wrong at this look. */
static time_t shift(void)
{
    const char *text = getenv("BMUF_CLOCK");
    long every = text != NULL ? strtol(text, NULL, 10) : 0;

    if (every <= 0)
        return 0;
    return (atomic_fetch_add(&looks, 1) / every % 3 - 1) * DAY_S;
}

int clock_gettime(clockid_t which, struct timespec *out)
{
    static int (*next)(clockid_t, struct timespec *);
    void *function = NULL;
    int code = 0;

    if (next == NULL) {
        function = dlsym(RTLD_NEXT, "clock_gettime");
        memcpy((void *)&next, (void *)&function, sizeof next);
    }
    code = next(which, out);
    if (which == CLOCK_REALTIME && code == 0)
        out->tv_sec += shift();
    return code;
}

time_t time(time_t *out)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    if (out != NULL)
        *out = now.tv_sec;
    return now.tv_sec;
}
