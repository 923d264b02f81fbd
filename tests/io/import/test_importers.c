/*
 * Importers of line images and feature files; recordings are in test_audio.c.
 * Images and files are made here, byte by byte.
 */
#include "io/import/feature_files.h"
#include "io/import/line_image.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_importers_are_listed_by_name(void **state)
{
    static const char *const names[] = {"audio", "images", "features"};
    bm_importer *i = NULL;

    (void)state;
    FOR_EACH (k, names)
        assert_string_equal(bm_importer_list()[k]->name, names[k]);
    assert_null(bm_importer_list()[3]);
    assert_int_equal(open_importer(&i, "video", NULL, ""), BM_ERR_ARG);
    assert_non_null(strstr(
        bm_last_error(), "'video'; the importers are: audio images features"));
}

/* ---- images ------------------------------------------------------------ */

/* A PNG in this format of libpng. */
static void write_png(const char *name, png_uint_32 format, const void *pixels,
                      unsigned width, unsigned height)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = width,
                     .height = height,
                     .format = format};

    assert_true(
        png_image_write_to_file(&png, in_folder(name), 0, pixels, 0, NULL));
}

/* The first item of an image of grey values, x times 255. */
static void import_grey(bm_config *config, const uint8_t *grey, unsigned width,
                        unsigned height, size_t frames, size_t features,
                        const int *expected)
{
    bm_importer *i = NULL;
    bm_item item;

    write_png("a.png", PNG_FORMAT_GRAY, grey, width, height);
    assert_ok(open_importer(&i, "images", config,
                            "{\"id\":\"a\",\"image\":\"a.png\"}\n"));
    item = next_item(i);
    assert_null(item.problem);
    assert_string_equal(item.text, "");
    assert_int_equal(item.frames, frames);
    assert_int_equal(item.features, features);
    for (size_t k = 0; k < frames * features; k++)
        if (item.x[k] != (float)(expected[k] * (1.0 / 255)))
            fail_msg("number %zu is %g, not %d", k, item.x[k] * 255.0,
                     expected[k]);
    bm_importer_close(i);
}

static void test_frames_are_columns_of_ink(void **state)
{
    static const uint8_t grey[2][3] = {{255, 0, 250}, {255, 255, 155}};
    static const int by_two[] = {0, 0, 255, 0, 5, 100, 0, 0};
    static const int padded[] = {0, 0, 0, 0, 255, 0, 5, 100, 0, 0, 0, 0};

    (void)state;
    import_grey(SET("features.height=2", "features.columns=2"), grey[0], 3, 2,
                2, 4, by_two);
    import_grey(
        SET("features.height=2", "features.columns=3", "features.pad=1"),
        grey[0], 3, 2, 2, 6, padded);
}

static void test_shrinking_averages_areas(void **state)
{
    static const uint8_t half[2][4] = {{255, 255, 155, 205},
                                       {255, 251, 255, 255}};
    static const uint8_t thirds[3][3] = {
        {255, 255, 255}, {165, 255, 255}, {255, 255, 255}};
    /* means of 2 x 2: 254, and 217.5, which is rounded up */
    static const int halved[] = {1, 37};
    /* 90 of ink in the left pixel of the middle row: the areas at the left have
     * 1 x 1/2 of it, of 3/2 x 3/2 */
    static const int two_thirds[] = {20, 20, 0, 0};

    (void)state;
    import_grey(SET("features.height=1", "features.columns=1"), half[0], 4, 2,
                2, 1, halved);
    import_grey(SET("features.height=2", "features.columns=1"), thirds[0], 3, 3,
                2, 2, two_thirds);
}

static void test_growing_interpolates_between_centres(void **state)
{
    static const uint8_t grey[1][2] = {{255, 155}};
    /* columns at -1/4, 1/4, 3/4, 5/4 of the way from 0 to 100 */
    static const int grown[] = {0, 0, 25, 25, 75, 75, 100, 100};

    (void)state;
    import_grey(SET("features.height=2", "features.columns=1"), grey[0], 2, 1,
                4, 2, grown);
}

