/*
 * Outputs of layers, in evaluation, against the formulas of docs/layers.md in
 * double precision: one sequence at a time, one number after the other. On the
 * backend that the first argument names.
 */
#include "core/rng.h"
#include "models/model.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 11, B = 5 };

/* Out of order, one empty, one of one frame; the longest is no power of two. */
static const int32_t lengths[B] = {4, 11, 0, 1, 7};

/* A sequence of n frames of D numbers. */
typedef struct sequence {
    size_t n, D;
    double *x;
} sequence;

static sequence make(size_t n, size_t D)
{
    return (sequence){n, D, zeros(n * D, sizeof(double))};
}

static double at(const sequence *s, size_t t, size_t k)
{
    return s->x[t * s->D + k];
}

static double weight(const bm_layer *l, const char *name, size_t i)
{
    const float *w = bm_layer_weight(l, name);

    assert_non_null(w);
    return w[i];
}

/* sum over k < n of w[from + k] x[k] */
static double dot(const bm_layer *l, const char *name, size_t from,
                  const double *x, size_t n)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += weight(l, name, from + k) * x[k];
    return sum;
}

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}

/* ---- layers without memory ----------------------------------------------- */

static sequence linear(const bm_layer *l, const sequence *x)
{
    sequence y = make(x->n, l->n_out);

    for (size_t i = 0; i < y.n * y.D; i++)
        y.x[i] = weight(l, "b", i % y.D) +
                 dot(l, "w", i % y.D * x->D, x->x + i / y.D * x->D, x->D);
    return y;
}

static double function(const bm_layer *l, double x)
{
    const char *name = l->ops->name;

    return strcmp(name, "relu") == 0         ? fmax(x, 0)
           : strcmp(name, "leaky_relu") == 0 ? (x < 0 ? 0.01 * x : x)
           : strcmp(name, "tanh") == 0       ? tanh(x)
           : strcmp(name, "sigmoid") == 0    ? logistic(x)
           : strcmp(name, "swish") == 0      ? x * logistic(x)
           : strcmp(name, "gelu") == 0       ? x / 2 * (1 + erf(x / sqrt(2)))
           : strcmp(name, "scale") == 0      ? strtod(l->args, NULL) * x
                                             : x; /* dropout */
}

static sequence apply(const bm_layer *l, const sequence *x)
{
    sequence y = make(x->n, x->D);

    for (size_t i = 0; i < y.n * y.D; i++)
        y.x[i] = function(l, x->x[i]);
    return y;
}

static size_t channels_of(const bm_layer *l)
{
    return l->channels_in > 0 ? l->channels_in : 1;
}

/* The halves of the channels of each row; a flat frame is one row. */
static sequence glu(const bm_layer *l, const sequence *x)
{
    size_t C = l->channels_in > 0 ? l->channels_in : x->D, half = C / 2;
    sequence y = make(x->n, x->D / 2);

    for (size_t t = 0; t < y.n; t++)
        for (size_t k = 0; k < y.D; k++) {
            size_t a = k / half * C + k % half;

            y.x[t * y.D + k] = at(x, t, a) * logistic(at(x, t, a + half));
        }
    return y;
}

static sequence layernorm(const bm_layer *l, const sequence *x)
{
    sequence y = make(x->n, x->D);

    for (size_t t = 0; t < x->n; t++) {
        double m = 0, v = 0, n = (double)x->D;

        for (size_t k = 0; k < x->D; k++)
            m += at(x, t, k) / n;
        for (size_t k = 0; k < x->D; k++)
            v += pow(at(x, t, k) - m, 2) / n;
        for (size_t k = 0; k < x->D; k++)
            y.x[t * y.D + k] =
                weight(l, "gamma", k) * (at(x, t, k) - m) / sqrt(v + 1e-5) +
                weight(l, "beta", k);
    }
    return y;
}

static sequence batchnorm(const bm_layer *l, const sequence *x)
{
    size_t C = l->channels_in > 0 ? l->channels_in : x->D;
    sequence y = make(x->n, x->D);

    for (size_t i = 0; i < y.n * y.D; i++)
        y.x[i] = weight(l, "gamma", i % C) *
                     (x->x[i] - weight(l, "mean", i % C)) /
                     sqrt(weight(l, "var", i % C) + 1e-5) +
                 weight(l, "beta", i % C);
    return y;
}

