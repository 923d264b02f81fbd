/*
 * safetensors_read.c - every number of the header is compared with the file's
 * size before it is used, in arithmetic that cannot overflow.
 */
#include "core/file/file.h"
#include "io/model/safetensors_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* `tensor` must be first: bm_st_read casts a pointer to it. */
typedef struct entry {
    bm_st_tensor tensor;
    uint64_t begin, end; /* bytes from the end of the header */
} entry;

struct bm_st_file {
    char *path;
    int fd;
    uint64_t size;  /* of the file */
    uint64_t start; /* of the data */
    json_t *meta;   /* an object of strings, or NULL */
    entry *entries; /* in the order of the data */
    size_t n;
};

/* Reads `size` bytes from `offset` on. */
static bm_status read_at(const bm_st_file *f, uint64_t offset, void *data,
                         size_t size)
{
    char *to = data;

    while (size > 0) {
        ssize_t k = pread(f->fd, to, size, (off_t)offset);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return BM_FAIL(BM_ERR_IO, "%s: reading at byte %" PRIu64 ": %s",
                           f->path, offset, strerror(errno));
        if (k == 0)
            return BM_FAIL(BM_ERR_FORMAT, "%s: ends at byte %" PRIu64, f->path,
                           offset);
        to += k;
        offset += (uint64_t)k;
        size -= (size_t)k;
    }
    return BM_OK;
}

/* ---- the header ---------------------------------------------------------- */

static bm_status parse_text(bm_st_file *f, const char *text, size_t n,
                            json_t **out)
{
    json_error_t error;
    json_t *header = NULL;

    if (n == 0 || text[0] != '{')
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: not a safetensors file: the header does not begin "
                       "with '{'",
                       f->path);
    header = json_loadb(text, n, JSON_REJECT_DUPLICATES, &error);
    if (header == NULL && json_error_code(&error) == json_error_out_of_memory)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the header of %s",
                       f->path);
    if (header == NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s: header, at byte %d: %s", f->path,
                       8 + error.position, error.text);
    *out = header;
    return BM_OK;
}

static bm_status read_header(bm_st_file *f, json_t **out)
{
    unsigned char length[8];
    uint64_t n = 0;
    char *text = NULL;
    bm_status status = BM_OK;

    if (f->size < sizeof length)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: not a safetensors file: %" PRIu64 " bytes", f->path,
                       f->size);
    BM_TRY(read_at(f, 0, length, sizeof length));
    for (int i = 7; i >= 0; i--)
        n = n << 8 | length[i];
    if (n > BM_ST_HEADER_MOST || n > f->size - sizeof length)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: not a safetensors file, or truncated: its first 8 bytes "
            "announce a header of %" PRIu64 " bytes, but the file has %" PRIu64
            " and headers at most %d",
            f->path, n, f->size, BM_ST_HEADER_MOST);
    text = malloc((size_t)n + 1);
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the header of %s",
                       f->path);
    BM_TRY_DONE(read_at(f, sizeof length, text, (size_t)n));
    BM_TRY_DONE(parse_text(f, text, (size_t)n, out));
    f->start = sizeof length + n;
done:
    free(text);
    return status;
}

/* Names are printed in messages: no control characters. */
static bm_status check_name(const bm_st_file *f, const char *name)
{
    size_t n = strlen(name);

    if (n == 0 || n >= BM_ST_NAME)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the name of a tensor has %zu bytes, not 1 to %d",
                       f->path, n, BM_ST_NAME - 1);
    for (const char *c = name; *c != '\0'; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: the name of a tensor has control characters",
                           f->path);
    return BM_OK;
}

/* A whole number that is not negative. */
static bool number_of(const json_t *value, uint64_t *out)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bm_status parse_shape(const bm_st_file *f, const json_t *shape,
                             bm_st_tensor *t)
{
    if (!json_is_array(shape) || json_array_size(shape) > BM_ST_RANK)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %s: the shape is not a list of at most %d numbers",
                       f->path, t->name, BM_ST_RANK);
    t->rank = (int)json_array_size(shape);
    t->count = 1;
    for (int i = 0; i < t->rank; i++) {
        if (!number_of(json_array_get(shape, (size_t)i), &t->dim[i]))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: %s: dimension %d is not a whole number",
                           f->path, t->name, i);
        if (!bm_st_multiply(t->count, t->dim[i], &t->count))
            return BM_FAIL(BM_ERR_FORMAT, "%s: %s: the shape is too large",
                           f->path, t->name);
    }
    return BM_OK;
}

