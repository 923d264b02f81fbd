/* onnx_windows.c - layers with windows of several frames: convolutions, pooling,
 * stack, splice and subsample. */
#include "cli/export/kernels.h"
#include "cli/export/onnx_flow.h"

#include <float.h>
#include <stdlib.h>

static const char *kernels(bm_flow *f, const bm_layer *l)
{
    size_t dim[4], n = bm_kernels_shape(l, dim);
    float *turned = malloc(n * sizeof *turned);
    const char *name = "";

    if (turned == NULL) {
        bm_graph_fail(f->g);
        return name;
    }
    bm_kernels_turn(l, turned);
    name = bm_graph_floats(f->g, "w", 4, dim, turned);
    free(turned);
    return name;
}

static void set_windows(bm_graph *g, const bm_layer *l)
{
    bm_window t = l->time, h = l->rows;
    int64_t apart[2] = {(int64_t)l->dilation[0], (int64_t)l->dilation[1]};

    bm_graph_set_list(g, "kernel_shape", 2,
                      BM_LIST((int64_t)bm_window_taps(t, l->dilation[0]),
                              (int64_t)bm_window_taps(h, l->dilation[1])));
    if (apart[0] > 1 || apart[1] > 1)
        bm_graph_set_list(g, "dilations", 2, apart);
    bm_graph_set_list(g, "strides", 2,
                      BM_LIST((int64_t)t.stride, (int64_t)h.stride));
    bm_graph_set_list(g, "pads", 4,
                      BM_LIST((int64_t)t.before, (int64_t)h.before,
                              (int64_t)t.after, (int64_t)h.after));
}

void bm_onnx_write_conv(bm_flow *f, const bm_layer *l)
{
    bm_flow_to_columns(f, bm_layer_channels_in(l));
    bm_flow_clear(f);
    f->x = BM_NODE(f->g, "Conv", f->x, kernels(f, l),
                   bm_flow_weight(f, l, "b", l->channels));
    set_windows(f->g, l);
    f->channels = l->channels;
    f->zero = false;
    bm_flow_count_windows(f, l->time);
}

/* Each feature is a channel, and a group of its own. */
void bm_onnx_write_depthwise(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    size_t D = l->n_in;
    bm_window t = l->time;

    bm_flow_to_columns(f, D);
    bm_flow_clear(f);
    f->x =
        BM_NODE(g, "Conv", f->x, kernels(f, l), bm_flow_weight(f, l, "b", D));
    bm_graph_set(g, "group", (int64_t)D);
    bm_graph_set_list(g, "strides", 2, BM_LIST((int64_t)t.stride, 1));
    bm_graph_set_list(g, "pads", 4,
                      BM_LIST((int64_t)t.before, 0, (int64_t)t.after, 0));
    f->zero = false;
    bm_flow_count_windows(f, t);
    bm_flow_to_batch(f); /* y is flat */
}

/* One window over all? Such a kernel is larger than the format allows. */
static const char *pool_by(bm_flow *f, const bm_layer *l, const char *x)
{
    bool whole = l->time.size > BM_LAYER_WINDOW;
    const char *y = NULL;

    if (whole)
        return BM_NODE(f->g, l->mean ? "GlobalAveragePool" : "GlobalMaxPool",
                       x);
    y = BM_NODE(f->g, l->mean ? "AveragePool" : "MaxPool", x);
    set_windows(f->g, l);
    if (l->mean)
        bm_graph_set(f->g, "count_include_pad", 1);
    return y;
}

/* The operator divides by all places of a window. So the mean of x is divided
 * by that of the places that count. */
static const char *average(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    size_t H = f->size / l->channels;
    float *ones = malloc(H * sizeof *ones);
    const char *counted = NULL;

    if (ones == NULL) {
        bm_graph_fail(g);
        return "";
    }
    for (size_t h = 0; h < H; h++)
        ones[h] = 1;
    counted = BM_NODE(g, "Cast", bm_flow_inside(f));
    bm_graph_set(g, "to", BM_GRAPH_FLOAT);
    counted =
        BM_NODE(g, "Mul", bm_onnx_unsqueeze(g, counted, 2, BM_LIST(1, 3)),
                bm_graph_floats(g, "rows", 4, (size_t[]){1, 1, 1, H}, ones));
    free(ones);
    return BM_NODE(g, "Div", pool_by(f, l, f->x), pool_by(f, l, counted));
}

/* A window has no number past the end of its sequence, not even zero. */
void bm_onnx_write_pool(bm_flow *f, const bm_layer *l)
{
    bool clears = l->time.size > 1 || l->mean;

    bm_flow_to_columns(f, l->channels);
    if (l->mean) {
        bm_flow_clear(f);
        f->x = average(f, l);
    } else {
        if (clears)
            bm_flow_replace(f, -FLT_MAX, "least");
        f->x = pool_by(f, l, f->x);
    }
    bm_flow_count_windows(f, l->time);
    if (clears) {
        bm_flow_replace(f, 0, "none");
        f->zero = true;
    }
}

/* Frames are added so that the last group is complete. */
void bm_onnx_write_stack(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    int64_t n = (int64_t)l->time.size;
    const char *missing = NULL, *pads = NULL;

    bm_flow_to_batch(f);
    bm_flow_clear(f);
    missing = BM_NODE(g, "Mod", BM_NODE(g, "Neg", bm_flow_frames(f)),
                      bm_onnx_vector(g, 1, &n));
    pads = BM_NODE(g, "Concat", bm_onnx_vector(g, 4, BM_LIST(0, 0, 0, 0)),
                   missing, bm_onnx_vector(g, 1, BM_LIST(0)));
    bm_graph_set(g, "axis", 0);
    f->x = BM_NODE(g, "Pad", f->x, pads);
    f->x = bm_onnx_reshape(g, f->x, 3, BM_LIST(0, -1, (int64_t)l->n_out));
    bm_flow_count_windows(f, l->time);
}

/* Zeros on both sides, then a slice of the frames for each distance. */
void bm_onnx_write_splice(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    long first = l->distances[0], last = l->distances[l->n_distances - 1];
    int64_t before = first < 0 ? -first : 0, after = last > 0 ? last : 0;
    const char *all = NULL, *joined = NULL;

    bm_flow_to_batch(f);
    bm_flow_clear(f);
    all = BM_NODE(g, "Pad", f->x,
                  bm_onnx_vector(g, 6, BM_LIST(0, before, 0, 0, after, 0)));
    for (size_t k = 0; k < l->n_distances; k++) {
        int64_t d = l->distances[k], end = d - after;
        const char *one =
            BM_NODE(g, "Slice", all, bm_onnx_vector(g, 1, BM_LIST(before + d)),
                    bm_onnx_vector(g, 1, end < 0 ? &end : BM_LIST(INT64_MAX)),
                    bm_onnx_vector(g, 1, BM_LIST(1)));

        if (joined == NULL) {
            joined = one;
            continue;
        }
        joined = BM_NODE(g, "Concat", joined, one);
        bm_graph_set(g, "axis", 2);
    }
    f->x = joined;
    f->zero = false;
}

void bm_onnx_write_subsample(bm_flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    int64_t n = (int64_t)l->time.stride;

    bm_flow_to_batch(f);
    f->x = BM_NODE(g, "Slice", f->x, bm_onnx_vector(g, 1, BM_LIST(0)),
                   bm_onnx_vector(g, 1, BM_LIST(INT64_MAX)),
                   bm_onnx_vector(g, 1, BM_LIST(1)), bm_onnx_vector(g, 1, &n));
    bm_flow_count_windows(f, l->time);
}
