/*
 * What Kaldi writes: matrices of every form, data directories, commands in place
 * of files, classes of frames, symbol tables. Files are made here from the
 * published layout, byte by byte.
 */
#include "io/import/command_output.h"
#include "io/import/files/feature_files.h"
#include "io/import/frame_classes.h"
#include "io/import/manifest/manifest.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

/* An archive with one object, of the key "utt1", which takes five bytes. */
typedef struct object {
    const char *bytes;
    size_t size, rows, columns;
    float x[12];
} object;

#define BYTES(text) text, sizeof text - 1

static const object objects[] = {
    {BYTES("utt1 \0BFM \4\2\0\0\0\4\3\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40"
           "\0\0\0\xbf\0\0\x80\x3e\0\0\x80\x40"),
     2,
     3,
     {1, 2, 3, -.5f, .25f, 4}},
    {BYTES("utt1 \0BDM \4\1\0\0\0\4\2\0\0\0\0\0\0\0\0\0\xf0\x3f\0\0\0\0\0\0\xe0"
           "\xbf"),
     1,
     2,
     {1, -.5f}},
    {BYTES("utt1 \0BFV \4\3\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40"),
     1,
     3,
     {1, 2, 3}},
    {BYTES("utt1 \0BDV \4\1\0\0\0\0\0\0\0\0\0\xf0\x3f"), 1, 1, {1}},
    {BYTES("utt1 \0BCM2 \0\0\x80\xbf\0\0\xa0\x40\2\0\0\0\3\0\0\0\0\0\xff\xff\0"
           "\x80\1\0\2\0\3\0"),
     2,
     3,
     {-1, 4, 1.5000381f, -.9999237f, -.9998474f, -.9997711f}},
    {BYTES("utt1 \0BCM3 \0\0\x80\xbf\0\0\xa0\x40\2\0\0\0\3\0\0\0\0\xff\x80\1\2"
           "\3"),
     2,
     3,
     {-1, 4, 1.5098039f, -.9803922f, -.9607843f, -.9411765f}},
    {BYTES("utt1 \0BCM \0\0\0\0\0\xff\x7f\x47\4\0\0\0\2\0\0\0\0\0\x64\0\x2c\1"
           "\xe8\3\0\0\xe8\3\xd0\7\xa0\x0f\0\x40\xc0\xff\x20\x80\xe0\1"),
     4,
     2,
     {0, 500, 100, 1500, 300, 3015.873f, 1000, 15.625f}},
    {BYTES("utt1  [\n  1 2 3 \n  -0.5 2.5e-1 4 ]\n"),
     2,
     3,
     {1, 2, 3, -.5f, .25f, 4}},
    {BYTES("utt1  [ 1 -0.5 ]\n"), 1, 2, {1, -.5f}},
};

static bm_problem read_place(const char *place, bm_frames *x)
{
    bm_problem problem = {0};

    assert_ok(bm_feature_file_read(in_folder(place), 13, x, &problem));
    return problem;
}

static void test_matrices_of_every_form_are_read(void **state)
{
    (void)state;
    FOR_EACH (i, objects) {
        const object *o = &objects[i];
        bm_frames x = {0};

        write_bytes("x.ark", o->bytes, o->size);
        assert_string_equal(read_place("x.ark:5", &x).text, "");
        assert_int_equal(x.n, o->rows);
        assert_int_equal(x.dim, o->columns);
        for (size_t k = 0; k < x.n * x.dim; k++)
            assert_float_equal(x.x[k], o->x[k], 2e-7 * (1 + o->x[k]));
        write_bytes("x.mat", o->bytes + 5, o->size - 5); /* without a key */
        assert_string_equal(read_place("x.mat", &x).text, "");
        assert_int_equal(x.n, o->rows);
        bm_frames_free(&x);
    }
}

/* Truncated anywhere, no object is read, and one byte that differs never crashes
 * a reader. The problem says where. */
