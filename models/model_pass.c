/*
 * model_pass.c - forward and backward passes over a batch. Layer k reads input
 * k and writes input k + 1, or the input after the layers fused into it; input 0
 * is the batch, the last one the network's output. For a group's branches
 * (layers/group.c) its input is an input again, with the same memory. The inputs
 * of a batch share one allocation of scratch: each layer's y and kept floats, two
 * gradients used in turn, and work that layers and the loss use one after the
 * other.
 */
#include "core/size.h"
#include "core/trace/span.h"
#include "models/model_parts.h"

#include <math.h>
#include <stdlib.h>

enum { LINE = 16 }; /* floats of a cache line, to which views are aligned */

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Refuses a batch for which a size of a layer could overflow. */
static bm_status check_size(const bm_model *m, const bm_batch *b)
{
    static const size_t most = (size_t)1 << 40; /* floats of a layer's output */
    size_t widest = m->shape.n_features;

    for (size_t k = 0; k < m->n_layers; k++)
        widest = m->layers[k].n_out > widest ? m->layers[k].n_out : widest;
    if (bm_size_mul(bm_size_mul(b->extent.T, b->extent.B), widest) > most)
        return BM_FAIL(
            BM_ERR_MEMORY,
            "no memory for a mini-batch of %zu sequences, %zu frames "
            "and %zu numbers per frame",
            b->extent.B, b->extent.T, widest);
    return BM_OK;
}

/* Memory of attention grows with the square of a sequence's frames. */
static bm_status check_frames(const bm_layer *l, size_t T)
{
    if (l->most == 0 || T <= l->most)
        return BM_OK;
    return BM_FAIL(BM_ERR_CONFIG,
                   "layer %s: a sequence of %zu frames, at most %zu are "
                   "possible; shorten sequences in front of it, as with "
                   "subsample or a stride, or leave the longest out",
                   l->name, T, l->most);
}

/* Sets input 0: the batch, where sequences that are skipped have no frames; but it
 * has one of padding at least, so that no tensor is empty. */
static void begin(bm_model *m, const bm_batch *b, int32_t *frames)
{
    bm_extent e = {1, b->extent.B, frames};
    bm_tensor x = b->x;
    bool any = false;

    for (size_t i = 0; m->skips_long && i < e.B; i++) {
        bool takes = bm_model_takes(m, (size_t)b->extent.frames[i]);

        frames[i] = takes ? b->extent.frames[i] : 0;
        e.T = larger(e.T, (size_t)frames[i]);
        any = any || !takes;
    }
    x.dim[0] = any ? e.T : x.dim[0];
    m->inputs[0] = (bm_layer_input){.extent = any ? e : b->extent, .x = x};
}

