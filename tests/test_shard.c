/*
 * Shards and data sets: what is written comes back, in the layout that RETURNN
 * reads too; what is damaged, or made to harm, is refused.
 */
#include "core/file.h"
#include "io/crc32c.h"
#include "io/dataset.h"
#include "io/shard_impl.h"
#include "io/store.h"
#include "tests/corpus.h"
#include "tests/support.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const stores[] = {"f32", "f16", "u8"};

static const char *path_of(const char *directory, const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

/* ---- numbers ------------------------------------------------------------- */

static void test_crc32c_has_its_check_value(void **_)
{
    unsigned char x[1000];
    uint32_t slow = ~(uint32_t)0;

    (void)_;
    assert_int_equal(bm_crc32c("123456789", 9), 0xe3069283u);
    assert_int_equal(bm_crc32c("", 0), 0);
    memset(x, 0, 32); /* RFC 3720, B.4 */
    assert_int_equal(bm_crc32c(x, 32), 0x8a9136aau);
    for (size_t i = 0; i < sizeof x; i++) {
        x[i] = (unsigned char)(i * 31 + i / 7);
        slow ^= x[i];
        for (int bit = 0; bit < 8; bit++)
            slow = slow & 1 ? (slow >> 1) ^ 0x82f63b78u : slow >> 1;
    }
    assert_int_equal(bm_crc32c(x, sizeof x), ~slow);
}

/* IEEE 754: (-1)^s 2^(e - 15) (1 + m / 1024), subnormal for e = 0. */
static double half_value(unsigned h)
{
    unsigned e = h >> 10 & 31, m = h & 1023;
    double x = e > 0 ? ldexp(1024 + m, (int)e - 25) : ldexp(m, -24);

    return h & 0x8000 ? -x : x;
}

static void test_every_half_is_its_value_and_comes_back(void **_)
{
    (void)_;
    for (unsigned h = 0; h < 65536; h++) {
        float x = bm_half_to_float((uint16_t)h);

        if ((h & 0x7c00) != 0x7c00)
            assert_true((double)x == half_value(h) &&
                        !signbit(x) == !(h & 0x8000));
        else if (h & 1023)
            assert_true(isnan(x));
        else
            assert_true(isinf(x) && !signbit(x) == !(h & 0x8000));
        if (!isnan(x))
            assert_int_equal(bm_half_from_float(x), h);
    }
    assert_true(isnan(bm_half_to_float(bm_half_from_float(NAN))));
}

static void test_floats_become_the_nearest_half(void **_)
{
    (void)_;
    for (unsigned h = 0; h < 0x7bff; h++) {
        double low = half_value(h), high = half_value(h + 1);
        float middle = (float)((low + high) / 2);

        assert_int_equal(bm_half_from_float(middle), h + (h & 1)); /* even */
        assert_int_equal(bm_half_from_float(nextafterf(middle, 0)), h);
        assert_int_equal(bm_half_from_float(nextafterf(middle, 1e9f)), h + 1);
        assert_int_equal(bm_half_from_float(-nextafterf(middle, 0)),
                         h | 0x8000);
    }
    assert_int_equal(bm_half_from_float(nextafterf(65520, 0)), 0x7bff);
    assert_int_equal(bm_half_from_float(65520), 0x7c00);
}

/* ---- round trips --------------------------------------------------------- */

/* Whether sequence i of the corpus stands at frame and label of x. */
static bool holds(const bm_sequences *x, size_t at, size_t i,
                  const float *frame, const int32_t *label)
{
    int32_t labels[CORPUS_LABELS];
    size_t n = corpus_labels(i, labels);

    if (x->frames[at] != (int32_t)corpus_frames(i) ||
        x->labels[at] != (int32_t)n ||
        memcmp(label, labels, n * sizeof *labels) != 0)
        return false;
    for (size_t t = 0; t < corpus_frames(i); t++)
        for (size_t d = 0; d < CORPUS_D; d++)
            if (frame[t * CORPUS_D + d] != corpus_value(i, t, d))
                return false;
    return true;
}

/* The corpus again, all of it and nothing else, or a failure to read it. */
static bool is_corpus(bm_dataset *d, const char *name, size_t n, bool *failed)
{
    bm_sequences x = {0};
    const char *tag = NULL;
    char expected[32];
    size_t i = 0;
    bool good = true;

    *failed = false;
    for (size_t u = 0; good && !*failed && u < d->n_units; u++) {
        const float *frame = NULL;
        const int32_t *label = NULL;

        *failed = bm_dataset_read(d, u, &x) != BM_OK;
        frame = x.x;
        label = x.targets;
        good = *failed || d->units[u].first == (int64_t)i;
        for (size_t k = 0; good && !*failed && k < x.n; k++, i++) {
            snprintf(expected, sizeof expected, "%s/%zu", name, i);
            *failed = bm_dataset_tag(d, (int64_t)i, &tag) != BM_OK;
            good = *failed || (strcmp(tag, expected) == 0 &&
                               holds(&x, k, i, frame, label));
            frame += (size_t)x.frames[k] * CORPUS_D;
            label += x.labels[k];
        }
    }
    bm_sequences_free(&x);
    return good && (*failed || (i == n && d->n == n));
}

static void test_sequences_come_back_from_every_store(void **_)
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
        assert_true(is_corpus(d, "set", 50, &failed));
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
    assert_ok(bm_shard_open(&s, path_of(directory, "set-00000.bmuf.h5")));
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
    assert_true(is_corpus(d, "set", 400, &failed));
    assert_true(is_corpus(d, "set", 400, &failed)); /* a second epoch */
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

static void test_frames_may_have_a_class_each(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 9);
    bm_sequences x = {0};
    bm_shard *s = NULL;

    (void)_;
    c.meta.per_frame = true;
    corpus_write(&c);
    assert_ok(bm_shard_open(&s, path_of(directory, "set-00000.bmuf.h5")));
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
    assert_ok(bm_shard_open(&s, path_of(directory, "set-00000.bmuf.h5")));
    assert_int_equal(bm_shard_sequences(s), 2);
    assert_ok(bm_shard_read(s, 0, &x));
    assert_int_equal(x.n, 2);
    assert_int_equal(x.frames[1] + x.labels[1], 0);
    bm_sequences_free(&x);
    bm_shard_close(s);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

static void test_room_for_sequences_grows_and_keeps_what_was_there(void **_)
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

/* The core of RETURNN's HDFDataset, by plain HDF5 calls with conversion. */
static void test_returnn_finds_what_it_looks_for(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 10);
    hid_t file = 0, id = 0, type = 0;
    int32_t lengths[20], labels[30], size[2], expected[CORPUS_LABELS];
    float x[500 * CORPUS_D];
    double sums[2 * CORPUS_D], sum = 0;
    char tags[10][8];
    int64_t number = 0;
    size_t frame = 0, label = 0;

    (void)_;
    c.settings.store = "f16";
    corpus_write(&c);
    file = H5Fopen(path_of(directory, "set-00000.bmuf.h5"), H5F_ACC_RDONLY,
                   H5P_DEFAULT);
    id = H5Aopen(file, "inputPattSize", H5P_DEFAULT);
    assert_true(H5Aread(id, H5T_NATIVE_INT64, &number) >= 0);
    assert_int_equal(number, CORPUS_D);
    H5Aclose(id);
    id = H5Aopen_by_name(file, "targets/size", "classes", H5P_DEFAULT,
                         H5P_DEFAULT);
    assert_true(H5Aread(id, H5T_NATIVE_INT32, size) >= 0);
    assert_true(size[0] == 5 && size[1] == 1);
    H5Aclose(id);
    id = H5Dopen2(file, "seqLengths", H5P_DEFAULT);
    assert_true(H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, lengths) >= 0);
    H5Dclose(id);
    id = H5Dopen2(file, "targets/data/classes", H5P_DEFAULT);
    assert_true(H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, labels) >= 0);
    H5Dclose(id);
    id = H5Dopen2(file, "inputs", H5P_DEFAULT); /* HDF5 knows our half */
    assert_true(H5Dread(id, H5T_NATIVE_FLOAT, 0, 0, 0, x) >= 0);
    H5Dclose(id);
    id = H5Dopen2(file, "seqTags", H5P_DEFAULT);
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, sizeof tags[0]);
    H5Tset_cset(type, H5T_CSET_UTF8);
    assert_true(H5Dread(id, type, 0, 0, 0, tags) >= 0);
    assert_string_equal(tags[9], "set/9");
    H5Tclose(type);
    H5Dclose(id);
    for (size_t i = 0; i < 10; i++) {
        size_t n = corpus_labels(i, expected);

        assert_int_equal(lengths[2 * i], corpus_frames(i));
        assert_int_equal(lengths[2 * i + 1], n);
        assert_memory_equal(labels + label, expected, n * sizeof *expected);
        assert_true(x[frame * CORPUS_D + 1] == corpus_value(i, 0, 1));
        frame += corpus_frames(i);
        label += n;
        for (size_t t = 0; i % 3 == 1 && t < corpus_frames(i); t++)
            sum += (double)corpus_value(i, t, 2) * corpus_value(i, t, 2);
    }
    id = H5Dopen2(file, "bmuf/cmvn/sumsq", H5P_DEFAULT);
    assert_true(H5Dread(id, H5T_NATIVE_DOUBLE, 0, 0, 0, sums) >= 0);
    assert_true(near(sums[CORPUS_D + 2], sum, 1e-12)); /* the second speaker */
    H5Dclose(id);
    H5Fclose(file);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

