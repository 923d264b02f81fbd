/* Data directories of Kaldi, and commands in place of files. */
#include "io/import/command_output.h"
#include "io/import/manifest/manifest.h"
#include "tests/io/import/kaldi_directory.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

static bm_status open_directory(bm_manifest **m, const char *kind, bool pipes)
{
    return bm_manifest_read(m, in_folder("data"), kind, 0, pipes);
}

static void test_a_data_directory_is_a_manifest(void **state)
{
    bm_manifest *m = NULL;
    bm_manifest_row row;

    (void)state;
    make_directory();
    write_text("data/x.ark", "u1  [ 1 ]\nu2  [ 2 ]\n");
    write_text("data/feats.scp", "u2 x.ark:13[0:0]\nu1\tx.ark:3\n");
    assert_ok(open_directory(&m, "feats", false));
    assert_int_equal(bm_manifest_size(m), 2);
    assert_string_equal(bm_manifest_path(m), in_folder("data/feats.scp"));
    row = bm_manifest_at(m, 0);
    assert_string_equal(row.id, "u2");
    assert_string_equal(row.path, in_folder("data/x.ark:13[0:0]"));
    assert_string_equal(row.text, "three");
    assert_true(row.has_text);
    assert_string_equal(row.speaker, "bob");
    row = bm_manifest_at(m, 1);
    assert_string_equal(row.text, "one two");
    assert_int_equal(row.line, 2);
    bm_manifest_free(m);
}

static void test_names_of_files_may_look_like_places(void **state)
{
    static const char *const names[] = {"10:30.wav", "x[1].wav", "a:b.ark:17",
                                        "10:30"};
    bm_manifest *m = NULL;

    (void)state;
    make_directory();
    unlink(in_folder("data/feats.scp"));
    FOR_EACH (k, names) {
        char line[40], path[40];

        snprintf(line, sizeof line, "u1 %s\n", names[k]);
        snprintf(path, sizeof path, "data/%s", names[k]);
        write_text("data/wav.scp", line);
        write_text(k == 2 ? "data/a:b.ark" : path, "");
        assert_ok(open_directory(&m, "audio", false));
        assert_string_equal(bm_manifest_at(m, 0).path, in_folder(path));
        bm_manifest_free(m);
    }
    unlink(in_folder("data/wav.scp"));
}

static void test_files_of_a_data_directory_may_be_compressed(void **state)
{
    bm_manifest *m = NULL;
    bm_manifest_row row;

    (void)state;
    make_directory();
    unlink(in_folder("data/text"));
    write_text("data/a.wav", "");
    write_gzip("data/wav.scp.gz", "u1 a.wav\n");
    write_gzip("data/text.gz", "u1 one\n");
    assert_ok(open_directory(&m, "audio", false));
    row = bm_manifest_at(m, 0);
    assert_string_equal(row.path, in_folder("data/a.wav"));
    assert_string_equal(row.text, "one");
    assert_string_equal(row.speaker, "ann"); /* of a plain file */
    bm_manifest_free(m);
    unlink(in_folder("data/wav.scp.gz"));
    unlink(in_folder("data/text.gz"));
}

static void test_segments_are_excerpts_of_recordings(void **state)
{
    bm_manifest *m = NULL;
    bm_manifest_row row;

    (void)state;
    make_directory();
    write_text("data/a.wav", "");
    write_text("data/wav.scp", "rec a.wav\n");
    write_text("data/segments", "u1 rec 0.5 2.25\nu2 rec 3 -1 1\n");
    assert_ok(open_directory(&m, "audio", false));
    assert_int_equal(bm_manifest_size(m), 2);
    row = bm_manifest_at(m, 0);
    assert_string_equal(row.path, in_folder("data/a.wav"));
    assert_true(row.start == 0.5 && row.duration == 1.75);
    assert_int_equal(row.channel, 0); /* not said */
    assert_string_equal(row.text, "one two");
    row = bm_manifest_at(m, 1);
    assert_true(row.start == 3 && row.duration == 0);
    assert_int_equal(row.channel, 2); /* Kaldi's 1 */
    bm_manifest_free(m);
}

