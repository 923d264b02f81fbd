/* recurrent.c - lstm and blstm (Graves and Schmidhuber 2005, without
 * peepholes), gru and bgru (Cho et al. 2014): see bm_recurrent for the
 * equations. */
#include "models/layers/recurrent.h"

/* The layer without its sizes and weights. */
static bm_recurrent kind(const bm_layer *l)
{
    bool gru = l->ops == &bm_layer_gru || l->ops == &bm_layer_bgru;
    bool both = l->ops == &bm_layer_blstm || l->ops == &bm_layer_bgru;

    return (bm_recurrent){.cell = gru ? BM_GRU : BM_LSTM,
                          .directions = both ? 2 : 1};
}

static bm_status plan(bm_layer *l)
{
    bm_recurrent v = kind(l);
    size_t R = v.directions, D = l->n_in, H = 0, rows = 0, stacked = 0;

    BM_TRY(bm_layer_count(l, "cells", l->args, &H));
    v.n_hidden = H;
    rows = bm_recurrent_rows(&v);
    stacked = R * rows / H;
    l->n_out = R * H;
    l->weights[0] = (bm_weight){.name = "wx",
                                .rank = 2,
                                .dim = {R * rows, D, 1, 1},
                                .stacked = stacked};
    l->weights[1] = (bm_weight){
        .name = "wh", .rank = 3, .dim = {R, rows, H, 1}, .stacked = stacked};
    l->weights[2] = (bm_weight){
        .name = "b", .rank = 1, .dim = {R * BM_CELL_VALUES * H, 1, 1, 1}};
    l->n_weights = 3;
    return BM_OK;
}

/* Views of the weights, or of their gradients. */
static bm_recurrent view(const bm_layer *l, const float *w)
{
    bm_recurrent v = kind(l);
    size_t n = 0;

    v.n_in = l->n_in;
    v.n_hidden = l->n_out / v.directions;
    n = v.directions * bm_recurrent_rows(&v);
    v.wx = w;
    v.wh = w + n * v.n_in;
    v.b = v.wh + n * v.n_hidden;
    return v;
}

/* Glorot for each gate's matrix. The bias of the forget gate is 1, so that
 * gradients pass from the start (Jozefowicz et al. 2015). */
static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    bm_recurrent v = view(l, w);
    size_t H = v.n_hidden, n = v.directions * BM_CELL_VALUES * H;
    float *wh = w + (v.wh - v.wx), *b = w + (v.b - v.wx);

    bm_layer_glorot(w, (size_t)(v.wh - v.wx), v.n_in, H, rng);
    bm_layer_glorot(wh, (size_t)(v.b - v.wh), H, H, rng);
    for (size_t i = 0; i < n; i++)
        b[i] = v.cell == BM_LSTM && i / H % 4 == 1 ? 1 : 0;
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    bm_recurrent v = view(l, l->w);
    return bm_recurrent_kept(l->be, &v, p->in);
}

/* The recurrence is computed for every frame but the first. */
static bm_flops flops(const bm_layer *l, const bm_pass *p)
{
    bm_recurrent v = view(l, l->w);
    double rows = (double)bm_recurrent_rows(&v) * (double)v.directions;
    double T = (double)p->in.T, B = (double)p->in.B;
    double after = T > 0 ? (T - 1) * B : 0;

    return (bm_flops){
        .input = 2 * rows * T * B * (double)v.n_in,
        .inner = 2 * rows * after * (double)v.n_hidden,
    };
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_recurrent v = view(l, l->w);
    bm_recurrent_forward(l->be, &v, p->in, x.data, y.data, l->kept);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_recurrent v = view(l, l->w);
    float *dwh = l->g + (v.wh - v.wx), *db = l->g + (v.b - v.wx);

    bm_recurrent_backward(l->be, &v, p->in, x.data, y.data, dy.data, l->kept,
                          dx.data, l->g, dwh, db);
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

RECURRENT(lstm, "lstm:CELLS  long short-term memory, forwards in time");
RECURRENT(blstm, "blstm:CELLS  two LSTMs, forwards and backwards in time; 2 "
                 "CELLS outputs");
RECURRENT(gru, "gru:CELLS  gated recurrent units, forwards in time");
RECURRENT(bgru, "bgru:CELLS  two GRUs, forwards and backwards in time; 2 CELLS "
                "outputs");
