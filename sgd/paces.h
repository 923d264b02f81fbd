/*
 * paces.h - layers that are frozen ([train] freeze), and layers with a learning
 * rate of their own ([train] rates), as ranges of the vector of weights.
 *
 * The local update (sgd.h) follows params->paces. Nothing else moves a frozen
 * weight, as all workers have it alike: exchanges add zeros to it.
 */
#ifndef BM_SGD_PACES_H
#define BM_SGD_PACES_H

#include "compute/params.h"
#include "core/status.h"

typedef struct bm_paces {
    bm_pace *list; /* [n] for params->paces */
    size_t n;
    size_t frozen;     /* weights that do not move */
    char *frozen_text; /* "0.conv 1.batchnorm"; "": none */
    char *rates_text;  /* "2.blstm 0.1, 3.linear 2" */
} bm_paces;

/*
 * Reads both settings for a network with named segments: names of layers, with
 * the wildcards of fnmatch(3), separated by blanks; each with :FACTOR in `rates`,
 * where the last one that fits a layer counts. A frozen layer has no rate. Free
 * with bm_paces_free. Fails with BM_ERR_CONFIG for a name that fits no layer, a
 * factor that is no positive number, or if all layers are frozen; with
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_paces_read(bm_paces *out, const bm_params *params,
                                   const char *freeze, const char *rates);
void bm_paces_free(bm_paces *p);

/* slice->paces <- the paces of weights [offset, offset + slice->n) of `whole`,
 * counted from `offset`. *out: their memory, to be freed after the slice. Fails
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_paces_cut(bm_pace **out, bm_params *slice,
                                  const bm_params *whole, size_t offset);

/* Queued. Frozen elements of a slice of a vector become those of `from`, which
 * is laid out as the slice is; NULL: 0. */
void bm_frozen_copy(const bm_params *params, const bm_state *slice,
                    const float *from);

/* Are there any? */
bool bm_frozen_any(const bm_params *params);

#endif
