#include "cli/train/training.h"

#include "bmuf/strategies/fragments.h"
#include "bmuf/trainer/infeasible.h"
#include "cli/conditions.h"
#include "cli/machine.h"
#include "cli/report/regime.h"
#include "cli/train/same_contents.h"
#include "io/augment/augment_text.h"
#include "sgd/layer_rates.h"

#include <stdlib.h>

bm_params *bm_training_params(const bm_training *t)
{
    return bm_model_params(t->net.model);
}

bool bm_training_first(const bm_training *t)
{
    return bm_comm_rank(t->comm) == 0;
}

void bm_training_digest(const bm_training *t, char out[BM_WEIGHTS_DIGEST])
{
    bm_weights_digest(t->host, bm_training_params(t)->n, out);
}

/* Shares of the same blocks are read and computed twice. */
static bm_audit_settings audit_of(const bm_training *t)
{
    bool blocks = bm_strategy_find(t->set->train.strategy)->per == BM_BLOCK;

    return (bm_audit_settings){blocks ? t->set->job.audit : 0,
                               (uint64_t)t->set->job.seed};
}

/* The number of workers on this rank; *first is the lowest. */
static int hosted(const bm_training *t, int *first)
{
    int rank = bm_comm_rank(t->comm), n = (int)t->set->job.workers;

    *first = bm_comm_first(t->comm, n, rank);
    return bm_comm_first(t->comm, n, rank + 1) - *first;
}

static void describe_dev(bm_training *t)
{
    const bm_dataset *d = t->dev;

    snprintf(t->dev_about, sizeof t->dev_about,
             "%zu sequences, %lld frames, %lld labels, digest %016llx", d->n,
             (long long)d->frames, (long long)d->labels,
             (unsigned long long)d->hash);
}

static bm_status open_data(bm_training *t)
{
    const bm_data_settings *d = &t->set->data;

    BM_TRY(bm_settings_open_data(t->set, &t->train));
    if (d->dev[0] != '\0') {
        BM_TRY(bm_dataset_open(&t->dev, d->dev));
        describe_dev(t);
    }
    if (d->test[0] != '\0')
        BM_TRY(bm_dataset_open(&t->test, d->test));
    t->n_epochs = bm_settings_epochs(t->set, t->train);
    return BM_OK;
}

static bm_status compare_set(const bm_training *t, const char *key,
                             const bm_dataset *d)
{
    char digest[32] = "";

    if (d != NULL)
        snprintf(digest, sizeof digest, "%016llx", (unsigned long long)d->hash);
    return bm_same_contents(t->comm, key, d != NULL ? d->directory : "",
                            digest);
}

/* Collective. */
static bm_status compare_data(const bm_training *t)
{
    BM_TRY(compare_set(t, "data.train", t->train));
    BM_TRY(compare_set(t, "data.dev", t->dev));
    return compare_set(t, "data.test", t->test);
}

/* Collective. */
static bm_status compare_origin(const bm_training *t)
{
    const bm_origin *o = &t->origin;

    if (o->path[0] == '\0')
        return BM_OK;
    return bm_same_contents(t->comm, o->branches ? "train.from" : "train.init",
                            o->path, o->digest);
}

static void log_advice(void *self, const char *text)
{
    if (bm_training_first(self))
        bm_log(BM_WARNING, "%s", text);
}

/* Before the weights take memory. */
static bm_status advise_memory(bm_training *t)
{
    const bm_params *p = bm_training_params(t);
    bm_footprint size = {0};

    if (!bm_on_host(p->be))
        return BM_OK;
    BM_TRY(bm_trainer_footprint(t->config, bm_comm_size(t->comm), &size));
    bm_machine_advise(&size, p->n, t->comm, log_advice, t);
    return BM_OK;
}

