/*
 * safetensors.h - the file format of checkpoints and models, see
 * docs/checkpoints.md: a JSON header, then tensors without holes.
 *
 * Reading trusts nothing: sizes are checked against the file's before anything
 * is allocated, in checked arithmetic; failures name file and reason.
 */
#ifndef BM_IO_MODEL_SAFETENSORS_H
#define BM_IO_MODEL_SAFETENSORS_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum bm_dtype { BM_F64, BM_F32, BM_I64, BM_U8 } bm_dtype;
size_t bm_dtype_size(bm_dtype t);

enum { BM_ST_NAME = 96, BM_ST_RANK = 8 };

typedef struct bm_st_tensor {
    char name[BM_ST_NAME];
    bm_dtype dtype;
    int rank;
    uint64_t dim[BM_ST_RANK];
    uint64_t count; /* elements: the product of dim */
} bm_st_tensor;

/* ---- writing: all shapes first, then all data in the same order. -------- */

typedef struct bm_st_writer bm_st_writer;

/* Opens the temporary file beside `path`. With `sealed`, the last tensor will
 * be a checksum of everything before it. */
BM_CHECKED bm_status bm_st_create(bm_st_writer **out, const char *path,
                                  bool sealed);
/* Text for __metadata__, UTF-8; before the first data. */
BM_CHECKED bm_status bm_st_meta(bm_st_writer *w, const char *key,
                                const char *text);
/* Tensors of large elements come first, so that all are aligned. t->count is
 * not looked at. */
BM_CHECKED bm_status bm_st_declare(bm_st_writer *w, const bm_st_tensor *t);
/*
 * The next whole elements of the tensors, in the order in which they were
 * declared; a call may reach over several. The first one sets aside the room
 * that the file will need. BM_ERR_NUMERIC names a tensor that is not finite.
 */
BM_CHECKED bm_status bm_st_write(bm_st_writer *w, const void *data,
                                 size_t size);
/* fsync, rename, fsync of the directory, once all tensors are complete. *bytes,
 * unless NULL: size of the file. */
BM_CHECKED bm_status bm_st_commit(bm_st_writer *w, uint64_t *bytes);
/* Removes what was not committed; an older file of that name stays. */
void bm_st_close(bm_st_writer *w);

/* ---- reading ------------------------------------------------------------- */

typedef struct bm_st_file bm_st_file;

/* Reads and checks the header; with `sealed`, the checksum of all bytes.
 * BM_ERR_MISSING: no such file; BM_ERR_FORMAT: it is not what it should be. */
BM_CHECKED bm_status bm_st_open(bm_st_file **out, const char *path,
                                bool sealed);
void bm_st_free(bm_st_file *f);
/* Tensors in the order of their data, the checksum left out. Borrowed. */
size_t bm_st_count(const bm_st_file *f);
const bm_st_tensor *bm_st_at(const bm_st_file *f, size_t i);
/* NULL if there is none. */
const bm_st_tensor *bm_st_find(const bm_st_file *f, const char *name);
/* NULL if there is none. Borrowed. */
const char *bm_st_text(const bm_st_file *f, const char *key);
/* Elements [offset, offset + count) of a tensor; floats must be finite. */
BM_CHECKED bm_status bm_st_read(bm_st_file *f, const bm_st_tensor *t,
                                uint64_t offset, uint64_t count, void *data);

#endif
