/*
 * bmuf eval: compares its numbers with its transcripts, and both between
 * numbers of ranks and sizes of batches.
 */
#include "core/text/words.h"
#include "models/bootstrap.h"
#include "tests/support/command.h"
#include "tests/support/evaluations.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- errors -------------------------------------------------------------- */

typedef struct errors {
    int s, d, i;
} errors;

static int sum(errors e)
{
    return e.s + e.d + e.i;
}

/* By definition, from the ends of both. Of alignments with equal costs a match
 * or substitution is preferred, then a deletion. */
static errors align(const int *ref, size_t n, const int *hyp, size_t m)
{
    errors table[LONGEST][LONGEST] = {{{0}}};

    for (size_t i = 0; i <= n; i++)
        for (size_t j = 0; j <= m; j++) {
            errors best = {0}, other = {0};

            if (i == 0 && j == 0)
                continue;
            if (i > 0 && j > 0) {
                best = table[i - 1][j - 1];
                best.s += ref[i - 1] != hyp[j - 1];
            }
            if (i > 0) {
                other = table[i - 1][j];
                other.d++;
                if (j == 0 || sum(other) < sum(best))
                    best = other;
            }
            if (j > 0) {
                other = table[i][j - 1];
                other.i++;
                if (i == 0 || sum(other) < sum(best))
                    best = other;
            }
            table[i][j] = best;
        }
    return table[n][m];
}

static size_t as_letters(const char *text, int *out)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        out[n++] = (unsigned char)*text;
    return n;
}

/* Words are numbered in the order of first occurrence. */
static int number_of(const char *word, size_t length)
{
    static char known[200][LONGEST];
    static int n;

    for (int i = 0; i < n; i++)
        if (strlen(known[i]) == length && memcmp(known[i], word, length) == 0)
            return i;
    assert_true(n < 200 && length < LONGEST);
    memcpy(known[n], word, length);
    return n++;
}

static size_t as_words(const char *text, int *out)
{
    size_t n = 0;

    while (*(text += strspn(text, " ")) != '\0') {
        size_t length = strcspn(text, " ");

        out[n++] = number_of(text, length);
        text += length;
    }
    return n;
}

static errors compare(const char *ref, const char *hyp,
                      size_t (*as)(const char *, int *), size_t *n)
{
    int a[LONGEST], b[LONGEST];

    *n = as(ref, a);
    return align(a, *n, b, as(hyp, b));
}

static void test_errors_are_those_of_the_transcripts(void **_)
{
    char words[N][LONGEST];
    json_t *result = evaluate("test", "half.trn");
    errors all = {0}, of_words = {0};
    double labels = 0, n_words = 0, wrong = 0, frames = 0;

    (void)_;
    read_trn("half.trn", words);
    for (size_t i = 0; i < N; i++) {
        size_t n = 0;
        errors e = compare(speech_text(i), words[i], as_letters, &n);

        labels += (double)n;
        wrong += sum(e) > 0;
        all = (errors){all.s + e.s, all.d + e.d, all.i + e.i};
        e = compare(speech_text(i), words[i], as_words, &n);
        of_words =
            (errors){of_words.s + e.s, of_words.d + e.d, of_words.i + e.i};
        n_words += (double)n;
        frames += (double)speech_frames(i);
    }
    assert_true(sum(all) > 0 && sum(all) < labels); /* else nothing is tested */
    assert_true(number(result, "labels") == labels);
    assert_true(number(result, "substitutions") == all.s);
    assert_true(number(result, "deletions") == all.d);
    assert_true(number(result, "insertions") == all.i);
    assert_true(near(number(result, "ler"), sum(all) / labels, 1e-8));
    assert_true(number(result, "words") == n_words);
    assert_true(number(result, "word_errors") == sum(of_words));
    assert_true(number(result, "word_substitutions") == of_words.s);
    assert_true(number(result, "word_deletions") == of_words.d);
    assert_true(number(result, "word_insertions") == of_words.i);
    assert_true(near(number(result, "wer"), sum(of_words) / n_words, 1e-8));
    assert_true(number(result, "sequences") == N);
    assert_true(number(result, "wrong") == wrong);
    assert_true(number(result, "frames") == frames);
    assert_true(number(result, "skipped") == 0);
    assert_true(number(result, "seconds") > 0);
    json_decref(result);
}

