/*
 * Shards that keep recordings: what is read is what was written; damaged and
 * forged samples and moments are refused; shards without them have none of their
 * objects.
 */
#include "io/inspect/check.h"
#include "io/shard/shard_parts.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 12, RATE = 8000, MOMENTS = 5 };

/* Samples of a sequence; that of number 3 is empty. */
static size_t length_of(size_t i)
{
    return i == 3 ? 0 : 500 + 37 * i;
}

static int16_t sample_of(size_t i, size_t k)
{
    return (int16_t)((int)(i * 9973 + k * 7919) % 65536 - 32768);
}

static double moment_of(size_t i, size_t k)
{
    return 1 + (double)(i * 7 + k) / 3;
}

static void add(bm_shard_writer *w, const corpus *c, size_t i)
{
    static int16_t samples[1000];
    double moments[MOMENTS];
    bm_waveform wave = {.x = samples,
                        .n = length_of(i),
                        .moments = moments,
                        .n_moments = c->meta.moments};
    float x[CORPUS_FRAMES * CORPUS_D];
    int32_t labels[CORPUS_LABELS];
    size_t frames = corpus_frames(i), n = corpus_labels(i, labels);
    char tag[32];

    for (size_t k = 0; k < wave.n; k++)
        samples[k] = sample_of(i, k);
    for (size_t k = 0; k < wave.n_moments; k++)
        moments[k] = moment_of(i, k);
    for (size_t t = 0; t < frames; t++)
        for (size_t d = 0; d < CORPUS_D; d++)
            x[t * CORPUS_D + d] = corpus_value(i, t, d);
    snprintf(tag, sizeof tag, "set/%zu", i);
    assert_ok(
        bm_shard_writer_add_recording(w, tag, NULL, x, frames, labels, n,
                                      c->meta.sample_rate > 0 ? &wave : NULL));
}

/* Writes N sequences; returns the number of shards. */
static size_t write_moments(const char *directory, long rate, size_t moments,
                            double shard_mb)
{
    corpus c = corpus_make(directory, "set", N);
    bm_shard_writer *w = NULL;
    size_t shards = 0;

    c.meta.sample_rate = rate;
    c.meta.moments = moments;
    c.settings.shard_mb = shard_mb;
    assert_ok(bm_shard_writer_open(&w, directory, "set", &c.settings, &c.meta));
    for (size_t i = 0; i < N; i++)
        add(w, &c, i);
    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    return shards;
}

static size_t write_set(const char *directory, long rate, double shard_mb)
{
    return write_moments(directory, rate, 0, shard_mb);
}

static const char *shard_path(const char *directory)
{
    return corpus_path(directory, "set-00000.bmuf.h5");
}

static void test_recordings_are_read_as_written(void **_)
{
    char *directory = corpus_directory();
    bm_dataset *d = NULL;
    bm_waveform wave = {0};
    uint64_t samples = 0;
    bool failed = false;

    (void)_;
    /* Features alone are 5 kB, so samples count for the size of a shard. */
    assert_true(write_set(directory, RATE, 0.006) > 1);
    assert_ok(bm_dataset_open(&d, directory));
    for (size_t i = N; i-- > 0;) {
        assert_ok(bm_dataset_read_waveform(d, (int64_t)i, &wave));
        assert_int_equal(wave.n, length_of(i));
        for (size_t k = 0; k < wave.n; k++)
            assert_int_equal(wave.x[k], sample_of(i, k));
    }
    for (size_t i = 0; i < d->n_shards; i++) {
        assert_int_equal(bm_shard_sample_rate(d->shards[i]), RATE);
        samples += bm_shard_samples(d->shards[i]);
    }
    for (size_t i = 0; i < N; i++)
        samples -= length_of(i);
    assert_int_equal(samples, 0);
    assert_true(corpus_is(d, "set", N, &failed) && !failed);
    bm_waveform_free(&wave);
    bm_dataset_close(d);
    corpus_remove(directory);
}

static void test_moments_are_read_as_written(void **_)
{
    char *directory = corpus_directory();
    bm_dataset *d = NULL;
    bm_waveform wave = {0};

    (void)_;
    assert_true(write_moments(directory, RATE, MOMENTS, 0.006) > 1);
    assert_ok(bm_dataset_open(&d, directory));
    for (size_t i = N; i-- > 0;) {
        assert_ok(bm_dataset_read_waveform(d, (int64_t)i, &wave));
        assert_int_equal(wave.n, length_of(i));
        assert_int_equal(wave.n_moments, MOMENTS);
        for (size_t k = 0; k < MOMENTS; k++)
            assert_true(wave.moments[k] == moment_of(i, k));
    }
    bm_waveform_free(&wave);
    bm_dataset_close(d);
    corpus_remove(directory);
}

