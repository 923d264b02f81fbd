/*
 * checkpoint.h - the state of a run in one safetensors file. A run that is
 * stopped and resumed, on any number of ranks, ends with the same bits as an
 * uninterrupted one.
 *
 * The last tensor is a checksum of everything before it. A file gets its name
 * only when it is complete: write to a temporary name, fsync, rename, fsync of
 * the directory.
 *
 * The state "model" is stored as one tensor per segment, "model.<segment>";
 * every other state flat, as "state.<name>". A state has params->n floats
 * unless its `whole` is set; all must be finite. docs/jobs/checkpoints.md has the
 * format.
 */
#ifndef BM_IO_MODEL_CHECKPOINT_H
#define BM_IO_MODEL_CHECKPOINT_H

#include "comm/comm.h"
#include "compute/params.h"
#include "io/batch/plan.h"
#include "io/model/model_file.h"

enum {
    BM_CHECKPOINT_NUMBERS = 16,
    BM_CHECKPOINT_PATHS = 4 /* files that one save writes, at most */
};

typedef struct bm_checkpoint {
    const bm_params *params; /* n, and segments that cover 0 .. n in order, or
                                none; borrowed */
    const bm_state *states;  /* [n_states]: the slices of this rank; borrowed */
    size_t n_states;
    bm_position position;                  /* the next block */
    double numbers[BM_CHECKPOINT_NUMBERS]; /* the caller's: schedule, counts */
    const bm_text *texts; /* for __metadata__, ends with {0}, may be NULL;
                             ignored by bm_checkpoint_load; borrowed */
    uint64_t manifest;    /* hash of the training data */
} bm_checkpoint;

/* What a save has written. */
typedef struct bm_saved {
    uint64_t bytes;  /* of a file */
    double verify_s; /* reading the files back */
    int which;       /* index of the first path that has the file */
    int lost;        /* paths that could not be written, though one could */
    char why[1024];  /* the message of the first of them */
} bm_saved;

/*
 * Collective. All ranks send their slices to rank 0, which writes the same file
 * to every path, reads it back, and holds a few megabytes at a time. paths: at
 * most BM_CHECKPOINT_PATHS of them, ending with NULL; one must succeed. Equal
 * fields of *c on all ranks, except states. *out, unless NULL: set on rank 0.
 *
 * Fails on all ranks with the same code: BM_ERR_CREATE or BM_ERR_IO for a full
 * or broken disk, BM_ERR_NUMERIC if a state is not finite, BM_ERR_ARG if the
 * slices of a state do not cover it, BM_ERR_COMM, BM_ERR_MEMORY. An older file
 * then stays.
 */
BM_CHECKED bm_status bm_checkpoint_save(const char *const *paths, bm_comm *comm,
                                        const bm_checkpoint *c, bm_saved *out);

/* A list of one path, for bm_checkpoint_save. */
#define BM_ONE_PATH(path) ((const char *const[]){(path), NULL})

/* For a status of writing a file: whether it can succeed later, when there is
 * space, or on another disk. */
bool bm_disk_failed(bm_status status);

/*
 * Collective. Reads the states that c->states name, and position, numbers and
 * manifest of `c`. Every rank reads the file and checks all of it before any
 * rank writes to its states.
 *
 * Fails on all ranks with the same code: BM_ERR_MISSING, or BM_ERR_FORMAT if
 * the file is damaged, a state is missing or has another length, or the file
 * has a state that no rank asks for. The states are then unchanged, and the
 * caller can try the next older file.
 */
BM_CHECKED bm_status bm_checkpoint_load(const char *path, bm_comm *comm,
                                        bm_checkpoint *c);

/* Reads the numbers of an open checkpoint; `path` is for the message. Fails with
 * BM_ERR_FORMAT or BM_ERR_IO. */
BM_CHECKED bm_status bm_checkpoint_numbers(
    bm_st_file *f, const char *path, double numbers[BM_CHECKPOINT_NUMBERS]);

/* Fills a state, other than "model", from an open checkpoint of any run, if that
 * has it with as many elements: *taken. n: elements if s->whole is 0. Each rank
 * by itself. Fails with BM_ERR_FORMAT, BM_ERR_IO or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_checkpoint_take(bm_st_file *f, const bm_state *s,
                                        size_t n, bool *taken);

/* out: "<directory>/block-00001234.safetensors", cut to `room` bytes. */
void bm_checkpoint_path(const char *directory, int64_t blocks, char *out,
                        size_t room);
/* blocks [room]: the numbers of the newest checkpoints of a directory, largest
 * first; *n: how many. A directory that does not exist has none. Fails with
 * BM_ERR_MISSING if it may not be read or is none, with BM_ERR_IO if its disk
 * fails. */
BM_CHECKED bm_status bm_checkpoint_list(const char *directory, int64_t *blocks,
                                        size_t room, size_t *n);
/* Which checkpoints stay. */
typedef struct bm_retention {
    int64_t last;          /* the block just written; later ones stay, as they
                              were skipped when the run was resumed */
    size_t newest;         /* number of the newest ones up to `last`, which is
                              one of them */
    const int64_t *blocks; /* [n]: and these, in any order; borrowed */
    size_t n;
} bm_retention;

/* Removes all other checkpoints, and temporary files of interrupted saves. A
 * file that cannot be removed is logged as a warning; a directory that cannot
 * be read is left as it is. */
void bm_checkpoint_prune(const char *directory, const bm_retention *stay);

#endif
