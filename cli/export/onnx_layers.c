/*
 * onnx_layers.c - the layers of a network as operators of ONNX, which know no
 * padding. So the graph computes the lengths of sequences after each layer, and
 * in front of a layer that looks at several frames it replaces what is past the
 * end of a sequence by zeros.
 *
 * Values lie as the next layer needs them:
 *
 *     BATCH    [B, T, D]        TIME     [T, B, D]: LSTMs, GRUs
 *     COLUMNS  [B, C, T, H]: images; D = H C, in a frame channels are last
 */
#include "cli/export/kernels.h"
#include "cli/export/onnx.h"
#include "models/layers/recurrent.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum layout { BATCH, TIME, COLUMNS } layout;

/* The value between two layers. */
typedef struct flow {
    bm_graph *g;
    const char *x;
    layout lies;
    size_t size, channels; /* of a frame; of COLUMNS */
    bool zero;             /* past the end of each sequence */
    const char *lengths;   /* [B] */
    const char *inside; /* [B, T]: is it before the end? NULL: not computed */
    const struct flow *entered; /* the flow in front of each layer so far */
    const bm_layer *layers;     /* the first */
} flow;

/* ---- operators ----------------------------------------------------------- */

#define NODE(...) bm_graph_node(__VA_ARGS__, NULL)
#define LIST(...)                                                              \
    (const int64_t[])                                                          \
    {                                                                          \
        __VA_ARGS__                                                            \
    }

static const char *vector(bm_graph *g, size_t n, const int64_t *x)
{
    return bm_graph_integers(g, 1, n, x);
}

static const char *scalar(bm_graph *g, int64_t x)
{
    return bm_graph_integers(g, 0, 1, &x);
}

static const char *transpose(bm_graph *g, const char *x, size_t rank,
                             const int64_t *order)
{
    const char *y = NODE(g, "Transpose", x);

    bm_graph_set_list(g, "perm", rank, order);
    return y;
}

/* 0 in `shape` keeps a dimension; -1 follows from the others. */
static const char *reshape(bm_graph *g, const char *x, size_t rank,
                           const int64_t *shape)
{
    return NODE(g, "Reshape", x, vector(g, rank, shape));
}

static const char *unsqueeze(bm_graph *g, const char *x, size_t n,
                             const int64_t *axes)
{
    const char *y = NODE(g, "Unsqueeze", x);

    bm_graph_set_list(g, "axes", n, axes);
    return y;
}

/* ---- layouts and lengths ------------------------------------------------- */

static void to_batch(flow *f)
{
    if (f->lies == TIME)
        f->x = transpose(f->g, f->x, 3, LIST(1, 0, 2));
    if (f->lies == COLUMNS) {
        f->x = transpose(f->g, f->x, 4, LIST(0, 2, 3, 1));
        f->x = reshape(f->g, f->x, 3, LIST(0, 0, (int64_t)f->size));
    }
    f->lies = BATCH;
}

static void to_time(flow *f)
{
    if (f->lies == TIME)
        return;
    to_batch(f);
    f->x = transpose(f->g, f->x, 3, LIST(1, 0, 2));
    f->lies = TIME;
}

static void to_columns(flow *f, size_t channels)
{
    int64_t C = (int64_t)channels, H = (int64_t)(f->size / channels);

    if (f->lies == COLUMNS && f->channels == channels)
        return;
    to_batch(f);
    f->x = reshape(f->g, f->x, 4, LIST(0, 0, H, C));
    f->x = transpose(f->g, f->x, 4, LIST(0, 3, 1, 2));
    f->channels = channels;
    f->lies = COLUMNS;
}

/* The number of frames T, padding included. */
static const char *frames(const flow *f)
{
    int64_t axis = f->lies == BATCH ? 1 : f->lies == TIME ? 0 : 2;

    return NODE(f->g, "Gather", NODE(f->g, "Shape", f->x), scalar(f->g, axis));
}