static bm_status open_network(bm_training *t)
{
    const bm_settings *s = t->set;
    int first = 0, n = hosted(t, &first);
    bm_params *p = NULL;
    char text[300];

    n += audit_of(t).fraction > 0; /* scores of audits */
    BM_TRY(bm_settings_locate_net(
        s, bm_recogniser_plan(&t->net, t->device->be, &s->model, t->train, n)));
    BM_TRY(advise_memory(t));
    BM_TRY(bm_model_draw(t->net.model, (uint64_t)s->job.seed));
    bm_model_smooth(t->net.model, s->train.label_smoothing);
    BM_TRY(bm_origin_take(&t->origin, &s->train, t->newest, &t->net, t->train));
    BM_TRY(bm_infeasible_check_data(t->net.model, t->train, "data.train"));
    if (bm_infeasible_describe(t->net.model, t->train, "data.train", text,
                               sizeof text))
        log_advice(t, text);
    BM_TRY(bm_recogniser_scores(&t->net, t->dev));
    BM_TRY(bm_recogniser_scores(&t->net, t->test));
    BM_TRY(bm_infeasible_check_longest(t->net.model, t->train, "data.train"));
    BM_TRY(bm_infeasible_check_longest(t->net.model, t->dev, "data.dev"));
    BM_TRY(bm_infeasible_check_longest(t->net.model, t->test, "data.test"));
    p = bm_training_params(t);
    t->host = malloc((p->n + 1) * sizeof *t->host);
    if (t->host == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", p->n);
    return bm_alloc(p->be, p->n, &t->kept);
}

/* Logs eta and zeta, which a strategy may derive from other settings. */
static void log_filter(const bm_training *t, const bm_regime *what)
{
    const bm_settings *s = t->set;
    bm_gains g = bm_gains_of(what);

    if (!what->filtered)
        return;
    if (what->renamed)
        bm_log(BM_NOTE, "train.strategy = %s: %s", s->train.strategy,
               bm_strategy_find(s->train.strategy)->help);
    bm_log(
        BM_NOTE,
        "train.strategy = %s has eta = %.6g, zeta = %.6g, %s block momentum; "
        "block gain %.6g, steady gain %.6g",
        s->train.strategy, what->momentum, what->rate,
        s->filter.nesterov ? "Nesterov" : "classical", g.block, g.steady);
}

/* Logs how sequences are changed. */
static void advise_augment(bm_training *t)
{
    bm_layout layout = bm_layout_of(bm_shard_features_text(t->train->shards[0]),
                                    t->train->features);
    char text[800];

    bm_augment_describe(&t->set->augment, &layout, text, sizeof text);
    if (bm_training_first(t) && text[0] != '\0')
        bm_log(BM_NOTE, "augmented: %s", text);
    bm_augment_advise(&t->set->augment, &layout, log_advice, t);
}

/* Logs warnings about the settings. Fails with BM_ERR_MEMORY. */
static bm_status advise(bm_training *t)
{
    bm_parts parts;
    bm_regime *first = parts.part;

    BM_TRY(bm_parts_of(t->set, t->train, &parts));
    first->begun = t->newest[0] != '\0';
    first->dev_is_train = t->dev != NULL && t->dev->hash == t->train->hash;
    t->momentum = first->momentum;
    t->block_rate = first->rate;
    log_filter(t, first);
    bm_conditions_check(t->config, log_advice, t);
    advise_augment(t);
    bm_advise_on_changes(t->set, &parts, log_advice, t);
    bm_advise(parts.part, parts.n, log_advice, t);
    return BM_OK;
}

/* Fails if the model has too few layers for block.fragments. */
static bm_status check_fragments(const bm_training *t)
{
    long n = t->set->block.fragments;
    size_t *begin = calloc((size_t)n + 1, sizeof *begin);
    bm_status status = BM_OK;

    if (begin == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %ld fragments", n);
    status = bm_fragments_cut(bm_training_params(t), n, begin);
    free(begin);
    return status;
}

static void log_origin(void *self, const char *text)
{
    if (bm_training_first(self))
        bm_log(BM_NOTE, "%s", text);
}

/* Fails if train.freeze or train.rates do not fit the network. */
static bm_status check_layer_rates(const bm_training *t)
{
    const bm_train_settings *s = &t->set->train;
    bm_layer_rates layer_rates = {0};

    BM_TRY(bm_layer_rates_read(&layer_rates, bm_training_params(t), s->freeze,
                               s->rates));
    if (bm_training_first(t) && layer_rates.frozen > 0)
        bm_log(BM_NOTE, "frozen: %s, %zu of %zu weights",
               layer_rates.frozen_text, layer_rates.frozen,
               bm_training_params(t)->n_learned);
    if (bm_training_first(t) && layer_rates.rates_text[0] != '\0')
        bm_log(BM_NOTE, "factors of train.rate: %s", layer_rates.rates_text);
    bm_layer_rates_free(&layer_rates);
    return BM_OK;
}

static bm_status check_network(bm_training *t)
{
    BM_TRY(check_fragments(t));
    BM_TRY(check_layer_rates(t));
    bm_origin_describe(&t->origin, log_origin, t);
    return advise(t);
}

bm_status bm_training_open(bm_training *t)
{
    BM_TRY(bm_comm_agree(t->comm, open_data(t)));
    BM_TRY(compare_data(t));
    BM_TRY(bm_origin_find(&t->origin, &t->set->train, t->newest, t->comm));
    BM_TRY(bm_comm_agree(t->comm, open_network(t)));
    BM_TRY(compare_origin(t));
    return bm_comm_agree(t->comm, check_network(t));
}

static bm_status open_evaluator(bm_training *t, bm_dataset *data,
                                bm_evaluator **out)
{
    if (data == NULL)
        return BM_OK;
    return bm_evaluator_open(out, t->comm, t->net.model, data, &t->set->plan,
                             (int)t->set->job.workers);
}

/* The largest mini-batch of all sets; readers are not open yet. */
static bm_status choose_probe(bm_training *t)
{
    const bm_plan_settings *plan = &t->set->plan;
    double stretch = 1;
    bm_speeds speeds;

    if (bm_speeds_read(t->set->augment.speed, &speeds))
        stretch = bm_speeds_stretch(&speeds);
    BM_TRY(bm_probe_choose(&t->probe, plan, t->train, stretch, "data.train"));
    if (t->dev != NULL)
        BM_TRY(bm_probe_choose(&t->probe, plan, t->dev, 1, "data.dev"));
    if (t->test != NULL)
        BM_TRY(bm_probe_choose(&t->probe, plan, t->test, 1, "data.test"));
    return BM_OK;
}

/* After all that training keeps in memory. */
static bm_status run_probe(bm_training *t)
{
    int first = 0;

    if (hosted(t, &first) == 0)
        return BM_OK;
    return bm_probe_run(&t->probe, t->net.model);
}

static bm_status open_learner(bm_training *t)
{
    int first = 0, n = hosted(t, &first);
    uint64_t seed = (uint64_t)t->set->job.seed;
    bm_reader_settings reading = {.plan = t->set->plan,
                                  .workers = (int)t->set->job.workers,
                                  .first = first,
                                  .last = first + n,
                                  .seed = seed,
                                  .audit = audit_of(t),
                                  .augment = &t->set->augment,
                                  .fit = bm_infeasible_fit(t->net.model)};
    bm_position start = {0, 0};

    bm_audited_workers(reading.workers, bm_comm_size(t->comm),
                       bm_comm_rank(t->comm), &reading.audit_first,
                       &reading.audit_last);

    BM_TRY(bm_reader_open(&t->reader, t->train, t->net.be, &reading, start));
    BM_TRY(bm_learner_open(&t->learner, t->net.model, t->reader, seed, first,
                           first + n));
    return bm_learner_accumulate(t->learner, t->set->plan.accumulate);
}

/* Collective. Recordings of noise are drawn by number from a folder. */
static bm_status compare_folders(const bm_training *t)
{
    char digest[32];

    snprintf(digest, sizeof digest, "%016llx",
             (unsigned long long)bm_reader_folders_digest(t->reader));
    return bm_same_contents(t->comm, "augment.reverb and augment.noise_sound",
                            "folders", digest);
}

/* After the trainer. */
static bm_status open_rest(bm_training *t)
{
    BM_TRY(open_evaluator(t, t->dev, &t->on_dev));
    BM_TRY(open_evaluator(t, t->test, &t->on_test));
    t->schedule =
        bm_schedule_make(&t->set->schedule, t->set->train.rate, t->n_epochs);
    BM_TRY(bm_saver_open(&t->saver, t->comm));
    t->n_states = bm_trainer_states(t->trainer);
    t->states = calloc(t->n_states, sizeof *t->states);
    if (t->states == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a list of states");
    return bm_run_settings_text(t->config, &t->config_text);
}

/* Each step fails on all ranks or on none: the next one is collective. */
bm_status bm_training_start(bm_training *t)
{
    bm_task task = {0};

    bm_tracing_open(&t->tracing, t->set->job.trace);
    BM_TRY(bm_comm_agree(t->comm, choose_probe(t)));
    BM_TRY(bm_comm_agree(t->comm, open_learner(t)));
    BM_TRY(compare_folders(t));
    task = bm_learner_task(t->learner);
    BM_TRY(
        bm_comm_agree(t->comm, bm_trainer_open(&t->trainer, t->config, t->comm,
                                               bm_training_params(t), &task)));
    BM_TRY(bm_comm_agree(t->comm, open_rest(t)));
    return bm_comm_agree(t->comm, run_probe(t));
}

void bm_training_close(bm_training *t)
{
    bm_probe_free(&t->probe);
    bm_saver_close(t->saver);
    bm_tracing_close(&t->tracing);
    bm_evaluator_close(t->on_dev);
    bm_evaluator_close(t->on_test);
    bm_trainer_close(t->trainer);
    bm_learner_close(t->learner);
    bm_reader_close(t->reader);
    bm_free(t->net.be, t->kept);
    free(t->host);
    free(t->states);
    free(t->config_text);
    bm_recogniser_close(&t->net);
    bm_dataset_close(t->train);
    bm_dataset_close(t->dev);
    bm_dataset_close(t->test);
    bm_telemetry_close(t->telemetry); /* the reader's thread may log */
}
