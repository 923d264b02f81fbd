#include "io/import/images/image_cleaning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SLANT = 45 /* degrees */ };

static const double degree = 3.14159265358979323846 / 180;

static void count_greys(const bm_line_image *image, size_t *count)
{
    memset(count, 0, BM_GREYS * sizeof *count);
    for (size_t i = 0; i < image->width * image->height; i++)
        count[image->grey[i]]++;
}

/* ---- contrast ------------------------------------------------------------- */

void bm_image_stretch(bm_line_image *image)
{
    size_t n = image->width * image->height, few = n / 100;
    size_t count[BM_GREYS], below = 0, above = 0;
    int low = 0, high = BM_GREYS - 1;

    count_greys(image, count);
    while (low < BM_GREYS - 1 && (below += count[low]) <= few)
        low++;
    while (high > 0 && (above += count[high]) <= few)
        high--;
    if (low >= high)
        return;
    for (size_t i = 0; i < n; i++) {
        int grey = image->grey[i] < low    ? low
                   : image->grey[i] > high ? high
                                           : image->grey[i];
        image->grey[i] =
            (uint8_t)((510 * (grey - low) + high - low) / (2 * (high - low)));
    }
}

/* ---- black and white ------------------------------------------------------ */

void bm_image_otsu(bm_line_image *image)
{
    size_t n = image->width * image->height, count[BM_GREYS], dark = 0;
    double sum = 0, dark_sum = 0, best = 0;
    int threshold = -1;

    count_greys(image, count);
    for (int g = 0; g < BM_GREYS; g++)
        sum += (double)count[g] * g;
    for (int g = 0; g < BM_GREYS - 1; g++) {
        double difference = 0, between = 0;

        dark += count[g];
        dark_sum += (double)count[g] * g;
        if (dark == 0 || dark == n)
            continue;
        difference =
            dark_sum / (double)dark - (sum - dark_sum) / (double)(n - dark);
        between = (double)dark * (double)(n - dark) * difference * difference;
        if (between > best) {
            best = between;
            threshold = g;
        }
    }
    for (size_t i = 0; i < n && threshold >= 0; i++)
        image->grey[i] = image->grey[i] <= threshold ? 0 : 255;
}

/* Sums of greys and of their squares over the rows and columns before a pixel:
 * [height + 1, width + 1]. */
typedef struct sums {
    uint64_t *grey, *square;
    size_t width;
} sums;

static void add_up(const bm_line_image *image, const sums *s)
{
    for (size_t y = 0; y < image->height; y++) {
        uint64_t row = 0, squares = 0;

        for (size_t x = 0; x < image->width; x++) {
            uint64_t grey = image->grey[y * image->width + x];
            size_t at = (y + 1) * s->width + x + 1;

            row += grey;
            squares += grey * grey;
            s->grey[at] = s->grey[at - s->width] + row;
            s->square[at] = s->square[at - s->width] + squares;
        }
    }
}

static double over(const uint64_t *sum, size_t width, const size_t *from,
                   const size_t *to)
{
    return (
        double)(sum[to[1] * width + to[0]] + sum[from[1] * width + from[0]] -
                sum[from[1] * width + to[0]] - sum[to[1] * width + from[0]]);
}

/* A range of `reach` pixels on both sides of one, within the image. */
static void range(size_t at, size_t reach, size_t size, size_t *from,
                  size_t *to)
{
    *from = at > reach ? at - reach : 0;
    *to = at + reach + 1 < size ? at + reach + 1 : size;
}

