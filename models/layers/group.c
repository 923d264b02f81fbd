/*
 * group.c - branches that read the same frames:
 *
 *     residual( f )          y = f(x) + x
 *     residual( f | g )      y = f(x) + g(x)
 *     branches( f | g .. )   y = the channels of f(x), g(x) .. side by side
 *
 * The model runs its layers one after the other, here as well. In ( f | g ), with
 * `in`, the group's input, which is never copied, they have these x and y:
 *
 *             opens           f       |          g       closes
 *     x       in              in      f(in)      in      g(in)
 *     y       in              f(in)   in         g(in)   the group's output
 *     kept    d in, summed            d f(in)
 *
 * Backward, the closing layer divides dy: it passes on d g(in), and each separator
 * keeps the gradient of the branch in front of it. A separator gets d in through
 * the branch after it, adds it to what the opening layer keeps, and passes on the
 * gradient that it kept.
 */
#include "models/layers/layer.h"

#include <string.h>

static bm_layer *opening(bm_layer *l)
{
    return l - l->opening;
}

/* The separator in front of a layer of the group; NULL: there are no more. */
static bm_layer *before(bm_layer *l)
{
    bm_layer *s = l - l->previous;

    return s->ops->role == BM_OPENS ? NULL : s;
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    return p->in.T * p->in.B * l->n_in;
}

static void nothing(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    (void)l;
    (void)p;
    (void)x;
    (void)y;
}

/* ---- opens and separates ------------------------------------------------- */

static bm_status plan_opening(bm_layer *l)
{
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    return BM_OK;
}

/* dy came through the first branch, `kept` through the others. */
static void backward_opening(bm_layer *l, const bm_pass *p, bm_tensor x,
                             bm_tensor y, bm_tensor dy, bm_tensor dx)
{
    size_t n = bm_count(dx);

    (void)p;
    (void)x;
    (void)y;
    bm_axpby(l->be, n, 1, dy.data, 0, dx.data);
    bm_axpby(l->be, n, 1, l->kept, 1, dx.data);
}

static bm_status plan_separator(bm_layer *l)
{
    l->n_out = opening(l)->n_in;
    l->channels = opening(l)->channels_in;
    return BM_OK;
}

static void forward_separator(bm_layer *l, const bm_pass *p, bm_tensor x,
                              bm_tensor y)
{
    (void)p;
    (void)y;
    l->end = x;
}

static void backward_separator(bm_layer *l, const bm_pass *p, bm_tensor x,
                               bm_tensor y, bm_tensor dy, bm_tensor dx)
{
    (void)p;
    (void)x;
    bm_axpby(l->be, bm_count(y), 1, dy.data, l->last ? 0 : 1, opening(l)->kept);
    bm_axpby(l->be, bm_count(dx), 1, l->kept, 0, dx.data);
}

/* ---- closes -------------------------------------------------------------- */

static bool joins(bm_layer *l)
{
    return opening(l)->ops == &bm_layer_branches;
}

/* The channels of a branch's columns. A flat frame beside columns is one of a
 * single channel. */
static size_t channels_of(const bm_layer *branch, bool columns)
{
    size_t C = branch->channels_in;

    return columns ? (C > 0 ? C : 1) : branch->n_in;
}

