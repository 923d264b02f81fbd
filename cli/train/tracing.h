/*
 * tracing.h - [job] trace of a training run: when its window begins, clocks are
 * compared, and every rank has a file.
 */
#ifndef BM_CLI_TRAIN_TRACING_H
#define BM_CLI_TRAIN_TRACING_H

#include "comm/comm.h"
#include "core/trace.h"

typedef struct bm_tracing {
    bm_trace_window window;
    int64_t at; /* the block that comes */
    bool on;    /* a file is open, or was given up */
} bm_tracing;

/* `text` is job.trace, and right. Before there are threads with spans. */
void bm_tracing_open(bm_tracing *t, const char *text);

/*
 * Collective. Comes before each block, of which `block` were done in the run.
 * The files are directory/trace/rank-<r>.json; those of an earlier attempt are
 * replaced when the first block of the window that comes begins. One that
 * cannot be written is warned of, and training goes on.
 */
BM_CHECKED bm_status bm_tracing_block(bm_tracing *t, bm_comm *comm,
                                      const char *directory, int attempt,
                                      int64_t block);
void bm_tracing_close(bm_tracing *t);

#endif
