/*
 * span.h - what the program is doing, for those who watch: a profiler, a trace.
 *
 *     bm_span span = bm_span_begin("update");
 *     ..
 *     t->update_s += bm_span_end(span);
 *
 * Spans of a thread lie within each other. While nobody watches, one is a
 * branch at either end, besides the clock that whoever measures looks at.
 */
#ifndef BM_CORE_SPAN_H
#define BM_CORE_SPAN_H

#include "core/clock.h"

#include <stdbool.h>

/* Called on the thread of the span; seconds are those of clock.h. A name is for
 * ever. */
typedef struct bm_span_watcher {
    void (*begin)(const char *name);
    void (*end)(const char *name, double began, double ended);
} bm_span_watcher;

/* From now on and for good; who watches already is not added again. Before
 * there are threads with spans. */
enum { BM_SPAN_WATCHERS = 4 }; /* at most */
void bm_span_watch(const bm_span_watcher *watcher);

/* What this thread does, for those who watch: "computing" until it says so. */
void bm_span_thread(const char *name);
const char *bm_span_thread_name(void);

typedef struct bm_span {
    const char *name;
    double began;
} bm_span;

/* Use through the two functions below. */
extern bool bm_span_watched;
void bm_span_tell_begin(const char *name);
void bm_span_tell_end(bm_span s, double now);

static inline bm_span bm_span_begin(const char *name)
{
    if (bm_span_watched)
        bm_span_tell_begin(name);
    return (bm_span){name, bm_clock()};
}

/* Returns the seconds it took. */
static inline double bm_span_end(bm_span s)
{
    double now = bm_clock();

    if (bm_span_watched)
        bm_span_tell_end(s, now);
    return now - s.began;
}

#endif
