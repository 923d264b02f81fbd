/* Matrices in the forms that Kaldi writes, made here from the published layout,
 * byte by byte. */
#include "io/import/files/feature_files.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An archive with one object, of the key "utt1", which takes five bytes. */
typedef struct object {
    const char *bytes;
    size_t size, rows, columns;
    float x[12];
} object;

#define BYTES(text) text, sizeof text - 1

static const object objects[] = {
    {BYTES("utt1 \0BFM \4\2\0\0\0\4\3\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40"
           "\0\0\0\xbf\0\0\x80\x3e\0\0\x80\x40"),
     2,
     3,
     {1, 2, 3, -.5f, .25f, 4}},
    {BYTES("utt1 \0BDM \4\1\0\0\0\4\2\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0"
           "\xbf"),
     1,
     2,
     {1, -.5f}},
    {BYTES("utt1 \0BFV \4\3\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40"),
     1,
     3,
     {1, 2, 3}},
    {BYTES("utt1 \0BDV \4\1\0\0\0\0\0\0\0\0\0\xf0\x3f"), 1, 1, {1}},
    {BYTES("utt1 \0BCM2 \0\0\x80\xbf\0\0\xa0\x40\2\0\0\0\3\0\0\0\0\0\xff\xff\0"
           "\x80\1\0\2\0\3\0"),
     2,
     3,
     {-1, 4, 1.5000381f, -.9999237f, -.9998474f, -.9997711f}},
    {BYTES("utt1 \0BCM3 \0\0\x80\xbf\0\0\xa0\x40\2\0\0\0\3\0\0\0\0\xff\x80\1\2"
           "\3"),
     2,
     3,
     {-1, 4, 1.5098039f, -.9803922f, -.9607843f, -.9411765f}},
    {BYTES("utt1 \0BCM \0\0\0\0\0\xff\x7f\x47\4\0\0\0\2\0\0\0\0\0\x64\0\x2c\1"
           "\xe8\3\0\0\xe8\3\xd0\7\xa0\x0f\0\x40\xc0\xff\x20\x80\xe0\1"),
     4,
     2,
     {0, 500, 100, 1500, 300, 3015.873f, 1000, 15.625f}},
    {BYTES("utt1  [\n  1 2 3 \n  -0.5 2.5e-1 4 ]\n"),
     2,
     3,
     {1, 2, 3, -.5f, .25f, 4}},
    {BYTES("utt1  [ 1 -0.5 ]\n"), 1, 2, {1, -.5f}},
};

static bm_problem read_place(const char *place, bm_frames *x)
{
    bm_problem problem = {0};

    assert_ok(bm_feature_file_read(in_folder(place), 13, x, &problem));
    return problem;
}

static void test_matrices_of_every_form_are_read(void **state)
{
    (void)state;
    FOR_EACH (i, objects) {
        const object *o = &objects[i];
        bm_frames x = {0};

        write_bytes("x.ark", o->bytes, o->size);
        assert_string_equal(read_place("x.ark:5", &x).text, "");
        assert_int_equal(x.n, o->rows);
        assert_int_equal(x.dim, o->columns);
        for (size_t k = 0; k < x.n * x.dim; k++)
            assert_float_equal(x.x[k], o->x[k], 2e-7 * (1 + o->x[k]));
        write_bytes("x.mat", o->bytes + 5, o->size - 5); /* without a key */
        assert_string_equal(read_place("x.mat", &x).text, "");
        assert_int_equal(x.n, o->rows);
        bm_frames_free(&x);
    }
}

/* Truncated anywhere, no object is read, and one byte that differs never crashes
 * a reader. The problem says where. */
