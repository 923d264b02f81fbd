/*
 * shard_file.c - writes one shard. HDF5 may close a file without an error
 * although a full disk lost some of it. So every call is checked, and the file
 * is read back from the disk before it gets its name.
 *
 * Metadata have the format of HDF5 1.8, with checksums and without times, so
 * that equal contents give equal files.
 */
#include "io/shard/shard_file.h"

#include "core/file/file.h"
#include "io/features/feature_ops.h"
#include "io/shard/store.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALIGNMENT = 65536 };

/* The file being written. After the first failure, which is kept in status, all
 * writing is skipped. */
typedef struct target {
    const char *path;
    hid_t file;
    bm_status status;
} target;

static void fail(target *t, const char *what)
{
    if (t->status == BM_OK)
        t->status = BM_FAIL(BM_ERR_IO, "%s: %s cannot be written (HDF5: %s)",
                            t->path, what, bm_h5_reason());
}

static void make_group(target *t, const char *name)
{
    hid_t plist = H5Pcreate(H5P_GROUP_CREATE), id = H5I_INVALID_HID;

    if (t->status == BM_OK) {
        H5Pset_obj_track_times(plist, 0);
        id = H5Gcreate2(t->file, name, H5P_DEFAULT, plist, H5P_DEFAULT);
        if (id < 0 || H5Gclose(id) < 0)
            fail(t, name);
    }
    H5Pclose(plist);
}

/* Writes an array; columns = 0: rank 1. */
static void put(target *t, const char *name, hid_t type, size_t rows,
                size_t columns, const void *data)
{
    hsize_t dim[2] = {rows, columns};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t extent = H5Screate_simple(columns > 0 ? 2 : 1, dim, NULL);
    hid_t id = H5I_INVALID_HID;

    if (t->status == BM_OK) {
        H5Pset_obj_track_times(plist, 0);
        H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER);
        id = H5Dcreate2(t->file, name, type, extent, H5P_DEFAULT, plist,
                        H5P_DEFAULT);
        if (id < 0 || (rows > 0 && H5Dwrite(id, type, H5S_ALL, H5S_ALL,
                                            H5P_DEFAULT, data) < 0))
            fail(t, name);
        if (id >= 0 && H5Dclose(id) < 0)
            fail(t, name);
    }
    H5Sclose(extent);
    H5Pclose(plist);
}

static hid_t text_type(size_t width)
{
    hid_t type = H5Tcopy(H5T_C_S1);

    H5Tset_size(type, width > 0 ? width : 1);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    H5Tset_cset(type, H5T_CSET_UTF8);
    return type;
}

