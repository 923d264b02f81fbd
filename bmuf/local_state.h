/*
 * local_state.h - the state of the workers' local updates (momentum, Adam's
 * moments), and what becomes of it where a block ends: [sgd] local_state.
 *
 *     reset         zero
 *     keep          each worker continues with its own
 *     average       all continue with the mean of the workers'
 *     extrapolate   the mean, carried on as far as the filter moves the model
 *
 * extrapolate is BMUF-Adam (Chen, Ding and Huo, ICASSP 2020) as PIKA's
 * BmufAdamTrainer computes it. With mbar the workers' mean at the block's end,
 * m0 what all of them began the block with, tau the mean number of updates
 * they made in it, eta block momentum, and g the block's mean gradient,
 *
 *     rho <- eta rho + tau            (tau / (1 - eta) in the end)
 *     g    = (mbar - beta^tau m0) / (1 - beta^tau)
 *     m    = beta^(eta rho) mbar + (1 - beta^(eta rho)) g
 *     t   <- t + tau + eta rho       (at most 2^23: a float counts to 2^24)
 *
 * for m with beta1 and, never below 0, for v with beta2.
 */
#ifndef BM_BMUF_LOCAL_STATE_H
#define BM_BMUF_LOCAL_STATE_H

#include "bmuf/strategy.h"
#include "sgd/sgd.h"

typedef struct bm_local_state bm_local_state;

/*
 * Reads [sgd]. The strategy is borrowed and must outlive it; workers first ..
 * last - 1 are hosted here. Fails with BM_ERR_CONFIG if the strategy does not
 * allow [sgd] local_state, or BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_local_state_open(bm_local_state **out,
                                         const bm_config *config,
                                         bm_strategy *strategy, int first,
                                         int last);
/* m may be NULL. */
void bm_local_state_close(bm_local_state *m);

/* The update of a worker hosted here, borrowed. _begin is called when its share
 * begins, and resets the state with sgd.local_state = reset. All workers have
 * the same one if the strategy exchanges at every step or workers push
 * gradients. */
bm_sgd *bm_local_state_of(bm_local_state *m, int worker);
bm_sgd *bm_local_state_begin(bm_local_state *m, int worker);

/* The worker's share has ended and has this weight in means; left_out: what it
 * learned is discarded. *steps <- updates made, where `average` and
 * `extrapolate` need them, else unchanged. Fails as the backend does. */
BM_CHECKED bm_status bm_local_state_end(bm_local_state *m, int worker,
                                        double weight, bool left_out,
                                        double *steps);

/* Collective, after the strategy's exchange. tau as above, equal on all ranks.
 * Fails as the exchange or the backend does. */
BM_CHECKED bm_status bm_local_state_exchange(bm_local_state *m, double tau);

/* All workers continue with the state of the first worker of `from`, which
 * belongs to the phase before. Fails as the backend does. */
BM_CHECKED bm_status bm_local_state_take(bm_local_state *m,
                                         const bm_local_state *from);

/* All that training restarts from: vectors, at most BM_SGD_STATES for each
 * worker hosted here, and rho. bm_local_state_resume: they were filled from a
 * checkpoint; fails as the backend does. */
size_t bm_local_state_state(bm_local_state *m, bm_state *out);
double bm_local_state_rho(const bm_local_state *m);
BM_CHECKED bm_status bm_local_state_resume(bm_local_state *m, double rho);

/* Adds what these settings make local updates keep. */
void bm_local_state_footprint(const bm_strategy_ops *ops,
                              const bm_traits *traits,
                              const bm_sgd_settings *set, bm_hosting on,
                              bm_footprint *sum);

#endif
