/* lstm.c - lstm and blstm (Graves and Schmidhuber 2005): see bm_lstm_forward
 * for the equations. Without peepholes. */
#include "models/layers/layer.h"

static bm_status plan(bm_layer *l)
{
    size_t R = l->ops == &bm_layer_blstm ? 2 : 1, H = 0, D = l->n_in;

    BM_TRY(bm_layer_count(l, "cells", l->args, &H));
    l->n_out = R * H;
    l->weights[0] = (bm_weight){
        .name = "wx", .rank = 2, .dim = {R * 4 * H, D, 1, 1}, .stacked = R * 4};
    l->weights[1] = (bm_weight){
        .name = "wh", .rank = 3, .dim = {R, 4 * H, H, 1}, .stacked = R * 4};
    l->weights[2] =
        (bm_weight){.name = "b", .rank = 1, .dim = {R * 4 * H, 1, 1, 1}};
    l->n_weights = 3;
    return BM_OK;
}

/* Views of the weights, or of their gradients. */
static bm_lstm view(const bm_layer *l, const float *w)
{
    size_t R = l->ops == &bm_layer_blstm ? 2 : 1, H = l->n_out / R;
    size_t n_wx = R * 4 * H * l->n_in, n_wh = R * 4 * H * H;

    return (bm_lstm){
        .n_in = l->n_in,
        .n_hidden = H,
        .directions = R,
        .wx = w,
        .wh = w + n_wx,
        .b = w + n_wx + n_wh,
    };
}

/* Glorot for each gate's matrix. The bias of the forget gate is 1, so that
 * gradients pass from the start (Jozefowicz et al. 2015). */
static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    bm_lstm v = view(l, w);
    size_t R = v.directions, H = v.n_hidden;
    float *wh = w + (v.wh - v.wx), *b = w + (v.b - v.wx);

    bm_layer_glorot(w, (size_t)(v.wh - v.wx), v.n_in, H, rng);
    bm_layer_glorot(wh, (size_t)(v.b - v.wh), H, H, rng);
    for (size_t i = 0; i < R * 4 * H; i++)
        b[i] = i / H % 4 == 1 ? 1 : 0;
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    bm_lstm v = view(l, l->w);
    return bm_lstm_kept(l->be, &v, p->in);
}

/* The recurrence is computed for every frame but the first. */
static bm_flops flops(const bm_layer *l, const bm_pass *p)
{
    bm_lstm v = view(l, l->w);
    double gates = 4 * (double)v.n_hidden * (double)v.directions;
    double T = (double)p->in.T, B = (double)p->in.B;
    double after = T > 0 ? (T - 1) * B : 0;

    return (bm_flops){
        .input = 2 * gates * T * B * (double)v.n_in,
        .inner = 2 * gates * after * (double)v.n_hidden,
    };
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_lstm v = view(l, l->w);
    bm_lstm_forward(l->be, &v, p->in, x.data, y.data, l->kept);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_lstm v = view(l, l->w);
    float *dwh = l->g + (v.wh - v.wx), *db = l->g + (v.b - v.wx);

    bm_lstm_backward(l->be, &v, p->in, x.data, y.data, dy.data, l->kept,
                     dx.data, l->g, dwh, db);
}

const bm_layer_ops bm_layer_lstm = {
    .name = "lstm",
    .help = "lstm:CELLS  long short-term memory, forwards in time",
    .plan = plan,
    .init = init,
    .kept = kept,
    .flops = flops,
    .forward = forward,
    .backward = backward,
};

const bm_layer_ops bm_layer_blstm = {
    .name = "blstm",
    .help = "blstm:CELLS  two LSTMs, forwards and backwards in time; 2 CELLS "
            "outputs",
    .plan = plan,
    .init = init,
    .kept = kept,
    .flops = flops,
    .forward = forward,
    .backward = backward,
};
