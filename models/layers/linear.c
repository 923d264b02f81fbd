/* linear.c - y = f(W x + b) for each frame, f fused or the identity. */
#include "models/layers/layer.h"

static bm_status plan(bm_layer *l)
{
    if (l->args[0] != '\0')
        BM_TRY(bm_layer_count(l, "outputs", l->args, &l->n_out));
    else if (l->n_out == 0)
        return bm_layer_fail(l,
                             "the size is missing, as in linear:128; only the "
                             "last layer takes it from the vocabulary");
    l->weights[0] = (bm_weight){.name = "w",
                                .torch = "weight",
                                .rank = 2,
                                .dim = {l->n_out, l->n_in, 1, 1}};
    l->weights[1] = (bm_weight){
        .name = "b", .torch = "bias", .rank = 1, .dim = {l->n_out, 1, 1, 1}};
    l->n_weights = 2;
    return BM_OK;
}

static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    size_t n = l->n_out * l->n_in;

    bm_layer_glorot(w, n, l->n_in, l->n_out, rng);
    for (size_t i = 0; i < l->n_out; i++)
        w[n + i] = 0;
}

static bm_flops flops(const bm_layer *l, const bm_pass *p)
{
    double frames = (double)(p->in.T * p->in.B);

    return (bm_flops){.input = 2 * frames * (double)l->n_in * (double)l->n_out};
}

/* One function, no windows. */
static bool fuse(bm_layer *l, const bm_epilogue *e)
{
    if (e->pools || l->after.f != BM_IDENTITY)
        return false;
    l->after.f = e->f;
    return true;
}

static bm_linear view(const bm_layer *l)
{
    return (bm_linear){l->n_in, l->n_out, l->w, l->w + l->n_out * l->n_in,
                       l->after.f};
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_linear v = view(l);

    bm_linear_forward(l->be, &v, p->in.T * p->in.B, x.data, y.data);
    bm_clear_padding(l->be, p->out, y);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_linear v = view(l);

    bm_linear_backward(l->be, &v, p->in.T * p->in.B, x.data, y.data, dy.data,
                       dx.data, l->g, l->g + l->n_out * l->n_in);
}

const bm_layer_ops bm_layer_linear = {
    .name = "linear",
    .others = "affine dense fc",
    .help = "linear[:SIZE]  y = W x + b; the last layer needs no size",
    .plan = plan,
    .init = init,
    .flops = flops,
    .fuse = fuse,
    .forward = forward,
    .backward = backward,
};