/* Mean and variance of all rows and frames of a channel. */
static sequence instancenorm(const bm_layer *l, const sequence *x)
{
    size_t C = l->channels_in > 0 ? l->channels_in : x->D, rows = x->D / C;
    size_t all = x->n * x->D;
    sequence y = make(x->n, x->D);

    for (size_t c = 0; c < C; c++) {
        double m = 0, v = 0, n = (double)(x->n * rows);

        for (size_t i = c; i < all; i += C)
            m += x->x[i] / n;
        for (size_t i = c; i < all; i += C)
            v += pow(x->x[i] - m, 2) / n;
        for (size_t i = c; i < all; i += C)
            y.x[i] = weight(l, "gamma", c) * (x->x[i] - m) / sqrt(v + 1e-5) +
                     weight(l, "beta", c);
    }
    return y;
}

/* ---- windows ------------------------------------------------------------- */

/* The windows over n places, of time (0) or of rows (1). */
typedef struct windows {
    size_t size, stride, dilation, count;
    long before; /* places in front of the first one */
} windows;

/* Number `which` of a word of the arguments, as in "stride:2x1". */
static bool argument(const char *args, const char *word, int which, size_t *out)
{
    const char *found = strstr(args, word);
    size_t pair[2] = {1, 1};

    if (found == NULL ||
        sscanf(found + strlen(word), "%zux%zu", &pair[0], &pair[1]) < 1)
        return false;
    *out = pair[which];
    return true;
}

static windows windows_over(const char *args, const char *size, int which,
                            size_t n, bool pools)
{
    windows w = {1, 1, 1, 0, 0};
    size_t span = 0, pad = 0;
    bool strides = false, padded = false;

    (void)argument(args, size, which, &w.size);
    strides = argument(args, "stride:", which, &w.stride);
    padded = argument(args, "pad:", which, &pad);
    (void)argument(args, "dilation:", which, &w.dilation);
    if (pools && !strides)
        w.stride = w.size;
    span = w.dilation * (w.size - 1) + 1;
    if (padded) {
        w.before = (long)pad;
        w.count = n == 0 || n + 2 * pad < span
                      ? 0
                      : (n + 2 * pad - span) / w.stride + 1;
    } else {
        w.before = pools && !strides ? 0 : (long)((span - 1) / 2);
        w.count = (n + w.stride - 1) / w.stride;
    }
    return w;
}

/* The place of x that place i of a window sees; false: there is none. */
static bool place_of(const windows *w, size_t window, size_t i, size_t n,
                     size_t *out)
{
    long p = (long)(w->stride * window + w->dilation * i) - w->before;

    *out = (size_t)p;
    return p >= 0 && p < (long)n;
}

static double convolve(const bm_layer *l, const sequence *x, const windows *t,
                       const windows *h, size_t frame, size_t row, size_t n)
{
    size_t C = channels_of(l), N = l->channels, H = x->D / C, u = 0, v = 0;
    double sum = weight(l, "b", n);

    for (size_t i = 0; i < t->size; i++)
        for (size_t j = 0; j < h->size; j++)
            if (place_of(t, frame, i, x->n, &u) && place_of(h, row, j, H, &v))
                for (size_t c = 0; c < C; c++)
                    sum += weight(l, "w", ((i * h->size + j) * C + c) * N + n) *
                           at(x, u, v * C + c);
    return sum;
}

static sequence conv(const bm_layer *l, const sequence *x)
{
    size_t N = l->channels;
    windows t = windows_over(l->args, ",", 0, x->n, false);
    windows h = windows_over(l->args, ",", 1, x->D / channels_of(l), false);
    sequence y = make(t.count, h.count * N);

    for (size_t i = 0; i < y.n * y.D; i++)
        y.x[i] = convolve(l, x, &t, &h, i / y.D, i % y.D / N, i % N);
    return y;
}

static sequence depthwise(const bm_layer *l, const sequence *x)
{
    windows w = windows_over(l->args, "", 0, x->n, false);
    sequence y = make(w.count, x->D);

    for (size_t t = 0; t < y.n; t++)
        for (size_t k = 0; k < y.D; k++) {
            double sum = weight(l, "b", k);
            size_t u = 0;

            for (size_t i = 0; i < w.size; i++)
                if (place_of(&w, t, i, x->n, &u))
                    sum += weight(l, "w", i * x->D + k) * at(x, u, k);
            y.x[t * y.D + k] = sum;
        }
    return y;
}

