/*
 * What bmuf decode hears: times and confidences by the logits of bmuf eval, the
 * same words in files and packed sets, alternatives, and options of the search.
 */
#include "tests/cli/decode/decoding.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An output frame of stack:2 in seconds. */
static const double frame = 0.02;

/* ---- numbers ------------------------------------------------------------- */

/* Words of the best path of the logits, by definition: classes blank, space, a,
 * b, c. Returns how many. */
typedef struct spoken {
    char text[32];
    size_t first, last;
    double log_p;
    size_t letters;
} spoken;

static double log_posterior(const float *y, size_t n, size_t c)
{
    double sum = 0;

    for (size_t k = 0; k < n; k++)
        sum += exp((double)y[k] - (double)y[c]);
    return -log(sum);
}

/* The most probable class of a frame, *p its log probability. */
static size_t best_of(const dump_array *a, size_t t, double *p)
{
    const float *y = a->x + t * a->columns;
    size_t c = 0;

    for (size_t k = 1; k < a->columns; k++)
        c = y[k] > y[c] ? k : c;
    *p = log_posterior(y, a->columns, c);
    return c;
}

static size_t words_of(const dump_array *a, spoken *words)
{
    size_t n = 0, before = 0;
    bool within = false;
    double best_of_letter = 0;

    for (size_t t = 0; t < a->rows; t++) {
        double p = 0;
        size_t c = best_of(a, t, &p);

        if (c == 1)
            within = false;
        if (c > 1 && c == before) {
            spoken *w = &words[n - 1];

            w->last = t;
            if (p > best_of_letter)
                w->log_p += p - best_of_letter;
            best_of_letter = fmax(best_of_letter, p);
        } else if (c > 1) {
            if (!within)
                words[n++] = (spoken){.first = t};
            within = true;
            words[n - 1].text[words[n - 1].letters++] = "  abc"[c];
            words[n - 1].last = t;
            words[n - 1].log_p += p;
            best_of_letter = p;
        }
        before = c;
    }
    return n;
}

static void check_words(const json_t *o, const dump_array *a)
{
    const json_t *words = json_object_get(o, "words");
    spoken expected[32] = {{{0}, 0, 0, 0, 0}};
    size_t n = words_of(a, expected);
    double length = number(o, "length");

    assert_int_equal(json_array_size(words), n);
    for (size_t i = 0; i < n; i++) {
        const json_t *w = json_array_get(words, i);
        const spoken *e = &expected[i];

        assert_string_equal(text(w, "word"), e->text);
        assert_true(near(number(w, "start"), (double)e->first * frame, 1e-9));
        assert_true(near(number(w, "end"),
                         fmin((double)(e->last + 1) * frame, length), 1e-9));
        assert_true(near(number(w, "confidence"), exp(e->log_p), 1e-4));
    }
}

/* Of labels, spaces among them: the geometric mean of each one's largest
 * probability, a label being a run of frames with one class. */
static double confidence_of(const dump_array *a)
{
    size_t n = 0, before = 0;
    double sum = 0, largest = 0;

    for (size_t t = 0; t <= a->rows; t++) {
        double p = 0;
        size_t c = t < a->rows ? best_of(a, t, &p) : 0;

        if (c != before && before != 0) {
            sum += largest;
            n++;
        }
        largest = c == before ? fmax(largest, p) : p;
        before = c;
    }
    return exp(sum / (double)n);
}

static void test_times_and_confidences_are_those_of_the_logits(void **_)
{
    const char *all = DECODE("test.jsonl", "--format", "json");
    dump d = {0};

    (void)_;
    assert_code(BMUF("eval", "half.safetensors", "test", "--dump", "d.npz"), 0);
    d = dump_read("d.npz");
    assert_int_equal(count_of(all, "\n"), N);
    for (size_t i = 0; i < N; i++) {
        json_t *o = parse_json(line_of(all, i));

        check_words(o, dump_find(&d, text(o, "id")));
        assert_true(near(number(o, "confidence"),
                         confidence_of(dump_find(&d, text(o, "id"))), 1e-4));
        assert_string_equal(text(o, "unit"), "s");
        json_decref(o);
    }
    dump_free(&d);
}

