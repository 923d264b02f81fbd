/*
 * cluster.c - how long trials take on the cluster of tune.network, and when
 * they reach tune.target there: errors from the run on this computer, seconds
 * from the model of docs/scaling.md.
 */
#include "cli/report/regime.h"
#include "cli/report/scale/network.h"
#include "cli/tune/tuning.h"

#include <math.h>
#include <string.h>

#define VARIATION 0.05 /* of a step, where it is not measured */

/* The method that forecasts a strategy. */
static const bm_forecast_method *method_of(const bm_settings *s)
{
    const char *name = s->train.strategy;
    const char *overlap = bm_config_text(s->config, "ssgd", "overlap");
    const bm_forecast_method *m = bm_forecast_methods;

    if (strcmp(name, "ssgd") == 0 && overlap != NULL &&
        strcmp(overlap, "none") != 0)
        name = "overlap";
    else if (s->block.overlap)
        name = "late";
    while (m->name != NULL && strcmp(m->name, name) != 0)
        m++;
    return m->name != NULL ? m : bm_forecast_methods; /* a block strategy */
}

/* By job.sum and job.topology. */
static bm_status exchange_of(const bm_settings *s, const bm_network *network,
                             bm_exchange_cost *out)
{
    *out = (bm_exchange_cost){bm_sum_cost_find(s->job.sum), network->fabric};
    BM_ASSERT(out->sum != NULL);
    if (strcmp(s->job.topology, "auto") == 0)
        return BM_OK;
    return bm_fabric_topology(&out->fabric, s->job.topology);
}

/* Time of a frame of a worker, from tune.step_ms or else from the run of the
 * given configuration with this seed. */
static bm_status measure_frame(const bm_tuning *t, long seed, double *frame_s,
                               double *variation)
{
    char directory[PATH_MAX];
    bm_load load;
    bm_load_source of;

    *variation = VARIATION;
    *frame_s = 1e-3 * t->set.step_ms / t->regime.batch_frames;
    if (t->set.step_ms > 0)
        return BM_OK;
    bm_trial_directory(t, (bm_tune_job){.seed = seed}, directory);
    BM_TRY(bm_load_run(directory, &load, &of));
    *frame_s = load.step_s / of.frames;
    *variation = load.variation;
    return BM_OK;
}

/* How long the epochs of a trial take on the cluster. */
typedef struct pace {
    bm_parts parts;
    double epoch_s[BM_SERIES_MOST]; /* of an epoch of each part */
} pace;

static bm_status pace_of(const bm_tuning *t, bm_tune_job job,
                         const bm_settings *s, pace *out)
{
    bm_network network;
    bm_exchange_cost x;
    bm_load load;
    bm_load_source of;
    double frame_s = 0, variation = 0;
    int n = (int)s->job.workers;

    /* The first seed's run may go on while another one of trial 0 has ended. */
    BM_TRY(
        measure_frame(t, job.trial == 0 ? job.seed : 0, &frame_s, &variation));
    BM_TRY(bm_network_read(t->set.network, &network));
    BM_TRY(exchange_of(s, &network, &x));
    BM_TRY(bm_parts_of(s, t->train, &out->parts));
    for (size_t i = 0; i < out->parts.n; i++) {
        const bm_regime *r = &out->parts.part[i];

        BM_TRY(bm_load_settings(s, t->train, frame_s * r->batch_frames, &load,
                                &of));
        load.block_steps = bm_gains_of(r).steps;
        load.variation = variation;
        load = bm_load_on_cores(&load, network.cores, n);
        out->epoch_s[i] = r->epoch_frames / r->workers / r->batch_frames *
                          bm_forecast_step(method_of(s), &load, &x, n);
    }
    return BM_OK;
}

/* Of so many epochs from the beginning, also of a fraction. */
static double seconds_of(const pace *p, double epochs)
{
    double sum = 0;

    for (size_t i = 0; i < p->parts.n; i++) {
        const bm_regime *r = &p->parts.part[i];

        sum += p->epoch_s[i] * fmin(fmax(epochs - r->from, 0), r->lasts);
    }
    return sum;
}

/* Epochs, with a fraction, until the line through the errors after each epoch
 * falls to the target; NAN: it does not. Nothing is learnt before the first. */
static double crossing(const bm_run_summary *run, size_t epochs, double target)
{
    double before = 1;

    for (size_t e = 0; e < epochs && e < run->n_epochs; e++) {
        double ler = run->epochs[e].dev_ler;

        if (ler <= target)
            return (double)e + (before - target) / (before - ler);
        if (!isnan(ler))
            before = ler;
    }
    return NAN;
}

bm_status bm_trial_time(const bm_tuning *t, const bm_run_summary *run,
                        bm_tune_result *r)
{
    size_t epochs = bm_trial_trained(t, run, r->job);
    bm_config *config = NULL;
    bm_settings set;
    pace p;
    double target = t->set.target / 100,
           reached = crossing(run, epochs, target);
    bm_status status = BM_OK;

    BM_TRY(bm_trial_settings(t, &t->trials[r->job.trial], &config, &set));
    status = pace_of(t, r->job, &set, &p);
    bm_config_free(config);
    BM_TRY(status);
    r->cluster_s = seconds_of(&p, (double)epochs);
    r->target_s = isnan(reached) ? NAN : seconds_of(&p, reached);
    r->score = isnan(r->target_s) ? log(r->cluster_s * r->ler / target)
                                  : log(r->target_s);
    return BM_OK;
}
