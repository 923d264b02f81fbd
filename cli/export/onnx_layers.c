/*
 * onnx_layers.c - the layers of a network as operators of ONNX: those that work
 * on each number or frame, groups, and the table of all.
 */
#include "cli/export/onnx.h"
#include "cli/export/onnx_flow.h"
#include "models/layers/recurrent.h"

#include <stdio.h>
#include <stdlib.h>

static void write_linear(bm_flow *f, const bm_layer *l)
{
    size_t K = l->n_in, N = l->n_out;

    if (f->lies == BM_AS_COLUMNS)
        bm_flow_to_batch(f);
    f->x = BM_NODE(f->g, "MatMul", f->x,
                   bm_flow_turned(f, "w", bm_layer_weight(l, "w"), N, K));
    f->x = BM_NODE(f->g, "Add", f->x, bm_flow_weight(f, l, "b", N));
    f->zero = false;
}

static void write_relu(bm_flow *f, const bm_layer *l)
{
    (void)l;
    f->x = BM_NODE(f->g, "Relu", f->x);
}

static void write_leaky_relu(bm_flow *f, const bm_layer *l)
{
    (void)l;
    f->x = BM_NODE(f->g, "LeakyRelu", f->x);
    bm_graph_set_float(f->g, "alpha", BM_LEAK);
}

static void write_tanh(bm_flow *f, const bm_layer *l)
{
    (void)l;
    f->x = BM_NODE(f->g, "Tanh", f->x);
}

static void write_sigmoid(bm_flow *f, const bm_layer *l)
{
    (void)l;
    f->x = BM_NODE(f->g, "Sigmoid", f->x);
    f->zero = false;
}

static void write_swish(bm_flow *f, const bm_layer *l)
{
    (void)l;
    f->x = BM_NODE(f->g, "Mul", f->x, BM_NODE(f->g, "Sigmoid", f->x));
}

static void write_gelu(bm_flow *f, const bm_layer *l)
{
    const float root = BM_SQRT_HALF, one = 1, half = 0.5F;
    const char *y = NULL;

    (void)l;
    y = BM_NODE(f->g, "Mul", f->x,
                bm_graph_floats(f->g, "root", 0, NULL, &root));
    y = BM_NODE(f->g, "Erf", y);
    y = BM_NODE(f->g, "Add", y, bm_graph_floats(f->g, "one", 0, NULL, &one));
    y = BM_NODE(f->g, "Mul", y, bm_graph_floats(f->g, "half", 0, NULL, &half));
    f->x = BM_NODE(f->g, "Mul", f->x, y);
}

static void write_glu(bm_flow *f, const bm_layer *l)
{
    bool columns = l->channels_in > 0;
    int64_t axis = columns ? 1 : 2, n = (int64_t)l->n_in;
    const char *a = NULL, *b = NULL;

    if (columns) {
        bm_flow_to_columns(f, l->channels_in);
        n = (int64_t)l->channels_in;
        f->channels = l->channels;
    } else {
        bm_flow_to_batch(f);
    }
    a = bm_onnx_slice(f->g, f->x, axis, 0, n / 2);
    b = bm_onnx_slice(f->g, f->x, axis, n / 2, n);
    f->x = BM_NODE(f->g, "Mul", a, BM_NODE(f->g, "Sigmoid", b));
}

static void write_scale(bm_flow *f, const bm_layer *l)
{
    f->x = BM_NODE(f->g, "Mul", f->x,
                   bm_graph_floats(f->g, "factor", 0, NULL, &l->factor));
}

/* In evaluation it is the identity. */
static void write_dropout(bm_flow *f, const bm_layer *l)
{
    (void)f;
    (void)l;
}

/* The group's input is the value in front of it. */
static void write_opening(bm_flow *f, const bm_layer *l)
{
    (void)f;
    (void)l;
}

static void write_separator(bm_flow *f, const bm_layer *l)
{
    const bm_flow *entered = f->entered;

    *f = entered[l - l->opening - f->layers];
    f->entered = entered;
}

/* A branch in the layout in which branches meet. */
static void to_branch(bm_flow *f, const bm_layer *b, bool columns)
{
    if (columns)
        bm_flow_to_columns(f, b->channels_in > 0 ? b->channels_in : 1);
    else
        bm_flow_to_batch(f);
}

