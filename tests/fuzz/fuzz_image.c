/* fuzz_image.c - images of lines in any format. Mutants of PNG get right
 * checksums. */
#include "io/import/images/image_file.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <zlib.h>

enum { HEAD = 8 }; /* of a file, and of a chunk: length and type */

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static size_t repair(uint8_t *data, size_t size, size_t room)
{
    size_t at = HEAD;

    (void)room;
    if (size < HEAD || data[0] != 0x89)
        return size;
    while (size >= HEAD + 4 && at <= size - HEAD - 4) {
        size_t n = big_endian(data + at);
        uLong sum = 0;

        if (n > size - at - HEAD - 4)
            break;
        sum = crc32(0, data + at + 4, (uInt)n + 4);
        for (int i = 0; i < 4; i++)
            data[at + HEAD + n + (size_t)i] = (uint8_t)(sum >> (24 - 8 * i));
        at += HEAD + n + 4;
    }
    return size;
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const size_t heights[] = {1, 24};
    bm_line_image image = {0};
    bm_problem problem = {0};

    (void)data;
    (void)size;
    FUZZ_RULE(bm_image_file_read(&image, path, BM_MOST_LINE_PIXELS, &problem) ==
              BM_OK);
    if (bm_problem_is(&problem))
        return;
    FUZZ_RULE(image.width > 0 && image.height > 0);
    bm_line_image_is_dark(&image);
    for (size_t i = 0; i < 2; i++) {
        uint8_t *columns = NULL;
        size_t width = 0;

        FUZZ_RULE(bm_line_image_columns(&image, heights[i], &columns, &width,
                                        &problem) == BM_OK);
        FUZZ_RULE(bm_problem_is(&problem) || width > 0);
        free(columns);
    }
    bm_line_image_free(&image);
}

const fuzz_target fuzz_image = {"image", "x.png", run, repair};
