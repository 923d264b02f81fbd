/*
 * model.c - builds a model: its layers, with sizes and weights that follow from
 * one line, and the flat vector of weights of which layers have views. The
 * passes over a batch are in model_pass.c.
 */
#include "core/memory.h"
#include "core/size.h"
#include "core/text/words.h"
#include "models/model_parts.h"
#include "models/net.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const bm_option bm_model_options[] = {
    {"net", BM_TEXT, offsetof(bm_model_settings, net), NULL, 0, 0, "LAYERS",
     "the layers, from left to right, e.g. blstm:320*4 linear; if it is not "
     "set, those of train.init"},
    {"loss", BM_CHOICE, offsetof(bm_model_settings, loss), "ctc", 0, 0,
     BM_LOSSES(BM_WORD), "the training loss"},
    {"infeasible", BM_CHOICE, offsetof(bm_model_settings, infeasible), "skip",
     0, 0, "error skip zero",
     "what to do with a sequence that has more labels than frames"},
    {0},
};

/* Below it no size of a layer overflows: a layer multiplies the width of its
 * input by 2^20 at most. */
static const size_t largest = (size_t)1 << 40;

static size_t numbers(const bm_weight *w)
{
    size_t n = 1;

    for (int i = 0; i < w->rank; i++)
        n = bm_size_mul(n, w->dim[i]);
    return n;
}

/* How many weights the layer learns, or how many statistics it has. */
static size_t weights(const bm_layer *l, bool statistics)
{
    size_t n = 0;

    for (int i = 0; i < l->n_weights; i++)
        if (l->weights[i].statistic == statistics)
            n = bm_size_add(n, numbers(&l->weights[i]));
    return n;
}

/* *all <- with the weights of this layer. Sizes that are not known yet are not
 * judged; they stay below the limit, so that no later one overflows. */
static bm_status check_size(bm_layer *l, size_t *all)
{
    size_t n = bm_size_add(weights(l, false), weights(l, true));

    if (l->assumed) {
        l->n_out = l->n_out < largest ? l->n_out : largest;
        return BM_OK;
    }
    if (l->n_out > largest)
        return bm_layer_fail(l, "%zu outputs per frame; the limit is %zu",
                             l->n_out, largest);
    *all = bm_size_add(*all, n);
    if (*all > largest)
        return bm_layer_fail(l, "more than %zu weights in total", largest);
    return BM_OK;
}

/* The rate after windows over time. */
static bm_frame_rate behind(bm_frame_rate x, bm_window w)
{
    double room = (double)(w.before + w.after), size = (double)w.size;
    double needed = fmax(1, size - room);

    return (bm_frame_rate){.stride = x.stride * (double)w.stride,
                           .shift = x.shift +
                                    x.stride * (room - size + (double)w.stride),
                           .least = fmax(x.least, x.stride * needed - x.shift)};
}

/* The rate of y; fails where branches meet with different rates. */
static bm_status find_rate(bm_layer *l, bm_frame_rate x)
{
    const bm_layer *b = l;

    l->rate_in = x;
    l->rate_out = l->ops->role == BM_SEPARATES ? (l - l->opening)->rate_in
                                               : behind(x, l->time);
    if (l->rate_out.stride > (double)largest)
        return bm_layer_fail(
            l, "more than %zu frames of the input for each output", largest);
    if (l->ops->role != BM_CLOSES)
        return BM_OK;
    while ((b -= b->previous)->ops->role == BM_SEPARATES)
        if (b->rate_in.stride != x.stride || b->rate_in.shift != x.shift ||
            b->rate_in.least != x.least)
            return bm_layer_fail(
                l, "branches with different numbers of frames; set strides "
                   "and paddings of time so that they are equal");
    return BM_OK;
}

/* Does the size of y follow from a number of features that is not known yet? */
static bool is_assumed_behind(const bm_layer *l)
{
    const bm_layer *b = l;
    bool assumed = l->assumed;

    if (l->ops == &bm_layer_linear || l->ops == &bm_layer_lstm ||
        l->ops == &bm_layer_blstm || l->ops == &bm_layer_gru ||
        l->ops == &bm_layer_bgru)
        return false;
    if (l->ops->role == BM_SEPARATES)
        return (l - l->opening)->assumed;
    while (l->ops->role == BM_CLOSES &&
           (b -= b->previous)->ops->role == BM_SEPARATES)
        assumed = assumed || b->assumed;
    return assumed;
}