/* Writes n texts, padded to the longest. */
static void put_texts(target *t, const char *name, const char *const *texts,
                      size_t n)
{
    size_t width = 1;
    char *rows = NULL;
    hid_t type = H5I_INVALID_HID;

    for (size_t i = 0; i < n; i++)
        width = strlen(texts[i]) > width ? strlen(texts[i]) : width;
    rows = calloc(n + 1, width);
    if (rows == NULL) {
        t->status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu texts", n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        memcpy(rows + i * width, texts[i], strlen(texts[i]));
    type = text_type(width);
    put(t, name, type, n, 0, rows);
    H5Tclose(type);
    free(rows);
}

static void attribute(target *t, const char *group, const char *name,
                      hid_t type, size_t n, const void *value)
{
    hsize_t dim = n;
    hid_t extent =
        n > 1 ? H5Screate_simple(1, &dim, NULL) : H5Screate(H5S_SCALAR);
    hid_t id = H5I_INVALID_HID;

    if (t->status == BM_OK) {
        id = H5Acreate_by_name(t->file, group, name, type, extent, H5P_DEFAULT,
                               H5P_DEFAULT, H5P_DEFAULT);
        if (id < 0 || H5Awrite(id, type, value) < 0)
            fail(t, name);
        if (id >= 0 && H5Aclose(id) < 0)
            fail(t, name);
    }
    H5Sclose(extent);
}

static void put_number(target *t, const char *group, const char *name,
                       int64_t value)
{
    attribute(t, group, name, H5T_STD_I64LE, 1, &value);
}

static void put_text(target *t, const char *group, const char *name,
                     const char *text)
{
    hid_t type = text_type(strlen(text));

    attribute(t, group, name, type, 1, text);
    H5Tclose(type);
}

static size_t count(const bm_bytes *b, size_t size)
{
    return b->n / size;
}

static size_t sequences(const bm_shard_contents *c)
{
    return count(&c->lengths, 2 * sizeof(int32_t));
}

/* Attributes and groups that RETURNN and CURRENNT read. */
static void put_returnn(target *t, const bm_shard_contents *c)
{
    size_t row = c->meta.features * bm_store_size(c->store);
    size_t classes = bm_vocab_size(c->meta.vocab);
    int32_t size[] = {(int32_t)classes, 1}; /* and sparse */

    put_number(t, "/", "numTimesteps", (int64_t)count(&c->inputs, row));
    put_number(t, "/", "inputPattSize", (int64_t)c->meta.features);
    put_number(t, "/", "numDims", 1);
    put_number(t, "/", "numLabels", (int64_t)classes);
    put_number(t, "/", "numSeqs", (int64_t)sequences(c));
    make_group(t, "targets");
    make_group(t, "targets/data");
    make_group(t, "targets/size");
    make_group(t, "targets/labels");
    attribute(t, "targets/size", "classes", H5T_STD_I32LE, 2, size);
}

static void put_sequences(target *t, const bm_shard_contents *c)
{
    size_t row = c->meta.features * bm_store_size(c->store);
    size_t n = sequences(c), width = 0;
    const char **tags = malloc((n + 1) * sizeof *tags);
    const char *tag = c->tags.data;
    hid_t half = bm_h5_half();
    hid_t type = c->store == BM_STORE_F32   ? H5T_IEEE_F32LE
                 : c->store == BM_STORE_F16 ? half
                                            : H5T_STD_U8LE;

    put(t, "inputs", type, count(&c->inputs, row), c->meta.features,
        c->inputs.data);
    H5Tclose(half);
    put(t, "targets/data/classes", H5T_STD_I32LE,
        count(&c->labels, sizeof(int32_t)), 0, c->labels.data);
    put(t, "seqLengths", H5T_STD_I32LE, n, 2, c->lengths.data);
    if (tags == NULL) {
        t->status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu tags", n);
        return;
    }
    for (size_t i = 0; i < n; i++, tag += width) {
        tags[i] = tag;
        width = strlen(tag) + 1;
    }
    put_texts(t, "seqTags", tags, n);
    free(tags);
}

/* Writes the running sums of a column of the lengths, [n + 1]. */
static void put_offsets(target *t, const bm_shard_contents *c, const char *name,
                        int column)
{
    const int32_t *lengths = (const int32_t *)(void *)c->lengths.data;
    size_t n = sequences(c);
    uint64_t *sums = malloc((n + 1) * sizeof *sums);

    if (sums == NULL) {
        t->status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu offsets", n);
        return;
    }
    sums[0] = 0;
    for (size_t i = 0; i < n; i++)
        sums[i + 1] = sums[i] + (uint64_t)lengths[2 * i + (size_t)column];
    put(t, name, H5T_STD_U64LE, n + 1, 0, sums);
    free(sums);
}

/* Only where a sequence has a reference without labels: without the list a
 * sequence without labels has none. */
static void put_references(target *t, const bm_shard_contents *c)
{
    const int32_t *length = (const int32_t *)(void *)c->lengths.data;
    int64_t references = 0;
    bool empty = false;

    for (size_t i = 0; i < sequences(c); i++) {
        references += c->reference.data[i];
        empty = empty || (c->reference.data[i] != 0 && length[2 * i + 1] == 0);
    }
    if (!empty)
        return;
    put_number(t, "bmuf", "references", references);
    put(t, "bmuf/reference", H5T_STD_U8LE, sequences(c), 0, c->reference.data);
}

static void put_speakers(target *t, const bm_shard_contents *c)
{
    const char *const *names = (const char *const *)(void *)c->speakers.data;
    const double *m = (const double *)(void *)c->moments.data;
    size_t n = count(&c->speakers, sizeof *names), columns = c->meta.features;
    double *x = malloc((n * columns + 1) * sizeof *x);
    static const char *const sums[] = {"bmuf/cmvn/sum", "bmuf/cmvn/sumsq"};

    if (x == NULL) {
        t->status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu speakers", n);
        return;
    }
    put(t, "bmuf/speaker", H5T_STD_I32LE, sequences(c), 0, c->speaker.data);
    put_texts(t, "bmuf/speakers", names, n);
    make_group(t, "bmuf/cmvn");
    for (size_t i = 0; i < n; i++)
        x[i] = m[i * BM_MOMENTS(columns)];
    put(t, "bmuf/cmvn/count", H5T_IEEE_F64LE, n, 0, x);
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < n; i++)
            memcpy(x + i * columns,
                   m + i * BM_MOMENTS(columns) + 1 + k * columns,
                   columns * sizeof *x);
        put(t, sums[k], H5T_IEEE_F64LE, n, columns, x);
    }
    free(x);
}

