/* Files that appear whole, and kinds of files. */
#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- files ----------------------------------------------------------------
 */

static void check_text(const char *path, const char *expected)
{
    char *text = NULL;
    size_t n = 0;

    assert_ok(bm_file_read(path, 1000, &text, &n));
    assert_int_equal(n, strlen(expected));
    assert_string_equal(text, expected);
    free(text);
}

static void test_files_are_written_and_read_back(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note");

    (void)state;
    assert_ok(bm_file_write(path, "one", 3));
    check_text(path, "one");
    assert_ok(bm_file_write(path, "other", 5));
    check_text(path, "other");
    assert_ok(bm_file_write(path, "", 0));
    check_text(path, "");
    assert_int_equal(scratch_count(&s, false), 1);
    scratch_close(&s);
}

static void test_a_failed_write_keeps_the_old_file(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note");
    struct rlimit before, small;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    char *much = calloc(1, 1 << 16);
    bm_status status = BM_OK;

    (void)state;
    assert_ok(bm_file_write(path, "old", 3));
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){1 << 12, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    status = bm_file_write(path, much, 1 << 16);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    free(much);
    assert_int_equal(status, BM_ERR_IO);
    check_text(path, "old");
    assert_int_equal(scratch_count(&s, false), 1);

    assert_int_equal(bm_file_write(scratch_file(&s, "no/note"), "x", 1),
                     BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), s.path));
    assert_non_null(strstr(bm_last_error(), "/no/note cannot be created"));
    assert_non_null(strstr(bm_last_error(), "there is no directory"));
    assert_int_equal(bm_file_write(s.path, "x", 1), BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), "is a directory"));
    assert_int_equal(bm_file_write("/dev/null", "x", 1), BM_ERR_CREATE);
    assert_int_equal(bm_file_write("", "x", 1), BM_ERR_CREATE);
    check_text(path, "old");
    scratch_close(&s);
}

/* Two writers of one file, and links with names that a writer might choose. */
static void test_temporary_files_are_new_and_belong_to_one_writer(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note"), *other = NULL;
    bm_file_replacement one, two;
    const char *name = NULL;
    struct stat info;

    (void)state;
    other = scratch_file(&s, "other");
    spill(other, "mine", 4);
    assert_int_equal(symlink(other, scratch_file(&s, ".note.tmp")), 0);
    assert_ok(bm_file_replace_begin(&one, path));
    assert_ok(bm_file_replace_begin(&two, path));
    assert_string_not_equal(one.temporary, two.temporary);
    assert_int_equal(lstat(one.temporary, &info), 0);
    assert_true(S_ISREG(info.st_mode) && info.st_nlink == 1);
    name = strrchr(one.temporary, '/') + 1;
    assert_true(bm_file_is_temporary(name, "no", "te"));
    assert_false(bm_file_is_temporary(name, "note", "x"));
    assert_false(bm_file_is_temporary(name, "x", "note"));
    assert_false(bm_file_is_temporary(".note.tmp", "", ""));
    assert_false(bm_file_is_temporary("note", "", ""));
    assert_ok(bm_file_replace_write(&one, "one", 3));
    assert_ok(bm_file_replace_stream(&two));
    assert_true(fputs("two", two.stream) >= 0);
    assert_ok(bm_file_try(path)); /* removes no file but its own */
    assert_ok(bm_file_replace_commit(&one, true));
    bm_file_replace_abort(&one);
    check_text(path, "one");
    assert_ok(bm_file_replace_commit(&two, false));
    check_text(path, "two");
    assert_ok(bm_file_replace_begin(&one, path));
    bm_file_replace_abort(&one);
    check_text(path, "two");
    check_text(other, "mine");
    assert_int_equal(scratch_count(&s, false), 3);
    spill(scratch_file(&s, ".01234567.note.tmp"), "x", 1);
    spill(scratch_file(&s, ".01234567.mote.tmp"), "x", 1);
    assert_ok(bm_file_remove_temporaries(s.path, "no", "te"));
    assert_int_equal(scratch_count(&s, false), 4);
    assert_ok(bm_file_remove_temporaries(s.path, "", ""));
    assert_int_equal(scratch_count(&s, false), 3);
    scratch_close(&s);
}

