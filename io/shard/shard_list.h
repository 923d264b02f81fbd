/*
 * shard_list.h - the shards of a directory, and whether two of them can be used
 * together.
 */
#ifndef BM_IO_SHARD_SHARD_LIST_H
#define BM_IO_SHARD_SHARD_LIST_H

#include "io/shard/shard.h"

/* The paths of all *.bmuf.h5 of a directory, sorted by name, or `path` itself
 * if it is a file. Fails with BM_ERR_MISSING if there is no shard. Free with
 * bm_shard_list_free. */
BM_CHECKED bm_status bm_shard_list(const char *path, char ***paths, size_t *n);
void bm_shard_list_free(char **paths, size_t n);

/* Features per frame, vocabulary, kind of labels: properties that all shards of
 * a data set must have in common. */
enum { BM_SHARD_PROPERTIES = 3 };

/* True if they differ in this property, in [0, BM_SHARD_PROPERTIES). `text`
 * then gets a message with both paths. */
bool bm_shard_compare(const bm_shard *a, const bm_shard *b, int property,
                      char *text, size_t room);

#endif
