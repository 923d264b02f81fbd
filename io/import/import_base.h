/*
 * import_base.h - what the importers of manifests have in common: walking the
 * rows, on several threads, the first pass that some normalisations need,
 * processing of frames, and the description of the features.
 *
 * An importer's `self` begins with a bm_import_base; the importer provides a
 * bm_import_read, which makes the frames of one row.
 */
#ifndef BM_IO_IMPORT_IMPORT_BASE_H
#define BM_IO_IMPORT_IMPORT_BASE_H

#include "io/features/feature_chain.h"
#include "io/import/command_output.h"
#include "io/import/frame_classes.h"
#include "io/import/importer.h"
#include "io/import/manifest/manifest.h"
#include "io/problem.h"

/* What a thread that reads rows has of its own. */
typedef struct bm_import_reader {
    bm_frames frames;         /* of the last row, as read */
    bm_problem problem;       /* of the last row */
    const char *remark;       /* on the last row; NULL: none */
    bm_waveform recording;    /* of the last row, with base.sample_rate > 0 */
    bm_command_output output; /* of the row's command, if it has one */
    bm_chain *chain; /* a copy; NULL: the first reader has the base's */
    void *own;       /* of the importer */
} bm_import_reader;

/* Makes r->frames of a row, or sets r->problem; may set r->remark. Called on
 * several threads, with a reader for each. Fails only if the import cannot
 * continue. */
typedef bm_status bm_import_read(bm_importer *i, bm_import_reader *r,
                                 const bm_manifest_row *row);

/* What an importer of manifests is made of. */
typedef struct bm_import_parts {
    const char *kind; /* of the manifest's files: "audio" */
    bm_import_read *read;
    /* Makes *own of a reader, while the importer is opened: texts of settings
     * are borrowed until then. NULL: there is none. */
    bm_status (*open_own)(const bm_importer *i, void **own);
    void (*close_own)(void *own);
} bm_import_parts;

/* Looks at a row before the import, or sets *problem; *enough: need no more
 * rows. Fails only if the import cannot continue. */
typedef bm_status bm_import_look(bm_importer *i, const bm_manifest_row *row,
                                 bool *enough, bm_problem *problem);

typedef struct bm_import_base {
    bm_manifest *manifest;
    const bm_import_parts *parts;
    bm_import_reader *readers; /* [n_readers] */
    size_t n_readers;
    bm_chain *chain;           /* NULL: frames are not processed */
    size_t text_row, next_row; /* next rows of bm_import_text and _next */
    size_t first_row;          /* of bm_import_each */
    bm_frame_classes *classes; /* NULL: labels are made of texts */
    size_t n_classes;          /* of frames; others leave a sequence out */
    size_t subsample;          /* frames of which the chain keeps one */
    int32_t *labels;           /* [room_labels]: the classes that it keeps */
    size_t room_labels;
    bm_problem problem; /* of the last item, if its classes are at fault */
    char *described;    /* the settings as JSON */
    double frame_shift; /* seconds, after subsampling */
    long sample_rate;   /* Hz of the recordings that items have; 0: none */
} bm_import_base;

/* Allocates `self` of this size, and reads the manifest and the classes of
 * frames. `parts` is static. Fails as bm_manifest_read and bm_frame_classes_read
 * do. */
BM_CHECKED bm_status bm_import_open(bm_importer *i, size_t self_size,
                                    const bm_import_source *source,
                                    const bm_import_parts *parts);
/* Frees `self` as well. */
void bm_import_close(bm_importer *i);

/* Looks at the rows in order. Fails with BM_ERR_FORMAT and the first problem if
 * all rows have one; `noun`: "recordings", for the message. */
BM_CHECKED bm_status bm_import_probe(bm_importer *i, bm_import_look *look,
                                     const char *noun);

/* Opens the readers' own parts and the chain for frames of `dim` features. Fails
 * with BM_ERR_CONFIG if settings are invalid or speakers are missing. */
BM_CHECKED bm_status bm_import_refine(bm_importer *i,
                                      const bm_chain_settings *s, size_t dim);

/* Collective. Passes all rows through the first pass of the chain; the sums are
 * made on rank 0, in the order of the rows. Fails as `read` does. */
BM_CHECKED bm_status bm_import_walk(bm_importer *i);

/* Operations for bm_importer_ops. _complete passes all rows through the first
 * pass of the chain, if it has one; fails as bm_same_files and `read` do. */
BM_CHECKED bm_status bm_import_complete(bm_importer *i);
BM_CHECKED bm_status bm_import_text(bm_importer *i, const char **text);
BM_CHECKED bm_status bm_import_next(bm_importer *i, bm_item *item);
BM_CHECKED bm_status bm_import_each(bm_importer *i, bm_import_take *take,
                                    void *self);
BM_CHECKED bm_status bm_import_skip(bm_importer *i, const char *const *ids,
                                    size_t n, bm_import_take *take, void *self,
                                    size_t *left_out);
size_t bm_import_size(const bm_importer *i);
void bm_import_meta(const bm_importer *i, bm_shard_meta *meta);

/* The operations that are the same for all importers of manifests. */
#define BM_IMPORT_ROWS                                                         \
    .complete = bm_import_complete, .text = bm_import_text,                    \
    .next = bm_import_next, .each = bm_import_each, .skip = bm_import_skip,    \
    .size = bm_import_size

#endif
