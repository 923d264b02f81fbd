#include "io/import/images/image_frames.h"

#include "io/import/images/image_cleaning.h"

#include <stdlib.h>
#include <string.h>

/* A row of the option table. */
#define ROW(key, type) #key, type, offsetof(bm_image_settings, key)

const bm_option bm_image_options[] = {
    {ROW(height, BM_INT), "48", 1, 4096, "pixels",
     "height that images are scaled to"},
    {ROW(columns, BM_INT), "1", 1, 4096, "pixels", "width of a frame"},
    {ROW(pad, BM_INT), "0", 0, 4096, "pixels",
     "columns of paper added at both ends"},
    {ROW(invert, BM_CHOICE), "auto", 0, 0, "auto yes no",
     "invert light ink on a dark background; auto: if most of an image is "
     "dark"},
    {ROW(contrast, BM_FLAG), "no", 0, 0, NULL,
     "stretch greys: the darkest percent of the pixels to black, the lightest "
     "to white"},
    {ROW(slant, BM_FLAG), "no", 0, 0, NULL,
     "shear so that slanted strokes become upright"},
    {ROW(right_to_left, BM_CHOICE), "auto", 0, 0, "auto yes no",
     "frames begin at the right end of a line; auto: if most of its set's "
     "texts "
     "with letters are Hebrew, Arabic or the like, or as --vocab has it"},
    {ROW(binarise, BM_CHOICE), "no", 0, 0, "no otsu sauvola",
     "make pixels black or white before they are scaled; otsu: by one "
     "threshold, sauvola: by the neighbourhood"},
    {0},
};

const double bm_image_scale = 1.0 / 255;

bm_image_plan bm_image_plan_of(const bm_image_settings *s)
{
    bm_image_plan p = {
        .height = (size_t)s->height,
        .columns = (size_t)s->columns,
        .pad = (size_t)s->pad,
        .contrast = s->contrast,
        .slant = s->slant,
        .right_to_left = strcmp(s->right_to_left, "yes") == 0,
        .invert = BM_INVERT_NO,
        .binarise = BM_BINARISE_NO,
    };

    if (strcmp(s->invert, "auto") == 0)
        p.invert = BM_INVERT_AUTO;
    else if (strcmp(s->invert, "yes") == 0)
        p.invert = BM_INVERT_YES;
    if (strcmp(s->binarise, "otsu") == 0)
        p.binarise = BM_BINARISE_OTSU;
    else if (strcmp(s->binarise, "sauvola") == 0)
        p.binarise = BM_BINARISE_SAUVOLA;
    return p;
}

static float ink_of(int grey, bool light_ink)
{
    return (float)((light_ink ? grey : 255 - grey) * bm_image_scale);
}

static float ink_of_paper(const uint8_t *grey, size_t n, bool light_ink)
{
    size_t count[BM_GREYS] = {0};

    for (size_t i = 0; i < n; i++)
        count[grey[i]]++;
    return ink_of(bm_median_grey(count), light_ink);
}

/* Grey columns [width, height] to frames; around them is paper. */
static bm_status cut(const bm_image_plan *p, const uint8_t *grey, size_t width,
                     bool light_ink, bm_frames *x)
{
    size_t all = width + 2 * p->pad;
    float paper = ink_of_paper(grey, width * p->height, light_ink), *y = NULL;

    BM_TRY(bm_frames_shape(x, (all + p->columns - 1) / p->columns,
                           p->columns * p->height));
    for (size_t i = 0; i < x->n * x->dim; i++)
        x->x[i] = paper;
    y = x->x + p->pad * p->height;
    for (size_t i = 0; i < width; i++) {
        size_t from = p->right_to_left ? width - 1 - i : i;
        const uint8_t *column = grey + from * p->height;

        for (size_t k = 0; k < p->height; k++)
            *y++ = ink_of(column[k], light_ink);
    }
    return BM_OK;
}

/* *out: a copy with dark ink, cleaned as the plan says; *moved: as of
 * bm_image_upright. */
static bm_status clean(const bm_image_plan *p, const bm_line_image *image,
                       bool light_ink, bm_line_image *out, double *moved)
{
    size_t n = image->width * image->height;

    *out = (bm_line_image){malloc(n), image->width, image->height};
    if (out->grey == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu pixels", n);
    for (size_t i = 0; i < n; i++)
        out->grey[i] =
            light_ink ? (uint8_t)(255 - image->grey[i]) : image->grey[i];
    if (p->contrast)
        bm_image_stretch(out);
    if (p->slant)
        BM_TRY(bm_image_upright(out, moved));
    if (p->binarise == BM_BINARISE_OTSU)
        bm_image_otsu(out);
    else if (p->binarise == BM_BINARISE_SAUVOLA)
        BM_TRY(bm_image_sauvola(out));
    return BM_OK;
}

/* Of `width` scaled columns of an image that was moved to the right. */
static bm_image_places find_places(const bm_image_plan *p,
                                   const bm_line_image *image, size_t width,
                                   double moved)
{
    double scale = (double)image->height / (double)p->height;
    double pad = (double)p->pad, step = (double)p->columns * scale;

    if (p->right_to_left)
        return (bm_image_places){((double)width + pad) * scale - moved, -step};
    return (bm_image_places){-pad * scale - moved, step};
}

bm_status bm_image_frames(const bm_image_plan *plan, const bm_line_image *image,
                          bm_frames *x, bm_image_places *places,
                          bm_problem *problem)
{
    bool cleans =
        plan->contrast || plan->slant || plan->binarise != BM_BINARISE_NO;
    bool light_ink =
        plan->invert == BM_INVERT_YES ||
        (plan->invert == BM_INVERT_AUTO && bm_line_image_is_dark(image));
    bm_line_image cleaned = {0};
    uint8_t *grey = NULL;
    size_t width = 0;
    double moved = 0; /* by cleaning, pixels to the right */
    bm_status status = BM_OK;

    if (cleans)
        BM_TRY_DONE(clean(plan, image, light_ink, &cleaned, &moved));
    BM_TRY_DONE(bm_line_image_columns(cleans ? &cleaned : image, plan->height,
                                      &grey, &width, problem));
    if (!bm_problem_is(problem))
        status = cut(plan, grey, width, light_ink && !cleans, x);
    if (places != NULL)
        *places = find_places(plan, image, width, moved);
done:
    bm_line_image_free(&cleaned);
    free(grey);
    return status;
}
