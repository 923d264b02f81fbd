/*
 * Shards and data sets: sequences are read back as written. test_layout.c tests
 * the layout of the file.
 */
#include "core/file/file.h"
#include "io/shard/crc32c.h"
#include "io/shard/crc32c_parts.h"
#include "io/shard/dataset.h"
#include "io/shard/store.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const stores[] = {"f32", "f16", "u8"};

/* ---- numbers ------------------------------------------------------------- */

/* CRC-32C, bit by bit. */
static uint32_t crc32c(const unsigned char *x, size_t n)
{
    uint32_t crc = ~(uint32_t)0;

    for (size_t i = 0; i < n; i++) {
        crc ^= x[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? (crc >> 1) ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

static void test_crc32c_equals_the_standard(void **_)
{
    uint32_t (*const ways[])(const void *, size_t) = {bm_crc32c,
                                                      bm_crc32c_plain};
    unsigned char x[1000];

    (void)_;
    FOR_EACH (w, ways) {
        assert_int_equal(ways[w]("123456789", 9), 0xe3069283u);
        memset(x, 0, 32); /* RFC 3720, B.4 */
        assert_int_equal(ways[w](x, 32), 0x8a9136aau);
        FOR_EACH (i, x)
            x[i] = (unsigned char)(i * 31 + i / 7);
        for (size_t at = 0; at < 9; at++) /* aligned or not */
            for (size_t n = 0; n < 30; n++)
                assert_int_equal(ways[w](x + at, n), crc32c(x + at, n));
        assert_int_equal(ways[w](x, sizeof x), crc32c(x, sizeof x));
    }
}

static float half_to_float(uint16_t half)
{
    float x = 0;

    bm_store_unpack(BM_STORE_F16, &half, &x, 1, 1, NULL, NULL);
    return x;
}

static uint16_t half_from_float(float x)
{
    uint16_t half = 0;

    (void)bm_store_pack(BM_STORE_F16, &x, 1, 0, 0, &half);
    return half;
}

/* IEEE 754: (-1)^s 2^(e - 15) (1 + m / 1024), subnormal for e = 0. */
static double half_value(unsigned h)
{
    unsigned e = h >> 10 & 31, m = h & 1023;
    double x = e > 0 ? ldexp(1024 + m, (int)e - 25) : ldexp(m, -24);

    return h & 0x8000 ? -x : x;
}

static void test_every_half_is_converted_to_its_value_and_back(void **_)
{
    (void)_;
    for (unsigned h = 0; h < 65536; h++) {
        float x = half_to_float((uint16_t)h);

        if ((h & 0x7c00) != 0x7c00)
            assert_true((double)x == half_value(h) &&
                        !signbit(x) == !(h & 0x8000));
        else if (h & 1023)
            assert_true(isnan(x));
        else
            assert_true(isinf(x) && !signbit(x) == !(h & 0x8000));
        if (!isnan(x))
            assert_int_equal(half_from_float(x), h);
    }
    assert_true(isnan(half_to_float(half_from_float(NAN))));
}

static void test_floats_become_the_nearest_half(void **_)
{
    (void)_;
    for (unsigned h = 0; h < 0x7bff; h++) {
        double low = half_value(h), high = half_value(h + 1);
        float middle = (float)((low + high) / 2);

        assert_int_equal(half_from_float(middle), h + (h & 1)); /* even */
        assert_int_equal(half_from_float(nextafterf(middle, 0)), h);
        assert_int_equal(half_from_float(nextafterf(middle, 1e9f)), h + 1);
        assert_int_equal(half_from_float(-nextafterf(middle, 0)), h | 0x8000);
    }
    assert_int_equal(half_from_float(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(half_from_float(65520), 0x7c00);
}

/* ---- round trips --------------------------------------------------------- */

static void test_sequences_are_read_back_from_every_store(void **_)
{
    (void)_;
    FOR_EACH (s, stores) {
        char *directory = corpus_directory();
        corpus c = corpus_make(directory, "set", 50);
        bm_dataset *d = NULL;
        bool failed = false;

        c.settings.store = stores[s];
        assert_int_equal(corpus_write(&c), 1);
        assert_ok(bm_dataset_open(&d, directory));
        assert_true(corpus_is(d, "set", 50, &failed));
        assert_false(failed);
        assert_int_equal(d->features, CORPUS_D);
        assert_int_equal(d->classes, 5);
        assert_true(bm_vocab_equal(bm_dataset_vocab(d), c.meta.vocab));
        assert_string_equal(bm_shard_features_text(d->shards[0]),
                            c.meta.features_text);
        assert_true(near(bm_shard_frame_shift(d->shards[0]), 0.01, 1e-12));
        assert_int_equal(bm_shard_store(d->shards[0]), s);
        bm_dataset_close(d);
        bm_vocab_free((bm_vocab *)c.meta.vocab);
        corpus_remove(directory);
    }
}

static void test_a_unit_ends_with_the_sequence_that_reaches_its_frames(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 50);
    bm_shard *s = NULL;
    size_t frames = 0, first = 0;

    (void)_;
    assert_int_equal(corpus_write(&c), 1);
    assert_ok(bm_shard_open(&s, corpus_path(directory, "set-00000.bmuf.h5")));
    for (size_t u = 0, i = 0; u < bm_shard_units(s); u++) {
        bm_unit_size size = bm_shard_unit(s, u);

        for (frames = 0, first = i; i < 50 && frames < 30; i++)
            frames += corpus_frames(i);
        assert_int_equal(size.first, first);
        assert_int_equal(size.sequences, i - first);
        assert_int_equal(size.frames, frames);
        assert_true(u + 1 < bm_shard_units(s) || i == 50);
    }
    bm_shard_close(s);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

static void test_shards_are_cut_by_size_and_read_as_one_list(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 400);
    bm_dataset *d = NULL;
    bool failed = false;
    int64_t frames = 0;
    size_t n = 0;

    (void)_;
    c.settings.shard_mb = 0.001; /* 50 frames */
    n = corpus_write(&c);
    assert_true(n > 40); /* more than stay open at once */
    assert_ok(bm_dataset_open(&d, directory));
    assert_int_equal(d->n_shards, n);
    for (size_t i = 0; i < n; i++) {
        double bytes = 0;
        for (size_t u = 0; u < bm_shard_units(d->shards[i]); u++) {
            assert_true(bytes < 1000);
            bytes += (double)bm_shard_unit(d->shards[i], u).frames * 20;
        }
        assert_true(bytes >= 1000 || i + 1 == n);
    }
    assert_true(corpus_is(d, "set", 400, &failed));
    assert_true(corpus_is(d, "set", 400, &failed)); /* a second epoch */
    assert_false(failed);
    for (size_t i = 0; i < 400; i++) {
        assert_int_equal(d->lengths[2 * i], corpus_frames(i));
        frames += d->lengths[2 * i];
    }
    assert_int_equal(d->frames, frames);
    assert_int_equal(d->longest, 20);
    bm_dataset_close(d);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* Sequence i is of speaker i % 3 of two and none, in every shard. */
static void test_speakers_are_read_back_from_all_shards(void **state)
{
    static const char *const expected[] = {"anna", "b\xc3\xa9la", ""};
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "many", 40);
    bm_dataset *d = NULL;
    const char *name = NULL;

    (void)state;
    c.settings.shard_mb = 0.002;
    assert_true(corpus_write(&c) > 1);
    assert_ok(bm_dataset_open(&d, directory));
    for (size_t i = 0; i < c.n; i++) {
        assert_ok(bm_dataset_speaker(d, (int64_t)i, &name));
        assert_string_equal(name, expected[i % 3]);
    }
    bm_dataset_close(d);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* A number beyond the list of names, which has two; then no list, as other programs write. */
static void test_speakers_are_not_trusted(void **state)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "bad", 4);
    const char *path = NULL, *name = NULL;
    bm_dataset *d = NULL;
    hid_t file = H5I_INVALID_HID, id = H5I_INVALID_HID;
    static const int32_t forged[] = {0, 2, -1, 0};

    (void)state;
    assert_int_equal(corpus_write(&c), 1);
    path = corpus_path(directory, "bad-00000.bmuf.h5");
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    id = H5Dopen2(file, "bmuf/speaker", H5P_DEFAULT);
    assert_true(H5Dwrite(id, H5T_NATIVE_INT32, 0, 0, 0, forged) >= 0);
    H5Dclose(id);
    H5Fclose(file);
    assert_ok(bm_dataset_open(&d, directory));
    assert_int_equal(bm_dataset_speaker(d, 0, &name), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_message(), "sequence 1 has speaker 2 of 2"));
    bm_dataset_close(d);
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    H5Ldelete(file, "bmuf/speakers", H5P_DEFAULT);
    H5Fclose(file);
    assert_ok(bm_dataset_open(&d, directory));
    assert_ok(bm_dataset_speaker(d, 0, &name));
    assert_string_equal(name, "");
    bm_dataset_close(d);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

static void test_frames_may_have_one_label_each(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 9);
    bm_sequences x = {0};
    bm_shard *s = NULL;

    (void)_;
    c.meta.per_frame = true;
    corpus_write(&c);
    assert_ok(bm_shard_open(&s, corpus_path(directory, "set-00000.bmuf.h5")));
    assert_true(bm_shard_per_frame(s));
    assert_ok(bm_shard_read(s, 0, &x));
    assert_int_equal(x.labels[1], x.frames[1]);
    assert_int_equal(x.targets[2], 0); /* the first of sequence 1 */
    assert_int_equal(x.targets[3], 1);
    bm_sequences_free(&x);
    bm_shard_close(s);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

static void test_empty_sequences_are_kept(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 0);
    bm_shard_writer *w = NULL;
    bm_sequences x = {0};
    bm_shard *s = NULL;
    size_t shards = 9;

    (void)_;
    assert_int_equal(corpus_write(&c), 0); /* nothing: no shard */
    assert_ok(bm_shard_writer_open(&w, directory, "set", &c.settings, &c.meta));
    assert_ok(bm_shard_writer_add(w, "a", NULL, NULL, 0, NULL, 0));
    assert_ok(bm_shard_writer_add(w, "b", NULL, NULL, 0, NULL, 0));
    assert_ok(bm_shard_writer_finish(w, &shards));
    assert_int_equal(shards, 1);
    bm_shard_writer_close(w);
    assert_ok(bm_shard_open(&s, corpus_path(directory, "set-00000.bmuf.h5")));
    assert_int_equal(bm_shard_sequences(s), 2);
    assert_ok(bm_shard_read(s, 0, &x));
    assert_int_equal(x.n, 2);
    assert_int_equal(x.frames[1] + x.labels[1], 0);
    bm_sequences_free(&x);
    bm_shard_close(s);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

static void test_reserve_grows_and_keeps_the_contents(void **_)
{
    bm_sequences s = {0};

    (void)_;
    assert_ok(bm_sequences_reserve(&s, 2, 3, 4, 5));
    assert_int_equal(s.features, 5);
    s.x[14] = 7;
    s.targets[3] = 8;
    s.frames[1] = 9;
    s.labels[1] = 10;
    assert_ok(bm_sequences_reserve(&s, 2000, 3000, 4000, 5));
    s.x[14999] = s.x[14];
    s.targets[3999] = s.targets[3];
    s.frames[1999] = s.labels[1999] = 0;
    assert_true(s.x[14] == 7 && s.targets[3] == 8);
    assert_true(s.frames[1] == 9 && s.labels[1] == 10);
    assert_int_equal(bm_sequences_reserve(&s, 1, SIZE_MAX / 2, 1, 8),
                     BM_ERR_MEMORY);
    bm_sequences_free(&s);
    assert_null(s.x);
}

static void test_equal_contents_give_equal_files(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "a", 20);
    char *bytes[2] = {0};
    size_t size[2] = {0};

    (void)_;
    corpus_write(&c);
    assert_ok(bm_file_read(corpus_path(directory, "a-00000.bmuf.h5"), 1 << 24,
                           &bytes[0], &size[0]));
    unlink(corpus_path(directory, "a-00000.bmuf.h5"));
    corpus_write(&c);
    assert_ok(bm_file_read(corpus_path(directory, "a-00000.bmuf.h5"), 1 << 24,
                           &bytes[1], &size[1]));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* A writer for each shard, as processes have it that share the work; one of them
 * again. */
static void test_shards_written_one_by_one_are_those_of_one_writer(void **_)
{
    char *directory[2] = {corpus_directory(), corpus_directory()};
    corpus c = corpus_make(directory[0], "set", 40);
    bm_shard_place place = {0}, before = {0};
    bm_dataset *d = NULL;
    size_t from = 0;

    (void)_;
    c.settings.shard_mb = 0.001;
    corpus_write(&c);
    assert_ok(bm_dataset_open(&d, directory[0]));
    assert_true(d->n_shards > 3);
    c.directory = directory[1];
    for (size_t i = 0; i < d->n_shards; i++) {
        size_t to = from + bm_shard_sequences(d->shards[i]);
        bm_shard_place own = bm_shard_place_of(d->shards[i]);
        bm_shard_place after = bm_shard_place_after(d->shards[i]);

        assert_true(own.index == place.index && own.first == place.first &&
                    own.before == place.before);
        before = place;
        corpus_write_part(&c, from, to, i + 1 == d->n_shards, &place);
        if (i == 2)
            corpus_write_part(&c, from, to, false, &before);
        assert_true(after.index == place.index && after.first == place.first &&
                    after.before == place.before);
        from = to;
    }
    for (size_t i = 0; i < d->n_shards; i++) {
        char path[PATH_MAX], *bytes[2] = {0};
        size_t size[2] = {0};

        for (size_t k = 0; k < 2; k++) {
            assert_ok(bm_shard_path(path, directory[k], "set", (int64_t)i));
            assert_ok(bm_file_read(path, 1 << 24, &bytes[k], &size[k]));
        }
        assert_int_equal(size[0], size[1]);
        assert_memory_equal(bytes[0], bytes[1], size[0]);
        free(bytes[0]);
        free(bytes[1]);
    }
    bm_dataset_close(d);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory[0]);
    corpus_remove(directory[1]);
}

/* ---- what the writer rejects --------------------------------------------- */

static void test_an_invalid_sequence_is_skipped(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 0);
    bm_shard_writer *w = NULL;
    bm_sequences x = {0};
    bm_shard *s = NULL;
    float frame[CORPUS_D] = {1, 2, 3, 4, 5}, big[CORPUS_D] = {1, 1e5f};
    int32_t good[] = {4}, blank[] = {1, 0}, high[] = {5};
    size_t shards = 0;

    (void)_;
    c.settings.store = "f16";
    assert_ok(bm_shard_writer_open(&w, directory, "set", &c.settings, &c.meta));
    assert_int_equal(bm_shard_writer_add(w, "a", NULL, frame, 1, blank, 2),
                     BM_ERR_FORMAT);
    assert_int_equal(bm_shard_writer_add(w, "b", NULL, frame, 1, high, 1),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "label 5 is outside [1, 4]"));
    assert_int_equal(bm_shard_writer_add(w, "c", "x", big, 1, good, 1),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "100000 cannot be stored as f16"));
    assert_int_equal(bm_shard_writer_add(w, "", NULL, frame, 1, good, 1),
                     BM_ERR_FORMAT);
    assert_ok(bm_shard_writer_add(w, "d", NULL, frame, 1, good, 1));
    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    assert_ok(bm_shard_open(&s, corpus_path(directory, "set-00000.bmuf.h5")));
    assert_int_equal(bm_shard_sequences(s), 1);
    assert_ok(bm_shard_read(s, 0, &x));
    assert_memory_equal(x.x, frame, sizeof frame);
    bm_sequences_free(&x);
    bm_shard_close(s);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* A full shard is written when the next sequence is valid: it may be the
 * last. */
