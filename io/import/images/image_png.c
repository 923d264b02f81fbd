/* image_png.c - PNG of any kind, by libpng. Photographs are turned upright. */
#include "io/import/images/image_exif.h"
#include "io/import/images/image_file_parts.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

/* A PNG is 8 bytes and chunks: 4 bytes of length, 4 of type, data, 4 of checksum.
 * The simplified reader of libpng does not tell the chunk of Exif. */
static int orientation(const bm_image_source *s)
{
    enum { MARK = 8, HEAD = 8, CHECKSUM = 4 };

    for (size_t at = MARK; at + HEAD + CHECKSUM <= s->size;) {
        const uint8_t *chunk = s->bytes + at;
        size_t n = (size_t)chunk[0] << 24 | (size_t)chunk[1] << 16 |
                   (size_t)chunk[2] << 8 | chunk[3];

        if (n > s->size - at - HEAD - CHECKSUM)
            break;
        if (memcmp(chunk + 4, "eXIf", 4) == 0)
            return bm_exif_orientation_of_notes(chunk + HEAD, n);
        at += HEAD + n + CHECKSUM;
    }
    return 1;
}

/* Grey and alpha to grey on white. */
static void flatten(const uint8_t *pairs, size_t n, uint8_t *grey)
{
    for (size_t i = 0; i < n; i++) {
        unsigned value = pairs[2 * i], alpha = pairs[2 * i + 1];
        grey[i] = (uint8_t)((value * alpha + 255 * (255 - alpha) + 127) / 255);
    }
}

bm_status bm_image_png(bm_line_image *out, const bm_image_source *s,
                       bm_problem *problem)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    uint8_t *pairs = NULL;
    size_t n = 0;
    bm_status status = BM_OK;

    if (!png_image_begin_read_from_memory(&png, s->bytes, s->size)) {
        bm_image_damaged(s, png.message, problem);
        goto done;
    }
    png.flags |= PNG_IMAGE_FLAG_16BIT_sRGB; /* as 8 bits are taken */
    png.format = PNG_FORMAT_GA;
    BM_TRY_DONE(bm_image_room(out, s, png.width, png.height, problem));
    if (bm_problem_is(problem))
        goto done;
    n = out->width * out->height;
    pairs = malloc(2 * n);
    if (pairs == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu pixels of %s", n,
                     s->path);
    if (png_image_finish_read(&png, NULL, pairs, 0, NULL)) {
        flatten(pairs, n, out->grey);
        status = bm_image_turn(out, orientation(s));
    } else {
        bm_image_damaged(s, png.message, problem);
    }
done:
    png_image_free(&png);
    free(pairs);
    return status;
}
