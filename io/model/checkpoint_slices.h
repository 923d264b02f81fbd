/*
 * checkpoint_slices.h - which rank holds which elements of each state, in one
 * table that is the same on every rank.
 */
#ifndef BM_IO_MODEL_CHECKPOINT_SLICES_H
#define BM_IO_MODEL_CHECKPOINT_SLICES_H

#include "comm/comm.h"
#include "compute/params.h"

typedef struct bm_state_slice {
    char name[sizeof(((bm_state *)0)->name)];
    int rank;
    size_t index;         /* in that rank's list of states */
    size_t offset, count; /* elements [offset, offset + count) of the state */
    size_t whole;         /* elements of the state */
} bm_state_slice;

/* Sorted by name, "model" first, then by rank: the rows of a state are
 * consecutive. */
typedef struct bm_state_slices {
    bm_state_slice *rows;
    size_t n;
} bm_state_slices;

/* Collective. Gathers the table; free with bm_state_slices_free. n: elements of
 * a state whose `whole` is 0. Fails on all ranks, with BM_ERR_ARG if the slices
 * of a name do not cover one vector, BM_ERR_COMM or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_state_slices_gather(bm_state_slices *out, bm_comm *comm,
                                            const bm_state *states,
                                            size_t n_states, size_t n);
void bm_state_slices_free(bm_state_slices *p);

/* One past the last row of the state whose first row is `first`. */
size_t bm_state_slices_end(const bm_state_slices *p, size_t first);

/* The first row that has element `at` of the state whose first row is `first`;
 * NULL if no row has it. */
const bm_state_slice *bm_state_slices_at(const bm_state_slices *p, size_t first,
                                         size_t at);

#endif
