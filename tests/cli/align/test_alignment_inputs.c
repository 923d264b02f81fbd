/* bmuf align: manifests, data directories, and what cannot be aligned. */
#include "core/file/file.h"
#include "tests/cli/align/aligned.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/speech.h"

#include <glob.h>
#include <signal.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A text that is too long, one that is missing, an empty one. */
static void test_what_cannot_be_aligned_is_named_and_counted(void **state)
{
    char from[512];
    outcome o;

    (void)state;
    write_text(
        "odd.jsonl",
        "{\"id\": \"long\", \"audio\": \"test-2.wav\", \"text\": \"abab\"}\n"
        "{\"id\": \"empty\", \"audio\": \"test-0.wav\", \"text\": \"\"}\n"
        "{\"id\": \"good\", \"audio\": \"test-0.wav\", \"text\": \"a b\"}\n");
    assert_code(BMUF("pack", "--audio", "odd.jsonl", "--out", "odd", "--vocab",
                     "train", "--set", "features.mels=8"),
                0);
    write_text("none.jsonl", "{\"id\": \"none\", \"audio\": \"test-0.wav\"}\n");
    assert_code(BMUF("pack", "--audio", "none.jsonl", "--out", "none", "--name",
                     "none", "--vocab", "train", "--set", "features.mels=8"),
                0);
    snprintf(from, sizeof from, "%s", in_folder("none/none-00000.bmuf.h5"));
    assert_int_equal(rename(from, in_folder("odd/none-00000.bmuf.h5")), 0);
    o = BMUF("align", "run", "odd", "--format", "json", "--targets", "odd-t");
    assert_code(o, 0);
    assert_says(o.err, "long");
    assert_says(o.err, "aligned 2 of 4 sequences; left out 1 infeasible, 0 not "
                       "finite, 1 without a reference, 0 that cannot be read");
    assert_says(o.out, "{\"id\":\"long\",\"error\":\"infeasible\"}\n");
    assert_int_equal(count_of(o.out, "\n"), 3);
    assert_int_equal(count_of(o.out, "none"), 0);
    assert_says(o.out, "\"words\":[],\"labels\":[]}\n");
    assert_says(BMUF("info", "odd-t").out, "sequences  2 in");
    write_text("bad.jsonl", "{\"id\": \"long\", \"audio\": \"test-2.wav\", "
                            "\"text\": \"abab\"}\n");
    assert_code(BMUF("pack", "--audio", "bad.jsonl", "--out", "bad", "--vocab",
                     "train", "--set", "features.mels=8"),
                0);
    assert_fails(BMUF("align", "run", "bad"), 65,
                 "no sequence could be aligned: 1 infeasible");
    assert_fails(BMUF("align", "run", "none.jsonl"), 65,
                 "none.jsonl: no sequence could be aligned: none has a text; "
                 "give each");
    assert_fails(BMUF("align", "run", "none.jsonl", "-n", "2"), 64,
                 "none.jsonl is a manifest; pack it to align it with -n, or "
                 "leave out -n");
}

/* Each character of what was recognised has a place; labels are characters. */
static void test_what_decode_writes_is_a_manifest(void **state)
{
    outcome heard = BMUF("decode", "run", "test.jsonl", "--format", "json");
    outcome o;
    char *text = NULL, *rest = NULL;
    size_t n = 0;

    (void)state;
    assert_code(heard, 0);
    write_text("heard.jsonl", heard.out);
    o = BMUF("align", "run", "heard.jsonl", "--level", "labels");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "not understood"), 0);
    text = strdup(heard.out);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest)) {
        json_t *row = parse_json(line);

        n += strlen(json_string_value(json_object_get(row, "text")));
        json_decref(row);
    }
    assert_true(n > 0);
    assert_int_equal(count_of(o.out, "\n"), n);
    free(text);
}

/* A tone of so many seconds, and a set NAME of it. */
static void pack_long(const char *name, size_t seconds)
{
    enum { RATE = 8000, MOST = 42 };
    static int x[MOST * RATE];
    char file[40], line[200];

    for (size_t i = 0; i < seconds * RATE; i++)
        x[i] = (int)(7 * i % 13);
    snprintf(file, sizeof file, "%s.wav", name);
    write_sound(file, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x,
                (sf_count_t)(seconds * RATE), 1, RATE);
    snprintf(line, sizeof line,
             "{\"id\": \"%s\", \"audio\": \"%s\", \"text\": \"ab\"}\n", name,
             file);
    snprintf(file, sizeof file, "%s.jsonl", name);
    write_text(file, line);
    assert_code(BMUF("pack", "--audio", file, "--out", name, "--vocab", "train",
                     "--set", "features.mels=8"),
                0);
}

/* Before training and by explain; a speed that would make a sequence too long is
 * not used. */
