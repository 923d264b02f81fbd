/*
 * recurrent.c - lstm and blstm (Graves and Schmidhuber 2005, without
 * peepholes), also with a projection (Sak et al. 2014), gru and bgru (Cho et al.
 * 2014): see bm_recurrent for the equations.
 *
 * With weight dropout (DropConnect, Wan et al. 2013; of wh: Merity et al. 2018)
 * each number of wh is zero with probability p in all frames of a mini-batch,
 * and the others are scaled by 1 / (1 - p). The copy of wh with that mask is at
 * the beginning of `kept`; backward applies the mask to dwh.
 */
#include "models/layers/recurrent.h"

#include <stdio.h>
#include <string.h>

/* The layer without its sizes and weights. */
static bm_recurrent kind(const bm_layer *l)
{
    bool gru = l->ops == &bm_layer_gru || l->ops == &bm_layer_bgru;
    bool both = l->ops == &bm_layer_blstm || l->ops == &bm_layer_bgru;

    return (bm_recurrent){.cell = gru ? BM_GRU : BM_LSTM,
                          .directions = both ? 2 : 1};
}

/* The words that are there. */
typedef struct given {
    bool project, weight_dropout;
} given;

/* "project:128" or "weight_dropout:0.3". */
static bm_status read_word(bm_layer *l, const char *word, given *g,
                           bm_recurrent *v)
{
    static const char project[] = "project:", drop[] = "weight_dropout:";
    bool projects = strncmp(word, project, strlen(project)) == 0;

    if (strncmp(word, drop, strlen(drop)) == 0) {
        BM_TRY(bm_layer_once(l, word, &g->weight_dropout));
        return bm_layer_probability(l, word + strlen(drop), &l->drop);
    }
    if (projects && v->cell == BM_GRU)
        return bm_layer_fail(l, "'%s': a GRU has no projection", word);
    if (!projects)
        return bm_layer_fail(l, "'%s' is %s weight_dropout:P", word,
                             v->cell == BM_GRU ? "not"
                                               : "neither project:SIZE nor");
    BM_TRY(bm_layer_once(l, word, &g->project));
    BM_TRY(bm_layer_count(l, "projected outputs", word + strlen(project),
                          &v->n_projected));
    if (v->n_projected >= v->n_hidden)
        return bm_layer_fail(l, "a projection to %zu is not below %zu cells",
                             v->n_projected, v->n_hidden);
    return BM_OK;
}

/* "256", "256,project:128,weight_dropout:0.3". */
static bm_status read_arguments(bm_layer *l, bm_recurrent *v)
{
    char args[sizeof l->args], *rest = args;
    const char *word = NULL;
    given g = {0};

    snprintf(args, sizeof args, "%s", l->args);
    BM_TRY(bm_layer_count(l, "cells", bm_layer_argument(&rest), &v->n_hidden));
    while ((word = bm_layer_argument(&rest)) != NULL)
        BM_TRY(read_word(l, word, &g, v));
    return BM_OK;
}

static bm_status plan(bm_layer *l)
{
    bm_recurrent v = kind(l);
    size_t R = v.directions, D = l->n_in, H = 0, Y = 0, rows = 0, stacked = 0;

    BM_TRY(read_arguments(l, &v));
    H = v.n_hidden;
    Y = bm_recurrent_width(&v);
    rows = bm_recurrent_rows(&v);
    stacked = R * rows / H;
    l->n_out = R * Y;
    l->weights[0] = (bm_weight){.name = "wx",
                                .rank = 2,
                                .dim = {R * rows, D, 1, 1},
                                .stacked = stacked};
    l->weights[1] = (bm_weight){
        .name = "wh", .rank = 3, .dim = {R, rows, Y, 1}, .stacked = stacked};
    l->weights[2] = (bm_weight){
        .name = "b", .rank = 1, .dim = {R * BM_CELL_VALUES * H, 1, 1, 1}};
    l->weights[3] =
        (bm_weight){.name = "wr", .rank = 3, .dim = {R, Y, H, 1}, .stacked = R};
    l->n_weights = v.n_projected > 0 ? 4 : 3;
    return BM_OK;
}

/* Views of the weights, or of their gradients. */
static bm_recurrent view(const bm_layer *l, const float *w)
{
    bm_recurrent v = kind(l);
    size_t n_b = l->weights[2].dim[0], n = 0;

    v.n_in = l->n_in;
    v.n_hidden = n_b / (v.directions * BM_CELL_VALUES);
    v.n_projected = l->n_weights > 3 ? l->n_out / v.directions : 0;
    n = v.directions * bm_recurrent_rows(&v);
    v.wx = w;
    v.wh = w + n * v.n_in;
    v.b = v.wh + n * bm_recurrent_width(&v);
    v.wr = v.n_projected > 0 ? v.b + n_b : NULL;
    return v;
}

