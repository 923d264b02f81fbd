/*
 * import_unipen.c - segments of UNIPEN files to frames of the pen's path, with
 * the settings of [features]: the frames of pen_features.h, then the chain of
 * feature_chain.h.
 */
#include "io/import/import_base.h"
#include "io/import/pen/pen_features.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct pen_settings {
    const char *level;
    double step;
    bm_chain_settings chain;
} pen_settings;

#define ROW(key, type) #key, type, offsetof(pen_settings, key)
#define CHAIN(key, type, fallback, min, max, unit, help)                       \
    BM_CHAIN_ROW(pen_settings, key, type, fallback, min, max, unit, help)

static const bm_option options[] = {
    {ROW(level, BM_TEXT), "", 0, 0, "TYPE",
     "type of the segments, such as WORD; default: that of the first with a "
     "label"},
    {ROW(step, BM_FLOAT), "0.1", 0.001, 10, "heights",
     "distance of points on the path, in median heights of a writer's "
     "segments"},
    CHAIN(deltas, BM_INT, "0", 0, BM_DELTA_ORDER, NULL,
          "1: add slopes along the path; 2: and slopes of slopes"),
    CHAIN(delta_window, BM_INT, "2", 1, BM_DELTA_WINDOW, "frames",
          "frames on each side for a slope"),
    CHAIN(stack, BM_INT, "1", 1, 64, "frames",
          "number of frames put side by side into one: a frame and those "
          "after it"),
    CHAIN(subsample, BM_INT, "1", 1, 64, "frames",
          "keep the first of this many"),
    CHAIN(normalise, BM_CHOICE, "none", 0, 0, "none utterance speaker global",
          "over what features are normalised to mean 0"),
    CHAIN(variance, BM_FLAG, "yes", 0, 0, NULL,
          "normalise to variance 1 as well"),
    {0},
};

/* Of a thread: the last file. */
typedef struct thread_state {
    char path[4096];
    bm_unipen ink;
    bm_pen_path segment;
} thread_state;

typedef struct unipen {
    bm_import_base base; /* must be first */
    double step;
    double *heights; /* [speakers]: medians; 0: not known */
} unipen;

static void close_thread_state(void *own)
{
    thread_state *t = own;

    bm_unipen_free(&t->ink);
    free(t->segment.parts);
    free(t);
}

static bm_status open_thread_state(const bm_importer *i, void **own)
{
    (void)i;
    *own = calloc(1, sizeof(thread_state));
    return *own != NULL ? BM_OK
                        : BM_FAIL(BM_ERR_MEMORY, "no memory to read a file");
}

/* The path of a row: t->segment, or a problem. */
static bm_status find_path(thread_state *t, const bm_manifest_row *row,
                           bm_problem *problem)
{
    const char *why = NULL;

    if (strcmp(t->path, row->path) != 0) {
        bm_status status = BM_OK;

        t->path[0] = '\0';
        bm_unipen_free(&t->ink);
        status = bm_unipen_read(&t->ink, row->path, true);
        if (status == BM_ERR_FORMAT) {
            bm_problem_set(problem, "damaged", "%s", bm_last_message());
            return BM_OK;
        }
        if (status != BM_OK)
            return bm_problem_of(status, row->path, problem);
        snprintf(t->path, sizeof t->path, "%s", row->path);
    }
    BM_TRY(bm_unipen_path(&t->ink, row->shape, &t->segment, &why));
    if (why != NULL)
        bm_problem_set(problem, "delineation that cannot be followed",
                       "%s:%zu: %s: \"%.60s\"", row->path, row->line, why,
                       row->shape);
    return BM_OK;
}

static bm_status unipen_read(bm_importer *i, bm_import_reader *r,
                             const bm_manifest_row *row)
{
    const unipen *self = i->self;
    thread_state *t = r->own;
    double height = self->heights[row->speaker_number];

    BM_TRY(find_path(t, row, &r->problem));
    if (bm_problem_is(&r->problem))
        return BM_OK;
    if (height > 0)
        BM_TRY(bm_pen_frames(&t->ink, &t->segment, height, self->step,
                             &r->frames));
    if (height <= 0 || r->frames.n == 0)
        bm_problem_set(&r->problem, "without a path",
                       "%s:%zu: fewer than two points, or a height that does "
                       "not fit them",
                       row->path, row->line);
    return BM_OK;
}

/* ---- heights ------------------------------------------------------------- */

typedef struct measured {
    size_t speaker;
    double height;
} measured;

static int by_speaker(const void *left, const void *right)
{
    const measured *a = left, *b = right;

    if (a->speaker != b->speaker)
        return a->speaker < b->speaker ? -1 : 1;
    return (a->height > b->height) - (a->height < b->height);
}

/* The lower median of each speaker's heights that are above 0. */
static void take_medians(double *heights, const measured *all, size_t n)
{
    for (size_t begin = 0, end = 0; begin < n; begin = end) {
        while (end < n && all[end].speaker == all[begin].speaker)
            end++;
        heights[all[begin].speaker] = all[begin + (end - begin - 1) / 2].height;
    }
}

static bm_status measure(unipen *self)
{
    const bm_manifest *m = self->base.manifest;
    size_t n = bm_manifest_size(m), known = 0;
    measured *all = malloc(n * sizeof *all);
    void *t = NULL;
    bm_status status = BM_OK;

    self->heights = calloc(bm_manifest_speakers(m), sizeof *self->heights);
    if (all == NULL || self->heights == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu segments", n);
    BM_TRY_DONE(open_thread_state(NULL, &t));
    for (size_t k = 0; k < n; k++) {
        bm_manifest_row row = bm_manifest_at(m, k);
        bm_problem problem = {0};
        double height = 0;

        BM_TRY_DONE(find_path(t, &row, &problem));
        if (!bm_problem_is(&problem))
            height = bm_pen_height(&((thread_state *)t)->ink,
                                   &((thread_state *)t)->segment);
        if (height > 0)
            all[known++] = (measured){row.speaker_number, height};
    }
    qsort(all, known, sizeof *all, by_speaker);
    take_medians(self->heights, all, known);
done:
    if (t != NULL)
        close_thread_state(t);
    free(all);
    return status;
}

static bm_status unipen_open(bm_importer *i, const bm_import_source *source)
{
    static const bm_import_parts parts = {.kind = "unipen",
                                          .read = unipen_read,
                                          .open_own = open_thread_state,
                                          .close_own = close_thread_state};
    pen_settings *s = i->settings;
    unipen *self = NULL;
    bm_import_source with = *source;

    with.level = s->level;
    BM_TRY(bm_import_open(i, sizeof *self, &with, &parts));
    self = i->self;
    s->level = bm_manifest_level(self->base.manifest);
    self->step = s->step;
    BM_TRY(measure(self));
    return bm_import_refine(i, &s->chain, BM_PEN_FEATURES);
}

static void unipen_close(bm_importer *i)
{
    unipen *self = i->self;

    if (self == NULL)
        return;
    free(self->heights);
    bm_import_close(i);
}

const bm_importer_ops bm_importer_unipen = {
    .name = "unipen",
    .kind = "unipen",
    .help = "Paths of a pen, in UNIPEN's format",
    .section = "features",
    .options = options,
    .settings_size = sizeof(pen_settings),
    .store = "f32",
    .open = unipen_open,
    .close = unipen_close,
    .meta = bm_import_meta,
    BM_IMPORT_ROWS,
};
