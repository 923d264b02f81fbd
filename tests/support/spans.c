#include "tests/support/spans.h"

#include "core/trace/span.h"

#include <stddef.h>
#include <string.h>

enum { DEEPEST = 16 };

static _Thread_local struct {
    bool on;
    const char *open[DEEPEST];
    size_t depth;
    double since, longest;
} seen;

static bool waits(void)
{
    const char *in = seen.depth > 0 ? seen.open[seen.depth - 1] : "";

    return strcmp(in, "wait") == 0 || strcmp(in, "exchange") == 0 ||
           strcmp(in, "filter") == 0;
}

/* Before the thread enters another span. */
static void note(void)
{
    double now = bm_clock();

    if (!waits() && now - seen.since > seen.longest)
        seen.longest = now - seen.since;
    seen.since = now;
}

static void begins(const char *name)
{
    if (!seen.on)
        return;
    note();
    seen.open[seen.depth++] = name;
}

static void ends(const char *name, double began, double ended)
{
    (void)name;
    (void)began;
    (void)ended;
    if (!seen.on || seen.depth == 0)
        return;
    note();
    seen.depth--;
}

void spans_begin(void)
{
    static const bm_span_watcher watcher = {begins, ends};

    bm_span_watch(&watcher);
    memset(&seen, 0, sizeof seen);
    seen.on = true;
    seen.since = bm_clock();
}

double spans_end(void)
{
    note();
    seen.on = false;
    return seen.longest;
}
