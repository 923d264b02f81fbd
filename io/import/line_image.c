#include "io/import/line_image.h"

#include "core/file.h"

#include <math.h>
#include <png.h>
#include <stdlib.h>

/* Limit of an image in pixels: 20 m of line at 300 dpi. */
static const size_t most_pixels = (size_t)1 << 25;

/* Limit of a file: such an image in 16-bit colour, not compressed. */
static const size_t most_bytes = (size_t)1 << 28;

/* Grey and alpha to grey on white. */
static void flatten(const uint8_t *pairs, size_t n, uint8_t *grey)
{
    for (size_t i = 0; i < n; i++) {
        unsigned value = pairs[2 * i], alpha = pairs[2 * i + 1];
        grey[i] = (uint8_t)((value * alpha + 255 * (255 - alpha) + 127) / 255);
    }
}

bm_status bm_line_image_read(bm_line_image *out, const char *path,
                             bm_problem *problem)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    uint8_t *pairs = NULL, *grey = NULL;
    char *file = NULL;
    size_t n = 0, size = 0;
    bm_status status = bm_file_read(path, most_bytes, &file, &size);

    if (status != BM_OK)
        return bm_problem_of(status, path, problem);
    if (!png_image_begin_read_from_memory(&png, file, size)) {
        bm_problem_set(problem, "not a PNG image", "%s: %s", path, png.message);
        goto done;
    }
    png.format = PNG_FORMAT_GA;
    n = (size_t)png.width * png.height;
    if (n == 0 || n > most_pixels) {
        bm_problem_set(problem, "too small or too large",
                       "%s: %u x %u pixels: too small or too large for a line",
                       path, png.width, png.height);
        goto done;
    }
    pairs = malloc(2 * n);
    grey = malloc(n);
    if (pairs == NULL || grey == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu pixels of %s", n, path);
    if (!png_image_finish_read(&png, NULL, pairs, 0, NULL)) {
        bm_problem_set(problem, "damaged or truncated", "%s: %s", path,
                       png.message);
        goto done;
    }
    flatten(pairs, n, grey);
    *out = (bm_line_image){grey, png.width, png.height};
    grey = NULL;
done:
    png_image_free(&png);
    free(file);
    free(pairs);
    free(grey);
    return status;
}

void bm_line_image_free(bm_line_image *image)
{
    free(image->grey);
    *image = (bm_line_image){0};
}

bool bm_line_image_is_blank(const bm_line_image *image)
{
    size_t n = image->width * image->height, equal = 0;

    for (size_t i = 0; i < n; i++)
        equal += image->grey[i] == image->grey[0];
    return equal == n;
}

bool bm_line_image_is_dark(const bm_line_image *image)
{
    size_t n = image->width * image->height, dark = 0;

    for (size_t i = 0; i < n; i++)
        dark += image->grey[i] < 128;
    return 2 * dark > n;
}

/* Shrinking: the fraction of pixel i of `to` that pixel j of `from` covers. */
static double covered(size_t i, size_t j, size_t from, size_t to)
{
    size_t a = i * from > j * to ? i * from : j * to;
    size_t b = (i + 1) * from < (j + 1) * to ? (i + 1) * from : (j + 1) * to;

    return b > a ? (double)(b - a) / (double)from : 0;
}

/* The position of the centre of pixel i of `to` among the centres of `from`. */
static double center(size_t i, size_t from, size_t to)
{
    double c = ((double)i + 0.5) * (double)from / (double)to - 0.5;
    return fmin(fmax(c, 0), (double)(from - 1));
}

/* x [from, n] -> y [to, n] */
static void resize(const double *x, size_t from, size_t n, size_t to, double *y)
{
    for (size_t i = 0; i < to; i++, y += n) {
        double c = center(i, from, to);
        size_t first = to <= from ? i * from / to : (size_t)c;
        size_t last = to <= from ? ((i + 1) * from - 1) / to : first + 1;

        for (size_t k = 0; k < n; k++)
            y[k] = 0;
        for (size_t j = first; j <= last && j < from; j++) {
            double w =
                to <= from ? covered(i, j, from, to) : 1 - fabs(c - (double)j);
            for (size_t k = 0; k < n; k++)
                y[k] += w * x[j * n + k];
        }
    }
}

/* x [rows, columns] -> y [columns, rows] */
static void transpose(const double *x, size_t rows, size_t columns, double *y)
{
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < columns; c++)
            y[c * rows + r] = x[r * columns + c];
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

bm_status bm_line_image_columns(const bm_line_image *image, size_t height,
                                uint8_t **out, size_t *width,
                                bm_problem *problem)
{
    size_t w = image->width, h = image->height, n = w * h, room;
    size_t scaled = 0;
    double *a = NULL, *b = NULL;
    uint8_t *columns = NULL;
    bm_status status = BM_OK;

    BM_ASSERT(n > 0 && height > 0);
    scaled = larger((2 * w * height + h) / (2 * h), 1);
    room = larger(n, larger(w, scaled) * height);
    if (room > most_pixels) {
        bm_problem_set(problem, "too small or too large",
                       "%zu x %zu pixels: too large for a line", w, h);
        return BM_OK;
    }
    a = malloc(room * sizeof *a);
    b = malloc(room * sizeof *b);
    columns = malloc(scaled * height);
    if (a == NULL || b == NULL || columns == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu pixels", room);
    for (size_t i = 0; i < n; i++)
        a[i] = image->grey[i];
    resize(a, h, w, height, b);
    transpose(b, height, w, a);
    resize(a, w, height, scaled, b);
    for (size_t i = 0; i < scaled * height; i++)
        columns[i] = (uint8_t)(b[i] + 0.5 + 1e-9); /* rounds halves up */
    *out = columns;
    *width = scaled;
    columns = NULL;
done:
    free(a);
    free(b);
    free(columns);
    return status;
}
