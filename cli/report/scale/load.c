#include "cli/report/scale/load.h"

#include "cli/report/journal_events.h"
#include "cli/report/regime.h"
#include "comm/comm.h"
#include "core/file/search_folder.h"
#include "models/net.h"
#include "recognise/recogniser.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define QUANTISE_RATE 5e9 /* of a GPU; about ten times that of a CPU */

/* Sums over the blocks of a journal. Its attempts may differ in their ranks. */
typedef struct tally {
    double blocks, frames, compute, backward, stall;
    double batches;      /* of rank 0 */
    double steps;        /* of a worker */
    double sum, squares; /* of the time of a mini-batch, per block */
    int ranks[2];        /* fewest and most of an attempt with such blocks */
    bool first;          /* the next block is the first of an attempt */
    json_t *start;       /* the last start event */
    bm_config *config;   /* of the run */
    bm_block_settings block;
    double accumulate; /* mini-batches of an update; 0: as 1 */
} tally;

static bool is_complete(const json_t *start)
{
    double ranks = bm_event_number(start, "ranks");
    double workers = bm_event_number(start, "workers");

    return json_is_string(json_object_get(start, "net")) &&
           json_is_string(json_object_get(start, "strategy")) && workers >= 1 &&
           workers <= 1e6 && ranks >= 1 && ranks <= workers;
}

/* The times are those of rank 0, the mini-batches and frames of all workers that
 * take part, which are the first ones (block.workers). */
static void add_block(tally *t, const json_t *event)
{
    int workers = (int)bm_event_number(t->start, "workers");
    int ranks = (int)bm_event_number(t->start, "ranks");
    int own = bm_first_worker(workers, ranks, 1);
    int active = bm_block_workers(
        &t->block, (int64_t)bm_event_number(event, "epoch"), workers);
    double share = (double)(own < active ? own : active) / active;
    double compute = bm_event_number(event, "compute_s");
    double batches = bm_event_number(event, "batches") * share;

    if (t->first || !(batches > 0)) { /* warming up, or an older version */
        t->first = false;
        return;
    }
    t->ranks[0] = t->blocks == 0 || ranks < t->ranks[0] ? ranks : t->ranks[0];
    t->ranks[1] = ranks > t->ranks[1] ? ranks : t->ranks[1];
    t->blocks++;
    t->batches += batches;
    t->steps += bm_event_number(event, "batches") / active;
    t->frames += bm_event_number(event, "frames") * share;
    t->compute += compute;
    t->backward += bm_event_number(event, "backward_s");
    t->stall += bm_event_number(event, "stall_s");
    t->sum += compute / batches;
    t->squares += compute / batches * compute / batches;
}

static void add_event(void *self, const char *kind, json_t *event)
{
    tally *t = self;

    if (strcmp(kind, "start") == 0) {
        json_decref(t->start);
        t->start = json_incref(event);
        t->first = true;
    } else if (strcmp(kind, "block") == 0 && is_complete(t->start)) {
        add_block(t, event);
    }
}

/* The number of layers with weights. */
static bm_status count_layers(const char *net, double *out)
{
    bm_layer *layers = NULL;
    size_t n = 0, with_weights = 0;

    BM_TRY(bm_net_parse(net, &layers, &n));
    for (size_t i = 0; i < n; i++)
        with_weights += layers[i].ops->init != NULL;
    free(layers);
    *out = (double)with_weights;
    return BM_OK;
}

/* The relative deviation of one step, from that of blocks: if steps vary
 * independently, the mean of s steps varies sqrt(s) less. It is a mean over the
 * steps of all workers of rank 0. */
static double variation(const tally *t)
{
    double mean = t->sum / t->blocks, steps = t->batches / t->blocks;
    double square = t->squares / t->blocks - mean * mean;

    return t->blocks > 1 ? sqrt(fmax(square, 0) * steps) / mean : 0;
}

/* A step is an update, of so many mini-batches (batch.accumulate); its exchange can run
 * beside the backward pass of the last of them. */
static void accumulate(bm_load *l, bm_load_source *of, double batches)
{
    if (!(batches > 1))
        return;
    l->step_s *= batches;
    l->read_s *= batches;
    l->variation /= sqrt(batches);
    l->block_steps /= batches;
    of->frames *= batches;
    of->step_s = l->step_s;
}

