#include "cli/report/explain.h"

#include "bmuf/strategies/fragments.h"
#include "bmuf/trainer/infeasible.h"
#include "cli/conditions.h"
#include "cli/json_output.h"
#include "cli/machine.h"
#include "cli/report/explain_json.h"
#include "cli/report/regime.h"
#include "cli/report/traffic.h"
#include "cli/train/origin.h"
#include "cli/verbs.h"
#include "core/text/words.h"
#include "io/augment/augment_text.h"
#include "io/batch/sound_augment.h"
#include "recognise/recogniser.h"
#include "sgd/layer_rates.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLED_BLOCKS = 8 };

static void print_local(const bm_sgd_settings *s, FILE *out)
{
    static const char *const fates[] = {
        [BM_LOCAL_RESET] = "reset at block starts",
        [BM_LOCAL_KEEP] = "kept by each worker",
        [BM_LOCAL_AVERAGE] = "averaged at block ends",
        [BM_LOCAL_EXTRAPOLATE] = "averaged and extrapolated at block ends"};

    fprintf(out, "local update      %s", bm_sgd_title(s));
    if (bm_sgd_has_state(s))
        fprintf(out, ", its state %s", fates[bm_sgd_local_state(s)]);
    fprintf(out, "\n");
}

static void print_filter(const bm_explained *e, FILE *out)
{
    const bm_gains *g = &e->gains;
    double turns = (double)e->settings->block.fragments;

    fprintf(
        out,
        "block gain        %.6g          (zeta: weight of a block update "
        "at once)\n"
        "steady gain       %.6g          (zeta / (1 - eta): its weight over "
        "all blocks)\n"
        "block momentum    %.6g          (eta, %s)\n",
        g->block, g->steady, e->regime.momentum,
        e->settings->filter.nesterov ? "Nesterov" : "classical");
    if (g->blocks > 0)
        fprintf(out,
                "time constant     %.4g blocks = %.4g frames of all workers\n",
                turns * g->blocks, turns * g->frames);
}

/* The mini-batches of up to SAMPLED_BLOCKS blocks, spread over the epoch. */
static bm_status sample_blocks(const bm_plan *plan, bm_filling *out)
{
    int64_t blocks = bm_plan_blocks(plan);
    int64_t n = blocks < SAMPLED_BLOCKS ? blocks : SAMPLED_BLOCKS;

    for (int64_t i = 0; i < n; i++)
        BM_TRY(bm_plan_fill(plan, i * blocks / n, out));
    return BM_OK;
}

/* All other lines describe the first epoch. */
static void print_change(void *self, const char *name, const char *text,
                         const bm_series *x)
{
    (void)x;
    fprintf(self, "changes           %s = %s\n", name, text);
}

/* 16 and 64 workers with fewer mini-batches each made 2 to 30 % more errors than
 * one (experiments/scaleup). */
enum { MANY_WORKERS = 16, FEW_BATCHES = 20000 };

static void print_blocks(const bm_explained *e, FILE *out)
{
    const bm_regime *s = &e->regime;
    const bm_filling *f = &e->filling;
    int workers = (int)e->settings->job.workers;
    double share = s->epoch_frames / e->gains.per_epoch / s->workers;
    double batches = f->frames > 0 ? f->batches / f->frames : 0; /* a frame */
    double each = s->epoch_frames * s->passes * batches;

    fprintf(out,
            "block             %.0f frames = %.0f per worker = about %.1f "
            "mini-batches per worker\n"
            "blocks            %.0f per epoch, %.0f in %s\n"
            "mini-batches      about %.0f of each worker in all epochs\n",
            share * s->workers, share, share * batches, e->gains.per_epoch,
            e->blocks, bm_count_noun(s->epochs, "epoch").text, each);
    if (workers >= MANY_WORKERS && each < FEW_BATCHES && !s->workers_change)
        fprintf(out,
                "                  few for %d workers; start with fewer, such "
                "as block.workers = %d@0 %d@1:\n                  "
                "docs/tuning.md, How to choose, 5 and 6\n",
                workers, workers / 4, workers);
    fprintf(out,
            "balance           workers of equal speed are busy %.0f %% of "
            "the time\n",
            100 * s->balance);
    fprintf(out, "padding           %.1f %% of the frames in mini-batches\n",
            f->padded > 0 ? 100 * (1 - f->frames / f->padded) : 0);
}

static void print_fragments(const size_t *begin, long n, FILE *out)
{
    fprintf(out, "fragments         %ld, each exchanged every %ld blocks:", n,
            n);
    for (long f = 0; f < n; f++)
        fprintf(out, " %zu", begin[f + 1] - begin[f]);
    fprintf(out, " weights\n");
}

