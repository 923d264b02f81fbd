/* trainer_parts.h - the private struct of a trainer, for trainer.c,
 * train_block.c, train_audited.c and warmup.c alone. */
#ifndef BM_BMUF_TRAINER_TRAINER_PARTS_H
#define BM_BMUF_TRAINER_TRAINER_PARTS_H

#include "bmuf/async/events.h"
#include "bmuf/block_settings.h"
#include "bmuf/trainer/audit.h"
#include "bmuf/trainer/ema.h"
#include "bmuf/trainer/trainer.h"
#include "sgd/layer_rates.h"

/* Why a worker is left out. */
typedef enum bm_reason {
    BM_GOOD, /* it is not */
    BM_NOT_FINITE,
    BM_NO_LOSS,
    BM_DIVERGED
} bm_reason;

/* What all ranks get to know of a worker at the end of a block. Only doubles:
 * rows of workers on other ranks are zero, and the table is summed. */
typedef struct bm_row {
    bm_score score;
    bm_score first; /* of its first mini-batch, in the run's first block */
    double samples;
    double bad;       /* a bm_reason */
    double bad_steps; /* skipped */
    double steps;     /* updates made, if local_state needs them */
    double gradients; /* learned from, one a step */
    double batches;   /* learned from, several in a step */
} bm_row;

struct bm_trainer {
    bm_task task;
    const bm_config *config; /* borrowed */
    bm_comm *comm;           /* borrowed */
    bm_params *params;       /* borrowed */
    bm_train_settings set;
    bm_layer_rates layer_rates; /* of params, while the trainer is open */
    bm_block_settings block;    /* warmup, seconds, fragments, overlap */
    bm_position at;
    int64_t done; /* blocks of the run */

    int workers;
    int first, last;    /* hosted here: [first, last) */
    double reference;   /* mean loss of the block before; 0: none yet */
    double chance;      /* likewise, of equal logits; 0: not known */
    bm_row *table;      /* [workers] */
    size_t most_states; /* of the strategies of both phases */
    double compute_s, wait_s, exchange_s, update_s; /* of the block */
    bm_audit *audit;                                /* NULL: [job] audit = 0 */
    double audit_s;                                 /* of compute_s */
    bool warned;                                    /* of bad steps */

    /* of the phase: see warmup.c */
    bm_strategy *strategy;
    bm_local_state *local_state;
    bm_events *events; /* BM_EVENT; else NULL */
    bm_ema *ema;       /* NULL: [train] ema = 0 */
};

/* One worker's share, and whether its model counts; its time is over at `end`,
 * with [block] seconds. Leaves its model in params->w. */
BM_CHECKED bm_status bm_trainer_share(bm_trainer *t, int worker, int64_t steps,
                                      float rate, double end);

/* What asynchronous workers may use of the trainer's task, with the trainer as
 * `self`: gradient and steps. */
bm_task bm_trainer_task(bm_trainer *t);

/* A local update of params->w. */
void bm_trainer_update(bm_trainer *t, bm_sgd *sgd, float rate);

/* For whom and when the settings of a block are resolved. */
bm_run_point bm_trainer_run_point(const bm_trainer *t, bm_position at);

/* Whether this block is audited; collective: its shares, each computed twice.
 * Fails with BM_ERR_DEVICE if two results differ. */
bool bm_trainer_audited(const bm_trainer *t);
BM_CHECKED bm_status bm_trainer_train_twice(bm_trainer *t, int64_t steps,
                                            float rate);

/* Waits for an exchange that is under way; the average gets what it changed. */
void bm_trainer_settle(bm_trainer *t);

/* Collective. Opens the phase that t->done is in; bm_trainer_seek changes it.
 * Fails as bm_trainer_open does. */
BM_CHECKED bm_status bm_trainer_open_phase(bm_trainer *t);
void bm_trainer_close_phase(bm_trainer *t);

#endif
