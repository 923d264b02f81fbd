/*
 * bmuf align: times against those at which a corpus of tones has its letters,
 * against the alignment of the dumped logits, and between formats, ranks and
 * threads; and the way from a CTC model to a network trained on frame targets.
 */
#include "core/file/file.h"
#include "io/shard/dataset.h"
#include "models/align.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N = 21, STRIDE = 3, CLASSES = 5 }; /* of test/, of the network */

/* Classes in their order: the blank, then bytes. */
static const char symbols[] = "\b abc";

static json_t *aligned[N]; /* the lines of --format json */

static int make_model(void **state)
{
    outcome o;
    char *lines = NULL, *rest = NULL, *line = NULL;

    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "run", "--set",
                     "model.net=stack:3 blstm:16 linear", "--set",
                     "model.infeasible=error", "--set", "train.epochs=40",
                     "--set", "train.rate=0.1", "--set",
                     "schedule.kind=constant", "--set", "job.workers=1",
                     "--set", "sgd.momentum=0.9"),
                0);
    o = BMUF("align", "run", "test", "--format", "json");
    assert_code(o, 0);
    assert_says(o.err, "aligned 21 of 21 sequences");
    lines = strdup(o.out);
    line = strtok_r(lines, "\n", &rest);
    for (size_t i = 0; i < N; i++, line = strtok_r(NULL, "\n", &rest)) {
        assert_non_null(line);
        aligned[i] = parse_json(line);
    }
    assert_null(line);
    free(lines);
    return 0;
}

static int drop_model(void **state)
{
    for (size_t i = 0; i < N; i++)
        json_decref(aligned[i]);
    programs_end(state);
    return folder_remove(state);
}

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

/* --level says what has a line in ctm. */
static void test_the_level_leaves_formats_with_both_as_they_are(void **state)
{
    outcome o =
        BMUF("align", "run", "test", "--format", "json", "--level", "labels");
    char *words = NULL, *labels = NULL;
    size_t n = 0, m = 0;

    (void)state;
    assert_code(o, 0);
    assert_string_equal(o.out,
                        BMUF("align", "run", "test", "--format", "json").out);
    assert_code(BMUF("align", "run", "test", "--format", "textgrid", "--level",
                     "labels", "--out", "level-grids"),
                0);
    words = slurp(in_folder("grids/test-0.TextGrid"), &n);
    labels = slurp(in_folder("level-grids/test-0.TextGrid"), &m);
    assert_string_equal(labels, words);
    free(words);
    free(labels);
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

/* ---- frame targets ------------------------------------------------------- */

/* The class of stored frame t of sequence i, from the spans of JSON. */
static int32_t expected_class(size_t i, size_t t, bool nearest)
{
    const json_t *labels = json_object_get(aligned[i], "labels");
    size_t frames = speech_frames(i), outputs = (frames + 2) / STRIDE;
    size_t output = t / STRIDE;
    double k = (double)output, best = 1e9;
    int32_t class = 0;

    assert_true(k < (double)outputs);
    for (size_t n = 0; n < json_array_size(labels); n++) {
        const json_t *label = json_array_get(labels, n);
        double first = number(label, "first_frame") / STRIDE;
        double last = ceil(number(label, "end_frame") / STRIDE) - 1;
        double away = fmax(fmax(first - k, k - last), 0);

        if (away < best && (nearest || away == 0)) { /* ties: the one before */
            best = away;
            class = (int32_t)(strchr(symbols, speech_text(i)[n]) - symbols);
        }
    }
    return class;
}

static void check_targets(const char *name, bool nearest)
{
    bm_dataset *from = NULL, *to = NULL;
    bm_sequences a = {0}, b = {0};
    size_t i = 0, blanks = 0;

    assert_ok(bm_dataset_open(&from, in_folder("test")));
    assert_ok(bm_dataset_open(&to, in_folder(name)));
    assert_int_equal(to->n, N);
    assert_int_equal(to->labels, to->frames);
    assert_string_equal(bm_shard_features_text(to->shards[0]),
                        bm_shard_features_text(from->shards[0]));
    assert_true(bm_shard_frame_shift(to->shards[0]) == 0.01);
    assert_int_equal(to->n_units, 1); /* both are small: one unit */
    assert_ok(bm_dataset_read(to, 0, &b));
    for (size_t u = 0, frame = 0; u < from->n_units; u++) {
        size_t n = 0;

        assert_ok(bm_dataset_read(from, u, &a));
        for (size_t k = 0; k < a.n; k++, i++) {
            assert_int_equal(b.frames[i], a.frames[k]);
            assert_memory_equal(b.x + frame * from->features,
                                a.x + n * from->features,
                                (size_t)a.frames[k] * from->features * 4);
            for (size_t t = 0; t < (size_t)a.frames[k]; t++) {
                int32_t class = expected_class(i, t, nearest);

                assert_int_equal(b.targets[frame + t], class);
                blanks += class == 0;
            }
            frame += (size_t)a.frames[k];
            n += (size_t)a.frames[k];
        }
    }
    assert_int_equal(i, N);
    assert_true(nearest ? blanks == 0 : blanks > 0);
    bm_sequences_free(&a);
    bm_sequences_free(&b);
    bm_dataset_close(from);
    bm_dataset_close(to);
}

static void test_every_stored_frame_has_the_class_of_its_output(void **state)
{
    (void)state;
    assert_code(BMUF("align", "run", "test", "--targets", "as-class"), 0);
    check_targets("as-class", false);
    assert_code(BMUF("align", "run", "test", "--targets", "as-nearest",
                     "--blank", "nearest"),
                0);
    check_targets("as-nearest", true);
    assert_code(BMUF("check", "as-nearest"), 0);
    assert_fails(BMUF("align", "run", "test", "--targets", "as-class"), 73,
                 "as-class");
}

static void test_no_labels_have_no_nearest_class(void **state)
{
    outcome o;

    (void)state;
    write_text(
        "some.jsonl",
        "{\"id\": \"empty\", \"audio\": \"test-0.wav\", \"text\": \"\"}\n"
        "{\"id\": \"good\", \"audio\": \"test-0.wav\", \"text\": \"a b\"}\n");
    write_text(
        "empty.jsonl",
        "{\"id\": \"empty\", \"audio\": \"test-0.wav\", \"text\": \"\"}\n");
    o = BMUF("align", "run", "some.jsonl", "--targets", "some-t", "--blank",
             "nearest");
    assert_code(o, 0);
    assert_says(o.err, "aligned 2 of 2 sequences");
    assert_says(o.err, "left 1 sequence without labels out of some-t");
    assert_says(BMUF("info", "some-t").out, "sequences  1 in");
    assert_code(BMUF("align", "run", "some.jsonl", "--targets", "some-c"), 0);
    assert_says(BMUF("info", "some-c").out, "sequences  2 in");
    assert_fails(BMUF("align", "run", "empty.jsonl", "--targets", "empty-t",
                      "--blank", "nearest"),
                 65, "no sequence has labels, which --blank nearest needs");
}

/* Halves stay the halves that they were. */
static void test_targets_are_stored_as_their_set_is(void **state)
{
    (void)state;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "half",
                     "--vocab", "train", "--set", "features.mels=8", "--set",
                     "shard.store=f16"),
                0);
    assert_code(BMUF("align", "run", "half", "--targets", "half-t"), 0);
    assert_says(BMUF("info", "half-t").out, "stored as f16");
    assert_code(BMUF("check", "half-t"), 0);
}

