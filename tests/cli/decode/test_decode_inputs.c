/*
 * The inputs of bmuf decode: ways to give the same recordings against each other
 * and against bmuf eval, and inputs that are broken.
 */
#include "tests/cli/decode/decoding.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes the paths test-0.wav .. to a file, one a line. */
static void list_paths(const char *name)
{
    char all[N * 32] = "";
    size_t n = 0;

    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(all + n, "test-%d.wav\n", i);
    write_text(name, all);
}

/* ---- inputs -------------------------------------------------------------- */

static void test_a_packed_set_gives_the_transcripts_of_eval(void **_)
{
    const char *evaluated =
        printed(BMUF("eval", "half.safetensors", "test", "--hyp", "-"));

    (void)_;
    assert_true(strlen(evaluated) > N * strlen(" (test-00)\n"));
    assert_string_equal(DECODE("test", "--format", "trn"), evaluated);
    assert_string_equal(DECODE("test.jsonl", "--format", "trn"), evaluated);
    assert_string_equal(DECODE("test/data-00000.bmuf.h5", "--format", "trn"),
                        evaluated);
}

/* The same recordings in the same order. */
static void test_all_ways_to_give_recordings_agree(void **_)
{
    const char *wanted = DECODE("test.jsonl");
    const command piped = {
        .words = (const char *const[]){"decode", "half.safetensors", "-", NULL},
        .in = "paths"};
    char scp[N * 64] = "";
    size_t n = 0;

    (void)_;
    list_paths("paths");
    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(scp + n, "u%d ./test-%d.wav\n", i, i);
    write_text("wav.scp", scp);
    assert_string_equal(DECODE("paths"), wanted);
    assert_string_equal(printed(command_run(&piped)), wanted);
    assert_string_equal(DECODE("wav.scp"), wanted);
    assert_says(DECODE("wav.scp", "--format", "trn"), " (u20)\n");
    assert_string_equal(DECODE("test-0.wav", "test-1.wav"), DECODE("pair"));
}

/* Lists as bmuf pack takes them: tables, and compressed. */
static void test_tables_are_manifests(void **_)
{
    const char *wanted = DECODE("pair.jsonl", "test-1.wav", "--format", "trn");

    (void)_;
    write_text("pair.tsv", "\n"
                           "id\taudio\ttext\n"
                           "a\ttest-0.wav\tb\n"
                           "test-1\ttest-1.wav\tc\n");
    write_text("pair.csv", "id,audio\na,test-0.wav\ntest-1,test-1.wav\n");
    run_tool((char *[]){"gzip", "-k", (char *)in_folder("pair.csv"), NULL});
    assert_string_equal(DECODE("pair.tsv", "--format", "trn"), wanted);
    assert_string_equal(DECODE("pair.csv", "--format", "trn"), wanted);
    assert_string_equal(DECODE("pair.csv.gz", "--format", "trn"), wanted);
    write_text("odd.tsv", "id\taudio\na\n");
    assert_fails(BMUF("decode", "half.safetensors", "odd.tsv"), 65,
                 "odd.tsv:2: fewer values than the 2 columns of the header");
}

/* As names of files in a folder may have them. */
static void test_ids_may_have_blanks(void **_)
{
    json_t *o = NULL;

    (void)_;
    write_text("blanks.jsonl", "{\"id\": \"a b\", \"audio\": \"test-0.wav\"}\n"
                               "{\"id\": \"c\", \"audio\": \"test-1.wav\"}\n");
    o = parse_json(line_of(DECODE("blanks.jsonl", "--format", "json"), 0));
    assert_string_equal(text(o, "id"), "a b");
    json_decref(o);
    assert_says(line_of(DECODE("blanks.jsonl", "--format", "trn"), 0),
                " (a_b)");
    assert_int_equal(
        strncmp(DECODE("blanks.jsonl", "--format", "stm"), "a_b 1 ", 6), 0);
}

/* Ids, excerpts and speakers as the directory has them; paths are relative to it
 * if not to the current folder, in its wav.scp alone, too. */
