#include "cli/report/load.h"

#include "cli/recogniser.h"
#include "cli/report/explain.h"
#include "core/file.h"
#include "models/net.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What is added up over the blocks of a journal. */
typedef struct tally {
    double blocks, batches, frames, compute, backward, stall;
    double sum, squares; /* of a mini-batch's time in each block */
    bool first;          /* the next block is an attempt's first */
    json_t *start;       /* the last one */
} tally;

static double number(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static void add_block(tally *t, const json_t *event)
{
    double compute = number(event, "compute_s");
    double batches = number(event, "batches") / number(t->start, "ranks");

    if (t->first || !(batches > 0)) { /* cold, or of an older program */
        t->first = false;
        return;
    }
    t->blocks++;
    t->batches += batches;
    t->frames += number(event, "frames") / number(t->start, "ranks");
    t->compute += compute;
    t->backward += number(event, "backward_s");
    t->stall += number(event, "stall_s");
    t->sum += compute / batches;
    t->squares += compute / batches * compute / batches;
}

static void add_line(tally *t, const char *line)
{
    json_t *event = json_loads(line, 0, NULL);
    const char *kind = json_string_value(json_object_get(event, "event"));

    if (kind != NULL && strcmp(kind, "start") == 0) {
        json_decref(t->start);
        t->start = json_incref(event);
        t->first = true;
    } else if (kind != NULL && strcmp(kind, "block") == 0 && t->start != NULL) {
        add_block(t, event);
    }
    json_decref(event);
}

/* Layers of a network that have something to send. */
static bm_status count_layers(const char *net, double *out)
{
    bm_layer *layers = NULL;
    size_t n = 0, learning = 0;

    BM_TRY(bm_net_parse(net, &layers, &n));
    for (size_t i = 0; i < n; i++)
        learning += layers[i].ops->init != NULL;
    free(layers);
    *out = (double)learning;
    return BM_OK;
}

/* Steps that vary on their own make a block of s of them vary sqrt(s) less. */
static double variation(const tally *t, double steps)
{
    double mean = t->sum / t->blocks;
    double square = t->squares / t->blocks - mean * mean;

    return t->blocks > 1 ? sqrt(fmax(square, 0) * steps) / mean : 0;
}

static bm_status settle(tally *t, const char *path, bm_load *out,
                        bm_load_source *of)
{
    const char *net = json_string_value(json_object_get(t->start, "net"));
    const char *strategy =
        json_string_value(json_object_get(t->start, "strategy"));
    double ranks = number(t->start, "ranks");
    double workers = number(t->start, "workers");
    double steps = t->batches * ranks / workers / fmax(t->blocks, 1);

    if (net == NULL || strategy == NULL || !(workers > 0) || !(ranks > 0))
        return BM_FAIL(BM_ERR_FORMAT, "%s: no run has started there", path);
    if (t->blocks == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: it takes two blocks or more of a run to tell how "
                       "fast it is, and their number of mini-batches, which "
                       "programs before this one did not note",
                       path);
    *out = (bm_load){.weights = number(t->start, "weights"),
                     .step_s = t->compute / t->batches,
                     .backward_s = t->backward / t->batches,
                     .variation = variation(t, steps),
                     .block_steps = steps,
                     .read_s = t->stall > 0.01 * t->compute
                                   ? (t->compute + t->stall) / t->batches
                                   : 0};
    *of = (bm_load_source){.workers = (int)workers,
                           .ranks = (int)ranks,
                           .blocks = t->blocks,
                           .frames = t->frames / t->batches,
                           .step_s = out->step_s};
    snprintf(of->strategy, sizeof of->strategy, "%s", strategy);
    return count_layers(net, &out->layers);
}

bm_status bm_load_run(const char *directory, bm_load *out, bm_load_source *of)
{
    tally t = {0};
    char path[4096], *text = NULL, *rest = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    snprintf(path, sizeof path, "%s/journal.jsonl", directory);
    BM_TRY(bm_file_read(path, (size_t)1 << 32, &text, &size));
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        add_line(&t, line);
    status = settle(&t, path, out, of);
    json_decref(t.start);
    free(text);
    return status;
}

static bm_status look(const bm_settings *s, const bm_dataset *data,
                      double step_s, bm_load *out, bm_load_source *of)
{
    bm_recogniser net = {0};
    bm_setting what = {0};
    bm_plan *plan = NULL;
    bm_backend *be = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_backend_open(&be, "cpu", 0));
    BM_TRY_DONE(bm_first_plan(s, data, &plan));
    BM_TRY_DONE(bm_setting_of(s, data, plan, &what));
    BM_TRY_DONE(
        bm_recogniser_new(&net, be, &s->model, data, 1, (uint64_t)s->job.seed));
    *out = (bm_load){.weights = (double)bm_model_params(net.model)->n,
                     .step_s = step_s,
                     .backward_s = step_s * 2 / 3, /* two products for one */
                     .block_steps = bm_gains_of(&what).steps};
    *of = (bm_load_source){
        .workers = what.workers, .frames = what.batch_frames, .step_s = step_s};
    snprintf(of->strategy, sizeof of->strategy, "%s", s->train.strategy);
    status = count_layers(s->model.net, &out->layers);
done:
    bm_recogniser_close(&net);
    bm_backend_close(be);
    bm_plan_free(plan);
    return status;
}

bm_status bm_load_config(const bm_arguments *a, const char *path, double step_s,
                         bm_load *out, bm_load_source *of)
{
    bm_config *config = NULL;
    bm_dataset *data = NULL;
    bm_settings set;
    bm_status status = BM_OK;

    BM_TRY(bm_settings_read(a, path, 1, &config, &set));
    BM_TRY_DONE(bm_dataset_open(&data, set.data.train));
    status = look(&set, data, step_s, out, of);
done:
    bm_dataset_close(data);
    bm_config_free(config);
    return status;
}