/* An end of an interval. */
static double bound(const json_t *result, const char *key, size_t end)
{
    const json_t *of = json_array_get(json_object_get(result, key), end);

    assert_true(json_is_number(of));
    return json_number_value(of);
}

/* The errors of each transcript, drawn again. */
static void test_intervals_are_those_of_the_transcripts(void **_)
{
    char words[N][LONGEST];
    json_t *result = evaluate("test", "drawn.trn");
    bm_error_count labels[N], of_words[N];
    bm_interval i = {0};

    (void)_;
    read_trn("drawn.trn", words);
    for (size_t k = 0; k < N; k++) {
        size_t n = 0;

        labels[k].errors =
            sum(compare(speech_text(k), words[k], as_letters, &n));
        labels[k].total = (double)n;
        of_words[k].errors =
            sum(compare(speech_text(k), words[k], as_words, &n));
        of_words[k].total = (double)n;
    }
    assert_ok(bm_bootstrap(labels, N, &i));
    assert_true(i.low < i.rate && i.rate < i.high);
    assert_true(near(bound(result, "ler_95", 0), i.low, 1e-8));
    assert_true(near(bound(result, "ler_95", 1), i.high, 1e-8));
    assert_ok(bm_bootstrap(of_words, N, &i));
    assert_true(near(bound(result, "wer_95", 0), i.low, 1e-8));
    assert_true(near(bound(result, "wer_95", 1), i.high, 1e-8));
    json_decref(result);
}

/* Sequence k is of speaker k % 3 (make_speech). */
static void test_drawn_speakers_bring_all_of_their_sequences(void **_)
{
    enum { SPEAKERS = 3 };
    json_t *drawn = result_of(BMUF("eval", "half.safetensors", "test", "--json",
                                   "--hyp", "s.trn", "--draw", "speakers"));
    json_t *plain = evaluate("test", "s.trn");
    char words[N][LONGEST];
    bm_error_count of[SPEAKERS] = {{0}};
    bm_interval i = {0};
    outcome o = BMUF("eval", "half.safetensors", "test", "--draw", "speakers");

    (void)_;
    read_trn("s.trn", words);
    for (size_t k = 0; k < N; k++) {
        size_t n = 0;

        of[k % SPEAKERS].errors +=
            sum(compare(speech_text(k), words[k], as_letters, &n));
        of[k % SPEAKERS].total += (double)n;
    }
    assert_ok(bm_bootstrap(of, SPEAKERS, &i));
    assert_true(near(bound(drawn, "ler_95", 0), i.low, 1e-8));
    assert_true(near(bound(drawn, "ler_95", 1), i.high, 1e-8));
    assert_true(number(drawn, "ler") == number(plain, "ler"));
    assert_string_equal(text(drawn, "draw"), "speakers");
    assert_string_equal(text(plain, "draw"), "sequences");
    assert_true(number(plain, "speakers") == SPEAKERS);
    assert_says(o.out, "intervals       from draws of 3 speakers\n");
    assert_says(o.err, "from 3 speakers is unreliable");
    assert_says(
        BMUF("eval", "half.safetensors", "test").out,
        "intervals       from draws of sequences; --draw speakers draws "
        "the 3 speakers\n");
    json_decref(drawn);
    json_decref(plain);
}

static void test_speakers_that_are_unknown_cannot_be_drawn(void **_)
{
    outcome o;

    (void)_;
    write_manifest("nobody.jsonl", 0, 4, 4);
    pack_speech("nobody.jsonl", "nobody", "train", "features.dither=0");
    o = BMUF("eval", "half.safetensors", "nobody", "--json");
    assert_code(o, 0);
    assert_says(o.out, "\"speakers\": null");
    assert_int_equal(
        count_of(BMUF("eval", "half.safetensors", "nobody").out, "draws"), 0);
    assert_fails(
        BMUF("eval", "half.safetensors", "nobody", "--draw", "speakers"), 65,
        "nobody: test-0 has no speaker", "pack the set again", "\"speaker\"");
    assert_fails(BMUF("eval", "half.safetensors", "test", "--draw", "words"),
                 64, "--draw", "sequences");
}