static void test_a_shard_without_them_has_no_object_of_theirs(void **_)
{
    static const char *const arrays[] = {"bmuf/samples", "bmuf/sample_offset",
                                         "bmuf/sample_crc32c"};
    static const char *const attributes[] = {BM_SAMPLE_RATE, BM_SAMPLE_DIGEST};
    static const char *const of_moments[] = {"bmuf/sample_moments",
                                             "bmuf/sample_moments_crc32c"};

    (void)_;
    for (int kept = 0; kept < 3; kept++) { /* 2: with moments */
        char *directory = corpus_directory();
        bm_shard *s = NULL;
        hid_t file = 0;

        write_moments(directory, kept > 0 ? RATE : 0, kept > 1 ? MOMENTS : 0,
                      256);
        file = H5Fopen(shard_path(directory), H5F_ACC_RDONLY, H5P_DEFAULT);
        FOR_EACH (k, arrays)
            assert_int_equal(H5Lexists(file, arrays[k], H5P_DEFAULT), kept > 0);
        FOR_EACH (k, of_moments)
            assert_int_equal(H5Lexists(file, of_moments[k], H5P_DEFAULT),
                             kept > 1);
        FOR_EACH (k, attributes)
            assert_int_equal(
                H5Aexists_by_name(file, "bmuf", attributes[k], H5P_DEFAULT),
                kept > 0);
        assert_int_equal(
            H5Aexists_by_name(file, "bmuf", BM_SAMPLE_MOMENTS, H5P_DEFAULT),
            kept > 1);
        H5Fclose(file);
        assert_ok(bm_shard_open(&s, shard_path(directory)));
        assert_int_equal(bm_shard_sample_rate(s), kept > 0 ? RATE : 0);
        assert_int_equal(bm_shard_moments(s), kept > 1 ? MOMENTS : 0);
        bm_shard_close(s);
        corpus_remove(directory);
    }
}

/* CRC-32C bit by bit: reflected polynomial 0x82F63B78, start and end ~0. */
static uint32_t crc_of(const unsigned char *x, size_t n)
{
    uint32_t crc = ~0u;

    for (size_t i = 0; i < n; i++) {
        crc ^= x[i];
        for (int b = 0; b < 8; b++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82F63B78u : 0);
    }
    return ~crc;
}

static void read_array(hid_t file, const char *name, hid_t type, void *out)
{
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT);

    assert_true(H5Dread(id, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, out) >= 0);
    H5Dclose(id);
}

/* As docs/data/shards.md has it. */
static void test_the_layout_is_that_of_the_page(void **_)
{
    char *directory = corpus_directory();
    static int16_t all[20000];
    uint64_t offset[N + 1], at = 0;
    uint32_t crc[N];
    hid_t file = 0;

    (void)_;
    write_set(directory, RATE, 256);
    file = H5Fopen(shard_path(directory), H5F_ACC_RDONLY, H5P_DEFAULT);
    read_array(file, "bmuf/sample_offset", H5T_NATIVE_UINT64, offset);
    read_array(file, "bmuf/sample_crc32c", H5T_NATIVE_UINT32, crc);
    read_array(file, "bmuf/samples", H5T_NATIVE_INT16, all);
    H5Fclose(file);
    for (size_t i = 0; i < N; i++) {
        int16_t own[1000];

        assert_int_equal(offset[i], at);
        for (size_t k = 0; k < length_of(i); k++)
            own[k] = sample_of(i, k);
        assert_memory_equal(all + at, own, length_of(i) * sizeof *own);
        assert_int_equal(
            crc[i], crc_of((unsigned char *)own, length_of(i) * sizeof *own));
        at += length_of(i);
    }
    assert_int_equal(offset[N], at);
    corpus_remove(directory);
}

static void flip(const char *path, const char *array, off_t at)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, array, H5P_DEFAULT);
    haddr_t place = H5Dget_offset(id);
    int fd = open(path, O_RDWR);
    unsigned char byte = 0;

    H5Dclose(id);
    H5Fclose(file);
    assert_true(fd >= 0 && place != HADDR_UNDEF);
    assert_int_equal(pread(fd, &byte, 1, (off_t)place + at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)place + at), 1);
    close(fd);
}

static void test_a_damaged_moment_is_found(void **_)
{
    char *directory = corpus_directory();
    bm_shard *s = NULL;
    bm_waveform wave = {0};

    (void)_;
    write_moments(directory, RATE, MOMENTS, 256);
    flip(shard_path(directory), "bmuf/sample_moments",
         (off_t)(MOMENTS * sizeof(double) + 3));
    assert_ok(bm_shard_open(&s, shard_path(directory)));
    assert_ok(bm_shard_read_waveform(s, 0, &wave));
    assert_int_equal(bm_shard_read_waveform(s, 1, &wave), BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "the moments of sequence set/1 are damaged"));
    assert_ok(bm_shard_read_waveform(s, 2, &wave));
    bm_waveform_free(&wave);
    bm_shard_close(s);
    corpus_remove(directory);
}