/* Settings of [block] that change how blocks are exchanged. */
static void print_block_options(const bm_explained *e, FILE *out)
{
    const bm_block_settings *s = &e->settings->block;

    if (s->workers.n == 1 && s->workers.value[0] > 0)
        fprintf(out, "taking part       %.0f workers\n", s->workers.value[0]);
    if (s->warmup > 0)
        fprintf(out,
                "warm-up           %s that average gradients at every step\n",
                bm_count_noun(s->warmup, "block").text);
    if (s->seconds > 0)
        fprintf(
            out,
            "time              a rank has %.4g s for its shares of a block; "
            "the rest is\n"
            "                  skipped, and runs are not reproducible\n",
            s->seconds);
    if (s->overlap)
        fprintf(out,
                "overlap           a block is exchanged during the next one, "
                "and takes effect at\n"
                "                  its end\n");
    if (e->fragments != NULL)
        print_fragments(e->fragments, s->fragments, out);
}

/* Numbers of an epoch in memory, at the slowest speed that is drawn. */
static double numbers_of(const bm_augment_settings *s, double frames,
                         size_t features)
{
    bm_speeds speeds;

    return frames * (double)features *
           (bm_speeds_read(s->speed, &speeds) ? bm_speeds_stretch(&speeds) : 1);
}

static void print_cost(const bm_explained *e, FILE *out)
{
    const bm_footprint *size = &e->size;
    double weights = (double)bm_model_params(e->model)->n;
    double share = e->numbers / e->gains.per_epoch / e->ranks;

    fprintf(out,
            "memory            about %.0f MB a rank for weights and states, "
            "%.0f MB for blocks of data\n"
            "checkpoint        about %.3g MB\n",
            4e-6 * weights * size->memory, 3 * share * 4e-6,
            4e-6 * weights * size->checkpoint);
    if (size->copied > 0)
        fprintf(out,
                "                  of which a rank copies %.3g MB, counted in "
                "its memory, and goes on\n"
                "                  training while they are written\n",
                4e-6 * weights * size->copied);
}

/* What guards against faults besides checkpoints. */
static void print_guards(const bm_explained *e, FILE *out)
{
    const bm_settings *s = e->settings;

    if (s->train.checkpoint_copies[0] != '\0')
        fprintf(out, "copies            of each checkpoint in %s\n",
                s->train.checkpoint_copies);
    if (s->job.audit > 0 && e->regime.blocks)
        fprintf(out,
                "audit             about %.3g of %.0f blocks are computed "
                "twice, on two ranks\n",
                s->job.audit * e->blocks, e->blocks);
}

static void print_sending(const bm_sending *x, int ranks, FILE *out)
{
    if (ranks > 1)
        fprintf(out,
                "exchange          %.1f MB sent by the busiest of %d ranks per "
                "%s;\n"
                "                  at 1 GB/s %.3g s, below 5 %% of the time if "
                "that takes %.3g s or\n"
                "                  longer\n",
                1e-6 * x->bytes, ranks, x->per, 1e-9 * x->bytes,
                19e-9 * x->bytes);
}

/* Where an explanation goes, and of what run it is. */
typedef struct destination {
    FILE *out;
    json_t *json, *warnings; /* NULL: text alone */
    const char *newest;      /* checkpoint of a run that has begun; "": none */
} destination;

static void print_advice(void *self, const char *text)
{
    const destination *to = self;

    fprintf(to->out, "warning: %s\n", text);
    if (to->warnings != NULL)
        json_array_append_new(to->warnings, json_string(text));
}

/* Opens the network; fails if data do not fit it. */
static bm_status open_network(bm_explained *e, bm_dataset *data, bm_backend *be,
                              const char *newest, bm_recogniser *net)
{
    const bm_settings *s = e->settings;
    const char *others[] = {s->data.dev, s->data.test};
    static const char *const names[] = {"data.dev", "data.test"};
    bm_status status = BM_OK;

    BM_TRY(bm_settings_locate_net(
        s, bm_recogniser_plan(net, be, &s->model, data, 1)));
    status = bm_origin_find(&e->origin, &s->train, newest, NULL);
    if (status == BM_OK && e->origin.path[0] != '\0')
        status = bm_model_draw(net->model, (uint64_t)s->job.seed);
    if (status == BM_OK)
        status = bm_origin_take(&e->origin, &s->train, newest, net, data);
    if (status == BM_OK)
        status = bm_infeasible_check_longest(net->model, data, "data.train");
    for (size_t i = 0; i < 2 && status == BM_OK; i++) {
        bm_dataset *other = NULL;

        if (others[i][0] == '\0')
            continue;
        status = bm_dataset_open(&other, others[i]);
        if (status == BM_OK)
            status = bm_recogniser_scores(net, other);
        if (status == BM_OK)
            status = bm_infeasible_check_longest(net->model, other, names[i]);
        if (status == BM_OK && i == 0)
            e->parts.part->dev_is_train = other->hash == data->hash;
        bm_dataset_close(other);
    }
    if (status != BM_OK)
        bm_recogniser_close(net);
    return status;
}

