/*
 * bucketed.c - one sum for each bucket. The computing thread adds workers to a
 * sum; the comm thread owns it from the last worker until it is waited for.
 *
 * With overlap = merged, alpha and beta of an exchange are measured at the
 * start, and the layers' backward times in the first steps, in which each layer
 * is a bucket. All ranks cut with the numbers of rank 0.
 *
 * On a device the computing thread queues the copy of a bucket to the host when
 * the bucket is ready, and adds it when it is there: it waits for the copies one
 * after the other once the whole backward pass is queued.
 */
#include "bmuf/exchange/bucketed.h"

#include "comm/agreed_alloc.h"
#include "comm/comm_thread.h"
#include "compute/fetch.h"
#include "core/clock.h"
#include "core/log.h"
#include "core/trace/span.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    COLD = 1,       /* steps before timing starts */
    TIMED = 4,      /* timed steps */
    TURNS = 5,      /* repetitions of each timed exchange */
    GROWTH = 8,     /* ratio of the sizes of timed exchanges */
    MOST = 1 << 22, /* elements of the largest timed exchange */
    SIZES = 5,
};

typedef struct bucket {
    bm_bucket is;
    bm_sum *sum;
    double weight; /* of all workers */
} bucket;

struct bm_bucketed {
    bm_comm *comm;     /* borrowed */
    bm_params *params; /* borrowed; its ready is set */
    bm_comm_thread *thread;
    char sum[16], coordinator[16], topology[64]; /* of each bucket */
    int workers, first, last; /* hosted here: [first, last) */

    bucket buckets[BM_BUCKETS + 1];
    size_t n;

    int worker;            /* that computes its gradient */
    const double *samples; /* of it; NULL: between gradients */
    size_t next;           /* bucket to add next */
    double used;           /* seconds in ready(), less those of waiting for a
                              device */
    bm_fetch *fetch;       /* NULL: gradients are in the host's memory */
    size_t fetched;        /* bucket to fetch next */

    bool timing; /* `merged`: until the buckets are cut */
    int steps;
    double a, b;    /* an exchange of x bytes takes a + b x seconds */
    double since;   /* the time when the last range was ready */
    double *passed; /* [n_ranges + 1]: seconds up to each range; then the
                        number of passes */
};

/* ---- settings ------------------------------------------------------------ */

static bool is(const char *word, const char *other)
{
    return strcmp(word, other) == 0;
}

bool bm_bucketed_wanted(const bm_bucketed_settings *s)
{
    return !is(s->overlap, "none");
}

static bm_status not_timed(void)
{
    return BM_FAIL(BM_ERR_CONFIG,
                   "ssgd.overlap = merged measures the time of layers, on the "
                   "CPU only; set ssgd.overlap = bucket, or job.device = cpu");
}

bm_status bm_bucketed_check(const bm_bucketed_settings *s, const bm_job *job)
{
    if (!bm_bucketed_wanted(s))
        return BM_OK;
    if (is(job->exchange, "nccl") || is(job->exchange, "mpi"))
        return BM_FAIL(BM_ERR_CONFIG,
                       "ssgd.overlap = %s sends buckets by way of the host; "
                       "set job.exchange = host, or ssgd.overlap = none",
                       s->overlap);
    if (is(job->device, "cuda") && is(s->overlap, "merged"))
        return not_timed();
    if (is(s->overlap, "merged") && !bm_sum_traits_of(job->sum)->any_cut)
        return BM_FAIL(BM_ERR_CONFIG,
                       "ssgd.overlap = merged cuts buckets by measured times, "
                       "and the bits of job.sum = %s depend on the cut; set "
                       "job.sum = tree or exact, or ssgd.overlap = bucket",
                       job->sum);
    return BM_OK;
}

/* ---- buckets ------------------------------------------------------------- */