static void test_a_data_directory_of_kaldi(void **_)
{
    const char *stm = NULL, *whole = DECODE("test-0.wav", "test-1.wav");

    (void)_;
    assert_int_equal(mkdir(in_folder("kaldi"), 0777), 0);
    write_text("kaldi/wav.scp", "r0 ../test-0.wav\nr1 ../test-1.wav\n");
    assert_string_equal(DECODE("kaldi"), whole);
    assert_string_equal(DECODE("kaldi/wav.scp"), whole);
    assert_says(line_of(DECODE("kaldi/wav.scp", "--format", "trn"), 1),
                " (r1)");
    write_text("kaldi/segments", "s0 r1 0.1 0.3\ns1 r0 0 -1\n");
    write_text("kaldi/utt2spk", "s0 eve\ns1 bob\n");
    stm = DECODE("kaldi/", "--format", "stm");
    assert_says(line_of(stm, 0), "s0 1 eve 0.000 0.200");
    assert_says(line_of(stm, 1), "s1 1 bob 0.000 ");
    assert_string_equal(line_of(DECODE("kaldi"), 1), line_of(whole, 0));

    unlink(in_folder("kaldi/segments"));
    write_text("kaldi/wav.scp", "r0 sph2pipe ../test-0.sph |\n");
    assert_fails(BMUF("decode", "half.safetensors", "kaldi"), 65,
                 "kaldi/wav.scp:1: a command, which is not run");
    assert_fails(BMUF("decode", "half.safetensors", "kaldi/wav.scp"), 65,
                 "kaldi/wav.scp:1: a command, which is not run");
    write_text("kaldi/wav.scp", "r0 gone/r0.wav\n");
    assert_fails(BMUF("decode", "half.safetensors", "kaldi/wav.scp"), 65,
                 "there is no gone/r0.wav, and no kaldi/gone/r0.wav");
}

/* In the current directory, as Kaldi's programs run them; a command that fails is
 * one input's fault. Without --allow-pipes none is run. */
static void test_commands_of_lists_run_if_allowed(void **_)
{
    const char *whole = DECODE("test-0.wav", "test-1.wav");
    const char *part = NULL;
    outcome o;

    (void)_;
    assert_int_equal(mkdir(in_folder("piped"), 0777), 0);
    write_text("piped/wav.scp",
               "r0 cat test-0.wav |\nr1 touch ran; cat test-1.wav |\n");
    assert_fails(BMUF("decode", "half.safetensors", "piped"), 65,
                 "let pack or decode run the commands with --allow-pipes");
    assert_fails(BMUF("decode", "half.safetensors", "piped/wav.scp"), 65,
                 "or run the commands with --allow-pipes");
    write_text("mixed.scp", "r0 test-0.wav\nr1 touch ran; cat test-1.wav |\n");
    assert_code(BMUF("decode", "half.safetensors", "mixed.scp"), 65);
    assert_int_not_equal(access(in_folder("ran"), F_OK), 0);

    assert_string_equal(DECODE("piped", "--allow-pipes"), whole);
    assert_string_equal(DECODE("piped/wav.scp", "--allow-pipes"), whole);
    assert_string_equal(DECODE("mixed.scp", "--allow-pipes"), whole);
    assert_says(
        line_of(DECODE("mixed.scp", "--allow-pipes", "--format", "trn"), 1),
        " (r1)");
    write_text("piped/segments", "s0 r1 0.1 0.3\ns1 r1 0.3 0.5\n");
    part = DECODE("piped", "--allow-pipes", "--format", "ctm");
    write_text("piped/wav.scp", "r1 test-1.wav\n");
    assert_string_equal(DECODE("piped", "--format", "ctm"), part);

    write_text("mixed.scp", "r0 cat test-0.wav |\nr1 exit 3 |\nr2 echo a |\n");
    whole = DECODE("test-0.wav");
    o = BMUF("decode", "half.safetensors", "mixed.scp", "--allow-pipes");
    assert_int_equal(o.code, 65);
    assert_says(o.out, whole);
    assert_says(o.err, "exit 3 |: ");
    assert_says(o.err, "echo a |: ");
    assert_null(strstr(o.err, "/proc/"));
}

