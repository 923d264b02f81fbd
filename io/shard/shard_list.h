/*
 * shard_list.h - the shards of a directory, whether two of them can be used
 * together, and whether all are there.
 */
#ifndef BM_IO_SHARD_SHARD_LIST_H
#define BM_IO_SHARD_SHARD_LIST_H

#include "io/shard/shard_parts.h"

/* The paths of all *.bmuf.h5 of a directory, sorted by name, or `path` itself
 * if it is a file. Fails with BM_ERR_MISSING if there is no shard. Free with
 * bm_shard_list_free. */
BM_CHECKED bm_status bm_shard_list(const char *path, char ***paths, size_t *n);
void bm_shard_list_free(char **paths, size_t n);

/* Features per frame, vocabulary, kind of labels, settings of features:
 * properties that all shards of a data set must have in common. */
enum { BM_SHARD_PROPERTIES = 4 };

/* True if they differ in this property, in [0, BM_SHARD_PROPERTIES). `text`
 * then gets a message with both paths. */
bool bm_shard_compare(const bm_shard *a, const bm_shard *b, int property,
                      char *text, size_t room);

/* A shard of a directory. */
typedef struct bm_shard_member {
    const char *path;
    bool readable;        /* what follows is known */
    bm_shard_place place; /* in its data set */
    uint64_t sequences, hash;
} bm_shard_member;

/*
 * Reports shards that are missing and shards of another packing, one line each,
 * to `report`. members [n]: sorted by path; a directory may have data sets of
 * several names. *unknown: some shards are older than the count, so that
 * missing ones after them were not noticed.
 */
void bm_shard_complete(const bm_shard_member *members, size_t n,
                       void (*report)(void *self, const char *text), void *self,
                       bool *unknown);

#endif
