/*
 * resume.h - the shards of a packing that was stopped, for one that goes on
 * after them.
 */
#ifndef BM_CLI_PACK_RESUME_H
#define BM_CLI_PACK_RESUME_H

#include "io/shard/shard.h"

/* What is there. Starts as {0}; free with bm_packed_free. */
typedef struct bm_packed {
    char **tags; /* [n] of all sequences, in order */
    size_t n, room, frames, labels, shards;
    bm_shard_place place; /* of the next shard */
    bool complete;        /* the last shard of the set is there */
} bm_packed;

/*
 * Reads the shards NAME-00000 .. of a directory, which must be like those of a
 * writer with these settings. Unless the set is complete, the last one does not
 * count: it is to be written again, since what follows it may all be left out.
 * Fails with BM_ERR_CREATE if they belong to other settings, and as opening a
 * shard does.
 */
BM_CHECKED bm_status bm_packed_read(bm_packed *p, const char *directory,
                                    const char *name, const char *store,
                                    const bm_shard_meta *meta);
void bm_packed_free(bm_packed *p);

#endif