/* The largest or the mean number of channel c in a window. */
static double summarise(const sequence *x, size_t C, const windows *t,
                        const windows *h, size_t frame, size_t row, size_t c,
                        bool mean)
{
    double largest = -INFINITY, sum = 0, n = 0;
    size_t u = 0, v = 0;

    for (size_t i = 0; i < t->size; i++)
        for (size_t j = 0; j < h->size; j++)
            if (place_of(t, frame, i, x->n, &u) &&
                place_of(h, row, j, x->D / C, &v)) {
                largest = fmax(largest, at(x, u, v * C + c));
                sum += at(x, u, v * C + c);
                n++;
            }
    return mean ? sum / n : largest;
}

static sequence pool(const bm_layer *l, const sequence *x)
{
    size_t C = channels_of(l), H = x->D / C;
    bool all = strncmp(l->args, "all", 3) == 0;
    bool mean = strstr(l->args, "mean") != NULL;
    windows t = windows_over(l->args, "", 0, x->n, true);
    windows h = windows_over(l->args, "", 1, H, true);
    sequence y = {0};

    if (all) {
        t = (windows){x->n, 1, 1, x->n > 0, 0};
        h = (windows){H, 1, 1, 1, 0};
    }
    y = make(t.count, h.count * C);
    for (size_t i = 0; i < y.n * y.D; i++)
        y.x[i] = summarise(x, C, &t, &h, i / y.D, i % y.D / C, i % C, mean);
    return y;
}

/* ---- frames side by side ------------------------------------------------- */

/* `copies` frames for each of y; copy i of frame t is that at `place`. */
static sequence gather(const sequence *x, size_t n, size_t copies,
                       size_t stride, const long *distance)
{
    sequence y = make(n, copies * x->D);

    for (size_t t = 0; t < n; t++)
        for (size_t i = 0; i < copies; i++) {
            long from = (long)(t * stride) + distance[i];

            for (size_t k = 0; k < x->D && from >= 0 && from < (long)x->n; k++)
                y.x[t * y.D + i * x->D + k] = at(x, (size_t)from, k);
        }
    return y;
}

static sequence stack(const bm_layer *l, const sequence *x)
{
    static const long distance[] = {0, 1, 2, 3};
    size_t N = strtoul(l->args, NULL, 10);

    assert_true(N <= 4);
    return gather(x, (x->n + N - 1) / N, N, N, distance);
}

static sequence subsample(const bm_layer *l, const sequence *x)
{
    static const long none[] = {0};
    size_t N = strtoul(l->args, NULL, 10);

    return gather(x, (x->n + N - 1) / N, 1, N, none);
}

/* "-3,0..1" and what else the tests have. */
static sequence splice(const bm_layer *l, const sequence *x)
{
    long distance[16];
    size_t copies = 0;
    const char *rest = l->args;

    for (;;) {
        char *end = NULL;
        long from = strtol(rest, &end, 10), to = from;

        if (strncmp(end, "..", 2) == 0)
            to = strtol(end + 2, &end, 10);
        for (; from <= to && copies < 16; from++)
            distance[copies++] = from;
        if (*end == '\0')
            return gather(x, x->n, copies, 1, distance);
        rest = end + 1;
    }
}

/* ---- layers with memory -------------------------------------------------- */

/* Cells, and outputs of a direction. Row (r G + g) H + u of wx and wh belongs to
 * gate g, of G, of cell u in direction r. */
typedef struct cells {
    size_t H, Y;
} cells;

/* wx x + wh h of that row, with h the outputs of the frame before. */
static void lstm_frame(const bm_layer *l, const cells *s, size_t r,
                       const double *x, double *c, double *h)
{
    double *z = zeros(4 * s->H, sizeof *z);

    for (size_t k = 0; k < 4 * s->H; k++) {
        size_t row = r * 4 * s->H + k;

        z[k] = dot(l, "wx", row * l->n_in, x, l->n_in) +
               dot(l, "wh", row * s->Y, h, s->Y) + weight(l, "b", row);
    }
    for (size_t u = 0; u < s->H; u++) { /* z[u] <- o tanh(c) */
        double i = logistic(z[u]), f = logistic(z[s->H + u]);

        c[u] = f * c[u] + i * tanh(z[2 * s->H + u]);
        z[u] = logistic(z[3 * s->H + u]) * tanh(c[u]);
    }
    for (size_t u = 0; u < s->Y; u++)
        h[u] =
            s->Y == s->H ? z[u] : dot(l, "wr", (r * s->Y + u) * s->H, z, s->H);
    free(z);
}

