/*
 * fetch.h - copies from a device to the host beside what is queued later, such
 * as gradients that are sent while the backward pass goes on:
 *
 *     bm_fetch_start(f, i, x, at, n);     queued; copy i, to elements from `at`
 *     host = bm_fetch_wait(f, i);         all elements of the host's memory
 *
 * x may not change between the two. The backend's memory is not the host's.
 */
#ifndef BM_COMPUTE_FETCH_H
#define BM_COMPUTE_FETCH_H

#include "compute/backend.h"

typedef struct bm_fetch bm_fetch;

/* Memory of the host for n floats, and copies 0 .. copies - 1. The backend is
 * borrowed. Fails with BM_ERR_MEMORY or BM_ERR_DEVICE. */
BM_CHECKED bm_status bm_fetch_open(bm_fetch **out, bm_backend *be, size_t n,
                                   size_t copies);
void bm_fetch_close(bm_fetch *f); /* waits; NULL: no-op */

void bm_fetch_start(bm_fetch *f, size_t copy, const float *x, size_t at,
                    size_t n);

/* NULL if the backend has failed: the next bm_sync returns why. */
const float *bm_fetch_wait(bm_fetch *f, size_t copy);

#endif