static void test_damaged_matrices_are_problems(void **state)
{
    (void)state;
    FOR_EACH (i, objects) {
        const object *o = &objects[i];
        char *copy = malloc(o->size);
        bm_problem problem;

        assert_non_null(copy);
        memcpy(copy, o->bytes, o->size);
        for (size_t k = 6; k < o->size - 2; k++) {
            bm_frames x = {0};

            write_bytes("x.ark", o->bytes, k);
            problem = read_place("x.ark:5", &x);
            if (strstr(problem.text, "x.ark, byte ") == NULL)
                fail_msg("object %zu, %zu bytes: '%s'", i, k, problem.text);
            copy[k] = (char)~copy[k];
            write_bytes("x.ark", copy, o->size);
            copy[k] = (char)~copy[k];
            (void)read_place("x.ark:5", &x);
            bm_frames_free(&x);
        }
        free(copy);
    }
}

static void test_wrong_places_are_problems(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *place, *message;
    } cases[] = {
        {BYTES("u \0BFM \4\xff\xff\xff\x7f\4\xff\xff\xff\x7f"), "x.ark:2",
         "byte 17: the size of the matrix is impossible"},
        {BYTES("u \0BFM \4\xff\xff\xff\xff\4\2\0\0\0"), "x.ark:2",
         "the size of the matrix is impossible"},
        {BYTES("u \0BFM \4\0\0\0\0\4\0\0\0\0"), "x.ark:2", "an empty matrix"},
        {BYTES("u \0B\4\1\0\0\0\4\7\0\0\0"), "x.ark:2",
         "byte 3: no matrix or vector of floats begins here"},
        {BYTES("u \0BFM \4"), "x.ark:9999",
         "byte 9999: the file is shorter; the list and the archive do not "
         "belong together"},
        {BYTES("u  [ 1 2\n 3 ]\n"), "x.ark:2", "rows of different lengths"},
        {BYTES("u  [ 1 x ]\n"), "x.ark:2", "a word that is not a number"},
        {BYTES("u  [ ]\n"), "x.ark:2", "an empty matrix"},
        {BYTES("u  [ 1 nan ]\n"), "x.ark:2",
         "x.ark:2: feature 1 of frame 0, both counted from 0, is NaN; make"},
        {BYTES("\x1f\x8b\x08\0"), "x.ark",
         "x.ark is a gzip file; only lists may be compressed: unpack it"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[5:9]", "outside the matrix of 1 row"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[:,1:2]", "outside the matrix"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[1:0]", "not a place such as"},
        {BYTES("u  [ 1 2 ]\n"), "x.ark:2[1]", "not a place such as"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_frames x = {0};
        bm_problem problem;

        write_bytes("x.ark", cases[i].bytes, cases[i].size);
        problem = read_place(cases[i].place, &x);
        if (strstr(problem.text, cases[i].message) == NULL)
            fail_msg("%s: '%s'", cases[i].message, problem.text);
        bm_frames_free(&x);
    }
}

static void test_ranges_take_a_part_of_a_matrix(void **state)
{
    static const struct {
        const char *range;
        size_t rows, columns;
        float first, last;
    } cases[] = {
        {"[0:1]", 2, 3, 11, 23},     {"[1:3]", 3, 3, 21, 43},
        {"[2:6]", 2, 3, 31, 43}, /* three rows that are not there */
        {"[1:2,1:2]", 2, 2, 22, 33}, {"[:,2:2]", 4, 1, 13, 43},
        {"[3:3,:]", 1, 3, 41, 43},
    };

    (void)state;
    write_text("x.ark", "u  [\n 11 12 13\n 21 22 23\n 31 32 33\n 41 42 43 ]\n");
    FOR_EACH (i, cases) {
        char place[64];
        bm_frames x = {0};

        snprintf(place, sizeof place, "x.ark:2%s", cases[i].range);
        assert_string_equal(read_place(place, &x).text, "");
        assert_int_equal(x.n, cases[i].rows);
        assert_int_equal(x.dim, cases[i].columns);
        assert_true(x.x[0] == cases[i].first);
        assert_true(x.x[x.n * x.dim - 1] == cases[i].last);
        bm_frames_free(&x);
    }
}

/* ---- data directories ---------------------------------------------------- */

static void make_directory(void)
{
    (void)mkdir(in_folder("data"), 0777);
    unlink(in_folder("data/segments"));
    unlink(in_folder("data/feats.scp"));
    write_text("data/text", "u1 one two\nu2 three\n");
    write_text("data/utt2spk", "u1 ann\nu2 bob\n");
}

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

/* ---- classes of frames --------------------------------------------------- */

/* The classes of "u1" in a file. */
static void assert_classes(const char *path, const int32_t *expected, size_t n)
{
    bm_frame_classes *c = NULL;
    const int32_t *found = NULL;
    size_t got = 0;

    assert_ok(bm_frame_classes_read(&c, path, true));
    found = bm_frame_classes_find(c, "u1", &got);
    assert_int_equal(got, n);
    assert_memory_equal(found, expected, n * sizeof *expected);
    assert_null(bm_frame_classes_find(c, "u9", &got));
    bm_frame_classes_free(c);
}

static void test_alignments_of_every_form_are_read(void **state)
{
    static const char binary[] =
        "u0 \0B\4\0\0\0\0u1 \0B\4\2\0\0\0\4\5\0\0\0\4\7\0\0\0";
    static const int32_t expected[] = {5, 7};
    char list[300];
    gzFile file = NULL;

    (void)state;
    write_bytes("ali.ark", BYTES(binary));
    assert_classes(in_folder("ali.ark"), expected, 2);
    snprintf(list, sizeof list, "ark:%s", in_folder("ali.ark"));
    assert_classes(list, expected, 2);
    write_text("ali.txt", "u0 \nu1 5 7 \n");
    assert_classes(in_folder("ali.txt"), expected, 2);
    write_text("ali.txt", "u1  [ 5 7 ]\n");
    assert_classes(in_folder("ali.txt"), expected, 2);
    file = gzopen(in_folder("ali.gz"), "wb");
    assert_int_equal(gzwrite(file, binary, sizeof binary - 1),
                     sizeof binary - 1);
    assert_int_equal(gzclose(file), Z_OK);
    assert_classes(in_folder("ali.gz"), expected, 2);
    snprintf(list, sizeof list, "u1 %s:13\n", in_folder("ali.ark"));
    write_text("ali.scp", list);
    assert_classes(in_folder("ali.scp"), expected, 2);
}

/* As Kaldi's programs are given them. */
static void test_alignments_may_be_what_a_command_writes(void **state)
{
    static const int32_t expected[] = {5, 7};
    char line[3 * PATH_MAX];
    bm_frame_classes *c = NULL;

    (void)state;
    write_text("one.txt", "u1 5 7\n");
    write_text("two.txt", "u2 1\n");
    snprintf(line, sizeof line, "ark:cat %s %s|", in_folder("one.txt"),
             in_folder("two.txt"));
    assert_classes(line, expected, 2);
    assert_int_equal(bm_frame_classes_read(&c, line, false), BM_ERR_ARG);
    assert_non_null(strstr(bm_last_error(), "two.txt|; let pack run it with "
                                            "--allow-pipes, or write"));
    assert_int_equal(bm_frame_classes_read(&c, "ark:exit 3 |", true),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "exit code 3 of: exit 3"));
    assert_int_equal(bm_frame_classes_read(&c, "ark:echo u1 x |", true),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "echo u1 x |, byte "));
}