static const char *find_inside(flow *f)
{
    bm_graph *g = f->g;

    if (f->inside == NULL) {
        const char *places =
            NODE(g, "Range", scalar(g, 0), frames(f), scalar(g, 1));

        f->inside =
            NODE(g, "Less", places, unsqueeze(g, f->lengths, 1, LIST(1)));
    }
    return f->inside;
}

/* Replaces x by `other` past the end of each sequence, a constant of that name.
 */
static void replace(flow *f, float other, const char *name)
{
    bm_graph *g = f->g;
    const char *inside = find_inside(f);

    if (f->lies == TIME)
        inside = transpose(g, inside, 2, LIST(1, 0));
    inside = f->lies == COLUMNS ? unsqueeze(g, inside, 2, LIST(1, 3))
                                : unsqueeze(g, inside, 1, LIST(2));
    f->x = NODE(g, "Where", inside, f->x,
                bm_graph_floats(g, name, 0, NULL, &other));
}

static void clear(flow *f)
{
    if (!f->zero)
        replace(f, 0, "zero");
    f->zero = true;
}

/* The lengths after windows over time: see bm_windows. */
static void count_windows(flow *f, bm_window w)
{
    bm_graph *g = f->g;
    int64_t size = (int64_t)w.size, stride = (int64_t)w.stride;
    int64_t more = (int64_t)(w.before + w.after) - size + stride;
    const char *n = f->lengths;

    if (stride == 1 && more == 0)
        return;
    if (more != 0)
        n = NODE(g, "Add", n, vector(g, 1, &more));
    if (more < 0)
        n = NODE(g, "Max", n, vector(g, 1, LIST(0)));
    if (stride > 1)
        n = NODE(g, "Div", n, vector(g, 1, &stride));
    f->lengths = n;
    f->inside = NULL;
}

/* ---- layers -------------------------------------------------------------- */

typedef void writer(flow *f, const bm_layer *l);

/* A vector of weights. */
static const char *weight(flow *f, const bm_layer *l, const char *name,
                          size_t n)
{
    return bm_graph_floats(f->g, name, 1, &n, bm_layer_weight(l, name));
}

/* A matrix [rows, K] as the second factor of a product. */
static const char *turned(flow *f, const char *name, const float *w,
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

static void write_linear(flow *f, const bm_layer *l)
{
    size_t K = l->n_in, N = l->n_out;

    if (f->lies == COLUMNS)
        to_batch(f);
    f->x = NODE(f->g, "MatMul", f->x,
                turned(f, "w", bm_layer_weight(l, "w"), N, K));
    f->x = NODE(f->g, "Add", f->x, weight(f, l, "b", N));
    f->zero = false;
}

static const char *kernels(flow *f, const bm_layer *l)
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
                      LIST((int64_t)bm_window_taps(t, l->dilation[0]),
                           (int64_t)bm_window_taps(h, l->dilation[1])));
    if (apart[0] > 1 || apart[1] > 1)
        bm_graph_set_list(g, "dilations", 2, apart);
    bm_graph_set_list(g, "strides", 2,
                      LIST((int64_t)t.stride, (int64_t)h.stride));
    bm_graph_set_list(g, "pads", 4,
                      LIST((int64_t)t.before, (int64_t)h.before,
                           (int64_t)t.after, (int64_t)h.after));
}

static void write_conv(flow *f, const bm_layer *l)
{
    to_columns(f, bm_layer_channels_in(l));
    clear(f);
    f->x =
        NODE(f->g, "Conv", f->x, kernels(f, l), weight(f, l, "b", l->channels));
    set_windows(f->g, l);
    f->channels = l->channels;
    f->zero = false;
    count_windows(f, l->time);
}

/* Each feature is a channel, and a group of its own. */
static void write_depthwise(flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    size_t D = l->n_in;
    bm_window t = l->time;

    to_columns(f, D);
    clear(f);
    f->x = NODE(g, "Conv", f->x, kernels(f, l), weight(f, l, "b", D));
    bm_graph_set(g, "group", (int64_t)D);
    bm_graph_set_list(g, "strides", 2, LIST((int64_t)t.stride, 1));
    bm_graph_set_list(g, "pads", 4,
                      LIST((int64_t)t.before, 0, (int64_t)t.after, 0));
    f->zero = false;
    count_windows(f, t);
    to_batch(f); /* y is flat */
}

