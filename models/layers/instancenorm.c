/*
 * instancenorm.c - instance normalisation (Ulyanov, Vedaldi and Lempitsky
 * 2016): bm_norm_forward of each sequence alone, with its own mean and variance
 * in training and in evaluation.
 *
 * The frames of a mini-batch are interleaved, [T, B, D]. With several sequences
 * each is copied to [T, 1, D] and back, one after the other.
 */
#include "models/layers/channel_norm.h"

enum { ALIGNED = 16 }; /* floats */

/* Running statistics are not read by a forward pass in training, and a backward
 * pass only subtracts from them; gamma and beta take their place. */
static bm_norm view(const bm_layer *l)
{
    return bm_channel_norm_view(l, l->w, l->w + bm_channel_norm_channels(l));
}

static bm_extent alone(bm_extent e, size_t b)
{
    return (bm_extent){e.T, 1, e.frames + b};
}

static size_t round_up(size_t n)
{
    return (n + ALIGNED - 1) / ALIGNED * ALIGNED;
}

/* Floats that the operation keeps of each sequence. */
static size_t kept_of_one(const bm_layer *l, const bm_pass *p)
{
    bm_norm n = view(l);
    return round_up(bm_norm_kept(l->be, &n, alone(p->out, 0)));
}

static size_t kept(const bm_layer *l, const bm_pass *p)
{
    return p->in.B * kept_of_one(l, p);
}

/* Views of `work`: a sequence's tensors, and what its backward pass gives. */
typedef struct room {
    float *x, *y, *dy, *dx; /* [T, D] of x and dx, [T', D'] of y and dy */
    float *dw;              /* [4, C]: gamma, beta; the others are not used */
} room;

static size_t out_width(const bm_norm *n)
{
    return bm_windows(n->rows, n->height) * n->channels;
}

/* Floats of a sequence's x, and of its y. */
static size_t size_of_x(const bm_layer *l, const bm_pass *p)
{
    return round_up(p->in.T * l->n_in);
}

static size_t size_of_y(const bm_norm *n, const bm_pass *p)
{
    return round_up(p->out.T * out_width(n));
}

static size_t size_of_dw(const bm_norm *n)
{
    return round_up(4 * n->channels);
}

static size_t work(const bm_layer *l, const bm_pass *p)
{
    bm_norm n = view(l);
    size_t copies = size_of_x(l, p) + size_of_y(&n, p);

    return size_of_dw(&n) + (p->in.B == 1 ? 0 : 2 * copies);
}

static room room_of(const bm_layer *l, const bm_pass *p)
{
    bm_norm n = view(l);
    room r = {.dw = l->work};

    r.x = r.dw + size_of_dw(&n);
    r.dx = r.x + size_of_x(l, p);
    r.y = r.dx + size_of_x(l, p);
    r.dy = r.y + size_of_y(&n, p);
    return r;
}

/* Sequence b of x [T, B, D] as [T, 1, D]: a copy in `to`, or x if B is 1. */
static const float *take(const bm_layer *l, bm_extent e, size_t b, size_t D,
                         const float *x, float *to)
{
    bm_runs r = {e.T, 1, D, e.B * D, 0, D, 0};

    if (e.B == 1)
        return x;
    bm_copy_runs(l->be, &r, x + b * D, to);
    return to;
}

/* The opposite: copies `from` to sequence b of x, unless it is x. */
static void put(const bm_layer *l, bm_extent e, size_t b, size_t D,
                const float *from, float *x)
{
    bm_runs r = {e.T, 1, D, D, 0, e.B * D, 0};

    if (from != x)
        bm_copy_runs(l->be, &r, from, x + b * D);
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_norm n = view(l);
    room r = room_of(l, p);
    size_t D = l->n_in, D_out = out_width(&n);

    for (size_t b = 0; b < p->in.B; b++) {
        float *to = p->in.B == 1 ? y.data : r.y;

        bm_norm_forward(l->be, &n, alone(p->in, b), alone(p->out, b), true,
                        take(l, p->in, b, D, x.data, r.x), to,
                        l->kept + b * kept_of_one(l, p));
        put(l, p->out, b, D_out, to, y.data);
    }
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_norm n = view(l);
    room r = room_of(l, p);
    size_t C = n.channels, D = l->n_in, D_out = out_width(&n);

    for (size_t b = 0; b < p->in.B; b++) {
        float *to = p->in.B == 1 || dx.data == NULL ? dx.data : r.dx;

        bm_norm_backward(l->be, &n, alone(p->in, b), alone(p->out, b),
                         take(l, p->in, b, D, x.data, r.x),
                         take(l, p->out, b, D_out, y.data, r.y),
                         take(l, p->out, b, D_out, dy.data, r.dy),
                         l->kept + b * kept_of_one(l, p), to, r.dw, r.dw + C,
                         r.dw + 2 * C, r.dw + 3 * C);
        put(l, p->in, b, D, to, dx.data);
        bm_axpby(l->be, 2 * C, 1, r.dw, b > 0, l->g);
    }
}

const bm_layer_ops bm_layer_instancenorm = {
    .name = "instancenorm",
    .others = "instancenorm1d instancenorm2d",
    .help = "instancenorm  each channel of each sequence to mean 0 and "
            "variance 1, times gamma, plus beta",
    .plan = bm_channel_norm_plan,
    .init = bm_channel_norm_init,
    .kept = kept,
    .work = work,
    .fuse = bm_channel_norm_fuse,
    .forward = forward,
    .backward = backward,
};