static void test_an_invalid_sequence_behind_a_full_shard_is_skipped(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 0);
    bm_shard_writer *w = NULL;
    bm_dataset *d = NULL;
    bm_sequences x = {0};
    float frame[CORPUS_D] = {1, 2, 3, 4, 5}, big[CORPUS_D] = {1, 1e5f};
    int32_t good[] = {4};
    size_t shards = 0;

    (void)_;
    c.settings = (bm_shard_settings){1, 1e-6, "f16", false}; /* one in each */
    assert_ok(bm_shard_writer_open(&w, directory, "set", &c.settings, &c.meta));
    for (int i = 0; i < 3; i++) {
        char tag[] = {(char)('a' + i), '\0'};

        frame[0] = (float)i;
        assert_ok(bm_shard_writer_add(w, tag, "x", frame, 1, good, 1));
        assert_int_equal(bm_shard_writer_add(w, "no", "x", big, 1, good, 1),
                         BM_ERR_FORMAT);
    }
    assert_ok(bm_shard_writer_finish(w, &shards));
    assert_int_equal(shards, 3);
    bm_shard_writer_close(w);
    assert_ok(bm_dataset_open(&d, directory));
    assert_int_equal(d->n, 3);
    for (int i = 0; i < 3; i++) {
        assert_ok(bm_dataset_read(d, (size_t)i, &x));
        frame[0] = (float)i;
        assert_memory_equal(x.x, frame, sizeof frame);
    }
    bm_sequences_free(&x);
    bm_dataset_close(d);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* The parts of all units, read as they are stored, end to end. */
