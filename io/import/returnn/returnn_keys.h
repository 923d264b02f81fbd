/*
 * returnn_keys.h - the names of the targets of a file of RETURNN: the arrays of
 * /targets/data and the attributes of /targets/size. Call these between
 * bm_h5_enter and _leave.
 */
#ifndef BM_IO_IMPORT_RETURNN_RETURNN_KEYS_H
#define BM_IO_IMPORT_RETURNN_RETURNN_KEYS_H

#include "io/shard/h5.h"

enum { BM_RETURNN_MOST_KEYS = 64, BM_RETURNN_LONGEST_KEY = 100 };

typedef struct bm_returnn_keys {
    char name[BM_RETURNN_MOST_KEYS][BM_RETURNN_LONGEST_KEY + 1]; /* sorted */
    bool data[BM_RETURNN_MOST_KEYS]; /* there is an array */
    size_t n;
    bool failed; /* too many, or too long */
} bm_returnn_keys;

/* Is there an object of this name? */
bool bm_returnn_has(const bm_h5_file *f, const char *name);

/* The keys of all targets; *k starts as {0}. */
BM_CHECKED bm_status bm_returnn_find_keys(const bm_h5_file *f,
                                          bm_returnn_keys *k);

/* *key <- that of `wanted`, or without one, "": "classes", or the only one with
 * data; k->n: there are no targets. Fails with BM_ERR_FORMAT. */
BM_CHECKED bm_status bm_returnn_choose_key(const bm_h5_file *f,
                                           const bm_returnn_keys *k,
                                           const char *wanted, size_t *key);

#endif
