/*
 * ema.h - an exponential moving average of the global model, which no worker
 * ever starts from (Tian et al. 2017, arXiv 1703.01024):
 *
 *     ema <- keep ema + (1 - keep) W        whenever a block has changed W
 *
 * Every rank keeps the average of those slices of W that it keeps.
 */
#ifndef BM_BMUF_TRAINER_EMA_H
#define BM_BMUF_TRAINER_EMA_H

#include "bmuf/strategy.h"

typedef struct bm_ema bm_ema;

/* Starts with the global model; keep is in [0, 1]. The strategy is borrowed and
 * must outlive it. Fails with BM_ERR_MEMORY, or as the backend does. */
BM_CHECKED bm_status bm_ema_open(bm_ema **out, bm_strategy *s, double keep);

/* Waits for an exchange that is under way. e may be NULL. */
void bm_ema_close(bm_ema *e);

/* Adds W. In this and the next two, no exchange may be under way: see
 * bm_strategy_settle. */
void bm_ema_update(bm_ema *e);

/* Collective. x, n floats on the backend, <- the average. Fails as the exchange
 * does. */
BM_CHECKED bm_status bm_ema_get(bm_ema *e, float *x);

/* The average <- x, n floats on the backend, equal on all ranks. Fails as the
 * backend does. */
BM_CHECKED bm_status bm_ema_set(bm_ema *e, const float *x);

/* "ema" for checkpoints, in as many slices as the strategy's "model" has;
 * returns how many. */
size_t bm_ema_state(bm_ema *e, bm_state *out);

/* Adds what the average keeps. */
void bm_ema_footprint(const bm_strategy_ops *ops, bm_hosting on,
                      bm_footprint *sum);

#endif
