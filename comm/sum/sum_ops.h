/* sum_ops.h - what a mode of the ordered sum provides. Only comm/sum includes
 * this. */
#ifndef BM_COMM_SUM_SUM_OPS_H
#define BM_COMM_SUM_SUM_OPS_H

#include "comm/grid.h"
#include "comm/shared_memory.h"
#include "comm/sum/sum.h"
#include "comm/sum/sum_loops.h"

typedef struct bm_sum_ops bm_sum_ops;

/* A sum as its formulas know it, without vectors. */
typedef struct bm_sum_shape {
    const bm_sum_ops *ops;
    const bm_comm *comm; /* NULL: all ranks are on one host */
    size_t n;
    int workers, size;
    const char *coordinator, *topology;
    const size_t *start; /* [size + 1]: slices, unless the mode cuts others */
} bm_sum_shape;

struct bm_sum_ops {
    const char *name; /* [job] sum = <name> */
    bm_sum_traits traits;
    /* Collective. Sets s->self; may cut other slices (s->start). */
    bm_status (*open)(bm_sum *s);
    void (*close)(bm_sum *s); /* s->self may be half open, or NULL */
    /* The mode's memory for the next worker's vector, and how many such vectors
     * are contiguous. NULL: the mode has none. */
    float *(*room)(bm_sum *s);
    size_t (*rooms)(const bm_sum *s);
    /* Adds x [n] of a worker; x may be in its room. */
    void (*add)(bm_sum *s, int worker, const float *x, double weight);
    /* Collective. Transfers what this rank's slice of the mean needs. s->weight
     * and s->total are those of all workers. Ends the adding. */
    bm_status (*scatter)(bm_sum *s);
    /* out = elements [at, at + n) of this rank's slice of the mean: a chunk, or
     * the rest of the last one. */
    void (*mean)(bm_sum *s, size_t at, size_t n, float *out);
    /* Collective. x holds this rank's slice, and gets the others; it is the
     * common vector, or memory of this rank alone. NULL: every owner sends its
     * slice to all others. */
    bm_status (*gather)(bm_sum *s, float *x);
    /* bytes[size]: what each rank transfers in scatter and gather. */
    bm_status (*sent)(const bm_sum_shape *s, double *bytes);
    /* For modes of BM_SUM_GRID_OPS: the grids of workers, and of ranks for the
     * gather if there are fewer ranks than workers; the latter must fold no
     * member. */
    bm_status (*grids)(const bm_sum_shape *s, bm_grid *workers, bm_grid *ranks);
    /* Likewise: the rings of all dimensions run at the same time, each with
     * another part of the slices. */
    bool pipelined;
};

struct bm_sum {
    const bm_sum_ops *ops;
    bm_comm *comm; /* borrowed */
    int rank, size;
    size_t n;
    int workers;
    const char *coordinator, *topology; /* borrowed, while opening */
    int next;                           /* the worker to add next */
    double *weight; /* [workers]: of those hosted here; in scatter: of all */
    double total;   /* of all weights, from the last scatter on */
    size_t *start;  /* [size + 1]: rank r owns [start[r], start[r + 1]) */
    float *mean;    /* this rank's slice; as long as the largest */
    float *room;    /* [n], if the mode has no room */
    bm_shared_memory *shared;
    float *common; /* [n]: in shared memory, or this rank's own */
    float *own;
    const bm_sum_loops *loops;
    void *self; /* the mode's own state */
};

static inline size_t bm_sum_count(const bm_sum *s, int rank)
{
    return s->start[rank + 1] - s->start[rank];
}

/* True if this rank and `rank` have the same common vector in memory. */
bool bm_sum_shares_common(const bm_sum *s, int rank);

/* y, a mean of weight wy, becomes the mean of y and x, which has weight wx. */
void bm_sum_blend(const bm_sum *s, float *y, double wy, const float *x,
                  double wx, size_t n);

/* Sums along a grid of workers (sum_grid.c): all members of bm_sum_ops but the
 * name and `grids`. */
bm_status bm_sum_grid_open(bm_sum *s);
void bm_sum_grid_close(bm_sum *s);
float *bm_sum_grid_room(bm_sum *s);
size_t bm_sum_grid_rooms(const bm_sum *s);
void bm_sum_grid_add(bm_sum *s, int worker, const float *x, double weight);
bm_status bm_sum_grid_scatter(bm_sum *s);
void bm_sum_grid_mean(bm_sum *s, size_t at, size_t n, float *out);
bm_status bm_sum_grid_gather(bm_sum *s, float *x);
bm_status bm_sum_grid_sent(const bm_sum_shape *s, double *bytes);
double bm_sum_grid_vectors(double hosted);

#define BM_SUM_GRID_OPS                                                        \
    .traits = {.vectors = bm_sum_grid_vectors}, .open = bm_sum_grid_open,      \
    .close = bm_sum_grid_close, .room = bm_sum_grid_room,                      \
    .rooms = bm_sum_grid_rooms, .add = bm_sum_grid_add,                        \
    .scatter = bm_sum_grid_scatter, .mean = bm_sum_grid_mean,                  \
    .gather = bm_sum_grid_gather, .sent = bm_sum_grid_sent

#define X(name) extern const bm_sum_ops bm_sum_##name;
BM_SUMS(X)
#undef X

#endif
