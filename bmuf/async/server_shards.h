/*
 * server_shards.h - in real time the server's model is cut into shards, slices
 * that ranks serve independently of each other (server.h). Each worker pushes to
 * all of them and fetches from all. Shards are spread over the ranks, so that
 * with fewer shards than ranks they are on different hosts where possible.
 */
#ifndef BM_BMUF_ASYNC_SERVER_SHARDS_H
#define BM_BMUF_ASYNC_SERVER_SHARDS_H

#include "bmuf/async/server_policy.h"
#include "sgd/sgd.h"

typedef struct bm_server_shards {
    int n, ranks;
    size_t *begin; /* [n + 1]: shard s is [begin[s], begin[s + 1]) */
} bm_server_shards;

/* Why these settings need one server for the whole model, as the end of a
 * sentence; NULL: they do not. Static. */
const char *bm_server_shards_whole(const bm_server_policy *policy,
                                   const bm_sgd_settings *sgd);

/* The number of shards that [clock] shards = `wanted` means on `ranks` ranks. */
int bm_server_shards_count(long wanted, const bm_server_policy *policy,
                           const bm_sgd_settings *sgd, int ranks);

/* Cuts n weights into `shards`, at most one for each rank; a shard may be empty.
 * Free with bm_server_shards_free. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_server_shards_cut(bm_server_shards *out, size_t n,
                                          int shards, int ranks);
void bm_server_shards_free(bm_server_shards *s);

/* The rank that serves a shard; the shard that a rank serves, or -1. */
int bm_server_shards_rank(const bm_server_shards *s, int shard);
int bm_server_shards_at(const bm_server_shards *s, int rank);

/* Its weights. */
size_t bm_server_shards_size(const bm_server_shards *s, int shard);

/* The largest number of weights that a rank sends while each worker pushes
 * `pushes` times and fetches once. */
double bm_server_shards_busiest(const bm_server_shards *s, double pushes);

#endif
