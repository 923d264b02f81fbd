/*
 * service.h - counters of a bm_service (bmuf/trainer/task.h): pushes, pulls and
 * staleness of one block.
 */
#ifndef BM_BMUF_ASYNC_SERVICE_H
#define BM_BMUF_ASYNC_SERVICE_H

#include "bmuf/trainer/task.h"

/* Clears all counters. stale [n_stale] is borrowed as the histogram and must
 * outlive the service. */
void bm_service_begin(bm_service *s, double *stale, size_t n_stale);

/* One push of staleness tau with n weights. `stale` is the histogram that was
 * given to bm_service_begin. */
void bm_service_push(bm_service *s, double *stale, double tau, size_t n);

/* One fetch of n weights. */
void bm_service_pull(bm_service *s, size_t n);

/* Turns the sum of staleness into its mean; NAN without a push. */
void bm_service_end(bm_service *s);

#endif
