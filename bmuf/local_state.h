/*
 * local_state.h - what the workers' local updates remember, and what becomes of
 * it where a block ends: [sgd] local_state.
 *
 * keep, reset and average need no words. extrapolate (BMUF-Adam: Chen, Ding and
 * Huo, ICASSP 2020, as PIKA's BmufAdamTrainer computes it) is the mean, mbar,
 * carried on as far as the filter carries the model: with m0 what all workers
 * began the block with, tau the mean of the updates they made in it and eta
 * block momentum,
 *
 *     rho <- eta rho + tau            tau / (1 - eta) in the end
 *     g    = (mbar - beta^tau m0) / (1 - beta^tau)     the block's mean
 * gradient m    = beta^(eta rho) mbar + (1 - beta^(eta rho)) g t   <- t + tau +
 * eta rho
 *
 * for m with beta1 and, never below 0, for v with beta2.
 */
#ifndef BM_BMUF_LOCAL_STATE_H
#define BM_BMUF_LOCAL_STATE_H

#include "bmuf/strategy.h"
#include "sgd/sgd.h"

typedef struct bm_local_state bm_local_state;

/* Reads [sgd]. The strategy is borrowed; workers first .. last - 1 are hosted
 * here. */
BM_CHECKED bm_status bm_local_state_open(bm_local_state **out,
                                         const bm_config *config,
                                         bm_strategy *strategy, int first,
                                         int last);
void bm_local_state_close(bm_local_state *m);

/* The update of a worker hosted here, as it is; or as its share begins. */
bm_sgd *bm_local_state_of(bm_local_state *m, int worker);
bm_sgd *bm_local_state_begin(bm_local_state *m, int worker);

/* Its share has ended, and counts so much in a mean; `astray` if it learned
 * nothing that can be used. *steps: updates made, if anybody wants to know. */
BM_CHECKED bm_status bm_local_state_end(bm_local_state *m, int worker,
                                        double weight, bool astray,
                                        double *steps);

/* Collective, after the strategy's exchange. tau as above, the same on all
 * ranks. */
BM_CHECKED bm_status bm_local_state_exchange(bm_local_state *m, double tau);

/* All workers go on with what the first of another phase's remembers. */
BM_CHECKED bm_status bm_local_state_take(bm_local_state *m,
                                         const bm_local_state *from);

/* All that training goes on from, at most bm_local_state_states(), and rho; the
 * states were filled from a checkpoint. */
size_t bm_local_state_states(const bm_local_state *m);
size_t bm_local_state_state(bm_local_state *m, bm_state *out);
double bm_local_state_rho(const bm_local_state *m);
BM_CHECKED bm_status bm_local_state_resume(bm_local_state *m, double rho);

#endif
