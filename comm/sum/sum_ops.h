/* sum_ops.h - what a mode of the ordered sum implements. Only comm/ includes
 * this. */
#ifndef BM_COMM_SUM_SUM_OPS_H
#define BM_COMM_SUM_SUM_OPS_H

#include "comm/grid.h"
#include "comm/sum/sum.h"
#include "comm/sum/sum_loops.h"
#include "comm/window.h"

/* A sum as its formulas know it. */
typedef struct bm_sum_shape {
    size_t n;
    int workers, size;
    const char *coordinator, *topology;
    const size_t *start; /* [size + 1]: of modes that cut no other slices */
} bm_sum_shape;

typedef struct bm_sum_ops {
    const char *name;             /* [job] sum = <name> */
    bm_status (*open)(bm_sum *s); /* may cut other slices: s->start */
    void (*close)(bm_sum *s);     /* s->self may be half open, or NULL */
    /* Memory of the mode for the next worker's vector. NULL: it has none. */
    float *(*room)(bm_sum *s);
    size_t (*rooms)(const bm_sum *s); /* see sum.h; NULL: 1 */
    void (*add)(bm_sum *s, int worker, const float *x, double weight);
    /* Brings what this rank's slice of the mean is made of. s->weight and
     * s->total are everybody's. Nothing is added any more then. */
    bm_status (*scatter)(bm_sum *s);
    /* Elements [at, at + n) of that slice: a chunk, or the last one's rest. */
    void (*mean)(bm_sum *s, size_t at, size_t n, float *out);
    /* x holds this rank's part already. NULL: every owner broadcasts. */
    bm_status (*gather)(bm_sum *s, float *x);
    /* What each rank brings to others, scatter and gather together. */
    bm_status (*sent)(const bm_sum_shape *s, double *bytes);
} bm_sum_ops;

struct bm_sum {
    const bm_sum_ops *ops;
    bm_comm *comm; /* borrowed */
    int rank, size;
    size_t n;
    int workers;
    const char *coordinator, *topology; /* borrowed, while it is opened */
    int next;                           /* the worker to be added next */
    double *weight; /* [workers]: those added here; in scatter: everybody's */
    double total;   /* of all weights, from the last scatter on */
    size_t *start;  /* [size + 1]: rank r owns [start[r], start[r + 1]) */
    float *mean;    /* this rank's slice, with room for anybody's */
    float *room;    /* [n], if the mode has none for a worker's vector */
    bm_window *window;
    float *common; /* [n]: in the window, or this rank's own */
    float *own;
    const bm_sum_loops *loops;
    void *self; /* the mode's own state */
};

static inline size_t bm_sum_count(const bm_sum *s, int rank)
{
    return s->start[rank + 1] - s->start[rank];
}

/* y, the mean of weight wy, and x, the mean of weight wx, become one in y. */
void bm_sum_blend(const bm_sum *s, float *y, double wy, const float *x,
                  double wx, size_t n);

/*
 * For modes that add up along a grid of workers, see sum_grid.c. `ranks`, for
 * the gather where N is not P, folds no member.
 */
bm_status bm_sum_grid_open(bm_sum *s, const bm_grid *workers,
                           const bm_grid *ranks);
void bm_sum_grid_close(bm_sum *s);
float *bm_sum_grid_room(bm_sum *s);
size_t bm_sum_grid_rooms(const bm_sum *s);
void bm_sum_grid_add(bm_sum *s, int worker, const float *x, double weight);
bm_status bm_sum_grid_scatter(bm_sum *s);
void bm_sum_grid_mean(bm_sum *s, size_t at, size_t n, float *out);
bm_status bm_sum_grid_gather(bm_sum *s, float *x);
bm_status bm_sum_grid_sent(const bm_sum_shape *s, const bm_grid *workers,
                           const bm_grid *ranks, double *bytes);

/* Their members of bm_sum_ops, all but three. */
#define BM_SUM_GRID_OPS                                                        \
    .close = bm_sum_grid_close, .room = bm_sum_grid_room,                      \
    .rooms = bm_sum_grid_rooms, .add = bm_sum_grid_add,                        \
    .scatter = bm_sum_grid_scatter, .mean = bm_sum_grid_mean,                  \
    .gather = bm_sum_grid_gather

#define X(name) extern const bm_sum_ops bm_sum_##name;
BM_SUMS(X)
#undef X

#endif