static void gru_frame(const bm_layer *l, const cells *s, size_t r,
                      const double *x, double *h)
{
    size_t H = s->H, b = r * 4 * H;
    double *next = zeros(H, sizeof *next);

    for (size_t u = 0; u < H; u++) {
        double of_x[3], of_h[3], reset = 0, update = 0, n = 0;

        for (size_t k = 0; k < 3; k++) {
            size_t row = (r * 3 + k) * H + u;

            of_x[k] = dot(l, "wx", row * l->n_in, x, l->n_in);
            of_h[k] = dot(l, "wh", row * H, h, H);
        }
        reset = logistic(of_x[0] + of_h[0] + weight(l, "b", b + u));
        update = logistic(of_x[1] + of_h[1] + weight(l, "b", b + H + u));
        n = tanh(of_x[2] + weight(l, "b", b + 2 * H + u) +
                 reset * (of_h[2] + weight(l, "b", b + 3 * H + u)));
        next[u] = (1 - update) * n + update * h[u];
    }
    memcpy(h, next, H * sizeof *h);
    free(next);
}

static sequence recur(const bm_layer *l, const sequence *x)
{
    bool both = l->ops->name[0] == 'b',
         gru = strstr(l->ops->name, "gru") != NULL;
    size_t R = both ? 2 : 1, H = strtoul(l->args, NULL, 10);
    cells s = {H, H};
    sequence y = {0};

    (void)argument(l->args, "project:", 0, &s.Y);
    y = make(x->n, R * s.Y);
    for (size_t r = 0; r < R; r++) {
        double *c = zeros(H, sizeof *c), *h = zeros(s.Y, sizeof *h);

        for (size_t i = 0; i < x->n; i++) {
            size_t t = r == 0 ? i : x->n - 1 - i;

            if (gru)
                gru_frame(l, &s, r, x->x + t * x->D, h);
            else
                lstm_frame(l, &s, r, x->x + t * x->D, c, h);
            memcpy(y.x + t * y.D + r * s.Y, h, s.Y * sizeof *h);
        }
        free(c);
        free(h);
    }
    return y;
}

/* Output k of the i-th of the projections q, k, v. */
static double project(const bm_layer *l, size_t i, size_t k, const double *x)
{
    size_t D = l->n_in;

    return dot(l, "w", (i * D + k) * D, x, D) + weight(l, "b", i * D + k);
}

/* p[j] of number k: row k of wr times the sines and cosines of distance j. */
static double position(const bm_layer *l, long j, size_t k)
{
    size_t D = l->n_in;
    double sum = 0;

    for (size_t n = 0; n < D; n++) {
        size_t even = n - n % 2; /* 2 i */
        double angle = (double)j / pow(10000, (double)even / (double)D);

        sum +=
            weight(l, "wr", k * D + n) * (n == even ? sin(angle) : cos(angle));
    }
    return sum;
}

/* ((q[t] + uv_0) k[s] + (q[t] + uv_1) p[t - s]) / sqrt(d) of a head. */
static double score(const bm_layer *l, const sequence *x, size_t d, size_t head,
                    size_t t, size_t s)
{
    size_t D = l->n_in;
    double sum = 0;

    for (size_t k = head * d; k < (head + 1) * d; k++) {
        double q = project(l, 0, k, x->x + t * D);

        sum += (q + weight(l, "uv", k)) * project(l, 1, k, x->x + s * D) +
               (q + weight(l, "uv", D + k)) * position(l, (long)t - (long)s, k);
    }
    return sum / sqrt((double)d);
}

static sequence attention(const bm_layer *l, const sequence *x)
{
    size_t D = l->n_in, heads = strtoul(l->args, NULL, 10), d = D / heads;
    sequence c = make(x->n, D), y = make(x->n, D);

    for (size_t head = 0; head < heads; head++)
        for (size_t t = 0; t < x->n; t++) {
            double total = 0;

            for (size_t s = 0; s < x->n; s++)
                total += exp(score(l, x, d, head, t, s));
            for (size_t s = 0; s < x->n; s++) {
                double a = exp(score(l, x, d, head, t, s)) / total;

                for (size_t k = head * d; k < (head + 1) * d; k++)
                    c.x[t * D + k] += a * project(l, 2, k, x->x + s * D);
            }
        }
    for (size_t i = 0; i < y.n * D; i++)
        y.x[i] = dot(l, "wo", i % D * D, c.x + i / D * D, D) +
                 weight(l, "bo", i % D);
    free(c.x);
    return y;
}

/* ---- networks ------------------------------------------------------------ */

