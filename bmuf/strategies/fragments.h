/*
 * fragments.h - workers that go on with models of their own where a block ends,
 * since not all of their model is exchanged there, or not yet: [block]
 * fragments and overlap.
 *
 * The vector is cut at layers into F fragments, each with a strategy of its
 * own: an exchange, W, Delta and start. Block t, from 0 on, ends with the
 * exchange of fragment f = t mod F. With w_k what worker k has of it then, and
 * n_k(f) what it has learned from since the last exchange of f:
 *
 *     G(f)     = sum n_k(f) (w_k - start(f)) / sum n_k(f)
 *     start(f) <- as the strategy says, from G(f)
 *     w_k      <- start(f)
 *
 * All else of w_k is as it was. With F = 1 this is the strategy itself. What is
 * evaluated and saved is W of all fragments (Streaming DiLoCo, Douillard et al.
 * 2025, staggers fragments in this way).
 *
 * overlap: the exchange goes on while block t+1 is learned from, and the worker
 * is corrected at its end. With b_k = w_k at the end of block t,
 *
 *     block t + 1      begins with b_k and ends with x_k
 *     w_k          <-  start(f) + (x_k - b_k)
 *
 * always there, whenever the exchange was over. Then fragment (t + 1) mod F
 * begins, with G in which all that start(f) holds is not again.
 *
 * A worker that is left out gets start(f) of all fragments, and what it had
 * learned since their exchanges is lost.
 */
#ifndef BM_BMUF_STRATEGIES_FRAGMENTS_H
#define BM_BMUF_STRATEGIES_FRAGMENTS_H

#include "bmuf/strategy.h"

/* Where each of n fragments begins, and where the last one ends: begin [n + 1].
 * At the layer nearest to its even place. BM_ERR_CONFIG: there are fewer. */
BM_CHECKED bm_status bm_fragments_cut(const bm_params *params, long n,
                                      size_t *begin);

/* Collective. As bm_strategy_open. */
BM_CHECKED bm_status bm_fragments_open(bm_strategy **out, const char *name,
                                       const bm_config *config, bm_comm *comm,
                                       bm_params *params);

#endif
