/* import_images.c - line images to sequences, with the settings of [features]:
 * the frames of image_frames.h. */
#include "io/import/images/image_file.h"
#include "io/import/images/image_frames.h"
#include "io/import/images/line_cut.h"
#include "io/import/import_base.h"
#include "io/import/lines/text_direction.h"

#include <stdlib.h>
#include <string.h>

typedef struct images {
    bm_import_base base; /* must be first */
    bm_image_plan plan;
} images;

/* The page of the last line that a thread cut out of one. */
typedef struct page {
    char *path; /* NULL: there was none yet */
    bm_line_image image;
    bm_problem problem; /* with the image */
} page;

static void close_page(void *own)
{
    page *p = own;

    free(p->path);
    bm_line_image_free(&p->image);
    free(p);
}

/* *out <- the image at `path`, the reader's own. */
static bm_status turn_to(bm_import_reader *r, const char *path, page **out)
{
    page *p = r->own = r->own != NULL ? r->own : calloc(1, sizeof *p);

    if (p == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    *out = p;
    if (p->path != NULL && strcmp(p->path, path) == 0)
        return BM_OK;
    free(p->path);
    bm_line_image_free(&p->image);
    p->problem.text[0] = '\0';
    p->path = strdup(path);
    if (p->path == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    return bm_image_file_read(&p->image, path, BM_MOST_PAGE_PIXELS,
                              &p->problem);
}

static bm_status cut_out(bm_import_reader *r, const bm_manifest_row *row,
                         bm_line_image *out)
{
    bm_line_shape shape = {0};
    page *p = NULL;
    bm_status status = BM_OK;

    BM_TRY(turn_to(r, row->path, &p));
    if (bm_problem_is(&p->problem)) {
        r->problem = p->problem;
        return BM_OK;
    }
    BM_TRY(bm_line_shape_read(&shape, row->shape));
    status = bm_line_cut(out, &p->image, &shape, row->path, &r->problem);
    bm_line_shape_free(&shape);
    return status;
}

/* A rule or a speck among lines has few rows, and becomes a long sequence. */
enum { LOW = 8 };

static bm_status images_read(bm_importer *i, bm_import_reader *r,
                             const bm_manifest_row *row)
{
    const images *self = i->self;
    bm_line_image image = {0};
    bm_status status = BM_OK;

    if (row->shape[0] != '\0')
        BM_TRY_DONE(cut_out(r, row, &image));
    else
        BM_TRY_DONE(bm_image_file_read(&image, row->path, BM_MOST_LINE_PIXELS,
                                       &r->problem));
    if (bm_problem_is(&r->problem))
        goto done;
    if (bm_line_image_is_blank(&image))
        r->remark = "blank";
    else if (self->plan.height > LOW * image.height)
        r->remark = "enlarged more than eight times";
    status =
        bm_image_frames(&self->plan, &image, &r->frames, NULL, &r->problem);
done:
    bm_line_image_free(&image);
    return status;
}

/* Decides features.right_to_left = auto. */
static void find_direction(const bm_importer *i, const bm_import_source *source)
{
    bm_image_settings *s = i->settings;
    const bm_import_base *b = i->self;
    bool logs = i->comm == NULL || bm_comm_rank(i->comm) == 0, yes = false;

    if (strcmp(s->right_to_left, "auto") != 0)
        return;
    yes = source->like != NULL ? bm_features_right_to_left(source->like)
                               : bm_texts_run_left(b->manifest, logs);
    s->right_to_left = yes ? "yes" : "no";
}

static bm_status images_open(bm_importer *i, const bm_import_source *source)
{
    static const bm_import_parts parts = {
        .kind = "image", .read = images_read, .close_own = close_page};

    BM_TRY(bm_import_open(i, sizeof(images), source, &parts));
    find_direction(i, source);
    ((images *)i->self)->plan = bm_image_plan_of(i->settings);
    return BM_OK;
}

static void images_meta(const bm_importer *i, bm_shard_meta *meta)
{
    const bm_image_settings *s = i->settings;

    bm_import_meta(i, meta);
    meta->features = (size_t)s->columns * (size_t)s->height;
    meta->quant_scale = bm_image_scale;
}

const bm_importer_ops bm_importer_images = {
    .name = "images",
    .kind = "images",
    .help = "Line images (PNG, JPEG, TIFF, PGM) to columns of pixels",
    .section = "features",
    .options = bm_image_options,
    .settings_size = sizeof(bm_image_settings),
    .store = "u8",
    .open = images_open,
    .close = bm_import_close,
    .meta = images_meta,
    BM_IMPORT_ROWS,
};
