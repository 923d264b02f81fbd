/*
 * feature_files.c - reads a whole file, and compares the sizes in its header
 * with its length before they are used.
 */
#include "io/import/feature_files.h"

#include "core/file.h"
#include "core/finite.h"
#include "core/words.h"

#include <ctype.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const bm_option bm_feature_file_options[] = {
    {"dim", BM_INT, offsetof(bm_feature_file_settings, dim), "13", 1, 65536,
     "numbers", "numbers per frame of a .mfc file; .npy files have their own"},
    {"shift_ms", BM_FLOAT, offsetof(bm_feature_file_settings, shift_ms), "10",
     0, 1000, "ms", "distance from one frame to the next; 0: no audio"},
    BM_CHAIN_OPTIONS(bm_feature_file_settings),
    {0},
};

/* Limit of a file in bytes: a day of features. */
static const size_t most_bytes = (size_t)1 << 31;

/* The header of a .npy file. */
typedef struct array {
    size_t rows, columns;
    size_t width; /* bytes of a number */
    size_t start; /* of the numbers, in the file */
} array;

/* A position in a text that is parsed; NULL after a syntax error. */
typedef const char *cursor;

static cursor skip(cursor c, const char *end, char wanted)
{
    while (c != NULL && c < end && isspace((unsigned char)*c))
        c++;
    return c != NULL && c < end && *c == wanted ? c + 1 : NULL;
}

/* A word in quotes. */
static cursor quoted(cursor c, const char *end, const char **word, size_t *n)
{
    const char *close = NULL;

    c = skip(c, end, '\'');
    if (c != NULL)
        close = memchr(c, '\'', (size_t)(end - c));
    if (close == NULL)
        return NULL;
    *word = c;
    *n = (size_t)(close - c);
    return close + 1;
}

static cursor number(cursor c, const char *end, size_t *out)
{
    size_t value = 0, digits = 0;

    while (c != NULL && c < end && isspace((unsigned char)*c))
        c++;
    for (; c != NULL && c < end && isdigit((unsigned char)*c); c++, digits++)
        value = 10 * value + (size_t)(*c - '0');
    if (digits == 0 || digits > 18)
        return NULL;
    *out = value;
    return c;
}

/* "(rows, columns)" */
static cursor shape(cursor c, const char *end, array *a)
{
    cursor comma = NULL;

    c = number(skip(c, end, '('), end, &a->rows);
    c = number(skip(c, end, ','), end, &a->columns);
    comma = skip(c, end, ',');
    return skip(comma != NULL ? comma : c, end, ')');
}

static bool same(const char *word, size_t n, const char *text)
{
    return n == strlen(text) && memcmp(word, text, n) == 0;
}

static cursor type(cursor c, const char *end, array *a)
{
    const char *word = NULL;
    size_t n = 0;

    c = quoted(c, end, &word, &n);
    if (c != NULL && same(word, n, "<f4"))
        a->width = 4;
    else if (c != NULL && same(word, n, "<f8"))
        a->width = 8;
    else
        return NULL;
    return c;
}

static cursor no(cursor c, const char *end)
{
    c = skip(c, end, 'F');
    return c != NULL && end - c >= 4 && memcmp(c, "alse", 4) == 0 ? c + 4
                                                                  : NULL;
}

/* Parses {'descr': '<f4', 'fortran_order': False, 'shape': (7, 40), }. Returns
 * NULL or the error. */
static const char *parse(const char *text, size_t length, array *a)
{
    const char *end = text + length, *key = NULL, *fault = NULL;
    cursor c = skip(text, end, '{'), comma = NULL;
    int keys = 0;
    size_t n = 0;

    for (; c != NULL && skip(c, end, '}') == NULL; keys++) {
        c = skip(quoted(c, end, &key, &n), end, ':');
        if (c == NULL)
            break;
        if (same(key, n, "descr")) {
            c = type(c, end, a);
            fault = "the numbers are not little-endian float32 or float64";
        } else if (same(key, n, "fortran_order")) {
            c = no(c, end);
            fault = "the array is not in C order";
        } else if (same(key, n, "shape")) {
            c = shape(c, end, a);
            fault = "the array is not two-dimensional";
        } else {
            c = NULL;
        }
        if (c == NULL)
            return fault != NULL ? fault : "the header is damaged";
        comma = skip(c, end, ',');
        c = comma != NULL ? comma : c;
        fault = NULL;
    }
    return c != NULL && keys == 3 && a->width > 0 ? NULL
                                                  : "the header is damaged";
}

