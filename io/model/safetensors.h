/*
 * safetensors.h - the file format of checkpoints and models: a JSON header,
 * then tensors without holes (docs/jobs/checkpoints.md).
 *
 * Reading does not trust the file: sizes are compared with the file's size, in
 * arithmetic that cannot overflow, before memory is allocated.
 */
#ifndef BM_IO_MODEL_SAFETENSORS_H
#define BM_IO_MODEL_SAFETENSORS_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bm_dtype {
    BM_F64,
    BM_F32,
    BM_I64,
    BM_U8,
    BM_F16, /* of IEEE 754, as uint16_t */
    BM_I8,
} bm_dtype;
size_t bm_dtype_size(bm_dtype t); /* bytes of an element */

enum { BM_ST_NAME = 96, BM_ST_RANK = 8 };

typedef struct bm_st_tensor {
    char name[BM_ST_NAME];
    bm_dtype dtype;
    int rank;
    uint64_t dim[BM_ST_RANK];
    uint64_t count; /* elements: the product of dim */
} bm_st_tensor;

/* ---- writing: first all shapes, then all data in the same order --------- */

typedef struct bm_st_writer bm_st_writer;

/* Opens a temporary file beside `path`. sealed: append a checksum of everything
 * as the last tensor. Fails with BM_ERR_CREATE or BM_ERR_MEMORY. Close with
 * bm_st_close. */
BM_CHECKED bm_status bm_st_create(bm_st_writer **out, const char *path,
                                  bool sealed);
/* Adds a text to __metadata__; copied. Before the first bm_st_write. Fails with
 * BM_ERR_ARG if it is not UTF-8. */
BM_CHECKED bm_status bm_st_meta(bm_st_writer *w, const char *key,
                                const char *text);
/* Declares the next tensor; copied, t->count is ignored. Before the first
 * bm_st_write. For alignment the size of elements must not grow from one tensor
 * to the next. */
BM_CHECKED bm_status bm_st_declare(bm_st_writer *w, const bm_st_tensor *t);
/*
 * Writes the next elements of the tensors, in the order of declaration. A call
 * may end within a tensor, but not within an element, and may cover several
 * tensors. The first call writes the header and reserves the disk space of the
 * file. Fails with BM_ERR_IO, or with BM_ERR_NUMERIC and the tensor's name if
 * an element is not finite.
 */
BM_CHECKED bm_status bm_st_write(bm_st_writer *w, const void *data,
                                 size_t size);
/* Completes the file: fsync, rename to `path`, fsync of the directory. All
 * tensors must be written. A sealed file is read back from the disk before it
 * is renamed, and must have the checksum of what was written. *done, unless
 * NULL: its size and the seconds of reading. Fails with BM_ERR_IO. */
typedef struct bm_st_commitment {
    uint64_t bytes;
    double verify_s;
} bm_st_commitment;
BM_CHECKED bm_status bm_st_commit(bm_st_writer *w, bm_st_commitment *done);
/* Frees the writer, and removes the temporary file unless it was committed; an
 * older file at `path` stays. NULL is a no-op. */
void bm_st_close(bm_st_writer *w);

/* ---- reading ------------------------------------------------------------- */

typedef struct bm_st_file bm_st_file;

/* Reads and checks the header and, if `sealed`, the checksum of all bytes.
 * Fails with BM_ERR_MISSING if there is no such file, with BM_ERR_FORMAT if it
 * is damaged or has another format, or with BM_ERR_IO. Free with bm_st_free;
 * NULL is a no-op. */
BM_CHECKED bm_status bm_st_open(bm_st_file **out, const char *path,
                                bool sealed);
void bm_st_free(bm_st_file *f);
/* The tensors in the order of their data, without the checksum. Borrowed. */
size_t bm_st_count(const bm_st_file *f);
const bm_st_tensor *bm_st_at(const bm_st_file *f, size_t i);
/* The tensor of this name, borrowed; NULL if there is none. */
const bm_st_tensor *bm_st_find(const bm_st_file *f, const char *name);
/* A text of __metadata__, borrowed; NULL if there is none. */
const char *bm_st_text(const bm_st_file *f, const char *key);
/* Reads elements [offset, offset + count) of a tensor of f. Fails with
 * BM_ERR_IO, or with BM_ERR_FORMAT if an element is not finite. */
BM_CHECKED bm_status bm_st_read(bm_st_file *f, const bm_st_tensor *t,
                                uint64_t offset, uint64_t count, void *data);

#endif