static size_t read_packed(bm_dataset *d, char *to)
{
    bm_sequences x = {.packed = true};
    size_t row = CORPUS_D * bm_shard_stored(d->shards[0]).bytes, n = 0;

    for (size_t u = 0; u < d->n_units; u++) {
        size_t frames = (size_t)d->units[u].frames;

        assert_ok(bm_dataset_read(d, u, &x));
        memcpy(to + n, x.x, frames * row);
        n += frames * row;
    }
    bm_sequences_free(&x);
    return n;
}

static void test_parts_of_units_hold_the_same_sequences(void **_)
{
    static const int64_t frames[] = {1, 30, 1000000};

    (void)_;
    FOR_EACH (k, stores)
        FOR_EACH (i, frames) {
            char *directory = corpus_directory();
            corpus c = corpus_make(directory, "set", 50);
            bm_dataset *whole = NULL, *d = NULL;
            bool failed = false;
            char *bytes[2];
            size_t n = 50 * CORPUS_FRAMES * CORPUS_D * sizeof(float);

            c.settings.store = stores[k];
            c.settings.unit_frames = 100;
            corpus_write(&c);
            assert_ok(bm_dataset_open(&whole, directory));
            assert_ok(bm_dataset_open(&d, directory));
            assert_ok(bm_dataset_cut(d, frames[i]));
            assert_true(corpus_is(d, "set", 50, &failed) && !failed);
            if (frames[i] == 1) /* empty sequences go with the next one */
                assert_true(d->n_units > 4 * whole->n_units);
            if (frames[i] == 1000000)
                assert_int_equal(d->n_units, whole->n_units);
            for (size_t u = 0; u + 1 < d->n_units; u++)
                if (d->units[u].unit == d->units[u + 1].unit)
                    assert_true(d->units[u].frames >= frames[i]);
            bytes[0] = zeros(n, 1);
            bytes[1] = zeros(n, 1);
            n = read_packed(whole, bytes[0]);
            assert_int_equal(read_packed(d, bytes[1]), n);
            assert_memory_equal(bytes[0], bytes[1], n);
            free(bytes[0]);
            free(bytes[1]);
            bm_dataset_close(whole);
            bm_dataset_close(d);
            bm_vocab_free((bm_vocab *)c.meta.vocab);
            corpus_remove(directory);
        }
}

