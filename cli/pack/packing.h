/*
 * packing.h - packs all sequences of an importer into the shards of a data set,
 * and reports what was packed and left out.
 */
#ifndef BM_CLI_PACK_PACKING_H
#define BM_CLI_PACK_PACKING_H

#include "cli/pack/texts.h"
#include "io/import/importer.h"

/* Texts are borrowed. */
typedef struct bm_packing_plan {
    const char *directory; /* of the set; created if it is missing */
    const char *name;      /* shards are NAME-00000.bmuf.h5, .. */
    bm_shard_settings set; /* store NULL: that of the importer */
    bool force;            /* shards that are there are removed */
    bool resume;           /* packing goes on after them */
    bool json;             /* the report on stdout, instead of text */
    bool no_text;          /* texts are ignored: a set without labels */
    double most_left_out;  /* percent of the sequences */
    double most_unknown;   /* percent of the symbols of texts */
} bm_packing_plan;

/*
 * Collective over the ranks of the importer, of which rank 0 writes, so that
 * only its host needs to see the directory. Learns the vocabulary if that is
 * empty. With `resume`, a set that is complete and has all sequences of the
 * importer is left as it is.
 *
 * Fails with BM_ERR_CREATE if the directory cannot be used, is in use, has
 * shards that may be neither removed nor continued, or a vocabulary without
 * shards, or is complete and lacks a sequence; with BM_ERR_FORMAT if too much
 * was left out or is not in the vocabulary; and as bm_labels_open,
 * bm_packed_read, bm_importer_each and bm_shard_writer_add. Shards of a packing
 * that fails are removed, but for those that were there before.
 */
BM_CHECKED bm_status bm_packing_run(const bm_packing_plan *plan,
                                    bm_importer *importer, bm_texts *texts);

#endif
