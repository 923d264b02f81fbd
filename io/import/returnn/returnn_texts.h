/*
 * returnn_texts.h - lists of texts in an HDF5 file, of fixed or variable length.
 */
#ifndef BM_IO_IMPORT_RETURNN_RETURNN_TEXTS_H
#define BM_IO_IMPORT_RETURNN_RETURNN_TEXTS_H

#include "io/shard/h5.h"

/* Reads all texts of an array, each up to its first zero; free each of
 * (*out)[*n], and *out. `most`: bytes of one. Call between bm_h5_enter and
 * _leave. Fails with BM_ERR_FORMAT, BM_ERR_IO or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_returnn_texts(const bm_h5_file *f, const char *name,
                                      size_t most, size_t *n, char ***out);

#endif