/* u8 is for images, with one scale for all columns. */
static void put_quant(target *t, const bm_shard_contents *c, float *scale,
                      float *offset)
{
    for (size_t d = 0; d < c->meta.features; d++) {
        scale[d] = (float)c->meta.quant_scale;
        offset[d] = (float)c->meta.quant_offset;
    }
    if (c->store != BM_STORE_U8)
        return;
    make_group(t, "bmuf/quant");
    put(t, "bmuf/quant/scale", H5T_IEEE_F32LE, c->meta.features, 0, scale);
    put(t, "bmuf/quant/offset", H5T_IEEE_F32LE, c->meta.features, 0, offset);
}

/* Writes units, checksums, quantisation, and the digest of the tables. */
static void put_units(target *t, const bm_shard_contents *c)
{
    char digest[BM_DIGEST_LENGTH + 1];
    size_t unit = BM_UNIT_COLUMNS * sizeof(uint64_t);
    bm_shard_tables tables = {
        .features = c->meta.features,
        .n = sequences(c),
        .units = count(&c->units, unit),
        .store = c->store,
        .lengths = (int32_t *)(void *)c->lengths.data,
        .unit = (uint64_t *)(void *)c->units.data,
        .crc = (uint32_t *)(void *)c->crc.data,
        .scale = malloc(c->meta.features * sizeof(float)),
        .offset = malloc(c->meta.features * sizeof(float)),
    };
    bm_status status = BM_OK;

    if (tables.scale == NULL || tables.offset == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for scales");
    put_quant(t, c, tables.scale, tables.offset);
    BM_TRY_DONE(bm_shard_digest(&tables, digest));
    put(t, "bmuf/block", H5T_STD_U64LE, tables.units, BM_UNIT_COLUMNS,
        tables.unit);
    put(t, "bmuf/block_crc32c", H5T_STD_U32LE, tables.units, 2, tables.crc);
    put_text(t, "bmuf", "tables_xxh3", digest);
done:
    if (t->status == BM_OK)
        t->status = status;
    free(tables.scale);
    free(tables.offset);
}

/* The samples, where they are, their moments, checksums, and the digest of
 * these. */
static void put_samples(target *t, const bm_shard_contents *c)
{
    char digest[BM_DIGEST_LENGTH + 1];
    size_t n = sequences(c);
    bm_sample_tables tables = {
        .rate = c->meta.sample_rate,
        .offset = calloc(n + 1, sizeof *tables.offset),
        .crc = (uint32_t *)(void *)c->sample_crc.data,
        .moments = (int64_t)c->meta.moments,
        .moments_crc = (uint32_t *)(void *)c->sample_moments_crc.data,
    };
    bm_status status = BM_OK;

    if (tables.rate == 0)
        goto done;
    if (tables.offset == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu offsets", n);
    memcpy(tables.offset + 1, c->sample_ends.data, n * sizeof *tables.offset);
    BM_TRY_DONE(bm_sample_digest(&tables, n, digest));
    put_number(t, "bmuf", BM_SAMPLE_RATE, tables.rate);
    put_text(t, "bmuf", BM_SAMPLE_DIGEST, digest);
    put(t, "bmuf/sample_offset", H5T_STD_U64LE, n + 1, 0, tables.offset);
    put(t, "bmuf/sample_crc32c", H5T_STD_U32LE, n, 0, tables.crc);
    put(t, "bmuf/samples", H5T_STD_I16LE, count(&c->samples, sizeof(int16_t)),
        0, c->samples.data);
    if (tables.moments == 0)
        goto done;
    put_number(t, "bmuf", BM_SAMPLE_MOMENTS, tables.moments);
    put(t, "bmuf/sample_moments", H5T_IEEE_F64LE, n, c->meta.moments,
        c->sample_moments.data);
    put(t, "bmuf/sample_moments_crc32c", H5T_STD_U32LE, n, 0,
        tables.moments_crc);
done:
    if (t->status == BM_OK)
        t->status = status;
    free(tables.offset);
}

static void put_vocab(target *t, const bm_shard_contents *c)
{
    char digest[BM_DIGEST_LENGTH + 1];
    size_t n = bm_vocab_size(c->meta.vocab);
    const char **lines = malloc((n + 1) * sizeof *lines);
    char *text = NULL, *at = NULL;
    bm_status status = BM_OK;

    if (lines == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu symbols", n);
    BM_TRY_DONE(bm_vocab_print(c->meta.vocab, &text));
    bm_digest(text, strlen(text), digest);
    at = text;
    for (size_t k = 0; k < n; k++) {
        char *end = strchr(at, '\n');
        *end = '\0';
        lines[k] = at;
        at = end + 1;
    }
    put_texts(t, "targets/labels/classes", lines, n);
    put_number(t, "bmuf", "num_classes", (int64_t)n);
    put_text(t, "bmuf", "label_xxh3", digest);
    put_text(t, "bmuf", "symbols",
             bm_vocab_words(c->meta.vocab) ? "words" : "characters");
done:
    if (t->status == BM_OK)
        t->status = status;
    free(text);
    free(lines);
}

static void put_all(target *t, const bm_shard_contents *c,
                    const bm_shard_place *place)
{
    char digest[BM_DIGEST_LENGTH + 1];

    put_returnn(t, c);
    make_group(t, "bmuf");
    put_text(t, "bmuf", "format", "bmuf-shard");
    put_number(t, "bmuf", "format_version", BM_SHARD_VERSION);
    put_text(t, "bmuf", "creator", "bmuf");
    put_number(t, "bmuf", "shard_index", place->index);
    put_number(t, "bmuf", "shard_count", place->count);
    put_number(t, "bmuf", "first_sequence", place->first);
    put_number(t, "bmuf", "before_xxh3", (int64_t)place->before);
    put_text(t, "bmuf", "task", c->meta.per_frame ? "frame" : "ctc");
    put_number(t, "bmuf", "blank_index", 0);
    put_number(t, "bmuf", "feat_dim", (int64_t)c->meta.features);
    put_number(t, "bmuf", "frame_shift_us", llround(c->meta.frame_shift * 1e6));
    put_text(t, "bmuf", "feat_config", c->meta.features_text);
    if (c->meta.text_form != NULL)
        put_text(t, "bmuf", "text_form", c->meta.text_form);
    bm_digest(c->tags.data, c->tags.n, digest);
    put_text(t, "bmuf", "tags_xxh3", digest);
    put_vocab(t, c);
    put_units(t, c);
    put_offsets(t, c, "bmuf/frame_offset", 0);
    put_offsets(t, c, "bmuf/label_offset", 1);
    put(t, "bmuf/min_frames", H5T_STD_I32LE, sequences(c), 0,
        c->min_frames.data);
    put_references(t, c);
    put_speakers(t, c);
    put_sequences(t, c);
    put_samples(t, c);
}

static bm_status write_file(const bm_shard_contents *c, const char *path,
                            const bm_shard_place *place)
{
    target t = {path, H5I_INVALID_HID, BM_OK};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    hid_t create = H5Pcreate(H5P_FILE_CREATE);

    H5Pset_fclose_degree(access, H5F_CLOSE_STRONG);
    H5Pset_file_locking(access, 0, 1);
    H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_V110);
    H5Pset_alignment(access, ALIGNMENT, ALIGNMENT);
    H5Pset_obj_track_times(create, 0);
    t.file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    H5Pclose(create);
    H5Pclose(access);
    if (t.file < 0)
        return BM_FAIL(BM_ERR_CREATE, "%s: %s", path, bm_h5_reason());
    put_all(&t, c, place);
    if (H5Fclose(t.file) < 0)
        fail(&t, "the end of the file");
    return t.status;
}

/* On the disk, and no longer in the page cache, so that it is read back from the
 * disk. */
static bm_status flush(bm_file_replacement *r)
{
    BM_TRY(bm_file_replace_sync(r));
    (void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_DONTNEED);
    return BM_OK;
}

static bm_status read_back(const char *path, uint64_t *hash)
{
    bm_shard *s = NULL;
    bm_sequences x = {0};
    bm_waveform wave = {0};
    const char *text = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_shard_open(&s, path));
    BM_TRY_DONE(bm_shard_tag(s, 0, &text));
    BM_TRY_DONE(bm_shard_speaker(s, 0, &text));
    for (size_t k = 0; k < bm_shard_units(s); k++)
        BM_TRY_DONE(bm_shard_read(s, k, &x));
    for (size_t i = 0; i < bm_shard_sequences(s); i++)
        if (bm_shard_sample_rate(s) > 0)
            BM_TRY_DONE(bm_shard_read_waveform(s, i, &wave));
    *hash = bm_shard_hash(s);
done:
    bm_sequences_free(&x);
    bm_waveform_free(&wave);
    bm_shard_close(s);
    return status;
}

bm_status bm_shard_contents_write(const bm_shard_contents *c, const char *path,
                                  const bm_shard_place *place, uint64_t *hash)
{
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, path));
    bm_h5_enter();
    status = write_file(c, r.temporary, place); /* HDF5 wants a name */
    bm_h5_leave();
    if (status == BM_OK)
        status = flush(&r);
    if (status == BM_OK)
        status = read_back(r.temporary, hash);
    if (status == BM_OK)
        status = bm_file_replace_commit(&r, true);
    bm_file_replace_abort(&r);
    return status;
}

void bm_shard_contents_empty(bm_shard_contents *c, bool all)
{
    bm_bytes *const arrays[] = {&c->inputs,
                                &c->labels,
                                &c->lengths,
                                &c->min_frames,
                                &c->reference,
                                &c->tags,
                                &c->speaker,
                                &c->speakers,
                                &c->moments,
                                &c->units,
                                &c->crc,
                                &c->samples,
                                &c->sample_ends,
                                &c->sample_crc,
                                &c->sample_moments,
                                &c->sample_moments_crc};
    char **names = (char **)(void *)c->speakers.data;

    for (size_t i = 0; i < c->speakers.n / sizeof *names; i++)
        free(names[i]);
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++) {
        arrays[i]->n = 0;
        if (all) {
            free(arrays[i]->data);
            *arrays[i] = (bm_bytes){0};
        }
    }
}
