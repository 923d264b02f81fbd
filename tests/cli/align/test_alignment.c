/* bmuf align: times against those at which a corpus of tones has its letters,
 * against the alignment of the dumped logits, and between formats, ranks and
 * threads. */
#include "models/align.h"
#include "tests/cli/align/aligned.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Letter k of a text sounds from k to k + 1 tenths of a second. */
static void test_letters_are_where_they_sound(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        const char *spoken = speech_text(i);
        const json_t *labels = json_object_get(aligned[i], "labels");
        char id[32];

        snprintf(id, sizeof id, "test-%zu", i);
        assert_string_equal(text(aligned[i], "id"), id);
        assert_true(number(aligned[i], "frames") == (double)speech_frames(i));
        assert_int_equal(json_array_size(labels), strlen(spoken));
        for (size_t k = 0; k < strlen(spoken); k++) {
            const json_t *label = json_array_get(labels, k);
            double start = number(label, "start"), end = number(label, "end");
            char symbol[2] = {spoken[k], '\0'};

            assert_string_equal(text(label, "label"),
                                spoken[k] == ' ' ? "<space>" : symbol);
            assert_true((start + end) / 2 > 0.1 * (double)k - 0.01);
            assert_true((start + end) / 2 < 0.1 * (double)k + 0.11);
            assert_true(start < end && end - start < 0.13);
            assert_true(number(label, "confidence") > 0.2 &&
                        number(label, "confidence") <= 1);
        }
    }
}

static void test_words_are_runs_of_letters(void **state)
{
    (void)state;
    for (size_t i = 0; i < N; i++) {
        const json_t *labels = json_object_get(aligned[i], "labels");
        const json_t *words = json_object_get(aligned[i], "words");
        const char *spoken = speech_text(i);
        size_t n = 0, at = 0;

        for (; spoken[at] != '\0'; n++) {
            size_t length = strcspn(spoken + at, " ");
            const json_t *word = json_array_get(words, n);
            const json_t *first = json_array_get(labels, at);
            const json_t *last = json_array_get(labels, at + length - 1);

            assert_int_equal(strlen(text(word, "word")), length);
            assert_memory_equal(text(word, "word"), spoken + at, length);
            assert_true(number(word, "start") == number(first, "start"));
            assert_true(number(word, "end") == number(last, "end"));
            at += length;
            at += strspn(spoken + at, " ");
        }
        assert_int_equal(json_array_size(words), n);
    }
}

static size_t encode(const char *spoken, int32_t *labels)
{
    size_t n = 0;

    for (; spoken[n] != '\0'; n++)
        labels[n] = (int32_t)(strchr(symbols, spoken[n]) - symbols);
    return n;
}

/* Output frame k of the network is stored frames 3 k to 3 k + 2, the last one
 * as far as there are frames. */
static void test_frames_are_those_of_the_logits(void **state)
{
    dump d = {0};
    size_t cut = 0;

    (void)state;
    assert_code(BMUF("eval", "run", "test", "--dump", "l.npz"), 0);
    d = dump_read("l.npz");
    for (size_t i = 0; i < N; i++) {
        const dump_array *a = dump_find(&d, text(aligned[i], "id"));
        const json_t *list = json_object_get(aligned[i], "labels");
        size_t frames = speech_frames(i);
        bm_label_span spans[20];
        int32_t labels[20];
        double score = 0;
        size_t n = encode(speech_text(i), labels);

        assert_ok(bm_ctc_align(a->x, a->rows, a->columns, CLASSES, labels, n,
                               spans, &score));
        assert_true(near(number(aligned[i], "score"), score, 1e-5));
        for (size_t k = 0; k < n; k++) {
            const json_t *label = json_array_get(list, k);
            size_t end = STRIDE * ((size_t)spans[k].last + 1);

            cut += end > frames;
            end = end > frames ? frames : end;
            assert_true(number(label, "first_frame") ==
                        STRIDE * spans[k].first);
            assert_true(number(label, "end_frame") == (double)end);
            assert_true(near(number(label, "start"),
                             0.01 * STRIDE * spans[k].first, 1e-9));
            assert_true(near(number(label, "end"), 0.01 * (double)end, 1e-9));
            assert_true(
                near(number(label, "confidence"), exp(spans[k].log_p), 1e-5));
        }
    }
    assert_true(cut > 0); /* lengths that 3 does not divide */
    dump_free(&d);
}

