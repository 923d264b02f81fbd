/* recurrent.h - what exporters need of lstm, blstm, gru and bgru. */
#ifndef BM_MODELS_LAYERS_RECURRENT_H
#define BM_MODELS_LAYERS_RECURRENT_H

#include "models/layers/layer.h"

bool bm_layer_is_recurrent(const bm_layer *l);

/* The sizes and weights of a recurrent layer; borrowed from it. */
bm_recurrent bm_layer_recurrent(const bm_layer *l);

#endif