static bm_counted counted(const json_t *result, const char *key,
                          const char *noun)
{
    return bm_count_noun((long long)number(result, key), noun);
}

static void test_the_table_has_the_same_numbers(void **_)
{
    json_t *result = evaluate("test", "table.trn");
    outcome o = BMUF("eval", "half.safetensors", "test");
    char line[500];

    (void)_;
    assert_code(o, 0);
    snprintf(line, sizeof line,
             "label errors    %.2f %%  (95 %%: %.2f to %.2f; %.0f "
             "substitutions, %.0f deletions, %.0f insertions in %.0f)\n",
             100 * number(result, "ler"), 100 * bound(result, "ler_95", 0),
             100 * bound(result, "ler_95", 1), number(result, "substitutions"),
             number(result, "deletions"), number(result, "insertions"),
             number(result, "labels"));
    assert_says(o.out, line);
    snprintf(line, sizeof line,
             "word errors     %.2f %%  (95 %%: %.2f to %.2f; "
             "%s, %s, %s in %.0f)\n",
             100 * number(result, "wer"), 100 * bound(result, "wer_95", 0),
             100 * bound(result, "wer_95", 1),
             counted(result, "word_substitutions", "substitution").text,
             counted(result, "word_deletions", "deletion").text,
             counted(result, "word_insertions", "insertion").text,
             number(result, "words"));
    assert_says(o.out, line);
    snprintf(line, sizeof line, "loss            %.6g nats per sequence\n",
             number(result, "loss"));
    assert_says(o.out, line);
    json_decref(result);
}

static void test_with_words_as_labels_ler_is_wer(void **_)
{
    outcome o;
    json_t *result = NULL;

    (void)_;
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "words",
                     "--units", "words", "--set", "features.mels=8", "--set",
                     "shard.unit_frames=100"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "wrun", "--set",
                     "data.train=words", "--set", "data.dev=words", "--set",
                     "train.epochs=4"),
                0);
    o = BMUF("eval", "wrun/model.safetensors", "words", "--json", "--hyp",
             "w.trn");
    assert_code(o, 0);
    result = json_loads(o.out, 0, NULL);
    assert_true(number(result, "words") > 0);
    assert_true(number(result, "words") == number(result, "labels"));
    assert_true(number(result, "wer") == number(result, "ler"));
    json_decref(result);
}

/* ---- ranks, batches ------------------------------------------------------ */

static void test_ranks_do_not_change_a_number(void **_)
{
    outcome one =
        BMUF("eval", "half.safetensors", "test", "--json", "--hyp", "one.trn");
    outcome two = BMUF("eval", "half.safetensors", "test", "--json", "--hyp",
                       "two.trn", "-n", "2");
    outcome three = BMUF_ON(3, "eval", "half.safetensors", "test", "--json",
                            "--hyp", "three.trn");

    (void)_;
    assert_code(one, 0);
    assert_code(two, 0);
    assert_code(three, 0);
    assert_same_result(one.out, two.out);
    assert_same_result(one.out, three.out);
    assert_string_equal(read_file("one.trn"), read_file("two.trn"));
    assert_string_equal(read_file("one.trn"), read_file("three.trn"));
}

/* With --hyp - stdout has the transcripts alone, and stderr the scores. */
static void test_transcripts_go_to_stdout(void **_)
{
    outcome o = BMUF("eval", "half.safetensors", "test", "--hyp", "-");
    char *file = NULL;
    size_t size = 0;

    (void)_;
    assert_code(o, 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "f.trn"), 0);
    file = slurp(in_folder("f.trn"), &size);
    assert_string_equal(o.out, file);
    assert_says(o.err, "sequences       21, ");
    assert_says(o.err, "label errors ");
    free(file);
    assert_fails(
        BMUF("eval", "half.safetensors", "test", "--hyp", "-", "--json"), 64,
        "--hyp - and --json both print to stdout");
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "x.txt"),
                 64, "--dump x.txt", ".npz");
    assert_int_equal(access(in_folder("x.txt"), F_OK), -1);
    assert_fails(BMUF("eval", "half.safetensors", "test", "--dump", "no/x.npz"),
                 73, "no/x.npz");
}

