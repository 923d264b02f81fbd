/*
 * Formats of bmuf decode: ctm, stm and subtitles have the words of the JSON. The
 * files that it writes with --out.
 */
#include "cli/decode/format.h"
#include "core/text/printable.h"
#include "tests/cli/decode/decoding.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Every line has its fields, and they are the words of the JSON. */
static void test_ctm_has_the_words(void **_)
{
    const char *all = DECODE("test", "--format", "json");
    const char *ctm = DECODE("test", "--format", "ctm");
    size_t line = 0;

    (void)_;
    for (size_t i = 0; i < N; i++) {
        json_t *o = parse_json(line_of(all, i)), *w = NULL;
        size_t k = 0;

        json_array_foreach(json_object_get(o, "words"), k, w)
        {
            char id[32], word[32], rest[2];
            double start = 0, duration = 0, confidence = 0;
            int channel = 0;

            assert_int_equal(sscanf(line_of(ctm, line++),
                                    "%31s %d %lf %lf %31s %lf%1s", id, &channel,
                                    &start, &duration, word, &confidence, rest),
                             6);
            assert_string_equal(id, text(o, "id"));
            assert_int_equal(channel, 1);
            assert_true(near(start, number(w, "start"), 6e-4));
            assert_true(near(start + duration, number(w, "end"), 1.1e-3));
            assert_string_equal(word, text(w, "word"));
            assert_true(near(confidence, number(w, "confidence"), 6e-4));
        }
        json_decref(o);
    }
    assert_int_equal(count_of(ctm, "\n"), line);
    assert_true(line > N);
}

static void test_stm_has_the_texts(void **_)
{
    const char *all = DECODE("test.jsonl", "--format", "json");
    const char *stm = DECODE("test.jsonl", "--format", "stm");

    (void)_;
    assert_int_equal(count_of(stm, "\n"), N);
    for (size_t i = 0; i < N; i++) {
        json_t *o = parse_json(line_of(all, i));
        char line[200];

        snprintf(line, sizeof line, "%s 1 s%zu 0.000 %.3f %s", text(o, "id"),
                 i % 3, number(o, "length"), text(o, "text"));
        assert_string_equal(line_of(stm, i), line);
        json_decref(o);
    }
}

/* A packed set has the speakers of its manifest; frames may be a shift longer than
 * the recording, so the end of a line is not compared. */
static void test_a_packed_set_has_the_speakers_of_its_manifest(void **_)
{
    const char *all = DECODE("test", "--format", "json");
    const char *stm = DECODE("test", "--format", "stm");

    (void)_;
    assert_int_equal(count_of(stm, "\n"), N);
    for (size_t i = 0; i < N; i++) {
        json_t *o = parse_json(line_of(all, i));
        char speaker[8], line[200];

        snprintf(speaker, sizeof speaker, "s%zu", i % 3);
        assert_string_equal(text(o, "speaker"), speaker);
        snprintf(line, sizeof line, "%s 1 %s 0.000 ", text(o, "id"), speaker);
        assert_int_equal(strncmp(line_of(stm, i), line, strlen(line)), 0);
        json_decref(o);
    }
}

static double seconds(int h, int m, int s, int ms)
{
    return 3600 * h + 60 * m + s + ms / 1000.0;
}

/* Reads subtitles back: their words are those of the text, in order, none is
 * longer than two lines of 42 characters, and they follow each other. */
static void test_subtitles_are_well_formed(void **_)
{
    const char *srt = DECODE("long.wav", "--format", "srt");
    json_t *o = parse_json(DECODE("long.wav", "--format", "json")), *w = NULL;
    char heard[4096] = "", wanted[4096] = "";
    double end = 0;
    size_t at = 0, said = 0, k = 0;
    int n = 0, number_ = 0, used = 0;

    (void)_;
    while (*srt != '\0') {
        int a[4], b[4];
        double from = 0;
        size_t lines = 0;

        assert_int_equal(sscanf(srt,
                                "%d\n%2d:%2d:%2d,%3d --> %2d:%2d:%2d,%3d\n%n",
                                &number_, &a[0], &a[1], &a[2], &a[3], &b[0],
                                &b[1], &b[2], &b[3], &used),
                         9);
        assert_int_equal(number_, ++n);
        from = seconds(a[0], a[1], a[2], a[3]);
        assert_true(from >= end);
        end = seconds(b[0], b[1], b[2], b[3]);
        assert_true(end > from && end - from <= 7);
        srt += used;
        for (; *srt != '\n'; lines++) {
            size_t length = strcspn(srt, "\n");

            assert_true(length > 0 && length <= 42);
            at += (size_t)sprintf(heard + at, "%s%.*s", at > 0 ? " " : "",
                                  (int)length, srt);
            srt += length + 1;
        }
        assert_true(lines == 1 || lines == 2);
        srt++;
    }
    assert_true(n > 1);
    json_array_foreach(json_object_get(o, "words"), k, w) said +=
        (size_t)sprintf(wanted + said, "%s%s", said > 0 ? " " : "",
                        text(w, "word"));
    assert_string_equal(heard, wanted);
    json_decref(o);
}