static void test_equal_contents_give_equal_files(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "a", 20);
    char *bytes[2] = {0};
    size_t size[2] = {0};

    (void)_;
    corpus_write(&c);
    assert_ok(bm_file_read(path_of(directory, "a-00000.bmuf.h5"), 1 << 24,
                           &bytes[0], &size[0]));
    unlink(path_of(directory, "a-00000.bmuf.h5"));
    corpus_write(&c);
    assert_ok(bm_file_read(path_of(directory, "a-00000.bmuf.h5"), 1 << 24,
                           &bytes[1], &size[1]));
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(bytes[0], bytes[1], size[0]);
    free(bytes[0]);
    free(bytes[1]);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* ---- what the writer refuses --------------------------------------------- */

static void test_a_sequence_that_does_not_fit_is_left_out(void **_)
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
    assert_ok(bm_shard_open(&s, path_of(directory, "set-00000.bmuf.h5")));
    assert_int_equal(bm_shard_sequences(s), 1);
    assert_ok(bm_shard_read(s, 0, &x));
    assert_memory_equal(x.x, frame, sizeof frame);
    bm_sequences_free(&x);
    bm_shard_close(s);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

static void test_shards_that_are_there_are_not_mixed_with_new_ones(void **_)
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

/* A limit on file sizes stands in for a full disk. */
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