/* How many sequences the model cannot use. */
static void print_infeasible(const bm_explained *e, destination *to)
{
    char text[300];

    if (bm_infeasible_describe(e->model, e->data, "data.train", text,
                               sizeof text))
        print_advice(to, text);
}

static void print_start(void *out, const char *text)
{
    fprintf(out, "start             %s\n", text);
}

/* Fails if what changes recordings cannot be opened. */
static bm_status check_sound(const bm_augment_settings *s, bm_dataset *data)
{
    bm_sound_augmenter *sound = NULL;

    BM_TRY(bm_sound_augmenter_open(&sound, data, NULL, s));
    bm_sound_augmenter_close(sound);
    return BM_OK;
}

/* How sequences are changed before they are trained on. */
static void print_augment(const bm_augment_settings *s, const bm_dataset *data,
                          destination *to)
{
    bm_layout layout =
        bm_layout_of(bm_shard_features_text(data->shards[0]), data->features);
    char text[800];

    bm_augment_describe(s, &layout, text, sizeof text);
    if (text[0] != '\0')
        fprintf(to->out, "augment           %s\n", text);
    bm_augment_advise(s, &layout, print_advice, to);
}

static void print_layer_rates(const bm_layer_rates *p, size_t weights,
                              FILE *out)
{
    if (p->frozen > 0)
        fprintf(out, "frozen            %s: %zu of %zu weights\n",
                p->frozen_text, p->frozen, weights);
    if (p->rates_text[0] != '\0')
        fprintf(out, "rates             of %s times train.rate\n",
                p->rates_text);
}

static bm_status cut_fragments(const bm_params *params, long n, size_t **out)
{
    if (n < 2)
        return BM_OK;
    *out = calloc((size_t)n + 1, sizeof **out);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %ld fragments", n);
    return bm_fragments_cut(params, n, *out);
}

/* What depends on the network. */
static bm_status measure(bm_explained *e, bm_dataset *data)
{
    const bm_settings *s = e->settings;
    bm_params *params = bm_model_params(e->model);

    BM_TRY(bm_layer_rates_read(&e->layer_rates, params, s->train.freeze,
                               s->train.rates));
    BM_TRY(bm_infeasible_check_data(e->model, data, "data.train"));
    BM_TRY(bm_count_blocks(s, data, e->regime.epochs, &e->blocks));
    BM_TRY(cut_fragments(params, s->block.fragments, &e->fragments));
    BM_TRY(bm_sending_of(s, e->ranks, params, &e->sending));
    return bm_trainer_footprint(e->config, e->ranks, &e->size);
}

static void print(const bm_explained *e, destination *to)
{
    FILE *out = to->out;
    const bm_settings *s = e->settings;

    fprintf(out, "data              %s, %s of %s, %s\n",
            bm_count_noun((long long)e->data->n, "sequence").text,
            bm_count_noun((long long)e->regime.epoch_frames, "frame").text,
            bm_count_noun((long long)e->data->features, "feature").text,
            bm_count_noun((long long)e->data->classes, "class").text);
    print_augment(&s->augment, e->data, to);
    bm_model_print(e->model, out);
    bm_origin_describe(&e->origin, print_start, out);
    print_layer_rates(&e->layer_rates, bm_model_params(e->model)->n_learned,
                      out);
    print_infeasible(e, to);
    fprintf(out, "strategy          %s, %s on %s\n", s->train.strategy,
            bm_count_noun(s->job.workers, "worker").text,
            bm_count_noun(e->ranks, "rank").text);
    if (e->regime.filtered && e->regime.renamed)
        fprintf(out, "                  %s\n",
                bm_strategy_find(s->train.strategy)->help);
    if (e->regime.blocks)
        print_local(&s->sgd, out);
    if (e->regime.filtered)
        print_filter(e, out);
    bm_each_change(e->config, print_change, out);
    print_blocks(e, out);
    print_block_options(e, out);
    print_cost(e, out);
    print_guards(e, out);
    print_sending(&e->sending, e->ranks, out);
    bm_conditions_check(e->config, print_advice, to);
    bm_advise_on_changes(s, &e->parts, print_advice, to);
    bm_advise(e->parts.part, e->parts.n, print_advice, to);
    if (strcmp(s->job.device, "cpu") == 0)
        bm_machine_advise(&e->size, bm_model_params(e->model)->n, NULL,
                          print_advice, to);
}