static void test_light_ink_on_dark_is_detected(void **state)
{
    static const uint8_t dark[1][3] = {{10, 200, 10}};
    static const int as_ink[] = {10, 200, 10}, as_ground[] = {245, 55, 245};
    static const uint8_t light[1][3] = {{245, 55, 245}};

    (void)state;
    import_grey(SET("features.height=1", "features.columns=3"), dark[0], 3, 1,
                1, 3, as_ink);
    import_grey(SET("features.height=1", "features.columns=3"), light[0], 3, 1,
                1, 3, as_ink);
    import_grey(
        SET("features.height=1", "features.columns=3", "features.invert=no"),
        dark[0], 3, 1, 1, 3, as_ground);
    import_grey(
        SET("features.height=1", "features.columns=3", "features.invert=yes"),
        light[0], 3, 1, 1, 3, as_ground);
}

static void test_transparent_pixels_are_white(void **state)
{
    static const uint8_t pairs[3][2] = {{0, 0}, {0, 255}, {100, 51}};
    static const uint8_t colour[2][3] = {{255, 255, 255}, {0, 0, 0}};
    bm_line_image image = {0};
    bm_problem problem = {0};

    (void)state;
    write_png("a.png", PNG_FORMAT_GA, pairs, 3, 1);
    assert_ok(bm_line_image_read(&image, in_folder("a.png"), &problem));
    assert_int_equal(image.grey[0], 255);
    assert_int_equal(image.grey[1], 0);
    assert_int_equal(image.grey[2], 224); /* (100 * 51 + 255 * 204) / 255 */
    bm_line_image_free(&image);
    write_png("a.png", PNG_FORMAT_RGB, colour, 2, 1);
    assert_ok(bm_line_image_read(&image, in_folder("a.png"), &problem));
    assert_int_equal(image.width, 2);
    assert_int_equal(image.grey[0], 255);
    assert_int_equal(image.grey[1], 0);
    bm_line_image_free(&image);
}

static void test_images_are_stored_as_bytes(void **state)
{
    static const uint8_t grey = 0;
    bm_importer *i = NULL;
    bm_shard_meta meta;
    json_t *object = NULL;

    (void)state;
    write_png("a.png", PNG_FORMAT_GRAY, &grey, 1, 1);
    assert_ok(open_importer(&i, "images", NULL,
                            "{\"id\":\"a\",\"image\":\"a.png\"}\n"));
    assert_string_equal(i->ops->store, "u8");
    i->ops->meta(i, &meta);
    assert_int_equal(meta.features, 4 * 48);
    assert_true(meta.quant_scale == 1.0 / 255 && meta.quant_offset == 0);
    assert_true(meta.frame_shift == 0);
    object = json_loads(meta.features_text, 0, NULL);
    assert_int_equal(json_integer_value(json_object_get(object, "height")), 48);
    assert_string_equal(json_string_value(json_object_get(object, "invert")),
                        "auto");
    json_decref(object);
    bm_importer_close(i);
}

static void test_invalid_images_are_problems(void **state)
{
    static const uint8_t grey[64] = {0};
    bm_importer *i = NULL;
    FILE *file = NULL;
    char head[60];

    (void)state;
    write_text("text.png", "not an image");
    write_png("cut.png", PNG_FORMAT_GRAY, grey, 8, 8);
    file = fopen(in_folder("cut.png"), "rb");
    assert_non_null(file);
    assert_int_equal(fread(head, 1, sizeof head, file), sizeof head);
    fclose(file);
    write_bytes("cut.png", head, 50);
    write_png("flat.png", PNG_FORMAT_GRAY, grey, 64, 1);
    assert_ok(open_importer(&i, "images", SET("features.height=4096"),
                            "{\"id\":\"a\",\"image\":\"text.png\"}\n"
                            "{\"id\":\"b\",\"image\":\"cut.png\"}\n"
                            "{\"id\":\"c\",\"image\":\"flat.png\"}\n"));
    assert_non_null(strstr(next_item(i).problem->text, "text.png: "));
    assert_non_null(strstr(next_item(i).problem->text, "cut.png: "));
    assert_non_null(strstr(next_item(i).problem->text, "64 x 1 pixels: too"));
    assert_null(next_item(i).id);
    bm_importer_close(i);
    assert_int_equal(
        open_importer(&i, "images", SET("features.invert=perhaps"), ""),
        BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "features.invert: 'perhaps'"));
}

