/* gate.c - swish, and glu, the gated linear unit (Dauphin et al. 2017): numbers
 * times a sigmoid. Of zeros both are zero. */
#include "models/layers/layer.h"

static bm_status plan_swish(bm_layer *l)
{
    if (l->args[0] != '\0')
        return bm_layer_fail(l, "swish takes no arguments");
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    return BM_OK;
}

static void forward_swish(bm_layer *l, const bm_pass *p, bm_tensor x,
                          bm_tensor y)
{
    (void)p;
    bm_swish(l->be, bm_count(x), x.data, y.data);
}

static void backward_swish(bm_layer *l, const bm_pass *p, bm_tensor x,
                           bm_tensor y, bm_tensor dy, bm_tensor dx)
{
    (void)p;
    (void)y;
    if (dx.data != NULL)
        bm_swish_back(l->be, bm_count(x), x.data, dy.data, dx.data);
}

const bm_layer_ops bm_layer_swish = {
    .name = "swish",
    .others = "silu",
    .help = "swish  y = x / (1 + exp(-x)), also called SiLU",
    .plan = plan_swish,
    .forward = forward_swish,
    .backward = backward_swish,
};

/* What is halved: the channels of a column, or the numbers of a flat frame. */
static size_t row(const bm_layer *l)
{
    return l->channels_in > 0 ? l->channels_in : l->n_in;
}

static bm_status plan_glu(bm_layer *l)
{
    if (l->args[0] != '\0')
        return bm_layer_fail(l, "glu takes no arguments");
    if (row(l) % 2 != 0 && (l->channels_in > 0 || !l->assumed))
        return bm_layer_fail(l,
                             "glu halves the %s of its input, which has %zu; "
                             "their number must be even",
                             l->channels_in > 0 ? "channels" : "features",
                             row(l));
    l->n_out = l->n_in / 2;
    l->channels = l->channels_in / 2;
    return BM_OK;
}

static void forward_glu(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    (void)p;
    bm_glu(l->be, bm_count(x) / row(l), row(l) / 2, x.data, y.data);
}

static void backward_glu(bm_layer *l, const bm_pass *p, bm_tensor x,
                         bm_tensor y, bm_tensor dy, bm_tensor dx)
{
    (void)p;
    (void)y;
    if (dx.data != NULL)
        bm_glu_back(l->be, bm_count(x) / row(l), row(l) / 2, x.data, dy.data,
                    dx.data);
}

const bm_layer_ops bm_layer_glu = {
    .name = "glu",
    .help = "glu  y = a sigmoid(b) of the halves a, b of each frame",
    .plan = plan_glu,
    .forward = forward_glu,
    .backward = backward_glu,
};
