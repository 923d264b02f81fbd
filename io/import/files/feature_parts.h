/*
 * feature_parts.h - the formats of feature files that are read as a whole. Each
 * function sets *fault, a static text, if the file is invalid, and detail, which
 * is "" before, to what is to be said after it; and fails with BM_ERR_MEMORY.
 */
#ifndef BM_IO_IMPORT_FILES_FEATURE_PARTS_H
#define BM_IO_IMPORT_FILES_FEATURE_PARTS_H

#include "io/features/feature_chain.h"

#include <stdint.h>

enum { BM_MOST_DETAIL = 200 };

/* A NumPy array of two dimensions. */
BM_CHECKED bm_status bm_npy_read(const uint8_t *file, size_t size, bm_frames *x,
                                 const char **fault,
                                 char detail[BM_MOST_DETAIL]);

/* An array of a NumPy archive; member: its name, "": the only one. */
BM_CHECKED bm_status bm_npz_read(const uint8_t *file, size_t size,
                                 const char *member, bm_frames *x,
                                 const char **fault,
                                 char detail[BM_MOST_DETAIL]);

/* HTK's parameter files, plain or compressed, or Sphinx's, which have dim numbers
 * a frame; their headers tell them apart. */
BM_CHECKED bm_status bm_htk_read(const uint8_t *file, size_t size, size_t dim,
                                 bm_frames *x, const char **fault,
                                 char detail[BM_MOST_DETAIL]);

#endif
