/*
 * import_base.h - what the importers of manifests have in common: walking the
 * rows, the pass before the first that some normalisations need, refining
 * frames, and telling shards how features were made.
 *
 * An importer's `self` begins with a bm_import_base; it brings bm_import_read,
 * which makes the frames of one row.
 */
#ifndef BM_IO_IMPORT_IMPORT_BASE_H
#define BM_IO_IMPORT_IMPORT_BASE_H

#include "io/features/feature_chain.h"
#include "io/import/importer.h"
#include "io/import/manifest.h"
#include "io/import/problem.h"

/* Frames of a row, or a problem (not both). Fails only where going on makes no
 * sense. */
typedef bm_status bm_import_read(bm_importer *i, const bm_manifest_row *row,
                                 bm_frames *x, bm_problem *problem);

typedef struct bm_import_base {
    bm_manifest *manifest;
    bm_import_read *read;
    bm_chain *chain;           /* NULL: frames stay as they are read */
    size_t text_row, next_row; /* where the two passes are */
    bm_frames frames;          /* as read */
    bm_problem problem;        /* of the last row */
    char *described;           /* the settings as JSON */
    double frame_shift;        /* seconds, after subsampling */
} bm_import_base;

/* `self` of this size, with the manifest read. */
BM_CHECKED bm_status bm_import_open(bm_importer *i, size_t self_size,
                                    const char *path, const char *kind,
                                    bm_import_read *read);
/* Frees `self` as well. */
void bm_import_close(bm_importer *i);

/* Sets the chain up, and lets it learn from all rows if it has to. */
BM_CHECKED bm_status bm_import_refine(bm_importer *i,
                                      const bm_chain_settings *s, size_t dim);

/* Notes the settings as they are now: what the files decided included. */
BM_CHECKED bm_status bm_import_describe(bm_importer *i);

/* The operations of bm_importer_ops. */
BM_CHECKED bm_status bm_import_text(bm_importer *i, const char **text);
BM_CHECKED bm_status bm_import_next(bm_importer *i, bm_item *item);
void bm_import_meta(const bm_importer *i, bm_shard_meta *meta);

#endif