/* Subtitles of a text, whose words take half a second each. */
static void assert_subtitles(const char *whole, const char *const *words,
                             size_t n, const char *expected)
{
    bm_transcript_word heard[8];
    bm_reading reading = {.text = whole, .words = heard, .n_words = n};
    bm_transcript transcript = {.readings = &reading, .n = 1};
    bm_decoded d = {.transcript = &transcript};
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    assert_non_null(memory);
    assert_true(n <= 8);
    for (size_t i = 0; i < n; i++)
        heard[i] = (bm_transcript_word){words[i], 0.5 * (double)i,
                                        0.5 * (double)(i + 1), 1};
    bm_format_find("srt")->write(memory, &d);
    assert_int_equal(fclose(memory), 0);
    assert_string_equal(text, expected);
    free(text);
}

/* ALTO of an image `name`, 100 pixels wide; free(). */
static char *alto_of(const char *name, const char *whole,
                     const bm_transcript_word *words, size_t n)
{
    bm_reading reading = {.text = whole, .n_words = n};
    bm_transcript transcript = {
        .readings = &reading, .n = 1, .length = 100, .height = 20};
    bm_input input = {.shown = name};
    bm_decoded d = {.input = &input, .transcript = &transcript};
    bm_transcript_word copy[3];
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    assert_non_null(memory);
    assert_true(n <= 3);
    memcpy(copy, words, n * sizeof *words);
    reading.words = copy;
    bm_format_find("alto")->write(memory, &d);
    assert_int_equal(fclose(memory), 0);
    return text;
}

/* From left to right and from right to left; words that touch. */
static void test_spaces_of_alto_are_between_words(void **_)
{
    static const bm_transcript_word right[] = {
        {"a", 10, 30, 1}, {"b", 35, 50, 1}, {"c", 50, 60, 1}};
    static const bm_transcript_word left[] = {
        {"a", 70, 90, 1}, {"b", 50, 65, 1}, {"c", 40, 50, 1}};
    char *alto = alto_of("x", "a b c", right, 3);

    (void)_;
    assert_int_equal(count_of(alto, "<SP "), 2);
    assert_says(alto, "<SP HPOS=\"30\" VPOS=\"0\" WIDTH=\"5\"/>");
    assert_says(alto, "<SP HPOS=\"50\" VPOS=\"0\" WIDTH=\"0\"/>");
    free(alto);
    alto = alto_of("x", "a b c", left, 3);
    assert_int_equal(count_of(alto, "<SP "), 2);
    assert_says(alto, "<SP HPOS=\"65\" VPOS=\"0\" WIDTH=\"5\"/>");
    assert_says(alto, "<SP HPOS=\"50\" VPOS=\"0\" WIDTH=\"0\"/>");
    free(alto);
}

/* Every character is a word. */
static void test_writing_without_spaces_has_none_in_alto(void **_)
{
    static const bm_transcript_word signs[] = {{"\xe4\xb8\x80", 10, 30, 1},
                                               {"\xe5\x8d\x81", 35, 50, 1}};
    char *alto = alto_of("x", "\xe4\xb8\x80\xe5\x8d\x81", signs, 2);

    (void)_;
    assert_int_equal(count_of(alto, "<String "), 2);
    assert_int_equal(count_of(alto, "<SP "), 0);
    free(alto);
}

/* It is UTF-8, and has no control characters, whatever the file is called. */
static void test_alto_of_any_name_is_well_formed(void **_)
{
    static const bm_transcript_word word[] = {{"a", 10, 30, 1}};
    char *alto = alto_of("caf\xe9 <1>&\t\x7f.png", "a", word, 1);

    (void)_;
    assert_says(alto,
                "<fileName>caf\\xe9 &lt;1&gt;&amp;\\t\\x7f.png</fileName>");
    assert_true(bm_is_utf8(alto));
    free(alto);
}

/* Lines end between words, so that two of them may have less than 84
 * characters: here 32 each, and a third word would make 43. 42 fit. */
