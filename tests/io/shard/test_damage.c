/*
 * Damaged and forged shards, and failing disks: none crashes the program, none
 * is accepted.
 */
#define _DEFAULT_SOURCE /* syscall */
#include "core/file/file.h"
#include "io/shard/dataset.h"
#include "io/shard/shard_parts.h"
#include "tests/support/datasets.h"
#include "tests/support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const stores[] = {"f32", "f16", "u8"};

/* HDF5 calls this one instead of the C library's. A failing disk: reads from
 * byte `unreadable` of a file on are EIO. */
static off_t unreadable = -1;

ssize_t pread(int fd, void *to, size_t n, off_t at)
{
    if (unreadable >= 0 && at + (off_t)n > unreadable) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_pread64, fd, to, n, at);
}

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

/* The offset of an array in the file. */
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

static void test_a_flipped_byte_is_found_and_reported(void **_)
{
    static const struct {
        const char *array, *words[3];
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
            path = corpus_path(directory, "set-00000.bmuf.h5");
            flip(path, place_of(path, cases[i].array) + cases[i].at, 1);
            assert_ok(bm_shard_open(&shard, path));
            assert_int_equal(bm_shard_read(shard, 0, &x), BM_ERR_FORMAT);
            assert_non_null(strstr(bm_last_error(), path));
            FOR_EACH (k, cases[i].words)
                assert_non_null(strstr(bm_last_error(), cases[i].words[k]));
            assert_ok(bm_shard_read(shard, 1, &x));
            bm_sequences_free(&x);
            bm_shard_close(shard);
            bm_vocab_free((bm_vocab *)c.meta.vocab);
            corpus_remove(directory);
        }
}

static void test_a_truncated_shard_is_rejected(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 12);
    bm_shard *s = NULL;
    const char *path = NULL;

    (void)_;
    corpus_write(&c);
    path = corpus_path(directory, "set-00000.bmuf.h5");
    for (off_t n = size_of(path) - 1; n >= 0; n -= n > 100 ? 97 : 1) {
        assert_int_equal(truncate(path, n), 0);
        assert_int_equal(bm_shard_open(&s, path), BM_ERR_FORMAT);
        assert_non_null(
            strstr(bm_last_error(), "truncated, or not completely written"));
    }
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* Reads a directory with one changed byte: true if it is rejected or all data
 * are unchanged. */
static bool survives(const char *directory, const bm_vocab *vocab)
{
    bm_dataset *d = NULL;
    bool failed = false, good = true;

    if (bm_dataset_open(&d, directory) != BM_OK)
        return true;
    good = corpus_is(d, "set", 12, &failed) &&
           (failed || (bm_vocab_equal(bm_dataset_vocab(d), vocab) &&
                       strcmp(bm_shard_features_text(d->shards[0]),
                              "{\"kind\": \"corpus\"}") == 0 &&
                       !bm_shard_per_frame(d->shards[0]) &&
                       near(bm_shard_frame_shift(d->shards[0]), 0.01, 1e-12)));
    bm_dataset_close(d);
    return good;
}

/* In a child: flips every `step`th byte from `from` on, one at a time, and
 * writes its offset to the pipe before it reads. Restores the file, unless HDF5
 * crashes. */
static void flip_all(const corpus *c, const char *path, off_t from, off_t step,
                     int progress)
{
    off_t end = size_of(path);

    for (off_t at = from; at < end; at += step) {
        unsigned char mask = (unsigned char)(1u << (at / step % 8));

        if (write(progress, &at, sizeof at) != sizeof at)
            _exit(3);
        alarm(20); /* HDF5 may loop */
        flip(path, at, mask);
        if (!survives(c->directory, c->meta.vocab))
            _exit(1);
        flip(path, at, mask);
    }
    _exit(0);
}

/* Runs flip_all from an offset; returns the last offset. */
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

/* HDF5 itself crashes on some damaged metadata, which is known; otherwise no
 * damaged data are accepted. */
