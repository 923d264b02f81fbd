/*
 * fragments.h - blocks that exchange only a fragment of the model, or exchange
 * it while the next block trains: [block] fragments and overlap. Workers then
 * continue with models of their own where a block ends.
 *
 * The vector is cut at layers into F fragments, each with a strategy of its
 * own: an exchange, W, Delta and start. Block t, from 0 on, ends with the
 * exchange of fragment f = t mod F. With w_k worker k's copy of it at that
 * time, and n_k(f) the samples it has seen since the last exchange of f:
 *
 *     G(f)     = sum n_k(f) (w_k - start(f)) / sum n_k(f)
 *     start(f) <- as the strategy says, from G(f)
 *     w_k      <- start(f)
 *
 * The rest of w_k does not change. With F = 1 this is the strategy itself.
 * Evaluated and saved is W of all fragments (Streaming DiLoCo, Douillard et al.
 * 2025, staggers fragments in this way).
 *
 * overlap, a late exchange: it runs while block t+1 trains, and its result is
 * applied at the end of that block, whenever it was ready. With b_k = w_k at
 * the end of block t,
 *
 *     block t + 1      starts with b_k and ends with x_k
 *     w_k          <-  start(f) + (x_k - b_k)
 *
 * Then the exchange of fragment (t + 1) mod F starts, with G that excludes the
 * updates that start(f) already contains.
 *
 * On a device the late exchange has a backend of its own beside that of the
 * training (bm_backend_open_beside), with its own queue and, of several ranks,
 * its own device communicator.
 *
 * A worker that is left out gets start(f) of all fragments; what it had learned
 * since their exchanges is discarded.
 */
#ifndef BM_BMUF_STRATEGIES_FRAGMENTS_H
#define BM_BMUF_STRATEGIES_FRAGMENTS_H

#include "bmuf/block_settings.h"
#include "bmuf/strategy.h"

/* begin[0 .. n]: where each of n fragments begins, and where the last one ends:
 * at the layer nearest to an even cut. BM_ERR_CONFIG: there are too few layers;
 * or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_fragments_cut(const bm_params *params, long n,
                                      size_t *begin);

/* Collective. As bm_strategy_open, of a strategy per block: in fragments, as
 * [block] says. Also fails as bm_fragments_cut does and, with overlap, with
 * BM_ERR_UNSUPPORTED if MPI has no MPI_THREAD_MULTIPLE, or as
 * bm_backend_open_beside. */
BM_CHECKED bm_status bm_fragments_open(bm_strategy **out, const char *name,
                                       const bm_config *config, bm_comm *comm,
                                       bm_params *params);

/* Adds the models that workers keep, and what a late exchange of a device keeps
 * beside the training. */
void bm_fragments_footprint(const bm_block_settings *block, const bm_job *job,
                            bm_hosting on, bm_footprint *sum);

#endif