/* One window over all? Such a kernel is larger than the format allows. */
static const char *pool_by(flow *f, const bm_layer *l, const char *x)
{
    bool whole = l->time.size > BM_LAYER_WINDOW;
    const char *y = NULL;

    if (whole)
        return NODE(f->g, l->mean ? "GlobalAveragePool" : "GlobalMaxPool", x);
    y = NODE(f->g, l->mean ? "AveragePool" : "MaxPool", x);
    set_windows(f->g, l);
    if (l->mean)
        bm_graph_set(f->g, "count_include_pad", 1);
    return y;
}

/* The operator divides by all places of a window. So the mean of x is divided
 * by that of the places that count. */
static const char *average(flow *f, const bm_layer *l)
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
    counted = NODE(g, "Cast", find_inside(f));
    bm_graph_set(g, "to", BM_GRAPH_FLOAT);
    counted = NODE(g, "Mul", unsqueeze(g, counted, 2, LIST(1, 3)),
                   bm_graph_floats(g, "rows", 4, (size_t[]){1, 1, 1, H}, ones));
    free(ones);
    return NODE(g, "Div", pool_by(f, l, f->x), pool_by(f, l, counted));
}

/* A window has no number past the end of its sequence, not even zero. */
static void write_pool(flow *f, const bm_layer *l)
{
    bool clears = l->time.size > 1 || l->mean;

    to_columns(f, l->channels);
    if (l->mean) {
        clear(f);
        f->x = average(f, l);
    } else {
        if (clears)
            replace(f, -FLT_MAX, "least");
        f->x = pool_by(f, l, f->x);
    }
    count_windows(f, l->time);
    if (clears) {
        replace(f, 0, "none");
        f->zero = true;
    }
}

/* Of a flat frame each number is a channel: y = a x + c. */
static void normalise_flat(flow *f, const bm_layer *l)
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
    f->x = NODE(f->g, "Mul", f->x, bm_graph_floats(f->g, "scale", 1, &C, a));
    f->x = NODE(f->g, "Add", f->x, bm_graph_floats(f->g, "shift", 1, &C, c));
    free(a);
}

static void write_batchnorm(flow *f, const bm_layer *l)
{
    size_t C = l->channels_in;

    f->zero = false;
    if (C == 0) {
        normalise_flat(f, l);
        return;
    }
    to_columns(f, C);
    f->x = NODE(f->g, "BatchNormalization", f->x, weight(f, l, "gamma", C),
                weight(f, l, "beta", C), weight(f, l, "mean", C),
                weight(f, l, "var", C));
    bm_graph_set_float(f->g, "epsilon", (float)BM_NORM_EPSILON);
}

static const char *mean(bm_graph *g, const char *x)
{
    const char *y = NODE(g, "ReduceMean", x);

    bm_graph_set_list(g, "axes", 1, LIST(-1));
    return y;
}

/* LayerNormalization is newer than the operators of these graphs. */
static void write_layernorm(flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    static const float epsilon = (float)BM_NORM_EPSILON;
    const char *off = NULL, *var = NULL;

    if (f->lies == COLUMNS)
        to_batch(f);
    off = NODE(g, "Sub", f->x, mean(g, f->x));
    var = mean(g, NODE(g, "Mul", off, off));
    var = NODE(g, "Add", var, bm_graph_floats(g, "epsilon", 0, NULL, &epsilon));
    f->x = NODE(g, "Div", off, NODE(g, "Sqrt", var));
    f->x = NODE(g, "Mul", f->x, weight(f, l, "gamma", l->n_in));
    f->x = NODE(g, "Add", f->x, weight(f, l, "beta", l->n_in));
    f->zero = false;
}

static void write_relu(flow *f, const bm_layer *l)
{
    (void)l;
    f->x = NODE(f->g, "Relu", f->x);
}

static void write_leaky_relu(flow *f, const bm_layer *l)
{
    (void)l;
    f->x = NODE(f->g, "LeakyRelu", f->x);
    bm_graph_set_float(f->g, "alpha", BM_LEAK);
}

