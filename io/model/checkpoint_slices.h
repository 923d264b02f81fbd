/*
 * checkpoint_slices.h - who holds what: the parts of all vectors on all ranks,
 * in one table that is the same on every rank, so that saving and loading need
 * no further questions.
 */
#ifndef BM_IO_MODEL_CHECKPOINT_SLICES_H
#define BM_IO_MODEL_CHECKPOINT_SLICES_H

#include "comm/comm.h"
#include "compute/params.h"

typedef struct bm_state_slice {
    char name[sizeof(((bm_state *)0)->name)];
    int rank;
    size_t index; /* in that rank's list of states */
    size_t offset, count;
    size_t whole; /* elements of the vector */
} bm_state_slice;

/* By name, "model" first, and rank: the rows of one vector stand together. */
typedef struct bm_state_slices {
    bm_state_slice *rows;
    size_t n;
} bm_state_slices;

/* Collective. Fails on all ranks if the parts of a name are not the whole of
 * one vector, of n elements unless its states say otherwise. */
BM_CHECKED bm_status bm_state_slices_gather(bm_state_slices *out, bm_comm *comm,
                                            const bm_state *states,
                                            size_t n_states, size_t n);
void bm_state_slices_free(bm_state_slices *p);

/* One past the last row of the vector whose first row is `first`. */
size_t bm_state_slices_end(const bm_state_slices *p, size_t first);

/* The first row with element `at`, of the vector whose first row is `first`;
 * NULL if there is none. */
const bm_state_slice *bm_state_slices_at(const bm_state_slices *p, size_t first,
                                         size_t at);

#endif
