/* channel_norm.c - see channel_norm.h. */
#include "models/layers/channel_norm.h"

size_t bm_channel_norm_channels(const bm_layer *l)
{
    return l->weights[0].dim[0];
}

bm_status bm_channel_norm_plan(bm_layer *l)
{
    size_t C = l->channels_in > 0 ? l->channels_in : l->n_in;

    if (l->args[0] != '\0')
        return bm_layer_fail(l, "%s takes no arguments", l->ops->name);
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    l->weights[0] = (bm_weight){
        .name = "gamma", .torch = "weight", .rank = 1, .dim = {C, 1, 1, 1}};
    l->weights[1] = (bm_weight){
        .name = "beta", .torch = "bias", .rank = 1, .dim = {C, 1, 1, 1}};
    l->n_weights = 2;
    return BM_OK;
}

void bm_channel_norm_init(const bm_layer *l, float *w, bm_rng *rng)
{
    size_t C = bm_channel_norm_channels(l);

    (void)rng;
    for (size_t c = 0; c < C; c++) {
        w[c] = 1;
        w[C + c] = 0;
    }
}

/* A function and windows, in this order. No windows of a flat frame: pool sees
 * it as a column of one channel, this layer as n_in channels. */
bool bm_channel_norm_fuse(bm_layer *l, const bm_epilogue *e)
{
    bm_epilogue *after = &l->after;

    if (after->pools || (e->pools && l->channels == 0) ||
        (!e->pools && after->f != BM_IDENTITY))
        return false;
    *after =
        (bm_epilogue){e->pools ? after->f : e->f, e->pools, e->time, e->rows};
    return true;
}

bm_norm bm_channel_norm_view(const bm_layer *l, const float *mean,
                             const float *var)
{
    size_t C = bm_channel_norm_channels(l);
    bm_norm n = {l->n_in / C, C,          l->w,         l->w + C,    mean,
                 var,         l->after.f, {1, 1, 0, 0}, {1, 1, 0, 0}};

    if (l->after.pools) {
        n.time = l->after.time;
        n.rows = l->after.rows;
    }
    return n;
}