/* ---- damage -------------------------------------------------------------- */

static void flip(const char *path, off_t at, unsigned char mask)
{
    int fd = open(path, O_RDWR);
    unsigned char byte = 0;

    assert_true(fd >= 0 && pread(fd, &byte, 1, at) == 1);
    byte ^= mask;
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

static off_t size_of(const char *path)
{
    struct stat info;

    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

/* Where an array begins in the file. */
static off_t place_of(const char *path, const char *array)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t id = H5Dopen2(file, array, H5P_DEFAULT);
    haddr_t at = H5Dget_offset(id);

    H5Dclose(id);
    H5Fclose(file);
    assert_true(at != HADDR_UNDEF);
    return (off_t)at;
}

static void test_a_flipped_byte_is_found_and_named(void **_)
{
    static const struct {
        const char *array, *told[3];
        off_t at;
    } cases[] = {
        {"inputs",
         {"the features of unit 0", "first sequence set/0", "check"},
         3},
        {"targets/data/classes", {"the labels of unit 0", "set/0", "check"}, 1},
    };

    (void)_;
    FOR_EACH (s, stores)
        FOR_EACH (i, cases) {
            char *directory = corpus_directory();
            corpus c = corpus_make(directory, "set", 12);
            const char *path = NULL;
            bm_sequences x = {0};
            bm_shard *shard = NULL;

            c.settings.store = stores[s];
            corpus_write(&c);
            path = path_of(directory, "set-00000.bmuf.h5");
            flip(path, place_of(path, cases[i].array) + cases[i].at, 1);
            assert_ok(bm_shard_open(&shard, path));
            assert_int_equal(bm_shard_read(shard, 0, &x), BM_ERR_FORMAT);
            assert_non_null(strstr(bm_last_error(), path));
            FOR_EACH (k, cases[i].told)
                assert_non_null(strstr(bm_last_error(), cases[i].told[k]));
            assert_ok(bm_shard_read(shard, 1, &x));
            bm_sequences_free(&x);
            bm_shard_close(shard);
            bm_vocab_free((bm_vocab *)c.meta.vocab);
            corpus_remove(directory);
        }
}

static void test_a_truncated_shard_is_refused(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 12);
    bm_shard *s = NULL;
    const char *path = NULL;

    (void)_;
    corpus_write(&c);
    path = path_of(directory, "set-00000.bmuf.h5");
    for (off_t n = size_of(path) - 1; n >= 0; n -= n > 100 ? 97 : 1) {
        assert_int_equal(truncate(path, n), 0);
        assert_int_equal(bm_shard_open(&s, path), BM_ERR_FORMAT);
        assert_non_null(
            strstr(bm_last_error(), "truncated or its writer did not finish"));
    }
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* Reads a directory with one changed byte: 0 if it is refused or all of it is
 * as it was. */
static bool survives(const char *directory, const bm_vocab *vocab)
{
    bm_dataset *d = NULL;
    bool failed = false, good = true;

    if (bm_dataset_open(&d, directory) != BM_OK)
        return true;
    good = is_corpus(d, "set", 12, &failed) &&
           (failed || (bm_vocab_equal(bm_dataset_vocab(d), vocab) &&
                       strcmp(bm_shard_features_text(d->shards[0]),
                              "{\"kind\": \"corpus\"}") == 0 &&
                       !bm_shard_per_frame(d->shards[0]) &&
                       near(bm_shard_frame_shift(d->shards[0]), 0.01, 1e-12)));
    bm_dataset_close(d);
    return good;
}

/* In a child: flips every `step`th byte from `from` on, one at a time, and says
 * which before it reads. Leaves the file as it was, unless HDF5 crashes. */
static void flip_all(const corpus *c, const char *path, off_t from, off_t step,
                     int progress)
{
    off_t end = size_of(path);

    for (off_t at = from; at < end; at += step) {
        unsigned char mask = (unsigned char)(1u << (at / step % 8));

        if (write(progress, &at, sizeof at) != sizeof at)
            _exit(3);
        alarm(20); /* HDF5 has been seen to loop */
        flip(path, at, mask);
        if (!survives(c->directory, c->meta.vocab))
            _exit(1);
        flip(path, at, mask);
    }
    _exit(0);
}

/* Runs flip_all from an offset; returns the last it came to. */
static off_t flip_in_child(const corpus *c, const char *path, off_t from,
                           off_t step, int *result)
{
    int progress[2];
    off_t at = from;
    pid_t child = 0;

    assert_int_equal(pipe(progress), 0);
    child = fork();
    if (child == 0)
        flip_all(c, path, from, step, progress[1]);
    close(progress[1]);
    while (read(progress[0], &at, sizeof at) == sizeof at)
        ;
    close(progress[0]);
    assert_int_equal(waitpid(child, result, 0), child);
    return at;
}

/* HDF5 itself crashes on some damaged metadata; that is known, and no other
 * data are taken for good. */
static void test_no_flipped_byte_is_taken_for_good_data(void **_)
{
    char *directory = corpus_directory(), *whole = NULL;
    corpus c = corpus_make(directory, "set", 12);
    const char *path = NULL;
    size_t size = 0;
    int result = 0, crashes = 0;
    off_t at = 0;

    (void)_;
    corpus_write(&c);
    path = path_of(directory, "set-00000.bmuf.h5");
    assert_ok(bm_file_read(path, 1 << 24, &whole, &size));
    while (at < (off_t)size) {
        at = flip_in_child(&c, path, at, 5, &result);
        if (WIFEXITED(result) && WEXITSTATUS(result) == 0)
            break;
        if (WIFEXITED(result) && WEXITSTATUS(result) == 1)
            fail_msg("byte %ld may change without notice", (long)at);
        crashes++;
        assert_ok(bm_file_write(path, whole, size));
        at += 5;
    }
    print_message("%d of %zu flips crash HDF5\n", crashes, size / 5);
    free(whole);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* ---- files made to harm -------------------------------------------------- */

/* HDF5 1.10 may not find an attribute it is to overwrite: a new one. */
static void set_attribute(hid_t file, const char *name, hid_t type,
                          const void *value)
{
    hid_t extent = H5Screate(H5S_SCALAR), id = 0;

    H5Adelete_by_name(file, "bmuf", name, H5P_DEFAULT);
    id = H5Acreate_by_name(file, "bmuf", name, type, extent, H5P_DEFAULT,
                           H5P_DEFAULT, H5P_DEFAULT);
    assert_true(H5Awrite(id, type, value) >= 0);
    H5Aclose(id);
    H5Sclose(extent);
}

/* Computes the digest of the tables anew, as whoever forges them would. */
static void seal(hid_t file)
{
    char digest[BM_DIGEST_LENGTH + 1];
    int32_t lengths[24];
    uint64_t unit[10 * BM_UNIT_COLUMNS];
    uint32_t crc[20];
    bm_shard_tables t = {.n = 12,
                         .store = BM_STORE_F32,
                         .lengths = lengths,
                         .unit = unit,
                         .crc = crc};
    hid_t id = H5Dopen2(file, "seqLengths", H5P_DEFAULT);
    hid_t type = 0;

    H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, lengths);
    H5Dclose(id);
    id = H5Dopen2(file, "bmuf/block_crc32c", H5P_DEFAULT);
    t.units = (size_t)H5Dget_storage_size(id) / 8;
    assert_true(t.units <= 10);
    H5Dread(id, H5T_NATIVE_UINT32, 0, 0, 0, crc);
    H5Dclose(id);
    id = H5Dopen2(file, "bmuf/block", H5P_DEFAULT);
    H5Dread(id, H5T_NATIVE_UINT64, 0, 0, 0, unit);
    H5Dclose(id);
    assert_ok(bm_shard_digest(&t, digest));
    type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, BM_DIGEST_LENGTH);
    set_attribute(file, "tables_xxh3", type, digest);
    H5Tclose(type);
}

