#include "bmuf/async/realtime.h"

#include "bmuf/async/server.h"

#include <math.h>
#include <stdlib.h>

struct bm_realtime {
    bm_comm *comm;         /* borrowed, as the next three */
    bm_strategy *strategy; /* params->w: scratch while a block runs */
    bm_local_state *local_state;
    bm_async_workers *async_workers;
    bm_comm *to_server; /* a twin of comm for messages */
    bm_server *server;  /* NULL except on rank 0 */
    int worker;         /* this rank's */
    float *host;        /* [n]: buffer of a message */
    double known;       /* version of W in the worker's model */
    double since;       /* mini-batches since the last fetch */
    float rate;
};

bm_status bm_realtime_check(int workers, int ranks)
{
    if (workers == ranks)
        return BM_OK;
    return BM_FAIL(BM_ERR_CONFIG,
                   "clock.kind = real needs a rank for each worker, but there "
                   "are %d ranks for job.workers = %d; start as many ranks as "
                   "workers, or set clock.kind = virtual",
                   ranks, workers);
}

bm_status bm_realtime_open(bm_realtime **out, const bm_config *config,
                           bm_comm *comm, bm_strategy *strategy,
                           bm_local_state *local_state,
                           bm_async_workers *async_workers)
{
    bm_realtime *r = NULL;
    int workers = (int)strategy->job.workers;
    bm_status status = BM_OK;

    BM_TRY(bm_realtime_check(workers, bm_comm_size(comm)));
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an asynchronous worker");
    r->comm = comm;
    r->strategy = strategy;
    r->local_state = local_state;
    r->async_workers = async_workers;
    r->worker = bm_comm_rank(comm);
    r->host = calloc(strategy->params->n + 1, sizeof *r->host);
    BM_TRY_DONE(bm_comm_twin(&r->to_server, comm));
    if (r->host == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a vector");
    else if (r->worker == 0)
        status =
            bm_server_open(&r->server, config, r->to_server, strategy->params,
                           &strategy->traits.server_policy, workers);
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
    free(r->host);
    free(r);
}

/* ---- a worker ------------------------------------------------------------ */

/* x <- the server's model, the floats of the answer just received. */
static bm_status receive_model(bm_realtime *r, float *x)
{
    const bm_params *p = r->strategy->params;

    BM_TRY(bm_comm_receive_message_floats(r->to_server, 0, BM_TO_WORKER,
                                          r->host, p->n));
    bm_put(p->be, x, r->host, p->n);
    return bm_sync(p->be);
}

/* Pulls W; push <- alpha (w - W). */
static bm_status pull_elastic(bm_realtime *r)
{
    bm_message m = {.word = {[BM_KIND] = BM_PULL}};

    BM_TRY(bm_comm_send_message(r->to_server, 0, BM_TO_SERVER, &m, NULL, 0));
    BM_TRY(bm_comm_receive_message(r->to_server, BM_TO_WORKER, &m));
    BM_TRY(receive_model(r, r->strategy->params->w));
    bm_async_workers_elastic_push(r->async_workers, r->worker);
    return BM_OK;
}

/* Pushes and waits for the answer; fetches W if `wants`. */
static bm_status push(bm_realtime *r, bool wants)
{
    const bm_params *p = r->strategy->params;
    bm_push kind = r->strategy->traits.server_policy.push;
    bm_async_worker *own = bm_async_workers_of(r->async_workers, r->worker);
    bm_message m = {.word = {[BM_KIND] = BM_PUSH,
                             [BM_SAMPLES] = own->samples,
                             [BM_KNOWN] = r->known,
                             [BM_WANTS] = wants}};
    bool accepted = false;

    bm_get(p->be, r->host, own->push, p->n);
    BM_TRY(bm_sync(p->be));
    BM_TRY(
        bm_comm_send_message(r->to_server, 0, BM_TO_SERVER, &m, r->host, p->n));
    BM_TRY(bm_comm_receive_message(r->to_server, BM_TO_WORKER, &m));
    accepted = m.word[BM_ACCEPTED] != 0;
    own->bad_steps += !accepted;
    if (wants)
        BM_TRY(receive_model(r, own->w));
    if (kind == BM_ELASTIC && accepted)
        bm_async_workers_elastic_move(r->async_workers, r->worker);
    r->known =
        wants || kind == BM_ELASTIC ? m.word[BM_VERSION] : r->known + accepted;
    r->since = wants ? 0 : r->since;
    return bm_sync(p->be);
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
    bm_message done = {.word = {[BM_KIND] = BM_DONE}};
    int64_t every = r->strategy->traits.server_policy.push_every;
    bm_status status = BM_OK;

    r->known = r->since = 0;
    for (int64_t i = 0; i < steps && status == BM_OK; i += every) {
        bm_period at = {i, i + every < steps ? i + every : steps};

        status = run_period(r, at, at.to == steps);
    }
    bm_keep_first(&status, bm_comm_send_message(r->to_server, 0, BM_TO_SERVER,
                                                &done, NULL, 0));
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

/* Rank 0: the server, whose vectors are in host memory, gets W and the state of
 * the update. */
static bm_status start_server(bm_realtime *r, double *stale, size_t n_stale)
{
    const bm_params *p = r->strategy->params;
    bm_sgd *own = server_update(r), *theirs = NULL;
    float *from[BM_SGD_VECTORS], *to[BM_SGD_VECTORS];
    double t = 0;

    if (r->server == NULL)
        return BM_OK;
    bm_get(p->be, bm_server_params(r->server)->w, p->w, p->n);
    if (own != NULL) {
        size_t n = bm_sgd_vectors(own, from);

        theirs = bm_server_sgd(r->server);
        (void)bm_sgd_vectors(theirs, to);
        for (size_t i = 0; i < n; i++)
            bm_get(p->be, to[i], from[i], p->n);
        BM_TRY(bm_sgd_count(own, &t));
        bm_sgd_set_count(theirs, t);
    }
    BM_TRY(bm_sync(p->be));
    return bm_server_start(r->server, r->rate, stale, n_stale);
}

/* x <- a vector of the server, which is NULL on other ranks than 0. */
static bm_status broadcast(bm_realtime *r, float *from_server, float *x)
{
    const bm_params *p = r->strategy->params;
    float *host = from_server != NULL ? from_server : r->host;

    bm_comm_broadcast(r->comm, host, p->n, 0);
    BM_TRY(bm_comm_wait(r->comm));
    bm_put(p->be, x, host, p->n);
    return bm_sync(p->be);
}

/* All ranks get the server's W and the state of its update. */
static bm_status broadcast_server(bm_realtime *r)
{
    bm_sgd *own = server_update(r);
    float *from[BM_SGD_VECTORS] = {0}, *to[BM_SGD_VECTORS];
    double t = 0;

    BM_TRY(broadcast(r,
                     r->server != NULL ? bm_server_params(r->server)->w : NULL,
                     r->strategy->params->w));
    if (own == NULL)
        return BM_OK;
    if (r->server != NULL) {
        (void)bm_sgd_vectors(bm_server_sgd(r->server), from);
        BM_TRY(bm_sgd_count(bm_server_sgd(r->server), &t));
    }
    for (size_t i = 0; i < bm_sgd_vectors(own, to); i++)
        BM_TRY(broadcast(r, from[i], to[i]));
    BM_TRY(bm_comm_broadcast_bytes(r->comm, &t, sizeof t, 0));
    bm_sgd_set_count(own, t);
    return BM_OK;
}

/* All ranks get rank 0's counters. */
static bm_status broadcast_service(bm_realtime *r, double *stale, bm_service *t)
{
    size_t n = t->n_stale;

    BM_TRY(bm_comm_broadcast_bytes(r->comm, t, sizeof *t, 0));
    BM_TRY(bm_comm_broadcast_bytes(r->comm, stale, n * sizeof *stale, 0));
    t->stale = stale;
    t->seconds = NAN;
    return BM_OK;
}

bm_status bm_realtime_block(bm_realtime *r, int64_t steps, float rate,
                            double *stale, bm_service *service)
{
    bm_status status = BM_OK;

    r->rate = rate;
    BM_TRY(bm_comm_agree(r->comm, start_server(r, stale, service->n_stale)));
    status = train_share(r, steps);
    if (r->server != NULL)
        bm_keep_first(&status, bm_server_join(r->server, service));
    bm_keep_first(&status, broadcast_server(r));
    bm_keep_first(&status, broadcast_service(r, stale, service));
    return status;
}
