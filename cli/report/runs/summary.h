/*
 * summary.h - a run in numbers, from its journal (docs/jobs/journal.md): its epochs,
 * the best of them, how it ended. bm_run_summary_read, then
 * bm_run_summary_free.
 */
#ifndef BM_CLI_REPORT_RUNS_SUMMARY_H
#define BM_CLI_REPORT_RUNS_SUMMARY_H

#include "cli/report/runs/phases.h"
#include "core/status.h"

#include <jansson.h>
#include <stdint.h>

#define BM_RUN_EVENTS(X)                                                       \
    X(start) X(block) X(server) X(checkpoint) X(eval) X(best) X(end)

enum bm_run_event {
#define X(name) BM_RUN_##name,
    BM_RUN_EVENTS(X)
#undef X
        BM_RUN_EVENTS_COUNT
};

/* What is not known is NAN. */
typedef struct bm_run_epoch {
    double loss, error; /* of training: means over its blocks */
    double rate;        /* of its last block */
    double frames, seconds;
    double dev_loss, dev_ler, ema_ler; /* ema: the average of models on dev */
} bm_run_epoch;

/* A block; one that was trained on again after a restart counts once. What is
 * not known is NAN. */
typedef struct bm_run_block {
    size_t epoch, block;               /* from 0; the block in the epoch */
    double blocks_per_epoch;           /* of this epoch */
    double loss, error, rate;          /* of training */
    double frames, seconds;            /* 0: not known */
    double wait;                       /* seconds, for the slowest rank */
    double block_momentum, block_rate; /* of the filter: eta and zeta */
    double g_norm, delta_norm;
    double cosine;   /* of the angle between them */
    double left_out; /* workers, of the mean */
    double audited;  /* shares that were computed twice */
} bm_run_block;

typedef struct bm_run_summary {
    char directory[4096];
    char state[48]; /* "done", "failed: ..", as the journal's last end says;
                       "running"; "killed" */
    json_t *last[BM_RUN_EVENTS_COUNT]; /* the last event of a kind, or NULL */
    size_t n_epochs;                   /* begun */
    bm_run_epoch *epochs;              /* [n_epochs] */
    size_t epochs_done, epochs_wanted; /* wanted 0: not known */
    size_t blocks;                     /* done */
    double frames, seconds;            /* of these blocks */
    double ranks; /* of the last job that did a block, or else of the last one;
                     NAN: not known */
    size_t best;  /* index of the epoch; n_epochs: none */
    double best_ler, last_ler, test_ler;
    bm_phases phases;
    double bytes;       /* that the busiest rank of each block exchanged */
    bm_run_block *rows; /* [n_rows], in order */
    size_t n_rows, room;
} bm_run_summary;

/* Fails with BM_ERR_MISSING or BM_ERR_IO if there is no journal that can be
 * read, with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_run_summary_read(bm_run_summary *s,
                                         const char *directory);
void bm_run_summary_free(bm_run_summary *s);

/* A text of the start event, such as "strategy"; "?": there is none. */
const char *bm_run_text(const bm_run_summary *s, const char *key);

#endif