static bm_status open_sum(bm_bucketed *o, size_t n, bm_sum **out)
{
    return bm_sum_open(out, bm_comm_thread_comm(o->thread), n, o->workers,
                       o->sum, o->coordinator, o->topology);
}

static void close_buckets(bm_bucketed *o)
{
    for (size_t i = 0; i < o->n; i++)
        bm_sum_close(o->buckets[i].sum);
    o->n = 0;
}

static bm_status open_buckets(bm_bucketed *o, size_t n, const bm_bucket *cut)
{
    close_buckets(o);
    for (size_t i = 0; i < n; i++) {
        bucket *b = &o->buckets[i];

        *b = (bucket){.is = cut[i]};
        BM_TRY(open_sum(o, cut[i].n, &b->sum));
        o->n++;
    }
    return BM_OK;
}

/* ---- on the comm thread -------------------------------------------------- */

static void take(void *self, const bm_sum_piece *p)
{
    (void)self;
    memcpy(p->after, p->mean, p->n * sizeof *p->after);
}

static bm_status exchange(void *self)
{
    bucket *b = self;
    bm_span span = bm_span_begin("exchange");
    bm_status status = bm_sum_update(b->sum, take, NULL, &b->weight);

    (void)bm_span_end(span);
    return status;
}

/* ---- during the backward pass -------------------------------------------- */

/* Adds the next bucket of the worker, from its gradient on the host; after the
 * last worker starts its exchange. */
static void add(bm_bucketed *o, const float *g, double weight)
{
    bucket *b = &o->buckets[o->next++];
    const float *x = g + b->is.offset;

    bm_sum_add(b->sum, o->worker, weight > 0 ? x : bm_sum_room(b->sum), weight);
    if (o->worker + 1 == o->last)
        (void)bm_comm_thread_put(o->thread, exchange, b);
}

static void fetch(bm_bucketed *o)
{
    const bm_bucket *b = &o->buckets[o->fetched].is;

    bm_fetch_start(o->fetch, o->fetched++, o->params->g + b->offset, b->offset,
                   b->n);
}

/* Adds the time since the last range, if there was one. */
static void note_time(bm_bucketed *o, size_t range)
{
    if (range > 0)
        o->passed[range] += bm_clock() - o->since;
    if (range + 1 == o->params->n_ranges)
        o->passed[range + 1]++;
}

static void ready(void *self, size_t range)
{
    bm_bucketed *o = self;
    bm_span span;

    if (o->samples == NULL)
        return; /* not a gradient to exchange, of an evaluation */
    if (o->timing)
        note_time(o, range);
    span = bm_span_begin("exchange");
    if (o->fetch != NULL)
        while (o->fetched < o->n && o->buckets[o->fetched].is.range <= range)
            fetch(o);
    else
        while (o->next < o->n && o->buckets[o->next].is.range <= range)
            add(o, o->params->g, *o->samples);
    o->used += bm_span_end(span);
    o->since = bm_clock();
}

void bm_bucketed_begin(bm_bucketed *o, const double *samples)
{
    o->samples = samples;
    o->used = 0;
}

double bm_bucketed_used(const bm_bucketed *o)
{
    return o->used;
}

static bm_status add_rest(bm_bucketed *o, double samples)
{
    bm_status status = bm_sync(o->params->be);

    while (o->next < o->n)
        add(o, o->params->g, status == BM_OK ? samples : 0);
    return status;
}

/* The same from a device, each bucket as it arrives. */
static bm_status add_fetched(bm_bucketed *o, double samples)
{
    while (o->fetched < o->n && samples > 0)
        fetch(o);
    while (o->next < o->n) {
        double since = bm_clock();
        const float *g =
            samples > 0 ? bm_fetch_wait(o->fetch, o->next) : o->params->g;

        o->used -= bm_clock() - since;
        if (g == NULL)
            add(o, o->params->g, 0);
        else
            add(o, g, samples);
    }
    o->fetched = 0;
    return bm_sync(o->params->be);
}

