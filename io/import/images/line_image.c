#include "io/import/images/line_image.h"

#include <math.h>
#include <stdlib.h>

void bm_line_image_free(bm_line_image *image)
{
    free(image->grey);
    *image = (bm_line_image){0};
}

int bm_median_grey(const size_t count[BM_GREYS])
{
    size_t all = 0, below = 0;
    int grey = 0;

    for (int g = 0; g < BM_GREYS; g++)
        all += count[g];
    BM_ASSERT(all > 0);
    while (2 * (below += count[grey]) < all)
        grey++;
    return grey;
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
    if (room > BM_MOST_LINE_PIXELS) {
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
