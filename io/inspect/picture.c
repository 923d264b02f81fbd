#include "io/inspect/picture.h"

#include "core/file/file.h"
#include "core/size.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ----------------------------------------------------------------- */

static const size_t most_pixels = (size_t)1 << 27;

bm_status bm_picture_new(bm_picture *p, size_t width, size_t height)
{
    size_t n = bm_size_mul(width, height);

    if (n > most_pixels)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "a picture of %zu x %zu pixels is too large", width,
                       height);
    p->rgb = malloc(3 * n + 1);
    if (p->rgb == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu x %zu pixels", width,
                       height);
    memset(p->rgb, 255, 3 * n);
    p->width = width;
    p->height = height;
    return BM_OK;
}

void bm_picture_free(bm_picture *p)
{
    free(p->rgb);
    *p = (bm_picture){0};
}

/* ---- drawing ---------------------------------------------------------------- */

size_t bm_drawing_zoom(const bm_layout *l)
{
    size_t height = bm_layout_width(l);

    return height < 100 ? (100 + height / 2) / (height > 0 ? height : 1) : 1;
}

size_t bm_drawing_width(const bm_drawing *d, size_t frames)
{
    return bm_size_mul(bm_layout_strips(&d->layout, frames), d->zoom);
}

size_t bm_drawing_height(const bm_drawing *d)
{
    return bm_layout_width(&d->layout) * d->zoom;
}

/* Ink on paper; not a number: as background. */
static void ink(float value, uint8_t rgb[3])
{
    float x = value > 1 ? 1 : value > 0 ? value : 0;

    memset(rgb, (int)(255 - 255 * x + 0.5f), 3);
}

/* Viridis at tenths, linear in between. */
static void colour(float x, uint8_t rgb[3])
{
    static const uint8_t tenths[][3] = {
        {68, 1, 84},    {72, 36, 117},  {65, 68, 135},  {53, 95, 141},
        {42, 120, 142}, {33, 145, 140}, {34, 168, 132}, {68, 191, 112},
        {122, 209, 81}, {189, 223, 38}, {253, 231, 37},
    };
    float at = x > 0 ? (x < 1 ? 10 * x : 10) : 0;
    size_t k = at < 10 ? (size_t)at : 9;
    float f = at - (float)k;

    for (int c = 0; c < 3; c++)
        rgb[c] = (uint8_t)((1 - f) * (float)tenths[k][c] +
                           f * (float)tenths[k + 1][c] + 0.5f);
}

/* Fills a square of d->zoom pixels. */
static void square(bm_picture *p, const bm_drawing *d, size_t left, size_t top,
                   const uint8_t rgb[3])
{
    for (size_t y = top; y < top + d->zoom; y++)
        for (size_t x = left; x < left + d->zoom; x++)
            memcpy(p->rgb + 3 * (y * p->width + x), rgb, 3);
}

void bm_picture_draw(bm_picture *p, const bm_drawing *d, const float *x,
                     size_t frames, size_t top)
{
    size_t strips = bm_layout_strips(&d->layout, frames),
           height = bm_layout_width(&d->layout);
    bool image = d->layout.kind == BM_FRAMES_IMAGE;
    float range = d->high > d->low ? d->high - d->low : 1;

    BM_ASSERT(strips * d->zoom <= p->width &&
              top + height * d->zoom <= p->height);
    for (size_t i = 0; i < strips; i++)
        for (size_t j = 0; j < height; j++) {
            float value = x[i * height + j];
            size_t row = image ? j : height - 1 - j;
            uint8_t rgb[3];

            if (image)
                ink(value, rgb);
            else
                colour((value - d->low) / range, rgb);
            square(p, d, i * d->zoom, top + row * d->zoom, rgb);
        }
}

/* ---- files ------------------------------------------------------------------ */

bm_status bm_picture_write(const bm_picture *p, const char *path)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = (png_uint_32)p->width,
                     .height = (png_uint_32)p->height,
                     .format = PNG_FORMAT_RGB};
    png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(png);
    void *bytes = malloc(size);
    bm_status status = BM_OK;

    if (bytes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    if (png_image_write_to_memory(&png, bytes, &size, 0, p->rgb, 0, NULL))
        status = bm_file_write(path, bytes, size);
    else
        status = BM_FAIL(BM_ERR_MEMORY, "%s: %s", path, png.message);
    png_image_free(&png);
    free(bytes);
    return status;
}
