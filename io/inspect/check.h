/*
 * check.h - finds all problems of a data set in one pass.
 */
#ifndef BM_IO_INSPECT_CHECK_H
#define BM_IO_INSPECT_CHECK_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Called now and then: `done` of all `bytes` in the shards were read. */
typedef void bm_check_watch(uint64_t done, uint64_t bytes);

/*
 * Reads all shards of a directory, each in a child process, and writes one line
 * to `out` for each problem, then the number of each kind, and a summary.
 * Problems are:
 *
 *     shards that cannot be read or do not match the others, that are missing or
 *     of another packing, unfinished files;
 *     units with a wrong checksum;
 *     sequences that are empty or not finite, have labels out of range, too few
 *     frames for CTC, or the name of another sequence.
 *
 * Features and labels of a unit are checked independently, so damage in one
 * does not hide problems of the other.
 *
 * stride >= 1: a network makes ceil(T / stride) frames of T. CTC needs one for
 * every label and one more between equal neighbours.
 *
 * json: writes one JSON object with the same instead: path, shards, sequences,
 * frames, labels, problems, kinds (their numbers), list (kind and text).
 *
 * limit: the number of problems to write of each kind; 0: all. `watch` may be NULL.
 * *problems: the number of problems. Problems are no failure; it fails with
 * BM_ERR_MISSING if the directory has no shards, and as bm_child_run does.
 */
BM_CHECKED bm_status bm_check_directory(const char *directory, int stride,
                                        size_t limit, FILE *out, bool json,
                                        bm_check_watch *watch,
                                        size_t *problems);

#endif
