#include "bmuf/async/realtime.h"

#include "bmuf/async/server.h"
#include "bmuf/async/server_shards.h"
#include "comm/agreed_alloc.h"
#include "core/finite.h"
#include "core/trace/span.h"
#include "sgd/layer_rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bm_realtime {
    bm_comm *comm;         /* borrowed, as the next three */
    bm_strategy *strategy; /* params->w: scratch while a block runs */
    bm_local_state *local_state;
    bm_async_workers *async_workers;
    bm_comm *to_server; /* a twin of comm for messages */
    bm_server_shards shards;
    int own;           /* the shard served here; -1: none */
    bm_server *server; /* its server; NULL: none */
    bool needs_norm;   /* servers clip, and have a shard each */
    int worker;        /* this rank's */
    float *host;       /* [n]: buffer of a message */
    double *known;     /* [shards.n]: versions of W in the worker's model */
    double since;      /* steps since the last fetch */
    double *counters;  /* [COUNTERS shards.n]: for sums over ranks */
    double *means;     /* [shards.n]: service.shard_mean */
    float rate;
};

/* Of a shard, in a block. */
enum { PUSHES, UPDATES, PUSHED, PULLED, STALENESS, MOST, COUNTERS };

bm_status bm_realtime_check(int workers, long shards, int ranks)
{
    if (workers != ranks)
        return BM_FAIL(
            BM_ERR_CONFIG,
            "clock.kind = real needs a rank for each worker, but there "
            "%s %d for job.workers = %d; start as many ranks as "
            "workers, or set clock.kind = virtual",
            ranks == 1 ? "is" : "are", ranks, workers);
    if (shards > ranks)
        return BM_FAIL(BM_ERR_CONFIG,
                       "clock.shards = %ld, but a rank serves one shard at "
                       "most, and there are %d; set at most %d, or 0",
                       shards, ranks, ranks);
    return BM_OK;
}

