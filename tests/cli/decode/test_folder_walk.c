/* Which files of a folder are decoded. */
#include "cli/decode/folder_walk.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* Links lead on, but not in a circle; one that leads nowhere is found, to be
 * reported. */
static void test_links_are_followed(void **state)
{
    static const char *const paths[] = {"links/a/x.wav", "links/b/x.wav",
                                        "links/gone.wav", "links/here.wav"};
    bm_paths found = {0};

    (void)state;
    assert_int_equal(mkdir(in_folder("links"), 0777), 0);
    assert_int_equal(mkdir(in_folder("links/a"), 0777), 0);
    write_text("links/a/x.wav", "");
    assert_int_equal(symlink("a", in_folder("links/b")), 0);
    assert_int_equal(symlink("..", in_folder("links/a/up")), 0);
    assert_int_equal(symlink("../links", in_folder("links/a/self")), 0);
    assert_int_equal(symlink("a/x.wav", in_folder("links/here.wav")), 0);
    assert_int_equal(symlink("nowhere.wav", in_folder("links/gone.wav")), 0);
    assert_int_equal(symlink("nowhere", in_folder("links/notes.txt")), 0);
    assert_ok(bm_folder_walk(&found, in_folder("links/"), BM_RECORDINGS));
    assert_int_equal(found.n, sizeof paths / sizeof *paths);
    FOR_EACH (i, paths)
        assert_string_equal(found.path[i], in_folder(paths[i]));
    bm_paths_free(&found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_of_features_have_the_endings_that_are_read),
        cmocka_unit_test(test_images_are_found_by_first_bytes_or_endings),
        cmocka_unit_test(test_links_are_followed),
    };

    return cmocka_run_group_tests_name("folder_walk", tests, folder_make,
                                       folder_remove);
}
