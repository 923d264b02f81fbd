/*
 * h5.h - HDF5 for files that are not trusted. An array is opened only if all of
 * it is in the file itself, and is read without conversion. Everything else
 * fails with BM_ERR_FORMAT and a message with the file's name.
 *
 *     bm_h5_enter();
 *     ... H5 calls, and those below ...
 *     bm_h5_leave();
 */
#ifndef BM_IO_SHARD_H5_H
#define BM_IO_SHARD_H5_H

#include "core/status.h"

#include <hdf5.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The end of messages on damaged contents, which `bmuf check` leaves out. */
#define BM_RUN_CHECK "; run bmuf check"

/* Lock and unlock: one thread at a time may call HDF5. HDF5's own printing of
 * errors is off. */
void bm_h5_enter(void);
void bm_h5_leave(void);

/* The innermost message of the last failure inside HDF5. Static per thread. */
const char *bm_h5_reason(void);

/* BM_ERR_IO if the last failure inside HDF5 was one of the operating system,
 * such as a failing disk; else BM_ERR_FORMAT: the file is at fault. */
bm_status bm_h5_failure(void);

/* The type of an IEEE 754 half, which HDF5 1.10 lacks. Free with H5Tclose. */
hid_t bm_h5_half(void);

/* `path` is borrowed. H5Fclose(id) closes everything opened in the file. */
typedef struct bm_h5_file {
    const char *path;
    hid_t id;
    uint64_t size; /* bytes */
} bm_h5_file;

/* Fails with BM_ERR_MISSING unless `path` is a regular file that can be
 * read. */
BM_CHECKED bm_status bm_h5_open(bm_h5_file *out, const char *path);

/* Does the group "bmuf" have this attribute? For those that older files lack. */
bool bm_h5_has(const bm_h5_file *f, const char *name);

/* Reads an attribute of that group: a number, or a text; free(*out) the text. */
BM_CHECKED bm_status bm_h5_number(const bm_h5_file *f, const char *name,
                                  int64_t *out);
BM_CHECKED bm_status bm_h5_text(const bm_h5_file *f, const char *name,
                                char **out);

typedef struct bm_h5_array {
    const char *name; /* its path in the file, without a leading slash */
    hid_t id, type;
    int rank;        /* 1 or 2 */
    uint64_t dim[2]; /* dim[1] = 1 for rank 1 */
    size_t item;     /* bytes of an element */
} bm_h5_array;

/* `name` is borrowed until bm_h5_array_close. */
BM_CHECKED bm_status bm_h5_array_open(const bm_h5_file *f, const char *name,
                                      bm_h5_array *out);
void bm_h5_array_close(bm_h5_array *a);

/* The same for files of other programs: chunks may be of any shape, and texts of
 * variable length, of which HDF5 must read none: it trusts their places. */
BM_CHECKED bm_status bm_h5_array_open_any(const bm_h5_file *f, const char *name,
                                          bm_h5_array *out);

/* Copies rows [first, first + rows), which must exist, as stored. */
BM_CHECKED bm_status bm_h5_rows(const bm_h5_file *f, const bm_h5_array *a,
                                uint64_t first, uint64_t rows, void *out);

/* The same as numbers of this type of memory, H5T_NATIVE_FLOAT. */
BM_CHECKED bm_status bm_h5_rows_as(const bm_h5_file *f, const bm_h5_array *a,
                                   uint64_t first, uint64_t rows, hid_t type,
                                   void *out);

#define BM_H5_ANY UINT64_MAX

/* Reads a whole array of this type; free(*out). columns: 0 for rank 1. *rows:
 * the number it must have, or BM_H5_ANY, which is then set. */
BM_CHECKED bm_status bm_h5_table(const bm_h5_file *f, const char *name,
                                 hid_t type, uint64_t columns, uint64_t *rows,
                                 void **out);

/* Reads all texts of an array of fixed-length texts; free(*out). Text i is at
 * *out + i * *width and ends with '\0'. */
BM_CHECKED bm_status bm_h5_strings(const bm_h5_file *f, const char *name,
                                   uint64_t *rows, size_t *width, char **out);

#endif