/* Plans every layer; the last one has as many outputs as there are classes. *at
 * is the layer that failed. assumed: the number of features is no real one. */
static bm_status plan(bm_model *m, bool assumed, size_t *at)
{
    size_t size = m->shape.n_features, channels = 0, n = 0, all = 0;
    bm_frame_rate rate = {1, 0, 1};

    for (size_t k = 0; k < m->n_layers; k++) {
        bm_layer *l = &m->layers[k];
        *at = k;
        l->assumed = assumed;
        l->be = m->be;
        l->n_in = size;
        l->channels_in = channels;
        l->n_out = k + 1 == m->n_layers ? m->shape.n_classes : 0;
        BM_TRY(l->ops->plan(l));
        BM_TRY(check_size(l, &all));
        BM_TRY(find_rate(l, rate));
        if (m->loss->per_frame && !bm_layer_keeps_frames(l))
            return bm_layer_fail(l,
                                 "%s needs an output for every frame, but this "
                                 "layer drops frames; for a class per sequence "
                                 "set model.loss = ctc and end in 'pool:all "
                                 "linear' behind conv, in 'pool:1024x1 linear' "
                                 "behind flat frames",
                                 m->loss->name);
        rate = l->rate_out;
        assumed = is_assumed_behind(l);
        size = l->n_out;
        channels = l->channels;
        n = bm_size_add(n, weights(l, false));
    }
    if (n == 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "model.net has no weights; add a layer that has, such "
                       "as linear");
    return BM_OK;
}

static bm_status check_outputs(const bm_model *m)
{
    const bm_layer *last = &m->layers[m->n_layers - 1];

    if (last->n_out != m->shape.n_classes)
        return bm_layer_fail(last,
                             "the last layer has %zu outputs, but there are "
                             "%zu classes; end the net with linear",
                             last->n_out, m->shape.n_classes);
    return BM_OK;
}

/* Appends the segments of learned weights, or of statistics. */
static void add_segments(bm_model *m, bool statistics)
{
    bm_params *p = &m->params;

    for (size_t k = 0; k < m->n_layers; k++)
        for (int i = 0; i < m->layers[k].n_weights; i++) {
            const bm_weight *w = &m->layers[k].weights[i];
            bm_segment *s = &m->segments[p->n_segments];
            bm_segment_name *name = &m->names[p->n_segments];

            if (w->statistic != statistics)
                continue;
            snprintf(name->text, sizeof name->text, "%s.%s", m->layers[k].name,
                     w->name);
            *s = (bm_segment){.name = name->text,
                              .offset = p->n,
                              .count = numbers(w),
                              .rank = w->rank,
                              .stacked = w->stacked};
            memcpy(s->dim, w->dim, sizeof s->dim);
            p->n += s->count;
            p->n_segments++;
        }
}

