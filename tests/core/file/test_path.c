/*
 * Folders and names of paths, and files and folders in TMPDIR.
 */
#include "core/file/file.h"
#include "core/file/path.h"
#include "core/file/temporary.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- paths --------------------------------------------------------------- */

static void test_a_path_has_a_folder(void **_)
{
    static const struct {
        const char *path, *folder;
        size_t length;
    } rows[] = {
        {"name", ".", 0},       {"dir/name", "dir", 4}, {"/name", "/", 1},
        {"/", "/", 1},          {"dir/", "dir", 4},     {"", ".", 0},
        {"a/b/name", "a/b", 4}, {"a//name", "a/", 3},   {"./name", ".", 2},
    };
    char out[PATH_MAX];

    (void)_;
    FOR_EACH (i, rows) {
        assert_int_equal(bm_path_folder_length(rows[i].path), rows[i].length);
        assert_ok(bm_path_folder(out, rows[i].path));
        assert_string_equal(out, rows[i].folder);
    }
}

static void test_paths_are_joined_with_one_slash(void **_)
{
    static const struct {
        const char *folder, *name, *path;
    } rows[] = {
        {"dir", "name", "dir/name"}, {"dir/", "name", "dir/name"},
        {"/", "name", "/name"},      {".", "name", "./name"},
        {"a/b", "c/d", "a/b/c/d"},
    };
    char out[PATH_MAX];

    (void)_;
    FOR_EACH (i, rows) {
        assert_ok(bm_path_join(out, rows[i].folder, rows[i].name));
        assert_string_equal(out, rows[i].path);
    }
}

/* PATH_MAX counts the '\0'. */
static void test_a_path_that_is_too_long_is_refused(void **_)
{
    char longest[PATH_MAX + 2], out[PATH_MAX];

    (void)_;
    memset(longest, 'd', sizeof longest);
    longest[PATH_MAX - 3] = '\0';
    assert_ok(bm_path_join(out, longest, "n"));
    assert_int_equal(strlen(out), PATH_MAX - 1);
    assert_int_equal(bm_path_join(out, longest, "nn"), BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_message(), "longer than 4095 bytes"));
    longest[PATH_MAX - 3] = 'd';
    longest[PATH_MAX + 1] = '\0';
    assert_ok(bm_path_folder(out, longest)); /* has none */
    longest[PATH_MAX - 1] = '/';
    assert_ok(bm_path_folder(out, longest));
    assert_int_equal(strlen(out), PATH_MAX - 1);
    longest[PATH_MAX] = '/';
    assert_int_equal(bm_path_folder(out, longest), BM_ERR_MISSING);
}

/* ---- TMPDIR -------------------------------------------------------------- */

static void test_temporary_files_are_in_tmpdir(void **_)
{
    char path[PATH_MAX], begin[PATH_MAX];
    struct stat info;
    int fd = -1;

    (void)_;
    unsetenv("TMPDIR");
    assert_string_equal(bm_temporary_folder(), "/tmp");
    setenv("TMPDIR", "", 1);
    assert_string_equal(bm_temporary_folder(), "/tmp");
    setenv("TMPDIR", in_folder("own"), 1);
    assert_int_equal(bm_temporary_folder_make(path, "test"), BM_ERR_CREATE);
    assert_string_equal(path, "");
    assert_int_equal(bm_temporary_file(&fd), BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_message(), "set TMPDIR to another folder"));
    assert_ok(bm_file_make_directory(in_folder("own")));
    assert_ok(bm_temporary_folder_make(path, "test"));
    assert_ok(bm_path_join(begin, in_folder("own"), "bmuf-test-"));
    assert_int_equal(strncmp(path, begin, strlen(begin)), 0);
    assert_true(bm_is_folder(path));
    assert_int_equal(rmdir(path), 0);
    assert_ok(bm_temporary_file(&fd));
    assert_int_equal(rmdir(in_folder("own")), 0); /* its file has no name */
    assert_int_equal(fstat(fd, &info), 0);
    assert_true(S_ISREG(info.st_mode) && info.st_size == 0);
    assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
    assert_int_equal(write(fd, "x", 1), 1);
    close(fd);
    unsetenv("TMPDIR");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_path_has_a_folder),
        cmocka_unit_test(test_paths_are_joined_with_one_slash),
        cmocka_unit_test(test_a_path_that_is_too_long_is_refused),
        cmocka_unit_test(test_temporary_files_are_in_tmpdir),
    };
    return cmocka_run_group_tests_name("path", tests, folder_make,
                                       folder_remove);
}