static const struct {
    const char *name;
    sequence (*of)(const bm_layer *l, const sequence *x);
} formulas[] = {
    {"linear", linear},
    {"conv", conv},
    {"depthwise", depthwise},
    {"pool", pool},
    {"batchnorm", batchnorm},
    {"layernorm", layernorm},
    {"instancenorm", instancenorm},
    {"relu", apply},
    {"leaky_relu", apply},
    {"tanh", apply},
    {"sigmoid", apply},
    {"swish", apply},
    {"gelu", apply},
    {"glu", glu},
    {"scale", apply},
    {"lstm", recur},
    {"blstm", recur},
    {"gru", recur},
    {"bgru", recur},
    {"attention", attention},
    {"dropout", apply},
    {"stack", stack},
    {"subsample", subsample},
    {"splice", splice},
};

/* Features of x, and numbers of a frame of y. A network needs weights. */
static const struct {
    const char *net;
    size_t D, C;
} networks[] = {
    {"linear", 6, 5},
    {"layernorm relu", 6, 6},
    {"layernorm leaky_relu", 6, 6},
    {"layernorm tanh", 6, 6},
    {"layernorm sigmoid", 6, 6},
    {"layernorm swish", 6, 6},
    {"layernorm gelu", 6, 6},
    {"layernorm glu", 6, 3},
    {"conv:4,1x1 glu", 3, 6},
    {"layernorm scale:-0.7", 6, 6},
    {"layernorm dropout:0.5", 6, 6},
    {"layernorm", 6, 6},
    {"conv:3,1x1 layernorm", 4, 12},
    {"batchnorm", 6, 6},
    {"conv:3,1x1 batchnorm relu", 4, 12},
    {"instancenorm", 6, 6},
    {"conv:3,1x1 instancenorm relu pool:2x2", 4, 6},
    {"conv:3,3x3", 5, 15},
    {"conv:2,3x2 conv:3,2x3,stride:2x1", 5, 15},
    {"conv:2,4x3,dilation:2x1", 5, 10},
    {"conv:2,2x3,dilation:3x1,pad:2x0,stride:2x1", 5, 6},
    {"layernorm pool:2x2", 5, 3},
    {"conv:2,1x1 pool:3x2,mean", 5, 6},
    {"conv:2,1x1 pool:3x3,stride:2x1", 5, 10},
    {"layernorm pool:3x2,mean,pad:1x0,stride:1x1", 5, 4},
    {"conv:3,1x1 pool:all", 5, 3},
    {"conv:3,1x1 pool:all,mean", 5, 3},
    {"depthwise:5", 6, 6},
    {"depthwise:4", 6, 6},
    {"depthwise:4,stride:3", 6, 6},
    {"layernorm stack:3", 4, 12},
    {"layernorm subsample:3", 4, 4},
    {"layernorm splice:-2,0..1", 4, 12},
    {"lstm:5", 6, 5},
    {"blstm:5", 6, 10},
    {"lstm:5,project:2", 6, 2},
    {"blstm:5,project:3", 6, 6},
    {"blstm:5,weight_dropout:0.3", 6, 10},
    {"gru:5", 6, 5},
    {"bgru:5", 6, 10},
    {"attention:1", 12, 12},
    {"attention:3", 12, 12},
    {"attention:12", 12, 12},
    {"attention:1", 7, 7},
    /* of a Conformer: the convolution and feed-forward modules */
    {"layernorm linear:16 glu depthwise:5 batchnorm swish linear", 8, 8},
    {"layernorm linear:16 swish dropout:0.1 linear:8 scale:0.5", 8, 8},
};

/* Draws all that is learned, and statistics; variances are positive. Returns it:
 * free(). */
static float *draw_weights(const bm_params *p)
{
    bm_rng rng = bm_rng_make(3, "w", 0);
    float *w = zeros(p->n, sizeof *w);

    for (size_t k = 0; k < p->n_segments; k++) {
        const bm_segment *s = &p->segments[k];
        bool variance = strstr(s->name, ".var") != NULL;

        for (size_t i = 0; i < s->count; i++) {
            double x = 0.4 * bm_rng_normal(&rng);

            w[s->offset + i] = (float)(variance ? 0.2 + fabs(x) : x);
        }
    }
    bm_put(chosen, p->w, w, p->n);
    assert_ok(bm_sync(chosen));
    return w;
}

