/*
 * import_base.h - what the importers of manifests have in common: walking the
 * rows, the first pass that some normalisations need, processing of frames, and
 * the description of the features.
 *
 * An importer's `self` begins with a bm_import_base; the importer provides a
 * bm_import_read, which makes the frames of one row.
 */
#ifndef BM_IO_IMPORT_IMPORT_BASE_H
#define BM_IO_IMPORT_IMPORT_BASE_H

#include "io/features/feature_chain.h"
#include "io/import/importer.h"
#include "io/import/manifest.h"
#include "io/import/problem.h"

/* Makes the frames of a row, or sets *problem. Fails only if the import cannot
 * continue. */
typedef bm_status bm_import_read(bm_importer *i, const bm_manifest_row *row,
                                 bm_frames *x, bm_problem *problem);

/* Looks at a row before the import, or sets *problem; *enough: need no more
 * rows. Fails only if the import cannot continue. */
typedef bm_status bm_import_look(bm_importer *i, const bm_manifest_row *row,
                                 bool *enough, bm_problem *problem);

typedef struct bm_import_base {
    bm_manifest *manifest;
    bm_import_read *read;
    bm_chain *chain;           /* NULL: frames are not processed */
    size_t text_row, next_row; /* next rows of bm_import_text and _next */
    bm_frames frames;          /* as read */
    bm_problem problem;        /* of the last row */
    const char *remark;        /* on the last row; set by `read`, NULL: none */
    char *described;           /* the settings as JSON */
    double frame_shift;        /* seconds, after subsampling */
} bm_import_base;

/* Allocates `self` of this size and reads the manifest. Fails as
 * bm_manifest_read does. */
BM_CHECKED bm_status bm_import_open(bm_importer *i, size_t self_size,
                                    const char *path, const char *kind,
                                    double most_missing, bm_import_read *read);
/* Frees `self` as well. */
void bm_import_close(bm_importer *i);

/* Looks at the rows in order. Fails with BM_ERR_FORMAT and the first problem if
 * all rows have one; `noun`: "recordings", for the message. */
BM_CHECKED bm_status bm_import_probe(bm_importer *i, bm_import_look *look,
                                     const char *noun);

/* Opens the chain for frames of `dim` features, and passes all rows through its
 * first pass if it has one. Fails with BM_ERR_CONFIG if settings are invalid or
 * speakers are missing, and as `read` does. */
BM_CHECKED bm_status bm_import_refine(bm_importer *i,
                                      const bm_chain_settings *s, size_t dim);

/* Describes the settings as they are now, with those that the files decided.
 * Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_import_describe(bm_importer *i);

/* Operations for bm_importer_ops. */
BM_CHECKED bm_status bm_import_text(bm_importer *i, const char **text);
BM_CHECKED bm_status bm_import_next(bm_importer *i, bm_item *item);
size_t bm_import_size(const bm_importer *i);
void bm_import_meta(const bm_importer *i, bm_shard_meta *meta);

#endif
