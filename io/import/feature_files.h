/*
 * feature_files.h - features that another program has made, a file for each
 * sequence: NumPy arrays and Sphinx's .mfc.
 */
#ifndef BM_IO_IMPORT_FEATURE_FILES_H
#define BM_IO_IMPORT_FEATURE_FILES_H

#include "io/features/feature_chain.h"
#include "io/import/problem.h"

/*
 * By the ending of the path: .npy is a two-dimensional array of float32 or
 * float64 in C order (format 1 or 2); .mfc is a count and as many floats, all
 * big-endian, `mfc_dim` to a frame. What is not right, not whole or not finite
 * is a problem.
 */
BM_CHECKED bm_status bm_feature_file_read(const char *path, size_t mfc_dim,
                                          bm_frames *x, bm_problem *problem);

#endif
