/*
 * trace.h - writes the spans (span.h) of this process in a range of blocks to a
 * file in Chrome's trace format.
 *
 *     bm_trace_watch();                        // before there are threads
 *     ...
 *     BM_TRY(bm_trace_open("trace/rank-3.json", &about));
 *     for (block = about.window.first; block < about.window.end; block++) {
 *         BM_TRY(bm_trace_block(block));
 *         ...
 *     }
 *     BM_TRY(bm_trace_close());
 *
 * The file holds the spans of all threads that begin at ts 0 or later and end
 * between bm_trace_open and bm_trace_close. It is replaced atomically at open
 * and at the end of each block, so that it is valid whenever the process is
 * killed.
 *
 * With c the clock of this process, and c + offset the clock of rank 0:
 *
 *     ts = (c + offset - origin) in microseconds
 */
#ifndef BM_CORE_TRACE_TRACE_H
#define BM_CORE_TRACE_TRACE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks [first, end) of a run, counted from 0. */
typedef struct bm_trace_window {
    int64_t first, end;
} bm_trace_window;

/* Parses "blocks A:B" with 0 <= A < B, or "", which gives {0, 0}. Returns false
 * for any other text; *out is {0, 0} then. */
bool bm_trace_window_read(const char *text, bm_trace_window *out);

typedef struct bm_trace_about {
    bm_trace_window window;
    int rank, ranks;
    int attempt;       /* of the run; files of one attempt belong together */
    double offset;     /* seconds, see above */
    double round_trip; /* seconds; the error of offset is at most half of it */
    double origin;     /* seconds of rank 0's clock */
} bm_trace_about;

/* The most spans in a file, about 30 MB; further ones are only counted. */
enum { BM_TRACE_MOST = 1 << 18 };

/* Adds the trace as a watcher of spans, see bm_span_watch. */
void bm_trace_watch(void);

/*
 * All functions below must be called on one thread. A failure closes the trace;
 * the file at `path` keeps its last valid contents. They fail with
 * BM_ERR_CREATE, BM_ERR_IO or BM_ERR_MEMORY, bm_trace_open also with
 * BM_ERR_UNSUPPORTED if the host's name is not UTF-8.
 */
BM_CHECKED bm_status bm_trace_open(const char *path,
                                   const bm_trace_about *about);
/* Writes the spans so far; the next spans of this thread belong to `block`.
 * Precondition: the trace is open. */
BM_CHECKED bm_status bm_trace_block(int64_t block);
/* No-op unless the trace is open. */
BM_CHECKED bm_status bm_trace_close(void);

/* False after a failure. */
bool bm_trace_is_open(void);

/* Spans that were dropped since bm_trace_open, for lack of room or memory. */
size_t bm_trace_lost(void);

#endif
