/*
 * coded_device.h - what a coded exchange does on a device: changes of workers
 * become codes there, and codes the common vector, so that only codes travel
 * between device and host. Residuals stay on the device.
 */
#ifndef BM_BMUF_EXCHANGE_CODED_DEVICE_H
#define BM_BMUF_EXCHANGE_CODED_DEVICE_H

#include "comm/code/code_plan.h"
#include "compute/device_code.h"

#include <stdbool.h>

typedef struct bm_coded_device bm_coded_device;

/* For workers first .. last - 1. The plan, of this kind of code, is read while
 * opening. Fails with BM_ERR_MEMORY or as bm_sync. */
BM_CHECKED bm_status bm_coded_device_open(bm_coded_device **out, bm_backend *be,
                                          const bm_code_plan *plan,
                                          bm_code_kind kind, int first,
                                          int last);
void bm_coded_device_close(bm_coded_device *d); /* NULL: no-op */

/* A worker's vector, n floats on the device. */
typedef struct bm_coded_vector {
    int worker;
    const float *x;
    bool from_common; /* it is x less the common vector */
    size_t measured;  /* number of elements in `square` */
} bm_coded_vector;

/*
 * *code: that of the vector and the worker's residual, on the host, borrowed
 * until the next call; *square: |vector|^2. *good is false, and the residual is
 * kept, if a number is not finite. Fails as bm_sync.
 */
BM_CHECKED bm_status bm_coded_device_encode(bm_coded_device *d,
                                            const bm_coded_vector *v,
                                            double *square, const void **code,
                                            bool *good);

/* Queued. The common vector becomes what is decoded from a code or, with `adds`,
 * grows by it; or becomes x [n], which is on the host. */
void bm_coded_device_decode(bm_coded_device *d, const void *code, bool adds);
void bm_coded_device_replace(bm_coded_device *d, const float *x);

/* Queued. x [n] on the device = the common vector. */
void bm_coded_device_fetch(bm_coded_device *d, float *x);

/* State for a restart: the residual [n] of a worker, on the device. */
float *bm_coded_device_residual(const bm_coded_device *d, int worker);

#endif
