/*
 * trace_table.h - what the traces of all ranks of a run come to: where each
 * spent its time, and who held up the others.
 *
 * The time of a span is its own: without that of spans within it. So the times
 * of a thread add up, and "block" is what nothing else in a block accounts for.
 *
 *     work(r, b)     of rank r in block b: its time on the thread that
 * computes, but for wait, exchange, filter and checkpoint, in which ranks meet
 *     straggler(b)   the rank s with the most work
 *     lost(b)        sum over r of work(s, b) - work(r, b)
 *
 * The straggler of all is the one to whom most was lost. That of a phase in
 * which ranks wait for each other is who spent the least time in it; of another
 * one, the most.
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
    double *seconds; /* [ranks]: from its begin to its end; 0: it is cut off */
    double *work;    /* [ranks] */
} bm_trace_block_work;

typedef struct bm_trace_table {
    int ranks;
    char (*host)[64]; /* [ranks] */
    bm_trace_phase *phases;
    size_t n_phases;
    bm_trace_block_work *blocks; /* in their order */
    size_t n_blocks;
} bm_trace_table;

BM_CHECKED bm_status bm_trace_table_init(bm_trace_table *t, int ranks);
void bm_trace_table_free(bm_trace_table *t);

/* Adds a rank's file; path is for messages. BM_ERR_FORMAT: it is no trace. */
BM_CHECKED bm_status bm_trace_table_add(bm_trace_table *t, int rank,
                                        const json_t *file, const char *path);

void bm_trace_table_print(const bm_trace_table *t, FILE *out);
json_t *bm_trace_table_json(const bm_trace_table *t);

#endif
