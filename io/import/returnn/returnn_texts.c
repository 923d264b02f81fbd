/*
 * returnn_texts.c - HDF5 1.10 crashes on damaged texts of variable length, so
 * these are read here, by its file format (version 3, III.E): an element is a
 * length, the place of a heap and the number of an object in it, 4, 8 and 4
 * bytes. A heap is "GCOL", a version, its size, and objects, each of a number, a
 * count, its size and the data, padded to 8 bytes.
 */
#include "io/import/returnn/returnn_texts.h"

#include "core/file/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ELEMENT = 16, HEAD = 16, LARGEST_HEAP = 1 << 24 };

typedef struct heap {
    const bm_h5_file *file;
    const char *name; /* of the array, for messages */
    int fd;
    uint64_t place; /* of `data`; 0: none */
    uint8_t *data;
    size_t size;
    size_t at, number; /* the object that was looked up last */
} heap;

static uint64_t number_at(const uint8_t *p, size_t bytes)
{
    uint64_t x = 0;

    for (size_t i = bytes; i-- > 0;)
        x = x << 8 | p[i];
    return x;
}

static bm_status damaged(const heap *h)
{
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: /%s: a text is not where it should be; the file is "
                   "damaged or was not closed",
                   h->file->path, h->name);
}

static bm_status read_at(const heap *h, uint64_t place, void *out, size_t n)
{
    char *to = out;

    if (place > h->file->size || n > h->file->size - place)
        return damaged(h);
    while (n > 0) {
        ssize_t got = pread(h->fd, to, n, (off_t)place);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return BM_FAIL(BM_ERR_IO, "cannot read %s: %s", h->file->path,
                           got < 0 ? strerror(errno) : "it became shorter");
        to += got;
        place += (uint64_t)got;
        n -= (size_t)got;
    }
    return BM_OK;
}

static bm_status load_heap(heap *h, uint64_t place)
{
    uint8_t head[HEAD];
    uint64_t size = 0;

    if (h->place == place && h->data != NULL)
        return BM_OK;
    BM_TRY(read_at(h, place, head, sizeof head));
    size = number_at(head + 8, 8);
    if (memcmp(head, "GCOL\1", 5) != 0 || size < HEAD || size > LARGEST_HEAP)
        return damaged(h);
    free(h->data);
    h->data = malloc(size);
    if (h->data == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for /%s of %s", h->name,
                       h->file->path);
    h->place = place;
    h->size = size;
    h->at = HEAD;
    h->number = 0;
    return read_at(h, place, h->data, size);
}

/* Object `wanted` of the heap, of which `n` bytes are used. Texts mostly follow
 * each other, so the search begins after the last one. */
static bm_status find_object(heap *h, size_t wanted, size_t n,
                             const uint8_t **out)
{
    size_t at = wanted > h->number ? h->at : HEAD;

    while (h->size - at >= HEAD) {
        size_t number = number_at(h->data + at, 2);
        uint64_t size = number_at(h->data + at + 8, 8);
        size_t left = h->size - at - HEAD;

        if (number == 0 || size > left)
            break;
        if (number == wanted) {
            h->at = at;
            h->number = number;
            *out = h->data + at + HEAD;
            return n <= size ? BM_OK : damaged(h);
        }
        size = (size + 7) / 8 * 8;
        if (size > left)
            break;
        at += HEAD + size;
    }
    return damaged(h);
}

/* *out <- the text of an element; free(*out). */
static bm_status read_element(heap *h, const uint8_t *element, size_t most,
                              char **out)
{
    size_t n = number_at(element, 4);
    uint64_t place = number_at(element + 4, 8);
    const uint8_t *text = (const uint8_t *)"";

    if (n > most + 1) /* a zero may be counted */
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: /%s: a text is longer than %zu bytes",
                       h->file->path, h->name, most);
    if (n > 0) {
        BM_TRY(load_heap(h, place));
        BM_TRY(find_object(h, number_at(element + 12, 4), n, &text));
    }
    *out = strndup((const char *)text, n < most ? n : most);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
    return BM_OK;
}

/* Reads elements [first, first + n), which lie at this place. */
static bm_status take_elements(heap *h, uint64_t place, size_t first, size_t n,
                               void *out)
{
    return read_at(h, place, (uint8_t *)out + first * ELEMENT, n * ELEMENT);
}