bm_status bm_image_sauvola(bm_line_image *image)
{
    size_t reach = image->height / 4 > 7 ? image->height / 4 : 7;
    size_t width = image->width, room = (width + 1) * (image->height + 1);
    sums s = {calloc(room, sizeof *s.grey), calloc(room, sizeof *s.square),
              width + 1};
    bm_status status = BM_OK;

    if (s.grey == NULL || s.square == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu pixels", room);
    add_up(image, &s);
    for (size_t i = 0; i < width * image->height; i++) {
        size_t from[2], to[2];
        double n = 0, mean = 0, deviation = 0;

        range(i % width, reach, width, &from[0], &to[0]);
        range(i / width, reach, image->height, &from[1], &to[1]);
        n = (double)((to[0] - from[0]) * (to[1] - from[1]));
        mean = over(s.grey, s.width, from, to) / n;
        deviation =
            sqrt(fmax(over(s.square, s.width, from, to) / n - mean * mean, 0));
        image->grey[i] =
            image->grey[i] <= mean * (1 + 0.2 * (deviation / 128 - 1)) ? 0
                                                                       : 255;
    }
done:
    free(s.grey);
    free(s.square);
    return status;
}

/* ---- slant ---------------------------------------------------------------- */

/* How far a row moves to the right if the image is sheared by a tangent about
 * its lower edge. */
static double shift_of(size_t row, size_t height, double tangent)
{
    return -((double)(height - row) - 0.5) * tangent;
}

/* The sum of squares of the columns' ink after a shear. */
static double sharpness(const bm_line_image *image, double tangent,
                        double *columns)
{
    size_t reach = image->height + 1; /* the tangent is at most 1 */
    size_t room = image->width + 2 * reach + 1;
    double sum = 0;

    memset(columns, 0, room * sizeof *columns);
    for (size_t y = 0; y < image->height; y++) {
        double shift = (double)reach + shift_of(y, image->height, tangent);
        double rest = shift - floor(shift);
        double *to = columns + (size_t)shift;
        const uint8_t *row = image->grey + y * image->width;

        for (size_t x = 0; x < image->width; x++) {
            double ink = 255 - row[x];

            to[x] += (1 - rest) * ink;
            to[x + 1] += rest * ink;
        }
    }
    for (size_t x = 0; x < room; x++)
        sum += columns[x] * columns[x];
    return sum;
}

/* The tangent of the shear that makes strokes upright. */
static double find_slant(const bm_line_image *image, double *columns)
{
    double most = sharpness(image, 0, columns), best = 0;

    for (int k = 1; k <= MOST_SLANT; k++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double tangent = sign * fmin(tan(k * degree), 1);
            double here = sharpness(image, tangent, columns);

            if (here > most * (1 + 1e-9)) {
                most = here;
                best = tangent;
            }
        }
    return best;
}

/* Moves rows by parts of pixels; what comes in is paper. */
static void shear(const bm_line_image *from, double tangent, double left,
                  const bm_line_image *to)
{
    size_t count[BM_GREYS];
    int paper = 0;

    count_greys(from, count);
    paper = bm_median_grey(count);
    for (size_t y = 0; y < from->height; y++) {
        double shift = left + shift_of(y, from->height, tangent);

        for (size_t x = 0; x < to->width; x++) {
            double at = (double)x - shift, first = floor(at), sum = 0;

            for (int k = 0; k < 2; k++) {
                double column = first + k;
                double weight = k == 0 ? 1 - (at - first) : at - first;
                bool inside = column >= 0 && column < (double)from->width;

                sum += weight *
                       (inside ? from->grey[y * from->width + (size_t)column]
                               : paper);
            }
            to->grey[y * to->width + x] = (uint8_t)(sum + 0.5);
        }
    }
}

bm_status bm_image_upright(bm_line_image *image, double *moved)
{
    size_t room = image->width + 2 * image->height + 4;
    double *columns = malloc(room * sizeof *columns), tangent = 0, grown = 0;
    double left = 0, height = (double)image->height;
    bm_line_image out = {0};
    bm_status status = BM_OK;

    if (columns == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu columns", room);
    *moved = 0;
    tangent = find_slant(image, columns);
    if (tangent == 0)
        goto done;
    grown = ceil(fabs(tangent) * height);
    left = tangent > 0 ? grown : 0;
    out = (bm_line_image){NULL, image->width + (size_t)grown, image->height};
    out.grey = malloc(out.width * out.height);
    if (out.grey == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu x %zu pixels", out.width,
                     out.height);
    shear(image, tangent, left, &out);
    *moved = left - height / 2 * tangent;
    bm_line_image_free(image);
    *image = out;
done:
    free(columns);
    return status;
}