static bm_status explain_data(const bm_config *config, const bm_settings *s,
                              bm_dataset *data, int ranks, destination *to)
{
    bm_explained e = {
        .config = config, .settings = s, .data = data, .ranks = ranks};
    bm_plan *plan = NULL;
    bm_backend *be = NULL;
    bm_recogniser net = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_first_plan(s, data, &plan));
    BM_TRY_DONE(bm_parts_of(s, data, &e.parts));
    e.regime = *e.parts.part;
    e.gains = bm_gains_of(&e.regime);
    e.numbers = numbers_of(&s->augment, e.regime.epoch_frames, data->features);
    BM_TRY_DONE(sample_blocks(plan, &e.filling));
    BM_TRY_DONE(bm_backend_open(&be, "cpu", 0));
    BM_TRY_DONE(open_network(&e, data, be, to->newest, &net));
    e.model = net.model;
    BM_TRY_DONE(check_sound(&s->augment, data));
    BM_TRY_DONE(measure(&e, data));
    print(&e, to);
    if (to->json != NULL)
        bm_explain_json(to->json, &e);
    status = bm_model_check_memory(e.model);
done:
    free(e.fragments);
    bm_layer_rates_free(&e.layer_rates);
    bm_recogniser_close(&net);
    bm_backend_close(be);
    bm_plan_free(plan);
    return status;
}

/* Warns if the ranks do not have equally many workers. */
static void warn_of_ranks(const bm_settings *s, int ranks, destination *to)
{
    long n = s->job.workers;
    long most = (n + ranks - 1) / ranks;
    char text[400];

    if (n % ranks == 0)
        return;
    snprintf(text, sizeof text,
             "%s on %s: some have %ld, others %ld, and wait; %.0f %% of the "
             "ranks' time is lost",
             bm_count_noun(n, "worker").text, bm_count_noun(ranks, "rank").text,
             most, most - 1, 100 * (1 - (double)n / (double)(most * ranks)));
    print_advice(to, text);
}

static bm_status explain_to(destination *to, bm_config *config, bm_settings *s,
                            int ranks)
{
    bm_dataset *data = NULL;
    bm_device device = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_machine_open(&device, NULL, config, s, ranks));
    bm_device_close(&device);
    warn_of_ranks(s, ranks, to);
    BM_TRY(bm_settings_open_data(s, &data));
    status = explain_data(config, s, data, ranks, to);
    bm_dataset_close(data);
    return status;
}

bm_status bm_explain(bm_config *config, bm_settings *s, int ranks,
                     const char *newest, FILE *out)
{
    return explain_to(&(destination){.out = out, .newest = newest}, config, s,
                      ranks);
}

/* The text is made and dropped. */
static bm_status print_json(bm_config *config, bm_settings *s, int ranks)
{
    char *text = NULL;
    size_t size = 0;
    destination to = {.out = open_memstream(&text, &size),
                      .json = json_object(),
                      .newest = "",
                      .warnings = json_array()};
    bm_status status = BM_OK;

    if (to.out == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for an explanation");
    BM_TRY_DONE(explain_to(&to, config, s, ranks));
    json_object_set(to.json, "warnings", to.warnings);
    bm_json_print(json_incref(to.json),
                  JSON_INDENT(1) | JSON_REAL_PRECISION(9));
done:
    if (to.out != NULL)
        fclose(to.out);
    free(text);
    json_decref(to.json);
    json_decref(to.warnings);
    return status;
}

static bm_status explain(const bm_arguments *a)
{
    bm_config *config = NULL;
    bm_settings set;
    long ranks = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_argument_number(a, "ranks", 1, 1, 1 << 20, &ranks));
    BM_TRY(bm_settings_read(a, a->nouns[0], &config, &set));
    status = bm_argument(a, "json") != NULL
                 ? print_json(config, &set, (int)ranks)
                 : bm_explain(config, &set, (int)ranks, "", stdout);
    bm_config_free(config);
    return status;
}

static const bm_flag flags[] = {
    {"ranks", "RANKS", "number of MPI processes to assume", 'n', false},
    {"set", "SECTION.KEY=VALUE", "change a setting; may be repeated", 0, true},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_explain = {
    .name = "explain",
    .nouns = "CONFIG",
    .help = "describe what a configuration does, without training",
    .text =
        "  bmuf explain my.ini\n"
        "  bmuf explain my.ini -n 16 --set job.workers=64\n\n"
        "Prints the network, block gain, steady gain, time constant, blocks "
        "per epoch,\nmemory and the bytes of an exchange. Warns about "
        "doubtful settings, and fails\nwhere training on this machine "
        "would.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = explain,
};