/* The layers with views of `w`, which is on the host; free(). */
static bm_layer *read_layers(const bm_model *m, const bm_params *p, float *w,
                             size_t *n)
{
    const bm_layer *layers = bm_model_layers(m, n);
    bm_layer *copy = zeros(*n, sizeof *copy);

    memcpy(copy, layers, *n * sizeof *copy);
    for (size_t k = 0; k < *n; k++) {
        copy[k].w = w + (layers[k].w - p->w);
        copy[k].s = w + (layers[k].s - p->w);
    }
    return copy;
}

static sequence expect(const bm_layer *layers, size_t n, const float *x,
                       size_t b, size_t D)
{
    sequence y = make((size_t)lengths[b], D);

    for (size_t i = 0; i < y.n * D; i++)
        y.x[i] = x[(i / D * B + b) * D + i % D];
    for (size_t k = 0; k < n; k++)
        FOR_EACH (f, formulas)
            if (strcmp(layers[k].ops->name, formulas[f].name) == 0) {
                sequence next = formulas[f].of(&layers[k], &y);

                free(y.x);
                y = next;
                break;
            }
    return y;
}

static void check_sequence(const char *net, const sequence *right,
                           const float *y, size_t b)
{
    for (size_t i = 0; i < right->n * right->D; i++) {
        double got = y[(i / right->D * B + b) * right->D + i % right->D];

        if (!near(got, right->x[i], 1e-5))
            fail_msg("%s: %.9g instead of %.9g in frame %zu of sequence %zu",
                     net, got, right->x[i], i / right->D, b);
    }
}

static void check_outputs(const char *net, size_t D, size_t C)
{
    bm_model *m = NULL;
    bm_model_settings set = {net, "ctc", "skip"};
    bm_model_shape shape = {D, C, 1};
    bm_rng rng = bm_rng_make(2, "x", 0);
    float *x = zeros(T * B * D, sizeof *x), *w = NULL, *y = NULL;
    bm_batch batch = {.extent = {T, B, lengths}};
    bm_layer *layers = NULL;
    bm_tensor out;
    bm_extent e;
    size_t n = 0;

    assert_ok(bm_model_new(&m, &set, &shape, chosen, 1));
    w = draw_weights(bm_model_params(m));
    layers = read_layers(m, bm_model_params(m), w, &n);
    for (size_t i = 0; i < T * B * D; i++)
        x[i] = inside(&batch.extent, i, D) ? (float)bm_rng_normal(&rng) : 0;
    batch.x = (bm_tensor){place(chosen, x, T * B * D), 3, {T, B, D, 1}};
    bm_model_forward(m, &batch);
    assert_ok(bm_sync(chosen));
    out = bm_model_output(m, &e);
    y = fetch(chosen, out.data, bm_count(out));
    for (size_t b = 0; b < B; b++) {
        sequence right = expect(layers, n, x, b, D);

        assert_int_equal(e.frames[b], right.n);
        assert_int_equal(out.dim[2], right.D);
        check_sequence(net, &right, y, b);
        free(right.x);
    }
    free(x);
    free(w);
    free(y);
    free(layers);
    bm_free(chosen, batch.x.data);
    bm_model_free(m);
}

static void test_outputs_follow_the_formulas(void **state)
{
    (void)state;
    FOR_EACH (i, networks)
        check_outputs(networks[i].net, networks[i].D, networks[i].C);
}

static bool has_layer(const char *net, const char *name)
{
    size_t n = strlen(name);

    for (const char *at = net; at != NULL; at = strchr(at, ' ')) {
        at += strspn(at, " ");
        if (strncmp(at, name, n) == 0 && strchr(" :", at[n]) != NULL)
            return true;
    }
    return false;
}

/* Add the formula of a new layer, and a network. Groups have test_groups.c. */
static void test_every_layer_has_a_formula(void **state)
{
#define X(name) &bm_layer_##name,
    static const bm_layer_ops *const all[] = {BM_LAYERS(X)};
#undef X

    (void)state;
    FOR_EACH (i, all) {
        bool found = all[i]->role != BM_ALONE;

        FOR_EACH (f, formulas)
            found = found || strcmp(all[i]->name, formulas[f].name) == 0;
        if (!found)
            fail_msg("%s has no formula", all[i]->name);
        found = all[i]->role != BM_ALONE;
        FOR_EACH (k, networks)
            found = found || has_layer(networks[k].net, all[i]->name);
        if (!found)
            fail_msg("%s is in no row of `networks`, so that its formula is "
                     "not compared",
                     all[i]->name);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outputs_follow_the_formulas),
        cmocka_unit_test(test_every_layer_has_a_formula),
    };

    return RUN_GROUP_ON(argc, argv, "forward", tests);
}