static void test_ctm_has_the_same_words(void **state)
{
    outcome o = BMUF("align", "run", "test", "--out", "words.ctm");
    char *ctm = NULL, *rest = NULL, *line = NULL;
    size_t size = 0;

    (void)state;
    assert_code(o, 0);
    assert_string_equal(o.out, "");
    ctm = slurp(in_folder("words.ctm"), &size);
    line = strtok_r(ctm, "\n", &rest);
    for (size_t i = 0; i < N; i++) {
        const json_t *words = json_object_get(aligned[i], "words");

        for (size_t k = 0; k < json_array_size(words); k++) {
            const json_t *word = json_array_get(words, k);
            char id[32], channel[8], heard[32];
            double start = 0, duration = 0, confidence = 0;
            int end = 0;

            assert_non_null(line);
            assert_int_equal(sscanf(line, "%31s %7s %lf %lf %31s %lf%n", id,
                                    channel, &start, &duration, heard,
                                    &confidence, &end),
                             6);
            assert_int_equal(strlen(line), end);
            assert_string_equal(id, text(aligned[i], "id"));
            assert_string_equal(channel, "1");
            assert_string_equal(heard, text(word, "word"));
            assert_true(fabs(start - number(word, "start")) < 0.00051);
            assert_true(fabs(start + duration - number(word, "end")) < 0.00051);
            assert_true(fabs(confidence - number(word, "confidence")) < 6e-5);
            line = strtok_r(NULL, "\n", &rest);
        }
    }
    assert_null(line);
    free(ctm);
    assert_says(BMUF("align", "run", "test", "--level", "labels").out,
                " <space> ");
}

/* Reads "key = value" or "key = "value"" lines in order. */
static const char *next_value(char **at, const char *key)
{
    char *line = strtok_r(NULL, "\n", at);

    assert_non_null(line);
    line += strspn(line, " ");
    assert_memory_equal(line, key, strlen(key));
    return line + strlen(key);
}

static void check_tier(char **at, const char *name, const char *noun,
                       const json_t *pieces, double length)
{
    size_t n = 0, k = 0;
    double time = 0;

    next_value(at, "item [");
    next_value(at, "class = \"IntervalTier\"");
    assert_memory_equal(next_value(at, "name = \""), name, strlen(name));
    next_value(at, "xmin = 0");
    assert_true(near(strtod(next_value(at, "xmax = "), NULL), length, 1e-9));
    n = strtoul(next_value(at, "intervals: size = "), NULL, 10);
    for (size_t i = 1; i <= n; i++) {
        const json_t *piece = json_array_get(pieces, k);
        const char *words = NULL;
        double start = 0, end = 0;

        assert_int_equal(strtoul(next_value(at, "intervals ["), NULL, 10), i);
        start = strtod(next_value(at, "xmin = "), NULL);
        end = strtod(next_value(at, "xmax = "), NULL);
        words = next_value(at, "text = \"");
        assert_true(start == time && end > start); /* without a gap */
        time = end;
        if (words[0] == '"')
            continue;
        assert_memory_equal(words, text(piece, noun),
                            strlen(text(piece, noun)));
        assert_true(near(start, number(piece, "start"), 1e-6));
        assert_true(near(end, number(piece, "end"), 1e-6));
        k++;
    }
    assert_true(near(time, length, 1e-9));
    assert_int_equal(k, json_array_size(pieces));
}

static void test_textgrids_cover_the_recordings(void **state)
{
    (void)state;
    assert_code(
        BMUF("align", "run", "test", "--format", "textgrid", "--out", "grids"),
        0);
    for (size_t i = 0; i < N; i++) {
        double length = number(aligned[i], "length");
        char name[64], *grid = NULL, *at = NULL;
        size_t size = 0;

        snprintf(name, sizeof name, "grids/test-%zu.TextGrid", i);
        grid = slurp(in_folder(name), &size);
        assert_string_equal(strtok_r(grid, "\n", &at),
                            "File type = \"ooTextFile\"");
        next_value(&at, "Object class = \"TextGrid\"");
        next_value(&at, "xmin = 0");
        assert_true(
            near(strtod(next_value(&at, "xmax = "), NULL), length, 1e-9));
        next_value(&at, "tiers? <exists>");
        next_value(&at, "size = 2");
        next_value(&at, "item []:");
        check_tier(&at, "words", "word", json_object_get(aligned[i], "words"),
                   length);
        check_tier(&at, "labels", "label",
                   json_object_get(aligned[i], "labels"), length);
        assert_null(strtok_r(NULL, "\n", &at));
        free(grid);
    }
    assert_fails(
        BMUF("align", "run", "test", "--format", "textgrid", "--out", "grids"),
        73, "grids is not empty");
}

static void test_no_textgrid_overwrites_another(void **state)
{
    (void)state;
    write_text(
        "slash.jsonl",
        "{\"id\": \"a/b\", \"audio\": \"test-0.wav\", \"text\": \"a\"}\n"
        "{\"id\": \"a_b\", \"audio\": \"test-1.wav\", \"text\": \"b\"}\n");
    assert_fails(BMUF("align", "run", "slash.jsonl", "--format", "textgrid",
                      "--out", "slash"),
                 73, "slash/a_b.TextGrid exists");
}