static void forge_external_link(hid_t file)
{
    H5Ldelete(file, "inputs", H5P_DEFAULT);
    H5Lcreate_external("other.h5", "/inputs", file, "inputs", H5P_DEFAULT,
                       H5P_DEFAULT);
}

static void forge_soft_link(hid_t file)
{
    H5Lmove(file, "targets", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT);
    H5Lcreate_soft("/elsewhere", file, "targets", H5P_DEFAULT, H5P_DEFAULT);
}

static void replace(hid_t file, const char *name, hid_t type, int rank,
                    hsize_t rows, hsize_t columns, hid_t plist)
{
    hsize_t dim[3] = {rows, columns, 1};
    hid_t extent = H5Screate_simple(rank, dim, NULL), id = 0;

    H5Ldelete(file, name, H5P_DEFAULT);
    id = H5Dcreate2(file, name, type, extent, H5P_DEFAULT, plist, H5P_DEFAULT);
    assert_true(id >= 0);
    H5Dclose(id);
    H5Sclose(extent);
}

static void forge_vlen(hid_t file)
{
    hid_t type = H5Tvlen_create(H5T_NATIVE_FLOAT);
    replace(file, "inputs", type, 1, 12, 0, H5P_DEFAULT);
    H5Tclose(type);
}

static void forge_vlen_tags(hid_t file)
{
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    replace(file, "targets/labels/classes", type, 1, 5, 0, H5P_DEFAULT);
    H5Tclose(type);
}