static void test_a_writer_that_has_not_finished_leaves_nothing(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 0);
    bm_shard_writer *w = NULL;
    float frame[CORPUS_D] = {1};
    int32_t good[] = {4};

    (void)_;
    c.settings = (bm_shard_settings){1, 1e-6, "f32", false};
    assert_ok(bm_shard_writer_open(&w, directory, "set", &c.settings, &c.meta));
    for (int i = 0; i < 3; i++)
        assert_ok(bm_shard_writer_add(w, "a", NULL, frame, 1, good, 1));
    assert_int_equal(access(corpus_path(directory, "set-00001.bmuf.h5"), F_OK),
                     0);
    bm_shard_writer_close(w);
    assert_int_equal(rmdir(directory), 0);
    free(directory);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
}

static void test_existing_shards_are_not_mixed_with_new_ones(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 3);
    bm_shard_writer *w = NULL;

    (void)_;
    corpus_write(&c);
    assert_int_equal(
        bm_shard_writer_open(&w, directory, "set", &c.settings, &c.meta),
        BM_ERR_CREATE);
    assert_ok(bm_shard_writer_open(&w, directory, "se", &c.settings, &c.meta));
    bm_shard_writer_close(w);
    c.settings.store = "f64";
    assert_int_equal(
        bm_shard_writer_open(&w, directory, "other", &c.settings, &c.meta),
        BM_ERR_CONFIG);
    c.settings.store = "u8";
    c.meta.quant_scale = 0;
    assert_int_equal(
        bm_shard_writer_open(&w, directory, "other", &c.settings, &c.meta),
        BM_ERR_CONFIG);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* HDF5 has attributes of 64 KiB at most. */