/* textgrid and json have words and labels, and frame targets neither. */
static void test_the_level_is_of_ctm_only(void **state)
{
    (void)state;
    assert_fails(
        BMUF("align", "run", "test", "--format", "json", "--level", "labels"),
        64, "--level is of --format ctm; textgrid and json have both");
    assert_fails(BMUF("align", "run", "test", "--targets", "level-targets",
                      "--level", "labels"),
                 64, "--level is of --format ctm");
}

static void test_ranks_and_threads_do_not_change_a_byte(void **state)
{
    outcome one = BMUF("align", "run", "test", "--threads", "1", "--format",
                       "json", "--targets", "by-one");
    outcome two =
        BMUF("align", "run", "test", "--threads", "2", "--format", "json");
    outcome three = BMUF_ON(3, "align", "run", "test", "--format", "json",
                            "--targets", "by-three");
    char *a = NULL, *b = NULL;
    size_t n = 0, m = 0;

    (void)state;
    assert_code(one, 0);
    assert_code(three, 0);
    assert_string_equal(one.out, two.out);
    assert_string_equal(one.out, three.out);
    a = slurp(in_folder("by-one/data-00000.bmuf.h5"), &n);
    b = slurp(in_folder("by-three/data-00000.bmuf.h5"), &m);
    assert_int_equal(n, m);
    assert_memory_equal(a, b, n);
    free(a);
    free(b);
}

/* 110 samples of 11025 Hz are 9.977324 ms, which a set keeps as 9977 us. */
static void test_times_are_those_of_whole_samples(void **state)
{
    enum { RATE = 8000, SECONDS = 42 };
    static int x[SECONDS * RATE];
    double frames = floor((SECONDS * 11025 - 275) / 110.) + 1;
    char length[64];
    char *grid = NULL;
    size_t size = 0;

    (void)state;
    make_tone(x, SECONDS * RATE, 1, 440, RATE);
    write_sound("rate.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, SECONDS * RATE,
                1, RATE);
    write_text("rate.jsonl", "{\"id\": \"rate\", \"audio\": \"rate.wav\", "
                             "\"text\": \"a\"}\n");
    assert_code(BMUF("pack", "--audio", "rate.jsonl", "--out", "rate",
                     "--vocab", "train", "--set", "features.mels=8", "--set",
                     "features.rate=11025"),
                0);
    assert_code(BMUF("align", "run", "rate", "--force", "--format", "textgrid",
                     "--out", "rate-grids"),
                0);
    grid = slurp(in_folder("rate-grids/rate.TextGrid"), &size);
    snprintf(length, sizeof length, "xmax = %.6f", frames * 110 / 11025);
    assert_says(grid, length);
    free(grid);
}

/* Results and messages of one file are in the order in which they were made. */
static void test_a_message_comes_behind_the_results_before_it(void **state)
{
    static const char script[] = "\"$0\" align run test >both 2>&1";
    const char *last = NULL;
    char *both = NULL;
    size_t size = 0;

    (void)state;
    assert_code(
        command_run(&(command){
            .program = "sh",
            .words = (const char *const[]){"-c", script, bmuf_path(), NULL}}),
        0);
    both = slurp(in_folder("both"), &size);
    assert_true(size > 0 && both[size - 1] == '\n');
    both[size - 1] = '\0';
    last = strrchr(both, '\n');
    assert_non_null(last);
    assert_says(last, " note r0 aligned ");
    free(both);
}

static void test_wrong_usage_is_told(void **state)
{
    (void)state;
    assert_fails(BMUF("align", "run", "test", "--format", "textgrid"), 64,
                 "give it a directory with --out DIR");
    assert_fails(BMUF("align", "run", "test", "--blank", "nearest"), 64,
                 "requires --targets DIR");
    assert_fails(BMUF("align", "run", "test", "--format", "praat"), 64,
                 "praat");
    assert_fails(BMUF("align", "run", "missing"), 66, "missing");
    assert_fails(BMUF("align", "run", "test", "--out", "no/x.ctm"), 73,
                 "x.ctm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_letters_are_where_they_sound),
        cmocka_unit_test(test_words_are_runs_of_letters),
        cmocka_unit_test(test_frames_are_those_of_the_logits),
        cmocka_unit_test(test_ctm_has_the_same_words),
        cmocka_unit_test(test_textgrids_cover_the_recordings),
        cmocka_unit_test(test_no_textgrid_overwrites_another),
        cmocka_unit_test(test_the_level_is_of_ctm_only),
        cmocka_unit_test(test_ranks_and_threads_do_not_change_a_byte),
        cmocka_unit_test(test_times_are_those_of_whole_samples),
        cmocka_unit_test(test_a_message_comes_behind_the_results_before_it),
        cmocka_unit_test(test_wrong_usage_is_told),
    };
    return cmocka_run_group_tests_name("alignment", tests, align_set_up,
                                       align_tear_down);
}