bm_status bm_bucketed_end(bm_bucketed *o, int worker, double samples)
{
    bm_status status = BM_OK;

    BM_ASSERT(worker == o->worker);
    status = o->fetch != NULL ? add_fetched(o, samples) : add_rest(o, samples);
    o->samples = NULL;
    o->next = 0;
    o->worker++;
    return status;
}

/* ---- the cut of `merged` ------------------------------------------------- */

/* The shortest time of a few exchanges of n floats. */
static bm_status time_exchange(bm_bucketed *o, size_t n, double *out)
{
    bm_comm *comm = bm_comm_thread_comm(o->thread);
    double least = INFINITY, weight = 0;
    bm_sum *sum = NULL;
    bm_status status = BM_OK;

    BM_TRY(open_sum(o, n, &sum));
    for (int i = 0; i < TURNS; i++) {
        double since = 0;

        for (int k = o->first; k < o->last; k++)
            bm_sum_add(sum, k, o->params->w, 1);
        BM_TRY_DONE(bm_comm_barrier(comm));
        since = bm_clock();
        BM_TRY_DONE(bm_sum_update(sum, take, NULL, &weight));
        least = fmin(least, bm_clock() - since);
    }
    *out = least;
done:
    bm_sum_close(sum);
    return status;
}

/* Measures a and b. */
static bm_status fit(bm_bucketed *o)
{
    double bytes[SIZES], seconds[SIZES], line[2] = {0};
    size_t n = 0, size = BM_SUM_CHUNK;

    for (; n < SIZES && (n == 0 || (size <= o->params->n && size <= MOST));
         size *= GROWTH, n++) {
        size_t count = size < o->params->n ? size : o->params->n;

        bytes[n] = (double)count * sizeof(float);
        BM_TRY(time_exchange(o, count, &seconds[n]));
    }
    if (n > 1)
        bm_buckets_line(n, bytes, seconds, &line[0], &line[1]);
    else
        line[0] = seconds[0];
    BM_TRY(bm_comm_broadcast_bytes(o->comm, line, sizeof line, 0));
    o->a = line[0];
    o->b = line[1];
    return BM_OK;
}

static void log_buckets(const bm_bucketed *o)
{
    double bytes = (double)o->params->n * sizeof(float);

    bm_log(BM_NOTE, "ssgd.overlap: %zu buckets, %.3g MB on average", o->n,
           1e-6 * bytes / (double)o->n);
}

/* Collective. Cuts buckets by the backward times of layers. */
static bm_status cut_again(bm_bucketed *o)
{
    size_t ranges = o->params->n_ranges, n = 0;
    bm_bucket cut[BM_BUCKETS + 1];

    BM_TRY(bm_comm_sum(o->comm, o->passed, ranges + 1));
    BM_TRY(bm_comm_broadcast_bytes(o->comm, o->passed,
                                   (ranges + 1) * sizeof *o->passed, 0));
    if (o->passed[ranges] == 0)
        return BM_OK; /* no worker had data: wait for the next step */
    for (size_t i = 0; i < ranges; i++)
        o->passed[i] /= o->passed[ranges];
    o->timing = false;
    n = bm_buckets_of_layers(o->params, cut);
    n = bm_buckets_merge(n, cut, o->passed, o->a, o->b);
    BM_TRY(open_buckets(o, n, cut));
    bm_log(BM_NOTE, "ssgd.overlap: an exchange takes %.3g ms and %.3g ms a MB",
           1e3 * o->a, 1e9 * o->b);
    log_buckets(o);
    return BM_OK;
}

static bm_status count_step(bm_bucketed *o)
{
    size_t size = (o->params->n_ranges + 1) * sizeof *o->passed;

    o->steps++;
    if (o->steps <= COLD)
        memset(o->passed, 0, size);
    return o->steps < COLD + TIMED ? BM_OK : cut_again(o);
}

