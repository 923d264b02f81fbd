/*
 * Feature files of other programs but Kaldi. They are made here, byte by byte.
 */
#include "io/import/files/feature_files.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>

/* {1, 2, 3; -.5, .25, 4} */
static const float six[] = {1, 2, 3, -.5f, .25f, 4};
static const uint8_t little[] = {0, 0, 0x80, 0x3f, 0, 0, 0,    0x40,
                                 0, 0, 0x40, 0x40, 0, 0, 0,    0xbf,
                                 0, 0, 0x80, 0x3e, 0, 0, 0x80, 0x40};
static const uint8_t sphinx[] = {
    0, 0, 0,    6, 0x3f, 0x80, 0,    0,    0x40, 0, 0,    0,    0x40, 0x40,
    0, 0, 0xbf, 0, 0,    0,    0x3e, 0x80, 0,    0, 0x40, 0x80, 0,    0};

static const uint8_t little_sphinx[] = {
    6,    0,    0, 0, 0, 0,    0x80, 0x3f, 0,    0,    0, 0x40, 0,    0,
    0x40, 0x40, 0, 0, 0, 0xbf, 0,    0,    0x80, 0x3e, 0, 0,    0x80, 0x40};

/* An array file as numpy.save writes it, of some version and dictionary. */
static size_t make_npy(uint8_t *out, int version, const char *dictionary,
                       const void *data, size_t n)
{
    size_t begin = version == 1 ? 10 : 12, length = 0;
    size_t start = (begin + strlen(dictionary) + 1 + 63) / 64 * 64;

    memset(out, ' ', start);
    memcpy(out, "\x93NUMPY", 6);
    length = start - begin;
    out[6] = (uint8_t)version;
    out[7] = 0;
    out[8] = (uint8_t)length;
    out[9] = (uint8_t)(length >> 8);
    if (version == 2)
        out[10] = out[11] = 0;
    memcpy(out + begin, dictionary, strlen(dictionary));
    out[start - 1] = '\n';
    memcpy(out + start, data, n);
    return start + n;
}

static const char good_head[] =
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

/* The problem with a file; "" if it has the six numbers. */
static bm_problem read_six(const char *name, size_t dim)
{
    bm_frames x = {0};
    bm_problem problem = {0};

    assert_ok(bm_feature_file_read(in_folder(name), dim, &x, &problem));
    if (!bm_problem_is(&problem)) {
        assert_int_equal(x.n, 2);
        assert_int_equal(x.dim, 3);
        assert_memory_equal(x.x, six, sizeof six);
    }
    bm_frames_free(&x);
    return problem;
}

static void assert_problem(const char *name, size_t dim, const char *message)
{
    bm_problem problem = read_six(name, dim);

    if (strstr(problem.text, message) == NULL)
        fail_msg("'%s' is not in '%s'", message, problem.text);
}

static void test_arrays_of_both_versions_and_widths_are_read(void **state)
{
    static const char wide_head[] =
        "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }";
    double wide[6];
    uint8_t file[512];

    (void)state;
    for (int version = 1; version <= 2; version++) {
        size_t n = make_npy(file, version, good_head, little, sizeof little);

        assert_int_equal(n, 152);
        write_bytes("a.npy", file, n);
        assert_string_equal(read_six("a.npy", 13).text, "");
    }
    for (size_t i = 0; i < 6; i++)
        wide[i] = six[i]; /* this machine is little-endian, as the file is */
    write_bytes("a.npy", file, make_npy(file, 1, wide_head, wide, sizeof wide));
    assert_string_equal(read_six("a.npy", 13).text, "");
    wide[4] = 1e300;
    write_bytes("a.npy", file, make_npy(file, 1, wide_head, wide, sizeof wide));
    assert_problem("a.npy", 13,
                   "a.npy: feature 1 of frame 1, both counted from 0, is "
                   "infinite, or beyond the range of floats, 3.4e38; make");
}

