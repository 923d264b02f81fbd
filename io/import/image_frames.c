#include "io/import/image_frames.h"

#include <stdlib.h>
#include <string.h>

const bm_option bm_image_options[] = {
    {"height", BM_INT, offsetof(bm_image_settings, height), "48", 1, 4096,
     "pixels", "height that images are scaled to"},
    {"columns", BM_INT, offsetof(bm_image_settings, columns), "4", 1, 4096,
     "pixels", "width of a frame"},
    {"pad", BM_INT, offsetof(bm_image_settings, pad), "0", 0, 4096, "pixels",
     "columns of background added at both ends"},
    {"invert", BM_CHOICE, offsetof(bm_image_settings, invert), "auto", 0, 0,
     "auto yes no",
     "invert light ink on a dark background; auto: if most of an image is "
     "dark"},
    {0},
};

const double bm_image_scale = 1.0 / 255;

bm_invert bm_image_invert(const bm_image_settings *s)
{
    if (strcmp(s->invert, "auto") == 0)
        return BM_INVERT_AUTO;
    return strcmp(s->invert, "yes") == 0 ? BM_INVERT_YES : BM_INVERT_NO;
}

/* Grey columns [width, height] to frames. */
static bm_status cut(const bm_image_settings *s, const uint8_t *grey,
                     size_t width, bool light_ink, bm_frames *x)
{
    size_t height = (size_t)s->height, columns = (size_t)s->columns;
    size_t pad = (size_t)s->pad, all = width + 2 * pad;
    float *y = NULL;

    BM_TRY(bm_frames_shape(x, (all + columns - 1) / columns, columns * height));
    memset(x->x, 0, x->n * x->dim * sizeof *x->x);
    y = x->x + pad * height;
    for (size_t i = 0; i < width * height; i++) {
        uint8_t ink = light_ink ? grey[i] : (uint8_t)(255 - grey[i]);
        y[i] = (float)(ink * bm_image_scale);
    }
    return BM_OK;
}

bm_status bm_image_frames(const bm_image_settings *s, bm_invert invert,
                          const bm_line_image *image, bm_frames *x,
                          bm_problem *problem)
{
    uint8_t *grey = NULL;
    size_t width = 0;
    bool light_ink = invert == BM_INVERT_YES ||
                     (invert == BM_INVERT_AUTO && bm_line_image_is_dark(image));
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_line_image_columns(image, (size_t)s->height, &grey, &width,
                                      problem));
    if (!bm_problem_is(problem))
        status = cut(s, grey, width, light_ink, x);
done:
    free(grey);
    return status;
}