/* As some editors write it. */
static void test_a_byte_order_mark_is_skipped(void **_)
{
#define MARK "\xef\xbb\xbf"
    const command piped = {
        .words = (const char *const[]){"decode", "half.safetensors", "-", NULL},
        .in = "marked"};
    const command json = {
        .words = (const char *const[]){"decode", "half.safetensors", "-", NULL},
        .in = "marked.jsonl"};
    const char *wanted = DECODE("pair");

    (void)_;
    write_text("marked", MARK "test-0.wav\ntest-1.wav\n");
    assert_string_equal(DECODE("marked"), wanted);
    assert_string_equal(printed(command_run(&piped)), wanted);
    write_text("marked", MARK "# two\ntest-0.wav\ntest-1.wav\n");
    assert_string_equal(DECODE("marked"), wanted);
    write_text("marked.jsonl",
               MARK "{\"id\": \"a\", \"audio\": \"test-0.wav\"}\n");
    assert_fails(command_run(&json), 65, "stdin has JSON");
    /* The vocabulary of the network has no mark. */
    write_text("plain.lex", "abc\ncc\n");
    write_text("marked.lex", MARK "abc\ncc\n");
    wanted = DECODE("test-0.wav", "--lexicon", "plain.lex");
    assert_string_equal(DECODE("test-0.wav", "--lexicon", "marked.lex"),
                        wanted);
    write_text("plain.hot", "abc=3\n");
    write_text("marked.hot", MARK "abc=3\n");
    wanted = DECODE("test-0.wav", "--hot-words", "plain.hot");
    assert_string_equal(DECODE("test-0.wav", "--hot-words", "marked.hot"),
                        wanted);
#undef MARK
}

/* In byte order of their paths, with files in folders. */
static void test_a_folder_is_all_its_recordings(void **_)
{
    const char *all = DECODE("tree", "--format", "trn");

    (void)_;
    assert_int_equal(count_of(all, "\n"), 3);
    assert_says(line_of(all, 0), " (b/z)");
    assert_says(line_of(all, 1), " (test-4)");
    assert_says(line_of(all, 2), " (zz)");
    assert_string_equal(line_of(DECODE("tree"), 1), line_of(DECODE("one"), 0));
}

/* As a file that is missing. */
static void test_a_link_without_a_target_is_named(void **_)
{
    outcome o;

    (void)_;
    assert_int_equal(mkdir(in_folder("linked"), 0777), 0);
    assert_int_equal(symlink("../tree", in_folder("linked/tree")), 0);
    assert_int_equal(symlink("none.wav", in_folder("linked/gone.wav")), 0);
    o = BMUF("decode", "half.safetensors", "linked", "--format", "trn");
    assert_code(o, 65);
    assert_int_equal(count_of(o.out, "(tree/"), 3);
    assert_says(o.err, "linked/gone.wav: No such file");
}

static void test_a_recording_comes_from_stdin(void **_)
{
    const command c = {.words =
                           (const char *const[]){"decode", "half.safetensors",
                                                 "-", "--format", "json", NULL},
                       .in = "test-4.wav"};
    json_t *o = parse_json(printed(command_run(&c)));

    (void)_;
    assert_string_equal(text(o, "id"), "stdin");
    assert_string_equal(text(o, "text"), line_of(DECODE("test-4.wav"), 0));
    json_decref(o);
}

/* Twice the samples, with straight lines between. */
static void test_other_rates_are_resampled(void **_)
{
    static float x[16000], twice[32000];
    size_t n = read_samples("test-3.wav", x, 16000);
    const char *slow = DECODE("test-3.wav");

    (void)_;
    for (size_t i = 0; i < n; i++) {
        twice[2 * i] = x[i];
        twice[2 * i + 1] = (x[i] + (i + 1 < n ? x[i + 1] : x[i])) / 2;
    }
    write_samples("fast.wav", 16000, twice, 2 * n);
    assert_string_equal(DECODE("fast.wav"), slow);
    assert_true(strlen(slow) > 1);
}