static void test_real_lines_are_usable(void **state)
{
    const char *archive = real_data("handwriting/copiste/copiste-dev.tar.gz");
    bm_importer *i = NULL;
    bm_item item;
    size_t ink = 0;

    (void)state;
    if (archive == NULL)
        skip();
    unpack(archive);
    assert_ok(open_importer(
        &i, "images", NULL,
        "{\"id\":\"a\",\"image\":\"lines/imp_wikitexte_0081-l002.png\"}\n"
        "{\"id\":\"b\",\"image\":\"lines/imp_wikitexte_0081-l003.png\"}\n"));
    item = next_item(i);
    assert_null(item.problem);
    assert_int_equal(item.features, 4 * 48);
    assert_int_equal(item.frames, (854 + 3) / 4); /* width from its manifest */
    for (size_t k = 0; k < item.frames * item.features; k++)
        ink += item.x[k] > 0.5;
    assert_in_range(ink, 854 * 48 / 100, 854 * 48 / 3);
    assert_int_equal(next_item(i).frames, (190 + 3) / 4);
    bm_importer_close(i);
}

/* ---- feature files ----------------------------------------------------- */

/* {1, 2, 3; -.5, .25, 4} */
static const float six[] = {1, 2, 3, -.5f, .25f, 4};
static const uint8_t little[] = {0, 0, 0x80, 0x3f, 0, 0, 0,    0x40,
                                 0, 0, 0x40, 0x40, 0, 0, 0,    0xbf,
                                 0, 0, 0x80, 0x3e, 0, 0, 0x80, 0x40};
static const uint8_t sphinx[] = {
    0, 0, 0,    6, 0x3f, 0x80, 0,    0,    0x40, 0, 0,    0,    0x40, 0x40,
    0, 0, 0xbf, 0, 0,    0,    0x3e, 0x80, 0,    0, 0x40, 0x80, 0,    0};

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
}

static void test_invalid_arrays_are_problems(void **state)
{
    static const struct {
        const char *head, *message;
    } cases[] = {
        {"{'descr': '>f4', 'fortran_order': False, 'shape': (2, 3), }",
         "not little-endian float32"},
        {"{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }",
         "not little-endian float32"},
        {"{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }",
         "not in C order"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }",
         "not two-dimensional"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }",
         "not two-dimensional"},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (3, 3), }",
         "length of the file disagrees"},
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
    assert_non_null(strstr(read_six("a.mfc", 3).text, "first four bytes"));
    write_bytes("a.mfc", "\0\0\0", 4);
    assert_non_null(strstr(read_six("a.mfc", 3).text, "no frames"));
    write_bytes("a.mfc", "", 0);
    assert_non_null(strstr(read_six("a.mfc", 3).text, "first four bytes"));
    write_bytes("a.mfc", "\0\0\0\1\x7f\xc0\0\0", 8);
    assert_non_null(strstr(read_six("a.mfc", 1).text, "NaN or infinite"));
    write_bytes("a.htk", sphinx, sizeof sphinx);
    assert_non_null(strstr(read_six("a.htk", 3).text, "neither .npy nor .mfc"));
    assert_non_null(strstr(read_six("none.npy", 3).text, "No such file"));
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
        cmocka_unit_test(test_importers_are_listed_by_name),
        cmocka_unit_test(test_frames_are_columns_of_ink),
        cmocka_unit_test(test_shrinking_averages_areas),
        cmocka_unit_test(test_growing_interpolates_between_centres),
        cmocka_unit_test(test_light_ink_on_dark_is_detected),
        cmocka_unit_test(test_transparent_pixels_are_white),
        cmocka_unit_test(test_images_are_stored_as_bytes),
        cmocka_unit_test(test_invalid_images_are_problems),
        cmocka_unit_test(test_real_lines_are_usable),
        cmocka_unit_test(test_arrays_of_both_versions_and_widths_are_read),
        cmocka_unit_test(test_invalid_arrays_are_problems),
        cmocka_unit_test(test_damaged_arrays_never_crash),
        cmocka_unit_test(test_sphinx_files_are_read),
        cmocka_unit_test(test_feature_files_are_processed_by_the_chain),
        cmocka_unit_test(test_unusable_feature_files_are_reported),
        cmocka_unit_test(test_real_features_are_usable),
    };

    return cmocka_run_group_tests_name("importers", tests, folder_make,
                                       folder_remove);
}