static bm_status open_lists(bm_realtime *r, const bm_sgd_settings *set,
                            long shards)
{
    const bm_params *p = r->strategy->params;
    const bm_server_policy *policy = &r->strategy->traits.server_policy;
    int ranks = bm_comm_size(r->comm);
    size_t n = 0;

    BM_TRY(bm_server_shards_cut(
        &r->shards, p->n, bm_server_shards_count(shards, policy, set, ranks),
        ranks));
    n = (size_t)r->shards.n;
    r->own = bm_server_shards_at(&r->shards, r->worker);
    r->needs_norm = n > 1 && set->clip > 0 && policy->push == BM_GRADIENT;
    r->host = calloc(p->n + 1, sizeof *r->host);
    r->known = calloc(n, sizeof *r->known);
    r->counters = calloc(COUNTERS * n, sizeof *r->counters);
    r->means = calloc(n, sizeof *r->means);
    if (r->host == NULL || r->known == NULL || r->counters == NULL ||
        r->means == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a vector");
    return BM_OK;
}

/* On a rank that serves a shard: its server. */
static bm_status open_server(bm_realtime *r, const bm_config *config)
{
    if (r->own < 0)
        return BM_OK;
    return bm_server_open(
        &r->server, config, r->to_server, r->strategy->params,
        r->shards.begin[r->own], bm_server_shards_size(&r->shards, r->own),
        &r->strategy->traits.server_policy, (int)r->strategy->job.workers);
}

bm_status bm_realtime_open(bm_realtime **out, const bm_config *config,
                           bm_comm *comm, bm_strategy *strategy,
                           bm_local_state *local_state,
                           bm_async_workers *async_workers, long shards)
{
    void *memory = NULL;
    bm_realtime *r = NULL;
    bm_sgd_settings set = {0};
    bm_status status = BM_OK;

    status = bm_realtime_check((int)strategy->job.workers, shards,
                               bm_comm_size(comm));
    if (status == BM_OK)
        status = bm_config_fill(config, "sgd", bm_sgd_options, &set);
    BM_TRY(bm_comm_agree(comm, status));
    BM_TRY(bm_agreed_alloc(comm, sizeof *r, &memory));
    r = memory;
    r->comm = comm;
    r->strategy = strategy;
    r->local_state = local_state;
    r->async_workers = async_workers;
    r->worker = bm_comm_rank(comm);
    BM_TRY_DONE(bm_comm_twin(&r->to_server, comm));
    status = open_lists(r, &set, shards);
    if (status == BM_OK)
        status = open_server(r, config);
    BM_TRY_DONE(bm_comm_agree(comm, status));
    *out = r;
    r = NULL;
done:
    bm_realtime_close(r);
    return status;
}

void bm_realtime_close(bm_realtime *r)
{
    if (r == NULL)
        return;
    bm_server_close(r->server);
    bm_comm_close(r->to_server);
    bm_server_shards_free(&r->shards);
    free(r->host);
    free(r->known);
    free(r->counters);
    free(r->means);
    free(r);
}

void bm_realtime_footprint(long shards, const bm_server_policy *policy,
                           const bm_sgd_settings *set, bm_hosting on,
                           bm_footprint *sum)
{
    int n = bm_server_shards_count(shards, policy, set, (int)on.ranks);
    double state = 0, server = 3 + bm_sgd_memory(set, &state); /* W, g, in */

    sum->memory += 1 + server / n;
}

/* ---- a worker ------------------------------------------------------------ */

/* Sends a message of this kind to a shard, with its slice of `host` if the kind
 * has a vector. An answer with W replaces the slice. */
static bm_status ask(bm_realtime *r, int shard, int kind, double samples,
                     double norm)
{
    int rank = bm_server_shards_rank(&r->shards, shard);
    size_t n = bm_server_shards_size(&r->shards, shard);
    float *slice = r->host + r->shards.begin[shard];
    bool pushes = kind == BM_PUSH || kind == BM_SWAP;
    bool fetches = kind == BM_PULL || kind == BM_SWAP;
    bool elastic = r->strategy->traits.server_policy.push == BM_ELASTIC;
    bm_message m = {.word = {[BM_KIND] = kind,
                             [BM_SAMPLES] = samples,
                             [BM_KNOWN] = r->known[shard],
                             [BM_NORM] = norm}};

    BM_TRY(bm_comm_send_message(r->to_server, rank, BM_TO_SERVER, &m, slice,
                                pushes ? n : 0));
    if (kind == BM_DONE)
        return BM_OK;
    BM_TRY(bm_comm_receive_message(r->to_server, BM_TO_WORKER, &m));
    BM_ASSERT(m.from == rank);
    if (fetches)
        BM_TRY(bm_comm_receive_message_floats(r->to_server, rank, BM_TO_WORKER,
                                              slice, n));
    if (pushes)
        r->known[shard] = fetches || elastic ? m.word[BM_VERSION]
                                             : r->known[shard] + (samples > 0);
    return BM_OK;
}

/* The same with one shard after the other, so that no two servers wait for one
 * worker; workers begin with different ones. */
static bm_status ask_all(bm_realtime *r, int kind, double samples, double norm)
{
    int n = r->shards.n;
    int first = (int)((long)n * r->worker / r->shards.ranks);
    bm_span span = bm_span_begin("exchange");
    bm_status status = BM_OK;

    for (int i = 0; i < n && status == BM_OK; i++)
        status = ask(r, (first + i) % n, kind, samples, norm);
    (void)bm_span_end(span);
    return status;
}

/* x <- the server's model, as the shards have answered. */
static bm_status take_model(bm_realtime *r, float *x)
{
    const bm_params *p = r->strategy->params;

    bm_put(p->be, x, r->host, p->n);
    return bm_sync(p->be);
}

/* Pulls W; push <- alpha (w - W). */
static bm_status pull_elastic(bm_realtime *r)
{
    BM_TRY(ask_all(r, BM_PULL, 0, 0));
    BM_TRY(take_model(r, r->strategy->params->w));
    bm_async_workers_elastic_push(r->async_workers, r->worker);
    return BM_OK;
}

/* host <- the vector to be pushed; *norm, if servers need it: without
 * statistics and frozen weights. */
static bm_status get_push(bm_realtime *r, bool *good, double *norm)
{
    bm_params *p = r->strategy->params;
    float *x = bm_async_workers_of(r->async_workers, r->worker)->push;
    double sum = 0;

    bm_frozen_copy(p, &(bm_state){"", p->be, x, 0, p->n, 0}, NULL);
    bm_get(p->be, r->host, x, p->n);
    BM_TRY(bm_sync(p->be));
    *good = bm_all_finite(r->host, p->n);
    for (size_t i = 0; r->needs_norm && i < p->n_learned; i++)
        sum += (double)r->host[i] * r->host[i];
    *norm = sqrt(sum);
    return BM_OK;
}

/* Pushes and waits for the answers; fetches W if `wants`. */
static bm_status push(bm_realtime *r, bool wants)
{
    bm_push kind = r->strategy->traits.server_policy.push;
    bm_async_worker *own = bm_async_workers_of(r->async_workers, r->worker);
    bool good = false;
    double norm = 0;

    BM_TRY(get_push(r, &good, &norm));
    own->bad_steps += !good;
    BM_TRY(ask_all(r, wants ? BM_SWAP : BM_PUSH, good ? own->samples : 0,
                   good ? norm : 0));
    if (wants)
        BM_TRY(take_model(r, own->w));
    if (kind == BM_ELASTIC)
        bm_async_workers_elastic_move(r->async_workers, r->worker, good);
    r->since = wants ? 0 : r->since;
    return bm_sync(r->strategy->params->be);
}

/* Trains on a period and pushes the result, if it has any sample. `last`: the
 * share ends with it, and a fetch would be wasted. */
static bm_status run_period(bm_realtime *r, bm_period at, bool last)
{
    const bm_server_policy *policy = &r->strategy->traits.server_policy;
    bm_async_worker *own = bm_async_workers_of(r->async_workers, r->worker);
    bool due = false;

    r->since += (double)(at.to - at.from);
    due = policy->push != BM_ELASTIC && r->since >= (double)policy->fetch_every;
    BM_TRY(
        bm_async_workers_train(r->async_workers, r->worker, at, r->rate, !due));
    if (own->samples == 0)
        return BM_OK;
    if (policy->push == BM_ELASTIC)
        BM_TRY(pull_elastic(r));
    return push(r, due && !last);
}

/* Sends BM_DONE after an error too, so that the server ends. */
static bm_status train_share(bm_realtime *r, int64_t steps)
{
    int64_t every = r->strategy->traits.server_policy.push_every;
    bm_status status = BM_OK;

    r->since = 0;
    memset(r->known, 0, (size_t)r->shards.n * sizeof *r->known);
    for (int64_t i = 0; i < steps && status == BM_OK; i += every) {
        bm_period at = {i, i + every < steps ? i + every : steps};

        status = run_period(r, at, at.to == steps);
    }
    bm_keep_first(&status, ask_all(r, BM_DONE, 0, 0));
    return status;
}

/* ---- a block ------------------------------------------------------------- */

/* The update whose state the server continues; NULL: it only adds pushes. */
static bm_sgd *server_update(const bm_realtime *r)
{
    return r->strategy->traits.server_policy.push == BM_GRADIENT
               ? bm_local_state_of(r->local_state, r->worker)
               : NULL;
}

/* The server here, whose vectors are in host memory, gets its slices of W and of
 * the state of the update. */
static bm_status fill_server(bm_realtime *r)
{
    const bm_params *p = r->strategy->params;
    size_t begin = r->shards.begin[r->own];
    size_t count = bm_server_shards_size(&r->shards, r->own);
    bm_sgd *own = server_update(r), *theirs = bm_server_sgd(r->server);
    float *from[BM_SGD_VECTORS], *to[BM_SGD_VECTORS];
    double t = 0;

    bm_get(p->be, bm_server_params(r->server)->w, p->w + begin, count);
    if (own != NULL) {
        size_t n = bm_sgd_vectors(own, from);

        (void)bm_sgd_vectors(theirs, to);
        for (size_t i = 0; i < n; i++)
            bm_get(p->be, to[i], from[i] + begin, count);
        BM_TRY(bm_sgd_count(own, &t));
        bm_sgd_set_count(theirs, t);
    }
    return bm_sync(p->be);
}

/* Collective. Starts all servers, or none. */
static bm_status start_servers(bm_realtime *r, double *stale, size_t n_stale)
{
    bm_status status = BM_OK;
    bool runs = false;

    if (r->server != NULL) {
        status = fill_server(r);
        if (status == BM_OK)
            status = bm_server_start(r->server, r->rate, stale, n_stale);
        runs = status == BM_OK;
    }
    status = bm_comm_agree(r->comm, status);
    if (status != BM_OK && runs)
        bm_server_cancel(r->server);
    return status;
}

/* x <- a vector of which each server has its slice: `here`, or NULL. */
static bm_status gather(bm_realtime *r, const float *here, float *x)
{
    if (here != NULL)
        memcpy(r->host + r->shards.begin[r->own], here,
               bm_server_shards_size(&r->shards, r->own) * sizeof *here);
    for (int s = 0; s < r->shards.n; s++)
        bm_comm_broadcast(r->comm, r->host + r->shards.begin[s],
                          bm_server_shards_size(&r->shards, s),
                          bm_server_shards_rank(&r->shards, s));
    BM_TRY(bm_comm_wait(r->comm));
    return take_model(r, x);
}

/* All ranks get W and the state of its update from the servers. */
static bm_status gather_model(bm_realtime *r)
{
    bm_sgd *own = server_update(r);
    float *from[BM_SGD_VECTORS] = {0}, *to[BM_SGD_VECTORS];
    double t = 0;

    BM_TRY(gather(r, r->server != NULL ? bm_server_params(r->server)->w : NULL,
                  r->strategy->params->w));
    if (own == NULL)
        return BM_OK;
    if (r->server != NULL) {
        (void)bm_sgd_vectors(bm_server_sgd(r->server), from);
        BM_TRY(bm_sgd_count(bm_server_sgd(r->server), &t));
    }
    for (size_t i = 0; i < bm_sgd_vectors(own, to); i++)
        BM_TRY(gather(r, from[i], to[i]));
    BM_TRY(bm_comm_broadcast_bytes(r->comm, &t, sizeof t, 0));
    bm_sgd_set_count(own, t);
    return BM_OK;
}

/* All ranks get the counters of all servers; `own` has those of the server here.
 * All shards get the same pushes. */
static bm_status add_counters(bm_realtime *r, double *stale,
                              const bm_service *own, bm_service *sum)
{
    size_t n = (size_t)r->shards.n;

    memset(r->counters, 0, COUNTERS * n * sizeof *r->counters);
    if (r->own >= 0)
        memcpy(r->counters + (size_t)r->own * COUNTERS,
               (double[COUNTERS]){[PUSHES] = own->pushes,
                                  [UPDATES] = own->updates,
                                  [PUSHED] = own->pushed,
                                  [PULLED] = own->pulled,
                                  [STALENESS] = own->mean,
                                  [MOST] = own->most},
               COUNTERS * sizeof *r->counters);
    BM_TRY(bm_comm_sum(r->comm, r->counters, COUNTERS * n));
    BM_TRY(bm_comm_sum(r->comm, stale, sum->n_stale));
    *sum = (bm_service){.stale = stale,
                        .n_stale = sum->n_stale,
                        .pushes = r->counters[PUSHES],
                        .updates = r->counters[UPDATES],
                        .seconds = NAN,
                        .shards = r->shards.n,
                        .shard_mean = r->means};
    for (size_t k = 0; k < n; k++) {
        const double *of = r->counters + k * COUNTERS;

        sum->pushed += of[PUSHED];
        sum->pulled += of[PULLED];
        sum->mean += of[STALENESS] / (double)n;
        sum->most = fmax(sum->most, of[MOST]);
        r->means[k] = of[STALENESS] / of[PUSHES];
    }
    return BM_OK;
}

/* Waits until the server here, if there is one, has heard of all workers that
 * their shares are done. */
static bm_status join_server(bm_realtime *r, bm_service *own)
{
    bm_span span = bm_span_begin("wait");
    bm_status status = BM_OK;

    if (r->server != NULL)
        status = bm_server_join(r->server, own);
    (void)bm_span_end(span);
    return status;
}

bm_status bm_realtime_block(bm_realtime *r, int64_t steps, float rate,
                            double *stale, bm_service *service)
{
    bm_service own = {0};
    bm_status status = BM_OK;

    r->rate = rate;
    BM_TRY(start_servers(r, stale, service->n_stale));
    status = train_share(r, steps);
    bm_keep_first(&status, join_server(r, &own));
    bm_keep_first(&status, gather_model(r));
    bm_keep_first(&status, add_counters(r, stale, &own, service));
    return status;
}