static void test_faults_of_a_data_directory_name_file_and_line(void **state)
{
    static const struct {
        const char *file, *text, *message;
        bm_status status;
    } cases[] = {
        {"data/wav.scp", "rec a.wav\nu2 sph2pipe -f wav a.sph |\n",
         "data/wav.scp:2: a command, which is not run: sph2pipe -f wav a.sph "
         "|; "
         "write its output to a file and list that, or let pack or "
         "decode run the commands with --allow-pipes",
         BM_ERR_FORMAT},
        {"data/wav.scp", "rec a.wav\nrec b.wav\n",
         "data/wav.scp:2: duplicate key \"rec\", also on line 1",
         BM_ERR_FORMAT},
        {"data/wav.scp", "rec\n", "data/wav.scp:1: \"rec\" has no file",
         BM_ERR_FORMAT},
        {"data/wav.scp", "r\xff a.wav\n", "data/wav.scp:1: byte 2 is not UTF-8",
         BM_ERR_FORMAT},
        {"data/wav.scp", "rec none.wav\n", "none.wav: No such file",
         BM_ERR_MISSING},
        {"data/segments", "u1 other 0 1\n",
         "data/segments:1: recording \"other\" is not in ", BM_ERR_FORMAT},
        {"data/segments", "u1 rec 1 x\n",
         "data/segments:1: not \"SEQUENCE RECORDING START END\" in seconds",
         BM_ERR_FORMAT},
        {"data/segments", "u1 rec 0.3 0.1\n",
         "data/segments:1: END 0.1 is not after START 0.3", BM_ERR_FORMAT},
        {"data/wav.scp", "", "data/wav.scp is empty", BM_ERR_FORMAT},
        {"data/text", "u1 r\xff\n", "data: 1 problem:", BM_ERR_FORMAT},
        {"data/segments", "u1 rec 0 1 A\n",
         "data/segments:1: A is not a channel; Kaldi counts them from 0",
         BM_ERR_FORMAT},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_manifest *m = NULL;

        make_directory();
        write_text("data/a.wav", "");
        write_text("data/wav.scp", "rec a.wav\n");
        write_text(cases[i].file, cases[i].text);
        assert_int_equal(open_directory(&m, "audio", false), cases[i].status);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].message, bm_last_error());
    }
}

static void test_a_duplicate_key_does_not_hide_other_faults(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    make_directory();
    write_text("data/a.wav", "");
    write_text("data/wav.scp", "rec a.wav\n");
    write_text("data/text", "u1 one\nu1 two\n");
    write_text("data/segments", "u1 other 0 1\nu2 rec 0.3 0.1\n");
    assert_int_equal(open_directory(&m, "audio", false), BM_ERR_FORMAT);
    if (strstr(bm_last_error(), "data: 3 problems:") == NULL ||
        strstr(bm_last_error(), "data/text:2: duplicate key") == NULL ||
        strstr(bm_last_error(), "data/segments:1: recording") == NULL ||
        strstr(bm_last_error(), "data/segments:2: END 0.1") == NULL)
        fail_msg("%s", bm_last_error());
}

/* What is wrong with all lines is told once, with what to do. */
static void test_one_cause_is_one_line(void **state)
{
    static const struct {
        const char *list, *message, *once;
        bm_status status;
    } cases[] = {
        {"a x |\nb y |\nc z |\n", "data: 3 problems:\n  ", "--allow-pipes",
         BM_ERR_FORMAT},
        {"a x |\nb y |\nc z |\n", "\n  and 2 more", "not run: x |",
         BM_ERR_FORMAT},
        {"a no/a.wav\nb no/b.wav\n", "none of the 2 files of ",
         "data/wav.scp:1: no/a.wav: No such file or directory; a relative path "
         "is "
         "looked for in the working directory, where Kaldi ran, and then in "
         "the data directory",
         BM_ERR_MISSING},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_manifest *m = NULL;
        const char *found = NULL;

        make_directory();
        write_text("data/wav.scp", cases[i].list);
        assert_int_equal(open_directory(&m, "audio", false), cases[i].status);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].message, bm_last_error());
        found = strstr(bm_last_error(), cases[i].once);
        assert_non_null(found);
        assert_null(strstr(found + 1, cases[i].once));
    }
}

static void test_a_directory_without_a_list_says_what_is_missing(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    make_directory();
    unlink(in_folder("data/wav.scp"));
    assert_int_equal(open_directory(&m, "audio", false), BM_ERR_MISSING);
    assert_non_null(
        strstr(bm_last_error(), "data has no wav.scp; give a data"));
}

/* ---- commands ------------------------------------------------------------ */

