/*
 * The layout of docs/data/shards.md, read with plain HDF5 calls: every field has the
 * values of the corpus, and shards that another program wrote in chunks are
 * read as well.
 */
#include "io/shard/dataset.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { N = 60, D = CORPUS_D, CLASSES = 5, SPEAKERS = 2 };
enum { UNIT = 30, SHARD = 2000 }; /* frames, bytes */

static const char *const stores[] = {"f32", "f16", "u8"};
static const size_t widths[] = {4, 2, 1};

/* ---- the expected contents of a shard -------------------------------------
 */

typedef struct expected {
    size_t n, frames, labels, units, speakers;
    float x[N * CORPUS_FRAMES][D];
    int32_t lengths[N][2], classes[N * CORPUS_LABELS], least[N], speaker[N];
    char tags[N][8];
    uint64_t frame_at[N + 1], label_at[N + 1], unit[N][6];
    char names[SPEAKERS][8];
    double count[SPEAKERS], sum[SPEAKERS][D], square[SPEAKERS][D];
} expected;

/* Speakers are numbered in each shard, in the order of appearance. */
static int32_t speaker_of(expected *e, size_t i)
{
    static const char *const names[] = {"anna", "b\xc3\xa9la"};

    if (i % 3 == 2)
        return -1;
    for (size_t k = 0; k < e->speakers; k++)
        if (strcmp(e->names[k], names[i % 3]) == 0)
            return (int32_t)k;
    snprintf(e->names[e->speakers], sizeof e->names[0], "%s", names[i % 3]);
    return (int32_t)e->speakers++;
}

static void expect_features(expected *e, size_t i, int32_t speaker)
{
    for (size_t t = 0; t < corpus_frames(i); t++, e->frames++) {
        if (speaker >= 0)
            e->count[speaker]++;
        for (size_t d = 0; d < D; d++) {
            double value = corpus_value(i, t, d);

            e->x[e->frames][d] = (float)value;
            if (speaker < 0)
                continue;
            e->sum[speaker][d] += value; /* exact: multiples of 1/64 */
            e->square[speaker][d] += value * value;
        }
    }
}

/* Adds sequence i; true if it is the last of a unit. */
static bool expect(expected *e, size_t i)
{
    int32_t *classes = e->classes + e->labels;
    size_t n = corpus_labels(i, classes), k = e->n++;
    uint64_t *unit = e->unit[e->units];

    if (unit[1]++ == 0) {
        unit[0] = k;
        unit[2] = e->frames;
        unit[4] = e->labels;
    }
    e->lengths[k][0] = (int32_t)corpus_frames(i);
    e->lengths[k][1] = e->least[k] = (int32_t)n;
    for (size_t j = 1; j < n; j++)
        e->least[k] += classes[j] == classes[j - 1];
    snprintf(e->tags[k], sizeof e->tags[k], "set/%zu", i);
    e->speaker[k] = speaker_of(e, i);
    expect_features(e, i, e->speaker[k]);
    e->labels += n;
    e->frame_at[k + 1] = e->frames;
    e->label_at[k + 1] = e->labels;
    unit[3] = e->frames - unit[2];
    unit[5] = e->labels - unit[4];
    return unit[3] >= UNIT;
}

/* ---- plain HDF5 -----------------------------------------------------------
 */

