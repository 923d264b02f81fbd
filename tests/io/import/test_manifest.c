/*
 * Manifests: their rows, and a report of all their faults.
 */
#include "io/import/manifest.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

static void test_a_manifest_has_one_row_per_line(void **state)
{
    bm_manifest *m = NULL;
    bm_manifest_row row;

    (void)state;
    write_text("a.wav", "");
    write_text(
        "m.jsonl",
        "\xef\xbb\xbf{\"id\": \"a\", \"audio\": \"a.wav\", "
        "\"text\": \"\\u00e9t\\u00e9\", \"speaker\": \"z\", \"dur\": 3}\n"
        "\n"
        "{\"id\": \"b\", \"audio\": \"/dev/null\"}\r\n"
        "{\"id\": \"c\", \"audio\": \"./a.wav\", \"speaker\": \"y\"}");
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio"));
    assert_int_equal(bm_manifest_size(m), 3);
    assert_int_equal(bm_manifest_speakers(m), 3);
    row = bm_manifest_at(m, 0);
    assert_string_equal(row.id, "a");
    assert_string_equal(row.path, in_folder("a.wav"));
    assert_string_equal(row.text, "\xc3\xa9t\xc3\xa9");
    assert_string_equal(row.speaker, "z");
    assert_int_equal(row.speaker_number, 2);
    row = bm_manifest_at(m, 1);
    assert_string_equal(row.path, "/dev/null");
    assert_string_equal(row.text, "");
    assert_string_equal(row.speaker, "");
    assert_int_equal(row.line, 3);
    assert_int_equal(row.speaker_number, 0);
    assert_int_equal(bm_manifest_at(m, 2).speaker_number, 1);
    bm_manifest_free(m);
}

static void assert_manifest_says(bm_status status, const char *text)
{
    bm_manifest *m = NULL;

    assert_int_equal(bm_manifest_read(&m, in_folder("m.jsonl"), "image"),
                     status);
    assert_null(m);
    if (strstr(bm_last_error(), text) == NULL)
        fail_msg("'%s' is not in: %s", text, bm_last_error());
}

static void test_all_faults_of_a_manifest_are_reported_at_once(void **state)
{
    static const char *const faults[] = {
        "m.jsonl: 9 problems:",
        "m.jsonl:1: not JSON: ",
        "m.jsonl:2: not a JSON object",
        "m.jsonl:3: \"id\" is missing",
        "m.jsonl:4: \"image\" is missing",
        "m.jsonl:5: \"text\" is not a text",
        "m.jsonl:6: \"id\" is empty or has control characters",
        "m.jsonl:7: \"id\" is empty or has control characters",
        "m.jsonl:8: not JSON: ",
        "m.jsonl:10: duplicate id \"a\", also on line 9",
    };

    (void)state;
    write_text("m.jsonl", "{\"id\": \"x\"\n"
                          "[1]\n"
                          "{\"image\": \"a.png\"}\n"
                          "{\"id\": \"x\", \"audio\": \"a.wav\"}\n"
                          "{\"id\": \"x\", \"image\": \"a\", \"text\": 5}\n"
                          "{\"id\": \"\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"x\\ny\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"\xff\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"a\", \"image\": \"a.png\"}\n"
                          "{\"id\": \"a\", \"image\": \"b.png\"}\n");
    FOR_EACH (k, faults)
        assert_manifest_says(BM_ERR_FORMAT, faults[k]);
}

static void test_only_some_of_many_faults_are_reported(void **state)
{
    char text[151] = "";

    (void)state;
    for (size_t i = 0; i < 50; i++)
        snprintf(text + 3 * i, 4, "{}\n");
    write_text("m.jsonl", text);
    assert_manifest_says(BM_ERR_FORMAT, "m.jsonl: 100 problems:");
    assert_manifest_says(BM_ERR_FORMAT, "m.jsonl:10: \"image\" is missing");
    assert_manifest_says(BM_ERR_FORMAT, "\n  ...");
    assert_null(strstr(bm_last_error(), "m.jsonl:11:"));
}

static void test_all_missing_files_are_reported_at_once(void **state)
{
    (void)state;
    write_text("there.png", "");
    write_text("m.jsonl", "{\"id\": \"a\", \"image\": \"gone.png\"}\n"
                          "{\"id\": \"b\", \"image\": \"there.png\"}\n"
                          "{\"id\": \"c\", \"image\": \"/no/where.png\"}\n");
    assert_manifest_says(BM_ERR_MISSING, "2 files cannot be opened");
    assert_manifest_says(BM_ERR_MISSING, "gone.png: No such file");
    assert_manifest_says(BM_ERR_MISSING, "m.jsonl:3: /no/where.png: No such");
    assert_null(strstr(bm_last_error(), "there.png"));
}

static void test_missing_and_empty_manifests_are_rejected(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    assert_int_equal(bm_manifest_read(&m, in_folder("no.jsonl"), "image"),
                     BM_ERR_MISSING);
    write_text("m.jsonl", "\n \n");
    assert_manifest_says(
        BM_ERR_FORMAT,
        "m.jsonl is empty; a manifest has one JSON object per line");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_manifest_has_one_row_per_line),
        cmocka_unit_test(test_all_faults_of_a_manifest_are_reported_at_once),
        cmocka_unit_test(test_only_some_of_many_faults_are_reported),
        cmocka_unit_test(test_all_missing_files_are_reported_at_once),
        cmocka_unit_test(test_missing_and_empty_manifests_are_rejected),
    };

    return cmocka_run_group_tests_name("manifest", tests, folder_make,
                                       folder_remove);
}