static void write_tanh(flow *f, const bm_layer *l)
{
    (void)l;
    f->x = NODE(f->g, "Tanh", f->x);
}

static void write_sigmoid(flow *f, const bm_layer *l)
{
    (void)l;
    f->x = NODE(f->g, "Sigmoid", f->x);
    f->zero = false;
}

static void write_swish(flow *f, const bm_layer *l)
{
    (void)l;
    f->x = NODE(f->g, "Mul", f->x, NODE(f->g, "Sigmoid", f->x));
}

/* x from number `from` to number `to` - 1 of an axis. */
static const char *slice(bm_graph *g, const char *x, int64_t axis, int64_t from,
                         int64_t to)
{
    return NODE(g, "Slice", x, vector(g, 1, &from), vector(g, 1, &to),
                vector(g, 1, &axis));
}

static void write_glu(flow *f, const bm_layer *l)
{
    bool columns = l->channels_in > 0;
    int64_t axis = columns ? 1 : 2, n = (int64_t)l->n_in;
    const char *a = NULL, *b = NULL;

    if (columns) {
        to_columns(f, l->channels_in);
        n = (int64_t)l->channels_in;
        f->channels = l->channels;
    } else {
        to_batch(f);
    }
    a = slice(f->g, f->x, axis, 0, n / 2);
    b = slice(f->g, f->x, axis, n / 2, n);
    f->x = NODE(f->g, "Mul", a, NODE(f->g, "Sigmoid", b));
}

static void write_scale(flow *f, const bm_layer *l)
{
    f->x = NODE(f->g, "Mul", f->x,
                bm_graph_floats(f->g, "factor", 0, NULL, &l->factor));
}

/* ---- attention ----------------------------------------------------------- */

/* x [B, T, D] times one of the three matrices, for q, k, v, with its bias. */
static const char *project(flow *f, const bm_layer *l, size_t i)
{
    static const char *const names[][2] = {
        {"wq", "bq"}, {"wk", "bk"}, {"wv", "bv"}};
    size_t D = l->n_in;
    const float *w = bm_layer_weight(l, "w") + i * D * D;
    const float *b = bm_layer_weight(l, "b") + i * D;
    const char *y = NODE(f->g, "MatMul", f->x, turned(f, names[i][0], w, D, D));

    return NODE(f->g, "Add", y, bm_graph_floats(f->g, names[i][1], 1, &D, b));
}

/* [B, T, D] -> [B, heads, T, d], or with the last two in another order. */
static const char *by_head(flow *f, const bm_layer *l, const char *x, bool turn)
{
    int64_t H = (int64_t)l->heads, d = (int64_t)l->n_in / H;

    x = reshape(f->g, x, 4, LIST(0, 0, H, d));
    return transpose(f->g, x, 4, turn ? LIST(0, 2, 3, 1) : LIST(0, 2, 1, 3));
}

/* The encodings of distances T - 1 .. 1 - T: [2 T - 1, D]. T: a scalar. */
static const char *encodings(flow *f, const bm_layer *l, const char *T)
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
    p = NODE(g, "Range", NODE(g, "Sub", T, scalar(g, 1)), NODE(g, "Neg", T),
             scalar(g, -1));
    p = NODE(g, "Cast", p);
    bm_graph_set(g, "to", BM_GRAPH_FLOAT);
    angles = NODE(g, "Mul", unsqueeze(g, p, 1, LIST(1)),
                  bm_graph_floats(g, "rates", 1, &half, rates));
    free(rates);
    both = NODE(g, "Concat", unsqueeze(g, NODE(g, "Sin", angles), 1, LIST(2)),
                unsqueeze(g, NODE(g, "Cos", angles), 1, LIST(2)));
    bm_graph_set(g, "axis", 2);
    both = reshape(g, both, 2, LIST(0, 2 * (int64_t)half));
    return slice(g, both, 1, 0, D);
}

/* y[t, u] = r[t, T - 1 - t + u] of r [B, heads, T, 2 T - 1]: with a number in
 * front of each row, rows of T begin one number later than those of 2 T - 1. */
