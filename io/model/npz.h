/*
 * npz.h - arrays of floats by name in one file that NumPy's load() opens: a zip
 * archive of .npy files, not compressed.
 */
#ifndef BM_IO_MODEL_NPZ_H
#define BM_IO_MODEL_NPZ_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_npz bm_npz;

/* Under a temporary name until bm_npz_finish. */
BM_CHECKED bm_status bm_npz_create(bm_npz **out, const char *path);
/* x: `rows` rows of `cols` floats, `stride` floats apart. */
BM_CHECKED bm_status bm_npz_add(bm_npz *z, const char *name, const float *x,
                                size_t rows, size_t cols, size_t stride);
BM_CHECKED bm_status bm_npz_finish(bm_npz *z);
/* Removes what was not finished. */
void bm_npz_close(bm_npz *z);

#endif