/* Every second sample: bands above 2 kHz are empty. Nothing is said if the rate
 * is the model's, or higher. */
static void test_a_low_rate_is_noted_once(void **_)
{
    static float x[16000];
    size_t n = read_samples("test-3.wav", x, 16000);
    outcome o;

    (void)_;
    for (size_t i = 0; i < n / 2; i++)
        x[i] = x[2 * i];
    write_samples("slow.wav", 4000, x, n / 2);
    write_samples("slower.wav", 2000, x, n / 2);
    o = BMUF("decode", "half.safetensors", "slow.wav", "slower.wav",
             "test-3.wav");
    assert_code(o, 0);
    assert_says(o.err, "2 recordings have a lower sampling rate than the "
                       "model's 8000 Hz, the lowest 2000 Hz: bands above 1000 "
                       "Hz are empty\n");
    o = BMUF("decode", "half.safetensors", "slow.wav");
    assert_says(o.err, "1 recording has a lower sampling rate than the model's "
                       "8000 Hz, the lowest 4000 Hz");
    o = BMUF("decode", "half.safetensors", "fast.wav", "test-3.wav");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "sampling rate"), 0);
}

static void test_excerpts_are_decoded_alone(void **_)
{
    json_t *o = NULL;

    (void)_;
    write_text("part.jsonl", "{\"id\": \"p\", \"audio\": \"test-0.wav\", "
                             "\"start\": 0.2, \"duration\": 0.1}\n");
    o = parse_json(DECODE("part.jsonl", "--format", "json"));
    assert_true(near(number(o, "length"), 0.1, 1e-9));
    assert_string_equal(text(o, "id"), "p");
    json_decref(o);
}

static void test_threads_do_not_change_a_byte(void **_)
{
    static const char *const threads[] = {"1", "2", "3", "4"};
    char *wanted = NULL;

    (void)_;
    FOR_EACH (i, threads) {
        outcome o =
            BMUF("decode", "half.safetensors", "test.jsonl", "nowhere", "test",
                 "--format", "json", "--nbest", "3", "--threads", threads[i]);

        assert_code(o, 65);
        assert_int_equal(count_of(o.out, "\n"), 2 * N + 1);
        if (i > 0)
            assert_string_equal(o.out, wanted);
        else
            wanted = strdup(o.out);
        assert_non_null(wanted);
    }
    free(wanted);
}

/* ---- faults -------------------------------------------------------------- */

/* Each is named with its reason, and the recordings around it are decoded. */
static void test_broken_inputs_are_named_and_others_decoded(void **_)
{
    static const struct {
        const char *name, *reason;
    } broken[] = {
        {"missing.wav", "missing.wav: No such file"},
        {"empty.wav", "empty.wav is empty"},
        {"cut.wav", "cut.wav: damaged or truncated"},
        {"noise.wav", "noise.wav: cannot be read as a recording (libsndfile: "},
        {"short.wav", "short.wav: 0.010 s: shorter than one window of 25 ms"},
        {"silent.wav", "silent.wav: 0.000 s: shorter than one window"},
        {"page.png", "page.png is a PNG image, but the model was trained on "
                     "recordings"},
        {"void", "void: no recordings in this folder"},
        {"story.txt", "story.txt is a text, but none of its first lines"},
        {"bad.jsonl", "bad.jsonl:1: not JSON"},
        {"half.safetensors", "half.safetensors is a safetensors file"},
        {"other-set", "features.shift_ms is 5.0, should be 10.0"},
    };
    const char *words[40] = {"decode", "half.safetensors", "test-0.wav"};
    const char *alone = DECODE("test-0.wav");
    char wanted[200];
    size_t n = 3;
    outcome o;

    (void)_;
    FOR_EACH (i, broken)
        words[n++] = broken[i].name;
    words[n++] = "test-0.wav";
    words[n] = NULL;
    o = command_run(&(command){.words = words});
    assert_code(o, 65);
    FOR_EACH (i, broken)
        assert_says(o.err, broken[i].reason);
    assert_says(o.err, "bmuf: 12 of 14 inputs could not be decoded");
    assert_says(o.err, "2 of 14 decoded: ");
    assert_says(o.err, "real-time factor");
    snprintf(wanted, sizeof wanted, "%s\n\n\n\n\n\n\n\n\n\n\n\n%s", alone,
             alone);
    assert_string_equal(o.out, wanted);
}

