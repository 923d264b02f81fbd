/*
 * feature_files.h - reads features made by another program, one file for each
 * sequence: NumPy arrays and Sphinx's .mfc.
 */
#ifndef BM_IO_IMPORT_FEATURE_FILES_H
#define BM_IO_IMPORT_FEATURE_FILES_H

#include "io/features/feature_chain.h"
#include "io/import/problem.h"

/* `[features]` of such files. */
typedef struct bm_feature_file_settings {
    long dim;
    double shift_ms;
    bm_chain_settings chain;
} bm_feature_file_settings;

extern const bm_option bm_feature_file_options[];

/*
 * The ending of the path decides: .npy is a two-dimensional array of float32 or
 * float64 in C order (format 1 or 2); .mfc is a count and so many floats, all
 * big-endian, `mfc_dim` of them per frame. A file that cannot be read, is
 * invalid or has a number that is not finite sets *problem. Fails with
 * BM_ERR_MEMORY, or with BM_ERR_IO if the disk does.
 */
BM_CHECKED bm_status bm_feature_file_read(const char *path, size_t mfc_dim,
                                          bm_frames *x, bm_problem *problem);

#endif
