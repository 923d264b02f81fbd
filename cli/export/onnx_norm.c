/* onnx_norm.c - batch, layer and instance normalisation. */
#include "cli/export/onnx_flow.h"

#include <math.h>
#include <stdlib.h>

/* Of a flat frame each number is a channel: y = a x + c. */
static void normalise_flat(bm_flow *f, const bm_layer *l)
{
    const float *gamma = bm_layer_weight(l, "gamma"),
                *beta = bm_layer_weight(l, "beta"),
                *mean = bm_layer_weight(l, "mean"),
                *var = bm_layer_weight(l, "var");
    size_t C = l->n_in;
    float *a = malloc(2 * C * sizeof *a), *c = NULL;

    if (a == NULL) {
        bm_graph_fail(f->g);
        return;
    }
    c = a + C;
    for (size_t i = 0; i < C; i++) {
        double scale = gamma[i] / sqrt(var[i] + BM_NORM_EPSILON);

        a[i] = (float)scale;
        c[i] = (float)(beta[i] - scale * mean[i]);
    }
    f->x = BM_NODE(f->g, "Mul", f->x, bm_graph_floats(f->g, "scale", 1, &C, a));
    f->x = BM_NODE(f->g, "Add", f->x, bm_graph_floats(f->g, "shift", 1, &C, c));
    free(a);
}

void bm_onnx_write_batchnorm(bm_flow *f, const bm_layer *l)
{
    size_t C = l->channels_in;

    f->zero = false;
    if (C == 0) {
        normalise_flat(f, l);
        return;
    }
    bm_flow_to_columns(f, C);
    f->x = BM_NODE(
        f->g, "BatchNormalization", f->x, bm_flow_weight(f, l, "gamma", C),
        bm_flow_weight(f, l, "beta", C), bm_flow_weight(f, l, "mean", C),
        bm_flow_weight(f, l, "var", C));
    bm_graph_set_float(f->g, "epsilon", (float)BM_NORM_EPSILON);
}

static const char *mean(bm_graph *g, const char *x)
{
    const char *y = BM_NODE(g, "ReduceMean", x);

    bm_graph_set_list(g, "axes", 1, BM_LIST(-1));
    return y;
}

/* LayerNormalization is newer than the operators of these graphs. */
void bm_onnx_write_layernorm(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    static const float epsilon = (float)BM_NORM_EPSILON;
    const char *off = NULL, *var = NULL;

    if (f->lies == BM_AS_COLUMNS)
        bm_flow_to_batch(f);
    off = BM_NODE(g, "Sub", f->x, mean(g, f->x));
    var = mean(g, BM_NODE(g, "Mul", off, off));
    var = BM_NODE(g, "Add", var,
                  bm_graph_floats(g, "epsilon", 0, NULL, &epsilon));
    f->x = BM_NODE(g, "Div", off, BM_NODE(g, "Sqrt", var));
    f->x = BM_NODE(g, "Mul", f->x, bm_flow_weight(f, l, "gamma", l->n_in));
    f->x = BM_NODE(g, "Add", f->x, bm_flow_weight(f, l, "beta", l->n_in));
    f->zero = false;
}

/* Of [B, C, T, H], without padding, whose places are zero in x: [B, C, 1, 1]. */
static const char *mean_of_image(bm_graph *g, const char *x, const char *places)
{
    const char *sum = BM_NODE(g, "ReduceSum", x);

    bm_graph_set_list(g, "axes", 2, BM_LIST(2, 3));
    return BM_NODE(g, "Div", sum, places);
}

/* Rows of the frames of each sequence, at least 1: [B, 1, 1, 1]. */
static const char *places_of(bm_flow *f, size_t H)
{
    bm_graph *g = f->g;
    float rows = (float)H, one = 1;
    const char *n = BM_NODE(g, "Cast", f->lengths);

    bm_graph_set(g, "to", BM_GRAPH_FLOAT);
    n = BM_NODE(g, "Mul", n, bm_graph_floats(g, "rows", 0, NULL, &rows));
    n = BM_NODE(g, "Max", n, bm_graph_floats(g, "one", 0, NULL, &one));
    return bm_onnx_unsqueeze(g, n, 3, BM_LIST(1, 2, 3));
}

/* InstanceNormalization knows no padding. */
void bm_onnx_write_instancenorm(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    static const float epsilon = (float)BM_NORM_EPSILON;
    size_t C = l->channels_in > 0 ? l->channels_in : l->n_in;
    size_t of_channel[] = {C, 1, 1};
    const char *places = NULL, *var = NULL;

    bm_flow_to_columns(f, C);
    bm_flow_clear(f);
    places = places_of(f, f->size / C);
    f->x = BM_NODE(g, "Sub", f->x, mean_of_image(g, f->x, places));
    bm_flow_replace(f, 0, "outside");
    var = mean_of_image(g, BM_NODE(g, "Mul", f->x, f->x), places);
    var = BM_NODE(g, "Add", var,
                  bm_graph_floats(g, "epsilon", 0, NULL, &epsilon));
    f->x = BM_NODE(g, "Div", f->x, BM_NODE(g, "Sqrt", var));
    f->x = BM_NODE(g, "Mul", f->x,
                   bm_graph_floats(g, "gamma", 3, of_channel,
                                   bm_layer_weight(l, "gamma")));
    f->x = BM_NODE(
        g, "Add", f->x,
        bm_graph_floats(g, "beta", 3, of_channel, bm_layer_weight(l, "beta")));
    f->zero = false;
}
