/*
 * stack.c - reduces the frame rate: stack:n concatenates each n frames into
 * one, subsample:n keeps the first of each n. Missing frames of the last group
 * are zeros.
 */
#include "models/layers/layer.h"

/* Groups of n frames: all of them are used, or the first. */
static bm_status plan_groups(bm_layer *l, bool whole)
{
    size_t n = 0;

    BM_TRY(bm_layer_count(l, "frames", l->args, &n));
    l->time = whole ? (bm_window){n, n, 0, n - 1} : (bm_window){1, n, 0, 0};
    l->n_out = l->n_in * l->time.size;
    return BM_OK;
}

static bm_status plan_stack(bm_layer *l)
{
    return plan_groups(l, true);
}

static bm_status plan_subsample(bm_layer *l)
{
    return plan_groups(l, false);
}

/* The positions of frame k of each group in x and in y, as far as T reaches. */
static bm_runs group(const bm_layer *l, const bm_pass *p, size_t k)
{
    size_t B = p->in.B, D = l->n_in, n = l->time.stride;

    return (bm_runs){
        .outer = p->in.T > k ? (p->in.T - k + n - 1) / n : 0,
        .inner = B,
        .n = D,
        .outer_x = n * B * D,
        .inner_x = D,
        .outer_y = B * l->n_out,
        .inner_y = l->n_out,
    };
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    size_t B = p->in.B, D = l->n_in;

    if (p->in.T % l->time.stride != 0 && l->time.size > 1)
        bm_axpby(l->be, bm_count(y), 0, y.data, 0, y.data);
    for (size_t k = 0; k < l->time.size && k < p->in.T; k++) {
        bm_runs r = group(l, p, k);
        bm_copy_runs(l->be, &r, x.data + k * B * D, y.data + k * D);
    }
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    size_t B = p->in.B, D = l->n_in;

    (void)x;
    (void)y;
    if (dx.data == NULL)
        return;
    if (l->time.size < l->time.stride)
        bm_axpby(l->be, bm_count(dx), 0, dx.data, 0, dx.data);
    for (size_t k = 0; k < l->time.size && k < p->in.T; k++) {
        bm_runs r = group(l, p, k);
        bm_runs back = {r.outer,   r.inner,   r.n,      r.outer_y,
                        r.inner_y, r.outer_x, r.inner_x};
        bm_copy_runs(l->be, &back, dy.data + k * D, dx.data + k * B * D);
    }
    bm_clear_padding(l->be, p->in, dx); /* the last groups */
}

const bm_layer_ops bm_layer_stack = {
    .name = "stack",
    .help = "stack:N  concatenates N frames into one; 1 / N of the frame rate",
    .plan = plan_stack,
    .forward = forward,
    .backward = backward,
};

const bm_layer_ops bm_layer_subsample = {
    .name = "subsample",
    .help = "subsample:N  keeps the first of each N frames",
    .plan = plan_subsample,
    .forward = forward,
    .backward = backward,
};
