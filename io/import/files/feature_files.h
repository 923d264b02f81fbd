/*
 * feature_files.h - reads features made by another program: NumPy arrays and
 * archives, parameter files of HTK and Sphinx, matrices of Kaldi.
 */
#ifndef BM_IO_IMPORT_FILES_FEATURE_FILES_H
#define BM_IO_IMPORT_FILES_FEATURE_FILES_H

#include "io/features/feature_chain.h"
#include "io/problem.h"

/* `[features]` of such files. */
typedef struct bm_feature_file_settings {
    long dim;
    double shift_ms;
    bm_chain_settings chain;
} bm_feature_file_settings;

extern const bm_option bm_feature_file_options[];

/*
 * `path` is a place (place.h). Its ending, in small letters or capitals, decides:
 * .npy and .npz have arrays of two dimensions of floats of 2, 4 or 8 bytes, in
 * any byte and storage order; .mfc, .htk, .plp, .fbank and .fbk are HTK's or, with mfc_dim numbers a frame,
 * Sphinx's; all else is a matrix of Kaldi's. A file that cannot be read, is
 * invalid or has a number that is not finite sets *problem. Fails with
 * BM_ERR_MEMORY, or with BM_ERR_IO if the disk does.
 */
BM_CHECKED bm_status bm_feature_file_read(const char *path, size_t mfc_dim,
                                          bm_frames *x, bm_problem *problem);

/* Does the ending say so? A matrix of Kaldi has none of its own. */
bool bm_feature_file_is(const char *path);

#endif
