/*
 * describe.h - what is in a data set or a shard, for people and for programs.
 */
#ifndef BM_IO_INSPECT_DESCRIBE_H
#define BM_IO_INSPECT_DESCRIBE_H

#include "core/status.h"

#include <stdbool.h>
#include <stdio.h>

/* `path` is a directory of shards or one of them. Sizes, lengths, classes and
 * how features were made, as text or as one JSON object. */
BM_CHECKED bm_status bm_describe_data(const char *path, bool json, FILE *out);

#endif
