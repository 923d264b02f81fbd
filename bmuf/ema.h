/*
 * ema.h - an exponential moving average of the global model, which no worker
 * ever starts from (Tian et al. 2017, arXiv 1703.01024):
 *
 *     ema <- share ema + (1 - share) W      at each block's end
 *
 * Every rank keeps what it keeps of W.
 */
#ifndef BM_BMUF_EMA_H
#define BM_BMUF_EMA_H

#include "bmuf/strategy.h"

typedef struct bm_ema bm_ema;

/* Begins with the global model. The strategy is borrowed. */
BM_CHECKED bm_status bm_ema_open(bm_ema **out, bm_strategy *s, double share);
void bm_ema_close(bm_ema *e);

void bm_ema_update(bm_ema *e);

/* Collective. Puts the average into x, n floats on the backend. */
BM_CHECKED bm_status bm_ema_get(bm_ema *e, float *x);

/* Collective. The average becomes x, n floats on the backend. */
BM_CHECKED bm_status bm_ema_set(bm_ema *e, const float *x);

/* "ema", for checkpoints. */
bm_state bm_ema_state(bm_ema *e);

#endif