static void forge_external_storage(hid_t file)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(plist, "/etc/hostname", 0, H5F_UNLIMITED);
    replace(file, "inputs", H5T_IEEE_F32LE, 2, 2, CORPUS_D, plist);
    H5Pclose(plist);
}

static void forge_virtual(hid_t file)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t dim[2] = {2, CORPUS_D};
    hid_t extent = H5Screate_simple(2, dim, NULL);
    H5Pset_virtual(plist, extent, "other.h5", "inputs", extent);
    replace(file, "inputs", H5T_IEEE_F32LE, 2, 2, CORPUS_D, plist);
    H5Sclose(extent);
    H5Pclose(plist);
}

static void forge_huge(hid_t file) /* declared, never written */
{
    replace(file, "inputs", H5T_IEEE_F32LE, 2, (hsize_t)1 << 40, CORPUS_D,
            H5P_DEFAULT);
}

static void forge_huge_chunked(hid_t file)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t chunk[2] = {1 << 20, CORPUS_D};
    H5Pset_chunk(plist, 2, chunk);
    H5Pset_deflate(plist, 1);
    replace(file, "inputs", H5T_IEEE_F32LE, 2, (hsize_t)1 << 40, CORPUS_D,
            plist);
    H5Pclose(plist);
}

static void forge_huge_table(hid_t file)
{
    replace(file, "seqLengths", H5T_STD_I32LE, 2, (hsize_t)1 << 50, 2,
            H5P_DEFAULT);
}

