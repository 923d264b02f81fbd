/*
 * import_features.c - feature files, with the settings of [features]: read,
 * then processed by the chain of feature_chain.h.
 */
#include "io/import/files/feature_files.h"
#include "io/import/import_base.h"
#include "io/shard/shard.h"

#include <stdio.h>
#include <string.h>

typedef struct features {
    bm_import_base base; /* must be first */
    size_t mfc_dim;      /* features.dim as given */
    size_t dim;          /* of all files; 0: not yet known */
    char first[4096];    /* the file with this dim */
} features;

/* All frames are equal. */
static bool is_constant(const bm_frames *x)
{
    for (size_t k = x->dim; k < x->n * x->dim; k++)
        if (x->x[k] != x->x[k - x->dim])
            return false;
    return x->n > 1;
}

static bm_status read_file(const features *self, const bm_manifest_row *row,
                           bm_frames *x, bm_problem *problem)
{
    BM_TRY(bm_feature_file_read(row->path, self->mfc_dim, x, problem));
    if (!bm_problem_is(problem) && self->dim != 0 && x->dim != self->dim)
        bm_problem_set(problem, "other number of features",
                       "%s has %zu numbers per frame, but %s has %zu",
                       row->path, x->dim, self->first, self->dim);
    return BM_OK;
}

static bm_status features_read(bm_importer *i, bm_import_reader *r,
                               const bm_manifest_row *row)
{
    BM_TRY(read_file(i->self, row, &r->frames, &r->problem));
    if (!bm_problem_is(&r->problem) && is_constant(&r->frames))
        r->remark = "constant";
    return BM_OK;
}

/* The first readable file decides the numbers per frame. */
static bm_status features_look(bm_importer *i, const bm_manifest_row *row,
                               bool *enough, bm_problem *problem)
{
    features *self = i->self;
    bm_frames *x = &self->base.readers->frames;

    BM_TRY(read_file(self, row, x, problem));
    *enough = !bm_problem_is(problem);
    if (*enough) {
        self->dim = x->dim;
        snprintf(self->first, sizeof self->first, "%s", row->path);
    }
    return BM_OK;
}

/* Fails if means and scales of this number of features do not fit into a shard.
 * Of a number of 17 digits the description has at least 20 bytes. */
static bm_status check_dim(const bm_importer *i, const bm_chain_settings *s,
                           size_t dim)
{
    size_t columns = dim * ((size_t)s->deltas + 1);

    if (strcmp(s->normalise, "global") != 0 || i->norm.dim > 0 ||
        (s->variance ? 40 : 20) * columns <= BM_LONGEST_FEATURES_TEXT)
        return BM_OK;
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s.normalise = global: shards do not hold the means of %zu "
                   "features; take %s.normalise = utterance",
                   i->ops->section, columns, i->ops->section);
}

static bm_status features_open(bm_importer *i, const bm_import_source *source)
{
    static const bm_import_parts parts = {.kind = "feats",
                                          .read = features_read};
    bm_feature_file_settings *s = i->settings;
    features *self = NULL;

    BM_TRY(bm_import_open(i, sizeof *self, source, &parts));
    self = i->self;
    self->mfc_dim = (size_t)s->dim;
    BM_TRY(bm_import_probe(i, features_look, "files"));
    BM_TRY(check_dim(i, &s->chain, self->dim));
    s->dim = (long)self->dim;
    self->base.frame_shift = s->shift_ms / 1000 * (double)s->chain.subsample;
    return bm_import_refine(i, &s->chain, self->dim);
}

const bm_importer_ops bm_importer_features = {
    .name = "features",
    .kind = "features",
    .help = "Feature files (.npy, .mfc)",
    .section = "features",
    .options = bm_feature_file_options,
    .settings_size = sizeof(bm_feature_file_settings),
    .store = "f32",
    .open = features_open,
    .close = bm_import_close,
    .meta = bm_import_meta,
    BM_IMPORT_ROWS,
};