static void test_damaged_alignments_say_where(void **state)
{
    static const struct {
        const char *bytes;
        size_t size;
        const char *message;
    } cases[] = {
        {BYTES("u1 \0B\4\xff\xff\xff\x7f"),
         "byte 10: the number of integers is impossible"},
        {BYTES("u1 \0B\4\2\0\0\0\4\5\0\0\0\4\7"),
         "is impossible, or the file is truncated; make or copy it again"},
        {BYTES("u1 \0BFV \4\1\0\0\0\0\0\0\0"),
         "floats, where there should be integers; give an alignment"},
        {BYTES("u1 \0B\4\1\0\0\0\5\5\0\0\0"), "no integer of 4 bytes"},
        {BYTES("u1 1 -2\n"), "u1: class -2 of frame 1 is below 0"},
        {BYTES("u1 1 x\n"), "a word that is not an integer"},
        {BYTES("u1 1\nu1 2\n"), "u1 occurs twice"},
        {BYTES("\0\1"), "there is no key"},
        {BYTES("\n"), "is empty"},
    };

    (void)state;
    FOR_EACH (i, cases) {
        bm_frame_classes *c = NULL;

        write_bytes("ali.ark", cases[i].bytes, cases[i].size);
        assert_int_equal(bm_frame_classes_read(&c, in_folder("ali.ark"), false),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].message, bm_last_error());
    }
}