/* A pipe without a writer: opening it would wait for one. */
static void test_only_regular_files_are_read(void **state)
{
    static const char *const kind[] = {"a pipe", "a socket", "a device",
                                       "a directory"};
    scratch s = scratch_open();
    const char *odd[] = {scratch_file(&s, "pipe"), scratch_file(&s, "socket"),
                         "/dev/zero", s.path};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), fd = -1;
    char *text = NULL, words[100];
    size_t n = 0;

    (void)state;
    assert_int_equal(mkfifo(odd[0], 0600), 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", odd[1]);
    assert_int_equal(
        bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    FOR_EACH (i, odd) {
        snprintf(words, sizeof words, "%s is %s, not a regular file", odd[i],
                 kind[i]);
        assert_int_equal(bm_file_open_regular(&fd, odd[i]), BM_ERR_MISSING);
        assert_string_equal(bm_last_message(), words);
        assert_int_equal(bm_file_read(odd[i], 10, &text, &n), BM_ERR_MISSING);
    }
    assert_int_equal(fd, -1);
    assert_null(text);
    close(listener);
    scratch_close(&s);
}

static void test_reading_fails_with_the_right_status(void **state)
{
    scratch s = scratch_open();
    const char *path = scratch_file(&s, "note");
    char *text = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(bm_file_read(path, 10, &text, &n), BM_ERR_MISSING);
    spill(path, "0123456789", 10);
    assert_int_equal(bm_file_read(path, 9, &text, &n), BM_ERR_FORMAT);
    assert_null(text);
    assert_ok(bm_file_read(path, 10, &text, &n));
    free(text);
    scratch_close(&s);
}

static void test_directories_are_made_with_their_parents(void **state)
{
    scratch s = scratch_open();
    char deep[6000];

    (void)state;
    assert_ok(bm_file_make_directory(scratch_file(&s, "a/b//c/")));
    assert_ok(bm_file_make_directory(scratch_file(&s, "a/b/c")));
    assert_true(bm_is_folder(scratch_file(&s, "a/b/c")));
    spill(scratch_file(&s, "file"), "", 0);
    assert_int_equal(bm_file_make_directory(scratch_file(&s, "file")),
                     BM_ERR_CREATE);
    assert_int_equal(bm_file_make_directory(scratch_file(&s, "file/d")),
                     BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), "Not a directory"));
    assert_int_equal(symlink("nowhere", scratch_file(&s, "link")), 0);
    assert_int_equal(bm_file_make_directory(scratch_file(&s, "link")),
                     BM_ERR_CREATE);
    assert_non_null(
        strstr(bm_last_error(), "link is a link, but not to a folder"));
    assert_int_equal(bm_file_make_directory(""), BM_ERR_CREATE);
    assert_non_null(strstr(bm_last_error(), "the name of the folder is empty"));
    memset(deep, 'd', sizeof deep);
    deep[sizeof deep - 1] = '\0';
    assert_int_equal(bm_file_make_directory(deep), BM_ERR_CREATE);
    assert_false(bm_is_folder(scratch_file(&s, "file")));
    assert_false(bm_is_folder(scratch_file(&s, "link")));
    assert_int_equal(symlink("a", scratch_file(&s, "good")), 0);
    assert_true(bm_is_folder(scratch_file(&s, "good")));
    rmdir(scratch_file(&s, "a/b/c"));
    rmdir(scratch_file(&s, "a/b"));
    scratch_close(&s);
}

/* ---- kinds of files ------------------------------------------------------ */

/* The kinds of files with these n first bytes, and what to do with them. */
static void assert_kind(const char *bytes, size_t n, const char *binary,
                        const char *text, const char *use)
{
    char file[512] = {0};
    const char *kind = NULL;

    memcpy(file, bytes, n);
    write_bytes("kind", file, binary != NULL ? sizeof file : n);
    kind = bm_file_kind(in_folder("kind"));
    if (binary == NULL)
        assert_null(kind);
    else
        assert_string_equal(kind, binary);
    if (binary == NULL)
        kind = bm_text_kind(in_folder("kind"));
    assert_non_null(kind);
    if (text != NULL)
        assert_string_equal(kind, text);
    assert_non_null(strstr(bm_file_kind_use(kind), use));
}

