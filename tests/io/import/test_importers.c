/*
 * The list of importers, and line images, which are made here, byte by byte.
 */
#include "io/import/images/image_file.h"
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
    static const char *const known[] = {"audio", "images", "features",
                                        "idx",   "unipen", "returnn"};
    bm_importer *i = NULL;
    const char *names = NULL;

    (void)state;
    assert_int_equal(open_importer(&i, "video", NULL, ""), BM_ERR_ARG);
    names = strstr(bm_last_error(), "'video'; the importers are: ");
    assert_non_null(names);
    FOR_EACH (k, known)
        assert_non_null(strstr(names, known[k]));
    for (const bm_importer_ops *const *o = bm_importer_list(); *o != NULL; o++)
        assert_non_null(strstr(names, (*o)->name));
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
    static const uint8_t grey[2][3] = {{255, 0, 255}, {255, 255, 155}};
    static const int by_two[] = {0, 0, 255, 0, 0, 100, 0, 0};
    static const int padded[] = {0, 0, 0, 0, 255, 0, 0, 100, 0, 0, 0, 0};

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
    assert_ok(bm_image_file_read(&image, in_folder("a.png"),
                                 BM_MOST_LINE_PIXELS, &problem));
    assert_int_equal(image.grey[0], 255);
    assert_int_equal(image.grey[1], 0);
    assert_int_equal(image.grey[2], 224); /* (100 * 51 + 255 * 204) / 255 */
    bm_line_image_free(&image);
    write_png("a.png", PNG_FORMAT_RGB, colour, 2, 1);
    assert_ok(bm_image_file_read(&image, in_folder("a.png"),
                                 BM_MOST_LINE_PIXELS, &problem));
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
    assert_int_equal(meta.features, 48);
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
    assert_int_equal(item.features, 48);
    assert_int_equal(item.frames, 854); /* width from its manifest */
    for (size_t k = 0; k < item.frames * item.features; k++)
        ink += item.x[k] > 0.5;
    assert_in_range(ink, 854 * 48 / 100, 854 * 48 / 3);
    assert_int_equal(next_item(i).frames, 190);
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
    };

    return cmocka_run_group_tests_name("importers", tests, folder_make,
                                       folder_remove);
}