/* Four frames of u1 and two of u2, as features, with classes. */
static void make_frames(const char *classes)
{
    make_directory();
    write_text("data/y.ark", "u1  [\n 1\n 2\n 3\n 4 ]\nu2  [\n 5\n 6 ]\n");
    write_text("data/feats.scp", "u1 y.ark:3\nu2 y.ark:23\n");
    write_text("ali.txt", classes);
}

static bm_importer *open_frames(bm_config *config)
{
    bm_importer *i = NULL;

    assert_ok(
        bm_importer_open(&i, "features", config,
                         &(bm_import_source){.path = in_folder("data"),
                                             .targets = in_folder("ali.txt")}));
    bm_config_free(config);
    return i;
}

static void test_classes_follow_the_frames_that_are_kept(void **state)
{
    static const int32_t all[] = {0, 3, 3, 1}, kept[] = {0, 3};
    bm_importer *i = NULL;
    bm_item item;
    bm_shard_meta meta;

    (void)state;
    make_frames("u1 0 3 3 1\nu2 2\n");
    i = open_frames(NULL);
    i->ops->meta(i, &meta);
    assert_true(meta.per_frame);
    assert_int_equal(bm_vocab_size(i->vocab), 4);
    assert_string_equal(bm_vocab_symbol(i->vocab, 3), "3");
    item = next_item(i);
    assert_int_equal(item.n_labels, 4);
    assert_memory_equal(item.labels, all, sizeof all);
    item = next_item(i); /* one class for two frames */
    assert_non_null(strstr(item.problem->text, "2 frames, but targets for 1"));
    bm_importer_close(i);
    i = open_frames(SET("features.subsample=2"));
    item = next_item(i);
    assert_int_equal(item.n_labels, 2);
    assert_memory_equal(item.labels, kept, sizeof kept);
    item = next_item(i); /* classes of the frames that are left */
    assert_null(item.problem);
    assert_int_equal(item.n_labels, 1);
    assert_int_equal(item.labels[0], 2);
    bm_importer_close(i);
    make_frames("u1 0 3 3 1\n");
    i = open_frames(NULL);
    (void)next_item(i);
    assert_non_null(strstr(next_item(i).problem->text, "have none for it"));
    bm_importer_close(i);
}

/* ---- the program --------------------------------------------------------- */

