/*
 * guests.h - the workers that a rank hosts for a strategy of unit BM_EVENT:
 * each has a model of its own, and what it pushes to the server next (terms.h).
 * params->w is the server's model W, but while one of them learns.
 */
#ifndef BM_BMUF_GUESTS_H
#define BM_BMUF_GUESTS_H

#include "bmuf/momenta.h"
#include "bmuf/trainer.h"

/* Mini-batches of a share: [from, to). */
typedef struct bm_period {
    int64_t from, to;
} bm_period;

typedef struct bm_guest {
    float *w, *push;  /* [n] on the backend: its model, and what it pushes */
    double samples;   /* in that */
    double seen;      /* samples of the block so far */
    double bad_steps; /* of the block that changed nothing */
    double seconds;   /* of learning in the block */
    double steps;     /* mini-batches in these */
} bm_guest;

typedef struct bm_guests bm_guests;

/* Reads [sgd]. All is borrowed, and what the task points to. Workers first ..
 * last - 1. */
BM_CHECKED bm_status bm_guests_open(bm_guests **out, const bm_config *config,
                                    bm_strategy *strategy, bm_momenta *momenta,
                                    const bm_task *task, int first, int last);
void bm_guests_close(bm_guests *g);

bm_guest *bm_guests_of(const bm_guests *g, int worker);

/* A block begins: their models are W, unless they keep their own. */
void bm_guests_begin(bm_guests *g);

/* The worker's model becomes W. Queued. */
void bm_guests_fetch(bm_guests *g, int worker);

/*
 * It learns from a period, and has something to push then. `moves`: its model
 * lives on after that. W is in another place meanwhile: learn between
 * bm_guests_lend and bm_guests_return.
 */
BM_CHECKED bm_status bm_guests_learn(bm_guests *g, int worker, bm_period at,
                                     float rate, bool moves);
void bm_guests_lend(bm_guests *g);
void bm_guests_return(bm_guests *g);

/* push <- alpha (w - W). Queued; and the worker's part: w <- w - push. */
void bm_guests_stretch(bm_guests *g, int worker);
void bm_guests_yield(bm_guests *g, int worker);

/* The block has ended: counts steps that workers' own updates refused. */
BM_CHECKED bm_status bm_guests_end(bm_guests *g);

/* The models that are kept: at most one for each hosted here. */
size_t bm_guests_state(bm_guests *g, bm_state *out);

#endif
