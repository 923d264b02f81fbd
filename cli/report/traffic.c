#include "cli/report/traffic.h"

#include "bmuf/async/server_shards.h"
#include "bmuf/exchange/columns.h"
#include "bmuf/strategies/fragments.h"

#include <math.h>
#include <stdlib.h>

/* An exchange of n floats. */
static bm_status of_sum(const bm_job *job, int ranks, size_t n, double *out)
{
    double *bytes = calloc((size_t)ranks, sizeof *bytes), most = 0;
    bm_status status = BM_OK;

    if (bytes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d ranks", ranks);
    status = bm_sum_bytes(bytes, ranks, n, (int)job->workers, job->sum,
                          job->coordinator, job->topology);
    for (int r = 0; r < ranks && status == BM_OK; r++)
        most = fmax(most, bytes[r]);
    *out = most;
    free(bytes);
    return status;
}

static bm_status of_codes(const bm_settings *s, int ranks, const bm_params *p,
                          double *out)
{
    bm_code_plan plan = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_columns_plan(&plan, s->code, p));
    status = bm_coded_sum_bytes(&plan, ranks, (int)s->job.workers,
                                s->job.coordinator, out);
    bm_code_plan_free(&plan);
    return status;
}

static bm_status of_fragments(const bm_settings *s, int ranks,
                              const bm_params *p, double *out)
{
    size_t n = (size_t)s->block.fragments;
    size_t *begin = calloc(n + 1, sizeof *begin);
    double sum = 0, bytes = 0;
    bm_status status = BM_OK;

    if (begin == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu fragments", n);
    BM_TRY_DONE(bm_fragments_cut(p, s->block.fragments, begin));
    for (size_t f = 0; f < n; f++) {
        BM_TRY_DONE(of_sum(&s->job, ranks, begin[f + 1] - begin[f], &bytes));
        sum += bytes;
    }
    *out = sum / (double)n;
done:
    free(begin);
    return status;
}

/* While each worker fetches once. */
static bm_status of_server(const bm_settings *s, int ranks, const bm_params *p,
                           double *out)
{
    const bm_server_policy *t = &s->server_policy;
    double pushes = (double)t->fetch_every / (double)t->push_every;
    bm_server_shards shards = {0};
    bm_status status = bm_server_shards_cut(
        &shards, p->n,
        bm_server_shards_count(s->clock.shards, t, &s->sgd, ranks), ranks);

    if (status == BM_OK)
        *out = 4 * bm_server_shards_busiest(&shards, pushes);
    bm_server_shards_free(&shards);
    return status;
}

/* Moments that become the workers' mean. */
static bm_status of_moments(const bm_settings *s, int ranks, const bm_params *p,
                            double *out)
{
    bm_local_policy local = bm_sgd_local_state(&s->sgd);
    double vectors = 0;

    *out = 0;
    if (local != BM_LOCAL_AVERAGE && local != BM_LOCAL_EXTRAPOLATE)
        return BM_OK;
    BM_TRY(of_sum(&s->job, ranks, p->n, out));
    (void)bm_sgd_memory(&s->sgd, &vectors);
    *out *= vectors;
    return BM_OK;
}

bm_status bm_sending_of(const bm_settings *s, int ranks, const bm_params *p,
                        bm_sending *out)
{
    bm_granularity per = bm_strategy_find(s->train.strategy)->per;
    bool real = per == BM_EVENT && bm_clock_is_real(&s->clock);
    bm_sending x = {.per = per == BM_BLOCK  ? "block"
                           : per == BM_STEP ? "step"
                           : real           ? "fetch of all workers"
                                            : "update of the server"};
    double moments = 0;

    if (s->code.ops != NULL)
        BM_TRY(of_codes(s, ranks, p, &x.bytes));
    else if (per == BM_BLOCK && s->block.fragments > 1)
        BM_TRY(of_fragments(s, ranks, p, &x.bytes));
    else if (real)
        BM_TRY(of_server(s, ranks, p, &x.bytes));
    else
        BM_TRY(of_sum(&s->job, ranks, p->n, &x.bytes));
    if (per == BM_BLOCK)
        BM_TRY(of_moments(s, ranks, p, &moments));
    x.bytes += moments;
    *out = x;
    return BM_OK;
}
