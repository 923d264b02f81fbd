/*
 * trainer.h - the loop: blocks of mini-batches, exchanges between them.
 *
 * The trainer knows a model and its data only as a task (task.h): something
 * that moves from block to block and computes gradients. The caller does what
 * happens between blocks:
 *
 *     BM_TRY(bm_trainer_open(&t, config, comm, params, &task));
 *     while (!ended) {
 *         BM_TRY(bm_trainer_block(t, rate, &report));
 *         journal the block; now and then bm_trainer_global, evaluate, adapt
 *         the rate, write a checkpoint of bm_trainer_state and _position
 *     }
 */
#ifndef BM_BMUF_TRAINER_TRAINER_H
#define BM_BMUF_TRAINER_TRAINER_H

#include "bmuf/local_state.h"
#include "bmuf/strategy.h"
#include "bmuf/trainer/task.h"

/* [train]: the trainer uses strategy, diverged and ema, its caller the rest. */
typedef struct bm_train_settings {
    const char *strategy;
    long epochs;           /* 0: chosen from the data */
    double rate;           /* at the start; of the mean gradient */
    double diverged;       /* see bm_trainer_block; 0: never */
    long checkpoint_every; /* blocks; 0: at the end only */
    long keep;             /* checkpoints */
    long keep_every;       /* epochs; 0: none is kept beyond the newest */
    bool keep_best;        /* that of the best epoch, too */
    const char *checkpoint_copies; /* folders, separated by blanks */
    double ema; /* fraction of the average each block keeps; 0: no average */
    const char *init; /* a model or run whose layers are taken; "": none */
    const char *from; /* a run that is continued as another one, RUN[@EPOCH];
                         "": none */
    double label_smoothing;     /* see bm_ctc and bm_cross_entropy */
    const char *freeze, *rates; /* of layers, see sgd/layer_rates.h */
} bm_train_settings;

extern const bm_option bm_train_options[];

typedef struct bm_trainer bm_trainer;

/* The result of a block. Sums over all workers have the same bits for any
 * number of ranks; seconds are this rank's and add up to the whole block. */
typedef struct bm_block_report {
    bm_position at; /* the block */
    bm_score score; /* of the workers that were not left out */
    bm_update update;
    bool filtered;    /* update went through this filter: */
    bm_filter filter; /* eta and zeta of the block */
    double samples;   /* that took part */
    double bad_steps; /* skipped: their gradient was not finite; a step may be
                         several mini-batches */
    int left_out;     /* workers left out of the mean */
    double compute_s, wait_s, exchange_s; /* reading data counts as compute */
    double update_s;    /* of compute_s; on a device its own time */
    int audited;        /* workers whose shares were computed twice */
    double audit_s;     /* of compute_s; its phases include it */
    bm_traffic traffic; /* of the rank that sent most */
    const bm_service
        *service; /* BM_EVENT: borrowed until the next block; else NULL */
} bm_block_report;

/*
 * Collective. Reads [job], [train], [block], [sgd] and the strategy's section;
 * training starts before the first block with params->w, equal on all ranks.
 * The config, comm and params are borrowed and must outlive the trainer, and so
 * must what the task points to. Fails with BM_ERR_CONFIG if settings conflict
 * or cannot be had here, of both phases (warmup.c), or BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_trainer_open(bm_trainer **out, const bm_config *config,
                                     bm_comm *comm, bm_params *params,
                                     const bm_task *task);

/* t may be NULL. */
void bm_trainer_close(bm_trainer *t);

/*
 * Collective. Trains on the block at the trainer's position and moves on; after
 * the last block of an epoch it trains on the first block of the next one.
 *
 * A worker is left out of the mean, with a warning that names it, if its model
 * has NaN or infinite weights, if every loss it scored was NaN or infinite, or
 * if its mean loss has risen, over that of all workers in the block before, by
 * more than `diverged` times the loss of equal logits, which an untrained
 * network has.
 *
 * A block without samples, as the loss can use none of its sequences, changes
 * nothing, but that easgd and [block] fragments exchange what workers learned
 * in blocks before; it is no failure.
 *
 * Fails with BM_ERR_NUMERIC if all workers are left out or, per step or event,
 * if that holds for all workers together. Per block the model is then that of
 * the block's start, and so is all other state, except the models that workers
 * keep under [block] fragments and overlap. Fails with BM_ERR_FORMAT if there
 * are no data, and as the task, the exchange or the backend do. If a rank
 * fails, all ranks fail.
 */
BM_CHECKED bm_status bm_trainer_block(bm_trainer *t, double rate,
                                      bm_block_report *report);

/* The next block; if the epoch has no such block, training goes to the next
 * epoch. */
bm_position bm_trainer_position(const bm_trainer *t);

/* Mini-batches that a worker, of any rank, learned from in the last block: only
 * some of its share, if [block] seconds ended it. */
int64_t bm_trainer_batches(const bm_trainer *t, int worker);

/* As bm_strategy_transport. */
const char *bm_trainer_transport(const bm_trainer *t);

/* Collective, before a checkpoint. Per step and event, where each rank makes the
 * updates of the model itself: as bm_same_model; per block ranks get the model
 * from each other, and nothing is compared. */
BM_CHECKED bm_status bm_trainer_compare(const bm_trainer *t);

/* Collective. As bm_strategy_global. */
BM_CHECKED bm_status bm_trainer_global(bm_trainer *t, float *x);

/* Collective. x, n floats on the backend, <- the average of global models, see
 * ema.h; only with [train] ema. Fails as the exchange does. */
bool bm_trainer_has_ema(const bm_trainer *t);
BM_CHECKED bm_status bm_trainer_ema(bm_trainer *t, float *x);

/* Collective. Continues the run after `blocks` blocks, which decide what its
 * state is. For a restart: call it before bm_trainer_state, and fill the
 * vectors after. Fails as bm_trainer_open does. */
BM_CHECKED bm_status bm_trainer_seek(bm_trainer *t, int64_t blocks);

/*
 * All vectors that training restarts from, at most bm_trainer_states of them;
 * returns how many. `room`: of out, at least that. A run that fills them from a
 * checkpoint and calls bm_trainer_resume ends with the bits of a run that was
 * never stopped, on any number of ranks.
 */
size_t bm_trainer_states(const bm_trainer *t);
size_t bm_trainer_state(bm_trainer *t, bm_state *out, size_t room);

/* The numbers that training restarts from, besides. */
typedef struct bm_restart_numbers {
    double loss;   /* mean of the last block, see `diverged`; 0: none yet */
    double chance; /* likewise, of equal logits; 0: not known */
    double rate;   /* of the last block; 0: none yet */
    double rho;    /* see local_state.h */
} bm_restart_numbers;
bm_restart_numbers bm_trainer_numbers(const bm_trainer *t);

/* Collective, after bm_trainer_seek. The states were filled from a checkpoint.
 * Fails as the exchange or the backend does. */
BM_CHECKED bm_status bm_trainer_resume(bm_trainer *t, bm_position at,
                                       bm_restart_numbers restart);

/*
 * What a trainer with these settings would keep, without opening it: see
 * bm_footprint. `config` must have passed bm_config_check. Fails with
 * BM_ERR_CONFIG for an invalid setting.
 */
BM_CHECKED bm_status bm_trainer_footprint(const bm_config *config, int ranks,
                                          bm_footprint *out);

#endif
