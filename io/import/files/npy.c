/*
 * npy.c - NumPy arrays (.npy, formats 1 to 3) and archives of them (.npz): a zip
 * file, whose central directory is at its end (PKWARE's APPNOTE).
 */
#include "io/import/files/feature_parts.h"

#include "io/shard/store.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST /* input is not changed */
#include <zlib.h>

/* ---- .npy ---------------------------------------------------------------- */

/* The header of a .npy file. */
typedef struct array {
    size_t rows, columns;
    size_t width; /* bytes of a number */
    bool big;     /* endian */
    bool fortran; /* column by column */
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

/* '<f4' */
static cursor type(cursor c, const char *end, array *a)
{
    const char *word = NULL;
    size_t n = 0;

    c = quoted(c, end, &word, &n);
    if (c == NULL || n != 3 || strchr("<>=|", word[0]) == NULL ||
        word[1] != 'f' || strchr("248", word[2]) == NULL)
        return NULL;
    a->width = (size_t)(word[2] - '0');
    a->big = word[0] == '>';
    return c;
}

static cursor truth(cursor c, const char *end, bool *out)
{
    while (c != NULL && c < end && isspace((unsigned char)*c))
        c++;
    *out = c != NULL && end - c >= 4 && memcmp(c, "True", 4) == 0;
    if (*out)
        return c + 4;
    return c != NULL && end - c >= 5 && memcmp(c, "False", 5) == 0 ? c + 5
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
            fault = "the numbers are not floats of 16, 32 or 64 bits; save "
                    "x.astype('float32')";
        } else if (same(key, n, "fortran_order")) {
            c = truth(c, end, &a->fortran);
            fault = "the header is damaged";
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

static void say_size(size_t size, const array *a, char *detail)
{
    size_t row = a->columns * a->width; /* columns < 10^18 */

    if (row == 0 || a->rows <= (SIZE_MAX - a->start) / row)
        snprintf(detail, BM_MOST_DETAIL,
                 ": %zu bytes, where its header needs %zu; save or copy it "
                 "again",
                 size, a->start + a->rows * row);
}

static const char *read_head(const uint8_t *file, size_t size, array *a,
                             char *detail)
{
    static const uint8_t magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    size_t begin, length, numbers;
    const char *fault = NULL;

    if (size < 12 || memcmp(file, magic, sizeof magic) != 0)
        return "not a NumPy array";
    if (file[6] < 1 || file[6] > 3)
        return "the format version is not 1, 2 or 3";
    begin = file[6] == 1 ? 10 : 12;
    length = file[8] | (size_t)file[9] << 8;
    if (file[6] > 1)
        length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    if (length > size - begin)
        return "the file ends within its header; save or copy it again";
    fault = parse((const char *)file + begin, length, a);
    if (fault != NULL)
        return fault;
    a->start = begin + length;
    numbers = (size - a->start) / a->width;
    if ((size - a->start) % a->width != 0 || a->columns == 0 ||
        numbers % a->columns != 0 || numbers / a->columns != a->rows) {
        say_size(size, a, detail);
        return "the length of the file disagrees with the shape";
    }
    return NULL;
}

/* An IEEE float of 2, 4 or 8 bytes. */
static float number_at(const uint8_t *p, const array *a)
{
    uint64_t bits = 0;
    uint32_t low = 0;
    uint16_t half = 0;
    double wide = 0;
    float narrow = 0;

    for (size_t i = 0; i < a->width; i++)
        bits |= (uint64_t)p[a->big ? a->width - 1 - i : i] << (8 * i);
    if (a->width == 8) {
        memcpy(&wide, &bits, sizeof wide);
        return (float)wide;
    }
    low = (uint32_t)bits;
    half = (uint16_t)bits;
    if (a->width == 2)
        bm_store_unpack(BM_STORE_F16, &half, &narrow, 1, 1, NULL, NULL);
    else
        memcpy(&narrow, &low, sizeof narrow);
    return narrow;
}

bm_status bm_npy_read(const uint8_t *file, size_t size, bm_frames *x,
                      const char **fault, char detail[BM_MOST_DETAIL])
{
    array a = {0};

    *fault = read_head(file, size, &a, detail);
    if (*fault == NULL && a.rows == 0)
        *fault = "no frames";
    if (*fault != NULL)
        return BM_OK;
    BM_TRY(bm_frames_shape(x, a.rows, a.columns));
    for (size_t t = 0; t < a.rows; t++)
        for (size_t c = 0; c < a.columns; c++) {
            size_t k = a.fortran ? c * a.rows + t : t * a.columns + c;

            x->x[t * a.columns + c] =
                number_at(file + a.start + k * a.width, &a);
        }
    return BM_OK;
}

/* ---- .npz ---------------------------------------------------------------- */

/* Little-endian numbers of 2 and 4 bytes. */
static size_t two(const uint8_t *p)
{
    return p[0] | (size_t)p[1] << 8;
}

static size_t four(const uint8_t *p)
{
    return two(p) | two(p + 2) << 16;
}

/* A file of the archive. */
typedef struct member {
    size_t method, packed, size, local;
} member;

enum { END = 22, ENTRY = 46, LOCAL = 30, DEFLATE_RATIO = 1032 };

static const char bad_zip[] = "damaged or truncated; save it again";

/* The end of the central directory; NULL: there is none. */
static const uint8_t *find_end(const uint8_t *file, size_t size)
{
    for (size_t n = END; n <= size && n < END + 65536; n++)
        if (memcmp(file + size - n, "PK\5\6", 4) == 0)
            return file + size - n;
    return NULL;
}

/* "name.npy" is the array `wanted`; "": any is. */
static bool is_wanted(const uint8_t *name, size_t n, const char *wanted)
{
    size_t k = strlen(wanted);

    if (n < 4 || memcmp(name + n - 4, ".npy", 4) != 0)
        return false;
    return k == 0 || (n - 4 == k && memcmp(name, wanted, k) == 0);
}

/* Adds the name of an array to a list; "" before the first. */
static void list_name(const uint8_t *name, size_t n, char *list)
{
    size_t used = strlen(list);

    if (n < 4 || memcmp(name + n - 4, ".npy", 4) != 0)
        return;
    if (used + n + 16 < BM_MOST_DETAIL)
        sprintf(list + used, "%s%.*s", used == 0 ? "; it has " : ", ",
                (int)(n - 4), (const char *)name);
    else if (used > 0 && strcmp(list + used - 2, "..") != 0)
        memcpy(list + used, ", ..", sizeof ", ..");
}

/* Looks through the central directory. Returns NULL or the error. */
static const char *find_member(const uint8_t *file, size_t size,
                               const char *wanted, member *out, char *detail)
{
    const uint8_t *end = size >= END ? find_end(file, size) : NULL;
    size_t at = 0, entries = 0, found = 0;
    char names[BM_MOST_DETAIL] = "";

    if (end == NULL)
        return "no zip archive, which an .npz is, or truncated; save it again";
    entries = two(end + 10);
    at = four(end + 16);
    for (; entries > 0; entries--) {
        const uint8_t *e = file + at;
        size_t name = 0;

        if (size < ENTRY || at > size - ENTRY || memcmp(e, "PK\1\2", 4) != 0)
            return bad_zip;
        name = two(e + 28);
        if (name > size - ENTRY - at)
            return bad_zip;
        if (is_wanted(e + ENTRY, name, wanted)) {
            found++;
            *out =
                (member){two(e + 10), four(e + 20), four(e + 24), four(e + 42)};
        }
        list_name(e + ENTRY, name, names);
        at += ENTRY + name + two(e + 30) + two(e + 32);
    }
    if (found != 1)
        memcpy(detail, names, sizeof names);
    if (found == 0)
        return wanted[0] != '\0' ? "no array of this name" : "no array in it";
    return found > 1 ? "several arrays; name one: x.npz:NAME" : NULL;
}

/* *data: the bytes of a member, in the file or, to free, in *room. Returns NULL
 * or the error. */
static const char *unpack(const uint8_t *file, size_t size, const member *m,
                          const uint8_t **data, uint8_t **room)
{
    const uint8_t *local = file + m->local;
    size_t begin = 0;
    z_stream z = {0};
    int result = Z_OK;

    if (m->packed == UINT32_MAX || m->size == UINT32_MAX)
        return "more than 4 GB; save each array as .npy";
    if (size < LOCAL || m->local > size - LOCAL ||
        memcmp(local, "PK\3\4", 4) != 0)
        return bad_zip;
    begin = m->local + LOCAL + two(local + 26) + two(local + 28);
    if (begin > size || m->packed > size - begin)
        return bad_zip;
    *data = file + begin;
    if (m->method == 0)
        return m->packed == m->size ? NULL : bad_zip;
    if (m->method != 8)
        return "compressed in an unknown way; save it with numpy.savez";
    if (m->size / DEFLATE_RATIO > m->packed)
        return bad_zip;
    *room = malloc(m->size + 1);
    if (*room == NULL || inflateInit2(&z, -MAX_WBITS) != Z_OK)
        return ""; /* no memory */
    z.next_in = *data;
    z.avail_in = (uInt)m->packed;
    z.next_out = *room;
    z.avail_out = (uInt)m->size;
    result = inflate(&z, Z_FINISH);
    *data = *room;
    inflateEnd(&z);
    return result == Z_STREAM_END && z.avail_out == 0 ? NULL : bad_zip;
}

bm_status bm_npz_read(const uint8_t *file, size_t size, const char *wanted,
                      bm_frames *x, const char **fault,
                      char detail[BM_MOST_DETAIL])
{
    member m = {0};
    const uint8_t *data = NULL;
    uint8_t *room = NULL;
    bm_status status = BM_OK;

    *fault = find_member(file, size, wanted, &m, detail);
    if (*fault == NULL)
        *fault = unpack(file, size, &m, &data, &room);
    if (*fault == NULL)
        status = bm_npy_read(data, m.size, x, fault, detail);
    else if ((*fault)[0] == '\0')
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for an array");
    free(room);
    return status;
}
