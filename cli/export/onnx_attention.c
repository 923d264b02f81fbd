/* onnx_attention.c - self-attention with relative positions. */
#include "cli/export/onnx_flow.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* x [B, T, D] times one of the three matrices, for q, k, v, with its bias. */
static const char *project(bm_flow *f, const bm_layer *l, size_t i)
{
    static const char *const names[][2] = {
        {"wq", "bq"}, {"wk", "bk"}, {"wv", "bv"}};
    size_t D = l->n_in;
    const float *w = bm_layer_weight(l, "w") + i * D * D;
    const float *b = bm_layer_weight(l, "b") + i * D;
    const char *y =
        BM_NODE(f->g, "MatMul", f->x, bm_flow_turned(f, names[i][0], w, D, D));

    return BM_NODE(f->g, "Add", y,
                   bm_graph_floats(f->g, names[i][1], 1, &D, b));
}

/* [B, T, D] -> [B, heads, T, d], or with the last two in another order. */
static const char *by_head(bm_flow *f, const bm_layer *l, const char *x,
                           bool turn)
{
    int64_t H = (int64_t)l->heads, d = (int64_t)l->n_in / H;

    x = bm_onnx_reshape(f->g, x, 4, BM_LIST(0, 0, H, d));
    return bm_onnx_transpose(f->g, x, 4,
                             turn ? BM_LIST(0, 2, 3, 1) : BM_LIST(0, 2, 1, 3));
}

/* The encodings of distances T - 1 .. 1 - T: [2 T - 1, D]. T: a scalar. */
static const char *encodings(bm_flow *f, const bm_layer *l, const char *T)
{
    bm_graph *g = f->g;
    size_t half = (l->n_in + 1) / 2;
    float *rates = malloc(half * sizeof *rates);
    const char *p = NULL, *angles = NULL, *both = NULL;
    int64_t D = (int64_t)l->n_in;

    if (rates == NULL) {
        bm_graph_fail(g);
        return "";
    }
    for (size_t i = 0; i < half; i++)
        rates[i] = (float)pow(10000, -2 * (double)i / (double)l->n_in);
    p = BM_NODE(g, "Range", BM_NODE(g, "Sub", T, bm_onnx_scalar(g, 1)),
                BM_NODE(g, "Neg", T), bm_onnx_scalar(g, -1));
    p = BM_NODE(g, "Cast", p);
    bm_graph_set(g, "to", BM_GRAPH_FLOAT);
    angles = BM_NODE(g, "Mul", bm_onnx_unsqueeze(g, p, 1, BM_LIST(1)),
                     bm_graph_floats(g, "rates", 1, &half, rates));
    free(rates);
    both =
        BM_NODE(g, "Concat",
                bm_onnx_unsqueeze(g, BM_NODE(g, "Sin", angles), 1, BM_LIST(2)),
                bm_onnx_unsqueeze(g, BM_NODE(g, "Cos", angles), 1, BM_LIST(2)));
    bm_graph_set(g, "axis", 2);
    both = bm_onnx_reshape(g, both, 2, BM_LIST(0, 2 * (int64_t)half));
    return bm_onnx_slice(g, both, 1, 0, D);
}

/* y[t, u] = r[t, T - 1 - t + u] of r [B, heads, T, 2 T - 1]: with a number in
 * front of each row, rows of T begin one number later than those of 2 T - 1. */
static const char *shift(bm_flow *f, const char *r, const char *T)
{
    bm_graph *g = f->g;
    const char *length = bm_onnx_unsqueeze(g, T, 1, BM_LIST(0));
    const char *shape = NULL, *y = NULL;

    y = BM_NODE(g, "Pad", r,
                bm_onnx_vector(g, 8, BM_LIST(0, 0, 0, 1, 0, 0, 0, 0)));
    shape =
        BM_NODE(g, "Concat", bm_onnx_vector(g, 3, BM_LIST(0, 0, -1)), length);
    bm_graph_set(g, "axis", 0);
    y = bm_onnx_slice(g, BM_NODE(g, "Reshape", y, shape), 2, 1, INT64_MAX);
    shape = BM_NODE(g, "Concat", bm_onnx_vector(g, 2, BM_LIST(0, 0)), length,
                    bm_onnx_vector(g, 1, BM_LIST(-1)));
    bm_graph_set(g, "axis", 0);
    return BM_NODE(g, "Slice", BM_NODE(g, "Reshape", y, shape),
                   bm_onnx_vector(g, 1, BM_LIST(0)), length,
                   bm_onnx_vector(g, 1, BM_LIST(3)));
}

/* The scores [B, heads, T, T], before they are scaled. */
static const char *score(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    size_t D = l->n_in;
    int64_t H = (int64_t)l->heads, d = (int64_t)D / H;
    const float *uv = bm_layer_weight(l, "uv");
    const char *T = bm_flow_frames(f), *q = project(f, l, 0),
               *k = project(f, l, 1);
    const char *qu = BM_NODE(g, "Add", q, bm_graph_floats(g, "u", 1, &D, uv));
    const char *qv =
        BM_NODE(g, "Add", q, bm_graph_floats(g, "v", 1, &D, uv + D));
    const char *p =
        BM_NODE(g, "MatMul", encodings(f, l, T),
                bm_flow_turned(f, "wr", bm_layer_weight(l, "wr"), D, D));
    const char *r = NULL;

    p = bm_onnx_transpose(g, bm_onnx_reshape(g, p, 3, BM_LIST(0, H, d)), 3,
                          BM_LIST(1, 2, 0));
    r = BM_NODE(g, "MatMul", by_head(f, l, qv, false), p);
    return BM_NODE(
        g, "Add",
        BM_NODE(g, "MatMul", by_head(f, l, qu, false), by_head(f, l, k, true)),
        shift(f, r, T));
}

void bm_onnx_write_attention(bm_flow *f, const bm_layer *l)
{
    static const float least = -FLT_MAX;
    bm_graph *g = f->g;
    size_t D = l->n_in, d = D / l->heads;
    float scale = (float)(1 / sqrt((double)d));
    const char *a = NULL, *c = NULL;

    bm_flow_to_batch(f);
    bm_flow_clear(f);
    a = BM_NODE(g, "Mul", score(f, l),
                bm_graph_floats(g, "scale", 0, NULL, &scale));
    a = BM_NODE(g, "Where",
                bm_onnx_unsqueeze(g, bm_flow_inside(f), 2, BM_LIST(1, 2)), a,
                bm_graph_floats(g, "least", 0, NULL, &least));
    a = BM_NODE(g, "Softmax", a);
    bm_graph_set(g, "axis", 3);
    c = BM_NODE(g, "MatMul", a, by_head(f, l, project(f, l, 2), false));
    c = bm_onnx_transpose(g, c, 4, BM_LIST(0, 2, 1, 3));
    c = bm_onnx_reshape(g, c, 3, BM_LIST(0, 0, (int64_t)D));
    c = BM_NODE(g, "MatMul", c,
                bm_flow_turned(f, "wo", bm_layer_weight(l, "wo"), D, D));
    f->x = BM_NODE(g, "Add", c, bm_flow_weight(f, l, "bo", D));
    f->zero = false;
}