/* The extent after every layer. */
static bm_status extend(bm_model *m, const bm_batch *b)
{
    size_t B = b->extent.B, n = (m->n_layers + 1) * B;

    BM_ASSERT(b->x.dim[2] == m->shape.n_features);
    BM_TRY(check_size(m, b));
    if (n > m->frames_room) {
        int32_t *more = realloc(m->frames, n * sizeof *more);
        if (more == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu sequences", B);
        m->frames = more;
        m->frames_room = n;
    }
    begin(m, b, m->frames + m->n_layers * B);
    for (size_t k = 0; k < m->n_layers; k++) {
        const bm_extent *in = &m->inputs[k].extent;
        bm_window time = m->layers[k].time;
        int32_t *frames = m->frames + k * B;

        BM_TRY(check_frames(&m->layers[k], in->T));
        if (bm_model_repeats(m, k)) {
            m->inputs[k + 1].extent =
                m->inputs[k - m->layers[k].opening].extent;
            continue;
        }
        for (size_t i = 0; i < B; i++)
            frames[i] = (int32_t)bm_windows(time, (size_t)in->frames[i]);
        m->inputs[k + 1].extent =
            (bm_extent){bm_windows(time, in->T), B, frames};
    }
    return BM_OK;
}

/* Reserves n floats; returns NULL while they are only counted. */
static float *take(float *scratch, size_t *used, size_t n)
{
    float *view = scratch != NULL ? scratch + *used : NULL;

    *used = bm_size_add(*used, bm_size_add(n, LINE - 1) / LINE * LINE);
    return view;
}

static bm_pass pass(const bm_model *m, size_t layer, bool training,
                    uint64_t key)
{
    return (bm_pass){m->inputs[layer].extent,
                     m->inputs[bm_model_after(m, layer)].extent, training,
                     bm_rng_fork(key, layer)};
}

/* Sets all views of `scratch`, or NULL views; `loss`: also those of the loss and
 * of gradients. Returns its size in floats. */
static size_t carve(bm_model *m, const bm_batch *b, bool loss, float *scratch)
{
    size_t used = 0, largest = 0, work = 0;

    for (size_t k = 0; k < m->n_layers; k = bm_model_after(m, k)) {
        bm_layer *l = &m->layers[k];
        bm_pass p = pass(m, k, false, 0);
        bm_layer_input *s = &m->inputs[bm_model_after(m, k)];
        bm_tensor *y = &s->x;

        s->writer = k;
        *y = (bm_tensor){
            NULL, 3, {p.out.T, p.out.B, m->layers[k + l->fused].n_out, 1}};
        y->data = bm_model_repeats(m, k) ? m->inputs[k - l->opening].x.data
                                         : take(scratch, &used, bm_count(*y));
        largest = larger(bm_count(*y), largest);
        l->kept = l->ops->kept == NULL
                      ? NULL
                      : take(scratch, &used, l->ops->kept(l, &p));
        if (l->ops->work != NULL)
            work = larger(l->ops->work(l, &p), work);
    }
    if (loss && m->loss->work != NULL)
        work = larger(m->loss->work(m->be, m->inputs[m->n_layers].extent,
                                    b->targets, m->shape.n_classes),
                      work);
    m->work = take(scratch, &used, work);
    for (size_t k = 0; k < m->n_layers; k++)
        m->layers[k].work = m->work;
    if (!loss)
        return used;
    m->gradient[0] = take(scratch, &used, largest);
    m->gradient[1] = take(scratch, &used, largest);
    return used;
}

static bm_status lay_out(bm_model *m, const bm_batch *b, bool loss)
{
    size_t needed = 0;

    BM_TRY(extend(m, b));
    needed = carve(m, b, loss, NULL);
    if (needed > m->scratch_room) {
        bm_free(m->be, m->scratch);
        m->scratch = NULL;
        m->scratch_room = 0;
        BM_TRY(bm_alloc(m->be, needed, &m->scratch));
        m->scratch_room = needed;
    }
    (void)carve(m, b, loss, m->scratch);
    return BM_OK;
}

/* Returns its seconds. */
static double go_forward(bm_model *m, bool training, uint64_t key)
{
    bm_span span = bm_span_begin("forward");

    for (size_t k = 0; k < m->n_layers; k = bm_model_after(m, k)) {
        bm_layer *l = &m->layers[k];
        bm_pass p = pass(m, k, training, key);
        l->ops->forward(l, &p, m->inputs[k].x,
                        m->inputs[bm_model_after(m, k)].x);
    }
    return bm_span_end(span);
}

/* Forward pass and loss; dy <- the loss's gradient unless NULL. */
static void run(bm_model *m, const bm_batch *b, bool training, uint64_t key,
                float *dy, int score)
{
    const bm_layer_input *last = &m->inputs[m->n_layers];
    bm_tensor d = last->x;
    bm_model_times spent = {0};
    bm_span span;

    BM_ASSERT(score >= 0 && score < m->shape.n_scores);
    bm_time_as(m->be, training ? BM_PART_FORWARD : BM_PART_OTHER);
    spent.forward = go_forward(m, training, key);
    bm_time_as(m->be, training ? BM_PART_LOSS : BM_PART_OTHER);
    span = bm_span_begin("loss");
    d.data = dy;
    m->loss->run(m->be, last->extent, b->targets, m->policy, m->smoothing,
                 last->x, d, m->work,
                 (bm_score *)(m->scores + score * BM_SCORE_FLOATS));
    spent.loss = bm_span_end(span);
    if (training) {
        m->spent.forward += spent.forward;
        m->spent.loss += spent.loss;
    }
}

/* Calls params->ready for a range of the gradient; returns its seconds. */
static double hand_over(const bm_model *m, size_t range)
{
    const bm_params *p = &m->params;
    double since = 0;

    if (p->ready == NULL)
        return 0;
    since = bm_clock();
    p->ready(p->ready_self, range);
    return bm_clock() - since;
}

void bm_model_gradient(bm_model *m, const bm_batch *b, uint64_t key, int score)
{
    bm_status status = lay_out(m, b, true);
    bm_span span;
    double used = 0; /* seconds in params->ready */
    size_t turn = 0, range = 0;

    if (status != BM_OK) {
        bm_remember(m->be, status);
        return;
    }
    run(m, b, true, key, m->gradient[turn], score);
    bm_time_as(m->be, BM_PART_BACKWARD);
    span = bm_span_begin("backward");
    for (size_t s = m->n_layers; s > m->n_frozen; s = m->inputs[s].writer) {
        size_t k = m->inputs[s].writer;
        bm_layer *l = &m->layers[k];
        bm_pass p = pass(m, k, true, key);
        bm_tensor dy = m->inputs[s].x, dx = m->inputs[k].x;

        dy.data = m->gradient[turn];
        turn = 1 - turn;
        dx.data = k > m->n_frozen ? m->gradient[turn] : NULL;
        l->ops->backward(l, &p, m->inputs[k].x, m->inputs[s].x, dy, dx);
        if (bm_model_learned(m, k) > 0)
            used += hand_over(m, range++);
    }
    m->spent.backward += bm_span_end(span) - used;
    bm_time_as(m->be, BM_PART_OTHER);
}

bm_model_times bm_model_spent(bm_model *m)
{
    bm_model_times spent = m->spent;

    m->spent = (bm_model_times){0};
    if (!bm_on_host(m->be))
        spent = (bm_model_times){bm_timed(m->be, BM_PART_FORWARD),
                                 bm_timed(m->be, BM_PART_LOSS),
                                 bm_timed(m->be, BM_PART_BACKWARD)};
    return spent;
}

void bm_model_evaluate(bm_model *m, const bm_batch *b, int score)
{
    bm_status status = lay_out(m, b, true);

    if (status == BM_OK)
        run(m, b, false, 0, NULL, score);
    else
        bm_remember(m->be, status);
}

void bm_model_forward(bm_model *m, const bm_batch *b)
{
    bm_status status = lay_out(m, b, false);

    if (status == BM_OK)
        (void)go_forward(m, false, 0);
    else
        bm_remember(m->be, status);
}

bm_status bm_model_probe(bm_model *m, const bm_batch *b)
{
    void (*ready)(void *self, size_t range) = m->params.ready;
    bm_score unused;
    bm_status status = BM_OK;

    m->params.ready = NULL;
    bm_model_gradient(m, b, 0, 0);
    m->params.ready = ready;
    status = bm_model_score(m, 0, &unused);
    (void)bm_model_spent(m);
    return status;
}

bm_status bm_model_score(bm_model *m, int score, bm_score *out)
{
    float *x = m->scores + score * BM_SCORE_FLOATS;
    bm_score got = {0};

    BM_ASSERT(score >= 0 && score < m->shape.n_scores);
    bm_get(m->be, (float *)&got, x, BM_SCORE_FLOATS);
    bm_axpby(m->be, BM_SCORE_FLOATS, 0, x, 0, x);
    BM_TRY(bm_sync(m->be));
    *out = got;
    return BM_OK;
}

double bm_model_flops(const bm_model *m)
{
    double sum = 0;

    for (size_t k = 0; k < m->n_layers; k++) {
        const bm_layer *l = &m->layers[k];
        bm_pass p = pass(m, k, true, 0);
        bm_flops one = {0};
        size_t passes = k > m->n_frozen ? 3 : k == m->n_frozen ? 2 : 1;

        if (l->ops->flops != NULL)
            one = l->ops->flops(l, &p);
        sum += (double)passes * one.input + 3 * one.inner;
    }
    return sum;
}

bm_tensor bm_model_output(const bm_model *m, bm_extent *e)
{
    *e = m->inputs[m->n_layers].extent;
    return m->inputs[m->n_layers].x;
}
