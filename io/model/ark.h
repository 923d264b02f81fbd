/*
 * ark.h - writes matrices of floats by name as Kaldi's archives: one file of
 * matrices (ark), binary or text, and if wanted a list (scp) of where each of
 * them begins, sorted by name.
 */
#ifndef BM_IO_MODEL_ARK_H
#define BM_IO_MODEL_ARK_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_ark bm_ark;

/* Does the text begin as a place for matrices in Kaldi's notation? "ark" or
 * "scp", and a comma or a colon. */
bool bm_ark_is_place(const char *text);

/* Opens temporary files beside those of a place: "ark:FILE", "ark,t:FILE" (as
 * text) or "ark,scp:FILE,LIST". Fails with BM_ERR_ARG for another place, or
 * with BM_ERR_CREATE or BM_ERR_MEMORY. Close with bm_ark_close. */
BM_CHECKED bm_status bm_ark_create(bm_ark **out, const char *place);
/* The paths that will be replaced; out[1]: of the list, or NULL. Borrowed. */
void bm_ark_files(const bm_ark *a, const char *out[2]);
/* Adds x: `rows` rows of `cols` floats, `stride` floats apart. Fails with
 * BM_ERR_IO, BM_ERR_MEMORY, with BM_ERR_FORMAT if the name is empty or has
 * white space, or with BM_ERR_UNSUPPORTED beyond 2^31 - 1 rows or columns. */
BM_CHECKED bm_status bm_ark_add(bm_ark *a, const char *name, const float *x,
                                size_t rows, size_t cols, size_t stride);
/* Completes the files and renames them. Fails with BM_ERR_IO. */
BM_CHECKED bm_status bm_ark_finish(bm_ark *a);
/* Frees a, and removes the files unless they are finished. NULL is a no-op. */
void bm_ark_close(bm_ark *a);

#endif
