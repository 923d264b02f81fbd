/*
 * transfer.h - takes weights of a trained network over into another one, layer
 * by layer. A layer is taken if both networks have it by name ("2.blstm") and
 * all of its weights and statistics have the same shape. Of the output layer
 * the rows of symbols that both vocabularies have are taken, whatever else
 * differs between these.
 */
#ifndef BM_MODELS_TRANSFER_H
#define BM_MODELS_TRANSFER_H

#include "compute/params.h"
#include "io/vocab.h"

enum { BM_TRANSFER_NAMES = 4096 };

typedef struct bm_transfer {
    size_t n_taken, n_anew; /* layers with weights */
    /* Their names, separated by blanks: copied, and left as initialised. */
    char taken[BM_TRANSFER_NAMES], anew[BM_TRANSFER_NAMES];
    char output[64]; /* the layer whose rows were copied one by one; "": none */
    size_t symbols, symbols_common; /* of it: rows, and rows that were copied */
    size_t symbols_dropped; /* rows of the old network's that were not */
    bool whole; /* both networks are equal, and all weights are taken */
} bm_transfer;

/* A network's weights, and the symbols of its classes. */
typedef struct bm_trained {
    const bm_params *params;
    const bm_vocab *vocab;
} bm_trained;

/* Copies from one network to the other; their backends may differ. Fails with
 * BM_ERR_MEMORY, or as the backends do. */
BM_CHECKED bm_status bm_transfer_layers(bm_trained from, bm_trained to,
                                        bm_transfer *out);

#endif