/* Lays out the flat vector: learned weights first, then statistics. */
static bm_status name_segments(bm_model *m)
{
    size_t n = m->n_layers * BM_LAYER_WEIGHTS;

    BM_ASSERT(n > 0);
    m->segments = calloc(n, sizeof *m->segments);
    m->names = calloc(n, sizeof *m->names);
    if (m->segments == NULL || m->names == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for names of weights");
    m->params.segments = m->segments;
    add_segments(m, false);
    m->params.n_learned = m->params.n;
    add_segments(m, true);
    return BM_OK;
}

/* Initialises the statistics of a layer. */
static void start_statistics(const bm_layer *l, float *s)
{
    for (int i = 0; i < l->n_weights; i++)
        for (size_t k = 0;
             l->weights[i].statistic && k < numbers(&l->weights[i]); k++)
            *s++ = l->weights[i].start;
}

size_t bm_model_learned(const bm_model *m, size_t k)
{
    size_t n = 0;

    for (size_t i = k; i < bm_model_after(m, k); i++)
        n += weights(&m->layers[i], false);
    return n;
}

/* Lists the ranges of learned weights in the order of the backward pass. */
static bm_status name_parts(bm_model *m)
{
    bm_params *p = &m->params;
    size_t offset = 0, n = 0, i = 0;

    for (size_t k = 0; k < m->n_layers; k = bm_model_after(m, k))
        n += bm_model_learned(m, k) > 0;
    i = p->n_ranges = n;
    p->ranges = m->ranges = calloc(n + 1, sizeof *m->ranges);
    if (m->ranges == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for names of weights");
    for (size_t k = 0; k < m->n_layers; k = bm_model_after(m, k)) {
        if (bm_model_learned(m, k) > 0)
            m->ranges[--i] = (bm_range){offset, bm_model_learned(m, k)};
        offset += bm_model_learned(m, k);
    }
    return BM_OK;
}

/* Weights and gradient, and on the host the weights once more. */
bm_status bm_model_check_memory(const bm_model *m)
{
    double copies = bm_on_host(m->be) ? 3 : 1;
    char what[100];

    snprintf(what, sizeof what, "%zu weights and their gradient", m->params.n);
    return bm_memory_check(copies * (double)m->params.n * sizeof(float), what,
                           "use a machine with more, or make model.net "
                           "smaller");
}

/* Those of a layer are keyed by its name. */
bm_status bm_model_draw(bm_model *m, uint64_t seed)
{
    bm_params *p = &m->params;
    float *drawn = NULL;
    size_t at = 0, statistics = p->n_learned;
    bm_status status = BM_OK;

    BM_ASSERT(p->n > 0);
    BM_TRY(bm_model_check_memory(m));
    drawn = calloc(p->n, sizeof *drawn);
    if (drawn == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu weights", p->n);
    BM_TRY_DONE(bm_alloc(m->be, p->n, &p->w));
    BM_TRY_DONE(bm_alloc(m->be, p->n, &p->g));
    for (size_t k = 0; k < m->n_layers; k++) {
        bm_layer *l = &m->layers[k];
        bm_rng rng = bm_rng_make(seed, l->name, 0);

        l->w = p->w + at;
        l->g = p->g + at;
        l->s = p->w + statistics;
        l->gs = p->g + statistics;
        if (l->ops->init != NULL)
            l->ops->init(l, drawn + at, &rng);
        start_statistics(l, drawn + statistics);
        at += weights(l, false);
        statistics += weights(l, true);
    }
    bm_put(m->be, p->w, drawn, p->n);
    status = bm_sync(m->be);
done:
    free(drawn);
    return status;
}

void bm_model_borrow(bm_model *m, const bm_model *from)
{
    BM_ASSERT(m->n_layers == from->n_layers && m->params.n == from->params.n);
    m->borrows = true;
    m->params.w = from->params.w;
    for (size_t k = 0; k < m->n_layers; k++) {
        m->layers[k].w = from->layers[k].w;
        m->layers[k].s = from->layers[k].s;
    }
}

static bm_status choose(bm_model *m, const bm_model_settings *settings)
{
    m->loss = bm_loss_find(settings->loss);
    if (m->loss == NULL)
        return BM_FAIL(BM_ERR_CONFIG,
                       "model.loss: '%s' is unknown; choose one of: %s",
                       settings->loss, BM_LOSSES(BM_WORD));
    m->policy = strcmp(settings->infeasible, "error") == 0 ? BM_INFEASIBLE_ERROR
                : strcmp(settings->infeasible, "zero") == 0
                    ? BM_INFEASIBLE_ZERO
                    : BM_INFEASIBLE_SKIP;
    m->net = strdup(settings->net);
    if (m->net == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a network");
    return BM_OK;
}

/* For plans without data: one class, and frames so high that every kernel
 * fits. */
static const bm_model_shape some_shape = {.n_features = 1 << 16,
                                          .n_classes = 1};

/* Whether branches have equal sizes may depend on the data. */
void bm_model_check(const bm_config *config, bm_faults *faults)
{
    bm_model_settings set = {0};
    bm_model m = {.shape = some_shape};
    bm_status status = BM_OK;
    size_t at = 0;
    bool meets = false;

    bm_config_peek(config, "model", bm_model_options, &set);
    if (bm_config_text(config, "model", "net") == NULL)
        return; /* reported as missing already */
    m.loss = bm_loss_find(set.loss);
    status = bm_net_parse(set.net, &m.layers, &m.n_layers);
    if (status == BM_OK) {
        status = plan(&m, true, &at);
        meets = m.layers[at].ops->role == BM_CLOSES;
    }
    if (status != BM_OK && !meets)
        bm_config_fault(faults, config, "model", "net", "%s",
                        bm_last_message());
    free(m.layers);
}

/* What a layer has before it. */
typedef struct preceding {
    bool mixes;     /* layers after which neighbouring units have no order */
    bool one_frame; /* pool:all */
} preceding;

/* text [room] <- what most users do not want of this layer; false: nothing. */
static bool doubt(const bm_layer *l, const preceding *before, char *text,
                  size_t room)
{
    bool pools = l->ops == &bm_layer_pool, flat = l->channels_in == 0;
    size_t rows = flat ? 1 : l->n_in / l->channels_in;

    if (pools && l->n_out == 1 && l->time.size > BM_LAYER_WINDOW)
        snprintf(text, room,
                 "%s makes one number of a whole sequence; behind flat frames, "
                 "as those of linear, blstm and attention are, take "
                 "pool:1024x1 for sequences of up to 1024 frames",
                 l->name);
    else if (pools && flat && before->mixes && l->rows.size > 1)
        snprintf(text, room,
                 "%s pools neighbouring units of flat frames, which have no "
                 "order behind linear, blstm and attention; pool:%zux1 pools "
                 "frames alone",
                 l->name, l->time.size);
    else if (l->ops == &bm_layer_instancenorm && before->one_frame && rows == 1)
        snprintf(text, room,
                 "%s has a single number of each channel and makes it 0, so "
                 "that the output does not depend on the input; leave it out, "
                 "or take layernorm",
                 l->name);
    else
        return false;
    return true;
}

static void pass(preceding *before, const bm_layer *l)
{
    for (int i = 0; i < l->n_weights; i++)
        before->mixes = before->mixes || l->weights[i].rank > 1;
    before->one_frame = before->one_frame || (l->ops == &bm_layer_pool &&
                                              l->time.size > BM_LAYER_WINDOW);
}

/* A group: what was before it, and what its branches were so far. */
typedef struct branching {
    preceding before, within;
} branching;

/* The end of a branch. */
static void branch(preceding *before, branching *b, bm_role role)
{
    b->within.mixes = b->within.mixes || before->mixes;
    b->within.one_frame = b->within.one_frame || before->one_frame;
    *before = role == BM_CLOSES ? b->within : b->before;
}

bool bm_model_doubt(const bm_config *config, char *text, size_t room)
{
    bm_model_settings set = {0};
    bm_model m = {.shape = some_shape};
    preceding before = {0};
    branching opened[BM_NET_GROUPS] = {{{0}, {0}}};
    size_t at = 0, depth = 0;
    bool found = false;

    bm_config_peek(config, "model", bm_model_options, &set);
    m.loss = bm_loss_find(set.loss);
    if (bm_net_parse(set.net, &m.layers, &m.n_layers) == BM_OK &&
        plan(&m, true, &at) == BM_OK)
        for (size_t k = 0; k < m.n_layers && !found; k++) {
            const bm_layer *l = &m.layers[k];

            if (l->ops->role == BM_OPENS)
                opened[depth++] = (branching){before, before};
            else if (l->ops->role != BM_ALONE)
                branch(&before, &opened[depth - 1], l->ops->role);
            depth -= l->ops->role == BM_CLOSES;
            found = doubt(l, &before, text, room);
            pass(&before, l);
        }
    free(m.layers);
    return found;
}

bm_status bm_model_plan(bm_model **out, const bm_model_settings *settings,
                        const bm_model_shape *shape, bm_backend *be)
{
    bm_model *m = calloc(1, sizeof *m);
    size_t at = 0;
    bm_status status = BM_OK;

    BM_ASSERT(shape->n_features > 0 && shape->n_classes > 0);
    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a network");
    m->be = be;
    m->shape = *shape;
    m->params.be = be;
    BM_TRY_DONE(choose(m, settings));
    BM_TRY_DONE(bm_net_parse(m->net, &m->layers, &m->n_layers));
    BM_TRY_DONE(plan(m, false, &at));
    BM_TRY_DONE(check_outputs(m));
    bm_net_fuse(m->layers, m->n_layers);
    BM_TRY_DONE(name_segments(m));
    BM_TRY_DONE(name_parts(m));
    while (m->layers[m->n_frozen].n_weights == 0)
        m->n_frozen++;
    m->inputs = calloc(m->n_layers + 1, sizeof *m->inputs);
    if (m->inputs == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a network");
    BM_TRY_DONE(
        bm_alloc(be, (size_t)shape->n_scores * BM_SCORE_FLOATS, &m->scores));
    *out = m;
    m = NULL;
done:
    bm_model_free(m);
    return status;
}

bm_status bm_model_new(bm_model **out, const bm_model_settings *settings,
                       const bm_model_shape *shape, bm_backend *be,
                       uint64_t seed)
{
    bm_model *m = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_model_plan(&m, settings, shape, be));
    status = bm_model_draw(m, seed);
    if (status == BM_OK)
        *out = m;
    else
        bm_model_free(m);
    return status;
}

void bm_model_free(bm_model *m)
{
    if (m == NULL)
        return;
    bm_free(m->be, m->scratch);
    bm_free(m->be, m->scores);
    bm_free(m->be, m->params.g);
    if (!m->borrows)
        bm_free(m->be, m->params.w);
    free(m->frames);
    free(m->inputs);
    free(m->names);
    free(m->segments);
    free(m->ranges);
    free(m->layers);
    free(m->net);
    free(m);
}

bm_params *bm_model_params(bm_model *m)
{
    return &m->params;
}

const bm_loss_ops *bm_model_loss(const bm_model *m)
{
    return m->loss;
}

const bm_layer *bm_model_layers(const bm_model *m, size_t *n)
{
    *n = m->n_layers;
    return m->layers;
}

size_t bm_model_stride(const bm_model *m)
{
    return (size_t)m->layers[m->n_layers - 1].rate_out.stride;
}

void bm_model_print(const bm_model *m, FILE *file)
{
    for (size_t k = 0; k < m->n_layers; k++) {
        const bm_layer *l = &m->layers[k];
        fprintf(file, "%-14s %6zu -> %-6zu %10zu weights\n", l->name, l->n_in,
                l->n_out, weights(l, false));
    }
}

static size_t frames_at(bm_frame_rate r, size_t frames)
{
    double n = (double)frames;

    return n < r.least ? 0 : (size_t)floor((n + r.shift) / r.stride);
}

size_t bm_model_frames(const bm_model *m, size_t frames)
{
    return frames_at(m->layers[m->n_layers - 1].rate_out, frames);
}

bool bm_model_takes(const bm_model *m, size_t frames)
{
    for (size_t k = 0; k < m->n_layers; k++) {
        const bm_layer *l = &m->layers[k];

        if (l->most > 0 && frames_at(l->rate_in, frames) > l->most)
            return false;
    }
    return true;
}

bool bm_model_fits(const bm_model *m, size_t frames, const int32_t *labels,
                   size_t n_labels)
{
    return m->loss->feasible == NULL ||
           m->loss->feasible(bm_model_frames(m, frames), labels, n_labels);
}

void bm_model_find_infeasible(const bm_model *m, const bm_batch *b, bool *bad)
{
    const int32_t *labels = b->targets.classes;

    for (size_t i = 0; i < b->extent.B; i++) {
        size_t frames = (size_t)b->extent.frames[i];
        size_t n = (size_t)b->targets.count[i];

        bad[i] = !bm_model_fits(m, frames, labels, n);
        labels += n;
    }
}

bm_infeasible bm_model_infeasible(const bm_model *m)
{
    return m->policy;
}

void bm_model_skip_infeasible(bm_model *m)
{
    m->policy = BM_INFEASIBLE_SKIP;
    m->skips_long = true;
}

void bm_model_smooth(bm_model *m, double smoothing)
{
    m->smoothing = (float)smoothing;
}