/* More comments than a look at the file reads. */
static void test_a_list_may_begin_with_many_comments(void **_)
{
    enum { LINES = 100, LENGTH = 62 };
    char list[LINES * LENGTH + 100] = "";
    size_t n = 0;

    (void)_;
    for (int i = 0; i < LINES; i++)
        n += (size_t)sprintf(list + n, "#%060d\n", i);
    assert_int_equal(n, LINES * LENGTH);
    sprintf(list + n, "test-0.wav\n");
    write_text("comments", list);
    assert_string_equal(DECODE("comments"), DECODE("test-0.wav"));
}

/* An error, and nothing else; its path is there once. */
static void test_a_single_broken_input_is_an_error(void **_)
{
    static const struct {
        const char *name, *error;
        int code;
    } all[] = {
        {"missing.wav", "bmuf: missing.wav: No such file or directory\n", 66},
        {"page.png",
         "bmuf: page.png is a PNG image, but the model was trained on "
         "recordings\n",
         65},
        {"dev.hdf",
         "bmuf: dev.hdf is an HDF5 file, but the model was trained on "
         "recordings; shards are read by bmuf info, check, train, eval and "
         "decode, files of RETURNN by bmuf pack --returnn\n",
         65},
        {"void", "bmuf: void: no recordings in this folder\n", 66},
        {"short.wav",
         "bmuf: short.wav: 0.010 s: shorter than one window of 25 ms\n", 65},
        {"empty.wav", "bmuf: empty.wav is empty\n", 65},
        {"idle",
         "bmuf: idle is a list without a path: its lines are empty or "
         "comments\n",
         65},
    };
    command c = {
        .words = (const char *const[]){"decode", "half.safetensors", "-", NULL},
        .in = "empty.wav"};
    outcome o;

    (void)_;
    write_text("idle", "# not yet\n\n  \n");
    FOR_EACH (i, all) {
        o = BMUF("decode", "half.safetensors", all[i].name);
        assert_code(o, all[i].code);
        assert_string_equal(o.out, "");
        assert_string_equal(o.err, all[i].error);
    }
    o = command_run(&c);
    assert_code(o, 66);
    assert_string_equal(o.err, "bmuf: stdin has no recording and no path: "
                               "there is nothing to decode\n");
}

/* Of a list, a manifest and a set, with JSON: the object has the reason. */
static void test_one_broken_file_of_many_is_one_fault(void **_)
{
    json_t *o = NULL;
    outcome list, manifest;

    (void)_;
    write_text("three", "test-0.wav\ncut.wav\n\ntest-1.wav\n");
    list = BMUF("decode", "half.safetensors", "three", "--format", "json");
    assert_code(list, 65);
    assert_int_equal(count_of(list.out, "\n"), 3);
    o = parse_json(line_of(list.out, 1));
    assert_string_equal(text(o, "id"), "cut");
    assert_says(text(o, "error"), "damaged or truncated");
    json_decref(o);
    write_text("three.jsonl", "{\"id\": \"a\", \"audio\": \"test-0.wav\"}\n"
                              "{\"id\": \"b\", \"audio\": \"no.wav\"}\n"
                              "{\"id\": \"c\", \"audio\": \"test-1.wav\"}\n");
    manifest =
        BMUF("decode", "half.safetensors", "three.jsonl", "--format", "trn");
    assert_code(manifest, 65);
    assert_int_equal(count_of(manifest.out, "\n"), 2);
    assert_says(manifest.err, "1 of 3 inputs could not be decoded");
}