static bm_status parse_offsets(const bm_st_file *f, const json_t *offsets,
                               entry *e)
{
    const bm_st_tensor *t = &e->tensor;
    uint64_t room = f->size - f->start, size = 0;

    if (json_array_size(offsets) != 2 ||
        !number_of(json_array_get(offsets, 0), &e->begin) ||
        !number_of(json_array_get(offsets, 1), &e->end))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %s: data_offsets are not two whole numbers",
                       f->path, t->name);
    if (e->begin > e->end || e->end > room)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %s: bytes %" PRIu64 " to %" PRIu64
                       " are outside the data of %" PRIu64 " bytes",
                       f->path, t->name, e->begin, e->end, room);
    if (!bm_st_multiply(t->count, bm_dtype_size(t->dtype), &size) ||
        size != e->end - e->begin)
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: %s: %" PRIu64 " elements of %s in %" PRIu64 " bytes", f->path,
            t->name, t->count, bm_dtype_name(t->dtype), e->end - e->begin);
    return BM_OK;
}

static bm_status parse_entry(const bm_st_file *f, const char *name,
                             const json_t *row, entry *e)
{
    const char *dtype = json_string_value(json_object_get(row, "dtype"));

    BM_TRY(check_name(f, name));
    memcpy(e->tensor.name, name, strlen(name) + 1);
    if (json_object_size(row) != 3 || dtype == NULL)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %s must have dtype, shape and data_offsets only",
                       f->path, name);
    if (!bm_dtype_parse(dtype, &e->tensor.dtype))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %s: unknown type '%.8s'; F64, F32, F16, I64, I8 "
                       "and U8 are supported",
                       f->path, name, dtype);
    BM_TRY(parse_shape(f, json_object_get(row, "shape"), &e->tensor));
    return parse_offsets(f, json_object_get(row, "data_offsets"), e);
}

static bm_status keep_meta(bm_st_file *f, json_t *meta)
{
    const char *key = NULL;
    json_t *value = NULL;

    if (!json_is_object(meta))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: " BM_ST_META_NAME " is not an object", f->path);
    json_object_foreach(meta, key, value)
    {
        if (!json_is_string(value))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: " BM_ST_META_NAME ": '%.60s' is not a text",
                           f->path, key);
    }
    f->meta = json_incref(meta);
    return BM_OK;
}

static bm_status parse_entries(bm_st_file *f, json_t *header)
{
    const char *name = NULL;
    json_t *row = NULL;

    f->entries = calloc(json_object_size(header) + 1, sizeof *f->entries);
    if (f->entries == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu tensors of %s",
                       json_object_size(header), f->path);
    json_object_foreach(header, name, row)
    {
        if (strcmp(name, BM_ST_META_NAME) == 0)
            BM_TRY(keep_meta(f, row));
        else
            BM_TRY(parse_entry(f, name, row, &f->entries[f->n++]));
    }
    return BM_OK;
}

static int by_place(const void *left, const void *right)
{
    const entry *a = left, *b = right;

    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->tensor.name, b->tensor.name);
}

/* Tensors must fill the data without holes or overlap. */
static bm_status check_places(bm_st_file *f)
{
    uint64_t at = 0, room = f->size - f->start;

    if (f->n > 0)
        qsort(f->entries, f->n, sizeof *f->entries, by_place);
    for (size_t i = 0; i < f->n; i++) {
        const entry *e = &f->entries[i];
        if (e->begin != at)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: %s begins at byte %" PRIu64
                           " of the data, not at %" PRIu64,
                           f->path, e->tensor.name, e->begin, at);
        at = e->end;
    }
    if (at != room)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the tensors have %" PRIu64
                       " bytes, the data of the "
                       "file %" PRIu64,
                       f->path, at, room);
    return BM_OK;
}

/* ---- the seal ------------------------------------------------------------ */

