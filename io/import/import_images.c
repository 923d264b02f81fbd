/* import_images.c - line images to sequences, with the settings of [features]:
 * the frames of image_frames.h. */
#include "io/import/image_frames.h"
#include "io/import/import_base.h"

typedef struct images {
    bm_import_base base; /* must be first */
    bm_invert invert;
} images;

static bm_status images_read(bm_importer *i, const bm_manifest_row *row,
                             bm_frames *x, bm_problem *problem)
{
    images *self = i->self;
    bm_line_image image = {0};
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_line_image_read(&image, row->path, problem));
    if (bm_problem_is(problem))
        goto done;
    if (bm_line_image_is_blank(&image))
        self->base.remark = "blank";
    status = bm_image_frames(i->settings, self->invert, &image, x, problem);
done:
    bm_line_image_free(&image);
    return status;
}

static bm_status images_open(bm_importer *i, const char *path,
                             double most_missing)
{
    BM_TRY(bm_import_open(i, sizeof(images), path, "image", most_missing,
                          images_read));
    /* The text is borrowed from the configuration, which may be freed. */
    ((images *)i->self)->invert = bm_image_invert(i->settings);
    return bm_import_describe(i);
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
    .help = "Line images (PNG) to columns of pixels",
    .section = "features",
    .options = bm_image_options,
    .settings_size = sizeof(bm_image_settings),
    .store = "u8",
    .open = images_open,
    .close = bm_import_close,
    .text = bm_import_text,
    .next = bm_import_next,
    .size = bm_import_size,
    .meta = images_meta,
};
