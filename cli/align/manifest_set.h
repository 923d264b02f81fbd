/*
 * manifest_set.h - packs the files of a manifest into a set in TMPDIR, with
 * features as a model needs them, so that they are aligned as packed sets are.
 */
#ifndef BM_CLI_ALIGN_MANIFEST_SET_H
#define BM_CLI_ALIGN_MANIFEST_SET_H

#include "recognise/recogniser.h"

#include <limits.h>

typedef struct bm_manifest_set {
    char directory[PATH_MAX]; /* "": there is none */
    size_t unread; /* files that cannot be used; the first are named */
} bm_manifest_set;

/* Starts as {0}; remove it with bm_manifest_set_remove, also after a failure.
 * Features that were normalised by speaker are normalised by the manifest's.
 * Fails with BM_ERR_FORMAT if it is not known how the model's features are made,
 * or they need statistics of Kaldi's, if the manifest is invalid or lacks
 * speakers, or none of its files can be used; with BM_ERR_CREATE or BM_ERR_IO if
 * TMPDIR cannot be written; with BM_STOPPED after a signal. */
BM_CHECKED bm_status bm_manifest_set_make(bm_manifest_set *s,
                                          const char *manifest,
                                          const bm_recogniser *model);
void bm_manifest_set_remove(bm_manifest_set *s);

#endif
