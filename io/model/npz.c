/*
 * npz.c - a zip archive: a local header and data for each array, and a central
 * directory at the end (PKWARE's APPNOTE, method 0). The 64-bit format, for
 * more than 4 GB, is not supported.
 */
#include "io/model/npz.h"

#include "core/file/file.h"
#include "core/grow.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

typedef struct entry {
    char *name;
    uint32_t offset, size, crc;
} entry;

struct bm_npz {
    bm_file_replacement file;
    entry *entries;
    size_t n, room;
    uint64_t at;
    char *rows; /* [room_rows]: one array, without gaps */
    size_t room_rows;
};

bm_status bm_npz_create(bm_npz **out, const char *path)
{
    bm_npz *z = calloc(1, sizeof *z);
    bm_status status = BM_OK;

    if (z == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    BM_TRY_DONE(bm_file_replace_begin(&z->file, path));
    BM_TRY_DONE(bm_file_replace_stream(&z->file));
    *out = z;
    z = NULL;
done:
    bm_npz_close(z);
    return status;
}

void bm_npz_close(bm_npz *z)
{
    if (z == NULL)
        return;
    bm_file_replace_abort(&z->file);
    for (size_t i = 0; i < z->n; i++)
        free(z->entries[i].name);
    free(z->entries);
    free(z->rows);
    free(z);
}

static bm_status put(bm_npz *z, const void *data, size_t size)
{
    if (fwrite(data, 1, size, z->file.stream) != size)
        return BM_FAIL(BM_ERR_IO, "%s: %s", z->file.path, strerror(errno));
    z->at += size;
    return BM_OK;
}

/* Append little-endian numbers; return the next position. */
static unsigned char *put16(unsigned char *to, unsigned x)
{
    to[0] = (unsigned char)(x & 255);
    to[1] = (unsigned char)(x >> 8 & 255);
    return to + 2;
}

static unsigned char *put32(unsigned char *to, uint32_t x)
{
    return put16(put16(to, x & 65535), x >> 16);
}

/* The fields of both a local header and a directory entry. */
static unsigned char *put_common(unsigned char *to, const entry *e)
{
    to = put16(to, 20);         /* version needed */
    to = put16(to, 1 << 11);    /* the name is UTF-8 */
    to = put16(to, 0);          /* stored */
    to = put32(to, 0x00210000); /* 1 January 1980: equal runs, equal files */
    to = put32(to, e->crc);
    to = put32(to, e->size);
    to = put32(to, e->size);
    to = put16(to, (unsigned)strlen(e->name));
    return put16(to, 0); /* no extra field */
}

static bm_status put_local(bm_npz *z, const entry *e)
{
    unsigned char header[30], *to = put32(header, 0x04034b50);

    (void)put_common(to, e);
    BM_TRY(put(z, header, sizeof header));
    return put(z, e->name, strlen(e->name));
}

static bm_status put_central(bm_npz *z, const entry *e)
{
    unsigned char header[46] = {0}, *to = put32(header, 0x02014b50);

    to = put_common(put16(to, 20), e);
    to = put16(put16(put16(to, 0), 0), 0); /* comment, disk, attributes */
    (void)put32(put32(to, 0), e->offset);
    BM_TRY(put(z, header, sizeof header));
    return put(z, e->name, strlen(e->name));
}

enum { HEADER = 128, TYPE = 24 };

/* The header of a .npy file, version 1, padded to HEADER bytes. type: "<f4". */
static void npy_header(char *out, const char *type, int rank, const size_t *dim)
{
    static const unsigned char magic[10] = {0x93, 'N', 'U', 'M',  'P',
                                            'Y',  1,   0,   0x76, 0};
    char *to = out + sizeof magic;
    size_t room = HEADER - sizeof magic, n = 0;

    memcpy(out, magic, sizeof magic);
    n = (size_t)snprintf(
        to, room, "{'descr': '%s', 'fortran_order': False, 'shape': (", type);
    for (int i = 0; i < rank; i++)
        n += (size_t)snprintf(to + n, room - n, i == 0 ? "%zu" : ", %zu",
                              dim[i]);
    n += (size_t)snprintf(to + n, room - n, rank == 1 ? ",), }" : "), }");
    BM_ASSERT(n < room);
    memset(to + n, ' ', room - n - 1);
    out[HEADER - 1] = '\n';
}

static bm_status room_for(bm_npz *z, size_t size)
{
    char *grown = NULL;

    BM_TRY(bm_grow(&z->entries, z->n, &z->room, sizeof *z->entries));
    if (size <= z->room_rows)
        return BM_OK;
    grown = realloc(z->rows, size);
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes", size);
    z->rows = grown;
    z->room_rows = size;
    return BM_OK;
}

/* Sets *data to room for an array of `size` bytes after the header. */
static bm_status begin(bm_npz *z, const char *name, size_t size, char **data)
{
    size_t length = strlen(name) + sizeof ".npy";

    if (z->at + HEADER + size + length > UINT32_MAX / 2 || z->n == 65534)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "%s: more than 2 GB or 65,534 arrays; write fewer",
                       z->file.path);
    BM_TRY(room_for(z, HEADER + size));
    *data = z->rows + HEADER;
    return BM_OK;
}

