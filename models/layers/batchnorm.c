/*
 * batchnorm.c - batch normalisation (Ioffe and Szegedy 2015), see
 * bm_norm_forward and channel_norm.h.
 *
 * Running mean and variance are statistics of the model: every step decrements
 * them by (mean - batch's mean) / 10.
 */
#include "models/layers/channel_norm.h"

static const float step = 0.1f; /* of the running statistics */

static bm_status plan(bm_layer *l)
{
    size_t C = 0;

    BM_TRY(bm_channel_norm_plan(l));
    C = bm_channel_norm_channels(l);
    l->weights[2] = (bm_weight){.name = "mean",
                                .torch = "running_mean",
                                .rank = 1,
                                .dim = {C, 1, 1, 1},
                                .statistic = true};
    l->weights[3] = (bm_weight){.name = "var",
                                .torch = "running_var",
                                .rank = 1,
                                .dim = {C, 1, 1, 1},
                                .statistic = true,
                                .start = 1};
    l->n_weights = 4;
    return BM_OK;
}

static bm_norm view(const bm_layer *l)
{
    return bm_channel_norm_view(l, l->s, l->s + bm_channel_norm_channels(l));
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
    size_t C = n.channels;

    bm_norm_backward(l->be, &n, p->in, p->out, x.data, y.data, dy.data, l->kept,
                     dx.data, l->g, l->g + C, l->gs, l->gs + C);
    bm_axpby(l->be, 2 * C, 0, l->gs, step, l->gs);
}

const bm_layer_ops bm_layer_batchnorm = {
    .name = "batchnorm",
    .others = "bn batchnorm batchnorm1d batchnorm2d",
    .help = "batchnorm  each channel to mean 0 and variance 1, times gamma, "
            "plus beta",
    .plan = plan,
    .init = bm_channel_norm_init,
    .kept = kept,
    .fuse = bm_channel_norm_fuse,
    .forward = forward,
    .backward = backward,
};