static void test_a_network_is_trained_on_classes_of_frames(void **state)
{
    outcome o;

    (void)state;
    make_frames("u1 0 3 3 1\nu2 2 1\n");
    write_text("phones.txt", "<eps> 0\nSIL 1\na 2\nb 3\n#0 4\n#1 5\n");
    assert_code(BMUF("pack", "--kaldi", "data", "--targets", "ali.txt",
                     "--vocab", "phones.txt", "--out", "frames"),
                0);
    o = BMUF("info", "frames", "--json");
    assert_code(o, 0);
    assert_non_null(strstr(o.out, "\"frame\""));
    assert_code(BMUF("check", "frames"), 0);
    write_text("dnn.ini", "[data]\ntrain = frames\n[model]\n"
                          "net = linear:4 relu linear\nloss = cross_entropy\n"
                          "[train]\nepochs = 1\n");
    assert_code(BMUF("train", "dnn.ini", "--out", "dnn"), 0);
    o = BMUF("eval", "dnn", "frames", "--json");
    assert_code(o, 0);
    write_text("few.txt", "<eps> 0\nSIL 1\na 2\n");
    o = BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--vocab",
             "few.txt", "--out", "few");
    assert_code(o, 65);
    assert_says(o.err, "left out u1: class 3 of frame 1, but the vocabulary "
                       "has classes 0 to 2; pack the training set again");
    assert_says(o.err, "1 with a class outside the vocabulary");
}

/* Class 3 of u2 is in no frame of the training set, as a rare state may be. */
static void test_a_further_set_has_the_classes_of_the_training_set(void **state)
{
    outcome o;

    (void)state;
    make_frames("u1 0 2 2 1\nu2 2 1\n");
    assert_code(BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--out",
                     "seen"),
                0);
    write_text("ali.txt", "u1 0 1 1 1\nu2 3 1\n");
    o = BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--vocab",
             "seen", "--out", "dev", "--max-left-out", "50");
    assert_code(o, 0);
    assert_says(o.out, "1 sequence, 4 frames, 4 labels, 3 classes");
    assert_says(o.err, "left out u2: class 3 of frame 0, but the vocabulary "
                       "has classes 0 to 2");
    write_text("seen.ini", "[data]\ntrain = seen\ndev = dev\n[model]\n"
                           "net = linear:4 relu linear\nloss = cross_entropy\n"
                           "[train]\nepochs = 1\n");
    assert_code(BMUF("train", "seen.ini", "--out", "seen-1"), 0);
    /* targets of both sets for each of them */
    write_text("ali.txt", "u1 0 2 2 1\nu2 2 1\nv1 3\n");
    o = BMUF("pack", "--kaldi", "data", "--targets", "ali.txt", "--out", "all");
    assert_code(o, 0);
    assert_says(o.out, "4 classes");
}

/* 50 frames, whose classes go from `first` up to `last` and begin again. */
static void make_alignment(int first, int last)
{
    char frames[700] = "u1  [\n", classes[300] = "u1";
    size_t n = strlen(frames), k = strlen(classes);

    for (int t = 0, class = first; t < 50; t++) {
        n += (size_t)sprintf(frames + n, " %d%s\n", t, t < 49 ? "" : " ]");
        k += (size_t)sprintf(classes + k, " %d%s", class, t < 49 ? "" : "\n");
        class = class == last ? first : class + 1;
    }
    make_directory();
    write_text("data/y.ark", frames);
    write_text("data/feats.scp", "u1 y.ark:3\n");
    write_text("ali.txt", classes);
}