/* Writes what begin() made room for. */
static bm_status end(bm_npz *z, const char *name, size_t size)
{
    size_t length = strlen(name) + sizeof ".npy";
    entry *e = &z->entries[z->n];

    size += HEADER;
    e->name = malloc(length);
    if (e->name == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a name");
    snprintf(e->name, length, "%s.npy", name);
    z->n++;
    e->offset = (uint32_t)z->at;
    e->size = (uint32_t)size;
    e->crc = (uint32_t)crc32(0, (const unsigned char *)z->rows, (unsigned)size);
    BM_TRY(put_local(z, e));
    return put(z, z->rows, size);
}

bm_status bm_npz_add(bm_npz *z, const char *name, const float *x, size_t rows,
                     size_t cols, size_t stride)
{
    size_t row = cols * sizeof *x;
    char *data = NULL;

    BM_TRY(begin(z, name, rows * row, &data));
    npy_header(z->rows, "<f4", 2, (size_t[]){rows, cols});
    for (size_t t = 0; t < rows; t++)
        memcpy(data + t * row, x + t * stride, row);
    return end(z, name, rows * row);
}

bm_status bm_npz_add_array(bm_npz *z, const char *name, const float *x,
                           int rank, const size_t *dim)
{
    size_t size = sizeof *x;
    char *data = NULL;

    for (int i = 0; i < rank; i++)
        size *= dim[i];
    BM_TRY(begin(z, name, size, &data));
    npy_header(z->rows, "<f4", rank, dim);
    memcpy(data, x, size);
    return end(z, name, size);
}

bm_status bm_npz_add_text(bm_npz *z, const char *name, const char *text)
{
    size_t size = strlen(text) > 0 ? strlen(text) : 1; /* NumPy knows no S0 */
    char type[TYPE], *data = NULL;

    snprintf(type, sizeof type, "|S%zu", size);
    BM_TRY(begin(z, name, size, &data));
    npy_header(z->rows, type, 0, NULL);
    for (size_t i = 0; i < size; i++) /* NumPy's texts have no end */
        data[i] = text[i];
    return end(z, name, size);
}

bm_status bm_npz_finish(bm_npz *z)
{
    uint32_t from = (uint32_t)z->at;
    unsigned char last[22] = {0}, *to = put32(last, 0x06054b50);

    for (size_t i = 0; i < z->n; i++)
        BM_TRY(put_central(z, &z->entries[i]));
    to = put16(put16(put32(to, 0), (unsigned)z->n), (unsigned)z->n);
    (void)put32(put32(to, (uint32_t)z->at - from), from);
    BM_TRY(put(z, last, sizeof last));
    return bm_file_replace_commit(&z->file, true);
}