static void test_commands_are_run_if_they_may_be(void **state)
{
    bm_importer *i = NULL;
    bm_item item;
    char list[1000];
    size_t frames = 0;

    (void)state;
    make_directory();
    write_tone("a.wav", 8000, 1, 8000);
    snprintf(list, sizeof list,
             "u1 cat '%s' |\nu2 exit 3 |\nu3 true |\nu4 cat '%s' | cat |\n"
             "u5 echo odd |\n",
             in_folder("a.wav"), in_folder("a.wav"));
    write_text("data/wav.scp", list);
    assert_ok(bm_importer_open(
        &i, "audio", NULL,
        &(bm_import_source){.path = in_folder("data"), .pipes = true}));
    item = next_item(i);
    assert_null(item.problem);
    assert_string_equal(item.text, "one two");
    frames = item.frames;
    assert_int_equal(frames, 98);
    assert_string_equal(next_item(i).problem->text, "exit code 3 of: exit 3");
    assert_string_equal(next_item(i).problem->text, "no output of: true");
    assert_int_equal(next_item(i).frames, frames);
    item = next_item(i);
    assert_non_null(item.problem);
    assert_non_null(
        strstr(item.problem->text,
               "the output of 'echo odd': a text, not a recording"));
    assert_null(next_item(i).id);
    bm_importer_close(i);
}

/* All other rows would fail likewise, each after its own attempt. */
static void test_a_command_without_its_program_ends_packing(void **state)
{
    bm_command_output out = {0};
    bm_problem problem = {0};

    (void)state;
    assert_int_equal(bm_command_output_read(
                         &out, "no-such-program -x 2>/dev/null |", &problem),
                     BM_ERR_MISSING);
    assert_non_null(strstr(bm_last_error(),
                           "a program was not found (exit code 127 of: "
                           "no-such-program -x 2>/dev/null); install it"));
    assert_string_equal(problem.text, "");
    bm_command_output_remove(&out);
}

/* So that none stays there if the program is killed. */
static void test_outputs_of_commands_have_no_names(void **state)
{
    bm_command_output out = {0};
    bm_problem problem = {0};
    char *text = NULL;
    size_t n = 0;

    (void)state;
    assert_int_equal(mkdir(in_folder("outputs"), 0700), 0);
    assert_int_equal(setenv("TMPDIR", in_folder("outputs"), 1), 0);
    assert_ok(bm_command_output_read(&out, "echo one |", &problem));
    assert_string_equal(problem.text, "");
    for (int k = 0; k < 2; k++) { /* it can be opened again and again */
        text = slurp(out.path, &n);
        assert_string_equal(text, "one\n");
        free(text);
    }
    assert_int_equal(rmdir(in_folder("outputs")), 0); /* it is empty */
    unsetenv("TMPDIR");
    bm_command_output_remove(&out);
}

static void test_a_broken_segment_is_one_message(void **state)
{
    outcome o;

    (void)state;
    make_directory();
    write_text("data/wav.scp", "rec a.wav\n");
    write_text("data/segments", "u1 rec 0 1\nu2 rec x 1\n");
    o = BMUF("pack", "--kaldi", "data", "--out", "m1");
    assert_code(o, 65);
    assert_says(o.err, "data/segments:2: not \"SEQUENCE RECORDING START END\"");
    assert_null(strstr(o.err, "not in segments"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_data_directory_is_a_manifest),
        cmocka_unit_test(test_names_of_files_may_look_like_places),
        cmocka_unit_test(test_files_of_a_data_directory_may_be_compressed),
        cmocka_unit_test(test_segments_are_excerpts_of_recordings),
        cmocka_unit_test(test_faults_of_a_data_directory_name_file_and_line),
        cmocka_unit_test(test_a_duplicate_key_does_not_hide_other_faults),
        cmocka_unit_test(test_one_cause_is_one_line),
        cmocka_unit_test(test_a_directory_without_a_list_says_what_is_missing),
        cmocka_unit_test(test_commands_are_run_if_they_may_be),
        cmocka_unit_test(test_a_command_without_its_program_ends_packing),
        cmocka_unit_test(test_outputs_of_commands_have_no_names),
        cmocka_unit_test(test_a_broken_segment_is_one_message),
    };

    return cmocka_run_group_tests_name("kaldi", tests, folder_make,
                                       folder_remove);
}
