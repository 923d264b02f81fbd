/*
 * bmuf pack --unipen: files as UNIPEN's definition has them, made here; frames
 * against what follows from their definition, by hand.
 */
#include "io/import/pen/pen_features.h"
#include "io/import/pen/unipen.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Two strokes of height 10, with the pen's way through the air recorded, of
 * which an empty .PEN_UP is none. */
static const char strokes[] = ".WRITER_ID ann\n"
                              ".PEN_DOWN\n"
                              "  0  0\n"
                              "  0 10\n"
                              ".PEN_UP\n"
                              "  1 11\n"
                              "  3 11\n"
                              ".PEN_DOWN\n"
                              "  4 10\n"
                              "  4  0\n"
                              ".PEN_UP\n"
                              ".DT 100\n"
                              ".PEN_DOWN\n"
                              "  9  0\n"
                              "  9  5\n"
                              ".PEN_UP\n";

static bm_status open_unipen(bm_importer **i, bm_config *config,
                             const char *path)
{
    bm_status status = bm_importer_open(
        i, "unipen", config, &(bm_import_source){.path = in_folder(path)});

    bm_config_free(config);
    return status;
}

/* The delineation as "first+n down|up .." of points. */
static void describe(const char *delineation, char *out, size_t room)
{
    bm_unipen u = {0};
    bm_pen_path path = {0};
    const char *why = NULL;

    assert_ok(bm_unipen_read(&u, in_folder("strokes.dat"), false));
    assert_ok(bm_unipen_path(&u, delineation, &path, &why));
    snprintf(out, room, "%s", why != NULL ? why : "");
    for (size_t k = 0; k < path.n && why == NULL; k++)
        snprintf(out + strlen(out), room - strlen(out), "%s%zu+%zu%s",
                 k > 0 ? " " : "", path.parts[k].first, path.parts[k].n,
                 path.parts[k].down ? "d" : "u");
    free(path.parts);
    bm_unipen_free(&u);
}

static void test_delineations_count_components_with_points(void **state)
{
    static const char *const cases[][2] = {
        {"0", "0+2d"},        {"0-3", "0+2d 2+2u 4+2d 6+2d"}, {"3", "6+2d"},
        {"0,2", "0+2d 4+2d"}, {"0:1-2:0", "1+1d 2+2u 4+1d"},  {"1:1", "3+1u"},
        {"0:7", ""},
    };

    (void)state;
    write_text("strokes.dat", strokes);
    FOR_EACH (k, cases) {
        char text[200];

        describe(cases[k][0], text, sizeof text);
        assert_string_equal(text, cases[k][1]);
    }
}

static void test_wrong_delineations_are_named(void **state)
{
    static const char *const cases[] = {
        "", "x", "0-", "5", "3-1", "0-9", "0;1", "0:x", "0,,1", "-1", "0 1"};

    (void)state;
    write_text("strokes.dat", strokes);
    FOR_EACH (k, cases) {
        char text[200];

        describe(cases[k], text, sizeof text);
        assert_non_null(strstr(text, "its delineation"));
    }
}

/* Heights of 10 and 5: the lower median is 5 for both segments, and a step of
 * half a height 2.5. */
static void test_frames_are_equal_steps(void **state)
{
    static const float expected[][BM_PEN_FEATURES] = {
        {0, 1, -.5f, 0, 1}, {0, 1, 0, 0, 1},    {0, 1, .5f, 0, 1},
        {0, 1, 1, 0, 1},    {1.6f, 0, 1, 1, 0}, /* to the next stroke */
        {0, -1, .5f, 0, 1}, {0, -1, 0, 0, 1},   {0, -1, -.5f, 0, 1},
        {0, -1, -1, 0, 1},
    };
    bm_importer *i = NULL;
    bm_item item;
    char text[800];

    (void)state;
    snprintf(text, sizeof text,
             "%s.SEGMENT CHARACTER 0,2 ? \"H\"\n.SEGMENT CHARACTER 3 OK "
             "\"l\"\n",
             strokes);
    write_text("two.dat", text);
    assert_ok(open_unipen(&i, SET("features.step=0.5"), "two.dat"));
    item = next_item(i);
    assert_string_equal(item.id, "two-00001");
    assert_string_equal(item.text, "H");
    assert_string_equal(item.speaker, "ann");
    assert_null(item.problem);
    assert_int_equal(item.features, BM_PEN_FEATURES);
    assert_int_equal(item.frames, sizeof expected / sizeof *expected);
    for (size_t k = 0; k < item.frames * item.features; k++)
        assert_true(fabsf(item.x[k] - expected[k / 5][k % 5]) < 1e-6F);
    item = next_item(i);
    assert_string_equal(item.text, "l");
    assert_int_equal(item.frames, 2);
    assert_null(next_item(i).id);
    bm_importer_close(i);
}