static void test_a_third_line_begins_a_subtitle(void **_)
{
#define TEN "abcdefghij"
    static const char *const tens[] = {TEN, TEN, TEN, TEN, TEN, TEN, TEN};
    static const char *const full[] = {TEN TEN TEN TEN "xy", TEN TEN,
                                       TEN TEN "x", "x"};
    static const char *const signs[] = {"\xe4\xb8\x80", "\xe5\x8d\x81"};

    (void)_;
    assert_subtitles("\xe4\xb8\x80\xe5\x8d\x81", signs, 2,
                     "1\n00:00:00,000 --> 00:00:01,000\n"
                     "\xe4\xb8\x80\xe5\x8d\x81\n\n");
    assert_subtitles("a b", tens, 7,
                     "1\n00:00:00,000 --> 00:00:03,000\n" TEN " " TEN " " TEN
                     "\n" TEN " " TEN " " TEN
                     "\n\n2\n00:00:03,000 --> 00:00:03,500\n" TEN "\n\n");
    assert_subtitles("a b", full, 4,
                     "1\n00:00:00,000 --> 00:00:01,500\n" TEN TEN TEN TEN
                     "xy\n" TEN TEN " " TEN TEN
                     "x\n\n2\n00:00:01,500 --> 00:00:02,000\nx\n\n");
#undef TEN
}

static void test_a_format_that_does_not_fit_is_refused(void **_)
{
    (void)_;
    assert_fails(
        BMUF("decode", "half.safetensors", "test-0.wav", "--format", "alto"),
        64, "--format alto needs positions in pixels", "recordings");
    assert_fails(BMUF("decode", "half.safetensors", "test-0.wav", "--format",
                      "ctm", "--nbest", "2"),
                 64, "--format ctm has no place for alternatives");
    assert_fails(BMUF("decode", "half.safetensors", "test-0.wav", "test-1.wav",
                      "--format", "srt"),
                 64, "--format srt describes one input", "--out DIR");
    assert_fails(
        BMUF("decode", "half.safetensors", "test-0.wav", "--format", "vtt"), 64,
        "--format vtt is not one of");
    assert_fails(BMUF("decode", "nowhere", "test-0.wav"), 66, "nowhere");
    assert_fails(BMUF("decode", "half.safetensors"), 64, "INPUT");
}

static void test_each_input_has_a_file(void **_)
{
    char *file = NULL;
    size_t size = 0;
    outcome again;

    (void)_;
    assert_string_equal(
        DECODE("test-0.wav", "test-1.wav", "--format", "srt", "--out", "subs"),
        "");
    file = slurp(in_folder("subs/test-1.srt"), &size);
    assert_string_equal(file, DECODE("test-1.wav", "--format", "srt"));
    free(file);
    again = BMUF("decode", "half.safetensors", "test-1.wav", "test-1.wav",
                 "--format", "trn");
    assert_code(again, 0);
    assert_says(again.err, "test-1.wav: an earlier input has the id test-1, "
                           "too, and bmuf score takes an id once");
    again = BMUF("decode", "half.safetensors", "test-1.wav", "--format", "srt",
                 "--out", "subs");
    assert_fails(again, 73, "subs/test-1.srt exists", "--resume", "--force");
    again = BMUF("decode", "half.safetensors", "test-2.wav", "tree/b/z.wav",
                 "tree", "--out", "subs");
    assert_code(again, 0);
    file = slurp(in_folder("subs/b_z.txt"), &size);
    assert_string_equal(file, DECODE("tree/b/z.wav"));
    free(file);
}

/* Inputs that come before it have their files already. */
static void test_a_file_that_is_there_stops_the_job(void **_)
{
    outcome o;

    (void)_;
    assert_code(
        BMUF("decode", "half.safetensors", "test-2.wav", "--out", "there"), 0);
    o = BMUF("decode", "half.safetensors", "test-0.wav", "test-1.wav",
             "test-2.wav", "test-3.wav", "--out", "there", "--threads", "1");
    assert_code(o, 73);
    assert_says(o.err, "there/test-2.txt exists");
    assert_says(o.err, "stopped after 2 inputs, whose files are in there");
    assert_int_equal(access(in_folder("there/test-0.txt"), F_OK), 0);
    assert_int_equal(access(in_folder("there/test-1.txt"), F_OK), 0);
    assert_int_not_equal(access(in_folder("there/test-3.txt"), F_OK), 0);
    o = BMUF("decode", "half.safetensors", "test-2.wav", "--out", "there");
    assert_code(o, 73);
    assert_int_equal(count_of(o.err, "stopped after"), 0);
}

