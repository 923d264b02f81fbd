#include "bmuf/async/realtime.h"

#include "bmuf/async/server.h"

#include <math.h>
#include <stdlib.h>

struct bm_realtime {
    bm_comm *comm;         /* borrowed, as the next three */
    bm_strategy *strategy; /* its params->w: room for what this rank needs */
    bm_local_state *local_state;
    bm_async_workers *async_workers;
    bm_comm *mail;
    bm_server *server; /* rank 0's */
    int worker;        /* this rank's */
    float *host;       /* [n]: a vector on its way */
    double known;      /* updates of W that are in the worker's model */
    double met;        /* mini-batches since it had W */
    float rate;
};

bm_status bm_realtime_open(bm_realtime **out, const bm_config *config,
                           bm_comm *comm, bm_strategy *strategy,
                           bm_local_state *local_state,
                           bm_async_workers *async_workers)
{
    bm_realtime *r = NULL;
    int workers = (int)strategy->job.workers;
    bm_status status = BM_OK;

    if (workers != bm_comm_size(comm))
        return BM_FAIL(BM_ERR_CONFIG,
                       "clock.kind = real has a rank for each worker, and here "
                       "are %d ranks for job.workers = %d; start as many, or "
                       "take clock.kind = virtual",
                       bm_comm_size(comm), workers);
    r = calloc(1, sizeof *r);
    if (r == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a worker");
    r->comm = comm;
    r->strategy = strategy;
    r->local_state = local_state;
    r->async_workers = async_workers;
    r->worker = bm_comm_rank(comm);
    r->host = calloc(strategy->params->n + 1, sizeof *r->host);
    BM_TRY_DONE(bm_comm_twin(&r->mail, comm));
    if (r->host == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a vector");
    else if (r->worker == 0)
        status = bm_server_open(&r->server, config, r->mail, strategy->params,
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
    bm_comm_close(r->mail);
    free(r->host);
    free(r);
}

/* ---- a worker ------------------------------------------------------------ */

/* x <- the server's model, from the letter that was taken. */
static bm_status receive_model(bm_realtime *r, float *x)
{
    const bm_params *p = r->strategy->params;

    BM_TRY(bm_comm_receive_message_floats(r->mail, 0, BM_TO_WORKER, r->host,
                                          p->n));
    bm_put(p->be, x, r->host, p->n);
    return bm_sync(p->be);
}

/* push <- alpha (w - W) */
static bm_status stretch(bm_realtime *r)
{
    bm_message l = {.word = {[BM_KIND] = BM_PULL}};

    BM_TRY(bm_comm_send_message(r->mail, 0, BM_TO_SERVER, &l, NULL, 0));
    BM_TRY(bm_comm_receive_message(r->mail, BM_TO_WORKER, &l));
    BM_TRY(receive_model(r, r->strategy->params->w));
    bm_async_workers_stretch(r->async_workers, r->worker);
    return BM_OK;
}

/* Pushes, and waits until the server's model has it in. */
static bm_status push(bm_realtime *r, bool wants)
{
    const bm_params *p = r->strategy->params;
    bm_push kind = r->strategy->traits.server_policy.push;
    bm_async_worker *own = bm_async_workers_of(r->async_workers, r->worker);
    bm_message l = {.word = {[BM_KIND] = BM_PUSH,
                             [BM_SAMPLES] = own->samples,
                             [BM_KNOWN] = r->known,
                             [BM_WANTS] = wants}};
    bool accepted = false;

    bm_get(p->be, r->host, own->push, p->n);
    BM_TRY(bm_sync(p->be));
    BM_TRY(bm_comm_send_message(r->mail, 0, BM_TO_SERVER, &l, r->host, p->n));
    BM_TRY(bm_comm_receive_message(r->mail, BM_TO_WORKER, &l));
    accepted = l.word[BM_ACCEPTED] != 0;
    own->bad_steps += !accepted;
    if (wants)
        BM_TRY(receive_model(r, own->w));
    if (kind == BM_ELASTIC && accepted)
        bm_async_workers_yield(r->async_workers, r->worker);
    r->known =
        wants || kind == BM_ELASTIC ? l.word[BM_VERSION] : r->known + accepted;
    r->met = wants ? 0 : r->met;
    return bm_sync(p->be);
}

/* A period, and a meeting, if there was something to learn from. */
static bm_status live(bm_realtime *r, bm_period at, bool last)
{
    const bm_server_policy *server_policy = &r->strategy->traits.server_policy;
    bm_async_worker *own = bm_async_workers_of(r->async_workers, r->worker);
    bool due = false;

    r->met += (double)(at.to - at.from);
    due = server_policy->push != BM_ELASTIC &&
          r->met >= (double)server_policy->fetch_every;
    BM_TRY(
        bm_async_workers_learn(r->async_workers, r->worker, at, r->rate, !due));
    if (own->samples == 0)
        return BM_OK;
    if (server_policy->push == BM_ELASTIC)
        BM_TRY(stretch(r));
    return push(r, due && !last);
}

/* The server hears of its end, whatever comes. */
static bm_status learn_share(bm_realtime *r, int64_t steps)
{
    bm_message done = {.word = {[BM_KIND] = BM_DONE}};
    int64_t every = r->strategy->traits.server_policy.push_every;
    bm_status status = BM_OK;

    r->known = r->met = 0;
    for (int64_t i = 0; i < steps && status == BM_OK; i += every) {
        bm_period at = {i, i + every < steps ? i + every : steps};

        status = live(r, at, at.to == steps);
    }
    bm_keep_first(&status, bm_comm_send_message(r->mail, 0, BM_TO_SERVER, &done,
                                                NULL, 0));
    return status;
}

/* ---- a block ------------------------------------------------------------- */

/* x there <- x here, n numbers, by way of the host. */
static bm_status carry(bm_realtime *r, bm_backend *here, const float *from,
                       bm_backend *there, float *to)
{
    size_t n = r->strategy->params->n;

    bm_get(here, r->host, from, n);
    BM_TRY(bm_sync(here));
    bm_put(there, to, r->host, n);
    return bm_sync(there);
}

/* The update that the server makes, as all ranks know it; NULL: it makes none.
 */
static bm_sgd *central(const bm_realtime *r)
{
    return r->strategy->traits.server_policy.push == BM_GRADIENT
               ? bm_local_state_of(r->local_state, r->worker)
               : NULL;
}

/* Rank 0: the server goes on from what all ranks have. */
static bm_status begin(bm_realtime *r, double *stale, size_t n_stale)
{
    const bm_params *p = r->strategy->params;
    bm_params *its = NULL;
    float *from[BM_SGD_VECTORS], *to[BM_SGD_VECTORS];
    double t = 0;

    if (r->server == NULL)
        return BM_OK;
    its = bm_server_params(r->server);
    BM_TRY(carry(r, p->be, p->w, its->be, its->w));
    if (central(r) != NULL) {
        size_t n = bm_sgd_vectors(central(r), from);

        (void)bm_sgd_vectors(bm_server_sgd(r->server), to);
        for (size_t i = 0; i < n; i++)
            BM_TRY(carry(r, p->be, from[i], its->be, to[i]));
        BM_TRY(bm_sgd_count(central(r), &t));
        bm_sgd_set_count(bm_server_sgd(r->server), t);
    }
    return bm_server_start(r->server, r->rate, stale, n_stale);
}

/* x <- rank 0's vector on the server. */
static bm_status share(bm_realtime *r, const float *its, float *x)
{
    const bm_params *p = r->strategy->params;

    if (r->server != NULL)
        for (size_t i = 0; i < p->n; i++)
            r->host[i] = its[i];
    bm_comm_broadcast(r->comm, r->host, p->n, 0);
    BM_TRY(bm_comm_wait(r->comm));
    bm_put(p->be, x, r->host, p->n);
    return bm_sync(p->be);
}

/* All ranks go on from what the server has. */
static bm_status end(bm_realtime *r)
{
    float *its[BM_SGD_VECTORS] = {0}, *own[BM_SGD_VECTORS];
    double t = 0;

    BM_TRY(share(r, r->server != NULL ? bm_server_params(r->server)->w : NULL,
                 r->strategy->params->w));
    if (central(r) == NULL)
        return BM_OK;
    if (r->server != NULL) {
        (void)bm_sgd_vectors(bm_server_sgd(r->server), its);
        BM_TRY(bm_sgd_count(bm_server_sgd(r->server), &t));
    }
    for (size_t i = 0; i < bm_sgd_vectors(central(r), own); i++)
        BM_TRY(share(r, its[i], own[i]));
    BM_TRY(bm_comm_broadcast_bytes(r->comm, &t, sizeof t, 0));
    bm_sgd_set_count(central(r), t);
    return BM_OK;
}

/* Rank 0's numbers are everybody's. */
static bm_status share_service(bm_realtime *r, double *stale, bm_service *t)
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
    BM_TRY(bm_comm_agree(r->comm, begin(r, stale, service->n_stale)));
    status = learn_share(r, steps);
    if (r->server != NULL)
        bm_keep_first(&status, bm_server_join(r->server, service));
    bm_keep_first(&status, end(r));
    bm_keep_first(&status, share_service(r, stale, service));
    return status;
}