static void test_no_flipped_byte_is_accepted(void **_)
{
    char *directory = corpus_directory(), *whole = NULL;
    corpus c = corpus_make(directory, "set", 12);
    const char *path = NULL;
    size_t size = 0;
    int result = 0, crashes = 0;
    off_t at = 0;

    (void)_;
    corpus_write(&c);
    path = corpus_path(directory, "set-00000.bmuf.h5");
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

/* ---- malicious files ----------------------------------------------------- */

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

/* All chunks exist, but with too few bytes for the array. */
static void forge_small_chunks(hid_t file)
{
    hid_t plist = H5Pcreate(H5P_DATASET_CREATE), id = 0;
    hsize_t chunk[2] = {1 << 20, CORPUS_D}, at[2] = {0, 0};

    H5Pset_chunk(plist, 2, chunk);
    H5Pset_deflate(plist, 1);
    replace(file, "inputs", H5T_IEEE_F32LE, 2, 1 << 22, CORPUS_D, plist);
    id = H5Dopen2(file, "inputs", H5P_DEFAULT);
    for (; at[0] < 1 << 22; at[0] += 1 << 20)
        assert_true(H5Dwrite_chunk(id, H5P_DEFAULT, 0, at, 9, "nonsense") >= 0);
    H5Dclose(id);
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

static void set_unit(hid_t file, size_t column, uint64_t value)
{
    uint64_t x[10 * BM_UNIT_COLUMNS];
    hid_t id = H5Dopen2(file, "bmuf/block", H5P_DEFAULT);

    H5Dread(id, H5T_NATIVE_UINT64, 0, 0, 0, x);
    x[BM_UNIT_COLUMNS + column] = value; /* of unit 1 */
    assert_true(H5Dwrite(id, H5T_NATIVE_UINT64, 0, 0, 0, x) >= 0);
    H5Dclose(id);
    forge_seal(file);
}

static void forge_negative_length(hid_t file)
{
    forge_number(file, "seqLengths", H5T_NATIVE_INT32, 4, (uint32_t)-3);
}

static void forge_long_length(hid_t file)
{
    forge_number(file, "seqLengths", H5T_NATIVE_INT32, 4, INT32_MAX);
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
    forge_attribute(file, "format_version", H5T_STD_I64LE, &version);
}

static void forge_classes(hid_t file)
{
    int64_t classes = -1;
    forge_attribute(file, "num_classes", H5T_STD_I64LE, &classes);
}

static void test_forged_shards_are_rejected(void **_)
{
    static const struct {
        void (*forge)(hid_t file);
        const char *message;
    } cases[] = {
        {forge_external_link, "/inputs is a soft or external link"},
        {forge_soft_link, "/targets is a soft or external link"},
        {forge_vlen, "/inputs: elements are neither"},
        {forge_vlen_tags, "classes: elements are neither"},
        {forge_external_storage, "/inputs is incomplete, or neither"},
        {forge_virtual, "/inputs is incomplete, or neither"},
        {forge_huge, "/inputs is incomplete"},
        {forge_huge_chunked, "/inputs is incomplete"},
        {forge_small_chunks, "/inputs is incomplete"},
        {forge_huge_table, "/seqLengths is incomplete"},
        {forge_rank, "/inputs has 3 dimensions"},
        {forge_columns, "/inputs has 6 columns; feat_dim is 5"},
        {forge_double, "/inputs is not float32"},
        {forge_big_endian, "is not a list of int32"},
        {forge_few_rows, "disagrees with /seqLengths"},
        {forge_group, "/seqLengths: "},
        {forge_no_vocabulary, "/targets/labels/classes is missing"},
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
        const char *path = corpus_path(directory, "set-00000.bmuf.h5");
        bm_shard *s = NULL;
        hid_t file = 0;

        corpus_write(&c);
        file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        cases[i].forge(file);
        H5Fclose(file);
        assert_int_equal(bm_shard_open(&s, path), BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("case %zu: %s", i, bm_last_error());
        assert_non_null(strstr(bm_last_error(), path));
        bm_vocab_free((bm_vocab *)c.meta.vocab);
        corpus_remove(directory);
    }
}

/* Invalid labels of another program, with the right checksum. */
static void test_a_label_out_of_range_is_rejected_when_read(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 12);
    const char *path = corpus_path(directory, "set-00000.bmuf.h5");
    static const int32_t bad[] = {0, -1, 5};

    (void)_;
    corpus_write(&c);
    FOR_EACH (i, bad) {
        bm_sequences x = {0};
        bm_shard *s = NULL;

        forge_label(path, 1, bad[i]); /* of sequence 1 */
        assert_ok(bm_shard_open(&s, path));
        assert_int_equal(bm_shard_read(s, 0, &x), BM_ERR_FORMAT);
        assert_non_null(strstr(bm_last_error(), "sequence set/1: label "));
        bm_sequences_free(&x);
        bm_shard_close(s);
    }
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

/* Reads from byte `at` on fail. */
static bm_status read_until(const char *path, off_t at)
{
    bm_sequences x = {0};
    bm_shard *s = NULL;
    bm_status status = BM_OK;

    unreadable = at;
    status = bm_shard_open(&s, path);
    for (size_t k = 0; status == BM_OK && k < bm_shard_units(s); k++)
        status = bm_shard_read(s, k, &x);
    unreadable = -1;
    bm_sequences_free(&x);
    bm_shard_close(s);
    return status;
}

static void test_a_failing_disk_is_no_damage(void **_)
{
    char *directory = corpus_directory();
    corpus c = corpus_make(directory, "set", 12);
    const char *path = NULL;
    int failures = 0;

    (void)_;
    corpus_write(&c);
    path = corpus_path(directory, "set-00000.bmuf.h5");
    assert_int_equal(read_until(path, 0), BM_ERR_IO);
    assert_non_null(strstr(bm_last_error(), "cannot be read"));
    assert_non_null(strstr(bm_last_error(), strerror(EIO)));
    for (off_t at = 0; at < size_of(path); at += 97) {
        bm_status status = read_until(path, at);

        if (status != BM_OK && status != BM_ERR_IO)
            fail_msg("from byte %ld on: %s", (long)at, bm_last_error());
        failures += status != BM_OK;
    }
    assert_true(failures > 10);
    assert_int_equal(read_until(path, place_of(path, "inputs")), BM_ERR_IO);
    assert_ok(read_until(path, size_of(path)));
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    corpus_remove(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_flipped_byte_is_found_and_reported),
        cmocka_unit_test(test_a_truncated_shard_is_rejected),
        cmocka_unit_test(test_no_flipped_byte_is_accepted),
        cmocka_unit_test(test_forged_shards_are_rejected),
        cmocka_unit_test(test_a_label_out_of_range_is_rejected_when_read),
        cmocka_unit_test(test_a_failing_disk_is_no_damage),
    };

    H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
    return RUN_GROUP("damage", tests);
}