/* Glorot for each gate's matrix. The bias of the forget gate is 1, so that
 * gradients pass from the start (Jozefowicz et al. 2015). */
static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    bm_recurrent v = view(l, w);
    size_t H = v.n_hidden, n = v.directions * BM_CELL_VALUES * H;
    size_t Y = bm_recurrent_width(&v);
    float *wh = w + (v.wh - v.wx), *b = w + (v.b - v.wx);

    bm_layer_glorot(w, (size_t)(v.wh - v.wx), v.n_in, H, rng);
    bm_layer_glorot(wh, (size_t)(v.b - v.wh), Y, H, rng);
    for (size_t i = 0; i < n; i++)
        b[i] = v.cell == BM_LSTM && i / H % 4 == 1 ? 1 : 0;
    if (v.n_projected > 0)
        bm_layer_glorot(b + n, v.directions * Y * H, H, Y, rng);
}

/* Floats of wh, and of `kept` for its copy. */
static size_t n_wh(const bm_recurrent *v)
{
    return (size_t)(v->b - v->wh);
}

static size_t room_for_copy(const bm_layer *l, const bm_recurrent *v)
{
    enum { LINE = 256 / sizeof(float) }; /* what follows stays aligned */

    return l->drop > 0 ? (n_wh(v) + LINE - 1) / LINE * LINE : 0;
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    bm_recurrent v = view(l, l->w);
    return room_for_copy(l, &v) + bm_recurrent_kept(l->be, &v, p->in);
}

/* The recurrence is computed for every frame but the first, a projection for
 * all. */
static bm_flops flops(const bm_layer *l, const bm_pass *p)
{
    bm_recurrent v = view(l, l->w);
    double rows = (double)bm_recurrent_rows(&v) * (double)v.directions;
    double T = (double)p->in.T, B = (double)p->in.B;
    double after = T > 0 ? (T - 1) * B : 0;
    double projected = (double)(v.directions * v.n_projected * v.n_hidden);

    return (bm_flops){
        .input = 2 * rows * T * B * (double)v.n_in,
        .inner = 2 * rows * after * (double)bm_recurrent_width(&v) +
                 2 * projected * T * B,
    };
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_recurrent v = view(l, l->w);
    size_t copy = room_for_copy(l, &v);

    if (p->training && l->drop > 0) {
        bm_weight_dropout(l->be, n_wh(&v), l->drop, p->key, v.wh, l->kept);
        v.wh = l->kept;
    }
    bm_recurrent_forward(l->be, &v, p->in, x.data, y.data, l->kept + copy);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_recurrent v = view(l, l->w);
    float *dwh = l->g + (v.wh - v.wx), *db = l->g + (v.b - v.wx);
    float *dwr = v.n_projected > 0 ? l->g + (v.wr - v.wx) : NULL;
    size_t n = n_wh(&v), copy = room_for_copy(l, &v);
    bool drops = p->training && l->drop > 0;

    if (drops)
        v.wh = l->kept;
    bm_recurrent_backward(l->be, &v, p->in, x.data, y.data, dy.data,
                          l->kept + copy, dx.data, l->g, dwh, db, dwr);
    if (drops)
        bm_weight_dropout(l->be, n, l->drop, p->key, dwh, dwh);
}

bool bm_layer_is_recurrent(const bm_layer *l)
{
    return l->ops->plan == plan;
}

bm_recurrent bm_layer_recurrent(const bm_layer *l)
{
    return view(l, l->w);
}

#define RECURRENT(word, text)                                                  \
    const bm_layer_ops bm_layer_##word = {                                     \
        .name = #word,                                                         \
        .help = text,                                                          \
        .plan = plan,                                                          \
        .init = init,                                                          \
        .kept = kept,                                                          \
        .flops = flops,                                                        \
        .forward = forward,                                                    \
        .backward = backward,                                                  \
    }

RECURRENT(lstm, "lstm:CELLS[,project:SIZE][,weight_dropout:P]  long short-term "
                "memory, forwards in time");
RECURRENT(blstm,
          "blstm:CELLS[,project:SIZE][,weight_dropout:P]  two LSTMs, forwards "
          "and backwards in time; 2 CELLS or 2 SIZE outputs");
RECURRENT(gru, "gru:CELLS[,weight_dropout:P]  gated recurrent units, forwards "
               "in time");
RECURRENT(bgru, "bgru:CELLS[,weight_dropout:P]  two GRUs, forwards and "
                "backwards in time; 2 CELLS outputs");
