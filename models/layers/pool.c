/* pool.c - the maximum of each window of frames and rows, for each channel.
 * Windows do not overlap, and the last ones may be incomplete. */
#include "models/layers/layer.h"

static bm_window adjacent(size_t size)
{
    return (bm_window){size, size, 0, size - 1};
}

static bm_status plan(bm_layer *l)
{
    size_t C = bm_layer_channels_in(l), size[2] = {0};

    BM_TRY(bm_layer_pair(l, "window", l->args, 1, size));
    l->time = adjacent(size[0]);
    l->rows = adjacent(size[1]);
    l->does = (bm_epilogue){.pools = true, .time = l->time, .rows = l->rows};
    l->channels = C;
    l->n_out = bm_windows(l->rows, l->n_in / C) * C;
    return BM_OK;
}

static bm_pooling view(const bm_layer *l)
{
    return (bm_pooling){l->n_in / l->channels, l->channels, l->time, l->rows};
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_pooling v = view(l);
    bm_pooling_forward(l->be, &v, p->in, p->out, x.data, y.data);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_pooling v = view(l);

    if (dx.data != NULL)
        bm_pooling_backward(l->be, &v, p->in, p->out, x.data, y.data, dy.data,
                            dx.data);
}

const bm_layer_ops bm_layer_pool = {
    .name = "pool",
    .help = "pool:TIMExHEIGHT  the maximum of each window, without overlap",
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
