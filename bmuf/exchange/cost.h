/*
 * cost.h - what exchanges between N workers take: models of latency, bytes and
 * additions (alpha, beta, gamma; Thakur et al. 2005). Times in seconds, sizes
 * in bytes. A single worker exchanges nothing.
 */
#ifndef BM_BMUF_EXCHANGE_COST_H
#define BM_BMUF_EXCHANGE_COST_H

#include <stddef.h>

typedef struct bm_link {
    double latency;   /* alpha: of a message */
    double bandwidth; /* 1 / beta: bytes a second, both ways at a time */
    double adding;    /* gamma: seconds to add a byte that came */
} bm_link;

/* ---- allreduce ----------------------------------------------------------- */

/* Reduce-scatter and gather round a ring: 2 (N - 1) messages. */
double bm_cost_ring(double bytes, int n, const bm_link *l);

/* Recursive halving and doubling (Rabenseifner): 2 log2 N messages. Where N is
 * no power of two, those beyond one fold in and are told: two more of all. */
double bm_cost_halving(double bytes, int n, const bm_link *l);

/* Recursive doubling: log2 N messages of everything. */
double bm_cost_doubling(double bytes, int n, const bm_link *l);

/* To one rank and back by binomial trees. */
double bm_cost_tree(double bytes, int n, const bm_link *l);

/* Rings along the dimensions of a grid: scattered along each, the first one
 * first, then gathered the other way round (IBM's multi-ring). link[k] is that
 * of dimension k. */
double bm_cost_grid(double bytes, size_t dimensions, const int *size,
                    const bm_link *link);

/* A server that all others send their gradients to, one after the other. */
double bm_cost_server(double bytes, int n, const bm_link *l);

/* Parameter servers: gradients there, weights back; servers = N: every worker
 * is one, for its slice. */
double bm_cost_servers(double bytes, int n, int servers, const bm_link *l);

/* Bytes of so many weights at one bit: for each column of `rows` two floats and
 * a bit for each (Seide et al. 2014). */
double bm_cost_onebit_bytes(double weights, double rows);

/* ---- overlap with the backward pass ---------------------------------------
 */

/* Layers in the order in which backward is done with them. From the beginning
 * of the backward pass to the end of the last transfer, if each layer's
 * gradient sets off as soon as it is there and the one before has arrived. */
typedef double bm_transfer(void *self, double bytes);
double bm_cost_overlap(size_t layers, const double *backward,
                       const double *bytes, bm_transfer *transfer, void *self);

/*
 * Layers whose gradients had better travel together where a transfer takes
 * a + b bytes (MG-WFBP, Shi et al. 2019): bucket[k] gets the number of layer
 * k's bucket, from 0. Returns the time as above.
 */
double bm_cost_merge(size_t layers, const double *backward, const double *bytes,
                     double a, double b, int *bucket);

/* ---- waiting for the slowest ----------------------------------------------
 */

/* The expected largest of n standard normal numbers. */
double bm_cost_slowest(int n);

#endif
