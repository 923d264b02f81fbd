/* onnx_flow.c - see onnx_flow.h. */
#include "cli/export/onnx_flow.h"

#include <stdlib.h>

const char *bm_onnx_vector(bm_graph *g, size_t n, const int64_t *x)
{
    return bm_graph_integers(g, 1, n, x);
}

const char *bm_onnx_scalar(bm_graph *g, int64_t x)
{
    return bm_graph_integers(g, 0, 1, &x);
}

const char *bm_onnx_transpose(bm_graph *g, const char *x, size_t rank,
                              const int64_t *order)
{
    const char *y = BM_NODE(g, "Transpose", x);

    bm_graph_set_list(g, "perm", rank, order);
    return y;
}

const char *bm_onnx_reshape(bm_graph *g, const char *x, size_t rank,
                            const int64_t *shape)
{
    return BM_NODE(g, "Reshape", x, bm_onnx_vector(g, rank, shape));
}

const char *bm_onnx_unsqueeze(bm_graph *g, const char *x, size_t n,
                              const int64_t *axes)
{
    const char *y = BM_NODE(g, "Unsqueeze", x);

    bm_graph_set_list(g, "axes", n, axes);
    return y;
}

const char *bm_onnx_slice(bm_graph *g, const char *x, int64_t axis,
                          int64_t from, int64_t to)
{
    return BM_NODE(g, "Slice", x, bm_onnx_vector(g, 1, &from),
                   bm_onnx_vector(g, 1, &to), bm_onnx_vector(g, 1, &axis));
}

void bm_flow_to_batch(bm_flow *f)
{
    if (f->lies == BM_AS_TIME)
        f->x = bm_onnx_transpose(f->g, f->x, 3, BM_LIST(1, 0, 2));
    if (f->lies == BM_AS_COLUMNS) {
        f->x = bm_onnx_transpose(f->g, f->x, 4, BM_LIST(0, 2, 3, 1));
        f->x = bm_onnx_reshape(f->g, f->x, 3, BM_LIST(0, 0, (int64_t)f->size));
    }
    f->lies = BM_AS_BATCH;
}

void bm_flow_to_time(bm_flow *f)
{
    if (f->lies == BM_AS_TIME)
        return;
    bm_flow_to_batch(f);
    f->x = bm_onnx_transpose(f->g, f->x, 3, BM_LIST(1, 0, 2));
    f->lies = BM_AS_TIME;
}

void bm_flow_to_columns(bm_flow *f, size_t channels)
{
    int64_t C = (int64_t)channels, H = (int64_t)(f->size / channels);

    if (f->lies == BM_AS_COLUMNS && f->channels == channels)
        return;
    bm_flow_to_batch(f);
    f->x = bm_onnx_reshape(f->g, f->x, 4, BM_LIST(0, 0, H, C));
    f->x = bm_onnx_transpose(f->g, f->x, 4, BM_LIST(0, 3, 1, 2));
    f->channels = channels;
    f->lies = BM_AS_COLUMNS;
}

const char *bm_flow_frames(const bm_flow *f)
{
    int64_t axis = f->lies == BM_AS_BATCH ? 1 : f->lies == BM_AS_TIME ? 0 : 2;

    return BM_NODE(f->g, "Gather", BM_NODE(f->g, "Shape", f->x),
                   bm_onnx_scalar(f->g, axis));
}

const char *bm_flow_inside(bm_flow *f)
{
    bm_graph *g = f->g;

    if (f->inside == NULL) {
        const char *places = BM_NODE(g, "Range", bm_onnx_scalar(g, 0),
                                     bm_flow_frames(f), bm_onnx_scalar(g, 1));

        f->inside = BM_NODE(g, "Less", places,
                            bm_onnx_unsqueeze(g, f->lengths, 1, BM_LIST(1)));
    }
    return f->inside;
}

void bm_flow_replace(bm_flow *f, float other, const char *name)
{
    bm_graph *g = f->g;
    const char *inside = bm_flow_inside(f);

    if (f->lies == BM_AS_TIME)
        inside = bm_onnx_transpose(g, inside, 2, BM_LIST(1, 0));
    inside = f->lies == BM_AS_COLUMNS
                 ? bm_onnx_unsqueeze(g, inside, 2, BM_LIST(1, 3))
                 : bm_onnx_unsqueeze(g, inside, 1, BM_LIST(2));
    f->x = BM_NODE(g, "Where", inside, f->x,
                   bm_graph_floats(g, name, 0, NULL, &other));
}

void bm_flow_clear(bm_flow *f)
{
    if (!f->zero)
        bm_flow_replace(f, 0, "zero");
    f->zero = true;
}

void bm_flow_count_windows(bm_flow *f, bm_window w)
{
    bm_graph *g = f->g;
    int64_t size = (int64_t)w.size, stride = (int64_t)w.stride;
    int64_t more = (int64_t)(w.before + w.after) - size + stride;
    const char *n = f->lengths;

    if (stride == 1 && more == 0)
        return;
    if (more != 0)
        n = BM_NODE(g, "Add", n, bm_onnx_vector(g, 1, &more));
    if (more < 0)
        n = BM_NODE(g, "Max", n, bm_onnx_vector(g, 1, BM_LIST(0)));
    if (stride > 1)
        n = BM_NODE(g, "Div", n, bm_onnx_vector(g, 1, &stride));
    f->lengths = n;
    f->inside = NULL;
}

const char *bm_flow_weight(bm_flow *f, const bm_layer *l, const char *name,
                           size_t n)
{
    return bm_graph_floats(f->g, name, 1, &n, bm_layer_weight(l, name));
}

const char *bm_flow_turned(bm_flow *f, const char *name, const float *w,
                           size_t rows, size_t K)
{
    float *to = malloc(rows * K * sizeof *to);
    const char *value = "";

    if (to == NULL) {
        bm_graph_fail(f->g);
        return value;
    }
    for (size_t n = 0; n < rows; n++)
        for (size_t k = 0; k < K; k++)
            to[k * rows + n] = w[n * K + k];
    value = bm_graph_floats(f->g, name, 2, (size_t[]){K, rows}, to);
    free(to);
    return value;
}