static void test_damaged_matrices_are_problems(void **state)
{
    (void)state;
    FOR_EACH (i, objects) {
        const object *o = &objects[i];
        char *copy = malloc(o->size);
        bm_problem problem;

        assert_non_null(copy);
        memcpy(copy, o->bytes, o->size);
        for (size_t k = 6; k < o->size - 2; k++) {
            bm_frames x = {0};

            write_bytes("x.ark", o->bytes, k);
            problem = read_place("x.ark:5", &x);
            if (strstr(problem.text, "x.ark, byte ") == NULL)
                fail_msg("object %zu, %zu bytes: '%s'", i, k, problem.text);
            copy[k] = (char)~copy[k];
            write_bytes("x.ark", copy, o->size);
            copy[k] = (char)~copy[k];
            (void)read_place("x.ark:5", &x);
            bm_frames_free(&x);
        }
        free(copy);
    }
}

static void test_wrong_places_are_problems(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *place, *message;
    } cases[] = {
        {BYTES("u \0BFM \4\xff\xff\xff\x7f\4\xff\xff\xff\x7f"), "x.ark:2",
         "byte 17: the size of the matrix is impossible"},
        {BYTES("u \0BFM \4\xff\xff\xff\xff\4\2\0\0\0"), "x.ark:2",
         "the size of the matrix is impossible"},
        {BYTES("u \0BFM \4\0\0\0\0\4\0\0\0\0"), "x.ark:2", "an empty matrix"},
        {BYTES("u \0B\4\1\0\0\0\4\7\0\0\0"), "x.ark:2",
         "byte 3: no matrix or vector of floats begins here"},
        {BYTES("u \0BFM \4"), "x.ark:9999",
         "byte 9999: the file is shorter; the list and the archive do not "
         "belong together"},
        {BYTES("u  [ 1 2\n 3 ]\n"), "x.ark:2", "rows of different lengths"},
        {BYTES("u  [ 1 x ]\n"), "x.ark:2", "a word that is not a number"},
        {BYTES("u  [ ]\n"), "x.ark:2", "an empty matrix"},
        {BYTES("u  [ 1 nan ]\n"), "x.ark:2",
         "x.ark:2: feature 1 of frame 0, both counted from 0, is NaN; make"},
        {BYTES("\x1f\x8b\x08\0"), "x.ark",
         "x.ark is a gzip file; only lists may be compressed: unpack it"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[5:9]", "outside the matrix of 1 row"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[:,1:2]", "outside the matrix"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[1:0]", "not a place such as"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[1]", "not a place such as"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_frames x = {0};
        bm_problem problem;

        write_bytes("x.ark", cases[i].bytes, cases[i].size);
        problem = read_place(cases[i].place, &x);
        if (strstr(problem.text, cases[i].message) == NULL)
            fail_msg("%s: '%s'", cases[i].message, problem.text);
        bm_frames_free(&x);
    }
}

static void test_ranges_take_a_part_of_a_matrix(void **state)
{
    static const struct {
        const char *range;
        size_t rows, columns;
        float first, last;
    } cases[] = {
        {"[0:1]", 2, 3, 11, 23},     {"[1:3]", 3, 3, 21, 43},
        {"[2:6]", 2, 3, 31, 43}, /* three rows that are not there */
        {"[1:2,1:2]", 2, 2, 22, 33}, {"[:,2:2]", 4, 1, 13, 43},
        {"[3:3,:]", 1, 3, 41, 43},
    };

    (void)state;
    write_text("x.ark", "u  [\n 11 12 13\n 21 22 23\n 31 32 33\n 41 42 43 ]\n");
    FOR_EACH (i, cases) {
        char place[64];
        bm_frames x = {0};

        snprintf(place, sizeof place, "x.ark:2%s", cases[i].range);
        assert_string_equal(read_place(place, &x).text, "");
        assert_int_equal(x.n, cases[i].rows);
        assert_int_equal(x.dim, cases[i].columns);
        assert_true(x.x[0] == cases[i].first);
        assert_true(x.x[x.n * x.dim - 1] == cases[i].last);
        bm_frames_free(&x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices_of_every_form_are_read),
        cmocka_unit_test(test_damaged_matrices_are_problems),
        cmocka_unit_test(test_wrong_places_are_problems),
        cmocka_unit_test(test_ranges_take_a_part_of_a_matrix),
    };

    return cmocka_run_group_tests_name("kaldi_archives", tests, folder_make,
                                       folder_remove);
}
