/*
 * layernorm.c - layer normalisation (Ba, Kiros and Hinton 2016), see
 * bm_layernorm_forward. A column of pixels is normalised as a whole.
 */
#include "models/layers/layer.h"

static bm_status plan(bm_layer *l)
{
    if (l->args[0] != '\0')
        return bm_layer_fail(l, "layernorm takes no arguments");
    if (l->n_in == 1)
        return bm_layer_fail(l, "layernorm of a single number makes it 0, "
                                "whatever it was");
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    l->weights[0] = (bm_weight){.name = "gamma",
                                .torch = "weight",
                                .rank = 1,
                                .dim = {l->n_in, 1, 1, 1}};
    l->weights[1] = (bm_weight){
        .name = "beta", .torch = "bias", .rank = 1, .dim = {l->n_in, 1, 1, 1}};
    l->n_weights = 2;
    return BM_OK;
}

static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    (void)rng;
    for (size_t i = 0; i < l->n_in; i++) {
        w[i] = 1;
        w[l->n_in + i] = 0;
    }
}

static bm_layernorm view(const bm_layer *l)
{
    return (bm_layernorm){l->n_in, l->w, l->w + l->n_in};
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    bm_layernorm n = view(l);
    return bm_layernorm_kept(l->be, &n, p->in);
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_layernorm n = view(l);
    bm_layernorm_forward(l->be, &n, p->in, x.data, y.data, l->kept);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_layernorm n = view(l);

    (void)y;
    bm_layernorm_backward(l->be, &n, p->in, x.data, dy.data, l->kept, dx.data,
                          l->g, l->g + l->n_in);
}

const bm_layer_ops bm_layer_layernorm = {
    .name = "layernorm",
    .others = "ln layernorm",
    .help = "layernorm  each frame to mean 0 and variance 1, times gamma, "
            "plus beta",
    .plan = plan,
    .init = init,
    .kept = kept,
    .forward = forward,
    .backward = backward,
};