static bm_status sum_up(const bm_st_file *f, uint64_t size, XXH128_hash_t *out)
{
    enum { CHUNK = 1 << 20 };
    XXH3_state_t *sum = XXH3_createState();
    char *chunk = malloc(CHUNK);
    bm_status status = BM_OK;

    if (sum == NULL || chunk == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to check %s", f->path);
    XXH3_128bits_reset(sum);
    for (uint64_t at = 0; at < size;) {
        size_t k = size - at < CHUNK ? (size_t)(size - at) : CHUNK;
        BM_TRY_DONE(read_at(f, at, chunk, k));
        XXH3_128bits_update(sum, chunk, k);
        at += k;
    }
    *out = XXH3_128bits_digest(sum);
done:
    free(chunk);
    XXH3_freeState(sum);
    return status;
}

static bool is_seal(const entry *e)
{
    return strcmp(e->tensor.name, BM_ST_SEAL_NAME) == 0;
}

static bm_status check_seal(const bm_st_file *f)
{
    unsigned char found[BM_ST_SEAL_SIZE], right[BM_ST_SEAL_SIZE];
    const entry *e = f->n > 0 ? &f->entries[f->n - 1] : NULL;
    XXH128_hash_t sum = {0};

    if (e == NULL || !is_seal(e) || e->tensor.dtype != BM_U8 ||
        e->tensor.rank != 1 || e->tensor.count != sizeof found)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the checksum at the end is missing: not a "
                       "checkpoint, or written by another program",
                       f->path);
    BM_TRY(read_at(f, f->start + e->begin, found, sizeof found));
    BM_TRY(sum_up(f, f->start + e->begin, &sum));
    bm_st_seal(sum, right);
    if (memcmp(found, right, sizeof right) != 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: wrong checksum: the file is damaged",
                       f->path);
    return BM_OK;
}

/* Removes the seal from the list of tensors. */
static void hide_seal(bm_st_file *f)
{
    size_t kept = 0;

    for (size_t i = 0; i < f->n; i++)
        if (!is_seal(&f->entries[i]))
            f->entries[kept++] = f->entries[i];
    f->n = kept;
}

/* ---- the interface ------------------------------------------------------- */

static bm_status open_file(bm_st_file *f)
{
    struct stat info;

    BM_TRY(bm_file_open_regular(&f->fd, f->path));
    if (fstat(f->fd, &info) != 0)
        return BM_FAIL(BM_ERR_IO, "%s: %s", f->path, strerror(errno));
    f->size = (uint64_t)info.st_size;
    return BM_OK;
}

bm_status bm_st_open(bm_st_file **out, const char *path, bool sealed)
{
    bm_st_file *f = calloc(1, sizeof *f);
    json_t *header = NULL;
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", path);
    f->fd = -1;
    f->path = strdup(path);
    if (f->path == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to read %s", path);
    BM_TRY_DONE(open_file(f));
    BM_TRY_DONE(read_header(f, &header));
    BM_TRY_DONE(parse_entries(f, header));
    BM_TRY_DONE(check_places(f));
    if (sealed)
        BM_TRY_DONE(check_seal(f));
    hide_seal(f);
    *out = f;
    f = NULL;
done:
    json_decref(header);
    bm_st_free(f);
    return status;
}

void bm_st_free(bm_st_file *f)
{
    if (f == NULL)
        return;
    if (f->fd >= 0)
        close(f->fd);
    json_decref(f->meta);
    free(f->entries);
    free(f->path);
    free(f);
}

size_t bm_st_count(const bm_st_file *f)
{
    return f->n;
}

const bm_st_tensor *bm_st_at(const bm_st_file *f, size_t i)
{
    BM_ASSERT(i < f->n);
    return &f->entries[i].tensor;
}

const bm_st_tensor *bm_st_find(const bm_st_file *f, const char *name)
{
    for (size_t i = 0; i < f->n; i++)
        if (strcmp(f->entries[i].tensor.name, name) == 0)
            return &f->entries[i].tensor;
    return NULL;
}

const char *bm_st_text(const bm_st_file *f, const char *key)
{
    return json_string_value(json_object_get(f->meta, key));
}

bm_status bm_st_read(bm_st_file *f, const bm_st_tensor *t, uint64_t offset,
                     uint64_t count, void *data)
{
    const entry *e = (const entry *)(const void *)t;
    size_t width = bm_dtype_size(t->dtype), bad = 0;

    BM_ASSERT(e >= f->entries && e < f->entries + f->n);
    BM_ASSERT(offset <= t->count && count <= t->count - offset);
    BM_TRY(read_at(f, f->start + e->begin + offset * width, data,
                   (size_t)(count * width)));
    bad = bm_st_first_not_finite(t->dtype, data, (size_t)count);
    if (bad < count)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: element %" PRIu64 " of %s is NaN or infinite",
                       f->path, offset + bad, t->name);
    return BM_OK;
}