/* Bytes that are not UTF-8 are escaped as in messages. */
static void test_json_has_names_that_are_not_utf8(void **_)
{
    outcome both;
    json_t *o = NULL;

    (void)_;
    run_tool((char *[]){"cp", (char *)in_folder("test-0.wav"),
                        (char *)in_folder("caf\xe9.wav"), NULL});
    both = BMUF("decode", "half.safetensors", "caf\xe9.wav", "n\xe9.wav",
                "--format", "json");
    assert_code(both, 65);
    o = parse_json(line_of(both.out, 0));
    assert_string_equal(text(o, "id"), "caf\\xe9");
    assert_string_equal(text(o, "path"), "caf\\xe9.wav");
    assert_string_equal(text(o, "text"), line_of(DECODE("test-0.wav"), 0));
    json_decref(o);
    o = parse_json(line_of(both.out, 1));
    assert_string_equal(text(o, "id"), "n\\xe9");
    assert_says(text(o, "error"), "No such file");
    json_decref(o);
}

/* The second path is sent when the words of the first are there. */
static void test_results_come_before_the_input_ends(void **_)
{
    static const char script[] =
        "(echo test-0.wav; i=0; while [ ! -s out ] && [ $i -lt 300 ]; do "
        "sleep 0.1; i=$((i + 1)); done; cp out seen; echo test-1.wav) | "
        "\"$0\" decode half.safetensors - >out";
    outcome o = command_run(&(command){
        .program = "sh",
        .words = (const char *const[]){"-c", script, bmuf_path(), NULL}});
    char *first = NULL, *both = NULL;
    size_t size = 0;

    (void)_;
    assert_code(o, 0);
    first = slurp(in_folder("seen"), &size);
    both = slurp(in_folder("out"), &size);
    assert_string_equal(first, DECODE("test-0.wav"));
    assert_string_equal(both, DECODE("test-0.wav", "test-1.wav"));
    free(first);
    free(both);
}

/* bmuf decode .. | head */
static void test_a_closed_pipe_ends_it_quietly(void **_)
{
    outcome o = command_run(
        &(command){.words = (const char *const[]){"decode", "half.safetensors",
                                                  "test.jsonl", NULL},
                   .deaf = true});

    (void)_;
    assert_code(o, 0);
    assert_string_equal(o.err, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_packed_set_gives_the_transcripts_of_eval),
        cmocka_unit_test(test_all_ways_to_give_recordings_agree),
        cmocka_unit_test(test_tables_are_manifests),
        cmocka_unit_test(test_ids_may_have_blanks),
        cmocka_unit_test(test_a_data_directory_of_kaldi),
        cmocka_unit_test(test_commands_of_lists_run_if_allowed),
        cmocka_unit_test(test_a_byte_order_mark_is_skipped),
        cmocka_unit_test(test_a_folder_is_all_its_recordings),
        cmocka_unit_test(test_a_link_without_a_target_is_named),
        cmocka_unit_test(test_a_recording_comes_from_stdin),
        cmocka_unit_test(test_other_rates_are_resampled),
        cmocka_unit_test(test_a_low_rate_is_noted_once),
        cmocka_unit_test(test_excerpts_are_decoded_alone),
        cmocka_unit_test(test_threads_do_not_change_a_byte),
        cmocka_unit_test(test_json_has_names_that_are_not_utf8),
        cmocka_unit_test(test_results_come_before_the_input_ends),
        cmocka_unit_test(test_broken_inputs_are_named_and_others_decoded),
        cmocka_unit_test(test_a_list_may_begin_with_many_comments),
        cmocka_unit_test(test_a_single_broken_input_is_an_error),
        cmocka_unit_test(test_one_broken_file_of_many_is_one_fault),
        cmocka_unit_test(test_a_closed_pipe_ends_it_quietly),
    };

    return cmocka_run_group_tests_name("decode_inputs", tests,
                                       make_decode_inputs, folder_remove);
}