static void test_a_description_that_is_too_long_is_refused(void **_)
{
    char *directory = corpus_directory(), text[60002];
    corpus c = corpus_make(directory, "set", 0);
    bm_shard_writer *w = NULL;

    (void)_;
    memset(text, 'x', sizeof text);
    text[60001] = '\0';
    c.meta.features_text = text;
    assert_int_equal(
        bm_shard_writer_open(&w, directory, "set", &c.settings, &c.meta),
        BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "has 60001 bytes"));
    assert_non_null(
        strstr(bm_last_error(), "use features.normalise = utterance"));
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* What a reader would refuse is not written. */
static void test_symbols_and_frames_that_are_too_long_are_refused(void **_)
{
    char *directory = corpus_directory(), text[5000];
    corpus c = corpus_make(directory, "set", 0);
    bm_vocab *v = NULL;
    bm_shard_meta meta = c.meta;
    bm_shard_writer *w = NULL;

    (void)_;
    memset(text, 'a', sizeof text);
    text[4096] = '\0';
    assert_ok(bm_vocab_new(&v, true));
    assert_ok(bm_vocab_learn(v, text));
    bm_vocab_sort(v);
    meta.vocab = v;
    assert_int_equal(
        bm_shard_writer_open(&w, directory, "set", &c.settings, &meta),
        BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "aaa..\" has 4096 bytes; shards "
                                            "hold 4095 at most"));
    meta = c.meta;
    meta.features = (1 << 20) + 1;
    assert_int_equal(
        bm_shard_writer_open(&w, directory, "set", &c.settings, &meta),
        BM_ERR_CONFIG);
    bm_vocab_free(v);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* A limit on file sizes simulates a full disk. */
