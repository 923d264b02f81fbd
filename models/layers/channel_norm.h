/*
 * channel_norm.h - what batchnorm and instancenorm share: gamma and beta of
 * every channel, and a function and windows that bm_norm_forward applies after
 * them. Channels are those of columns of pixels; in a flat frame each feature
 * is a channel.
 */
#ifndef BM_MODELS_LAYERS_CHANNEL_NORM_H
#define BM_MODELS_LAYERS_CHANNEL_NORM_H

#include "models/layers/layer.h"

/* The number of channels, once weights are planned. */
size_t bm_channel_norm_channels(const bm_layer *l);

/* As members of bm_layer_ops; plan adds gamma and beta. */
BM_CHECKED bm_status bm_channel_norm_plan(bm_layer *l);
void bm_channel_norm_init(const bm_layer *l, float *w, bm_rng *rng);
bool bm_channel_norm_fuse(bm_layer *l, const bm_epilogue *e);

/* The operands. mean and var [C] are borrowed. */
bm_norm bm_channel_norm_view(const bm_layer *l, const float *mean,
                             const float *var);

#endif
