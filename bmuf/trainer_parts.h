/*
 * trainer_parts.h - what trainer.c, train_block.c and warmup.c know of a
 * trainer; for these files alone.
 */
#ifndef BM_BMUF_TRAINER_PARTS_H
#define BM_BMUF_TRAINER_PARTS_H

#include "bmuf/async/events.h"
#include "bmuf/block_settings.h"
#include "bmuf/ema.h"
#include "bmuf/trainer.h"
#include "core/span.h"

/* Why a worker is left out. */
typedef enum bm_reason {
    BM_GOOD, /* it is not */
    BM_NOT_FINITE,
    BM_NO_LOSS,
    BM_DIVERGED
} bm_reason;

/* What a worker tells all others at the end of a block. Of doubles alone: rows
 * of workers that are elsewhere are zero, and the table is summed up. */
typedef struct bm_row {
    bm_score score;
    double samples;
    double bad;       /* a bm_reason */
    double bad_steps; /* skipped */
    double steps;     /* updates made, if that matters */
    double batches;   /* gone through */
} bm_row;

struct bm_trainer {
    bm_task task;
    const bm_config *config; /* borrowed */
    bm_comm *comm;           /* borrowed */
    bm_params *params;       /* borrowed */
    bm_train_settings set;
    bm_block_settings block;
    bm_position at;
    int64_t done; /* blocks of the run */

    int workers;
    int first, last;    /* hosted here: [first, last) */
    double reference;   /* mean loss of the block before; 0: none yet */
    bm_row *table;      /* [workers] */
    size_t most_states; /* of the strategies of both phases */
    double (*clock)(void *self);
    void *clock_self;
    double compute_s, wait_s, exchange_s, update_s;

    /* of the phase: see warmup.c */
    bm_strategy *strategy;
    bm_local_state *local_state;
    bm_events *events; /* NULL: the unit is another */
    bm_ema *ema;       /* NULL: none */
};

/* As bm_task's gradient; counts the samples. */
BM_CHECKED bm_status bm_trainer_gradient(bm_trainer *t, int worker,
                                         int64_t step, double *n);

/* Its score into its row. Does what was learned from one deserve trust? */
BM_CHECKED bm_status bm_trainer_note_score(bm_trainer *t, int worker);
bm_reason bm_trainer_verdict(const bm_trainer *t, const bm_score *s);

void bm_trainer_update(bm_trainer *t, bm_sgd *sgd, float rate);

/* What a worker starts from and leaves behind is part of the exchange, though
 * it comes in the middle of what counts as compute. */
void bm_trainer_note_exchange(bm_trainer *t, bm_span span);
BM_CHECKED bm_status bm_trainer_end_share(bm_trainer *t, int worker,
                                          double samples, bool *good);

/* Collective. All ranks come here, with what became of each; any failure is
 * everybody's. */
BM_CHECKED bm_status bm_trainer_meet(bm_trainer *t, bm_status own,
                                     double since);

/* Collective. Every worker's row reaches all ranks. */
BM_CHECKED bm_status bm_trainer_share_table(bm_trainer *t);

/* The failure that there is nothing to go on from. */
BM_CHECKED bm_status bm_trainer_diverged(const bm_trainer *t);

/* Collective. A block of shares (train_block.c). */
BM_CHECKED bm_status bm_trainer_shares(bm_trainer *t, int64_t steps,
                                       float rate);

/* Collective. The phase that the run is in: bm_trainer_seek changes it. */
BM_CHECKED bm_status bm_trainer_open_phase(bm_trainer *t);
void bm_trainer_close_phase(bm_trainer *t);

#endif
