/*
 * net.h - the one line that describes a network, taken apart.
 *
 *     stack:2 blstm:256*3 dropout:0.2 linear
 */
#ifndef BM_MODELS_NET_H
#define BM_MODELS_NET_H

#include "models/layers/layer.h"

/*
 * One layer for each word, or as many as it says after '*': ops, name, args,
 * word and time are set. Free the array with free(); its words
 * borrow `net`. Fails with BM_ERR_CONFIG, pointing at the word that is wrong.
 */
BM_CHECKED bm_status bm_net_parse(const char *net, bm_layer **out, size_t *n);

/*
 * Of n planned layers: each layer that can apply those behind it to its own
 * output does so from now on, and they are skipped: l->fused of them follow l.
 */
void bm_net_fuse(bm_layer *layers, size_t n);

#endif
