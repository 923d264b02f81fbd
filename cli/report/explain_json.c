#include "cli/report/explain_json.h"

#include "cli/json_output.h"

static void add(json_t *o, const char *key, double x)
{
    json_object_set_new(o, key, json_real(x));
}

static void add_count(json_t *o, const char *key, double n)
{
    json_object_set_new(o, key, json_integer((json_int_t)n));
}

static void add_filter(json_t *o, const bm_explained *e)
{
    const bm_gains *g = &e->gains;
    double turns = (double)e->settings->block.fragments;

    if (!e->regime.filtered)
        return;
    add(o, "block_momentum", e->regime.momentum);
    add(o, "block_rate", e->regime.rate);
    add_count(o, "nesterov", e->settings->filter.nesterov);
    add(o, "block_gain", g->block);
    add(o, "steady_gain", g->steady);
    add(o, "time_constant_blocks", turns * g->blocks);
    add(o, "time_constant_frames", turns * g->frames);
}

void bm_explain_json(json_t *o, const bm_explained *e)
{
    const bm_regime *r = &e->regime;
    const bm_filling *f = &e->filling;
    double weights = (double)bm_model_params(e->model)->n;
    double block = r->epoch_frames / e->gains.per_epoch;
    double batches = f->frames > 0 ? f->batches / f->frames : 0; /* a frame */

    json_object_set_new(o, "strategy",
                        json_string(e->settings->train.strategy));
    json_object_set_new(o, "net", json_string(e->settings->model.net));
    add_count(o, "workers", (double)e->settings->job.workers);
    add_count(o, "ranks", e->ranks);
    add_count(o, "weights", weights);
    add_count(o, "sequences", (double)e->data->n);
    add_count(o, "frames", r->epoch_frames);
    add_count(o, "features", (double)e->data->features);
    add_count(o, "classes", (double)e->data->classes);
    if (e->origin.path[0] != '\0')
        json_object_set_new(o, "from", bm_json_text(e->origin.path));
    if (e->layer_rates.n > 0) {
        add_count(o, "frozen_weights", (double)e->layer_rates.frozen);
        json_object_set_new(o, "frozen",
                            json_string(e->layer_rates.frozen_text));
        json_object_set_new(o, "rates", json_string(e->layer_rates.rates_text));
    }
    add_filter(o, e);
    add(o, "block_frames", block);
    add(o, "block_frames_per_worker", block / r->workers);
    add(o, "batches_per_worker", block / r->workers * batches);
    add(o, "all_batches_per_worker", r->epoch_frames * r->passes * batches);
    add_count(o, "blocks_per_epoch", e->gains.per_epoch);
    add_count(o, "epochs", (double)r->epochs);
    add(o, "balance", r->balance);
    add(o, "padding", f->padded > 0 ? 1 - f->frames / f->padded : 0);
    add(o, "memory_bytes", 4. * weights * e->size.memory);
    add(o, "data_bytes", 3 * e->numbers / e->gains.per_epoch / e->ranks * 4);
    add(o, "checkpoint_bytes", 4. * weights * e->size.checkpoint);
    add(o, "checkpoint_copy_bytes", 4. * weights * e->size.copied);
    if (e->ranks > 1) {
        add(o, "sent_bytes", e->sending.bytes);
        json_object_set_new(o, "sent_per", json_string(e->sending.per));
    }
}
