/*
 * trace.h - the spans of this process, of some blocks, as a file in Chrome's
 * trace format.
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
 * Kept are spans of all threads that begin at ts 0 or later, and end between
 * bm_trace_open and bm_trace_close. The file appears at once and grows at the
 * end of each block, by a new one in its place: whenever the process is killed,
 * it is whole.
 *
 * Of the clock c of this process, of which that of rank 0 is c + offset:
 *
 *     ts = (c + offset - origin) in microseconds
 */
#ifndef BM_CORE_TRACE_H
#define BM_CORE_TRACE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Blocks [first, end) of a run, counted from 0. */
typedef struct bm_trace_window {
    int64_t first, end;
} bm_trace_window;

/* "blocks A:B", with 0 <= A < B, or "": {0, 0}. False: it is neither. */
bool bm_trace_window_read(const char *text, bm_trace_window *out);

typedef struct bm_trace_about {
    bm_trace_window window;
    int rank, ranks;
    int attempt;       /* files of one attempt belong together */
    double offset;     /* seconds, see above */
    double round_trip; /* seconds; the offset is wrong by at most half of it */
    double origin;     /* seconds of rank 0's clock */
} bm_trace_about;

/* The most spans of a file, about 30 MB; others are counted. */
enum { BM_TRACE_MOST = 1 << 18 };

/* As bm_span_watch. */
void bm_trace_watch(void);

/* All below are called by one thread. After a failure there is no trace, and
 * of an earlier one what it was. */
BM_CHECKED bm_status bm_trace_open(const char *path,
                                   const bm_trace_about *about);
/* What this thread does next belongs to this block; puts out what was. */
BM_CHECKED bm_status bm_trace_block(int64_t block);
/* With nothing open: nothing. */
BM_CHECKED bm_status bm_trace_close(void);

/* False also after a failure. */
bool bm_trace_is_open(void);

/* Spans that found no room since bm_trace_open. */
size_t bm_trace_lost(void);

#endif
