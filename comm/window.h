/*
 * window.h - memory that the ranks of one host share: each rank has a part, and
 * what is in it the others of its host read in place, where it would be sent
 * otherwise. Who may read what, and when, is the caller's to say, by
 * bm_comm_barrier.
 *
 * Where memory cannot be shared, on any host, nobody shares it: each rank has
 * its part to itself, and the log says so once.
 */
#ifndef BM_COMM_WINDOW_H
#define BM_COMM_WINDOW_H

#include "comm/comm.h"

#include <stdbool.h>

typedef struct bm_window bm_window;

/* Collective. `size` bytes for this rank, zeroed; not the same for all ranks.
 * The comm is borrowed. */
BM_CHECKED bm_status bm_window_open(bm_window **out, bm_comm *comm,
                                    size_t size);
void bm_window_close(bm_window *w);

/* A rank's part; NULL: it is out of reach, its owner has to send. */
void *bm_window_segment(const bm_window *w, int rank);

/* Does any rank reach into another's part? */
bool bm_window_shared(const bm_window *w);

#endif