static void forge_rank(hid_t file)
{
    replace(file, "inputs", H5T_IEEE_F32LE, 3, 10, CORPUS_D, H5P_DEFAULT);
}

static void forge_columns(hid_t file)
{
    replace(file, "inputs", H5T_IEEE_F32LE, 2, 0, CORPUS_D + 1, H5P_DEFAULT);
}

static void forge_double(hid_t file)
{
    replace(file, "inputs", H5T_IEEE_F64LE, 2, 0, CORPUS_D, H5P_DEFAULT);
}

static void forge_big_endian(hid_t file)
{
    replace(file, "targets/data/classes", H5T_STD_I32BE, 1, 0, 0, H5P_DEFAULT);
}

static void forge_few_rows(hid_t file)
{
    replace(file, "targets/data/classes", H5T_STD_I32LE, 1, 0, 0, H5P_DEFAULT);
}

static void forge_group(hid_t file)
{
    H5Ldelete(file, "seqLengths", H5P_DEFAULT);
    H5Gclose(
        H5Gcreate2(file, "seqLengths", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
}

static void forge_no_vocabulary(hid_t file)
{
    H5Ldelete(file, "targets/labels/classes", H5P_DEFAULT);
}

/* Changes a number in a table and seals it. */
static void set(hid_t file, const char *name, hid_t type, size_t at,
                uint32_t value)
{
    uint32_t x[64]; /* the bits, whatever the type */
    hid_t id = H5Dopen2(file, name, H5P_DEFAULT);

    H5Dread(id, type, 0, 0, 0, x);
    x[at] = value;
    assert_true(H5Dwrite(id, type, 0, 0, 0, x) >= 0);
    H5Dclose(id);
    seal(file);
}

static void set_unit(hid_t file, size_t column, uint64_t value)
{
    uint64_t x[10 * BM_UNIT_COLUMNS];
    hid_t id = H5Dopen2(file, "bmuf/block", H5P_DEFAULT);

    H5Dread(id, H5T_NATIVE_UINT64, 0, 0, 0, x);
    x[BM_UNIT_COLUMNS + column] = value; /* of unit 1 */
    assert_true(H5Dwrite(id, H5T_NATIVE_UINT64, 0, 0, 0, x) >= 0);
    H5Dclose(id);
    seal(file);
}

static void forge_negative_length(hid_t file)
{
    set(file, "seqLengths", H5T_NATIVE_INT32, 4, (uint32_t)-3);
}

static void forge_long_length(hid_t file)
{
    set(file, "seqLengths", H5T_NATIVE_INT32, 4, INT32_MAX);
}

static void forge_unit_start(hid_t file)
{
    set_unit(file, BM_UNIT_FRAME, UINT64_MAX - 5);
}

static void forge_unit_sequences(hid_t file)
{
    set_unit(file, BM_UNIT_SEQUENCES, UINT64_MAX);
}

static void forge_unit_frames(hid_t file)
{
    set_unit(file, BM_UNIT_FRAMES, (uint64_t)1 << 60);
}

static void forge_version(hid_t file)
{
    int64_t version = 2;
    set_attribute(file, "format_version", H5T_STD_I64LE, &version);
}

static void forge_classes(hid_t file)
{
    int64_t classes = -1;
    set_attribute(file, "num_classes", H5T_STD_I64LE, &classes);
}

static void test_forged_shards_are_refused(void **_)
{
    static const struct {
        void (*forge)(hid_t file);
        const char *told;
    } cases[] = {
        {forge_external_link, "/inputs is a link to elsewhere"},
        {forge_soft_link, "/targets is a link to elsewhere"},
        {forge_vlen, "/inputs: neither numbers nor texts"},
        {forge_vlen_tags, "classes: neither numbers nor texts"},
        {forge_external_storage, "/inputs is incomplete, or does not lie"},
        {forge_virtual, "/inputs is incomplete, or does not lie"},
        {forge_huge, "/inputs is incomplete"},
        {forge_huge_chunked, "/inputs is incomplete"},
        {forge_huge_table, "/seqLengths is incomplete"},
        {forge_rank, "/inputs has 3 dimensions"},
        {forge_columns, "/inputs has 6 columns; feat_dim is 5"},
        {forge_double, "/inputs is none of float32"},
        {forge_big_endian, "is no list of int32"},
        {forge_few_rows, "disagrees with /seqLengths"},
        {forge_group, "/seqLengths: "},
        {forge_no_vocabulary, "has no /targets/labels/classes"},
        {forge_negative_length, "sequence 2 has -3 frames"},
        {forge_long_length, "unit 0 of /bmuf/block disagrees"},
        {forge_unit_start, "unit 1 of /bmuf/block disagrees"},
        {forge_unit_sequences, "unit 1 of /bmuf/block disagrees"},
        {forge_unit_frames, "unit 1 of /bmuf/block disagrees"},
        {forge_version, "format version 2"},
        {forge_classes, "num_classes is -1"},
    };

    (void)_;
    FOR_EACH (i, cases) {
        char *directory = corpus_directory();
        corpus c = corpus_make(directory, "set", 12);
        const char *path = path_of(directory, "set-00000.bmuf.h5");
        bm_shard *s = NULL;
        hid_t file = 0;

        corpus_write(&c);
        file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        cases[i].forge(file);
        H5Fclose(file);
        assert_int_equal(bm_shard_open(&s, path), BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].told) == NULL)
            fail_msg("case %zu: %s", i, bm_last_error());
        assert_non_null(strstr(bm_last_error(), path));
        bm_vocab_free((bm_vocab *)c.meta.vocab);
        corpus_remove(directory);
    }
}