static void test_sets_too_long_for_attention_are_refused(void **state)
{
    static const char *const keys[] = {"data.train", "data.dev", "data.test"};

    (void)state;
    pack_long("toolong", 42);
    pack_long("limit", 40);
    FOR_EACH (k, keys) {
        char set[40], said[200];

        snprintf(set, sizeof set, "%s=toolong", keys[k]);
        snprintf(said, sizeof said,
                 "%s = toolong: toolong has 4198 frames, too many for the "
                 "attention of model.net; leave it out",
                 keys[k]);
        assert_fails(BMUF("explain", "tiny.ini", "--set",
                          "model.net=attention:1 linear", "--set", set),
                     78, said);
        assert_fails(BMUF("train", "tiny.ini", "--out", "refused", "--set",
                          "model.net=attention:1 linear", "--set", set),
                     78, said);
    }
    assert_code(BMUF("train", "tiny.ini", "--out", "slowed", "--set",
                     "model.net=attention:1 linear", "--set",
                     "data.train=limit", "--set", "augment.speed=0.9", "--set",
                     "train.epochs=1"),
                0);
}

/* Attention takes 4096 frames. The sequence beside it is aligned as alone. */
static void test_what_is_too_long_for_attention_is_left_out(void **state)
{
    enum { RATE = 8000, SECONDS = 42 };
    static int x[SECONDS * RATE];
    static const char good[] =
        "{\"id\": \"good\", \"audio\": \"test-0.wav\", \"text\": \"a\"}\n";
    outcome alone, both;
    char wanted[4096];

    (void)state;
    for (size_t i = 0; i < SECONDS * RATE; i++)
        x[i] = (int)(7 * i % 13);
    write_sound("far.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, SECONDS * RATE,
                1, RATE);
    write_text("good.jsonl", good);
    snprintf(wanted, sizeof wanted,
             "{\"id\": \"far\", \"audio\": \"far.wav\", \"text\": \"\"}\n%s",
             good);
    write_text("far.jsonl", wanted);
    assert_code(BMUF("train", "tiny.ini", "--out", "attentive", "--set",
                     "model.net=attention:1 linear", "--set", "train.epochs=1"),
                0);
    alone = BMUF("align", "attentive", "good.jsonl", "--format", "json");
    both = BMUF("align", "attentive", "far.jsonl", "--format", "json");
    assert_code(alone, 0);
    assert_code(both, 0);
    snprintf(wanted, sizeof wanted,
             "{\"id\":\"far\",\"error\":\"infeasible\"}\n%s", alone.out);
    assert_string_equal(both.out, wanted);
    assert_says(both.err, "far: too long for the model's attention: not "
                          "aligned; give excerpts");
    assert_says(both.err, "aligned 1 of 2 sequences; left out 1 infeasible, 0 "
                          "not finite");
    both = BMUF("decode", "attentive", "far.wav", "test-0.wav");
    assert_code(both, 65);
    assert_says(both.err, "far.wav: too long for the model's attention");
    assert_string_equal(both.out + 1,
                        BMUF("decode", "attentive", "test-0.wav").out);
}

/* Files are aligned as the set that is packed of them; those that cannot be read
 * are named. */
static void test_manifests_are_aligned_as_their_sets(void **state)
{
    char own[100], *before = getenv("TMPDIR");
    outcome set, files;
    glob_t left;

    (void)state;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "units",
                     "--vocab", "train", "--set", "features.mels=8"),
                0);
    set = BMUF("align", "run", "units", "--format", "json");
    files = BMUF("align", "run", "test.jsonl", "--format", "json");
    assert_code(files, 0);
    assert_string_equal(files.out, set.out);
    write_text(
        "mixed.jsonl",
        "{\"id\": \"good\", \"audio\": \"test-0.wav\", \"text\": \"a b\"}\n"
        "{\"id\": \"gone\", \"audio\": \"gone.wav\", \"text\": \"a\"}\n"
        "{\"id\": \"text\", \"audio\": \"mixed.jsonl\", \"text\": \"a\"}\n"
        "{\"id\": \"odd\", \"audio\": \"test-2.wav\", \"text\": \"bz\"}\n"
        "{\"id\": \"none\", \"audio\": \"test-2.wav\"}\n");
    assert_ok(bm_file_make_directory(in_folder("own")));
    snprintf(own, sizeof own, "%s", in_folder("own"));
    before = before != NULL ? strdup(before) : NULL;
    setenv("TMPDIR", own, 1);
    files = BMUF("align", "run", "mixed.jsonl");
    if (before != NULL)
        setenv("TMPDIR", before, 1);
    else
        unsetenv("TMPDIR");
    free(before);
    assert_code(files, 0);
    assert_int_equal(count_of(files.out, "\n"), 3); /* a, b; b */
    assert_says(files.err, "left out gone: ");
    assert_says(files.err, "left out text: ");
    assert_says(files.err, "odd: 1 symbol of its text is not in the model's "
                           "vocabulary");
    assert_says(files.err, "aligned 2 of 5 sequences; left out 0 infeasible, 0 "
                           "not finite, 1 without a reference, 2 that cannot "
                           "be read");
    assert_int_equal(glob(in_folder("own/bmuf-align-*"), 0, NULL, &left),
                     GLOB_NOMATCH); /* removed */
    assert_fails(BMUF("align", "run", "test.jsonl", "-n", "2"), 64,
                 "pack it to align it with -n");
}

