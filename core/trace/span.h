/*
 * span.h - named intervals of a thread, for a profiler or a trace.
 *
 *     bm_span span = bm_span_begin("update");
 *     ..
 *     t->update_s += bm_span_end(span);
 *
 * Spans of a thread nest. Without a watcher a span costs two readings of the
 * clock and two branches. Nothing here fails.
 */
#ifndef BM_CORE_TRACE_SPAN_H
#define BM_CORE_TRACE_SPAN_H

#include "core/clock.h"

#include <stdbool.h>

/* Called on the thread of the span; seconds are those of bm_clock. Names must
 * have static lifetime. */
typedef struct bm_span_watcher {
    void (*begin)(const char *name);
    void (*end)(const char *name, double began, double ended);
} bm_span_watcher;

/* Adds a watcher, at most BM_SPAN_WATCHERS; no-op if it was added before. It
 * must have static lifetime. Call before there are other threads with spans. */
enum { BM_SPAN_WATCHERS = 4 };
void bm_span_watch(const bm_span_watcher *watcher);

/* The name of this thread for watchers, of static lifetime; "computing" until
 * it is set. */
void bm_span_thread(const char *name);
const char *bm_span_thread_name(void);

typedef struct bm_span {
    const char *name;
    double began;
} bm_span;

/* Internal to the two functions below. */
extern bool bm_span_watched;
void bm_span_notify_begin(const char *name);
void bm_span_notify_end(bm_span s, double now);

static inline bm_span bm_span_begin(const char *name)
{
    if (bm_span_watched)
        bm_span_notify_begin(name);
    return (bm_span){name, bm_clock()};
}

/* Returns the seconds since the begin. */
static inline double bm_span_end(bm_span s)
{
    double now = bm_clock();

    if (bm_span_watched)
        bm_span_notify_end(s, now);
    return now - s.began;
}

#endif
