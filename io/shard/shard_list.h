/*
 * shard_list.h - the shards of a directory, and whether two of them belong
 * together.
 */
#ifndef BM_IO_SHARD_SHARD_LIST_H
#define BM_IO_SHARD_SHARD_LIST_H

#include "io/shard/shard.h"

/* The paths of all *.bmuf.h5 of a directory in the order of their names, or
 * `path` itself if it is a file. BM_ERR_MISSING if there is neither, or no
 * shard in the directory. */
BM_CHECKED bm_status bm_shard_list(const char *path, char ***paths, size_t *n);
void bm_shard_list_free(char **paths, size_t n);

/* What all shards of a data set share is compared in so many ways. */
enum { BM_SHARD_WAYS = 3 };

/* Whether they differ in one of these ways; `text` gets how, with both files'
 * names. */
bool bm_shard_compare(const bm_shard *a, const bm_shard *b, int way, char *text,
                      size_t room);

#endif