/* Warnings name the first ten. */
static void test_texts_with_unknown_symbols_are_counted(void **state)
{
    enum { ROWS = 12 };
    char rows[ROWS * 100] = "";
    size_t n = 0;
    outcome o;

    (void)state;
    for (int k = 0; k < ROWS; k++)
        n += (size_t)sprintf(rows + n,
                             "{\"id\": \"u%d\", \"audio\": \"test-0.wav\", "
                             "\"text\": \"az\"}\n",
                             k);
    write_text("unknown.jsonl", rows);
    o = BMUF("align", "run", "unknown.jsonl");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, "1 symbol of its text is not in"), 10);
    assert_says(o.err, "unknown.jsonl: 12 texts have symbols that the model's "
                       "vocabulary lacks");
}

/* A model of channel 1, normalised by speaker: files with another second channel
 * are aligned as the set that is packed of them. */
static void test_manifests_are_normalised_as_the_model_was(void **state)
{
    enum { SAMPLES_OF = 4000, FILES = 4 };
    static const char *const how[] = {"features.mels=8", "features.channel=1",
                                      "features.normalise=speaker"};
    static int x[2 * SAMPLES_OF];
    char rows[1000] = "", bare[1000] = "";
    outcome set, files;

    (void)state;
    for (int k = 0; k < FILES; k++) {
        size_t at = strlen(rows), end = strlen(bare);
        char name[32];

        make_tone(x, SAMPLES_OF, 2, 300 + 40 * k, 8000);
        snprintf(name, sizeof name, "stereo-%d.wav", k);
        write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, SAMPLES_OF, 2,
                    8000);
        snprintf(rows + at, sizeof rows - at,
                 "{\"id\": \"s%d\", \"audio\": \"%s\", \"text\": \"a b\", "
                 "\"speaker\": \"of-%d\"}\n",
                 k, name, k % 2);
        snprintf(bare + end, sizeof bare - end,
                 "{\"id\": \"s%d\", \"audio\": \"%s\", \"text\": \"a\"}\n", k,
                 name);
    }
    write_text("stereo.jsonl", rows);
    write_text("bare.jsonl", bare);
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "by-speaker",
                     "--set", how[0], "--set", how[1], "--set", how[2]),
                0);
    assert_code(BMUF("pack", "--audio", "stereo.jsonl", "--out", "stereo",
                     "--vocab", "by-speaker", "--set", how[0], "--set", how[1],
                     "--set", how[2]),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "of-speakers", "--set",
                     "data.train=by-speaker", "--set", "data.dev=by-speaker",
                     "--set", "train.epochs=1"),
                0);
    set = BMUF("align", "of-speakers", "stereo", "--format", "json");
    files = BMUF("align", "of-speakers", "stereo.jsonl", "--format", "json");
    assert_code(set, 0);
    assert_code(files, 0);
    assert_string_equal(files.out, set.out);
    assert_fails(BMUF("align", "of-speakers", "bare.jsonl"), 65,
                 "bare.jsonl:1: s0 has no \"speaker\"");
}

/* A text is an archive of Kaldi's, too: sums of 8 bands and their squares over 10
 * frames. */
static void test_statistics_of_kaldi_need_a_packed_set(void **state)
{
    (void)state;
    assert_ok(bm_file_make_directory(in_folder("stats")));
    write_text("stats/wav.scp", "a-0 ../test-0.wav\na-1 ../test-1.wav\n");
    write_text("stats/text", "a-0 a\na-1 b\n");
    write_text("stats/utt2spk", "a-0 ann\na-1 ann\n");
    write_text("stats/cmvn.ark", "ann  [\n 10 10 10 10 10 10 10 10 10\n"
                                 " 20 20 20 20 20 20 20 20 0 ]\n");
    write_text("stats/cmvn.scp", "ann cmvn.ark:4\n");
    assert_code(BMUF("pack", "--kaldi", "stats", "--out", "by-kaldi", "--vocab",
                     "train", "--set", "features.mels=8", "--set",
                     "features.normalise=kaldi"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "of-kaldi", "--set",
                     "data.train=by-kaldi", "--set", "data.dev=by-kaldi",
                     "--set", "train.epochs=1"),
                0);
    assert_fails(BMUF("align", "of-kaldi", "stats"), 65,
                 "normalised by statistics of Kaldi's", "pack", "first");
    assert_code(BMUF("align", "of-kaldi", "by-kaldi"), 0);
}

