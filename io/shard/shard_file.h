/*
 * shard_file.h - a shard in memory, and writing it to a file.
 */
#ifndef BM_IO_SHARD_SHARD_FILE_H
#define BM_IO_SHARD_SHARD_FILE_H

#include "io/shard/shard_parts.h"

/* An array of bytes that grows. */
typedef struct bm_bytes {
    char *data;
    size_t n, room;
} bm_bytes;

typedef struct bm_shard_contents {
    bm_store store;
    bm_shard_meta meta;          /* vocabulary borrowed */
    bm_bytes inputs;             /* as stored: [F, D] */
    bm_bytes labels;             /* int32 [sum] */
    bm_bytes lengths;            /* int32 [N, 2] */
    bm_bytes min_frames;         /* int32 [N] */
    bm_bytes reference;          /* uint8 [N]: is there one? */
    bm_bytes tags;               /* end to end, each with its '\0' */
    bm_bytes speaker;            /* int32 [N] */
    bm_bytes speakers;           /* char * [P], owned */
    bm_bytes moments;            /* double [P, 1 + 2 D]: count, sums, squares */
    bm_bytes units;              /* uint64 [B, BM_UNIT_COLUMNS] */
    bm_bytes crc;                /* uint32 [B, 2] */
    bm_bytes samples;            /* int16 [S]; empty without meta.sample_rate */
    bm_bytes sample_ends;        /* uint64 [N]: samples up to the end of each */
    bm_bytes sample_crc;         /* uint32 [N] */
    bm_bytes sample_moments;     /* double [N, meta.moments] */
    bm_bytes sample_moments_crc; /* uint32 [N] */
} bm_shard_contents;

/* Writes a temporary file, reads it back from the disk as a check, and renames
 * it to `path`. *hash: its bm_shard_hash. Fails with BM_ERR_CREATE, BM_ERR_IO
 * or BM_ERR_MEMORY, and then removes the file. */
BM_CHECKED bm_status bm_shard_contents_write(const bm_shard_contents *c,
                                             const char *path,
                                             const bm_shard_place *place,
                                             uint64_t *hash);

/* Empties all arrays for the next shard; `all`: frees them as well. */
void bm_shard_contents_empty(bm_shard_contents *c, bool all);

#endif
