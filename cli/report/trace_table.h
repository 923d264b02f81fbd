/*
 * trace_table.h - a table of the traces of all ranks: the time each spent in
 * each phase, and the rank that delayed the others.
 *
 * The time of a span does not include that of spans within it, so the times of
 * a thread add up. "block" is the time in a block outside all other spans.
 *
 *     work(r, b)     time of rank r in block b on its computing thread, without
 *                    wait, exchange, filter and checkpoint, in which ranks wait
 *                    for each other
 *     straggler(b)   the rank s with the most work
 *     lost(b)        sum over r of work(s, b) - work(r, b)
 *
 * The straggler of the run is the rank with the largest sum of lost(b). The
 * straggler of a phase in which ranks wait for each other is the rank with the
 * least time in it; of any other phase, the rank with the most.
 */
#ifndef BM_CLI_REPORT_TRACE_TABLE_H
#define BM_CLI_REPORT_TRACE_TABLE_H

#include "core/status.h"

#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

typedef struct bm_trace_phase {
    char name[32], thread[32];
    double *seconds; /* [ranks] */
} bm_trace_phase;

typedef struct bm_trace_block_work {
    int64_t block;
    double *seconds; /* [ranks]: from begin to end; 0: the trace ends before */
    double *work;    /* [ranks] */
} bm_trace_block_work;

typedef struct bm_trace_table {
    int ranks;
    char (*host)[64]; /* [ranks] */
    bm_trace_phase *phases;
    size_t n_phases;
    bm_trace_block_work *blocks; /* in ascending order */
    size_t n_blocks;
} bm_trace_table;

/* An empty table. Free with bm_trace_table_free. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_trace_table_init(bm_trace_table *t, int ranks);
void bm_trace_table_free(bm_trace_table *t);

/* Adds a rank's file; `path` is for messages. Fails with BM_ERR_FORMAT if it is
 * no valid trace, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_trace_table_add(bm_trace_table *t, int rank,
                                        const json_t *file, const char *path);

/* Prints phases, up to 20 blocks, and the straggler. */
void bm_trace_table_print(const bm_trace_table *t, FILE *out);

/* The same as a new JSON object. */
json_t *bm_trace_table_json(const bm_trace_table *t);

#endif