static const char *shift(flow *f, const char *r, const char *T)
{
    bm_graph *g = f->g;
    const char *length = unsqueeze(g, T, 1, LIST(0));
    const char *shape = NULL, *y = NULL;

    y = NODE(g, "Pad", r, vector(g, 8, LIST(0, 0, 0, 1, 0, 0, 0, 0)));
    shape = NODE(g, "Concat", vector(g, 3, LIST(0, 0, -1)), length);
    bm_graph_set(g, "axis", 0);
    y = slice(g, NODE(g, "Reshape", y, shape), 2, 1, INT64_MAX);
    shape = NODE(g, "Concat", vector(g, 2, LIST(0, 0)), length,
                 vector(g, 1, LIST(-1)));
    bm_graph_set(g, "axis", 0);
    return NODE(g, "Slice", NODE(g, "Reshape", y, shape), vector(g, 1, LIST(0)),
                length, vector(g, 1, LIST(3)));
}

/* The scores [B, heads, T, T], before they are scaled. */
static const char *score(flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    size_t D = l->n_in;
    int64_t H = (int64_t)l->heads, d = (int64_t)D / H;
    const float *uv = bm_layer_weight(l, "uv");
    const char *T = frames(f), *q = project(f, l, 0), *k = project(f, l, 1);
    const char *qu = NODE(g, "Add", q, bm_graph_floats(g, "u", 1, &D, uv));
    const char *qv = NODE(g, "Add", q, bm_graph_floats(g, "v", 1, &D, uv + D));
    const char *p = NODE(g, "MatMul", encodings(f, l, T),
                         turned(f, "wr", bm_layer_weight(l, "wr"), D, D));
    const char *r = NULL;

    p = transpose(g, reshape(g, p, 3, LIST(0, H, d)), 3, LIST(1, 2, 0));
    r = NODE(g, "MatMul", by_head(f, l, qv, false), p);
    return NODE(
        g, "Add",
        NODE(g, "MatMul", by_head(f, l, qu, false), by_head(f, l, k, true)),
        shift(f, r, T));
}

static void write_attention(flow *f, const bm_layer *l)
{
    static const float least = -FLT_MAX;
    bm_graph *g = f->g;
    size_t D = l->n_in, d = D / l->heads;
    float scale = (float)(1 / sqrt((double)d));
    const char *a = NULL, *c = NULL;

    to_batch(f);
    clear(f);
    a = NODE(g, "Mul", score(f, l),
             bm_graph_floats(g, "scale", 0, NULL, &scale));
    a = NODE(g, "Where", unsqueeze(g, find_inside(f), 2, LIST(1, 2)), a,
             bm_graph_floats(g, "least", 0, NULL, &least));
    a = NODE(g, "Softmax", a);
    bm_graph_set(g, "axis", 3);
    c = NODE(g, "MatMul", a, by_head(f, l, project(f, l, 2), false));
    c = transpose(g, c, 4, LIST(0, 2, 1, 3));
    c = reshape(g, c, 3, LIST(0, 0, (int64_t)D));
    c = NODE(g, "MatMul", c, turned(f, "wo", bm_layer_weight(l, "wo"), D, D));
    f->x = NODE(g, "Add", c, weight(f, l, "bo", D));
    f->zero = false;
}

/* In evaluation it is the identity. */
static void write_dropout(flow *f, const bm_layer *l)
{
    (void)f;
    (void)l;
}

/* Where ONNX's matrices and biases of a direction are among ours: i, o, f, c of
 * i, f, g, o; z, r, h of r, z, n. */
static const size_t places[][4] = {
    [BM_LSTM] = {0, 3, 1, 2}, [BM_GRU] = {1, 0, 2}};

static size_t matrices(const bm_recurrent *l)
{
    return bm_recurrent_rows(l) / l->n_hidden;
}

