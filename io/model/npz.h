/*
 * npz.h - writes arrays of floats, and texts, by name to a file for
 * numpy.load(): a zip archive of .npy files, not compressed.
 */
#ifndef BM_IO_MODEL_NPZ_H
#define BM_IO_MODEL_NPZ_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_npz bm_npz;

/* Opens a temporary file beside `path`. Fails with BM_ERR_CREATE. Close with
 * bm_npz_close. */
BM_CHECKED bm_status bm_npz_create(bm_npz **out, const char *path);
/* Adds x: `rows` rows of `cols` floats, `stride` floats apart; copied. Fails
 * with BM_ERR_IO, BM_ERR_MEMORY, or BM_ERR_UNSUPPORTED beyond 2 GB or 65,534
 * arrays. */
BM_CHECKED bm_status bm_npz_add(bm_npz *z, const char *name, const float *x,
                                size_t rows, size_t cols, size_t stride);
/* Adds x of shape [dim[0], dim[1], ..], of rank 0 to 4; copied. Fails likewise.
 */
BM_CHECKED bm_status bm_npz_add_array(bm_npz *z, const char *name,
                                      const float *x, int rank,
                                      const size_t *dim);
/* Adds a text, in NumPy a scalar of bytes: str(z["name"], "utf-8"). Fails
 * likewise. */
BM_CHECKED bm_status bm_npz_add_text(bm_npz *z, const char *name,
                                     const char *text);
/* Completes the file and renames it to `path`. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_npz_finish(bm_npz *z);
/* Frees z, and removes the file unless it is finished. NULL is a no-op. */
void bm_npz_close(bm_npz *z);

#endif
