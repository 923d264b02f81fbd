/*
 * returnn_file.h - one HDF5 file of RETURNN's HDFDataset: dense inputs, and one
 * of its targets.
 *
 *     inputs [frames of all, features]      seqLengths [N, 1 + targets]
 *     seqTags [N]                           targets/data/KEY [labels of all]
 *     targets/labels/KEY [classes]          targets/size, an attribute for KEY
 *
 * Column 0 of seqLengths counts frames; the others belong to the keys of
 * targets, sorted. With one dimension it counts both. /labels has the names of
 * "classes" where targets/labels does not.
 *
 * Functions fail with BM_ERR_MISSING, with BM_ERR_FORMAT and what is wrong with
 * the file, with BM_ERR_IO if the disk does, and with BM_ERR_MEMORY.
 */
#ifndef BM_IO_IMPORT_RETURNN_RETURNN_FILE_H
#define BM_IO_IMPORT_RETURNN_RETURNN_FILE_H

#include "io/features/feature_chain.h"
#include "io/problem.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bm_returnn_file bm_returnn_file;

/* target: the key of the targets; "": "classes", or the only one there is.
 * Close with bm_returnn_close; NULL is a no-op. */
BM_CHECKED bm_status bm_returnn_open(bm_returnn_file **out, const char *path,
                                     const char *target);
void bm_returnn_close(bm_returnn_file *f);

size_t bm_returnn_sequences(const bm_returnn_file *f);
size_t bm_returnn_features(const bm_returnn_file *f); /* per frame */
bool bm_returnn_labelled(const bm_returnn_file *f);   /* there are targets */
/* Every sequence has a label for each frame. */
bool bm_returnn_per_frame(const bm_returnn_file *f);

/* The name of a sequence; the name of a class, NULL if there are none.
 * Borrowed. */
const char *bm_returnn_path(const bm_returnn_file *f);
const char *bm_returnn_tag(const bm_returnn_file *f, size_t sequence);
const char *bm_returnn_symbol(const bm_returnn_file *f, size_t class);
/* The number of classes: of symbols, by the attribute of the target or, where
 * that is missing or 1, by the largest label. */
size_t bm_returnn_classes(const bm_returnn_file *f);
/* Whether they were counted by the largest label; if so, there are n of them, as
 * in another file of the set. */
bool bm_returnn_counted(const bm_returnn_file *f);
void bm_returnn_raise_classes(bm_returnn_file *f, size_t n);

/* Reads the frames of a sequence; its labels, borrowed until the next call. A
 * sequence that is empty, or has a number that is not finite or a label that is
 * no class, sets *problem. */
BM_CHECKED bm_status bm_returnn_frames(bm_returnn_file *f, size_t sequence,
                                       bm_frames *x, bm_problem *problem);
BM_CHECKED bm_status bm_returnn_labels(bm_returnn_file *f, size_t sequence,
                                       const int32_t **labels, size_t *n,
                                       bm_problem *problem);

#endif
