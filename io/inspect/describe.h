/*
 * describe.h - a summary of a data set or a shard.
 */
#ifndef BM_IO_INSPECT_DESCRIBE_H
#define BM_IO_INSPECT_DESCRIBE_H

#include "core/status.h"

#include <stdbool.h>
#include <stdio.h>

/* Writes sizes, lengths, classes and how the features were made to `out`, as
 * text or as one JSON object. path: a directory of shards, or a shard. Fails as
 * bm_dataset_open does, and with BM_ERR_IO if `out` cannot be written. */
BM_CHECKED bm_status bm_describe_data(const char *path, bool json, FILE *out);

#endif