static bm_status measure(tally *t, const char *directory, bm_load *out,
                         bm_load_source *of)
{
    const char *net = json_string_value(json_object_get(t->start, "net"));
    const char *strategy =
        json_string_value(json_object_get(t->start, "strategy"));

    if (!is_complete(t->start))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the journal has no complete start event",
                       directory);
    if (t->blocks == 0)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: the journal has fewer than two blocks with a number "
            "of mini-batches; train longer, with this version",
            directory);
    *out = (bm_load){.weights = bm_event_number(t->start, "weights"),
                     .quantise_rate = QUANTISE_RATE,
                     .step_s = t->compute / t->batches,
                     .backward_s = t->backward / t->batches,
                     .variation = variation(t),
                     .block_steps = t->steps / t->blocks,
                     .read_s = t->stall > 0.01 * t->compute
                                   ? (t->compute + t->stall) / t->batches
                                   : 0};
    *of = (bm_load_source){.workers = (int)bm_event_number(t->start, "workers"),
                           .ranks = {t->ranks[0], t->ranks[1]},
                           .blocks = t->blocks,
                           .frames = t->frames / t->batches,
                           .step_s = out->step_s};
    snprintf(of->strategy, sizeof of->strategy, "%s", strategy);
    accumulate(out, of, t->accumulate);
    return count_layers(net, &out->layers);
}

/* [block] and batch.accumulate of the run; without a config.ini: all workers take part,
 * and a mini-batch is an update. */
static bm_status read_block(tally *t, const char *directory)
{
    const char *text = NULL;
    char path[4200];

    snprintf(path, sizeof path, "%s/config.ini", directory);
    BM_TRY(bm_config_new(&t->config));
    if (access(path, F_OK) == 0)
        BM_TRY(bm_config_read(t->config, path));
    bm_config_peek(t->config, "block", bm_block_options, &t->block);
    text = bm_config_text(t->config, "batch", "accumulate");
    t->accumulate = text != NULL ? strtod(text, NULL) : 0;
    return BM_OK;
}

bm_status bm_load_run(const char *directory, bm_load *out, bm_load_source *of)
{
    tally t = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_search_folder_refuse(directory));
    BM_TRY_DONE(read_block(&t, directory));
    status = bm_journal_events(directory, add_event, &t);
    if (status == BM_ERR_MISSING || status == BM_ERR_IO)
        BM_FAIL_DONE(status,
                     "%s is not a run: %s; for a configuration, give "
                     "--step-ms",
                     directory, bm_last_message());
    BM_TRY_DONE(status);
    BM_TRY_DONE(measure(&t, directory, out, of));
done:
    json_decref(t.start);
    bm_config_free(t.config);
    return status;
}

bm_status bm_load_settings(const bm_settings *s, const bm_dataset *data,
                           double step_s, bm_load *out, bm_load_source *of)
{
    bm_recogniser net = {0};
    bm_parts parts;
    bm_backend *be = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_backend_open(&be, "cpu", 0));
    BM_TRY_DONE(bm_parts_of(s, data, &parts));
    BM_TRY_DONE(bm_settings_locate_net(
        s, bm_recogniser_plan(&net, be, &s->model, data, 1)));
    *out = (bm_load){.weights = (double)bm_model_params(net.model)->n,
                     .quantise_rate = QUANTISE_RATE,
                     .step_s = step_s,
                     .backward_s = step_s * 2 / 3, /* two of three products */
                     .block_steps = bm_gains_of(parts.part).steps};
    *of = (bm_load_source){.workers = (int)s->job.workers,
                           .frames = parts.part->batch_frames,
                           .step_s = step_s};
    snprintf(of->strategy, sizeof of->strategy, "%s", s->train.strategy);
    accumulate(out, of, (double)s->plan.accumulate);
    status = count_layers(s->model.net, &out->layers);
done:
    bm_recogniser_close(&net);
    bm_backend_close(be);
    return status;
}

bm_status bm_load_config(const bm_arguments *a, const char *path, double step_s,
                         bm_load *out, bm_load_source *of)
{
    bm_config *config = NULL;
    bm_dataset *data = NULL;
    bm_settings set;
    bm_status status = BM_OK;

    BM_TRY(bm_settings_read(a, path, &config, &set));
    BM_TRY_DONE(bm_settings_open_data(&set, &data));
    status = bm_load_settings(&set, data, step_s, out, of);
done:
    bm_dataset_close(data);
    bm_config_free(config);
    return status;
}

bm_load bm_load_on_cores(const bm_load *one, long cores, int n)
{
    bm_load l = *one;
    double turns = cores > 0 && n > cores ? (double)n / (double)cores : 1;

    l.step_s *= turns;
    l.backward_s *= turns;
    return l;
}
