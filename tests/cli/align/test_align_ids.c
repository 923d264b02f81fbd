/* bmuf align: sequences whose ids are not UTF-8, as names of files may be. */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { WIDTH = 12, HEIGHT = 8 };

/* lines/NAME.pgm, half of it black, and its text. */
static void write_line(const char *name, const char *text)
{
    char image[64] = "", path[64];
    size_t n = (size_t)sprintf(image, "P5 %d %d 255\n", WIDTH, HEIGHT);
    unsigned char bytes[sizeof image + WIDTH * HEIGHT] = {0};

    memcpy(bytes, image, n);
    memset(bytes + n + WIDTH * HEIGHT / 2, 255, WIDTH * HEIGHT / 2);
    snprintf(path, sizeof path, "lines/%s.pgm", name);
    write_bytes(path, bytes, n + WIDTH * HEIGHT);
    snprintf(path, sizeof path, "lines/%s.gt.txt", name);
    write_text(path, text);
}

/* The first is aligned, the text of the second is too long. */
static void test_json_has_ids_that_are_not_utf8(void **state)
{
    char lines[3][500] = {"", "", ""};
    outcome o;
    json_t *good = NULL, *bad = NULL;

    (void)state;
    assert_int_equal(mkdir(in_folder("lines"), 0777), 0);
    write_line("caf\xe9-0", "a");
    write_line("caf\xe9-1", "abababababababababab");
    write_line("tea-2", "a");
    assert_code(BMUF("pack", "--images", "lines", "--out", "set", "--set",
                     "features.height=8"),
                0);
    write_text("tiny.ini", "[data]\ntrain = set\n[model]\n"
                           "net = linear\n[train]\nepochs = 1\n");
    assert_code(BMUF("train", "tiny.ini", "--out", "run"), 0);
    o = BMUF("align", "run", "set", "--format", "json");
    assert_code(o, 0);
    assert_int_equal(count_of(o.out, "\n"), 3);
    sscanf(o.out, "%499[^\n] %499[^\n] %499[^\n]", lines[0], lines[1],
           lines[2]);
    good = parse_json(lines[0]);
    bad = parse_json(lines[1]);
    assert_string_equal(text(good, "id"), "caf\\xe9-0");
    assert_non_null(json_object_get(good, "score"));
    assert_string_equal(text(bad, "id"), "caf\\xe9-1");
    assert_string_equal(text(bad, "error"), "infeasible");
    assert_says(lines[2], "\"id\":\"tea-2\"");
    json_decref(good);
    json_decref(bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_json_has_ids_that_are_not_utf8),
    };
    return cmocka_run_group_tests_name("align_ids", tests, folder_make,
                                       folder_remove);
}