/* The speed of 10 units in 2 s and then in 8 s is 5 and 1.25; the mean 2. */
static void test_speed_follows_the_times_of_coord(void **state)
{
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    write_text("t.dat", ".COORD X T Y P\n.SEGMENT WORD 0 ? \"a\"\n.PEN_DOWN\n"
                        "0 0 0 9 0 2\n10 9 0 10 20 9\n");
    assert_ok(open_unipen(&i, SET("features.step=0.25"), "t.dat"));
    item = next_item(i);
    assert_int_equal(item.frames, 4);
    for (size_t k = 0; k < 4; k++)
        assert_true(fabsf(item.x[5 * k + 4] - (k < 1 ? 2.5F : .625F)) < 1e-6F);
    bm_importer_close(i);
}

static void test_included_files_and_levels_are_found(void **state)
{
    static const char list[] =
        ".VERSION 1.0\n.INCLUDE abc/gone.doc\n.INCLUDE abc/s.dat\n"
        ".HIERARCHY WORD CHARACTER\n"
        ".SEGMENT WORD 0-3 OK \"a \\\"b\\\" \\\\c\"\n"
        ".SEGMENT CHARACTER 0 ? \"a\"\n.SEGMENT CHARACTER 2-3 ? \"b\"\n";
    bm_importer *i = NULL;
    bm_shard_meta meta = {0};
    bm_item item;

    (void)state;
    (void)mkdir(in_folder("set"), 0755);
    (void)mkdir(in_folder("set/data"), 0755);
    (void)mkdir(in_folder("set/data/1a"), 0755);
    (void)mkdir(in_folder("set/include"), 0755);
    (void)mkdir(in_folder("set/include/abc"), 0755);
    write_text("set/include/abc/s.dat", strokes);
    write_text("set/data/1a/x.dat", list);
    write_text("set/data/y.dat", list);
    (void)symlink("..", in_folder("set/data/1a/up"));
    (void)symlink(".", in_folder("set/data/here"));
    assert_ok(open_unipen(&i, NULL, "set/data"));
    item = next_item(i);
    assert_string_equal(item.id, "1a-x-00001");
    assert_string_equal(item.text, "a \"b\" \\c");
    assert_string_equal(item.speaker, "ann");
    assert_null(item.problem);
    assert_string_equal(next_item(i).id, "y-00001");
    assert_null(next_item(i).id);
    i->ops->meta(i, &meta);
    assert_non_null(strstr(meta.features_text, "\"level\": \"WORD\""));
    bm_importer_close(i);
    assert_ok(open_unipen(&i, SET("features.level=CHARACTER"), "set/data"));
    assert_string_equal(next_item(i).text, "a");
    item = next_item(i);
    assert_string_equal(item.id, "1a-x-00002");
    assert_string_equal(item.text, "b");
    bm_importer_close(i);
}

static void test_segments_of_no_use_are_left_out(void **state)
{
    bm_importer *i = NULL;
    char text[800];

    (void)state;
    snprintf(text, sizeof text,
             "%s.SEGMENT WORD 0 ? \"a\"\n.SEGMENT WORD 77 ? \"b\"\n.SEGMENT "
             "WORD 0:0 ? \"c\"\n.SEGMENT WORD\n",
             strokes);
    write_text("bad.dat", text);
    assert_ok(open_unipen(&i, NULL, "bad.dat"));
    assert_null(next_item(i).problem);
    assert_non_null(strstr(next_item(i).problem->text, "not there"));
    assert_non_null(strstr(next_item(i).problem->text, "two points"));
    assert_non_null(next_item(i).problem);
    bm_importer_close(i);
}

