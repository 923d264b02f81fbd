/*
 * import_images.c - line images to sequences, with the settings of [features].
 * The background is 0 and ink is 1. A frame is some columns of pixels, from
 * left to right, each from top to bottom.
 */
#include "io/import/import_base.h"
#include "io/import/line_image.h"

#include <stdlib.h>
#include <string.h>

typedef struct settings {
    long height, columns, pad;
    const char *invert;
} settings;

static const bm_option options[] = {
    {"height", BM_INT, offsetof(settings, height), "48", 1, 4096, "pixels",
     "height that images are scaled to"},
    {"columns", BM_INT, offsetof(settings, columns), "4", 1, 4096, "pixels",
     "width of a frame"},
    {"pad", BM_INT, offsetof(settings, pad), "0", 0, 4096, "pixels",
     "columns of background added at both ends"},
    {"invert", BM_CHOICE, offsetof(settings, invert), "auto", 0, 0,
     "auto yes no",
     "invert light ink on a dark background; auto: if most of an image is "
     "dark"},
    {0},
};

/* The value of 1 in a stored byte. */
static const double scale = 1.0 / 255;

typedef enum invert { AUTO, YES, NO } invert;

typedef struct images {
    bm_import_base base; /* must be first */
    invert invert;
} images;

/* Grey columns [width, height] to frames; the last is padded. */
static bm_status cut(const settings *s, const uint8_t *grey, size_t width,
                     bool light_ink, bm_frames *x)
{
    size_t height = (size_t)s->height, columns = (size_t)s->columns;
    size_t pad = (size_t)s->pad, all = width + 2 * pad;
    float *y = NULL;

    BM_TRY(bm_frames_shape(x, (all + columns - 1) / columns, columns * height));
    memset(x->x, 0, x->n * x->dim * sizeof *x->x);
    y = x->x + pad * height;
    for (size_t i = 0; i < width * height; i++) {
        uint8_t ink = light_ink ? grey[i] : (uint8_t)(255 - grey[i]);
        y[i] = (float)(ink * scale);
    }
    return BM_OK;
}

static bm_status images_read(bm_importer *i, const bm_manifest_row *row,
                             bm_frames *x, bm_problem *problem)
{
    images *self = i->self;
    const settings *s = i->settings;
    bm_line_image image = {0};
    uint8_t *grey = NULL;
    size_t width = 0;
    bool light_ink = false;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_line_image_read(&image, row->path, problem));
    if (bm_problem_is(problem))
        goto done;
    if (bm_line_image_is_blank(&image))
        self->base.remark = "blank";
    light_ink = self->invert == YES ||
                (self->invert == AUTO && bm_line_image_is_dark(&image));
    BM_TRY_DONE(bm_line_image_columns(&image, (size_t)s->height, &grey, &width,
                                      problem));
    if (!bm_problem_is(problem))
        status = cut(s, grey, width, light_ink, x);
done:
    bm_line_image_free(&image);
    free(grey);
    return status;
}

/* s->invert is borrowed from the configuration, which may be freed later. */
static invert choose(const settings *s)
{
    if (strcmp(s->invert, "auto") == 0)
        return AUTO;
    return strcmp(s->invert, "yes") == 0 ? YES : NO;
}

static bm_status images_open(bm_importer *i, const char *path,
                             double most_missing)
{
    BM_TRY(bm_import_open(i, sizeof(images), path, "image", most_missing,
                          images_read));
    ((images *)i->self)->invert = choose(i->settings);
    return bm_import_describe(i);
}

static void images_meta(const bm_importer *i, bm_shard_meta *meta)
{
    const settings *s = i->settings;

    bm_import_meta(i, meta);
    meta->features = (size_t)s->columns * (size_t)s->height;
    meta->quant_scale = scale;
}

const bm_importer_ops bm_importer_images = {
    .name = "images",
    .help = "Line images (PNG) to columns of pixels",
    .section = "features",
    .options = options,
    .settings_size = sizeof(settings),
    .store = "u8",
    .open = images_open,
    .close = bm_import_close,
    .text = bm_import_text,
    .next = bm_import_next,
    .size = bm_import_size,
    .meta = images_meta,
};
