/*
 * image_exif.c - a JPEG is segments: 0xff, a marker, two bytes of length that
 * count themselves, largest first. APP1 with "Exif\0\0" holds a TIFF header, and
 * a list of entries of 12 bytes: tag, type, count, value.
 */
#include "io/import/images/image_exif.h"

#include <stdlib.h>
#include <string.h>

enum { APP1 = 0xe1, SCAN = 0xda, ORIENTATION = 274, SHORT = 3, ENTRY = 12 };

/* Bytes in the order of a TIFF header. */
typedef struct tiff {
    const uint8_t *bytes;
    size_t size;
    bool little;
} tiff;

static unsigned two(const tiff *t, size_t at)
{
    unsigned a = t->bytes[at], b = t->bytes[at + 1];

    return t->little ? a | b << 8 : a << 8 | b;
}

static size_t four(const tiff *t, size_t at)
{
    size_t a = two(t, at), b = two(t, at + 2);

    return t->little ? a | b << 16 : a << 16 | b;
}

/* That of the first list of entries. */
int bm_exif_orientation_of_notes(const uint8_t *notes, size_t size)
{
    tiff t = {notes, size, false};
    size_t at = 0, n = 0;

    if (t.size < 8 ||
        (memcmp(t.bytes, "II*\0", 4) != 0 && memcmp(t.bytes, "MM\0*", 4) != 0))
        return 1;
    t.little = t.bytes[0] == 'I';
    at = four(&t, 4);
    if (at > t.size - 2)
        return 1;
    n = two(&t, at);
    for (at += 2; n > 0 && at + ENTRY <= t.size; n--, at += ENTRY)
        if (two(&t, at) == ORIENTATION && two(&t, at + 2) == SHORT) {
            unsigned value = two(&t, at + 8);

            return value >= 1 && value <= 8 ? (int)value : 1;
        }
    return 1;
}

int bm_exif_orientation(const uint8_t *jpeg, size_t size)
{
    static const char exif[6] = "Exif\0";
    size_t at = 2; /* after the start of the image */

    while (at + 4 <= size && jpeg[at] == 0xff && jpeg[at + 1] != SCAN) {
        size_t length = (size_t)jpeg[at + 2] << 8 | jpeg[at + 3];
        const uint8_t *data = jpeg + at + 4;

        if (jpeg[at + 1] == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        if (length < 2 || length > size - at - 2)
            return 1;
        if (jpeg[at + 1] == APP1 && length >= 2 + sizeof exif &&
            memcmp(data, exif, sizeof exif) == 0)
            return bm_exif_orientation_of_notes(data + sizeof exif,
                                                length - 2 - sizeof exif);
        at += 2 + length;
    }
    return 1;
}

/* The pixel of the stored image [h, w] that is at (x, y) of the upright one.
 * Orientations 1 to 4 keep rows, 5 to 8 make columns of them. */
static uint8_t pixel(const bm_line_image *s, int orientation, size_t x,
                     size_t y)
{
    bool turned = orientation >= 5;
    size_t column = turned ? y : x, row = turned ? x : y;

    if (orientation == 2 || orientation == 3 || orientation == 7 ||
        orientation == 8)
        column = s->width - 1 - column;
    if (orientation == 3 || orientation == 4 || orientation == 6 ||
        orientation == 7)
        row = s->height - 1 - row;
    return s->grey[row * s->width + column];
}

bm_status bm_image_turn(bm_line_image *image, int orientation)
{
    bool turned = orientation >= 5;
    bm_line_image out = {.width = turned ? image->height : image->width,
                         .height = turned ? image->width : image->height};

    if (orientation == 1)
        return BM_OK;
    out.grey = malloc(out.width * out.height);
    if (out.grey == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu x %zu pixels",
                       out.width, out.height);
    for (size_t y = 0; y < out.height; y++)
        for (size_t x = 0; x < out.width; x++)
            out.grey[y * out.width + x] = pixel(image, orientation, x, y);
    bm_line_image_free(image);
    *image = out;
    return BM_OK;
}
