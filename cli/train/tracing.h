/*
 * tracing.h - [job] trace of a training run. When the window of blocks begins,
 * the ranks measure their clock offsets and every rank opens a file.
 */
#ifndef BM_CLI_TRAIN_TRACING_H
#define BM_CLI_TRAIN_TRACING_H

#include "comm/comm.h"
#include "core/trace/trace.h"

typedef struct bm_tracing {
    bm_trace_window window;
    int64_t at; /* the next block */
    bool on;    /* a file was opened, or could not be */
} bm_tracing;

/* `text` is a valid job.trace. Call it before any thread opens a span. */
void bm_tracing_open(bm_tracing *t, const char *text);

/*
 * Collective. Call it before each block; `block` is the number of blocks done
 * in the run. The files are directory/trace/rank-<r>.json; those of an earlier
 * attempt are replaced at the first traced block of this one. If a file cannot
 * be written, a warning is logged and training continues. Fails only if the
 * communication fails.
 */
BM_CHECKED bm_status bm_tracing_block(bm_tracing *t, bm_comm *comm,
                                      const char *directory, int attempt,
                                      int64_t block);

/* Closes the file. Logs a note if the window was not reached, and a warning if
 * spans were lost. */
void bm_tracing_close(bm_tracing *t);

#endif
