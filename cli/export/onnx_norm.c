/* onnx_norm.c - batch and layer normalisation. */
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
