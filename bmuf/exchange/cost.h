/*
 * cost.h - times of exchanges between N workers: models of latency, bytes and
 * additions (alpha, beta, gamma; Thakur et al. 2005). Times are in seconds,
 * sizes in bytes. With N = 1 they are 0.
 */
#ifndef BM_BMUF_EXCHANGE_COST_H
#define BM_BMUF_EXCHANGE_COST_H

#include <stddef.h>

typedef struct bm_link {
    double latency;   /* alpha: of a message */
    double bandwidth; /* 1 / beta: bytes a second, in each direction */
    double adding;    /* gamma: seconds to add a received byte */
} bm_link;

/* ---- allreduce ----------------------------------------------------------- */

/* Reduce-scatter and gather round a ring: 2 (N - 1) messages. */
double bm_cost_ring(double bytes, int n, const bm_link *l);

/* Rings along the dimensions of a grid (IBM's multi-ring): scatter along each
 * dimension in turn, then gather in reverse. link[k] is that of dimension k. */
double bm_cost_grid(double bytes, size_t dimensions, const int *size,
                    const bm_link *link);

/* One server to which all others send their gradients, one after the other. */
double bm_cost_server(double bytes, int n, const bm_link *l);

/* Bytes of 1-bit codes: for each column of `rows` weights two floats, and a bit
 * for each weight (Seide et al. 2014). */
double bm_cost_onebit_bytes(double weights, double rows);

/* ---- buckets during the backward pass ------------------------------------ */

/* The time from the start of the backward pass to the end of the last transfer,
 * if each layer's transfer starts when its gradient is complete and the
 * transfer before has ended. Layers are in the order of the backward pass. */
typedef double bm_transfer_time(void *self, double bytes);
double bm_cost_bucketed(size_t layers, const double *backward,
                        const double *bytes, bm_transfer_time *transfer,
                        void *self);

/*
 * Groups layers into buckets, if a transfer of x bytes takes a + b x seconds
 * (MG-WFBP, Shi et al. 2019): bucket[k] = the number of layer k's bucket, from
 * 0. Returns the time as above. At most 1024 layers.
 */
double bm_cost_merge(size_t layers, const double *backward, const double *bytes,
                     double a, double b, int *bucket);

/* ---- waiting for the slowest --------------------------------------------- */

/* The expected largest of n standard normal numbers. */
double bm_cost_slowest(int n);

#endif