/* Labels as another program may have written them, with the right checksum. */
static void test_a_label_out_of_range_is_refused_when_read(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 12);
    const char *path = path_of(directory, "set-00000.bmuf.h5");
    static const int32_t bad[] = {0, -1, 5};

    (void)_;
    corpus_write(&c);
    FOR_EACH (i, bad) {
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        hid_t id = H5Dopen2(file, "targets/data/classes", H5P_DEFAULT);
        int32_t labels[64];
        bm_sequences x = {0};
        bm_shard *s = NULL;
        bm_unit_size unit;

        H5Dread(id, H5T_NATIVE_INT32, 0, 0, 0, labels);
        labels[1] = bad[i]; /* the label of sequence 1 */
        H5Dwrite(id, H5T_NATIVE_INT32, 0, 0, 0, labels);
        H5Dclose(id);
        H5Fclose(file);
        assert_ok(bm_shard_open(&s, path));
        unit = bm_shard_unit(s, 0);
        bm_shard_close(s);
        file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        set(file, "bmuf/block_crc32c", H5T_NATIVE_UINT32, 1,
            bm_crc32c(labels, unit.labels * sizeof *labels));
        H5Fclose(file);
        assert_ok(bm_shard_open(&s, path));
        assert_int_equal(bm_shard_read(s, 0, &x), BM_ERR_FORMAT);
        assert_non_null(strstr(bm_last_error(), "sequence set/1: label "));
        bm_sequences_free(&x);
        bm_shard_close(s);
    }
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* ---- data sets ----------------------------------------------------------- */

static void test_shards_that_differ_are_all_told_of(void **_)
{
    char *directory = corpus_directory();
    corpus a = corpus_make(directory, "a", 5);
    corpus b = corpus_make(directory, "b", 5);
    corpus d = corpus_make(directory, "d", 5);
    corpus e = corpus_make(directory, "e", 5);
    bm_dataset *out = NULL;
    bm_vocab *other = NULL;
    const char *told = NULL;

    (void)_;
    b.meta.features = 7;
    bm_vocab_free((bm_vocab *)d.meta.vocab);
    d.meta.vocab = corpus_vocab(6);
    assert_ok(bm_vocab_parse(&other, "<blank>\nw\nx\ny\nz\n", false));
    bm_vocab_free((bm_vocab *)e.meta.vocab);
    e.meta.vocab = other;
    corpus_write(&a);
    corpus_write(&b);
    corpus_write(&d);
    corpus_write(&e);
    assert_ok(
        bm_file_write(path_of(directory, "f-00000.bmuf.h5"), "nonsense", 8));
    assert_ok(bm_file_make_directory(path_of(directory, "g-00000.bmuf.h5")));
    assert_int_equal(bm_dataset_open(&out, directory), BM_ERR_FORMAT);
    told = bm_last_error();
    assert_non_null(strstr(told, "5 faults in 6 shards"));
    assert_non_null(strstr(told, "b-00000.bmuf.h5 has 7 features a frame, "));
    assert_non_null(strstr(told, "a-00000.bmuf.h5 has 5\n"));
    assert_non_null(strstr(told, "d-00000.bmuf.h5 has 6 classes, "));
    assert_non_null(strstr(told, "e-00000.bmuf.h5 has another vocabulary"));
    assert_non_null(strstr(told, "f-00000.bmuf.h5: truncated"));
    assert_non_null(strstr(told, "g-00000.bmuf.h5 is not a file"));
    bm_vocab_free((bm_vocab *)a.meta.vocab);
    bm_vocab_free((bm_vocab *)b.meta.vocab);
    bm_vocab_free((bm_vocab *)d.meta.vocab);
    bm_vocab_free(other);
    corpus_remove(directory);
}