static void test_kinds_of_files_are_told_by_their_first_bytes(void **state)
{
#define BYTES(text) text, sizeof text - 1
    static const struct {
        const char *bytes;
        size_t n;
        const char *binary, *text, *use;
    } cases[] = {
        {BYTES("\x89PNG\r\n\x1a\n"), "a PNG image", NULL, "--images"},
        {BYTES("\x89HDF\r\n\x1a\n"), "an HDF5 file", NULL, "bmuf info"},
        {BYTES("II+\0\x8\0\0\0"), "a TIFF image", NULL, "--images"},
        {BYTES("P4\n10 2\n\x80\x40"), "a PBM image", NULL, "--images"},
        {BYTES("P5 # a comment\n37 11 255\nxyz"), "a PGM image", NULL,
         "--images"},
        {BYTES("P6 37 11 255\n\x1\x2"), "a PPM image", NULL, "--images"},
        {BYTES("RIFF\x24\0\0\0WAVEfmt "), "a WAV recording", NULL, "--audio"},
        {BYTES("fLaC\0"), "a FLAC recording", NULL, "--audio"},
        {BYTES("ID3\4\0"), "an MP3 recording", NULL, "--audio"},
        {BYTES("\xff\xfb\x90\x64\0"), "an MP3 recording", NULL, "--audio"},
        {BYTES("\xff\xf3\x88\xc4\0"), "an MP3 recording", NULL, "--audio"},
        {BYTES("\xff\xfe{\0\"\0"), "a text in UTF-16", NULL, "iconv"},
        {BYTES("\xff\xfb\xf0\x64\0"), "a binary file", NULL, "text"},
        {BYTES("FORM\0\0\1\0AIFF"), "an AIFF recording", NULL, "--audio"},
        {BYTES("\x93NUMPY\1\0"), "a NumPy array", NULL, "--features"},
        {BYTES("PK\3\4....................\0\0\5\0\0\0a.npy"),
         "a NumPy archive (.npz)", NULL, "dump"},
        {BYTES("PK\3\4....................\0\0\5\0\0\0a.txt"), "a zip archive",
         NULL, "unpack"},
        {BYTES("\x40\0\0\0\0\0\0\0{\"__metadata__\""), "a safetensors file",
         NULL, "bmuf eval"},
        {BYTES("{\0\0\0\0\0\0\0{\"__metadata__\""), "a safetensors file", NULL,
         "bmuf eval"},
        {BYTES("\x1f\x8b\x08"), "a gzip file", NULL, "unpack"},
        {BYTES("u1 \0BFM "), "a Kaldi archive", NULL, "manifest"},
        {BYTES("\1\2\3\0"), "a binary file", NULL, "text"},
        {BYTES("\x8a\x9c\x10%\xff\x41"), "a binary file", NULL, "text"},
        {BYTES("\xef\xbb\xbf\n{\"id\": 1}\n"), NULL, "JSON", "manifest"},
        {BYTES("[{\"id\": 1}]\n"), NULL, "a JSON list", "brackets"},
        {BYTES("[\n{\"id\": 1}\n]\n"), NULL, "a JSON list", "brackets"},
        {BYTES("[data\ntrain = x\n"), NULL, "a configuration", "bmuf train"},
        {BYTES("bmuf-lm\n\1\0"), "a compact language model", NULL, "bmuf lm"},
        {BYTES("# mine\n\n[data]\nx = 1\n"), NULL, "a configuration",
         "bmuf train"},
        {BYTES("data.train = x\n"), NULL, "a configuration", "bmuf train"},
        {BYTES("u1 /wav/u1.wav\nu2 /wav/u2.wav\n"), NULL, "a Kaldi scp file",
         "manifest"},
        {BYTES("u1 raw.ark:12\n"), NULL, "a Kaldi scp file", "manifest"},
        {BYTES("u1 sph2pipe u1.sph |\n"), NULL, "a Kaldi scp file", "manifest"},
        {BYTES("u1 one or two\n"), NULL, "a text", "manifest"},
        {BYTES("x"), NULL, "a text", "manifest"},
        {BYTES("P1\nP2\n"), NULL, "a text", "manifest"},
        {BYTES("P2 640 480 of P2\n"), NULL, "a text", "manifest"},
        {BYTES("P5 640\n"), NULL, "a text", "manifest"},
    };
#undef BYTES
    static const char *const text_maps[][2] = {
        {"P1\n10 2\n1000000001 00000 00110", "a PBM image"},
        {"P2 # a comment\n3\n#another\n1 255\n0 1\n2\n", "a PGM image"},
        {"P3 1 1 255 0 127 255", "a PPM image"},
    };

    (void)state;
    FOR_EACH (k, cases)
        assert_kind(cases[k].bytes, cases[k].n, cases[k].binary, cases[k].text,
                    cases[k].use);
    FOR_EACH (k, text_maps) {
        write_text("kind", text_maps[k][0]);
        assert_string_equal(bm_file_kind(in_folder("kind")), text_maps[k][1]);
    }
    write_text("kind", "");
    assert_null(bm_file_kind(in_folder("kind")));
    assert_null(bm_text_kind(in_folder("kind")));
    assert_null(bm_file_kind(in_folder("none")));
    assert_null(bm_file_kind(in_folder("."))); /* and a pipe does not block */
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_null(bm_file_kind(in_folder("pipe")));
    assert_null(bm_text_kind(in_folder("pipe")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_written_and_read_back),
        cmocka_unit_test(test_a_failed_write_keeps_the_old_file),
        cmocka_unit_test(test_temporary_files_are_new_and_belong_to_one_writer),
        cmocka_unit_test(test_only_regular_files_are_read),
        cmocka_unit_test(test_reading_fails_with_the_right_status),
        cmocka_unit_test(test_directories_are_made_with_their_parents),
        cmocka_unit_test(test_kinds_of_files_are_told_by_their_first_bytes),
    };
    return cmocka_run_group_tests_name("file", tests, folder_make,
                                       folder_remove);
}
