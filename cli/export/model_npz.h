/*
 * model_npz.h - writes the weights of a model to a file for numpy.load(), with
 * the names and shapes that PyTorch gives them. docs/results/export.md has the names.
 */
#ifndef BM_CLI_EXPORT_MODEL_NPZ_H
#define BM_CLI_EXPORT_MODEL_NPZ_H

#include "recognise/recogniser.h"

/* The backend of *r must be the host. Fails as bm_npz_create and bm_npz_add. */
BM_CHECKED bm_status bm_model_npz_write(const bm_recogniser *r,
                                        const char *path);

#endif