static bm_status plan_closing(bm_layer *l)
{
    bool columns = false, join = joins(l);
    size_t rows = 0, channels = 0;

    for (bm_layer *b = l; b != NULL; b = before(b))
        columns = columns || b->channels_in > 0;
    rows = l->n_in / channels_of(l, columns);
    for (bm_layer *b = l; b != NULL; b = before(b)) {
        size_t C = channels_of(b, columns);

        if (b->n_in != rows * C || (!join && b->n_in != l->n_in))
            return bm_layer_fail(
                l,
                "branches of %zu x %zu and %zu x %zu numbers a frame (rows x "
                "channels); %s",
                b->n_in / bm_layer_channels_in(b), bm_layer_channels_in(b),
                l->n_in / bm_layer_channels_in(l), bm_layer_channels_in(l),
                join      ? "rows must be equal, set strides and paddings so"
                : columns ? "they must be equal: give the input the same shape "
                            "after a |, as in residual( .. | "
                            "conv:64,1x1,stride:2x2 )"
                          : "they must be equal: give the input the same size "
                            "after a |, as in residual( stack:2 linear:80 | "
                            "subsample:2 linear:80 )");
        channels += join ? C : 0;
    }
    if (!join)
        channels = channels_of(l, columns);
    l->n_out = rows * channels;
    l->channels = columns ? channels : 0;
    return BM_OK;
}

/* The channels of branch b, which begin at channel `first` of l's y: from b's
 * frames to y, or back. */
static bm_runs part_of(const bm_layer *l, const bm_layer *b, bm_tensor x,
                       bool back)
{
    size_t C = channels_of(b, l->channels > 0);
    size_t all = l->channels > 0 ? l->channels : l->n_out;

    return (bm_runs){.outer = bm_count(x) / b->n_in * (b->n_in / C),
                     .inner = 1,
                     .n = C,
                     .outer_x = back ? all : C,
                     .outer_y = back ? C : all};
}

static size_t first_channel(bm_layer *l)
{
    return l->channels > 0 ? l->channels : l->n_out;
}

static void forward_closing(bm_layer *l, const bm_pass *p, bm_tensor x,
                            bm_tensor y)
{
    size_t at = first_channel(l);

    (void)p;
    l->end = x;
    for (bm_layer *b = l; b != NULL; b = before(b)) {
        bm_runs r = part_of(l, b, b->end, false);

        BM_ASSERT(b->end.dim[0] == x.dim[0]);
        at -= joins(l) ? r.n : 0;
        if (joins(l))
            bm_copy_runs(l->be, &r, b->end.data, y.data + at);
        else
            bm_axpby(l->be, bm_count(y), 1, b->end.data, b == l ? 0 : 1,
                     y.data);
    }
}

static void backward_closing(bm_layer *l, const bm_pass *p, bm_tensor x,
                             bm_tensor y, bm_tensor dy, bm_tensor dx)
{
    size_t at = first_channel(l);

    (void)p;
    (void)x;
    (void)y;
    for (bm_layer *b = l; b != NULL; b = before(b)) {
        bm_runs r = part_of(l, b, b->end, true);
        float *d = b == l ? dx.data : b->kept;

        at -= joins(l) ? r.n : 0;
        if (joins(l))
            bm_copy_runs(l->be, &r, dy.data + at, d);
        else
            bm_axpby(l->be, bm_count(dy), 1, dy.data, 0, d);
    }
}

#define OPENING(word, text)                                                    \
    const bm_layer_ops bm_layer_##word = {                                     \
        .name = #word,                                                         \
        .help = text,                                                          \
        .role = BM_OPENS,                                                      \
        .plan = plan_opening,                                                  \
        .kept = kept,                                                          \
        .forward = nothing,                                                    \
        .backward = backward_opening,                                          \
    }

OPENING(residual, "residual( LAYERS )  y = f(x) + x; residual( F | G )  y = "
                  "f(x) + g(x)");
OPENING(branches, "branches( F | G .. )  the channels of several branches side "
                  "by side");

const bm_layer_ops bm_layer_separator = {
    .name = "|",
    .help = "|  between branches",
    .role = BM_SEPARATES,
    .plan = plan_separator,
    .kept = kept,
    .forward = forward_separator,
    .backward = backward_separator,
};

const bm_layer_ops bm_layer_closing = {
    .name = ")",
    .help = ")  the end of a group",
    .role = BM_CLOSES,
    .plan = plan_closing,
    .forward = forward_closing,
    .backward = backward_closing,
};
