/*
 * ark.c - a matrix in an archive is its name, a blank and then
 *
 *     binary   '\0' 'B' "FM " '\4' rows '\4' columns, as 32-bit numbers,
 *              little-endian, and the rows
 *     text     " [", each row in a line of its own, and "]"
 *
 * A line of a list is the name, the archive and the byte of the '\0'.
 */
#include "io/model/ark.h"

#include "core/file/file.h"
#include "core/grow.h"

#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "archives are little-endian");

typedef struct entry {
    char *name;
    uint64_t offset;
} entry;

struct bm_ark {
    bm_file_replacement file, list;
    bool text, listed;
    entry *entries; /* of the list */
    size_t n, room;
    uint64_t at; /* bytes written */
};

bool bm_ark_is_place(const char *text)
{
    return (strncmp(text, "ark", 3) == 0 || strncmp(text, "scp", 3) == 0) &&
           (text[3] == ':' || text[3] == ',');
}

void bm_ark_files(const bm_ark *a, const char *out[2])
{
    out[0] = a->file.path;
    out[1] = a->listed ? a->list.path : NULL;
}

/* ---- places -------------------------------------------------------------- */

static bm_status refuse(const char *place)
{
    return BM_FAIL(BM_ERR_ARG,
                   "'%s' is not a place for matrices; give ark:FILE, "
                   "ark,t:FILE or ark,scp:FILE,LIST",
                   place);
}

/* Cuts "FILE,LIST" at its last comma into names of files. */
static bm_status open_both(bm_ark *a, const char *place, char *names)
{
    char *comma = strrchr(names, ',');

    if (comma == NULL || comma == names || comma[1] == '\0')
        return refuse(place);
    *comma = '\0';
    if (strcmp(names, comma + 1) == 0)
        return refuse(place);
    if (strpbrk(names, " \t\r\n") != NULL) /* Kaldi reads up to a blank */
        return BM_FAIL(BM_ERR_ARG,
                       "'%s' has blanks, which a list of Kaldi's cannot hold",
                       names);
    a->listed = true;
    BM_TRY(bm_file_replace_begin(&a->file, names));
    BM_TRY(bm_file_replace_begin(&a->list, comma + 1));
    return bm_file_replace_stream(&a->list);
}

static bm_status open_files(bm_ark *a, const char *place)
{
    const char *names = strchr(place, ':');
    size_t n = names != NULL ? (size_t)(names - place) : 0;
    char *copy = NULL;
    bm_status status = BM_OK;

    if (n == 0 || names[1] == '\0' || strcmp(names + 1, "-") == 0)
        return refuse(place);
    a->text = n == 5 && strncmp(place, "ark,t", n) == 0;
    if (a->text || (n == 3 && strncmp(place, "ark", n) == 0)) {
        BM_TRY(bm_file_replace_begin(&a->file, names + 1));
    } else if (n == 7 && strncmp(place, "ark,scp", n) == 0) {
        copy = strdup(names + 1);
        if (copy == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", place);
        status = open_both(a, place, copy);
        free(copy);
        BM_TRY(status);
    } else {
        return refuse(place);
    }
    return bm_file_replace_stream(&a->file);
}

bm_status bm_ark_create(bm_ark **out, const char *place)
{
    bm_ark *a = calloc(1, sizeof *a);
    bm_status status = BM_OK;

    if (a == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", place);
    BM_TRY_DONE(open_files(a, place));
    *out = a;
    a = NULL;
done:
    bm_ark_close(a);
    return status;
}

void bm_ark_close(bm_ark *a)
{
    if (a == NULL)
        return;
    bm_file_replace_abort(&a->file);
    bm_file_replace_abort(&a->list);
    for (size_t i = 0; i < a->n; i++)
        free(a->entries[i].name);
    free(a->entries);
    free(a);
}

/* ---- matrices ------------------------------------------------------------ */

static bm_status put(bm_ark *a, const void *data, size_t size)
{
    if (fwrite(data, 1, size, a->file.stream) != size)
        return BM_FAIL(BM_ERR_IO, "%s: %s", a->file.path, strerror(errno));
    a->at += size;
    return BM_OK;
}

static bm_status remember(bm_ark *a, const char *name)
{
    BM_TRY(bm_grow(&a->entries, a->n, &a->room, sizeof *a->entries));
    a->entries[a->n] = (entry){strdup(name), a->at};
    if (a->entries[a->n].name == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a name");
    a->n++;
    return BM_OK;
}

static bm_status put_binary(bm_ark *a, const float *x, size_t rows, size_t cols,
                            size_t stride)
{
    char head[15] = {'\0', 'B', 'F', 'M', ' ', 4, 0, 0, 0, 0, 4};
    int32_t size[2] = {(int32_t)rows, (int32_t)cols};

    memcpy(head + 6, &size[0], 4);
    memcpy(head + 11, &size[1], 4);
    BM_TRY(put(a, head, sizeof head));
    for (size_t t = 0; t < rows; t++)
        BM_TRY(put(a, x + t * stride, cols * sizeof *x));
    return BM_OK;
}

/* Nine digits give the same float again. */
static bm_status put_text(bm_ark *a, const float *x, size_t rows, size_t cols,
                          size_t stride)
{
    BM_TRY(put(a, " [", 2));
    for (size_t t = 0; t < rows; t++) {
        BM_TRY(put(a, "\n ", 2));
        for (size_t c = 0; c < cols; c++) {
            char number[32];
            int n = snprintf(number, sizeof number, " %.9g",
                             (double)x[t * stride + c]);

            BM_TRY(put(a, number, (size_t)n));
        }
    }
    return put(a, " ]\n", 3);
}

bm_status bm_ark_add(bm_ark *a, const char *name, const float *x, size_t rows,
                     size_t cols, size_t stride)
{
    if (name[0] == '\0' || strpbrk(name, " \t\r\n\v\f") != NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the id '%.60s' is empty or has blanks, which "
                       "Kaldi's files cannot hold; dump to an .npz",
                       a->file.path, name);
    if (rows > INT32_MAX || cols > INT32_MAX)
        return BM_FAIL(
            BM_ERR_UNSUPPORTED,
            "%s: %zu rows of %zu numbers are too many for an archive",
            a->file.path, rows, cols);
    BM_TRY(put(a, name, strlen(name)));
    BM_TRY(put(a, " ", 1));
    if (a->listed)
        BM_TRY(remember(a, name));
    return a->text ? put_text(a, x, rows, cols, stride)
                   : put_binary(a, x, rows, cols, stride);
}

static int by_name(const void *left, const void *right)
{
    const entry *a = left, *b = right;

    return strcmp(a->name, b->name);
}

bm_status bm_ark_finish(bm_ark *a)
{
    if (a->n > 0)
        qsort(a->entries, a->n, sizeof *a->entries, by_name);
    for (size_t i = 0; i < a->n; i++)
        fprintf(a->list.stream, "%s %s:%" PRIu64 "\n", a->entries[i].name,
                a->file.path, a->entries[i].offset);
    BM_TRY(bm_file_replace_commit(&a->file, true));
    return a->listed ? bm_file_replace_commit(&a->list, true) : BM_OK;
}