static void write_closing(bm_flow *f, const bm_layer *l)
{
    bool columns = l->channels > 0;
    bool join = (l - l->opening)->ops == &bm_layer_branches;

    to_branch(f, l, columns);
    for (const bm_layer *b = l - l->previous; b->ops->role == BM_SEPARATES;
         b -= b->previous) {
        bm_flow other = f->entered[b - f->layers];

        to_branch(&other, b, columns);
        f->x = BM_NODE(f->g, join ? "Concat" : "Add", other.x, f->x);
        if (join)
            bm_graph_set(f->g, "axis", columns ? 1 : 2);
        f->zero = f->zero && other.zero;
    }
    if (columns)
        f->channels = l->channels;
}

static const struct {
    const bm_layer_ops *layer;
    bm_onnx_writer *write;
} writers[] = {
    {&bm_layer_linear, write_linear},
    {&bm_layer_conv, bm_onnx_write_conv},
    {&bm_layer_depthwise, bm_onnx_write_depthwise},
    {&bm_layer_pool, bm_onnx_write_pool},
    {&bm_layer_batchnorm, bm_onnx_write_batchnorm},
    {&bm_layer_layernorm, bm_onnx_write_layernorm},
    {&bm_layer_instancenorm, bm_onnx_write_instancenorm},
    {&bm_layer_relu, write_relu},
    {&bm_layer_leaky_relu, write_leaky_relu},
    {&bm_layer_tanh, write_tanh},
    {&bm_layer_sigmoid, write_sigmoid},
    {&bm_layer_swish, write_swish},
    {&bm_layer_gelu, write_gelu},
    {&bm_layer_glu, write_glu},
    {&bm_layer_scale, write_scale},
    {&bm_layer_lstm, bm_onnx_write_recurrent},
    {&bm_layer_blstm, bm_onnx_write_recurrent},
    {&bm_layer_gru, bm_onnx_write_recurrent},
    {&bm_layer_bgru, bm_onnx_write_recurrent},
    {&bm_layer_attention, bm_onnx_write_attention},
    {&bm_layer_dropout, write_dropout},
    {&bm_layer_stack, bm_onnx_write_stack},
    {&bm_layer_subsample, bm_onnx_write_subsample},
    {&bm_layer_splice, bm_onnx_write_splice},
    {&bm_layer_residual, write_opening},
    {&bm_layer_branches, write_opening},
    {&bm_layer_separator, write_separator},
    {&bm_layer_closing, write_closing},
};

static bm_onnx_writer *find(const bm_layer_ops *layer)
{
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++)
        if (writers[i].layer == layer)
            return writers[i].write;
    return NULL;
}

bm_status bm_onnx_layers(bm_graph *g, const bm_layer *layers, size_t n,
                         const char **features, const char **lengths)
{
    bm_flow *entered = calloc(n + 1, sizeof *entered);
    bm_flow f = {.g = g,
                 .x = *features,
                 .size = n > 0 ? layers[0].n_in : 0,
                 .lengths = *lengths,
                 .entered = entered,
                 .layers = layers};
    bm_status status = BM_OK;

    if (entered == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a graph");
    for (size_t k = 0; k < n; k++)
        if (find(layers[k].ops) == NULL)
            BM_FAIL_DONE(BM_ERR_UNSUPPORTED,
                         "layer %s: ONNX has no counterpart of '%s'; export "
                         "to --npz",
                         layers[k].name, layers[k].ops->name);
    for (size_t k = 0; k < n; k++)
        if (bm_layer_is_recurrent(&layers[k]) &&
            bm_layer_recurrent(&layers[k]).n_projected > 0)
            BM_FAIL_DONE(BM_ERR_UNSUPPORTED,
                         "layer %s: ONNX's LSTM has no projection; export to "
                         "--npz",
                         layers[k].name);
    for (size_t k = 0; k < n; k++) {
        const bm_layer *l = &layers[k];
        char group[32];

        snprintf(group, sizeof group, "group_%zu", k);
        bm_graph_scope(g, l->ops->role == BM_ALONE ? l->name : group);
        entered[k] = f;
        find(l->ops)(&f, l);
        f.size = l->n_out;
    }
    bm_flow_to_batch(&f);
    *features = f.x;
    *lengths = f.lengths;
done:
    free(entered);
    return status;
}