/* A manifest of many rows is stopped while it is packed. The program's TMPDIR is
 * the folder. */
static void test_a_signal_leaves_nothing_in_tmpdir(void **state)
{
    enum { ROWS = 20000 };
    char *rows = malloc(ROWS * 100), *at = rows;
    glob_t left = {0};
    program p;

    (void)state;
    assert_non_null(rows);
    for (int k = 0; k < ROWS; k++)
        at += sprintf(at,
                      "{\"id\": \"r%d\", \"audio\": \"test-0.wav\", "
                      "\"text\": \"a\"}\n",
                      k);
    write_text("many.jsonl", rows);
    free(rows);
    program_start(&p,
                  (const char *const[]){"align", "run", "many.jsonl", NULL});
    while (program_runs(&p) &&
           glob(in_folder("bmuf-align-*"), 0, NULL, &left) != 0)
        pause_for(0.01);
    globfree(&left);
    kill(p.pid, SIGTERM);
    program_wait(&p);
    assert_ended(&p, 128 + SIGTERM);
    assert_int_equal(glob(in_folder("bmuf-align-*"), 0, NULL, &left),
                     GLOB_NOMATCH);
}

static void test_a_data_directory_of_kaldi_is_aligned(void **state)
{
    const char *manifest =
        "{\"id\": \"s0\", \"audio\": \"test-0.wav\", \"text\": \"a\", "
        "\"start\": 0.05, \"duration\": 0.2}\n";
    outcome o;

    (void)state;
    assert_ok(bm_file_make_directory(in_folder("kaldi")));
    write_text("kaldi/wav.scp", "r0 ../test-0.wav\n");
    write_text("kaldi/segments", "s0 r0 0.05 0.25\n");
    write_text("kaldi/text", "s0 a\n");
    write_text("same.jsonl", manifest);
    o = BMUF("align", "run", "kaldi");
    assert_code(o, 0);
    assert_int_equal(strncmp(o.out, "s0 1 ", 5), 0);
    assert_string_equal(o.out, BMUF("align", "run", "same.jsonl").out);
}

static void test_what_is_read_is_not_replaced(void **state)
{
    static const char *const cases[][2] = {
        {"kept.jsonl", "./kept.jsonl"},
        {"kept.jsonl", "run/model-best.safetensors"},
        {"kept.jsonl", "run/config.ini"},
        {"test", "test/vocab.txt"},
        {"listed", "listed/text"},
        {"listed", "listed/wav.scp"},
    };
    const char *row = "{\"id\": \"u\", \"audio\": \"test-0.wav\", "
                      "\"text\": \"a b\"}\n";
    char *text = NULL;
    size_t n = 0;

    (void)state;
    write_text("kept.jsonl", row);
    assert_ok(bm_file_make_directory(in_folder("listed")));
    write_text("listed/wav.scp", "u ../test-0.wav\n");
    write_text("listed/text", "u a b\n");
    FOR_EACH (i, cases)
        assert_fails(BMUF("align", "run", cases[i][0], "--out", cases[i][1]),
                     73, cases[i][1], "give another file");
    text = slurp(in_folder("kept.jsonl"), &n);
    assert_string_equal(text, row);
    free(text);
    for (int turn = 0; turn < 2; turn++) /* its own output is replaced */
        assert_code(BMUF("align", "run", "test", "--out", "test/test.ctm"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_decode_writes_is_a_manifest),
        cmocka_unit_test(test_what_cannot_be_aligned_is_named_and_counted),
        cmocka_unit_test(test_sets_too_long_for_attention_are_refused),
        cmocka_unit_test(test_what_is_too_long_for_attention_is_left_out),
        cmocka_unit_test(test_manifests_are_aligned_as_their_sets),
        cmocka_unit_test(test_texts_with_unknown_symbols_are_counted),
        cmocka_unit_test(test_manifests_are_normalised_as_the_model_was),
        cmocka_unit_test(test_statistics_of_kaldi_need_a_packed_set),
        cmocka_unit_test(test_a_signal_leaves_nothing_in_tmpdir),
        cmocka_unit_test(test_a_data_directory_of_kaldi_is_aligned),
        cmocka_unit_test(test_what_is_read_is_not_replaced),
    };
    return cmocka_run_group_tests_name("alignment_inputs", tests, align_set_up,
                                       align_tear_down);
}
