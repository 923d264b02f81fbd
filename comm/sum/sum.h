/*
 * sum.h - the ordered sum: the weighted mean of one vector per worker.
 *
 *     for each worker k hosted here, in increasing order
 *         bm_sum_add(sum, k, x, weight)
 *     bm_sum_update(sum, work, self, &total)
 *
 * The mean is cut into slices, one for each rank. The rank's coordinator calls
 * `work` with its slice, piece after piece while they are in the processor's
 * caches, to make what follows from the mean in the vector that all ranks have
 * in common, bm_sum_common. Ranks of one host share that vector, and read each
 * other's parts of the sum in place; what is on other hosts is sent.
 *
 *     bm_sum_scatter(sum, &slice)       slice.x: this rank's part of the mean
 *     bm_sum_gather(sum, x)             x: all parts, the same on all ranks
 *
 * are the two halves of that, for a vector that no other rank shares.
 *
 *     tree    balanced binary tree over worker numbers
 *     exact   integers with a shared exponent: any order gives the same bits
 *     mpi     the library's allreduce, in the library's order
 *     ring    reduce-scatter and gather round a ring (Baidu 2017)
 *     halving recursive halving and doubling (Rabenseifner)
 *     hier    rings along the dimensions of a grid (IBM DDL 2017)
 *
 * N workers are hosted by P ranks, 1 <= P <= N, in contiguous ranges. The bits
 * of the mean depend on the workers' vectors and weights alone, not on P; only
 * in mpi mode they depend on P as well.
 *
 * The vector is cut into one slice per rank, at multiples of BM_SUM_CHUNK. With
 * coordinator "root" all of it is rank 0's slice: the same calls are then the
 * paper's one coordinator, and the parameter server. (Round a ring it is a
 * chain then, and the order of the sum another one.)
 *
 * A worker of weight zero takes no part in the mean; the mean of one worker is
 * its vector, bit for bit (exact mode: see sum_exact.c).
 *
 * To add a mode: write comm/sum_<name>.c, then add its line to BM_SUMS.
 */
#ifndef BM_COMM_SUM_SUM_H
#define BM_COMM_SUM_SUM_H

#include "comm/comm.h"
#include "comm/slices.h"

#define BM_SUMS(X) X(tree) X(exact) X(mpi) X(ring) X(halving) X(hier)

typedef struct bm_sum bm_sum;

/*
 * Collective. Sums of n floats over `workers` workers. `mode` is a name from
 * BM_SUMS, `coordinator` is "sharded" or "root", `topology` is hier's: "4x8",
 * or "auto" (NULL in short), where the hosts decide. The comm is borrowed.
 */
BM_CHECKED bm_status bm_sum_open(bm_sum **out, bm_comm *comm, size_t n,
                                 int workers, const char *mode,
                                 const char *coordinator, const char *topology);
void bm_sum_close(bm_sum *sum);

/*
 * What each of `size` ranks brings to others in an exchange, an update or both
 * halves: bytes[size], sent and shared as bm_traffic counts them. Ranks are on
 * one host, where that matters (hier's "auto"). All else as at bm_sum_open.
 */
BM_CHECKED bm_status bm_sum_bytes(double *bytes, int size, size_t n,
                                  int workers, const char *mode,
                                  const char *coordinator,
                                  const char *topology);

/* This rank's slice; x is its scratch memory between a gather and a scatter. */
bm_slice bm_sum_slice(const bm_sum *sum);

/* n floats: the vector of the next worker, if written there, need not be copied
 * when it is added. */
float *bm_sum_room(bm_sum *sum);

/* How many such vectors lie one behind the other from the first worker's on. */
size_t bm_sum_rooms(const bm_sum *sum);

/*
 * Takes in the vector of the next worker hosted here: n floats on the host,
 * not needed any more on return. The weight is a count, of samples say.
 */
void bm_sum_add(bm_sum *sum, int worker, const float *x, double weight);

/* A piece of the mean, and of what is made of it: a chunk, or the rest of the
 * last one. */
typedef struct bm_piece {
    size_t offset, n;    /* elements [offset, offset + n) of the vector */
    const float *mean;   /* of these, */
    const float *before; /* the common vector's, */
    float *after;        /* and what it gets instead */
} bm_piece;

typedef void bm_sum_work(void *self, const bm_piece *p);

/* Collective, after all workers were added. *weight is that of all of them; if
 * it is 0, nothing is changed. Otherwise all ranks see the new common vector on
 * return. */
BM_CHECKED bm_status bm_sum_update(bm_sum *sum, bm_sum_work *work, void *self,
                                   double *weight);

/*
 * The same for vectors that come from somewhere piece by piece, and are needed
 * there again: copies of one piece and the sum of another can be under way at a
 * time. Pieces are rounds, each a part of every slice, in whole chunks:
 *
 *     bm_sum_add_late(sum, k, weight)     instead of bm_sum_add: the vector is
 *                                         still to come into bm_sum_room's
 *     for each round: bm_sum_come(sum, round)      its parts are there
 *
 * before the next worker is added, a scatter or an update; or in an update with
 * a flow, which calls for round after round:
 *
 *     flow->bring(self, round)    when it needs the parts: they are there when
 *                                 this returns; and whether or not one was late
 *     flow->take(self, offset, n) when these elements of the common vector are
 *                                 new, and stay so until the next update
 *
 * The bits are those of an update without; modes other than tree, and what is
 * on other hosts, take and bring all at once.
 */
typedef struct bm_sum_flow {
    void (*bring)(void *self, size_t round);
    void (*take)(void *self, size_t offset, size_t n);
    void *self;
} bm_sum_flow;

size_t bm_sum_rounds(const bm_sum *sum);
/* A round's part of a rank's slice: elements [*offset, *offset + *n). */
void bm_sum_part(const bm_sum *sum, size_t round, int rank, size_t *offset,
                 size_t *n);
void bm_sum_add_late(bm_sum *sum, int worker, double weight);
void bm_sum_come(bm_sum *sum, size_t round);
BM_CHECKED bm_status bm_sum_update_in_rounds(bm_sum *sum, bm_sum_work *work,
                                             void *self,
                                             const bm_sum_flow *flow,
                                             double *weight);

/* Only tests have reason to change it: elements of all parts of a round. */
void bm_sum_limit(bm_sum *sum, size_t n);

/* What the ranks have in common: n floats, zeros at first. Each rank may write
 * its slice until it calls bm_sum_share, after which all see all of it. */
float *bm_sum_common(const bm_sum *sum);
BM_CHECKED bm_status bm_sum_share(bm_sum *sum);

/* Collective, after all workers were added. Zeros if no worker has weight. */
BM_CHECKED bm_status bm_sum_scatter(bm_sum *sum, bm_slice *out);

/* Collective. Puts every rank's slice.x at its place in x, n floats. */
BM_CHECKED bm_status bm_sum_gather(bm_sum *sum, float *x);

#endif