static void test_invalid_arrays_are_problems(void **state)
{
    static const struct {
        const char *head, *message;
    } cases[] = {
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }",
         "not floats of 16, 32 or 64 bits"},
        {"{'descr': '<f16', 'fortran_order': False, 'shape': (2, 3), }",
         "not floats of 16, 32 or 64 bits"},
        {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2, 3), }",
         "the header is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }",
         "not two-dimensional"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }",
         "not two-dimensional"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }",
         "length of the file disagrees with the shape: 152 bytes, where its "
         "header needs 164; save or copy it again"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (0, 3), }",
         "length of the file disagrees"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6, 0), }",
         "length of the file disagrees"},
        {"{'descr': '<f4', 'fortran_order': False, "
         "'shape': (4611686018427387905, 4), }",
         "not two-dimensional"},
        {"{'descr': '<f4', 'fortran_order': False, "
         "'shape': (400000000000000000, 400000000000000000), }",
         "length of the file disagrees"},
        {"{'descr': '<f4', 'shape': (2, 3), }", "the header is damaged"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),",
         "the header is damaged"},
        {"{'descr': '<f4', 'x': 3, 'shape': (2, 3), }", "header is damaged"},
        {"", "the header is damaged"},
    };
    uint8_t file[512];

    (void)state;
    FOR_EACH (c, cases) {
        bm_problem problem;

        write_bytes("a.npy", file,
                    make_npy(file, 1, cases[c].head, little, sizeof little));
        problem = read_six("a.npy", 13);
        if (strstr(problem.text, cases[c].message) == NULL)
            fail_msg("%s: '%s'", cases[c].head, problem.text);
    }
}

/* A file that is truncated anywhere, or has any byte flipped, gives numbers or
 * a problem. */
static void test_damaged_arrays_never_crash(void **state)
{
    uint8_t file[512];
    size_t n = make_npy(file, 1, good_head, little, sizeof little);

    (void)state;
    for (size_t k = 0; k < n; k++) {
        bm_frames x = {0};
        bm_problem problem = {0};

        write_bytes("a.npy", file, k);
        problem = read_six("a.npy", 13);
        assert_true(bm_problem_is(&problem));
        problem.text[0] = '\0';
        file[k] = (uint8_t)~file[k];
        write_bytes("a.npy", file, n);
        file[k] = (uint8_t)~file[k];
        assert_ok(bm_feature_file_read(in_folder("a.npy"), 13, &x, &problem));
        if (!bm_problem_is(&problem))
            assert_int_equal(x.n * x.dim, 6);
        bm_frames_free(&x);
    }
}

static void test_sphinx_files_are_read(void **state)
{
    (void)state;
    write_bytes("a.mfc", sphinx, sizeof sphinx);
    assert_string_equal(read_six("a.mfc", 3).text, "");
    assert_non_null(strstr(read_six("a.mfc", 4).text, "features.dim"));
    write_bytes("a.mfc", sphinx, sizeof sphinx - 4);
    assert_problem("a.mfc", 3,
                   "disagrees with its header, of HTK or of Sphinx: 24 bytes, "
                   "where HTK's would need ");
    assert_problem("a.mfc", 3, "and Sphinx's 28; make or copy it again");
    write_bytes("a.mfc", "\0\0\0", 4);
    assert_non_null(strstr(read_six("a.mfc", 3).text, "no frames"));
    write_bytes("a.mfc", "", 0);
    assert_non_null(
        strstr(read_six("a.mfc", 3).text, "disagrees with its header"));
    write_bytes("a.mfc", "\0\0\0\2\0\0\0\0\x7f\xc0\0\0", 12);
    assert_problem("a.mfc", 1,
                   "a.mfc: feature 0 of frame 1, both counted from 0, is NaN; "
                   "make the file again, or leave the sequence out");
    assert_problem("a.mfc", 2, "feature 1 of frame 0, both");
    write_bytes("a.mfc", little_sphinx, sizeof little_sphinx);
    assert_string_equal(read_six("a.mfc", 3).text, "");
    write_text("a.xyz", "{\"id\": 1}");
    assert_non_null(strstr(read_six("a.xyz", 3).text, "neither a binary"));
    assert_non_null(strstr(read_six("none.npy", 3).text, "No such file"));
}

