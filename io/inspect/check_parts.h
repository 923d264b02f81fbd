/* check_parts.h - internal to io/inspect/check*.c: what the child that reads a
 * shard sends to its parent, line by line. */
#ifndef BM_IO_INSPECT_CHECK_PARTS_H
#define BM_IO_INSPECT_CHECK_PARTS_H

#include "io/inspect/check.h"

/* Kinds of problems and their plural. In the pipe, a kind is one letter. */
#define BM_CHECK_KINDS(X)                                                      \
    X(UNREADABLE, "shards that cannot be read")                                \
    X(UNFINISHED, "unfinished files")                                          \
    X(MISSING, "shards that are missing or of another bmuf pack")              \
    X(DIFFERENT, "shards that differ from the first")                          \
    X(DUPLICATE, "sequences with the name of another sequence")                \
    X(DAMAGED, "damaged units or tables")                                      \
    X(EMPTY, "empty sequences")                                                \
    X(NOT_FINITE, "sequences with NaN or infinite features")                   \
    X(LABEL, "sequences with labels out of range")                             \
    X(INFEASIBLE, "sequences too short for CTC")

typedef enum bm_check_kind {
#define X(name, text) BM_CHECK_##name,
    BM_CHECK_KINDS(X)
#undef X
        BM_CHECK_KINDS_N
} bm_check_kind;

/*
 * In the child: checks the shard `path`, and that it goes with `first` (NULL: it is
 * the first one). Lines to the parent begin with
 *
 *     'a' + kind   a problem: its text
 *     %            "n N": n of N units are done
 *     #            the hash of a sequence's name
 *     =            the end: "sequences missing frames labels index count first
 *                  before hash"
 */
void bm_check_shard(const char *path, const char *first, int stride, FILE *to);

#endif
