/*
 * kaldi_file.h - reads matrices and vectors of Kaldi's: binary (FM, DM, FV, DV,
 * compressed CM, CM2, CM3) and text, from a byte of a file or one after the other
 * from an archive, which may be compressed with gzip.
 *
 * What is wrong with the data sets *problem, with file and byte. Functions fail
 * with BM_ERR_MEMORY, or with BM_ERR_IO if the disk does.
 */
#ifndef BM_IO_IMPORT_FILES_KALDI_FILE_H
#define BM_IO_IMPORT_FILES_KALDI_FILE_H

#include "io/features/feature_chain.h"
#include "io/problem.h"

#include <stdbool.h>
#include <stdint.h>
#include <zlib.h>

typedef struct bm_kaldi_file {
    const char *path; /* borrowed */
    gzFile file;
    uint64_t most; /* bytes that can be in it */
} bm_kaldi_file;

/* Fails as bm_file_open_regular, too. Close with bm_kaldi_close; {0} is a no-op.
 */
BM_CHECKED bm_status bm_kaldi_open(bm_kaldi_file *f, const char *path);
void bm_kaldi_close(bm_kaldi_file *f);

/* The next byte that is read; beyond the end of the file is a problem. */
BM_CHECKED bm_status bm_kaldi_seek(bm_kaldi_file *f, uint64_t offset,
                                   bm_problem *problem);

/* The key of the next object of an archive: "" at the end. room: of `key`. */
BM_CHECKED bm_status bm_kaldi_key(bm_kaldi_file *f, char *key, size_t room,
                                  bm_problem *problem);

/* A matrix; a vector is a matrix of one row. */
BM_CHECKED bm_status bm_kaldi_matrix(bm_kaldi_file *f, bm_frames *x,
                                     bm_problem *problem);

/* Numbers in memory that is reused. Starts as {0}; free(x). */
typedef struct bm_doubles {
    double *x; /* [rows, columns] */
    size_t rows, columns, room;
} bm_doubles;

/* A matrix whose sums must not be rounded: of DM, all bits are kept. */
BM_CHECKED bm_status bm_kaldi_doubles(bm_kaldi_file *f, bm_doubles *out,
                                      bm_problem *problem);

/* Integers, such as an alignment, in memory that is reused. Starts as {0};
 * free(x). */
typedef struct bm_integers {
    int32_t *x;
    size_t n, room;
} bm_integers;

BM_CHECKED bm_status bm_kaldi_integers(bm_kaldi_file *f, bm_integers *out,
                                       bm_problem *problem);

#endif
