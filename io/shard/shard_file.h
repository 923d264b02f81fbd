/*
 * shard_file.h - a shard in memory, and how it becomes a file.
 */
#ifndef BM_IO_SHARD_SHARD_FILE_H
#define BM_IO_SHARD_SHARD_FILE_H

#include "io/shard/shard_parts.h"

/* Bytes that grow at their end. */
typedef struct bm_bytes {
    char *data;
    size_t n, room;
} bm_bytes;

typedef struct bm_shard_contents {
    bm_store store;
    bm_shard_meta meta;  /* vocabulary borrowed */
    bm_bytes inputs;     /* as stored: [F, D] */
    bm_bytes labels;     /* int32 [sum] */
    bm_bytes lengths;    /* int32 [N, 2] */
    bm_bytes min_frames; /* int32 [N] */
    bm_bytes tags;       /* end to end, each with its '\0' */
    bm_bytes speaker;    /* int32 [N] */
    bm_bytes speakers;   /* char * [P], owned */
    bm_bytes moments;    /* double [P, 1 + 2 D]: count, sums, squares */
    bm_bytes units;      /* uint64 [B, BM_UNIT_COLUMNS] */
    bm_bytes crc;        /* uint32 [B, 2] */
} bm_shard_contents;

/* Writes to a temporary name, reads it back from the disk, renames. Nothing is
 * left behind by a failure. */
BM_CHECKED bm_status bm_shard_contents_write(const bm_shard_contents *c,
                                             const char *path, size_t index);

/* Ready for the next shard; frees the memory as well if `all`. */
void bm_shard_contents_empty(bm_shard_contents *c, bool all);

#endif