static int64_t number(hid_t file, const char *group, const char *name)
{
    hid_t id = H5Aopen_by_name(file, group, name, H5P_DEFAULT, H5P_DEFAULT);
    int64_t value = -1;

    assert_true(H5Aread(id, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(id);
    return value;
}

static void assert_text(hid_t file, const char *name, const char *wanted)
{
    hid_t id = H5Aopen_by_name(file, "bmuf", name, H5P_DEFAULT, H5P_DEFAULT);
    hid_t type = H5Aget_type(id);
    char text[200] = "";

    assert_true(H5Tget_size(type) < sizeof text);
    assert_true(H5Aread(id, type, text) >= 0);
    assert_string_equal(text, wanted);
    H5Tclose(type);
    H5Aclose(id);
}

/* Reads an array in its own type, or converted to `type`; free() it. */
static void *read_array(hid_t file, const char *name, hid_t type, size_t rows,
                        size_t columns)
{
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT), extent = H5Dget_space(id);
    hid_t own = H5Dget_type(id), as = type > 0 ? type : own;
    hsize_t dim[2] = {0, 1};
    char *data = NULL;

    assert_int_equal(H5Sget_simple_extent_ndims(extent), columns > 0 ? 2 : 1);
    H5Sget_simple_extent_dims(extent, dim, NULL);
    assert_true(dim[0] == rows && dim[1] == (columns > 0 ? columns : 1));
    data = calloc(rows * (size_t)dim[1] + 1, H5Tget_size(as));
    assert_non_null(data);
    assert_true(H5Dread(id, as, 0, 0, 0, data) >= 0);
    H5Tclose(own);
    H5Sclose(extent);
    H5Dclose(id);
    return data;
}

/* columns = 0: rank 1. */
static void assert_array(hid_t file, const char *name, hid_t type, size_t rows,
                         size_t columns, const void *wanted)
{
    size_t size = rows * (columns > 0 ? columns : 1) * H5Tget_size(type);
    void *found = read_array(file, name, type, rows, columns);

    if (memcmp(found, wanted, size) != 0)
        fail_msg("/%s is not what it should be", name);
    free(found);
}

static void assert_texts(hid_t file, const char *name, size_t n,
                         char wanted[][8])
{
    hid_t type = H5Tcopy(H5T_C_S1);
    char(*found)[8] = NULL;

    H5Tset_size(type, 8);
    H5Tset_cset(type, H5T_CSET_UTF8);
    found = read_array(file, name, type, n, 0);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(found[i], wanted[i]);
    free(found);
    H5Tclose(type);
}

/* ---- every field ----------------------------------------------------------
 */

static char symbols[CLASSES][8] = {"<blank>", "<space>", "a", "b", "c"};

static void assert_digest(hid_t file, const char *name, const void *bytes,
                          size_t size)
{
    XXH128_hash_t hash = XXH3_128bits(bytes, size);
    char text[33];

    snprintf(text, sizeof text, "%016llx%016llx",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
    assert_text(file, name, text);
}

/* Digest of n texts, each with its terminator. */
static void assert_digest_of_texts(hid_t file, const char *name, size_t n,
                                   char texts[][8], char end)
{
    char all[N * 8];
    size_t size = 0;

    for (size_t i = 0; i < n; i++) {
        size_t length = strlen(texts[i]);

        memcpy(all + size, texts[i], length);
        size += length;
        all[size++] = end;
    }
    assert_digest(file, name, all, size);
}

static void assert_attributes(hid_t file, size_t index, const expected *e)
{
    int32_t size[2] = {0, 0};
    hid_t id = 0;

    assert_int_equal(number(file, "/", "numTimesteps"), e->frames);
    assert_int_equal(number(file, "/", "inputPattSize"), D);
    assert_int_equal(number(file, "/", "numDims"), 1);
    assert_int_equal(number(file, "/", "numLabels"), CLASSES);
    assert_int_equal(number(file, "/", "numSeqs"), e->n);
    id = H5Aopen_by_name(file, "targets/size", "classes", H5P_DEFAULT,
                         H5P_DEFAULT);
    assert_true(H5Aread(id, H5T_NATIVE_INT32, size) >= 0);
    assert_true(size[0] == CLASSES && size[1] == 1);
    H5Aclose(id);
    assert_text(file, "format", "bmuf-shard");
    assert_int_equal(number(file, "bmuf", "format_version"), 1);
    assert_text(file, "task", "ctc");
    assert_text(file, "symbols", "characters");
    assert_int_equal(number(file, "bmuf", "blank_index"), 0);
    assert_int_equal(number(file, "bmuf", "num_classes"), CLASSES);
    assert_int_equal(number(file, "bmuf", "feat_dim"), D);
    assert_int_equal(number(file, "bmuf", "frame_shift_us"), 10000);
    assert_text(file, "feat_config", "{\"kind\": \"corpus\"}");
    assert_int_equal(number(file, "bmuf", "shard_index"), index);
    assert_text(file, "creator", "bmuf");
}

/* CRC-32C, reflected, bit by bit. */
static uint32_t crc32c(const unsigned char *data, size_t size)
{
    uint32_t crc = ~(uint32_t)0;

    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

/* Units, their checksums, and the digest of the tables. `quant`: the bytes of
 * scale and offset. */
static void assert_units(hid_t file, size_t width, const expected *e,
                         const void *quant, size_t quant_size)
{
    unsigned char *x = read_array(file, "inputs", 0, e->frames, D);
    unsigned char *tables = NULL;
    uint32_t crc[N][2];
    size_t row = D * width, size = 0;
    const void *arrays[] = {e->lengths, e->unit, crc, quant};
    size_t sizes[] = {8 * e->n, 48 * e->units, 8 * e->units, quant_size};

    for (size_t k = 0; k < e->units; k++) {
        const uint64_t *u = e->unit[k];

        crc[k][0] = crc32c(x + u[2] * row, u[3] * row);
        crc[k][1] = crc32c((const unsigned char *)(e->classes + u[4]),
                           u[5] * sizeof e->classes[0]);
    }
    assert_array(file, "bmuf/block", H5T_NATIVE_UINT64, e->units, 6, e->unit);
    assert_array(file, "bmuf/block_crc32c", H5T_NATIVE_UINT32, e->units, 2,
                 crc);
    tables = malloc(64 * N + 64 * D);
    assert_non_null(tables);
    FOR_EACH (i, arrays) {
        memcpy(tables + size, arrays[i], sizes[i]);
        size += sizes[i];
    }
    assert_digest(file, "tables_xxh3", tables, size);
    free(tables);
    free(x);
}

/* value = offset + scale * stored, to the nearest step. */
static void assert_stored(hid_t file, const expected *e, const float *scale,
                          const float *offset)
{
    float *x = read_array(file, "inputs", H5T_NATIVE_FLOAT, e->frames, D);

    for (size_t t = 0; t < e->frames; t++)
        for (size_t d = 0; d < D; d++) {
            float value = offset[d] + scale[d] * x[t * D + d];
            assert_true(fabsf(value - e->x[t][d]) <= scale[d] / 2);
        }
    free(x);
}

/* `width` of a stored feature: 4, 2 or 1 bytes. */
static void assert_fields(hid_t file, size_t width, const corpus *c,
                          const expected *e)
{
    float quant[2][D];

    for (size_t d = 0; d < D; d++) {
        quant[0][d] = (float)c->meta.quant_scale;
        quant[1][d] = (float)c->meta.quant_offset;
    }
    if (width == 1) {
        assert_array(file, "bmuf/quant/scale", H5T_NATIVE_FLOAT, D, 0,
                     quant[0]);
        assert_array(file, "bmuf/quant/offset", H5T_NATIVE_FLOAT, D, 0,
                     quant[1]);
        assert_stored(file, e, quant[0], quant[1]);
    } else {
        assert_array(file, "inputs", H5T_NATIVE_FLOAT, e->frames, D, e->x);
    }
    assert_units(file, width, e, quant, width == 1 ? sizeof quant : 0);
    assert_array(file, "seqLengths", H5T_NATIVE_INT32, e->n, 2, e->lengths);
    assert_texts(file, "seqTags", e->n, (char(*)[8])e->tags);
    assert_digest_of_texts(file, "tags_xxh3", e->n, (char(*)[8])e->tags, 0);
    assert_array(file, "targets/data/classes", H5T_NATIVE_INT32, e->labels, 0,
                 e->classes);
    assert_texts(file, "targets/labels/classes", CLASSES, symbols);
    assert_digest_of_texts(file, "label_xxh3", CLASSES, symbols, '\n');
    assert_array(file, "bmuf/frame_offset", H5T_NATIVE_UINT64, e->n + 1, 0,
                 e->frame_at);
    assert_array(file, "bmuf/label_offset", H5T_NATIVE_UINT64, e->n + 1, 0,
                 e->label_at);
    assert_array(file, "bmuf/min_frames", H5T_NATIVE_INT32, e->n, 0, e->least);
    assert_array(file, "bmuf/speaker", H5T_NATIVE_INT32, e->n, 0, e->speaker);
    assert_texts(file, "bmuf/speakers", e->speakers, (char(*)[8])e->names);
    assert_array(file, "bmuf/cmvn/count", H5T_NATIVE_DOUBLE, e->speakers, 0,
                 e->count);
    assert_array(file, "bmuf/cmvn/sum", H5T_NATIVE_DOUBLE, e->speakers, D,
                 e->sum);
    assert_array(file, "bmuf/cmvn/sumsq", H5T_NATIVE_DOUBLE, e->speakers, D,
                 e->square);
}

/* The sequences from *i on that fit into a shard. */
static expected *expect_shard(size_t *i, size_t width)
{
    expected *e = calloc(1, sizeof *e);

    assert_non_null(e);
    while (*i < N)
        if (expect(e, (*i)++)) {
            e->units++;
            if (e->frames * D * width >= SHARD)
                return e;
        }
    e->units += e->unit[e->units][1] > 0; /* the last may be short */
    return e;
}

/* Includes all fields that RETURNN's HDFDataset reads. */
static void test_every_field_has_the_values_of_the_corpus(void **_)
{
    (void)_;
    FOR_EACH (s, stores) {
        char *directory = corpus_directory(), name[40];
        corpus c = corpus_make(directory, "set", N);
        size_t shards = 0, i = 0;

        c.settings = (bm_shard_settings){
            .unit_frames = UNIT, .shard_mb = SHARD / 1e6, .store = stores[s]};
        c.meta.quant_scale = 0.25;
        c.meta.quant_offset = -1;
        shards = corpus_write(&c);
        for (size_t k = 0; k < shards; k++) {
            expected *e = expect_shard(&i, widths[s]);
            hid_t file = 0;

            snprintf(name, sizeof name, "set-%05zu.bmuf.h5", k);
            file = H5Fopen(corpus_path(directory, name), H5F_ACC_RDONLY,
                           H5P_DEFAULT);
            assert_true(file >= 0);
            assert_attributes(file, k, e);
            assert_fields(file, widths[s], &c, e);
            H5Fclose(file);
            free(e);
        }
        assert_true(shards > 1 && i == N);
        bm_vocab_free((bm_vocab *)c.meta.vocab);
        corpus_remove(directory);
    }
}

/* ---- chunks ---------------------------------------------------------------
 */

/* The layout of an array by another program. */
typedef struct chunks {
    hsize_t rows,
        columns; /* 0: all; more than the array has: it is extendible */
    bool shuffle, deflate, fletcher, scale;
} chunks;

static hid_t chunk_plist(const chunks *how, int rank, const hsize_t dim[2])
{
    hsize_t chunk[2] = {how->rows, how->columns > 0 ? how->columns : dim[1]};
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);

    assert_true(H5Pset_chunk(plist, rank, chunk) >= 0);
    if (how->shuffle)
        H5Pset_shuffle(plist);
    if (how->deflate)
        H5Pset_deflate(plist, 6);
    if (how->fletcher)
        H5Pset_fletcher32(plist);
    if (how->scale)
        H5Pset_scaleoffset(plist, H5Z_SO_INT, H5Z_SO_INT_MINBITS_DEFAULT);
    return plist;
}

/* Writes the same array in another layout. */
static void rewrite(hid_t file, const char *name, const chunks *how)
{
    static const hsize_t any[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT), type = H5Dget_type(id);
    hid_t extent = H5Dget_space(id), plist = 0;
    int rank = H5Sget_simple_extent_ndims(extent);
    hsize_t dim[2] = {0, 1};
    char *data = NULL;

    H5Sget_simple_extent_dims(extent, dim, NULL);
    data = malloc((size_t)(dim[0] * dim[1]) * H5Tget_size(type));
    assert_non_null(data);
    assert_true(H5Dread(id, type, 0, 0, 0, data) >= 0);
    H5Dclose(id);
    H5Sclose(extent);
    H5Ldelete(file, name, H5P_DEFAULT);
    extent = H5Screate_simple(rank, dim, how->rows > dim[0] ? any : NULL);
    plist = chunk_plist(how, rank, dim);
    id = H5Dcreate2(file, name, type, extent, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_true(H5Dwrite(id, type, 0, 0, 0, data) >= 0);
    H5Dclose(id);
    H5Pclose(plist);
    H5Sclose(extent);
    H5Tclose(type);
    free(data);
}

/* A corpus of one shard, with `arrays`, ending with NULL, in chunks. */
static char *chunked(const char *store, const char *const *arrays,
                     const chunks *how)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", N);
    hid_t file = 0;

    c.settings.store = store;
    assert_int_equal(corpus_write(&c), 1);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    file = H5Fopen(corpus_path(directory, "set-00000.bmuf.h5"), H5F_ACC_RDWR,
                   H5P_DEFAULT);
    for (; *arrays != NULL; arrays++)
        rewrite(file, *arrays, how);
    H5Fclose(file);
    return directory;
}

static const char *const everything[] = {
    "inputs",     "targets/data/classes", "seqLengths", "seqTags",
    "bmuf/block", "bmuf/block_crc32c",    NULL};
static const char *const features[] = {"inputs", NULL};

static void test_shards_in_chunks_of_full_rows_are_read(void **_)
{
    static const chunks cases[] = {
        {.rows = 1},
        {.rows = 7}, /* divides no dimension */
        {.rows = 5000},
        {.rows = 7, .deflate = true},
        {.rows = 64, .shuffle = true, .deflate = true},
        {.rows = 7, .fletcher = true},
        {.rows = 7, .shuffle = true, .deflate = true, .fletcher = true},
    };

    (void)_;
    FOR_EACH (s, stores)
        FOR_EACH (i, cases) {
            bool small = cases[i].rows < 20; /* tables have few rows */
            char *directory =
                chunked(stores[s], small ? everything : features, &cases[i]);
            bm_dataset *d = NULL;
            bool failed = false;

            assert_ok(bm_dataset_open(&d, directory));
            assert_true(corpus_is(d, "set", N, &failed));
            assert_false(failed);
            bm_dataset_close(d);
            corpus_remove(directory);
        }
}

static void test_other_chunks_and_filters_are_rejected(void **_)
{
    static const struct {
        const char *store;
        chunks how;
    } cases[] = {
        {"f32", {.rows = 7, .columns = 2}},
        {"u8", {.rows = 7, .columns = 4, .deflate = true}},
        {"u8", {.rows = 7, .scale = true}},
    };

    (void)_;
    FOR_EACH (i, cases) {
        char *directory = chunked(cases[i].store, features, &cases[i].how);
        bm_shard *s = NULL;

        assert_int_equal(
            bm_shard_open(&s, corpus_path(directory, "set-00000.bmuf.h5")),
            BM_ERR_FORMAT);
        assert_non_null(strstr(
            bm_last_error(), "set-00000.bmuf.h5: /inputs is incomplete, or "
                             "neither contiguous nor in chunks of full rows"));
        corpus_remove(directory);
    }
}

/* Changes a byte in the middle of the first chunk of the features. */
static void damage_chunk(const char *path)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, "inputs", H5P_DEFAULT);
    hid_t extent = H5Dget_space(id);
    hsize_t offset[2] = {0}, size = 0;
    unsigned filters = 0;
    haddr_t at = 0;
    unsigned char byte = 0;
    int fd = -1;

    assert_true(
        H5Dget_chunk_info(id, extent, 0, offset, &filters, &at, &size) >= 0);
    H5Sclose(extent);
    H5Dclose(id);
    H5Fclose(file);
    fd = open(path, O_RDWR);
    assert_int_equal(pread(fd, &byte, 1, (off_t)(at + size / 2)), 1);
    byte ^= 4;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)(at + size / 2)), 1);
    close(fd);
}

