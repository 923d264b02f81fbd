/*
 * device_sum.h - the ordered sum in tree mode, in the memory of devices: nodes
 * of the tree, slices and the common vector are the backend's, and go from rank
 * to rank through its mesh, or through MPI, if it takes devices' memory. The
 * bits are those of comm/sum/sum.h.
 */
#ifndef BM_BMUF_EXCHANGE_DEVICE_SUM_H
#define BM_BMUF_EXCHANGE_DEVICE_SUM_H

#include "comm/comm.h"
#include "compute/backend.h"

#include <stdbool.h>

typedef struct bm_device_sum bm_device_sum;

/* Through what; one rank needs nothing, but may try it. */
typedef enum bm_transport {
    BM_TRANSPORT_NONE,
    BM_TRANSPORT_DEVICE_COMM,
    BM_TRANSPORT_MPI
} bm_transport;

/* Collective. On failure all fail, the message says why it cannot be: a backend
 * without a mesh, ranks that share a device, an MPI library that does not take
 * devices' memory, no memory. All arguments are borrowed. */
BM_CHECKED bm_status bm_device_sum_open(bm_device_sum **out, bm_comm *comm,
                                        bm_backend *be, size_t n, int workers,
                                        const char *coordinator,
                                        bm_transport by);
void bm_device_sum_close(bm_device_sum *d);

/* Takes in x - from of the next worker hosted here; from = NULL: x. What holds
 * a number that is none gets weight 0, and *good is false. Waits. */
BM_CHECKED bm_status bm_device_sum_add(bm_device_sum *d, int worker,
                                       const float *x, const float *from,
                                       double weight, bool *good);

/* This rank's slice: elements [*offset, *offset + count). */
size_t bm_device_sum_slice(const bm_device_sum *d, size_t *offset);

/* Collective, after all workers were added. *mean: of this rank's slice, to be
 * changed freely until a worker is added; *weight: of all workers, if it is 0
 * there is no mean. Its arithmetic is queued. */
BM_CHECKED bm_status bm_device_sum_mean(bm_device_sum *d, float **mean,
                                        double *weight);

/* n floats that all ranks have in common, when they have shared them. */
float *bm_device_sum_common(const bm_device_sum *d);

/* Collective. Every rank's slice of x [n], at its place, becomes everybody's.
 */
BM_CHECKED bm_status bm_device_sum_allgather(bm_device_sum *d, float *x);

#endif