static void test_batches_do_not_change_transcripts(void **_)
{
    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "a.trn"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "b.trn",
                     "--set", "batch.sequences=1"),
                0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "c.trn",
                     "--set", "batch.frames=200"),
                0);
    assert_string_equal(read_file("a.trn"), read_file("b.trn"));
    assert_string_equal(read_file("a.trn"), read_file("c.trn"));
}

/* ---- infeasible sequences, sequences without a reference ----------------- */

/* Seven labels, one repeated, in 9 frames that stack:2 makes of 18 - and eight
 * with two repeats, which need ten. */
static void test_infeasible_sequences_are_counted(void **_)
{
    json_t *result = NULL;

    (void)_;
    write_speech("short.wav", "ab");
    write_text("short.jsonl",
               "{\"id\": \"u\", \"audio\": \"short.wav\", \"text\": "
               "\"aabcbac\"}\n"
               "{\"id\": \"v\", \"audio\": \"short.wav\", \"text\": "
               "\"aabbcbac\"}\n");
    assert_code(BMUF("pack", "--audio", "short.jsonl", "--out", "short",
                     "--vocab", "train", "--set", "features.mels=8"),
                0);
    assert_says(BMUF("eval", "half.safetensors", "short").err,
                "v: 8 labels with 2 repeats do not fit into 9 frames, "
                "skipped");
    assert_says(BMUF("eval", "half.safetensors", "short").out,
                "skipped         1 sequence infeasible or not finite");
    result = result_of(BMUF("eval", "half.safetensors", "short", "--json"));
    assert_true(number(result, "skipped") == 1);
    assert_true(number(result, "sequences") == 2);
    assert_true(number(result, "labels") == 15);
    json_decref(result);
}

/* Packs sequences without texts, and puts their shard beside those of a set. */
static void add_without_texts(const char *manifest, const char *set)
{
    char to[64], *from = strdup(in_folder("rest/rest-00000.bmuf.h5"));

    assert_code(BMUF("pack", "--audio", manifest, "--out", "rest", "--name",
                     "rest", "--vocab", "train", "--set", "features.mels=8",
                     "--set", "features.dither=0"),
                0);
    snprintf(to, sizeof to, "%s/rest-00000.bmuf.h5", set);
    assert_int_equal(rename(from, in_folder(to)), 0);
    free(from);
}

static bool is_null(const json_t *object, const char *key)
{
    return json_is_null(json_object_get(object, key));
}

static void test_without_references_there_are_no_rates(void **_)
{
    json_t *result = NULL;
    outcome o;

    (void)_;
    write_manifest("mute.jsonl", 0, 0, N);
    pack_speech("mute.jsonl", "mute", "train", "features.dither=0");
    o = BMUF("eval", "half.safetensors", "mute", "--hyp", "mute.trn");
    assert_code(o, 0);
    assert_says(o.out, "sequences       21, none with a reference: no loss, no "
                       "error rates\n");
    assert_int_equal(count_of(o.out, "%"), 0);
    assert_int_equal(count_of(o.out, "nats"), 0);
    assert_code(BMUF("eval", "half.safetensors", "test", "--hyp", "heard.trn"),
                0);
    assert_string_equal(read_file("mute.trn"), read_file("heard.trn"));
    result = evaluate("mute", "mute.trn");
    assert_true(is_null(result, "loss") && is_null(result, "ler") &&
                is_null(result, "wer"));
    assert_true(number(result, "sequences") == N);
    assert_true(number(result, "references") == 0);
    assert_true(number(result, "insertions") == 0);
    assert_true(number(result, "wrong") == 0);
    json_decref(result);
    assert_fails(
        BMUF("train", "tiny.ini", "--out", "none", "--set", "data.dev=mute"),
        65, "mute has no labels", "pack it with texts");
    assert_int_equal(BMUF("explain", "tiny.ini", "--set", "data.dev=mute").code,
                     65);
}