static void test_a_damaged_sample_is_found(void **_)
{
    char *directory = corpus_directory(), *report = NULL;
    bm_shard *s = NULL;
    bm_waveform wave = {0};
    bm_sequences x = {0};
    size_t problems = 0, size = 0;
    FILE *out = open_memstream(&report, &size);

    (void)_;
    write_set(directory, RATE, 256);
    flip(shard_path(directory), "bmuf/samples", (off_t)(2 * length_of(0) + 7));
    assert_ok(bm_shard_open(&s, shard_path(directory)));
    assert_int_equal(bm_shard_read_waveform(s, 1, &wave), BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "the samples of sequence set/1 are damaged"));
    assert_non_null(strstr(bm_last_error(), shard_path(directory)));
    assert_ok(bm_shard_read_waveform(s, 0, &wave)); /* others are read */
    assert_ok(bm_shard_read_waveform(s, 2, &wave));
    assert_ok(bm_shard_read(s, 0, &x));
    bm_shard_close(s);
    assert_ok(bm_check_directory(directory, 1, 0, out, false, NULL, &problems));
    fclose(out);
    assert_int_equal(problems, 1);
    assert_non_null(strstr(report, "the samples of sequence set/1"));
    free(report);
    bm_waveform_free(&wave);
    bm_sequences_free(&x);
    corpus_remove(directory);
}

/* ---- forged -------------------------------------------------------------- */

/* Recomputes the digest of the tables of samples. */
static void seal(hid_t file)
{
    char digest[BM_DIGEST_LENGTH + 1];
    uint64_t offset[N + 1];
    uint32_t crc[N];
    bm_sample_tables t = {.rate = RATE, .offset = offset, .crc = crc};
    hid_t type = H5Tcopy(H5T_C_S1);

    read_array(file, "bmuf/sample_offset", H5T_NATIVE_UINT64, offset);
    read_array(file, "bmuf/sample_crc32c", H5T_NATIVE_UINT32, crc);
    assert_ok(bm_sample_digest(&t, N, digest));
    H5Tset_size(type, BM_DIGEST_LENGTH);
    forge_attribute(file, BM_SAMPLE_DIGEST, type, digest);
    H5Tclose(type);
}

static void set_offset(hid_t file, size_t at, uint64_t value)
{
    uint64_t offset[N + 1];
    hid_t id = H5Dopen2(file, "bmuf/sample_offset", H5P_DEFAULT);

    H5Dread(id, H5T_NATIVE_UINT64, 0, 0, 0, offset);
    offset[at] = value;
    assert_true(H5Dwrite(id, H5T_NATIVE_UINT64, 0, 0, 0, offset) >= 0);
    H5Dclose(id);
}

/* A new array in place of `name`, without contents. */
static void replace(hid_t file, const char *name, hid_t type, hsize_t rows)
{
    hid_t extent = H5Screate_simple(1, &rows, NULL), id = 0;

    H5Ldelete(file, name, H5P_DEFAULT);
    id = H5Dcreate2(file, name, type, extent, H5P_DEFAULT, H5P_DEFAULT,
                    H5P_DEFAULT);
    assert_true(id >= 0);
    H5Dclose(id);
    H5Sclose(extent);
}

static void forge_unsealed(hid_t file)
{
    set_offset(file, 1, 501);
}

static void forge_first(hid_t file)
{
    set_offset(file, 0, 1);
    seal(file);
}

static void forge_beyond(hid_t file)
{
    set_offset(file, N, (uint64_t)1 << 60);
    seal(file);
}

static void forge_falling(hid_t file)
{
    set_offset(file, 5, (uint64_t)1 << 60);
    seal(file);
}

static void forge_huge(hid_t file)
{
    replace(file, "bmuf/samples", H5T_STD_I16LE, (hsize_t)1 << 50);
    set_offset(file, N, (uint64_t)1 << 50);
    seal(file);
}

static void forge_huge_offsets(hid_t file)
{
    replace(file, "bmuf/sample_offset", H5T_STD_U64LE, (hsize_t)1 << 50);
}

static void forge_few_checksums(hid_t file)
{
    replace(file, "bmuf/sample_crc32c", H5T_STD_U32LE, N - 1);
}

static void forge_floats(hid_t file)
{
    replace(file, "bmuf/samples", H5T_IEEE_F32LE, 0);
}

