#include "cli/train/tracing.h"

#include "comm/clock_offset.h"
#include "core/clock.h"
#include "core/file/file.h"
#include "core/log.h"

#include <stdio.h>
#include <unistd.h>

void bm_tracing_open(bm_tracing *t, const char *text)
{
    *t = (bm_tracing){0};
    BM_ASSERT(bm_trace_window_read(text, &t->window));
    if (t->window.end > 0)
        bm_trace_watch();
}

static void warn(bm_status status)
{
    if (status != BM_OK)
        bm_log(BM_WARNING, "the trace of this rank ends here: %s",
               bm_last_message());
}

static double now_seconds(void)
{
    return bm_clock();
}

/* Removes the files of an attempt with more ranks. */
static void remove_others(const char *directory, int ranks)
{
    char path[2200];

    do
        snprintf(path, sizeof path, "%s/trace/rank-%d.json", directory,
                 ranks++);
    while (unlink(path) == 0);
}

static bm_status open_file(const char *directory, const bm_trace_about *about)
{
    char path[2200];

    snprintf(path, sizeof path, "%s/trace", directory);
    BM_TRY(bm_file_make_directory(path));
    snprintf(path, sizeof path, "%s/trace/rank-%d.json", directory,
             about->rank);
    return bm_trace_open(path, about);
}

static bm_status begin(bm_tracing *t, bm_comm *comm, const char *directory,
                       int attempt)
{
    bm_trace_about about = {.window = t->window,
                            .rank = bm_comm_rank(comm),
                            .ranks = bm_comm_size(comm),
                            .attempt = attempt,
                            .origin = bm_clock()};
    bm_offset offset = {0, 0};

    BM_TRY(
        bm_comm_broadcast_bytes(comm, &about.origin, sizeof about.origin, 0));
    BM_TRY(bm_clock_offset(comm, now_seconds, &offset));
    about.offset = offset.seconds;
    about.round_trip = offset.round_trip;
    if (about.rank == 0)
        remove_others(directory, about.ranks);
    t->on = true;
    warn(open_file(directory, &about));
    return BM_OK;
}

bm_status bm_tracing_block(bm_tracing *t, bm_comm *comm, const char *directory,
                           int attempt, int64_t block)
{
    bool within = t->window.first <= block && block < t->window.end;

    t->at = block;
    if (within && !t->on)
        BM_TRY(begin(t, comm, directory, attempt));
    if (within && bm_trace_is_open())
        warn(bm_trace_block(block));
    if (!within)
        warn(bm_trace_close());
    return BM_OK;
}

void bm_tracing_close(bm_tracing *t)
{
    if (t->window.end > 0 && !t->on && t->at < t->window.first)
        bm_log(BM_NOTE,
               "nothing was traced: training ended before block %lld, the "
               "first of job.trace",
               (long long)t->window.first);
    if (t->on && bm_trace_lost() > 0)
        bm_log(BM_WARNING,
               "the trace of this rank is full, %zu spans were left out; trace "
               "fewer blocks",
               bm_trace_lost());
    warn(bm_trace_close());
    *t = (bm_tracing){0};
}