static int write_on_full_disk(const corpus *c, rlim_t most)
{
    struct rlimit limit = {most, most};
    bm_shard_writer *w = NULL;
    float x[CORPUS_FRAMES * CORPUS_D] = {0};
    int32_t label = 1;
    size_t shards = 0;
    bm_status status = BM_OK;

    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    if (bm_shard_writer_open(&w, c->directory, c->name, &c->settings,
                             &c->meta) != BM_OK)
        return 1;
    for (int i = 0; status == BM_OK && i < 500; i++)
        status =
            bm_shard_writer_add(w, "tag", "s", x, CORPUS_FRAMES, &label, 1);
    if (status == BM_OK)
        status = bm_shard_writer_finish(w, &shards);
    return status == BM_OK ? 2 : 0;
}

static void test_a_full_disk_leaves_no_shard(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 0);

    (void)_;
    for (rlim_t most = 0; most < 200000; most += 20000) { /* of 220 kB */
        pid_t child = fork();
        int result = 0;

        if (child == 0)
            _exit(write_on_full_disk(&c, most));
        assert_int_equal(waitpid(child, &result, 0), child);
        assert_true(WIFEXITED(result) && WEXITSTATUS(result) == 0);
        assert_int_equal(rmdir(directory), 0); /* it is empty */
        assert_ok(bm_file_make_directory(directory));
    }
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* ---- data sets ----------------------------------------------------------- */

