/*
 * splice.c - frames at fixed distances side by side, y[t] = x[t + d] for each d:
 * in front of a linear layer it makes a time-delay layer (Waibel et al. 1989).
 * Frames before the first and after the last of a sequence are zeros.
 */
#include "models/layers/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Adds `from` .. `to`; distances rise. */
static bm_status add(bm_layer *l, long from, long to)
{
    for (long d = from; d <= to; d++) {
        if (l->n_distances == BM_LAYER_DISTANCES)
            return bm_layer_fail(l, "more than %d frames", BM_LAYER_DISTANCES);
        l->distances[l->n_distances++] = (short)d;
    }
    return BM_OK;
}

/* Reads a distance at *text, and moves *text past it. */
static bool read_distance(const char **text, long *out)
{
    char *end = NULL;

    *out = strtol(*text, &end, 10);
    if (end == *text || *out < -BM_LAYER_WINDOW || *out > BM_LAYER_WINDOW)
        return false;
    *text = end;
    return true;
}

/* "-3" or "-2..2". */
static bm_status add_range(bm_layer *l, const char *word)
{
    const char *at = word;
    long from = 0, to = 0;
    bool valid = read_distance(&at, &from);

    to = from;
    if (valid && strncmp(at, "..", 2) == 0) {
        at += 2;
        valid = read_distance(&at, &to);
    }
    if (!valid || *at != '\0')
        return bm_layer_fail(l,
                             "'%s' is not a distance of %d to %d frames, nor a "
                             "range such as -2..2",
                             word, -BM_LAYER_WINDOW, BM_LAYER_WINDOW);
    if (to < from ||
        (l->n_distances > 0 && from <= l->distances[l->n_distances - 1]))
        return bm_layer_fail(l, "distances must rise, as in splice:-3,0,3");
    return add(l, from, to);
}

static bm_status plan(bm_layer *l)
{
    char args[sizeof l->args], *rest = args;
    const char *word = NULL;

    if (l->args[0] == '\0')
        return bm_layer_fail(
            l, "the distances are missing: splice:-2..2 or splice:-3,0,3");
    snprintf(args, sizeof args, "%s", l->args);
    l->n_distances = 0;
    while ((word = bm_layer_argument(&rest)) != NULL)
        BM_TRY(add_range(l, word));
    l->n_out = l->n_in * l->n_distances;
    return BM_OK;
}

/* The frames t of y for which frame t + d is among the T of x. */
typedef struct overlap {
    size_t from, frames;
} overlap;

static overlap overlap_of(size_t T, long d)
{
    size_t lost = d < 0 ? (size_t)-d : (size_t)d;

    return (overlap){d < 0 ? lost : 0, lost < T ? T - lost : 0};
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    size_t B = p->in.B, D = l->n_in;

    bm_axpby(l->be, bm_count(y), 0, y.data, 0, y.data);
    for (size_t k = 0; k < l->n_distances; k++) {
        long d = l->distances[k];
        overlap o = overlap_of(p->in.T, d);
        bm_runs r = {o.frames, B, D, B * D, D, B * l->n_out, l->n_out};

        if (o.frames > 0)
            bm_copy_runs(l->be, &r, x.data + (size_t)((long)o.from + d) * B * D,
                         y.data + o.from * B * l->n_out + k * D);
    }
    bm_clear_padding(l->be, p->out, y);
}

/* What one distance adds to dx. */
static size_t work(const bm_layer *l, const bm_pass *p)
{
    return p->in.T * p->in.B * l->n_in;
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    size_t B = p->in.B, D = l->n_in, n = p->in.T * B * D;

    (void)x;
    (void)y;
    if (dx.data == NULL)
        return;
    bm_axpby(l->be, n, 0, dx.data, 0, dx.data);
    for (size_t k = 0; k < l->n_distances; k++) {
        long d = l->distances[k];
        overlap o = overlap_of(p->in.T, d);
        bm_runs r = {o.frames, B, D, B * l->n_out, l->n_out, B * D, D};

        if (o.frames == 0)
            continue;
        bm_axpby(l->be, n, 0, l->work, 0, l->work);
        bm_copy_runs(l->be, &r, dy.data + o.from * B * l->n_out + k * D,
                     l->work + (size_t)((long)o.from + d) * B * D);
        bm_axpby(l->be, n, 1, l->work, 1, dx.data);
    }
    bm_clear_padding(l->be, p->in, dx);
}

const bm_layer_ops bm_layer_splice = {
    .name = "splice",
    .help = "splice:D,D,..  the frames at these distances side by side, as in "
            "splice:-3,0,3 or splice:-2..2",
    .plan = plan,
    .work = work,
    .forward = forward,
    .backward = backward,
};