/* transition-ids begin at 1, and few frames have each of them */
static void test_classes_that_are_hardly_pdf_ids_are_warned_of(void **state)
{
    static const struct {
        int first, last;
        const char *vocab, *message;
    } cases[] = {
        {0, 1, NULL, NULL}, /* 25 frames for each */
        {1, 2, NULL, "ali.txt: no frame has class 0"},
        {1, 2, "phones.txt", NULL},
        {0, 2, NULL, "ali.txt: 3 classes of only 50 frames"}, /* 17 for each */
        {0, 2, "phones.txt", NULL},
    };

    (void)state;
    write_text("phones.txt", "<eps> 0\na 1\nb 2\n");
    FOR_EACH (i, cases) {
        const char *vocab = cases[i].vocab, *expected = cases[i].message;
        outcome o;

        make_alignment(cases[i].first, cases[i].last);
        o = vocab == NULL
                ? BMUF("pack", "--kaldi", "data", "--targets", "ali.txt",
                       "--out", "doubt", "--force")
                : BMUF("pack", "--kaldi", "data", "--targets", "ali.txt",
                       "--out", "doubt", "--force", "--vocab", vocab);
        assert_code(o, 0);
        if (expected == NULL
                ? strstr(o.err, "ali.txt") != NULL
                : strstr(o.err, expected) == NULL ||
                      strstr(o.err, "ali-to-pdf final.mdl") == NULL)
            fail_msg("case %zu: '%s'", i, o.err);
    }
}

static void test_symbol_tables_are_vocabularies(void **state)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"<eps> 0\na 2\n", "words.txt:2: number 2 is too high; number the 2 "
                           "symbols of the table from 0 to 1"},
        {"<eps> 0\na 0\n", "words.txt:2: number 0 was there before"},
        {"<eps> 0\na\n", "words.txt:2: not \"SYMBOL NUMBER\""},
        {"a 1\nb 0\n", "words.txt: symbol 0 is \"b\"; it must be the blank"},
        {"<eps> 0\na 1\na 2\n", "duplicate symbol \"a\""},
    };
    bm_vocab *v = NULL;

    (void)state;
    write_text("words.txt", "<eps> 0\n!SIL 1\none 2\n#0 3\n<s> 4\n</s> 5");
    assert_true(bm_vocab_is_table(in_folder("words.txt")));
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_size(v), 3);
    assert_string_equal(bm_vocab_symbol(v, 0), "<blank>");
    assert_int_equal(bm_vocab_class(v, "one"), 2);
    bm_vocab_free(v);
    write_text("words.txt", "\xef\xbb\xbf<eps> 0\none 1\n");
    assert_true(bm_vocab_is_table(in_folder("words.txt")));
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_class(v, "one"), 1);
    bm_vocab_free(v);
    write_text("words.txt", "\xef\xbb\xbf<blank>\none\n");
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_class(v, "one"), 1);
    bm_vocab_free(v);
    write_text("words.txt", "<ctc> 0\n#1 1\na 2\n"); /* not at the end */
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_size(v), 3);
    bm_vocab_free(v);
    write_text("words.txt", "#0 3\none 2\n<eps> 0\n!SIL 1\n"); /* any order */
    assert_true(bm_vocab_is_table(in_folder("words.txt")));
    assert_ok(bm_vocab_read(&v, in_folder("words.txt"), true));
    assert_int_equal(bm_vocab_size(v), 3);
    assert_int_equal(bm_vocab_class(v, "!SIL"), 1);
    assert_int_equal(bm_vocab_class(v, "one"), 2);
    bm_vocab_free(v);
    FOR_EACH (i, cases) {
        write_text("words.txt", cases[i].text);
        assert_int_equal(bm_vocab_read(&v, in_folder("words.txt"), true),
                         BM_ERR_FORMAT);
        if (strstr(bm_last_error(), cases[i].message) == NULL)
            fail_msg("%s: %s", cases[i].message, bm_last_error());
    }
}

/* ---- statistics ---------------------------------------------------------- */

/* A matrix of doubles with its key. */
static size_t put_doubles(char *to, const char *key, const double *x, int rows,
                          int columns)
{
    static const char begin[6] = {'\0', 'B', 'D', 'M', ' ', 4};
    int n = sprintf(to, "%s ", key);
    char *at = to + n;

    memcpy(at, begin, sizeof begin);
    memcpy(at + 6, &rows, 4);
    at[10] = 4;
    memcpy(at + 11, &columns, 4);
    memcpy(at + 15, x, sizeof *x * (size_t)(rows * columns));
    return (size_t)n + 15 + sizeof *x * (size_t)(rows * columns);
}

