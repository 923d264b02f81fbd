/*
 * batchnorm.c - batch normalisation (Ioffe and Szegedy 2015), see
 * bm_norm_forward. Channels are those of columns of pixels; in a flat frame
 * each feature is a channel.
 *
 * Running mean and variance are statistics of the model: every step decrements
 * them by (mean - batch's mean) / 10.
 */
#include "models/layers/layer.h"

static const float step = 0.1f; /* of the running statistics */

static bm_status plan(bm_layer *l)
{
    size_t C = l->channels_in > 0 ? l->channels_in : l->n_in;

    if (l->args[0] != '\0')
        return bm_layer_fail(l, "batchnorm takes no arguments");
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    l->weights[0] =
        (bm_weight){.name = "gamma", .rank = 1, .dim = {C, 1, 1, 1}};
    l->weights[1] = (bm_weight){.name = "beta", .rank = 1, .dim = {C, 1, 1, 1}};
    l->weights[2] = (bm_weight){
        .name = "mean", .rank = 1, .dim = {C, 1, 1, 1}, .statistic = true};
    l->weights[3] = (bm_weight){.name = "var",
                                .rank = 1,
                                .dim = {C, 1, 1, 1},
                                .statistic = true,
                                .start = 1};
    l->n_weights = 4;
    return BM_OK;
}

static size_t channels(const bm_layer *l)
{
    return l->weights[0].dim[0];
}

static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    (void)rng;
    for (size_t c = 0; c < channels(l); c++) {
        w[c] = 1;
        w[channels(l) + c] = 0;
    }
}

/* A function and windows, in this order. No windows of a flat frame: pool sees
 * it as a column of one channel, batchnorm as n_in channels. */
static bool fuse(bm_layer *l, const bm_epilogue *e)
{
    bm_epilogue *after = &l->after;

    if (after->pools || (e->pools && l->channels == 0) ||
        (!e->pools && after->f != BM_IDENTITY))
        return false;
    *after =
        (bm_epilogue){e->pools ? after->f : e->f, e->pools, e->time, e->rows};
    return true;
}

static bm_norm view(const bm_layer *l)
{
    size_t C = channels(l);
    bm_norm n = {l->n_in / C, C,          l->w,         l->w + C,    l->s,
                 l->s + C,    l->after.f, {1, 1, 0, 0}, {1, 1, 0, 0}};

    if (l->after.pools) {
        n.time = l->after.time;
        n.rows = l->after.rows;
    }
    return n;
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    bm_norm n = view(l);
    return bm_norm_kept(l->be, &n, p->out);
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_norm n = view(l);
    bm_norm_forward(l->be, &n, p->in, p->out, p->training, x.data, y.data,
                    l->kept);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_norm n = view(l);
    size_t C = channels(l);

    bm_norm_backward(l->be, &n, p->in, p->out, x.data, y.data, dy.data, l->kept,
                     dx.data, l->g, l->g + C, l->gs, l->gs + C);
    bm_axpby(l->be, 2 * C, 0, l->gs, step, l->gs);
}

const bm_layer_ops bm_layer_batchnorm = {
    .name = "batchnorm",
    .help = "batchnorm  each channel to mean 0 and variance 1, times gamma, "
            "plus beta",
    .plan = plan,
    .init = init,
    .kept = kept,
    .fuse = fuse,
    .forward = forward,
    .backward = backward,
};