static void test_a_damaged_chunk_is_reported(void **_)
{
    static const struct {
        chunks how;
        const char *message;
    } cases[] = {
        {{.rows = 7}, "the features of unit 0"},
        {{.rows = 7, .fletcher = true}, "/inputs: rows 0 to "},
        {{.rows = 7, .deflate = true}, "/inputs: rows 0 to "},
    };

    (void)_;
    FOR_EACH (i, cases) {
        char *directory = chunked("f32", features, &cases[i].how);
        const char *path = corpus_path(directory, "set-00000.bmuf.h5");
        bm_sequences x = {0};
        bm_shard *s = NULL;

        damage_chunk(path);
        assert_ok(bm_shard_open(&s, path));
        assert_int_equal(bm_shard_read(s, 0, &x), BM_ERR_FORMAT);
        assert_non_null(strstr(bm_last_error(), path));
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, bm_last_error());
        bm_sequences_free(&x);
        bm_shard_close(s);
        corpus_remove(directory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_field_has_the_values_of_the_corpus),
        cmocka_unit_test(test_shards_in_chunks_of_full_rows_are_read),
        cmocka_unit_test(test_other_chunks_and_filters_are_rejected),
        cmocka_unit_test(test_a_damaged_chunk_is_reported),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return RUN_GROUP("layout", tests);
}
