/*
 * sum.h - the ordered sum: the weighted mean of one vector per worker.
 *
 *     for each worker k hosted here, in increasing order
 *         bm_sum_add(sum, k, x, weight)
 *     bm_sum_update(sum, work, self, &total)            collective
 *
 * The mean is cut into slices, one for each rank. A rank calls `work` for its
 * slice, one chunk after the other while they are in the first cache, to
 * compute the new values of the common vector, bm_sum_common. Ranks of one host
 * share that vector and read each other's vectors in place; other hosts get
 * messages.
 *
 *     bm_sum_scatter(sum, &slice)       slice.x: this rank's slice of the mean
 *     bm_sum_gather(sum, x)             x: all slices, equal on all ranks
 *
 * are the two halves of the same, for a vector that ranks do not share.
 *
 *     tree    balanced binary tree over worker numbers
 *     exact   integers with a shared exponent: any order gives the same bits
 *     mpi     the MPI library's allreduce, in its order
 *     ring    reduce-scatter and gather round a ring (Baidu 2017)
 *     halving recursive halving and doubling (Rabenseifner)
 *     hier    rings along the dimensions of a grid (IBM DDL 2017)
 *
 * N workers are hosted by P ranks, 1 <= P <= N, in contiguous ranges. The bits
 * of the mean depend on the workers' vectors and weights alone, not on P,
 * except in mode mpi.
 *
 * Slices start at multiples of BM_SUM_CHUNK. With coordinator "root" rank 0's
 * slice is the whole vector: the paper's single coordinator, or a parameter
 * server. (A ring is a chain then, and sums in another order.)
 *
 * A worker of weight zero does not contribute. The mean of one worker is its
 * vector, bit for bit (mode exact: see sum_exact.c).
 *
 * To add a mode: write comm/sum/sum_<name>.c, then add its line to BM_SUMS.
 */
#ifndef BM_COMM_SUM_SUM_H
#define BM_COMM_SUM_SUM_H

#include "comm/comm.h"
#include "comm/grid.h"
#include "comm/slices.h"

#define BM_SUMS(X) X(tree) X(exact) X(mpi) X(ring) X(halving) X(hier)

/* What others need to know of a mode. */
typedef struct bm_sum_traits {
    bool by_host; /* devices do not have it */
    bool any_cut; /* the bits do not depend on where a vector is cut */
    /* Vectors that a rank with so many workers keeps, the common one included. */
    double (*vectors)(double hosted);
} bm_sum_traits;

/* Fails with BM_ERR_CONFIG if there are more ranks than workers. */
BM_CHECKED bm_status bm_sum_check_ranks(int size, int workers);

/* `mode` is a name of BM_SUMS. */
const bm_sum_traits *bm_sum_traits_of(const char *mode);

typedef struct bm_sum bm_sum;

/*
 * Collective. Opens sums of n floats over `workers` workers. `mode` is a name
 * of BM_SUMS, `coordinator` is "sharded" or "root", `topology` is for mode
 * hier: "4x8", or "auto" (or NULL): workers of a host x hosts. The comm is
 * borrowed.
 *
 * Fails with BM_ERR_CONFIG on an unknown name, an invalid topology, or more
 * ranks than workers; with BM_ERR_MEMORY; and as bm_shared_memory_open. All ranks fail
 * together.
 */
BM_CHECKED bm_status bm_sum_open(bm_sum **out, bm_comm *comm, size_t n,
                                 int workers, const char *mode,
                                 const char *coordinator, const char *topology);
void bm_sum_close(bm_sum *sum); /* NULL: no-op */

/*
 * bytes[size]: what each rank transfers to others in an update, or in a scatter
 * and a gather; sent and shared as bm_traffic counts them. All ranks are on one
 * host (for hier's "auto"). Arguments and failures are those of bm_sum_open.
 */
BM_CHECKED bm_status bm_sum_bytes(double *bytes, int size, size_t n,
                                  int workers, const char *mode,
                                  const char *coordinator,
                                  const char *topology);

/* *out: the grid of workers along which the mode adds up, see grid.h; members =
 * 0: it adds up in another way. Arguments and failures are those of
 * bm_sum_open. */
BM_CHECKED bm_status bm_sum_grid(const char *mode, const bm_comm *comm,
                                 int workers, const char *topology,
                                 bm_grid *out);

/* This rank's slice. Its x is scratch memory between a gather and a scatter. */
bm_slice bm_sum_slice(const bm_sum *sum);

/* Memory for the next worker's vector, n floats. A vector that is written there
 * is not copied by bm_sum_add. */
float *bm_sum_room(bm_sum *sum);

/* How many such vectors are contiguous, starting with the first worker's. */
size_t bm_sum_rooms(const bm_sum *sum);

/* Adds the vector x [n] of the next worker hosted here; x may be reused after
 * it. The weight is a whole number, the count of samples for example. */
void bm_sum_add(bm_sum *sum, int worker, const float *x, double weight);

/* A chunk of this rank's slice, or the rest of the last chunk. */
typedef struct bm_sum_piece {
    size_t offset, n;    /* elements [offset, offset + n) of the vector */
    const float *mean;   /* [n] the mean over workers */
    const float *before; /* [n] the common vector */
    float *after;        /* [n] to write: its new values */
} bm_sum_piece;

typedef void bm_sum_work(void *self, const bm_sum_piece *p);

/* Collective, after all workers were added. Sets *weight to the sum of all
 * weights. If it is 0, nothing is changed; otherwise all ranks see the new
 * common vector. Fails with BM_ERR_COMM. */
BM_CHECKED bm_status bm_sum_update(bm_sum *sum, bm_sum_work *work, void *self,
                                   double *weight);

/* The common vector, n floats, zeros at first; owned by the sum. A rank may
 * write its slice until it calls bm_sum_allgather, which is collective and
 * makes every slice visible to all ranks. Fails with BM_ERR_COMM. */
float *bm_sum_common(const bm_sum *sum);
BM_CHECKED bm_status bm_sum_allgather(bm_sum *sum);

/* Collective, after all workers were added. *out: this rank's slice of the
 * mean; zeros if no worker has weight. Fails with BM_ERR_COMM. */
BM_CHECKED bm_status bm_sum_scatter(bm_sum *sum, bm_slice *out);

/* Collective. x [n] = slice.x of all ranks. Fails with BM_ERR_COMM. */
BM_CHECKED bm_status bm_sum_gather(bm_sum *sum, float *x);

#endif
