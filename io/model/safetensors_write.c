/*
 * safetensors_write.c - one pass over the data: check for finite numbers, add
 * to the checksum, write to a temporary file. A sealed file is read back.
 */
#include "core/clock.h"
#include "core/file/file.h"
#include "core/grow.h"
#include "io/model/safetensors_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct bm_st_writer {
    bm_file_replacement file;
    bool sealed, begun;
    json_t *meta;
    bm_st_tensor *tensors;
    size_t n, room;
    size_t at;      /* the tensor to be written next */
    uint64_t left;  /* bytes of it that are missing */
    uint64_t bytes; /* size of the file, once begun */
    XXH3_state_t *sum;
};

bm_status bm_st_create(bm_st_writer **out, const char *path, bool sealed)
{
    bm_st_writer *w = calloc(1, sizeof *w);
    bm_status status = BM_OK;

    if (w == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to write %s", path);
    w->sealed = sealed;
    w->meta = json_object();
    w->sum = XXH3_createState();
    if (w->meta == NULL || w->sum == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to write %s", path);
    XXH3_128bits_reset(w->sum);
    BM_TRY_DONE(bm_file_replace_begin(&w->file, path));
    *out = w;
    w = NULL;
done:
    bm_st_close(w);
    return status;
}

bm_status bm_st_meta(bm_st_writer *w, const char *key, const char *text)
{
    json_t *value = json_string(text);

    BM_ASSERT(!w->begun);
    if (value == NULL || json_object_set_new(w->meta, key, value) != 0)
        return BM_FAIL(BM_ERR_ARG, "%s: the text '%s' is not UTF-8",
                       w->file.path, key);
    return BM_OK;
}

bm_status bm_st_declare(bm_st_writer *w, const bm_st_tensor *t)
{
    bm_st_tensor *new = NULL;

    BM_ASSERT(!w->begun && t->rank >= 0 && t->rank <= BM_ST_RANK);
    BM_ASSERT(memchr(t->name, '\0', sizeof t->name) != NULL);
    BM_ASSERT(w->n == 0 || bm_dtype_size(t->dtype) <=
                               bm_dtype_size(w->tensors[w->n - 1].dtype));
    BM_TRY(bm_grow(&w->tensors, w->n, &w->room, sizeof *w->tensors));
    new = &w->tensors[w->n++];
    *new = *t;
    new->count = 1;
    for (int i = 0; i < t->rank; i++)
        BM_ASSERT(bm_st_multiply(new->count, t->dim[i], &new->count));
    return BM_OK;
}

static uint64_t size_of(const bm_st_tensor *t)
{
    return t->count * bm_dtype_size(t->dtype);
}

/* Advances to the tensor of the next byte. */
static void skip_complete(bm_st_writer *w)
{
    while (w->left == 0 && w->at < w->n && ++w->at < w->n)
        w->left = size_of(&w->tensors[w->at]);
}

static json_t *shape_of(const bm_st_tensor *t)
{
    json_t *shape = json_array();
    int failed = 0;

    for (int i = 0; i < t->rank; i++)
        failed |=
            json_array_append_new(shape, json_integer((json_int_t)t->dim[i]));
    if (failed) {
        json_decref(shape);
        return NULL;
    }
    return shape;
}

/* The header as text, from malloc, and the bytes of all data; NULL without
 * memory or if a name is not UTF-8. */
static char *header_text(const bm_st_writer *w, uint64_t *data)
{
    json_t *header = json_object();
    uint64_t offset = 0;
    char *text = NULL;
    int failed = header == NULL;

    if (json_object_size(w->meta) > 0)
        failed |= json_object_set(header, BM_ST_META_NAME, w->meta);
    for (size_t i = 0; i < w->n && !failed; i++) {
        const bm_st_tensor *t = &w->tensors[i];
        uint64_t end = offset + size_of(t);

        BM_ASSERT(json_object_get(header, t->name) == NULL);
        failed |= json_object_set_new(
            header, t->name,
            json_pack("{s:s, s:o, s:[I, I]}", "dtype", bm_dtype_name(t->dtype),
                      "shape", shape_of(t), "data_offsets", (json_int_t)offset,
                      (json_int_t)end));
        offset = end;
    }
    *data = offset;
    if (!failed)
        text = json_dumps(header, JSON_COMPACT);
    json_decref(header);
    return text;
}

static bm_status put(bm_st_writer *w, const void *data, size_t size)
{
    XXH3_128bits_update(w->sum, data, size);
    return bm_file_replace_write(&w->file, data, size);
}

/* Reports a full disk before anything is written. On a file system that cannot
 * reserve space, writing reports it. */
static bm_status reserve_space(const bm_st_writer *w)
{
    int error = bm_file_reserve(w->file.fd, (off_t)w->bytes);

    if (error == EFBIG)
        return BM_FAIL(
            BM_ERR_IO,
            "%s would have %" PRIu64
            " bytes, which is more than files may have here (%s): "
            "raise the limit, ulimit -f, or see what the disk's file "
            "system allows",
            w->file.path, w->bytes, strerror(error));
    if (error == ENOSPC || error == EDQUOT)
        return BM_FAIL(BM_ERR_IO,
                       "%s: disk full: no space for %" PRIu64 " bytes (%s)",
                       w->file.path, w->bytes, strerror(error));
    return BM_OK;
}

/* All tensors are declared: reserves space and writes the header. */
static bm_status begin(bm_st_writer *w)
{
    static const char blanks[64] = "                                "
                                   "                                ";
    bm_st_tensor seal = {BM_ST_SEAL_NAME, BM_U8, 1, {BM_ST_SEAL_SIZE}, 0};
    char *text = NULL;
    uint64_t data = 0, length = 0;
    size_t n = 0, padding = 0;
    bm_status status = BM_OK;

    if (w->sealed)
        BM_TRY(bm_st_declare(w, &seal));
    w->begun = true;
    w->left = w->n > 0 ? size_of(&w->tensors[0]) : 0;
    skip_complete(w);
    text = header_text(w, &data);
    if (text == NULL)
        return BM_FAIL(
            BM_ERR_MEMORY,
            "%s: no memory for the header, or a tensor's name is not "
            "UTF-8",
            w->file.path);
    n = strlen(text);
    padding = (64 - (8 + n) % 64) % 64;
    length = n + padding;
    if (length > BM_ST_HEADER_MOST)
        BM_FAIL_DONE(BM_ERR_ARG,
                     "%s: the header has %zu bytes; the limit is %d",
                     w->file.path, n, BM_ST_HEADER_MOST);
    w->bytes = 8 + length + data;
    BM_TRY_DONE(reserve_space(w));
    BM_TRY_DONE(put(w, &length, sizeof length));
    BM_TRY_DONE(put(w, text, n));
    BM_TRY_DONE(put(w, blanks, padding));
done:
    free(text);
    return status;
}

static bm_status check_finite(const bm_st_writer *w, const void *data,
                              size_t size)
{
    const bm_st_tensor *t = &w->tensors[w->at];
    size_t width = bm_dtype_size(t->dtype), n = size / width;
    size_t bad = bm_st_first_not_finite(t->dtype, data, n);

    BM_ASSERT(size % width == 0);
    if (bad < n)
        return BM_FAIL(BM_ERR_NUMERIC,
                       "%s is not written: element %" PRIu64
                       " of %s is NaN or infinite",
                       w->file.path, t->count - w->left / width + bad, t->name);
    return BM_OK;
}

bm_status bm_st_write(bm_st_writer *w, const void *data, size_t size)
{
    const char *from = data;

    if (!w->begun)
        BM_TRY(begin(w));
    while (size > 0) {
        size_t k = size < w->left ? size : (size_t)w->left;

        BM_ASSERT(w->at < w->n);
        BM_TRY(check_finite(w, from, k));
        BM_TRY(put(w, from, k));
        from += k;
        size -= k;
        w->left -= k;
        skip_complete(w);
    }
    return BM_OK;
}

/* The checksum of the file as it is on the disk, not in the kernel's memory. */
static bm_status sum_file(const char *path, uint64_t bytes, XXH128_hash_t *out)
{
    enum { PART = 1 << 20 };
    int fd = -1;
    uint64_t n = 0;
    XXH3_state_t *sum = XXH3_createState();
    char *part = malloc(PART);
    ssize_t k = 1;
    bm_status status = BM_OK;

    if (sum == NULL || part == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to verify %s", path);
    if (bm_file_open_regular(&fd, path) != BM_OK)
        BM_FAIL_DONE(BM_ERR_IO, "%s; it was written, but cannot be read back",
                     bm_last_message());
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    XXH3_128bits_reset(sum);
    for (; n <= bytes && k != 0; n += (uint64_t)(k > 0 ? k : 0)) {
        k = read(fd, part, PART);
        if (k < 0 && errno != EINTR)
            BM_FAIL_DONE(BM_ERR_IO, "%s was written, but cannot be read: %s",
                         path, strerror(errno));
        if (k > 0)
            XXH3_128bits_update(sum, part, (size_t)k);
    }
    *out = XXH3_128bits_digest(sum);
done:
    if (fd >= 0)
        close(fd);
    free(part);
    XXH3_freeState(sum);
    return status;
}

/* Compares the file on the disk with what was written. */
static bm_status verify(const bm_st_writer *w)
{
    XXH128_hash_t found = {0};

    BM_TRY(sum_file(w->file.temporary, w->bytes, &found));
    if (!XXH128_isEqual(found, XXH3_128bits_digest(w->sum)))
        return BM_FAIL(BM_ERR_IO,
                       "%s was written, but its bytes on the disk are others: "
                       "the disk, its controller or memory is faulty",
                       w->file.path);
    return BM_OK;
}

bm_status bm_st_commit(bm_st_writer *w, bm_st_commitment *done)
{
    unsigned char seal[BM_ST_SEAL_SIZE];
    double since = 0;
    bm_st_commitment out = {0};

    BM_TRY(bm_st_write(w, NULL, 0)); /* the header, if there was no data */
    if (w->sealed) {
        BM_ASSERT(w->at == w->n - 1 && w->left == sizeof seal);
        bm_st_seal(XXH3_128bits_digest(w->sum), seal);
        BM_TRY(bm_st_write(w, seal, sizeof seal));
    }
    BM_ASSERT(w->at == w->n);
    out.bytes = w->bytes;
    if (w->sealed) {
        BM_TRY(bm_file_replace_sync(&w->file));
        since = bm_clock();
        BM_TRY(verify(w));
        out.verify_s = bm_clock() - since;
    }
    BM_TRY(bm_file_replace_commit(&w->file, true));
    if (done != NULL)
        *done = out;
    return BM_OK;
}

void bm_st_close(bm_st_writer *w)
{
    if (w == NULL)
        return;
    bm_file_replace_abort(&w->file);
    json_decref(w->meta);
    XXH3_freeState(w->sum);
    free(w->tensors);
    free(w);
}