/* Statistics of 2^30 frames, around a mean of 1000, whose variance floats cannot
 * tell from 0: sum / n = 1000, squares / n = 10^6 + 0.25. */
static void test_statistics_of_speakers_normalise_in_double(void **state)
{
    static const double n = 1 << 30;
    double ann[4] = {1000 * n, n, (1e6 + .25) * n, 0};
    double bob[4] = {5 * 4, 4, 29 * 4, 0}; /* mean 5, deviation 2 */
    char ark[400], list[100];
    size_t size = 0, first = 0;
    bm_config *config = SET("features.normalise=kaldi");
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    make_directory();
    write_text("data/y.ark",
               "u1  [\n 1000\n 1001\n 999.5 ]\nu2  [\n 5\n 6 ]\n");
    write_text("data/feats.scp", "u1 y.ark:3\nu2 y.ark:30\n");
    first = put_doubles(ark, "ann", ann, 2, 2);
    size = first + put_doubles(ark + first, "bob", bob, 2, 2);
    write_bytes("data/cmvn.ark", ark, size);
    snprintf(list, sizeof list,
             "ann cmvn.ark:4\nbob cmvn.ark:%zu\nzoe nowhere.ark:1\n",
             first + 4);
    write_text("data/cmvn.scp", list);
    assert_ok(bm_importer_open(&i, "features", config,
                               &(bm_import_source){.path = in_folder("data")}));
    bm_config_free(config);
    item = next_item(i);
    assert_int_equal(item.frames, 3);
    assert_true(near(item.x[0], 0, 1e-6) && near(item.x[1], 2, 1e-6) &&
                near(item.x[2], -1, 1e-6));
    item = next_item(i);
    assert_int_equal(item.frames, 2);
    assert_true(item.x[0] == 0 && item.x[1] == .5F);
    bm_importer_close(i);
}

static void test_wrong_statistics_say_what_is_wrong(void **state)
{
    static const double none[4] = {0, 0, 0, 0}, wide[6] = {1, 1, 1, 1, 1, 1},
                        good[4] = {5, 1, 26, 0},
                        odd[4] = {(double)NAN, 1, 1, 0};
    static const struct {
        const double *x;
        int columns;
        const char *list, *message;
    } cases[] = {
        {good, 2, "ann cmvn.ark:4\n",
         "no statistics for 1 speaker, e.g. 'bob'"},
        {good, 2, "ann cmvn.ark:4\nann cmvn.ark:4\n", "was there before"},
        {good, 2, "ann cmvn.ark:5\n", "neither a binary matrix"},
        {good, 2, "ann cmvn.ark:4000\n", "shorter"},
        {good, 2, "ann cat cmvn.ark |\n", "not a place"},
        {good, 2, "ann\n", "not a place"},
        {good, 2, "ann gone.ark:4\n", "gone.ark"},
        {wide, 3, "ann cmvn.ark:4\n", "2 x 3 numbers; of 1 features"},
        {none, 2, "ann cmvn.ark:4\n", "of no frame"},
        {odd, 2, "ann cmvn.ark:4\n", "not finite"},
    };

    (void)state;
    make_frames("");
    FOR_EACH (k, cases) {
        char ark[200];
        bm_importer *i = NULL;
        bm_config *config = SET("features.normalise=kaldi");

        write_bytes("data/cmvn.ark", ark,
                    put_doubles(ark, "ann", cases[k].x, 2, cases[k].columns));
        write_text("data/cmvn.scp", cases[k].list);
        assert_true(bm_importer_open(&i, "features", config,
                                     &(bm_import_source){
                                         .path = in_folder("data")}) != BM_OK);
        if (strstr(bm_last_error(), cases[k].message) == NULL)
            fail_msg("%s: %s", cases[k].message, bm_last_error());
        bm_config_free(config);
    }
}

