/* Which files of a folder are decoded. */
#include "cli/decode/folder_walk.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <string.h>

/* The walk finds these files and no other. */
static void assert_walk(bm_input_kind kind, const char *const *names, size_t n)
{
    bm_paths found = {0};

    assert_ok(bm_folder_walk(&found, in_folder("."), kind));
    assert_int_equal(found.n, n);
    for (size_t i = 0; i < n; i++)
        assert_string_equal(strrchr(found.path[i], '/') + 1, names[i]);
    bm_paths_free(&found);
}

static void test_files_of_features_have_the_endings_that_are_read(void **state)
{
    static const char *const names[] = {"a.npy", "b.npz", "c.mfc",   "d.htk",
                                        "e.plp", "f.fbk", "g.fbank", "h.NPY"};

    (void)state;
    FOR_EACH (i, names)
        write_text(names[i], "");
    write_text("notes.txt", "no features\n");
    write_text("raw.ark", "");
    assert_walk(BM_FEATURE_FILES, names, sizeof names / sizeof *names);
}

static void test_images_are_found_by_first_bytes_or_endings(void **state)
{
    static const char *const names[] = {"bits", "grey", "yy.JPEG", "zz.pnm"};

    (void)state;
    write_text("bits", "P1\n3 1\n1 0 1\n");
    write_text("grey", "P5\n2 2\n255\nabcd");
    write_text("list", "P1\nP2\n");
    write_text("yy.JPEG", "damaged");
    write_text("zz.pnm", "damaged");
    assert_walk(BM_IMAGES, names, sizeof names / sizeof *names);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_features_have_the_endings_that_are_read),
        cmocka_unit_test(test_images_are_found_by_first_bytes_or_endings),
    };

    return cmocka_run_group_tests_name("folder_walk", tests, folder_make,
                                       folder_remove);
}
