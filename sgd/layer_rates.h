/*
 * layer_rates.h - layers that are frozen ([train] freeze), and layers with a
 * learning rate of their own ([train] rates), as ranges of the vector of
 * weights.
 *
 * The local update (sgd.h) follows params->layer_rates. Nothing else moves a
 * frozen weight, as all workers have it alike: exchanges add zeros to it.
 */
#ifndef BM_SGD_LAYER_RATES_H
#define BM_SGD_LAYER_RATES_H

#include "compute/params.h"
#include "core/status.h"

typedef struct bm_layer_rates {
    bm_layer_rate *list; /* [n] for params->layer_rates */
    size_t n;
    size_t frozen;     /* weights that do not move */
    char *frozen_text; /* "0.conv 1.batchnorm"; "": none */
    char *rates_text;  /* "2.blstm 0.1, 3.linear 2" */
} bm_layer_rates;

/*
 * Reads both settings for a network with named segments: names of layers, with
 * the wildcards of fnmatch(3), separated by blanks; each with :FACTOR in `rates`,
 * where the last one that fits a layer counts. A frozen layer has no rate. Free
 * with bm_layer_rates_free. Fails with BM_ERR_CONFIG for a name that fits no layer,
 * a factor that is no positive number, or if all layers are frozen; with
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_layer_rates_read(bm_layer_rates *out,
                                         const bm_params *params,
                                         const char *freeze, const char *rates);
void bm_layer_rates_free(bm_layer_rates *p);

/* slice->layer_rates <- the rates of weights [offset, offset + slice->n) of
 * `whole`, counted from `offset`. *out: their memory, to be freed after the slice.
 * Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_layer_rates_cut(bm_layer_rate **out, bm_params *slice,
                                        const bm_params *whole, size_t offset);

/* Queued. Frozen elements of a slice of a vector become those of `from`, which
 * is laid out as the slice is; NULL: 0. */
void bm_frozen_copy(const bm_params *params, const bm_state *slice,
                    const float *from);

/* Are there any? */
bool bm_frozen_any(const bm_params *params);

#endif