/* ---- the step ------------------------------------------------------------ */

bm_status bm_bucketed_finish(bm_bucketed *o, double *weight)
{
    bm_params *p = o->params;
    bm_status status = bm_comm_thread_wait_all(o->thread), timed = BM_OK;
    size_t n = 0;

    BM_ASSERT(o->worker == o->last);
    o->worker = o->first;
    *weight = o->buckets[0].weight;
    n = *weight > 0 ? o->n : 0;
    for (size_t i = 0; i < n; i++) {
        const bucket *b = &o->buckets[i];
        bm_put(p->be, p->g + b->is.offset, bm_sum_common(b->sum), b->is.n);
    }
    if (status == BM_OK)
        status = bm_sync(p->be);
    if (o->timing)
        timed = count_step(o); /* on all ranks */
    return status != BM_OK ? status : timed;
}

/* ---- open and close ------------------------------------------------------ */

/* Not collective. */
static bm_status prepare(bm_bucketed *o, const bm_bucketed_settings *s)
{
    if (!bm_on_host(o->params->be) && is(s->overlap, "merged"))
        return not_timed();
    if (!bm_on_host(o->params->be))
        BM_TRY(bm_fetch_open(&o->fetch, o->params->be, o->params->n,
                             BM_BUCKETS + 1));
    o->passed = calloc(o->params->n_ranges + 1, sizeof *o->passed);
    if (o->passed == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for an exchange");
    return BM_OK;
}

static bm_status cut_first(bm_bucketed *o, const bm_bucketed_settings *s)
{
    bm_bucket cut[BM_BUCKETS + 1];
    size_t n = bm_buckets_of_layers(o->params, cut);

    if (is(s->overlap, "bucket"))
        n = bm_buckets_fill(n, cut, s->bucket * (1 << 20));
    return open_buckets(o, n, cut);
}

bm_status bm_bucketed_open(bm_bucketed **out, bm_comm *comm, bm_params *params,
                           const bm_job *job, const bm_bucketed_settings *s)
{
    void *memory = NULL;
    bm_bucketed *o = NULL;
    int n = (int)job->workers, rank = bm_comm_rank(comm);
    bm_status status = BM_OK;

    BM_TRY(bm_agreed_alloc(comm, sizeof *o, &memory));
    o = memory;
    o->comm = comm;
    o->params = params;
    o->workers = n;
    o->worker = o->first = bm_comm_first(comm, n, rank);
    o->last = bm_comm_first(comm, n, rank + 1);
    snprintf(o->sum, sizeof o->sum, "%s", job->sum);
    snprintf(o->coordinator, sizeof o->coordinator, "%s", job->coordinator);
    snprintf(o->topology, sizeof o->topology, "%s", job->topology);
    o->timing = is(s->overlap, "merged") && params->n_ranges > 1;
    BM_TRY_DONE(bm_bucketed_check(s, job));
    BM_TRY_DONE(bm_comm_agree(comm, prepare(o, s)));
    BM_TRY_DONE(bm_comm_thread_open(&o->thread, comm));
    if (o->timing)
        BM_TRY_DONE(fit(o));
    BM_TRY_DONE(cut_first(o, s));
    if (!o->timing)
        log_buckets(o);
    params->ready = ready;
    params->ready_self = o;
    *out = o;
    o = NULL;
done:
    bm_bucketed_close(o);
    return status;
}

void bm_bucketed_close(bm_bucketed *o)
{
    bm_status left = BM_OK;

    if (o == NULL)
        return;
    if (o->params->ready_self == o) {
        o->params->ready = NULL;
        o->params->ready_self = NULL;
    }
    if (o->thread != NULL)
        left = bm_comm_thread_wait_all(o->thread);
    (void)left; /* the caller has given up */
    close_buckets(o);
    bm_comm_thread_close(o->thread);
    bm_fetch_close(o->fetch);
    free(o->passed);
    free(o);
}
