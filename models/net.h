/*
 * net.h - parses the line that describes a network.
 *
 *     stack:2 blstm:256*3 dropout:0.2 linear
 *     conv:16,3x3 residual( conv:16,3x3 relu conv:16,3x3 )*3 pool:all linear
 */
#ifndef BM_MODELS_NET_H
#define BM_MODELS_NET_H

#include "models/layers/layer.h"

enum {
    BM_NET_LAYERS = 1024, /* of a network, at most */
    BM_NET_GROUPS = 16    /* one inside the other */
};

/*
 * *out <- a new array of *n layers, one for each word, or as many as the number
 * after '*'; a group in parentheses likewise. Sets ops, number, name, args,
 * word, time and the places of groups. Free the array with free(); its words
 * borrow `net`. Fails with BM_ERR_MEMORY, or with BM_ERR_CONFIG and a message
 * that marks the invalid word.
 */
BM_CHECKED bm_status bm_net_parse(const char *net, bm_layer **out, size_t *n);

/*
 * Fuses planned layers: a layer whose fuse() accepts the layers after it
 * applies them to its own output. The l->fused layers after l must then be
 * skipped.
 */
void bm_net_fuse(bm_layer *layers, size_t n);

#endif
