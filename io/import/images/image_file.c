#include "io/import/images/image_file.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "io/import/images/image_file_parts.h"

#include <stdlib.h>
#include <string.h>

/* Limit of a file: 2^25 pixels in 16-bit colour, not compressed. */
static const size_t most_bytes = (size_t)1 << 28;

/* By the kinds of bm_file_kind. */
static const struct {
    const char *kind;
    bm_image_decode *decode;
} formats[] = {
    {"a PNG image", bm_image_png},   {"a JPEG image", bm_image_jpeg},
    {"a TIFF image", bm_image_tiff}, {"a PBM image", bm_image_pnm},
    {"a PGM image", bm_image_pnm},   {"a PPM image", bm_image_pnm},
};

bm_status bm_image_room(bm_line_image *out, const bm_image_source *s,
                        size_t width, size_t height, bm_problem *problem)
{
    if (width == 0 || height == 0 || width > s->most / height) {
        bm_problem_set(problem, "too small or too large",
                       "%s: %zu x %zu pixels: too small or too large for a "
                       "%s; 1 to %zu pixels are possible",
                       s->path, width, height,
                       s->most <= BM_MOST_LINE_PIXELS ? "line" : "page",
                       s->most);
        return BM_OK;
    }
    *out = (bm_line_image){malloc(width * height), width, height};
    if (out->grey == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu x %zu pixels of %s",
                       width, height, s->path);
    return BM_OK;
}

void bm_image_damaged(const bm_image_source *s, const char *why,
                      bm_problem *problem)
{
    bm_problem_set(problem, "damaged or truncated",
                   "%s: damaged, or cut off after its %zu bytes (%s); copy it "
                   "again, or leave it out",
                   s->path, s->size, why);
}

bm_status bm_image_file_read(bm_line_image *out, const char *path, size_t most,
                             bm_problem *problem)
{
    const char *kind = bm_file_kind(path);
    bm_image_decode *decode = NULL;
    bm_image_source s = {.path = path, .most = most};
    bm_line_image image = {0};
    char *file = NULL;
    bm_status status = bm_file_read(path, most_bytes, &file, &s.size);

    if (status != BM_OK)
        return bm_problem_of(status, path, problem);
    s.bytes = (const uint8_t *)file;
    for (size_t i = 0; kind != NULL && i < sizeof formats / sizeof *formats;
         i++)
        if (strcmp(kind, formats[i].kind) == 0)
            decode = formats[i].decode;
    if (decode != NULL)
        status = decode(&image, &s, problem);
    else
        bm_problem_set(problem, "not an image",
                       "%s: not a PNG, JPEG, TIFF, PBM, PGM or PPM image; "
                       "convert it to one of these",
                       path);
    if (status == BM_OK && !bm_problem_is(problem))
        *out = image;
    else
        bm_line_image_free(&image);
    free(file);
    return status;
}