static void test_missing_data_are_missing_input(void **_)
{
    char *directory = corpus_directory();
    bm_dataset *d = NULL;
    bm_shard *s = NULL;
    const char *path = path_of(directory, "a-00000.bmuf.h5");

    (void)_;
    assert_int_equal(bm_dataset_open(&d, "/no/such/directory"), BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(), "/no/such/directory"));
    assert_int_equal(bm_dataset_open(&d, directory), BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(), "bmuf pack"));
    assert_int_equal(bm_shard_open(&s, path), BM_ERR_MISSING);
    assert_int_equal(mkfifo(path, 0600), 0); /* opening it would wait */
    assert_int_equal(bm_dataset_open(&d, directory), BM_ERR_MISSING);
    unlink(path);
    assert_int_equal(symlink("a-00000.bmuf.h5", path), 0);
    assert_int_equal(bm_dataset_open(&d, directory), BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(), path));
    corpus_remove(directory);
}

static void test_the_hash_tells_data_sets_apart(void **_)
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

static void test_a_shard_replaced_while_asleep_is_noticed(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 12);
    bm_sequences x = {0};
    bm_dataset *d = NULL;
    const char *path = NULL;

    (void)_;
    corpus_write(&c);
    assert_ok(bm_dataset_open(&d, directory));
    path = path_of(directory, "set-00000.bmuf.h5");
    unlink(path);
    c.n = 14;
    corpus_write(&c);
    assert_int_equal(bm_dataset_read(d, 0, &x), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "was replaced or changed"));
    bm_sequences_free(&x);
    bm_dataset_close(d);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c_has_its_check_value),
        cmocka_unit_test(test_every_half_is_its_value_and_comes_back),
        cmocka_unit_test(test_floats_become_the_nearest_half),
        cmocka_unit_test(test_sequences_come_back_from_every_store),
        cmocka_unit_test(
            test_a_unit_ends_with_the_sequence_that_reaches_its_frames),
        cmocka_unit_test(test_shards_are_cut_by_size_and_read_as_one_list),
        cmocka_unit_test(test_frames_may_have_a_class_each),
        cmocka_unit_test(test_empty_sequences_are_kept),
        cmocka_unit_test(
            test_room_for_sequences_grows_and_keeps_what_was_there),
        cmocka_unit_test(test_returnn_finds_what_it_looks_for),
        cmocka_unit_test(test_equal_contents_give_equal_files),
        cmocka_unit_test(test_a_sequence_that_does_not_fit_is_left_out),
        cmocka_unit_test(
            test_shards_that_are_there_are_not_mixed_with_new_ones),
        cmocka_unit_test(test_a_full_disk_leaves_no_shard),
        cmocka_unit_test(test_a_flipped_byte_is_found_and_named),
        cmocka_unit_test(test_a_truncated_shard_is_refused),
        cmocka_unit_test(test_no_flipped_byte_is_taken_for_good_data),
        cmocka_unit_test(test_forged_shards_are_refused),
        cmocka_unit_test(test_a_label_out_of_range_is_refused_when_read),
        cmocka_unit_test(test_shards_that_differ_are_all_told_of),
        cmocka_unit_test(test_missing_data_are_missing_input),
        cmocka_unit_test(test_the_hash_tells_data_sets_apart),
        cmocka_unit_test(test_a_shard_replaced_while_asleep_is_noticed),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return RUN_GROUP("shard", tests);
}