/* 2 x 3 numbers of every type and order that numpy.save can write. */
static void test_arrays_of_any_float_and_order_are_read(void **state)
{
    static const uint16_t halves[] = {0x3c00, 0x4000, 0x4200,
                                      0xb800, 0x3400, 0x4400};
    uint8_t data[48], file[512];
    char head[100];

    (void)state;
    for (int width = 2; width <= 8; width *= 2)
        for (int big = 0; big < 2; big++)
            for (int fortran = 0; fortran < 2; fortran++) {
                for (size_t k = 0; k < 6; k++) {
                    size_t from = fortran ? k % 2 * 3 + k / 2 : k;
                    double wide = six[from];
                    const void *number = width == 2   ? (void *)&halves[from]
                                         : width == 4 ? (void *)&six[from]
                                                      : (void *)&wide;
                    uint8_t *to = data + k * (size_t)width;

                    memcpy(to, number, (size_t)width);
                    for (int i = 0; big && i < width / 2; i++) {
                        uint8_t low = to[i];
                        to[i] = to[width - 1 - i];
                        to[width - 1 - i] = low;
                    }
                }
                snprintf(head, sizeof head,
                         "{'descr': '%cf%d', 'fortran_order': %s, 'shape': (2, "
                         "3), }",
                         big ? '>' : '<', width, fortran ? "True" : "False");
                write_bytes("a.npy", file,
                            make_npy(file, 1, head, data, 6 * (size_t)width));
                if (read_six("a.npy", 13).text[0] != '\0')
                    fail_msg("%s: %s", head, read_six("a.npy", 13).text);
            }
}

/* ---- .npz ---------------------------------------------------------------- */

static uint8_t *put(uint8_t *to, unsigned long x, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *to++ = (uint8_t)(x >> (8 * i));
    return to;
}

/* A zip archive of members with the same data, as in PKWARE's APPNOTE. Returns
 * its size. */
static size_t make_zip(uint8_t *out, const char *const *names, bool deflated,
                       const uint8_t *data, size_t n)
{
    uint8_t packed[1024], *to = out, *directory = NULL;
    unsigned long offset[4] = {0}, crc = crc32(0, data, (unsigned)n);
    size_t size = n, count = 0;
    z_stream z = {.next_in = data,
                  .avail_in = (unsigned)n,
                  .next_out = packed,
                  .avail_out = sizeof packed};

    memcpy(packed, data, n);
    if (deflated) {
        assert_int_equal(deflateInit2(&z, 9, Z_DEFLATED, -15, 8, 0), Z_OK);
        assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
        size = sizeof packed - z.avail_out;
        deflateEnd(&z);
    }
    for (; names[count] != NULL; count++) {
        size_t length = strlen(names[count]);

        offset[count] = (unsigned long)(to - out);
        to = put(put(to, 0x04034b50, 4), 20, 2);
        to = put(put(put(to, 0, 2), deflated ? 8 : 0, 2), 0, 4);
        to = put(put(put(to, crc, 4), size, 4), n, 4);
        to = put(put(to, length, 2), 4, 2);
        memcpy(to, names[count], length);
        to = put(to + length, 0x99, 4); /* an extra field */
        memcpy(to, packed, size);
        to += size;
    }
    directory = to;
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(names[i]);

        to = put(put(put(to, 0x02014b50, 4), 20, 2), 20, 2);
        to = put(put(put(to, 0, 2), deflated ? 8 : 0, 2), 0, 4);
        to = put(put(put(to, crc, 4), size, 4), n, 4);
        to = put(put(put(to, length, 2), 0, 4), 0, 4);
        to = put(put(to, 0, 4), offset[i], 4);
        memcpy(to, names[i], length);
        to += length;
    }
    to = put(put(put(put(to, 0x06054b50, 4), 0, 4), count, 2), count, 2);
    to = put(put(put(to, (unsigned long)(to - directory - 12), 4),
                 (unsigned long)(directory - out), 4),
             0, 2);
    return (size_t)(to - out);
}

