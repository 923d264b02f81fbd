/*
 * piece.h - a row of a manifest on its way from the thread that reads it to the
 * one that takes all rows in order, perhaps on another rank.
 */
#ifndef BM_IO_IMPORT_PIECE_H
#define BM_IO_IMPORT_PIECE_H

#include "comm/comm.h"
#include "io/features/feature_chain.h"
#include "io/problem.h"
#include "io/shard/shard.h"

typedef struct bm_piece {
    size_t row;
    bm_status status;   /* of reading */
    char message[1000]; /* of a failure */
    bm_frames x;        /* as read in the first pass, else processed; owned */
    size_t n_read;      /* frames before they were processed */
    bm_waveform recording; /* if items have one; owned */
    bm_problem problem;
    const char *remark;             /* NULL: none */
    char kind[80], remark_text[80]; /* of a piece of another rank: those of
                                       `problem` and `remark` */
} bm_piece;

/* Free with bm_piece_free; NULL is a no-op. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_piece_new(bm_piece **out, size_t row);
void bm_piece_free(bm_piece *p);

/* Sends a piece to a rank, which receives it; the k-th one that is sent is the
 * k-th that is received. Return when the piece has arrived, and fail as
 * bm_comm_wait, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_piece_send(bm_comm *comm, const bm_piece *p, int to);
BM_CHECKED bm_status bm_piece_receive(bm_comm *comm, int from, bm_piece **out);

#endif
