/*
 * dump.h - writes what a network gives for each sequence, as logits or as
 * probabilities of the classes, for NumPy or for Kaldi.
 */
#ifndef BM_CLI_SCORE_DUMP_H
#define BM_CLI_SCORE_DUMP_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_dump bm_dump;

#define BM_DUMP_VALUES "logits posteriors log-posteriors"

/* Fails with BM_ERR_ARG unless `place` is "FILE.npz" or a place as in
 * io/model/ark.h; `verb`: for the message. */
BM_CHECKED bm_status bm_dump_check(const char *verb, const char *place);

/* place: borrowed. values: one of BM_DUMP_VALUES. Fails as bm_npz_create and
 * bm_ark_create. Close with bm_dump_close. */
BM_CHECKED bm_status bm_dump_open(bm_dump **out, const char *place,
                                  const char *values);
/* The paths that will be replaced; out[1]: NULL if there is one. Borrowed. */
void bm_dump_files(const bm_dump *d, const char *out[2]);
/* Adds logits [frames, classes], `stride` floats apart. Fails as bm_npz_add and
 * bm_ark_add. */
BM_CHECKED bm_status bm_dump_add(bm_dump *d, const char *name,
                                 const float *logits, size_t frames,
                                 size_t classes, size_t stride);
/* Completes the files. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_dump_finish(bm_dump *d);
/* Frees d, and removes the files unless they are finished. NULL is a no-op. */
void bm_dump_close(bm_dump *d);

#endif