static void forge_missing(hid_t file)
{
    H5Ldelete(file, "bmuf/samples", H5P_DEFAULT);
}

static void forge_rate(hid_t file)
{
    int64_t rate = -1;

    forge_attribute(file, BM_SAMPLE_RATE, H5T_STD_I64LE, &rate);
}

static void forge_many_moments(hid_t file)
{
    int64_t many = (int64_t)1 << 40;

    forge_attribute(file, BM_SAMPLE_MOMENTS, H5T_STD_I64LE, &many);
}

static void forge_other_moments(hid_t file)
{
    int64_t other = MOMENTS + 1;

    forge_attribute(file, BM_SAMPLE_MOMENTS, H5T_STD_I64LE, &other);
}

static void forge_no_moments(hid_t file)
{
    H5Ldelete(file, "bmuf/sample_moments", H5P_DEFAULT);
}

static void forge_few_moment_checksums(hid_t file)
{
    replace(file, "bmuf/sample_moments_crc32c", H5T_STD_U32LE, N - 1);
}

static void forge_moment_checksums(hid_t file)
{
    static const uint32_t zeros[N];
    hid_t id = H5Dopen2(file, "bmuf/sample_moments_crc32c", H5P_DEFAULT);

    assert_true(H5Dwrite(id, H5T_NATIVE_UINT32, 0, 0, 0, zeros) >= 0);
    H5Dclose(id);
}

static void test_forged_samples_are_refused(void **_)
{
    static const struct {
        void (*forge)(hid_t file);
        const char *message;
        size_t moments;
    } cases[] = {
        {forge_unsealed, "the tables of samples are damaged", 0},
        {forge_first, "/bmuf/sample_offset is invalid", 0},
        {forge_beyond, "/bmuf/sample_offset is invalid", 0},
        {forge_falling, "/bmuf/sample_offset is invalid", 0},
        {forge_huge, "/bmuf/samples is incomplete", 0},
        {forge_huge_offsets, "/bmuf/sample_offset ", 0},
        {forge_few_checksums, "/bmuf/sample_crc32c ", 0},
        {forge_floats, "/bmuf/samples is not a list of int16", 0},
        {forge_missing, "/bmuf/samples is missing", 0},
        {forge_rate, "invalid sample_rate -1", 0},
        {forge_many_moments, "invalid sample_moments", MOMENTS},
        {forge_other_moments, "/bmuf/sample_moments is not a table of float64",
         MOMENTS},
        {forge_no_moments, "/bmuf/sample_moments is missing", MOMENTS},
        {forge_few_moment_checksums, "/bmuf/sample_moments_crc32c ", MOMENTS},
        {forge_moment_checksums, "the tables of samples are damaged", MOMENTS},
    };

    (void)_;
    FOR_EACH (i, cases) {
        char *directory = corpus_directory();
        bm_shard *s = NULL;
        hid_t file = 0;

        write_moments(directory, RATE, cases[i].moments, 256);
        file = H5Fopen(shard_path(directory), H5F_ACC_RDWR, H5P_DEFAULT);
        cases[i].forge(file);
        H5Fclose(file);
        assert_int_equal(bm_shard_open(&s, shard_path(directory)),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, bm_last_error());
        assert_non_null(strstr(bm_last_error(), shard_path(directory)));
        corpus_remove(directory);
    }
}

/* Sets that differ only in their recordings differ. */
static void test_the_hash_counts_the_samples(void **_)
{
    uint64_t hash[4] = {0};

    (void)_;
    FOR_EACH (k, hash) {
        char *directory = corpus_directory();
        bm_shard *s = NULL;

        if (k == 3)
            write_moments(directory, RATE + 1, MOMENTS, 256);
        else
            write_set(directory, k == 0 ? 0 : RATE + (long)k, 256);
        assert_ok(bm_shard_open(&s, shard_path(directory)));
        hash[k] = bm_shard_hash(s);
        bm_shard_close(s);
        corpus_remove(directory);
    }
    for (size_t k = 0; k < 4; k++)
        for (size_t j = 0; j < k; j++)
            assert_true(hash[j] != hash[k]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recordings_are_read_as_written),
        cmocka_unit_test(test_moments_are_read_as_written),
        cmocka_unit_test(test_a_shard_without_them_has_no_object_of_theirs),
        cmocka_unit_test(test_the_layout_is_that_of_the_page),
        cmocka_unit_test(test_a_damaged_sample_is_found),
        cmocka_unit_test(test_a_damaged_moment_is_found),
        cmocka_unit_test(test_forged_samples_are_refused),
        cmocka_unit_test(test_the_hash_counts_the_samples),
    };

    return RUN_GROUP("samples", tests);
}