/* Those of an earlier job are kept with --resume, without what it had not written to
 * the end, and replaced with --force; of two inputs of one job with the same name, one
 * is decoded. */
static void test_files_that_are_there_are_kept_or_replaced(void **_)
{
    char *file = NULL;
    size_t size = 0;
    outcome o;

    (void)_;
    assert_code(
        BMUF("decode", "half.safetensors", "test-0.wav", "--out", "kept"), 0);
    write_text("kept/test-0.txt", "mine\n");
    write_text("kept/.0123abcd.test-1.txt.tmp", "hal");
    o = BMUF("decode", "half.safetensors", "test-1.wav", "test-0.wav", "--out",
             "kept", "--resume");
    assert_code(o, 0);
    assert_int_not_equal(
        access(in_folder("kept/.0123abcd.test-1.txt.tmp"), F_OK), 0);
    assert_says(o.err, "1 input already decoded, in kept");
    assert_says(o.err, "1 decoded");
    file = slurp(in_folder("kept/test-0.txt"), &size);
    assert_string_equal(file, "mine\n");
    free(file);
    assert_int_equal(access(in_folder("kept/test-1.txt"), F_OK), 0);
    o = BMUF("decode", "half.safetensors", "test-1.wav", "test-0.wav", "--out",
             "kept", "--resume");
    assert_code(o, 0);
    assert_says(o.err, "2 inputs already decoded, in kept");
    assert_code(BMUF("decode", "half.safetensors", "test-0.wav", "--out",
                     "kept", "--force"),
                0);
    file = slurp(in_folder("kept/test-0.txt"), &size);
    assert_string_equal(file, DECODE("test-0.wav"));
    free(file);
    o = BMUF("decode", "half.safetensors", "test-0.wav", "./test-0.wav",
             "--out", "kept", "--force");
    assert_code(o, 65);
    assert_says(o.err, "kept/test-0.txt is the file of an earlier input");
    assert_says(o.err, "1 of 2 decoded");
    assert_fails(BMUF("decode", "half.safetensors", "test-0.wav", "--force"),
                 64, "--force", "--out");
    assert_fails(BMUF("decode", "half.safetensors", "test-0.wav", "--out",
                      "kept", "--force", "--resume"),
                 64, "give only one");
}

/* The temporary file is ".0123abcd.ID.txt.tmp". */
static void test_an_id_too_long_for_a_file_is_a_fault(void **_)
{
    enum { FITS = NAME_MAX - 14 - 4 };
    char fits[FITS + 1], over[FITS + 2], name[FITS + 20], lines[1000];
    outcome o;

    (void)_;
    memset(fits, 'f', FITS);
    fits[FITS] = '\0';
    memset(over, 'o', FITS + 1);
    over[FITS + 1] = '\0';
    snprintf(lines, sizeof lines,
             "{\"id\": \"a\", \"audio\": \"test-0.wav\"}\n"
             "{\"id\": \"%s\", \"audio\": \"test-1.wav\"}\n"
             "{\"id\": \"%s\", \"audio\": \"test-0.wav\"}\n",
             over, fits);
    write_text("names.jsonl", lines);
    o = BMUF("decode", "half.safetensors", "names.jsonl", "--out", "names");
    assert_code(o, 65);
    assert_says(o.err, "too long for the name of a file, by 1 byte");
    assert_says(o.err, "2 of 3 decoded");
    assert_int_equal(access(in_folder("names/a.txt"), F_OK), 0);
    snprintf(name, sizeof name, "names/%s.txt", fits);
    assert_int_equal(access(in_folder(name), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ctm_has_the_words),
        cmocka_unit_test(test_stm_has_the_texts),
        cmocka_unit_test(test_a_packed_set_has_the_speakers_of_its_manifest),
        cmocka_unit_test(test_subtitles_are_well_formed),
        cmocka_unit_test(test_a_third_line_begins_a_subtitle),
        cmocka_unit_test(test_spaces_of_alto_are_between_words),
        cmocka_unit_test(test_writing_without_spaces_has_none_in_alto),
        cmocka_unit_test(test_alto_of_any_name_is_well_formed),
        cmocka_unit_test(test_a_format_that_does_not_fit_is_refused),
        cmocka_unit_test(test_each_input_has_a_file),
        cmocka_unit_test(test_a_file_that_is_there_stops_the_job),
        cmocka_unit_test(test_files_that_are_there_are_kept_or_replaced),
        cmocka_unit_test(test_an_id_too_long_for_a_file_is_a_fault),
    };

    return cmocka_run_group_tests_name("decode_formats", tests,
                                       make_decode_inputs, folder_remove);
}
