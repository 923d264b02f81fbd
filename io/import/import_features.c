/*
 * import_features.c - features that are there already, by [features]: read,
 * then through the chain of feature_chain.h.
 */
#include "io/import/feature_files.h"
#include "io/import/import_base.h"

typedef struct settings {
    long dim;
    double shift_ms;
    bm_chain_settings chain;
} settings;

static const bm_option options[] = {
    {"dim", BM_INT, offsetof(settings, dim), "13", 1, 65536, "numbers",
     "in a frame of a .mfc file; .npy files say it themselves"},
    {"shift_ms", BM_FLOAT, offsetof(settings, shift_ms), "10", 0, 1000, "ms",
     "from one frame to the next, as they were made; 0: not sound"},
    BM_CHAIN_OPTIONS(settings),
    {0},
};

typedef struct features {
    bm_import_base base; /* must be first */
    size_t mfc_dim;      /* features.dim as it was given */
    size_t dim;          /* of all files; 0: not known yet */
    const char *first;   /* the file that has it */
} features;

static bm_status features_read(bm_importer *i, const bm_manifest_row *row,
                               bm_frames *x, bm_problem *problem)
{
    const features *self = i->self;

    BM_TRY(bm_feature_file_read(row->path, self->mfc_dim, x, problem));
    if (!bm_problem_is(problem) && self->dim != 0 && x->dim != self->dim)
        bm_problem_set(problem, "%s has %zu numbers a frame, but %s has %zu",
                       row->path, x->dim, self->first, self->dim);
    return BM_OK;
}

/* The first file that can be read decides how many numbers a frame has. */
static bm_status find_dim(bm_importer *i)
{
    features *self = i->self;
    bm_manifest *m = self->base.manifest;
    bm_problem first = {""};

    for (size_t k = 0; k < bm_manifest_size(m); k++) {
        bm_manifest_row row = bm_manifest_at(m, k);
        bm_problem problem = {""};

        BM_TRY(features_read(i, &row, &self->base.frames, &problem));
        if (!bm_problem_is(&problem)) {
            self->dim = self->base.frames.dim;
            self->first = row.path;
            return BM_OK;
        }
        first = k == 0 ? problem : first;
    }
    return BM_FAIL(BM_ERR_FORMAT, "%s: none of the %zu files can be read: %s",
                   bm_manifest_path(m), bm_manifest_size(m), first.text);
}

static bm_status features_open(bm_importer *i, const char *path)
{
    settings *s = i->settings;
    features *self = NULL;

    BM_TRY(bm_import_open(i, sizeof *self, path, "feats", features_read));
    self = i->self;
    self->mfc_dim = (size_t)s->dim;
    BM_TRY(find_dim(i));
    s->dim = (long)self->dim;
    self->base.frame_shift = s->shift_ms / 1000 * (double)s->chain.subsample;
    BM_TRY(bm_import_refine(i, &s->chain, self->dim));
    return bm_import_describe(i);
}

const bm_importer_ops bm_importer_features = {
    .name = "features",
    .help = "Features in files (.npy, .mfc)",
    .section = "features",
    .options = options,
    .settings_size = sizeof(settings),
    .store = "f32",
    .open = features_open,
    .close = bm_import_close,
    .text = bm_import_text,
    .next = bm_import_next,
    .meta = bm_import_meta,
};
