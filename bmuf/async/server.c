#include "bmuf/async/server.h"

#include "bmuf/async/service.h"
#include "sgd/layer_rates.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A rank that waits for the update that contains its push. */
typedef struct client {
    int rank;
    bool wants; /* W with the answer */
} client;

struct bm_server {
    bm_comm *comm;                  /* borrowed */
    const bm_server_policy *policy; /* borrowed */
    int workers, active;            /* active: without BM_DONE so far */
    bm_backend *be;
    bm_params params; /* w: W; g: the weighted sum of the waiting pushes */
    bm_layer_rate *layer_rates; /* of params */
    bm_sgd *sgd;
    double clip;     /* of whole gradients, where W is a shard; else 0 */
    float *in;       /* [n]: the last push */
    client *waiting; /* [workers] */
    int n_waiting;
    double weight; /* of g */
    double version;
    float rate;
    bm_service service;
    double *stale; /* [service.n_stale] */
    pthread_t thread;
    bm_status status;
    char error[512];
};

static bm_status open_model(bm_server *s, const bm_config *config,
                            const bm_params *like, size_t offset, size_t count)
{
    bm_sgd_settings set = {0};
    bm_params *p = &s->params;

    BM_TRY(bm_config_fill(config, "sgd", bm_sgd_options, &set));
    BM_TRY(bm_backend_open(&s->be, "cpu", 0));
    *p = (bm_params){
        .be = s->be, .n = count, .n_learned = bm_learned(like, offset, count)};
    BM_TRY(bm_layer_rates_cut(&s->layer_rates, p, like, offset));
    BM_TRY(bm_alloc(p->be, p->n, &p->w));
    BM_TRY(bm_alloc(p->be, p->n, &p->g));
    BM_TRY(bm_alloc(p->be, p->n, &s->in));
    if (count == like->n) {
        p->segments = like->segments;
        p->n_segments = like->n_segments;
    } else {
        s->clip = set.clip;
        set.clip = 0;
    }
    return bm_sgd_new(&s->sgd, &set, p);
}