static void test_arrays_of_archives_are_read(void **state)
{
    static const char *const two[] = {"a.npy", "b.npy", NULL};
    static const char *const one[] = {"a.npy", "readme.txt", NULL};
    uint8_t array[512], file[4096];
    size_t n = make_npy(array, 1, good_head, little, sizeof little), size = 0;

    (void)state;
    for (int deflated = 0; deflated < 2; deflated++) {
        size = make_zip(file, one, deflated, array, n);
        write_bytes("a.npz", file, size);
        assert_string_equal(read_six("a.npz", 13).text, "");
        assert_non_null(strstr(read_six("a.npz:c", 13).text,
                               "no array of this name; it has a"));
        size = make_zip(file, two, deflated, array, n);
        write_bytes("a.npz", file, size);
        assert_string_equal(read_six("a.npz:b", 13).text, "");
        assert_non_null(
            strstr(read_six("a.npz", 13).text,
                   "several arrays; name one: x.npz:NAME; it has a, b"));
        for (size_t k = 0; k < size; k += 31) { /* truncated, or flipped */
            bm_frames x = {0};
            bm_problem problem = {0};

            write_bytes("b.npz", file, k);
            problem = read_six("b.npz:b", 13);
            assert_true(bm_problem_is(&problem));
            file[k] ^= 0x55;
            write_bytes("b.npz", file, size);
            file[k] ^= 0x55;
            problem.text[0] = '\0';
            assert_ok(
                bm_feature_file_read(in_folder("b.npz:b"), 13, &x, &problem));
            bm_frames_free(&x);
        }
    }
}

/* ---- HTK ----------------------------------------------------------------- */

static void test_htk_files_are_read(void **state)
{
    /* USER, 10 ms, and the six numbers */
    static const uint8_t plain[] = {
        0,    0,    0, 2, 0,    1,    0x86, 0xa0, 0,    12,   0, 9,
        0x3f, 0x80, 0, 0, 0x40, 0,    0,    0,    0x40, 0x40, 0, 0,
        0xbf, 0,    0, 0, 0x3e, 0x80, 0,    0,    0x40, 0x80, 0, 0};
    /* A = 4, B = 1 for each: q = 4 x - 1 */
    static const uint8_t packed[] = {0,    0,    0,    6,    0,    1,    0x86,
                                     0xa0, 0,    6,    0x14, 9,    0x40, 0x80,
                                     0,    0,    0x40, 0x80, 0,    0,    0x40,
                                     0x80, 0,    0,    0x3f, 0x80, 0,    0,
                                     0x3f, 0x80, 0,    0,    0x3f, 0x80, 0,
                                     0,    0,    3,    0,    7,    0,    11,
                                     0xff, 0xfd, 0,    0,    0,    15,   0xab,
                                     0xcd}; /* the checksum */
    uint8_t file[sizeof packed];

    (void)state;
    write_bytes("a.htk", plain, sizeof plain);
    assert_string_equal(read_six("a.htk", 13).text, "");
    write_bytes("a.mfc", plain, sizeof plain);
    assert_string_equal(read_six("a.mfc", 13).text, "");
    memcpy(file, plain, sizeof plain);
    file[10] = 0x10; /* _K */
    write_bytes("a.htk", file, sizeof plain + 2);
    assert_string_equal(read_six("a.htk", 13).text, "");
    write_bytes("a.plp", packed, sizeof packed);
    assert_string_equal(read_six("a.plp", 13).text, "");
    memcpy(file, packed, sizeof packed);
    file[3] = 2; /* a program that does not count A and B as frames */
    write_bytes("a.plp", file, sizeof packed);
    assert_string_equal(read_six("a.plp", 13).text, "");
    memcpy(file, plain, sizeof plain);
    file[11] = 0;
    write_bytes("a.htk", file, sizeof plain);
    assert_non_null(strstr(read_six("a.htk", 13).text, "make features of it"));
    file[11] = 9;
    write_bytes("a.htk", file, sizeof plain - 1);
    assert_non_null(
        strstr(read_six("a.htk", 13).text, "disagrees with its header"));
    file[3] = 0;
    write_bytes("a.htk", file, 12);
    assert_non_null(strstr(read_six("a.htk", 13).text, "no frames"));
}