/* wx or wh, with its matrices in ONNX's order. */
static const char *in_order(flow *f, const bm_recurrent *l, const char *name,
                            const float *w, size_t columns)
{
    size_t R = l->directions, G = matrices(l), n = l->n_hidden * columns;
    float *x = malloc(R * G * n * sizeof *x);
    const char *value = "";

    if (x == NULL) {
        bm_graph_fail(f->g);
        return value;
    }
    for (size_t r = 0; r < R; r++)
        for (size_t k = 0; k < G; k++)
            memcpy(x + (r * G + k) * n, w + (r * G + places[l->cell][k]) * n,
                   n * sizeof *x);
    value = bm_graph_floats(f->g, name, 3,
                            (size_t[]){R, G * l->n_hidden, columns}, x);
    free(x);
    return value;
}

/* Of x, then of h. The second are zero but for q of a GRU. */
static const char *biases(flow *f, const bm_recurrent *l)
{
    size_t R = l->directions, G = matrices(l), H = l->n_hidden;
    float *x = calloc(R * 2 * G * H, sizeof *x);
    const char *value = "";

    if (x == NULL) {
        bm_graph_fail(f->g);
        return value;
    }
    for (size_t r = 0; r < R; r++) {
        const float *b = l->b + r * BM_CELL_VALUES * H;
        float *to = x + r * 2 * G * H;

        for (size_t k = 0; k < G; k++)
            memcpy(to + k * H, b + places[l->cell][k] * H, H * sizeof *x);
        if (l->cell == BM_GRU)
            memcpy(to + (G + 2) * H, b + 3 * H, H * sizeof *x);
    }
    value = bm_graph_floats(f->g, "b", 2, (size_t[]){R, 2 * G * H}, x);
    free(x);
    return value;
}

/* With lengths the second direction begins at each sequence's own end. Y is [T,
 * directions, B, H]. */
static void write_recurrent(flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    bm_recurrent v = bm_layer_recurrent(l);
    bool gru = v.cell == BM_GRU;
    const char *lengths = NULL, *y = NULL;

    to_time(f);
    lengths = NODE(g, "Cast", f->lengths);
    bm_graph_set(g, "to", BM_GRAPH_INT32);
    y = NODE(g, gru ? "GRU" : "LSTM", f->x, in_order(f, &v, "wx", v.wx, v.n_in),
             in_order(f, &v, "wh", v.wh, v.n_hidden), biases(f, &v), lengths);
    bm_graph_set_word(g, "direction",
                      v.directions == 2 ? "bidirectional" : "forward");
    bm_graph_set(g, "hidden_size", (int64_t)v.n_hidden);
    if (gru)
        bm_graph_set(g, "linear_before_reset", 1);
    y = transpose(g, y, 4, LIST(0, 2, 1, 3));
    f->x = reshape(g, y, 3, LIST(0, 0, (int64_t)l->n_out));
    f->zero = false; /* the format does not say */
}

/* Frames are added so that the last group is complete. */
static void write_stack(flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    int64_t n = (int64_t)l->time.size;
    const char *missing = NULL, *pads = NULL;

    to_batch(f);
    clear(f);
    missing = NODE(g, "Mod", NODE(g, "Neg", frames(f)), vector(g, 1, &n));
    pads = NODE(g, "Concat", vector(g, 4, LIST(0, 0, 0, 0)), missing,
                vector(g, 1, LIST(0)));
    bm_graph_set(g, "axis", 0);
    f->x = NODE(g, "Pad", f->x, pads);
    f->x = reshape(g, f->x, 3, LIST(0, -1, (int64_t)l->n_out));
    count_windows(f, l->time);
}

/* Zeros on both sides, then a slice of the frames for each distance. */
static void write_splice(flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    long first = l->distances[0], last = l->distances[l->n_distances - 1];
    int64_t before = first < 0 ? -first : 0, after = last > 0 ? last : 0;
    const char *all = NULL, *joined = NULL;

    to_batch(f);
    clear(f);
    all = NODE(g, "Pad", f->x, vector(g, 6, LIST(0, before, 0, 0, after, 0)));
    for (size_t k = 0; k < l->n_distances; k++) {
        int64_t d = l->distances[k], end = d - after;
        const char *one = NODE(g, "Slice", all, vector(g, 1, LIST(before + d)),
                               vector(g, 1, end < 0 ? &end : LIST(INT64_MAX)),
                               vector(g, 1, LIST(1)));

        if (joined == NULL) {
            joined = one;
            continue;
        }
        joined = NODE(g, "Concat", joined, one);
        bm_graph_set(g, "axis", 2);
    }
    f->x = joined;
    f->zero = false;
}