static const char *read_head(const uint8_t *file, size_t size, array *a)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    size_t begin, length, numbers;
    const char *fault = NULL;

    if (size < 12 || memcmp(file, magic, sizeof magic) != 0)
        return "not a NumPy array";
    if (file[6] != 1 && file[6] != 2)
        return "the format version is not 1 or 2";
    begin = file[6] == 1 ? 10 : 12;
    length = file[8] | (size_t)file[9] << 8;
    if (file[6] == 2)
        length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    if (length > size - begin)
        return "the file ends within its header";
    fault = parse((const char *)file + begin, length, a);
    if (fault != NULL)
        return fault;
    a->start = begin + length;
    numbers = (size - a->start) / a->width;
    if ((size - a->start) % a->width != 0 || a->columns == 0 ||
        numbers % a->columns != 0 || numbers / a->columns != a->rows)
        return "the length of the file disagrees with the shape";
    return NULL;
}

/* A little-endian float of 4 or 8 bytes. */
static double little_endian(const uint8_t *p, size_t width)
{
    uint64_t bits = 0;
    uint32_t low = 0;
    double wide = 0;
    float narrow = 0;

    for (size_t i = 0; i < width; i++)
        bits |= (uint64_t)p[i] << (8 * i);
    if (width == 8) {
        memcpy(&wide, &bits, sizeof wide);
        return wide;
    }
    low = (uint32_t)bits;
    memcpy(&narrow, &low, sizeof narrow);
    return narrow;
}

static bm_status read_npy(const uint8_t *file, size_t size, bm_frames *x,
                          const char **fault)
{
    array a = {0};

    *fault = read_head(file, size, &a);
    if (*fault == NULL && a.rows == 0)
        *fault = "no frames";
    if (*fault != NULL)
        return BM_OK;
    BM_TRY(bm_frames_shape(x, a.rows, a.columns));
    for (size_t i = 0; i < a.rows * a.columns; i++)
        x->x[i] = (float)little_endian(file + a.start + i * a.width, a.width);
    return BM_OK;
}

static uint32_t big_endian(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 |
           p[3];
}

static bm_status read_mfc(const uint8_t *file, size_t size, size_t dim,
                          bm_frames *x, const char **fault)
{
    size_t n = size / 4;

    if (size < 4 || size % 4 != 0 || big_endian(file) != n - 1)
        *fault = "the length of the file disagrees with its first four bytes";
    else if ((n - 1) % dim != 0)
        *fault = "the file ends within a frame; features.dim may be wrong";
    else if (n == 1)
        *fault = "no frames";
    if (*fault != NULL)
        return BM_OK;
    BM_TRY(bm_frames_shape(x, (n - 1) / dim, dim));
    for (size_t i = 0; i + 1 < n; i++) {
        uint32_t bits = big_endian(file + 4 * (i + 1));
        memcpy(&x->x[i], &bits, sizeof bits);
    }
    return BM_OK;
}

bm_status bm_feature_file_read(const char *path, size_t mfc_dim, bm_frames *x,
                               bm_problem *problem)
{
    const char *fault = NULL;
    char *file = NULL;
    size_t size = 0;
    bm_status status = bm_file_read(path, most_bytes, &file, &size);

    if (status != BM_OK)
        return bm_problem_of(status, path, problem);
    if (bm_ends_with(path, ".npy"))
        BM_TRY_DONE(read_npy((const uint8_t *)file, size, x, &fault));
    else if (bm_ends_with(path, ".mfc"))
        BM_TRY_DONE(read_mfc((const uint8_t *)file, size, mfc_dim, x, &fault));
    else
        fault = "neither .npy nor .mfc";
    if (fault == NULL && !bm_all_finite(x->x, x->n * x->dim))
        fault = "some numbers are NaN or infinite";
    if (fault != NULL)
        bm_problem_set(problem, fault, "%s: %s", path, fault);
done:
    free(file);
    return status;
}
