/* gelu.c - the Gaussian error linear unit (Hendrycks and Gimpel 2016): a number
 * times the probability that a normal number is below it. */
#include "models/layers/layer.h"

static bm_status plan(bm_layer *l)
{
    if (l->args[0] != '\0')
        return bm_layer_fail(l, "gelu takes no arguments");
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    return BM_OK;
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    (void)p;
    bm_gelu(l->be, bm_count(x), x.data, y.data);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    (void)p;
    (void)y;
    if (dx.data != NULL)
        bm_gelu_back(l->be, bm_count(x), x.data, dy.data, dx.data);
}

const bm_layer_ops bm_layer_gelu = {
    .name = "gelu",
    .help = "gelu  y = x/2 (1 + erf(x / sqrt(2)))",
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
