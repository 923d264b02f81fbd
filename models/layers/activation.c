/* activation.c - relu, leaky_relu, tanh, sigmoid: y = f(x), elementwise. */
#include "models/layers/layer.h"

static bm_status plan(bm_layer *l)
{
    if (l->args[0] != '\0')
        return bm_layer_fail(l, "%s takes no arguments", l->ops->name);
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    l->does.f = l->ops == &bm_layer_relu         ? BM_RELU
                : l->ops == &bm_layer_leaky_relu ? BM_LEAKY_RELU
                : l->ops == &bm_layer_tanh       ? BM_TANH
                                                 : BM_SIGMOID;
    return BM_OK;
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_activate(l->be, l->does.f, bm_count(x), x.data, y.data);
    if (l->does.f == BM_SIGMOID) /* of 0 is 1/2 */
        bm_clear_padding(l->be, p->out, y);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    (void)p;
    (void)x;
    if (dx.data != NULL)
        bm_activate_back(l->be, l->does.f, bm_count(y), y.data, dy.data,
                         dx.data);
}

#define ACTIVATION(f, names, text)                                             \
    const bm_layer_ops bm_layer_##f = {                                        \
        .name = #f,                                                            \
        .others = names,                                                       \
        .help = #f "  " text,                                                  \
        .plan = plan,                                                          \
        .forward = forward,                                                    \
        .backward = backward,                                                  \
    }

ACTIVATION(relu, NULL, "y = max(x, 0)");
ACTIVATION(leaky_relu, "leakyrelu lrelu", "y = x, or 0.01 x below 0");
ACTIVATION(tanh, NULL, "y = tanh(x)");
ACTIVATION(sigmoid, NULL, "y = 1 / (1 + exp(-x))");