/* As features are normalised by numbers of the training set, have slopes and
 * are stacked: those of files are those that were packed. */
static void test_files_have_the_features_of_packed_sets(void **_)
{
    static const struct {
        const char *name, *settings[3];
    } all[] = {
        {"global",
         {"features.normalise=global", "features.deltas=1", "features.mels=8"}},
        {"plain",
         {"features.normalise=none", "features.subsample=2",
          "features.stack=2"}},
        {"speaker",
         {"features.normalise=speaker", "features.snip_edges=no",
          "features.mels=8"}},
        {"pitch",
         {"features.pitch=yes", "features.deltas=1", "features.mels=8"}},
        {"cepstra",
         {"features.cepstra=5", "features.energy=yes", "features.deltas=2"}},
    };

    (void)_;
    FOR_EACH (i, all) {
        const char *const *s = all[i].settings;
        char data[64];
        const char *packed = NULL, *files = NULL;

        write_text("own.jsonl", "{\"id\": \"x\", \"audio\": \"test-2.wav\", "
                                "\"text\": \"b\", \"speaker\": \"s\"}\n");
        assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", all[i].name,
                         "--set", s[0], "--set", s[1], "--set", s[2]),
                    0);
        snprintf(data, sizeof data, "data.train=%s", all[i].name);
        assert_code(BMUF("train", "tiny.ini", "--out", "other", "--set", data,
                         "--set", "data.dev=", "--set", "train.epochs=1"),
                    0);
        assert_code(BMUF("pack", "--audio", "own.jsonl", "--out", "own",
                         "--force", "--vocab", all[i].name, "--set", s[0],
                         "--set", s[1], "--set", s[2]),
                    0);
        packed = printed(BMUF("decode", "other", "own", "--nbest", "3"));
        files = printed(BMUF("decode", "other", "own.jsonl", "--nbest", "3"));
        assert_string_equal(packed, files);
        /* A run has the vocabulary and the means of its training set. */
        assert_code(BMUF("pack", "--audio", "own.jsonl", "--out", "own",
                         "--force", "--vocab", "other", "--set", s[0], "--set",
                         s[1], "--set", s[2]),
                    0);
        files = printed(BMUF("decode", "other", "own", "--nbest", "3"));
        assert_string_equal(packed, files);
        run_tool((char *[]){"rm", "-r", (char *)in_folder("other"), NULL});
    }
}

/* At 22050 Hz a shift of 10 ms is 220 samples, no whole number of microseconds. */
static void test_times_of_a_set_do_not_drift(void **_)
{
    const double shift = 220 / 22050.;
    json_t *o = NULL;
    double length = 0;

    (void)_;
    write_text("hour.jsonl", "{\"id\": \"x\", \"audio\": \"long.wav\", "
                             "\"text\": \"b\"}\n");
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "fine", "--set",
                     "features.rate=22050", "--set", "features.mels=8"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "fine-run", "--set",
                     "data.train=fine", "--set", "data.dev=", "--set",
                     "train.epochs=1"),
                0);
    assert_code(BMUF("pack", "--audio", "hour.jsonl", "--out", "hour",
                     "--vocab", "fine", "--set", "features.rate=22050", "--set",
                     "features.mels=8"),
                0);
    o = parse_json(
        printed(BMUF("decode", "fine-run", "hour", "--format", "json")));
    length = number(o, "length");
    assert_true(length > 10);
    assert_true(fabs(length - round(length / shift) * shift) < 1e-4);
    json_decref(o);
}

static void test_alternatives_are_in_order(void **_)
{
    json_t *o =
        parse_json(DECODE("test-3.wav", "--nbest", "4", "--format", "json"));
    const json_t *all = json_object_get(o, "nbest");
    const char *lines = DECODE("test-3.wav", "--nbest", "4");

    (void)_;
    assert_int_equal(json_array_size(all), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *one = json_array_get(all, i);
        char line[200];

        snprintf(line, sizeof line, "%.4f\t%s", number(one, "score"),
                 text(one, "text"));
        assert_string_equal(line_of(lines, i), line);
        if (i > 0)
            assert_true(number(one, "score") <=
                        number(json_array_get(all, i - 1), "score"));
    }
    assert_string_equal(text(o, "text"), text(json_array_get(all, 0), "text"));
    json_decref(o);
}

