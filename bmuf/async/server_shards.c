#include "bmuf/async/server_shards.h"

#include "comm/slices.h"
#include "sgd/update.h"

#include <math.h>
#include <stdlib.h>

const char *bm_server_shards_whole(const bm_server_policy *policy,
                                   const bm_sgd_settings *sgd)
{
    if (policy->group > 1)
        return "workers wait for groups of pushes, which in several shards "
               "would be different groups that wait for each other";
    return policy->push == BM_GRADIENT ? bm_update_of(sgd)->whole : NULL;
}

int bm_server_shards_count(long wanted, const bm_server_policy *policy,
                           const bm_sgd_settings *sgd, int ranks)
{
    if (bm_server_shards_whole(policy, sgd) != NULL)
        return 1;
    return wanted == 0 ? ranks : (int)wanted;
}

bm_status bm_server_shards_cut(bm_server_shards *out, size_t n, int shards,
                               int ranks)
{
    BM_ASSERT(shards >= 1 && shards <= ranks);
    *out = (bm_server_shards){.n = shards, .ranks = ranks};
    out->begin = calloc((size_t)shards + 1, sizeof *out->begin);
    if (out->begin == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d shards", shards);
    return bm_slices_cut(n, shards, "sharded", out->begin);
}

void bm_server_shards_free(bm_server_shards *s)
{
    free(s->begin);
    *s = (bm_server_shards){0};
}

int bm_server_shards_rank(const bm_server_shards *s, int shard)
{
    return (int)((long)s->ranks * shard / s->n);
}

int bm_server_shards_at(const bm_server_shards *s, int rank)
{
    for (int k = 0; k < s->n; k++)
        if (bm_server_shards_rank(s, k) == rank)
            return k;
    return -1;
}

size_t bm_server_shards_size(const bm_server_shards *s, int shard)
{
    return shard < 0 ? 0 : s->begin[shard + 1] - s->begin[shard];
}

/* A rank's worker pushes what other ranks serve; its shard answers the other
 * workers. */
double bm_server_shards_busiest(const bm_server_shards *s, double pushes)
{
    double most = 0, whole = (double)s->begin[s->n];

    for (int r = 0; r < s->ranks; r++) {
        double own =
            (double)bm_server_shards_size(s, bm_server_shards_at(s, r));

        most = fmax(most, pushes * (whole - own) + (s->ranks - 1) * own);
    }
    return most;
}