static void test_feature_files_are_processed_by_the_chain(void **state)
{
    uint8_t file[512];
    bm_importer *i = NULL;
    bm_item item;
    bm_shard_meta meta;

    (void)state;
    write_bytes("a.npy", file,
                make_npy(file, 1, good_head, little, sizeof little));
    write_bytes("b.mfc", sphinx, sizeof sphinx);
    assert_ok(
        open_importer(&i, "features",
                      SET("features.stack=2", "features.subsample=2",
                          "features.shift_ms=12.5", "features.dim=2"),
                      "{\"id\":\"a\",\"feats\":\"a.npy\",\"text\":\"one\"}\n"
                      "{\"id\":\"b\",\"feats\":\"b.mfc\"}\n"));
    i->ops->meta(i, &meta);
    assert_int_equal(meta.features, 6);
    assert_true(near(meta.frame_shift, 0.025, 1e-12));
    assert_non_null(strstr(meta.features_text, "\"dim\": 3"));
    item = next_item(i);
    assert_int_equal(item.frames, 1);
    assert_int_equal(item.features, 6);
    for (size_t d = 0; d < 3; d++) { /* two frames: +1 and -1, or -1 and +1 */
        float expected = six[d] > six[3 + d] ? 1 : -1;
        assert_float_equal(item.x[d], expected, 1e-5);
        assert_float_equal(item.x[3 + d], -expected, 1e-5);
    }
    item = next_item(i); /* three frames of 2, as features.dim is set */
    assert_non_null(strstr(item.problem->text, "has 2 numbers per frame, but"));
    bm_importer_close(i);
}

static void test_unusable_feature_files_are_reported(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_bytes("b.mfc", sphinx, sizeof sphinx);
    assert_int_equal(open_importer(&i, "features", NULL,
                                   "{\"id\":\"b\",\"feats\":\"b.mfc\"}\n"),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "none of the 1 files"));
    assert_non_null(strstr(bm_last_error(), "features.dim may be wrong"));
}

static void test_real_features_are_usable(void **state)
{
    const char *archive = real_data("speech/an4/an4-mfc.tar.gz");
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    if (archive == NULL)
        skip();
    unpack(archive);
    assert_ok(open_importer(
        &i, "features", SET("features.deltas=2"),
        "{\"id\":\"a\",\"feats\":\"feat/an4_clstk/fash/an251-fash-b.mfc\"}\n"));
    item = next_item(i);
    assert_null(item.problem);
    assert_int_equal(item.features, 39);
    assert_in_range(item.frames, 50, 1000);
    bm_importer_close(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arrays_of_both_versions_and_widths_are_read),
        cmocka_unit_test(test_invalid_arrays_are_problems),
        cmocka_unit_test(test_damaged_arrays_never_crash),
        cmocka_unit_test(test_sphinx_files_are_read),
        cmocka_unit_test(test_arrays_of_any_float_and_order_are_read),
        cmocka_unit_test(test_arrays_of_archives_are_read),
        cmocka_unit_test(test_htk_files_are_read),
        cmocka_unit_test(test_feature_files_are_processed_by_the_chain),
        cmocka_unit_test(test_unusable_feature_files_are_reported),
        cmocka_unit_test(test_real_features_are_usable),
    };

    return cmocka_run_group_tests_name("feature_files", tests, folder_make,
                                       folder_remove);
}