static void write_subsample(flow *f, const bm_layer *l)
{
    bm_graph *g = f->g;
    int64_t n = (int64_t)l->time.stride;

    to_batch(f);
    f->x = NODE(g, "Slice", f->x, vector(g, 1, LIST(0)),
                vector(g, 1, LIST(INT64_MAX)), vector(g, 1, LIST(1)),
                vector(g, 1, &n));
    count_windows(f, l->time);
}

/* The group's input is the value in front of it. */
static void write_opening(flow *f, const bm_layer *l)
{
    (void)f;
    (void)l;
}

static void write_separator(flow *f, const bm_layer *l)
{
    const flow *entered = f->entered;

    *f = entered[l - l->opening - f->layers];
    f->entered = entered;
}

/* A branch in the layout in which branches meet. */
static void to_branch(flow *f, const bm_layer *b, bool columns)
{
    if (columns)
        to_columns(f, b->channels_in > 0 ? b->channels_in : 1);
    else
        to_batch(f);
}

static void write_closing(flow *f, const bm_layer *l)
{
    bool columns = l->channels > 0;
    bool join = (l - l->opening)->ops == &bm_layer_branches;

    to_branch(f, l, columns);
    for (const bm_layer *b = l - l->previous; b->ops->role == BM_SEPARATES;
         b -= b->previous) {
        flow other = f->entered[b - f->layers];

        to_branch(&other, b, columns);
        f->x = NODE(f->g, join ? "Concat" : "Add", other.x, f->x);
        if (join)
            bm_graph_set(f->g, "axis", columns ? 1 : 2);
        f->zero = f->zero && other.zero;
    }
    if (columns)
        f->channels = l->channels;
}

static const struct {
    const bm_layer_ops *layer;
    writer *write;
} writers[] = {
    {&bm_layer_linear, write_linear},
    {&bm_layer_conv, write_conv},
    {&bm_layer_depthwise, write_depthwise},
    {&bm_layer_pool, write_pool},
    {&bm_layer_batchnorm, write_batchnorm},
    {&bm_layer_layernorm, write_layernorm},
    {&bm_layer_relu, write_relu},
    {&bm_layer_leaky_relu, write_leaky_relu},
    {&bm_layer_tanh, write_tanh},
    {&bm_layer_sigmoid, write_sigmoid},
    {&bm_layer_swish, write_swish},
    {&bm_layer_glu, write_glu},
    {&bm_layer_scale, write_scale},
    {&bm_layer_lstm, write_recurrent},
    {&bm_layer_blstm, write_recurrent},
    {&bm_layer_gru, write_recurrent},
    {&bm_layer_bgru, write_recurrent},
    {&bm_layer_attention, write_attention},
    {&bm_layer_dropout, write_dropout},
    {&bm_layer_stack, write_stack},
    {&bm_layer_subsample, write_subsample},
    {&bm_layer_splice, write_splice},
    {&bm_layer_residual, write_opening},
    {&bm_layer_branches, write_opening},
    {&bm_layer_separator, write_separator},
    {&bm_layer_closing, write_closing},
};

static writer *find(const bm_layer_ops *layer)
{
    for (size_t i = 0; i < sizeof writers / sizeof writers[0]; i++)
        if (writers[i].layer == layer)
            return writers[i].write;
    return NULL;
}

bm_status bm_onnx_layers(bm_graph *g, const bm_layer *layers, size_t n,
                         const char **features, const char **lengths)
{
    flow *entered = calloc(n + 1, sizeof *entered);
    flow f = {.g = g,
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
    to_batch(&f);
    *features = f.x;
    *lengths = f.lengths;
done:
    free(entered);
    return status;
}