static void test_all_shards_that_differ_are_reported(void **_)
{
    char *directory = corpus_directory();
    corpus a = corpus_make(directory, "a", 5);
    corpus b = corpus_make(directory, "b", 5);
    corpus c = corpus_make(directory, "c", 5);
    corpus d = corpus_make(directory, "d", 5);
    corpus e = corpus_make(directory, "e", 5);
    bm_dataset *out = NULL;
    bm_vocab *other = NULL;
    const char *message = NULL;

    (void)_;
    a.meta.features_text = "{\"mels\": 40, \"seed\": 1}";
    b.meta.features = 7;
    b.meta.features_text = "{\"mels\": 40, \"seed\": 2}";
    c.meta.features_text = "{\"mels\": 80, \"seed\": 1}";
    d.meta.features_text = e.meta.features_text = "";
    bm_vocab_free((bm_vocab *)d.meta.vocab);
    d.meta.vocab = corpus_vocab(6);
    assert_ok(bm_vocab_parse(&other, "<blank>\nw\nx\ny\nz\n", false));
    bm_vocab_free((bm_vocab *)e.meta.vocab);
    e.meta.vocab = other;
    corpus_write(&a);
    corpus_write(&b);
    corpus_write(&c);
    corpus_write(&d);
    corpus_write(&e);
    assert_ok(bm_file_write(corpus_path(directory, "f-00000.bmuf.h5"),
                            "nonsense", 8));
    assert_ok(
        bm_file_make_directory(corpus_path(directory, "g-00000.bmuf.h5")));
    assert_int_equal(bm_dataset_open(&out, directory), BM_ERR_FORMAT);
    message = bm_last_error();
    assert_non_null(strstr(message, "6 problems in 7 shards"));
    assert_non_null(
        strstr(message, "b-00000.bmuf.h5 has 7 features per frame, "));
    assert_non_null(strstr(message, "a-00000.bmuf.h5 has 5\n"));
    assert_non_null(strstr(message, "c-00000.bmuf.h5: features were made with "
                                    "other settings than those of "));
    assert_non_null(strstr(message, "a-00000.bmuf.h5; pack again with the "
                                    "same: features.mels is 80, should be 40"));
    assert_non_null(strstr(message, "d-00000.bmuf.h5 has 6 classes, "));
    assert_non_null(strstr(message, "e-00000.bmuf.h5 and "));
    assert_non_null(
        strstr(message, "a-00000.bmuf.h5 have different vocabularies"));
    assert_non_null(strstr(message, "f-00000.bmuf.h5: empty, truncated"));
    assert_non_null(strstr(message, "g-00000.bmuf.h5 is a directory"));
    bm_vocab_free((bm_vocab *)a.meta.vocab);
    bm_vocab_free((bm_vocab *)b.meta.vocab);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    bm_vocab_free((bm_vocab *)d.meta.vocab);
    bm_vocab_free(other);
    corpus_remove(directory);
}

