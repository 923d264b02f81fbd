/*
 * check.h - everything that is wrong with a data set, in one pass.
 */
#ifndef BM_IO_INSPECT_CHECK_H
#define BM_IO_INSPECT_CHECK_H

#include "core/status.h"

#include <stddef.h>
#include <stdio.h>

/*
 * Reads all of a directory's shards, each in a process of its own, and writes
 * every problem as a line, then how many there are of each kind, and a summary:
 * shards that cannot be read, units with a wrong checksum, sequences that are
 * empty, not finite, have labels out of range, too few frames for CTC or the
 * name of another, shards that do not belong together, files that were never
 * finished. Damage hides
 * nothing else: features and labels of a unit are judged by themselves.
 *
 * CTC needs a frame for every label and one between equal neighbours; of T
 * frames a network with that stride leaves T / stride, rounded up.
 *
 * limit: write so many lines of a kind, and count the rest; 0: write all. Fails
 * only if there is nothing to check; *problems is how many there are.
 */
BM_CHECKED bm_status bm_check_directory(const char *directory, int stride,
                                        size_t limit, FILE *out,
                                        size_t *problems);

#endif