static void test_invalid_files_say_where(void **state)
{
    static const char *const cases[][2] = {
        {".SEGMENT A 0 ? \"a\"\n.PEN_DOWN\n1 2\n3 x\n", "bad.dat:4: not the"},
        {".SEGMENT A 0 ? \"a\"\n.PEN_DOWN\n1\n", "bad.dat:3: a point of one"},
        {".PEN_DOWN\n1 nan\n", "bad.dat:2: not the"},
        {".COORD X T\n", "names no X and Y"},
        {".INCLUDE bad.dat\n", "include each other"},
        {"no words of it\n", "has no .SEGMENT"},
        {".SEGMENT A 0 ? \"\xff\"\n", "not UTF-8"},
    };

    (void)state;
    FOR_EACH (k, cases) {
        bm_importer *i = NULL;

        write_text("bad.dat", cases[k][0]);
        assert_int_equal(open_unipen(&i, NULL, "bad.dat"), BM_ERR_FORMAT);
        if (strstr(bm_last_message(), cases[k][1]) == NULL)
            fail_msg("%s: %s", cases[k][1], bm_last_message());
    }
}

static void test_all_invalid_files_of_a_folder_are_named(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    assert_int_equal(
        bm_importer_open(&i, "unipen", NULL, &(bm_import_source){.path = "-"}),
        BM_ERR_ARG);
    assert_non_null(strstr(bm_last_message(), "not from standard input"));
    assert_int_equal(mkdir(in_folder("pens"), 0777), 0);
    write_text("pens/1.dat", ".PEN_DOWN\n1 nan\n");
    write_text("pens/2.dat", ".SEGMENT A 0 ? \"a\"\n.PEN_DOWN\n1 2\n3 4\n");
    write_text("pens/3.dat", ".COORD X T\n");
    assert_int_equal(open_unipen(&i, NULL, "pens"), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_message(), "2 problems:"));
    assert_non_null(strstr(bm_last_message(), "pens/1.dat:2: not the"));
    assert_non_null(strstr(bm_last_message(), "pens/3.dat:1: "));
}

/* All digits of the training set of pendigits: 7,494 segments; 9,433 components,
 * as its .PEN_DOWN are; every point is on the path of its digit. */
static void test_real_digits_are_read(void **state)
{
    const char *path = real_data("handwriting/pendigits/pendigits-orig.tra.gz");
    bm_unipen u = {0};
    size_t down = 0;

    (void)state;
    if (path == NULL)
        skip();
    assert_ok(bm_unipen_read(&u, path, true));
    assert_int_equal(u.n_segments, 7494);
    for (size_t k = 0; k < u.n_components; k++)
        down += u.components[k].down;
    assert_int_equal(down, 9433);
    assert_string_equal(u.segments[6].delineation, "6-7");
    assert_string_equal(u.segments[7493].delineation, "9431-9432");
    assert_true(u.points[0].x == 267 && u.points[0].y == 333);
    bm_unipen_free(&u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_delineations_count_components_with_points),
        cmocka_unit_test(test_wrong_delineations_are_named),
        cmocka_unit_test(test_frames_are_equal_steps),
        cmocka_unit_test(test_speed_follows_the_times_of_coord),
        cmocka_unit_test(test_included_files_and_levels_are_found),
        cmocka_unit_test(test_segments_of_no_use_are_left_out),
        cmocka_unit_test(test_invalid_files_say_where),
        cmocka_unit_test(test_all_invalid_files_of_a_folder_are_named),
        cmocka_unit_test(test_real_digits_are_read),
    };

    return cmocka_run_group_tests_name("unipen", tests, folder_make,
                                       folder_remove);
}