static void test_missing_data_are_missing_input(void **_)
{
    char *directory = corpus_directory();
    bm_dataset *d = NULL;
    bm_shard *s = NULL;
    const char *path = corpus_path(directory, "a-00000.bmuf.h5");

    (void)_;
    assert_int_equal(bm_dataset_open(&d, "/no/such/directory"), BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(), "/no/such/directory"));
    assert_int_equal(bm_dataset_open(&d, directory), BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(), "bmuf pack"));
    assert_int_equal(bm_shard_open(&s, path), BM_ERR_MISSING);
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it would block */
    assert_int_equal(bm_dataset_open(&d, directory), BM_ERR_MISSING);
    unlink(path);
    assert_int_equal(symlink("a-00000.bmuf.h5", path), 0);
    assert_int_equal(bm_dataset_open(&d, directory), BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(), path));
    corpus_remove(directory);
}

static void test_the_hash_differs_between_data_sets(void **_)
{
    uint64_t hash[4];

    (void)_;
    FOR_EACH (i, hash) {
        char *directory = corpus_directory();
        corpus c =
            corpus_make(directory, i == 3 ? "other" : "set", i == 2 ? 13 : 12);
        bm_dataset *d = NULL;

        corpus_write(&c);
        assert_ok(bm_dataset_open(&d, directory));
        hash[i] = d->hash;
        bm_dataset_close(d);
        bm_vocab_free((bm_vocab *)c.meta.vocab);
        corpus_remove(directory);
    }
    assert_true(hash[0] == hash[1]);
    assert_true(hash[0] != hash[2]);
    assert_true(hash[0] != hash[3]); /* other tags */
}

static void test_a_shard_replaced_while_closed_is_noticed(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 12);
    bm_sequences x = {0};
    bm_dataset *d = NULL;
    const char *path = NULL;

    (void)_;
    corpus_write(&c);
    assert_ok(bm_dataset_open(&d, directory));
    path = corpus_path(directory, "set-00000.bmuf.h5");
    unlink(path);
    c.n = 14;
    corpus_write(&c);
    assert_int_equal(bm_dataset_read(d, 0, &x), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "was replaced or modified"));
    bm_sequences_free(&x);
    bm_dataset_close(d);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_equals_the_standard),
        cmocka_unit_test(test_every_half_is_converted_to_its_value_and_back),
        cmocka_unit_test(test_floats_become_the_nearest_half),
        cmocka_unit_test(test_sequences_are_read_back_from_every_store),
        cmocka_unit_test(
            test_a_unit_ends_with_the_sequence_that_reaches_its_frames),
        cmocka_unit_test(test_shards_are_cut_by_size_and_read_as_one_list),
        cmocka_unit_test(test_speakers_are_read_back_from_all_shards),
        cmocka_unit_test(test_speakers_are_not_trusted),
        cmocka_unit_test(test_frames_may_have_one_label_each),
        cmocka_unit_test(test_empty_sequences_are_kept),
        cmocka_unit_test(test_reserve_grows_and_keeps_the_contents),
        cmocka_unit_test(test_equal_contents_give_equal_files),
        cmocka_unit_test(
            test_shards_written_one_by_one_are_those_of_one_writer),
        cmocka_unit_test(test_an_invalid_sequence_is_skipped),
        cmocka_unit_test(
            test_an_invalid_sequence_behind_a_full_shard_is_skipped),
        cmocka_unit_test(test_parts_of_units_hold_the_same_sequences),
        cmocka_unit_test(test_a_writer_that_has_not_finished_leaves_nothing),
        cmocka_unit_test(test_existing_shards_are_not_mixed_with_new_ones),
        cmocka_unit_test(test_a_description_that_is_too_long_is_refused),
        cmocka_unit_test(test_symbols_and_frames_that_are_too_long_are_refused),
        cmocka_unit_test(test_a_full_disk_leaves_no_shard),
        cmocka_unit_test(test_all_shards_that_differ_are_reported),
        cmocka_unit_test(test_missing_data_are_missing_input),
        cmocka_unit_test(test_the_hash_differs_between_data_sets),
        cmocka_unit_test(test_a_shard_replaced_while_closed_is_noticed),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return RUN_GROUP("shard", tests);
}