/* Some sequences without references: the others count as they do alone. */
static void test_sequences_without_references_do_not_count(void **_)
{
    static const char *const keys[] = {
        "labels", "substitutions", "deletions", "insertions",
        "words",  "word_errors",   "wrong",     "references"};
    json_t *mixed = NULL, *alone = NULL;
    outcome o;

    (void)_;
    write_manifest("mixed.jsonl", 0, 8, 8);
    pack_speech("mixed.jsonl", "mixed", "train", "features.dither=0");
    write_manifest("rest.jsonl", 8, 8, N);
    add_without_texts("rest.jsonl", "mixed");
    write_manifest("alone.jsonl", 0, 8, 8);
    pack_speech("alone.jsonl", "alone", "train", "features.dither=0");
    mixed = evaluate("mixed", "m.trn");
    alone = evaluate("alone", "m.trn");
    FOR_EACH (k, keys)
        assert_true(number(mixed, keys[k]) == number(alone, keys[k]));
    assert_true(number(mixed, "references") == 8);
    assert_true(number(mixed, "sequences") == N);
    assert_true(near(number(mixed, "loss"), number(alone, "loss"), 1e-5));
    o = BMUF("eval", "half.safetensors", "mixed");
    assert_says(o.out, "sequences       21, 13 without a reference; ");
    json_decref(mixed);
    json_decref(alone);
}

/* Nothing spoken is a reference; nothing known is none. */
static void test_an_empty_text_is_a_reference(void **_)
{
    json_t *result = NULL;

    (void)_;
    write_text("silent.jsonl",
               "{\"id\": \"u\", \"audio\": \"test-0.wav\", \"text\": \"\"}\n");
    pack_speech("silent.jsonl", "silent", "train", "features.dither=0");
    write_text("rest.jsonl", "{\"id\": \"v\", \"audio\": \"test-0.wav\"}\n");
    add_without_texts("rest.jsonl", "silent");
    result = evaluate("silent", "s.trn");
    assert_true(number(result, "sequences") == 2);
    assert_true(number(result, "references") == 1);
    assert_true(number(result, "wrong") == 1);
    assert_true(number(result, "insertions") > 0);
    assert_true(is_null(result, "ler"));
    assert_true(number(result, "loss") > 0);
    json_decref(result);
}

/* ---- runs ---------------------------------------------------------------- */

static void test_of_a_run_the_best_model_is_scored(void **_)
{
    json_t *result = NULL, *best = NULL;
    outcome o;

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "whole-run"), 0);
    best = last_event("whole-run", "best");
    result = result_of(BMUF("eval", "whole-run", "test", "--json"));
    assert_string_equal(text(result, "model"),
                        "whole-run/model-best.safetensors");
    assert_true(near(number(result, "ler"), number(best, "ler"), 1e-8));
    json_decref(result);
    json_decref(best);
    assert_says(BMUF("eval", "whole-run/", "test").out,
                "model           whole-run/model-best.safetensors\n");
    assert_says(BMUF("eval", "whole-run/model.safetensors", "test").out,
                "model           whole-run/model.safetensors\n");
    assert_int_equal(unlink(in_folder("whole-run/model-best.safetensors")), 0);
    o = BMUF("eval", "whole-run", "test");
    assert_code(o, 0);
    assert_says(o.out, "model           whole-run/model.safetensors\n");
    assert_int_equal(mkdir(in_folder("no-run"), 0777), 0);
    assert_fails(BMUF("eval", "no-run", "test"), 66,
                 "no-run has neither model-best.safetensors nor "
                 "model.safetensors");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_transcripts_go_to_stdout),
        cmocka_unit_test(test_errors_are_those_of_the_transcripts),
        cmocka_unit_test(test_intervals_are_those_of_the_transcripts),
        cmocka_unit_test(test_drawn_speakers_bring_all_of_their_sequences),
        cmocka_unit_test(test_speakers_that_are_unknown_cannot_be_drawn),
        cmocka_unit_test(test_the_table_has_the_same_numbers),
        cmocka_unit_test(test_ranks_do_not_change_a_number),
        cmocka_unit_test(test_batches_do_not_change_transcripts),
        cmocka_unit_test(test_infeasible_sequences_are_counted),
        cmocka_unit_test(test_without_references_there_are_no_rates),
        cmocka_unit_test(test_sequences_without_references_do_not_count),
        cmocka_unit_test(test_an_empty_text_is_a_reference),
        cmocka_unit_test(test_of_a_run_the_best_model_is_scored),
        cmocka_unit_test(test_with_words_as_labels_ler_is_wer),
    };
    return cmocka_run_group_tests_name("eval", tests, make_half_trained,
                                       folder_remove);
}
