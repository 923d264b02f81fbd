#include "bmuf/async/server.h"

#include "core/finite.h"
#include "sgd/sgd.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Who has pushed and waits for the update with it in. */
typedef struct client {
    int rank;
    bool accepted, wants;
} client;

struct bm_server {
    bm_comm *mail; /* borrowed */
    bm_server_policy server_policy;
    int workers, active; /* active: whose share has not ended */
    bm_backend *be;
    bm_params params; /* w: W; g: the sum of what has come */
    bm_sgd *sgd;
    float *in;       /* [n]: what comes */
    client *waiting; /* [workers] */
    int n_waiting;
    double weight; /* of what g holds */
    double version;
    float rate;
    bm_service service;
    double *stale; /* [service.n_stale] */
    pthread_t thread;
    bm_status status;
    char error[512];
};

static bm_status open_model(bm_server *s, const bm_config *config,
                            const bm_params *like)
{
    bm_sgd_settings set = {0};
    bm_params *p = &s->params;

    BM_TRY(bm_config_fill(config, "sgd", bm_sgd_options, &set));
    BM_TRY(bm_backend_open(&s->be, "cpu", 0));
    *p = (bm_params){.be = s->be, .n = like->n, .n_learned = like->n_learned};
    BM_TRY(bm_alloc(p->be, p->n, &p->w));
    BM_TRY(bm_alloc(p->be, p->n, &p->g));
    BM_TRY(bm_alloc(p->be, p->n, &s->in));
    return bm_sgd_new(&s->sgd, &set, p);
}

bm_status bm_server_open(bm_server **out, const bm_config *config,
                         bm_comm *mail, const bm_params *params,
                         const bm_server_policy *server_policy, int workers)
{
    bm_server *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a server");
    s->mail = mail;
    s->server_policy = *server_policy;
    s->workers = workers;
    s->waiting = calloc((size_t)workers, sizeof *s->waiting);
    if (s->waiting == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a server");
    BM_TRY_DONE(open_model(s, config, params));
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

static double vector_bytes(const bm_server *s)
{
    return (double)(s->params.n * sizeof(float));
}

static bm_status answer(bm_server *s, int rank, bool accepted, bool with_model)
{
    bm_message l = {
        .word = {[BM_ACCEPTED] = accepted, [BM_VERSION] = s->version}};

    s->service.pulled += with_model ? vector_bytes(s) : 0;
    return bm_comm_send_message(s->mail, rank, BM_TO_WORKER, &l, s->params.w,
                                with_model ? s->params.n : 0);
}

static void note_push(bm_server *s, double tau)
{
    bm_service *t = &s->service;

    s->stale[tau < (double)t->n_stale ? (size_t)tau : t->n_stale - 1]++;
    t->mean += tau;
    t->most = fmax(t->most, tau);
    t->pushes++;
    t->pushed += vector_bytes(s);
}

/* g <- g + weight a(tau) x */
static bm_status take_push(bm_server *s, const bm_message *l)
{
    bm_params *p = &s->params;
    double tau = s->version - l->word[BM_KNOWN];
    double weight = s->server_policy.group == 1 ? 1 : l->word[BM_SAMPLES];
    double factor = weight * bm_server_policy_scale(&s->server_policy, tau);
    bool good = true;

    BM_TRY(bm_comm_receive_message_floats(s->mail, l->from, BM_TO_SERVER, s->in,
                                          p->n));
    note_push(s, tau);
    good = bm_all_finite(s->in, p->n);
    if (good)
        bm_axpby(p->be, p->n, (float)factor, s->in, s->weight > 0, p->g);
    s->weight += good ? weight : 0;
    s->waiting[s->n_waiting++] =
        (client){l->from, good, l->word[BM_WANTS] != 0};
    return BM_OK;
}

/* W <- its next version, and all who wait go on. */
static bm_status update(bm_server *s)
{
    bm_params *p = &s->params;

    if (s->weight > 0) {
        bm_axpby(p->be, p->n, (float)(1 / s->weight), p->g, 0, p->g);
        if (s->server_policy.push == BM_GRADIENT)
            bm_sgd_step(s->sgd, s->rate);
        else
            bm_axpby(p->be, p->n, 1, p->g, 1, p->w);
        s->version++;
    }
    bm_keep_first(&s->status, bm_sync(p->be));
    for (int i = 0; i < s->n_waiting; i++)
        BM_TRY(answer(s, s->waiting[i].rank, s->waiting[i].accepted,
                      s->waiting[i].wants));
    s->n_waiting = 0;
    s->weight = 0;
    return BM_OK;
}

static bm_status serve_one(bm_server *s)
{
    bm_message l;
    int group = 0;

    BM_TRY(bm_comm_receive_message(s->mail, BM_TO_SERVER, &l));
    if (l.word[BM_KIND] == BM_PULL)
        BM_TRY(answer(s, l.from, true, true));
    else if (l.word[BM_KIND] == BM_PUSH)
        BM_TRY(take_push(s, &l));
    else
        s->active--;
    group =
        s->server_policy.group < s->active ? s->server_policy.group : s->active;
    return s->n_waiting > 0 && s->n_waiting >= group ? update(s) : BM_OK;
}

/* Until all are done, or none can be heard any more. Whatever else fails, they
 * get their answers. */
static void *serve(void *self)
{
    bm_server *s = self;
    bm_status status = BM_OK;

    while (s->active > 0 && status == BM_OK)
        status = serve_one(s);
    bm_keep_first(&s->status, status);
    if (s->status != BM_OK)
        snprintf(s->error, sizeof s->error, "%s", bm_last_message());
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
    s->service = (bm_service){.stale = stale, .n_stale = n_stale};
    if (pthread_create(&s->thread, NULL, serve, s) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "no thread for a parameter server");
    return BM_OK;
}

bm_status bm_server_join(bm_server *s, bm_service *service)
{
    pthread_join(s->thread, NULL);
    s->service.updates = s->version;
    *service = s->service;
    return s->status == BM_OK ? BM_OK : BM_FAIL(s->status, "%s", s->error);
}