/* The elements of an array in chunks, which are not compressed. */
static bm_status read_chunks(heap *h, const bm_h5_array *a, hid_t plist,
                             uint8_t *out)
{
    hid_t space = H5Dget_space(a->id);
    hsize_t chunk = 0, n = 0;
    bm_status status = BM_OK;

    if (H5Pget_nfilters(plist) != 0)
        status = BM_FAIL(BM_ERR_FORMAT,
                         "%s: /%s: texts of variable length are compressed, "
                         "which is not read; write them without",
                         h->file->path, h->name);
    else if (H5Pget_chunk(plist, 1, &chunk) != 1 || chunk == 0 ||
             H5Dget_num_chunks(a->id, space, &n) < 0)
        status = damaged(h);
    for (hsize_t i = 0; i < n && status == BM_OK; i++) {
        hsize_t first = 0, size = 0;
        unsigned mask = 0;
        haddr_t place = HADDR_UNDEF;

        if (H5Dget_chunk_info(a->id, space, i, &first, &mask, &place, &size) <
                0 ||
            first >= a->dim[0] || size != chunk * ELEMENT)
            status = damaged(h);
        else
            status = take_elements(
                h, place, first,
                chunk < a->dim[0] - first ? chunk : a->dim[0] - first, out);
    }
    H5Sclose(space);
    return status;
}

/* All elements, as they are stored; free(*out). */
static bm_status read_elements(heap *h, const bm_h5_array *a, uint8_t **out)
{
    hid_t plist = H5Dget_create_plist(a->id);
    uint8_t *elements = calloc(a->dim[0] + 1, ELEMENT);
    bm_status status = BM_OK;

    if (elements == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for /%s of %s", h->name,
                         h->file->path);
    else if (H5Pget_layout(plist) == H5D_CHUNKED)
        status = read_chunks(h, a, plist, elements);
    else if (a->dim[0] > 0)
        status = take_elements(h, H5Dget_offset(a->id), 0, a->dim[0], elements);
    H5Pclose(plist);
    if (status == BM_OK)
        *out = elements;
    else
        free(elements);
    return status;
}

static bm_status read_variable(const bm_h5_file *f, const bm_h5_array *a,
                               size_t most, char **out)
{
    heap h = {.file = f, .name = a->name, .fd = -1};
    uint8_t *elements = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_file_open_regular(&h.fd, f->path));
    BM_TRY_DONE(read_elements(&h, a, &elements));
    for (size_t i = 0; i < a->dim[0]; i++)
        BM_TRY_DONE(read_element(&h, elements + i * ELEMENT, most, &out[i]));
done:
    close(h.fd);
    free(h.data);
    free(elements);
    return status;
}

static bm_status read_fixed(const bm_h5_file *f, const bm_h5_array *a,
                            size_t most, char **out)
{
    char *from = calloc(a->dim[0] + 1, a->item);
    bm_status status = BM_OK;

    if (from == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for /%s of %s", a->name,
                       f->path);
    BM_TRY_DONE(bm_h5_rows(f, a, 0, a->dim[0], from));
    for (size_t i = 0; i < a->dim[0]; i++) {
        const char *text = from + i * a->item;
        size_t n = strnlen(text, a->item);

        if (n > most)
            BM_FAIL_DONE(BM_ERR_FORMAT,
                         "%s: /%s: text %zu is longer than %zu bytes", f->path,
                         a->name, i, most);
        out[i] = strndup(text, n);
        if (out[i] == NULL)
            BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a text");
    }
done:
    free(from);
    return status;
}

bm_status bm_returnn_texts(const bm_h5_file *f, const char *name, size_t most,
                           size_t *n, char ***out)
{
    bm_h5_array a = {0};
    char **texts = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_h5_array_open_any(f, name, &a));
    if (a.rank != 1 || H5Tget_class(a.type) != H5T_STRING)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: /%s is not a list of texts", f->path,
                     name);
    texts = calloc(a.dim[0] + 1, sizeof(char *));
    if (texts == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for /%s of %s", name, f->path);
    BM_TRY_DONE(H5Tis_variable_str(a.type) > 0
                    ? read_variable(f, &a, most, texts)
                    : read_fixed(f, &a, most, texts));
    *n = a.dim[0];
    *out = texts;
    texts = NULL;
done:
    for (size_t i = 0; texts != NULL && i < a.dim[0]; i++)
        free(texts[i]);
    free(texts);
    bm_h5_array_close(&a);
    return status;
}