static void test_more_readings_than_hypotheses_are_warned_of(void **_)
{
    (void)_;
    assert_says(
        BMUF("decode", "run", "test-3.wav", "--nbest", "4", "--beam", "2").err,
        "--beam 4 or more");
    assert_null(strstr(
        BMUF("decode", "run", "test-3.wav", "--nbest", "2", "--beam", "2").err,
        "or more"));
}

/* ---- search -------------------------------------------------------------- */

/* Every word is one of the lexicon; a word that is preferred is found more
 * often; a wider beam has no lower score. */
static void test_options_of_the_search_reach_it(void **_)
{
    const char *hot = NULL, *plain = NULL;
    json_t *narrow =
        parse_json(DECODE("test-3.wav", "--beam", "2", "--format", "json"));
    json_t *wide =
        parse_json(DECODE("test-3.wav", "--beam", "50", "--format", "json"));
    char *words = NULL, *rest = NULL;

    (void)_;
    write_text("words.lex", "ab\ncc\n");
    words = strdup(
        DECODE("test", "--lexicon", "words.lex", "--unknown-score", "-inf"));
    assert_non_null(words);
    for (char *w = strtok_r(words, " \n", &rest); w != NULL;
         w = strtok_r(NULL, " \n", &rest))
        assert_true(strcmp(w, "ab") == 0 || strcmp(w, "cc") == 0);
    free(words);
    plain = DECODE("test", "--beam", "20");
    hot = DECODE("test", "--beam", "20", "--hot-word", "cab=20");
    assert_true(count_of(hot, "cab") > count_of(plain, "cab"));
    assert_true(number(wide, "score") >= number(narrow, "score"));
    json_decref(narrow);
    json_decref(wide);
    assert_fails(BMUF("decode", "half.safetensors", "test", "--lm", "no.lm"),
                 66, "no.lm");
    assert_fails(BMUF("decode", "half.safetensors", "test", "--lm-weight", "x"),
                 64, "--lm-weight x is not a number in [0, 1000]");
    assert_fails(BMUF("decode", "half.safetensors", "test", "--priors", "train",
                      "--blank-scale", "0"),
                 64, "the blank scale is greater than 0, not 0");
}

static void test_options_without_what_they_are_about_are_refused(void **_)
{
    static const struct {
        const char *option, *remedy;
    } all[] = {
        {"--lm-weight", "--lm-weight requires --lm FILE"},
        {"--word-score", "--word-score requires --lm FILE or --lexicon FILE"},
        {"--unknown-score",
         "--unknown-score requires --lm FILE or --lexicon FILE"},
        {"--prior-scale", "--prior-scale requires --priors DIR"},
        {"--blank-scale", "--blank-scale requires --priors DIR"},
        {"--hot-boost",
         "--hot-boost requires --hot-words FILE or --hot-word WORDS"},
    };

    (void)_;
    FOR_EACH (i, all)
        assert_fails(
            BMUF("decode", "half.safetensors", "test", all[i].option, "1"), 64,
            all[i].remedy);
    write_text("words.lex", "ab\ncc\n");
    assert_code(BMUF("decode", "half.safetensors", "test", "--lexicon",
                     "words.lex", "--word-score", "1", "--unknown-score", "-2",
                     "--hot-word", "ab", "--hot-boost", "3"),
                0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_and_confidences_are_those_of_the_logits),
        cmocka_unit_test(test_files_have_the_features_of_packed_sets),
        cmocka_unit_test(test_times_of_a_set_do_not_drift),
        cmocka_unit_test(test_alternatives_are_in_order),
        cmocka_unit_test(test_more_readings_than_hypotheses_are_warned_of),
        cmocka_unit_test(test_options_of_the_search_reach_it),
        cmocka_unit_test(test_options_without_what_they_are_about_are_refused),
    };

    return cmocka_run_group_tests_name("decode_results", tests,
                                       make_decode_inputs, folder_remove);
}
