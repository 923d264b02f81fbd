/*
 * checkpoint.h - everything needed to go on as if nothing had happened, in one
 * safetensors file. A run that is stopped and resumed, on any number of ranks,
 * ends with the same bits as one that is not.
 *
 * The last tensor is a checksum of all that stands before it. A file appears
 * under its name only when whole: written to a temporary name, fsync, rename,
 * fsync of the directory; only then is an older one removed.
 *
 * The state called "model" is stored as one tensor per segment,
 * "model.<segment>"; every other one flat, as "state.<name>". A vector has
 * params->n floats, unless it says otherwise, all of them finite.
 * docs/checkpoints.md has the whole file.
 */
#ifndef BM_IO_MODEL_CHECKPOINT_H
#define BM_IO_MODEL_CHECKPOINT_H

#include "comm/comm.h"
#include "compute/params.h"
#include "io/batch/plan.h"
#include "io/model/model_file.h"

enum { BM_CHECKPOINT_NUMBERS = 16 };

typedef struct bm_checkpoint {
    const bm_params *params; /* n and the segments, which, if there are any,
                                lie end to end from 0 to n; borrowed */
    const bm_state *states;  /* this rank's parts, n_states of them */
    size_t n_states;
    bm_position position;                  /* the block that comes next */
    double numbers[BM_CHECKPOINT_NUMBERS]; /* of schedule, counts and so on */
    const bm_text *texts; /* for __metadata__, ended by {0}; only saved */
    uint64_t manifest;    /* hash of the training data */
} bm_checkpoint;

/*
 * Collective. All parts travel to rank 0, which writes the file, holding no
 * more than a few megabytes of them at a time. *bytes, unless NULL: size of the
 * file, on rank 0. BM_ERR_IO: no room, a bad disk; BM_ERR_NUMERIC: a vector is
 * not finite; the older files are untouched, and all ranks are told the same.
 */
BM_CHECKED bm_status bm_checkpoint_save(const char *path, bm_comm *comm,
                                        const bm_checkpoint *c,
                                        uint64_t *bytes);

/*
 * Collective. Fills the vectors that c->states point to, by name, and the
 * position, numbers and manifest of `c`. BM_ERR_FORMAT if the file is damaged,
 * a vector is missing or has another length, or nobody asks for one that it
 * has; the caller then takes the next older file. Every rank reads for itself
 * and checks everything before any of them fills anything; all agree on the
 * result.
 */
BM_CHECKED bm_status bm_checkpoint_load(const char *path, bm_comm *comm,
                                        bm_checkpoint *c);

/* dir/block-00001234.safetensors */
void bm_checkpoint_path(const char *directory, int64_t blocks, char *out,
                        size_t room);
/* The numbers of all checkpoints of a directory, largest first, at most `room`;
 * returns how many. */
size_t bm_checkpoint_list(const char *directory, int64_t *blocks, size_t room);
/* Removes all but the `keep` newest, at least one, and what interrupted saves
 * left behind. What cannot be removed is told as a warning. */
void bm_checkpoint_prune(const char *directory, size_t keep);

#endif