bm_status bm_server_open(bm_server **out, const bm_config *config,
                         bm_comm *comm, const bm_params *params, size_t offset,
                         size_t count, const bm_server_policy *policy,
                         int workers)
{
    bm_server *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a parameter server");
    s->comm = comm;
    s->policy = policy;
    s->workers = workers;
    s->waiting = calloc((size_t)workers, sizeof *s->waiting);
    if (s->waiting == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a parameter server");
    BM_TRY_DONE(open_model(s, config, params, offset, count));
    *out = s;
    s = NULL;
done:
    bm_server_close(s);
    return status;
}

void bm_server_close(bm_server *s)
{
    if (s == NULL)
        return;
    bm_sgd_free(s->sgd);
    if (s->be != NULL) {
        bm_free(s->be, s->params.w);
        bm_free(s->be, s->params.g);
        bm_free(s->be, s->in);
        bm_backend_close(s->be);
    }
    free(s->layer_rates);
    free(s->waiting);
    free(s);
}

bm_params *bm_server_params(bm_server *s)
{
    return &s->params;
}

bm_sgd *bm_server_sgd(bm_server *s)
{
    return s->sgd;
}

/* Keeps the first failure and its message. */
static void note_failure(bm_server *s, bm_status status)
{
    if (status == BM_OK || s->status != BM_OK)
        return;
    s->status = status;
    snprintf(s->error, sizeof s->error, "%s", bm_last_message());
}

static bm_status answer(bm_server *s, int rank, bool with_model)
{
    bm_message m = {.word = {[BM_VERSION] = s->version}};

    if (with_model)
        bm_service_pull(&s->service, s->params.n);
    return bm_comm_send_message(s->comm, rank, BM_TO_WORKER, &m, s->params.w,
                                with_model ? s->params.n : 0);
}

/* What sgd.clip makes of a gradient whose norm is a times `norm`. */
static double clipped(const bm_server *s, double a, double norm)
{
    bool long_one =
        s->policy->push == BM_GRADIENT && s->clip > 0 && a * norm > s->clip;
    return long_one ? s->clip / norm : a;
}

/* g <- g + weight a(tau) x */
static bm_status take_push(bm_server *s, const bm_message *m)
{
    bm_params *p = &s->params;
    double tau = s->version - m->word[BM_KNOWN];
    double samples = m->word[BM_SAMPLES];
    /* A single push is the mean: its samples would only round it. */
    double weight = s->policy->group == 1 && samples > 0 ? 1 : samples;
    double scale = bm_server_policy_scale(s->policy, tau);
    double learned = clipped(s, scale, m->word[BM_NORM]);
    size_t n = p->n_learned;
    bool adds = s->weight > 0;

    BM_TRY(bm_comm_receive_message_floats(s->comm, m->from, BM_TO_SERVER, s->in,
                                          p->n));
    bm_service_push(&s->service, s->stale, tau, p->n);
    if (weight > 0) {
        bm_axpby(p->be, n, (float)(weight * learned), s->in, adds, p->g);
        bm_axpby(p->be, p->n - n, (float)(weight * scale), s->in + n, adds,
                 p->g + n);
    }
    s->weight += weight;
    s->waiting[s->n_waiting++] = (client){m->from, m->word[BM_KIND] == BM_SWAP};
    return BM_OK;
}

/* Makes the next version of W and answers all waiting workers. */
static bm_status update(bm_server *s)
{
    bm_params *p = &s->params;

    if (s->weight > 0) {
        bm_axpby(p->be, p->n, (float)(1 / s->weight), p->g, 0, p->g);
        if (s->policy->push == BM_GRADIENT)
            bm_sgd_step(s->sgd, s->rate);
        else
            bm_axpby(p->be, p->n, 1, p->g, 1, p->w);
        s->version++;
    }
    note_failure(s, bm_sync(p->be));
    for (int i = 0; i < s->n_waiting; i++)
        BM_TRY(answer(s, s->waiting[i].rank, s->waiting[i].wants));
    s->n_waiting = 0;
    s->weight = 0;
    return BM_OK;
}

static bm_status serve_one(bm_server *s)
{
    bm_message m;
    int group = 0;

    BM_TRY(bm_comm_receive_message(s->comm, BM_TO_SERVER, &m));
    switch ((int)m.word[BM_KIND]) {
    case BM_PUSH:
    case BM_SWAP:
        BM_TRY(take_push(s, &m));
        break;
    case BM_PULL:
        BM_TRY(answer(s, m.from, true));
        break;
    case BM_DONE:
        s->active--;
        break;
    default:
        s->active = 0;
    }
    group = s->policy->group < s->active ? s->policy->group : s->active;
    return s->n_waiting > 0 && s->n_waiting >= group ? update(s) : BM_OK;
}

/* The thread: until all workers are done, or until the comm fails. After an
 * error of the backend workers still get their answers. */
static void *serve(void *self)
{
    bm_server *s = self;
    bm_status status = BM_OK;

    while (s->active > 0 && status == BM_OK)
        status = serve_one(s);
    note_failure(s, status);
    return NULL;
}

bm_status bm_server_start(bm_server *s, float rate, double *stale,
                          size_t n_stale)
{
    s->rate = rate;
    s->active = s->workers;
    s->n_waiting = 0;
    s->weight = s->version = 0;
    s->status = BM_OK;
    s->stale = stale;
    bm_service_begin(&s->service, stale, n_stale);
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "no thread for the parameter server");
    return BM_OK;
}

void bm_server_cancel(bm_server *s)
{
    bm_message m = {.word = {[BM_KIND] = BM_END}};

    if (bm_comm_send_message(s->comm, bm_comm_rank(s->comm), BM_TO_SERVER, &m,
                             NULL, 0) == BM_OK)
        pthread_join(s->thread, NULL);
}

bm_status bm_server_join(bm_server *s, bm_service *service)
{
    pthread_join(s->thread, NULL);
    s->service.updates = s->version;
    *service = s->service;
    return s->status == BM_OK ? BM_OK : BM_FAIL(s->status, "%s", s->error);
}