/* ---- messages of bmuf pack ------------------------------------------------ */

static void test_messages_name_the_file_and_the_remedy(void **state)
{
    outcome o;

    (void)state;
    make_frames("u1 1 1 1 1\nu2 1 1\n");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1", "--set",
                      "features.mels=20"),
                 78,
                 "features.mels is a setting of recordings, but of data its "
                 "feats.scp is read, whose features are made; remove the "
                 "setting, or give --audio data, which reads wav.scp");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1", "--targets",
                      "ali.1.gz", "ali.2.gz"),
                 64,
                 "unexpected file 'ali.2.gz'; --targets takes one. Join "
                 "several: cat ali.*.gz > ali.gz");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1", "--targets",
                      "ark:cat ali.txt|"),
                 64, "run it with --allow-pipes");
    o = BMUF("pack", "--kaldi", "data", "--out", "m2", "--targets",
             "ark:cat ali.txt|", "--allow-pipes");
    assert_code(o, 0);
    write_text("data/text", "u1 one\n");
    assert_fails(BMUF("pack", "--kaldi", "data", "--out", "m1"), 65,
                 "50 % of the sequences have no text, though others do, e.g. "
                 "u2, of which data/text has no line. This is more than 1 %");
    unlink(in_folder("data/cmvn.scp"));
    make_frames("");
    assert_fails(
        BMUF("pack", "--kaldi", "data", "--out", "m1", "--set",
             "features.normalise=kaldi"),
        66,
        "data/cmvn.scp is missing, which features.normalise = kaldi "
        "needs. Make it: compute-cmvn-stats --spk2utt=ark:DIR/spk2utt");
}

/* A line that is no row is not also an id that nothing has. */
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
        cmocka_unit_test(test_matrices_of_every_form_are_read),
        cmocka_unit_test(test_damaged_matrices_are_problems),
        cmocka_unit_test(test_wrong_places_are_problems),
        cmocka_unit_test(test_ranges_take_a_part_of_a_matrix),
        cmocka_unit_test(test_a_data_directory_is_a_manifest),
        cmocka_unit_test(test_names_of_files_may_look_like_places),
        cmocka_unit_test(test_files_of_a_data_directory_may_be_compressed),
        cmocka_unit_test(test_segments_are_excerpts_of_recordings),
        cmocka_unit_test(test_faults_of_a_data_directory_name_file_and_line),
        cmocka_unit_test(test_one_cause_is_one_line),
        cmocka_unit_test(test_a_directory_without_a_list_says_what_is_missing),
        cmocka_unit_test(test_commands_are_run_if_they_may_be),
        cmocka_unit_test(test_a_command_without_its_program_ends_packing),
        cmocka_unit_test(test_outputs_of_commands_have_no_names),
        cmocka_unit_test(test_alignments_of_every_form_are_read),
        cmocka_unit_test(test_alignments_may_be_what_a_command_writes),
        cmocka_unit_test(test_damaged_alignments_say_where),
        cmocka_unit_test(test_messages_name_the_file_and_the_remedy),
        cmocka_unit_test(test_a_broken_segment_is_one_message),
        cmocka_unit_test(test_classes_follow_the_frames_that_are_kept),
        cmocka_unit_test(test_a_network_is_trained_on_classes_of_frames),
        cmocka_unit_test(
            test_a_further_set_has_the_classes_of_the_training_set),
        cmocka_unit_test(test_classes_that_are_hardly_pdf_ids_are_warned_of),
        cmocka_unit_test(test_symbol_tables_are_vocabularies),
        cmocka_unit_test(test_statistics_of_speakers_normalise_in_double),
        cmocka_unit_test(test_wrong_statistics_say_what_is_wrong),
    };

    return cmocka_run_group_tests_name("kaldi", tests, folder_make,
                                       folder_remove);
}
