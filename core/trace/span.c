#include "core/trace/span.h"

#include "core/status.h"

#include <stddef.h>

bool bm_span_watched;
static const bm_span_watcher *watchers[BM_SPAN_WATCHERS];
static size_t n_watchers;

static _Thread_local const char *thread = "computing";

void bm_span_thread(const char *name)
{
    thread = name;
}

const char *bm_span_thread_name(void)
{
    return thread;
}

void bm_span_watch(const bm_span_watcher *watcher)
{
    for (size_t i = 0; i < n_watchers; i++)
        if (watchers[i] == watcher)
            return;
    BM_ASSERT(n_watchers < BM_SPAN_WATCHERS);
    watchers[n_watchers++] = watcher;
    bm_span_watched = true;
}

void bm_span_notify_begin(const char *name)
{
    for (size_t i = 0; i < n_watchers; i++)
        watchers[i]->begin(name);
}

/* In the reverse order of bm_span_notify_begin, so that spans nest. */
void bm_span_notify_end(bm_span s, double now)
{
    for (size_t i = n_watchers; i-- > 0;)
        watchers[i]->end(s.name, s.began, now);
}