/* CTC, alignment, then a network without memory for every frame: most frames
 * of the other recordings are right, where the most frequent class has at most
 * half of them. */
static void test_the_hybrid_route_leads_to_few_wrong_frames(void **state)
{
    size_t count[CLASSES] = {0}, all = 0, most = 0;
    json_t *result = NULL;
    outcome o;

    (void)state;
    for (size_t i = 0; i < N; i++)
        for (size_t t = 0; t < speech_frames(i); t++, all++)
            count[expected_class(i, t, true)]++;
    for (size_t c = 0; c < CLASSES; c++)
        most = count[c] > most ? count[c] : most;
    assert_true(most < all / 2);
    assert_code(BMUF("align", "run", "train", "--targets", "train-t", "--blank",
                     "nearest"),
                0);
    assert_code(BMUF("align", "run", "test", "--targets", "test-t", "--blank",
                     "nearest"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "dnn", "--set",
                     "data.train=train-t", "--set", "data.dev=test-t", "--set",
                     "model.net=linear:32 relu linear", "--set",
                     "model.loss=cross_entropy", "--set", "train.epochs=10",
                     "--set", "train.rate=0.1"),
                0);
    o = BMUF("eval", "dnn", "test-t", "--json");
    assert_code(o, 0);
    result = parse_json(o.out);
    assert_true(number(result, "labels") == (double)all);
    assert_true(number(result, "ler") < 0.25);
    assert_true(number(result, "words") == 0); /* frames do not form words */
    json_decref(result);
    assert_fails(BMUF("align", "dnn", "test-t"), 65,
                 "only a model trained with ctc can align");
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
        cmocka_unit_test(test_the_level_leaves_formats_with_both_as_they_are),
        cmocka_unit_test(test_ranks_and_threads_do_not_change_a_byte),
        cmocka_unit_test(test_what_cannot_be_aligned_is_named_and_counted),
        cmocka_unit_test(test_sets_too_long_for_attention_are_refused),
        cmocka_unit_test(test_what_is_too_long_for_attention_is_left_out),
        cmocka_unit_test(test_manifests_are_aligned_as_their_sets),
        cmocka_unit_test(test_manifests_are_normalised_as_the_model_was),
        cmocka_unit_test(test_statistics_of_kaldi_need_a_packed_set),
        cmocka_unit_test(test_times_are_those_of_whole_samples),
        cmocka_unit_test(test_a_signal_leaves_nothing_in_tmpdir),
        cmocka_unit_test(test_a_message_comes_behind_the_results_before_it),
        cmocka_unit_test(test_a_data_directory_of_kaldi_is_aligned),
        cmocka_unit_test(test_every_stored_frame_has_the_class_of_its_output),
        cmocka_unit_test(test_no_labels_have_no_nearest_class),
        cmocka_unit_test(test_targets_are_stored_as_their_set_is),
        cmocka_unit_test(test_the_hybrid_route_leads_to_few_wrong_frames),
        cmocka_unit_test(test_wrong_usage_is_told),
    };
    return cmocka_run_group_tests_name("alignment", tests, make_model,
                                       drop_model);
}
