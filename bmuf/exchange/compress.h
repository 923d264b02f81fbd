/*
 * compress.h - [compress]: block updates travel as codes, with error feedback
 * (comm/sum/coded_sum.h).
 *
 *     G_k      what worker k changed, and its residual r_k      -> owners
 *     start    what changed of it, and what was lost before     -> all ranks
 *
 * Workers start from what has arrived; the filter's W and Delta are exact.
 */
#ifndef BM_BMUF_EXCHANGE_COMPRESS_H
#define BM_BMUF_EXCHANGE_COMPRESS_H

#include "bmuf/exchange/exchange.h"

typedef struct bm_compress {
    const char *code; /* of BM_CODES, or none */
    double share;
} bm_compress;

extern const bm_option bm_compress_options[];

/* The code that [compress] selects; out->ops = NULL for "none". */
BM_CHECKED bm_status bm_compress_code(const bm_config *config, bm_code *out);

/* Collective. From here on updates of the exchange, which goes by the host,
 * travel as this code. */
BM_CHECKED bm_status bm_compress_open(bm_exchange *e, bm_comm *comm,
                                      const bm_params *params,
                                      const bm_job *job, bm_code code,
                                      bm_coded_way way);

/* What a checkpoint must hold of that; returns how many, at most
 * bm_compress_states, which is 0 where nothing is coded. */
size_t bm_compress_states(const bm_exchange *e);
size_t bm_compress_state(const bm_exchange *e, bm_state *out);

#endif
