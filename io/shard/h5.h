/*
 * h5.h - HDF5 for files that are not trusted. An array is opened only if it
 * lies in the file itself, all of it, and is read without conversion; anything
 * else is refused with the file's name and the reason.
 *
 *     bm_h5_enter();
 *     ... H5 calls, and those below ...
 *     bm_h5_leave();
 */
#ifndef BM_IO_SHARD_H5_H
#define BM_IO_SHARD_H5_H

#include "core/status.h"

#include <hdf5.h>
#include <stddef.h>
#include <stdint.h>

/* One thread at a time may call HDF5, which prints nothing by itself. */
void bm_h5_enter(void);
void bm_h5_leave(void);

/* The innermost message of the last failure inside HDF5. */
const char *bm_h5_said(void);

/* IEEE 754 half, which HDF5 1.10 does not name. H5Tclose. */
hid_t bm_h5_half(void);

/* `path` is borrowed. H5Fclose closes whatever was opened in it. */
typedef struct bm_h5_file {
    const char *path;
    hid_t id;
    uint64_t size; /* bytes */
} bm_h5_file;

/* BM_ERR_MISSING if there is no such regular file that may be read. */
BM_CHECKED bm_status bm_h5_open(bm_h5_file *out, const char *path);

/* A number or a text (free() it) kept as attribute of a group. */
BM_CHECKED bm_status bm_h5_number(const bm_h5_file *f, const char *group,
                                  const char *name, int64_t *out);
BM_CHECKED bm_status bm_h5_text(const bm_h5_file *f, const char *group,
                                const char *name, char **out);

typedef struct bm_h5_array {
    const char *name; /* its path in the file, without a leading slash */
    hid_t id, type;
    int rank;        /* 1 or 2 */
    uint64_t dim[2]; /* dim[1] = 1 for rank 1 */
    size_t item;     /* bytes of an element */
} bm_h5_array;

/* Close with bm_h5_array_close. */
BM_CHECKED bm_status bm_h5_array_open(const bm_h5_file *f, const char *name,
                                      bm_h5_array *out);
void bm_h5_array_close(bm_h5_array *a);

/* Rows [first, first + rows), as they lie in the file. */
BM_CHECKED bm_status bm_h5_rows(const bm_h5_file *f, const bm_h5_array *a,
                                uint64_t first, uint64_t rows, void *out);

#define BM_H5_ANY UINT64_MAX

/* A whole array, free() it: of this type, rank 2 with so many columns, or rank
 * 1 if 0. *rows is how many it must have, or BM_H5_ANY, and then has. */
BM_CHECKED bm_status bm_h5_table(const bm_h5_file *f, const char *name,
                                 hid_t type, uint64_t columns, uint64_t *rows,
                                 void **out);

/* Texts of fixed length, all of them, each with a '\0' behind it: row i is at
 * *out + i * *width. *rows is how many. */
BM_CHECKED bm_status bm_h5_strings(const bm_h5_file *f, const char *name,
                                   uint64_t *rows, size_t *width, char **out);

#endif
