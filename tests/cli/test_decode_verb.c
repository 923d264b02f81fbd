/*
 * bmuf decode: against bmuf eval and its logits, between ways to give the same
 * inputs, between formats, and with inputs that are broken.
 */
#include "cli/decode/format.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 21 }; /* of test/ */

/* An output frame of stack:2 in seconds. */
static const double frame = 0.02;

/* What stdout says, with the exit code 0. */
static const char *printed(outcome o)
{
    assert_code(o, 0);
    return o.out;
}

#define DECODE(...) printed(BMUF("decode", "half.safetensors", __VA_ARGS__))

/* Writes the paths test-0.wav .. to a file, one a line. */
static void list_paths(const char *name)
{
    char all[N * 32] = "";
    size_t n = 0;

    for (int i = 0; i < N; i++)
        n += (size_t)sprintf(all + n, "test-%d.wav\n", i);
    write_text(name, all);
}

/* Line i of a text, valid until the next call. */
static const char *line_of(const char *all, size_t i)
{
    static char line[4096];

    while (i-- > 0) {
        all = strchr(all, '\n');
        assert_non_null(all);
        all++;
    }
    snprintf(line, sizeof line, "%.*s", (int)strcspn(all, "\n"), all);
    return line;
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

/* x [room] <- the samples of a recording; returns how many. */
static size_t read_samples(const char *name, float *x, size_t room)
{
    SF_INFO info = {0};
    SNDFILE *file = sf_open(in_folder(name), SFM_READ, &info);
    sf_count_t n = 0;

    assert_non_null(file);
    n = sf_readf_float(file, x, (sf_count_t)room);
    sf_close(file);
    return (size_t)n;
}

static void write_samples(const char *name, int rate, const float *x, size_t n)
{
    SF_INFO info = {.samplerate = rate,
                    .channels = 1,
                    .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
    SNDFILE *file = sf_open(in_folder(name), SFM_WRITE, &info);

    assert_non_null(file);
    assert_int_equal(sf_writef_float(file, x, (sf_count_t)n), n);
    sf_close(file);
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

static size_t words_of(const dump_array *a, spoken *words)
{
    size_t n = 0, before = 0;
    bool within = false;
    double best_of_letter = 0;

    for (size_t t = 0; t < a->rows; t++) {
        const float *y = a->x + t * a->columns;
        size_t c = 0;
        double p = 0;

        for (size_t k = 1; k < a->columns; k++)
            c = y[k] > y[c] ? k : c;
        p = log_posterior(y, a->columns, c);
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
        assert_true(near(number(w, "confidence"),
                         exp(e->log_p / (double)e->letters), 1e-4));
    }
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

/* ---- formats ------------------------------------------------------------- */

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
    bm_heard_word heard[8];
    bm_reading reading = {.text = whole, .words = heard, .n_words = n};
    bm_transcript transcript = {.readings = &reading, .n = 1};
    bm_decoded d = {.transcript = &transcript};
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    assert_non_null(memory);
    assert_true(n <= 8);
    for (size_t i = 0; i < n; i++)
        heard[i] = (bm_heard_word){words[i], 0.5 * (double)i,
                                   0.5 * (double)(i + 1), 1};
    bm_format_find("srt")->write(memory, &d);
    assert_int_equal(fclose(memory), 0);
    assert_string_equal(text, expected);
    free(text);
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

/* Those of an earlier job are kept with --resume and replaced with --force; of two
 * inputs of one job with the same name, one is decoded. */
static void test_files_that_are_there_are_kept_or_replaced(void **_)
{
    char *file = NULL;
    size_t size = 0;
    outcome o;

    (void)_;
    assert_code(
        BMUF("decode", "half.safetensors", "test-0.wav", "--out", "kept"), 0);
    write_text("kept/test-0.txt", "mine\n");
    o = BMUF("decode", "half.safetensors", "test-1.wav", "test-0.wav", "--out",
             "kept", "--resume");
    assert_code(o, 0);
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

/* ---- faults -------------------------------------------------------------- */

/* Each is named with its reason, and the recordings around it are decoded. */
static void test_broken_inputs_are_named_and_others_decoded(void **_)
{
    static const struct {
        const char *name, *reason;
    } broken[] = {
        {"missing.wav", "missing.wav: No such file"},
        {"empty.wav", "empty.wav: "},
        {"cut.wav", "cut.wav: damaged or truncated"},
        {"noise.wav", "noise.wav: "},
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
    };
    command c = {
        .words = (const char *const[]){"decode", "half.safetensors", "-", NULL},
        .in = "empty.wav"};
    outcome o;

    (void)_;
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

/* long.wav: all recordings of the set twice, and silence between. */
static void write_long(void)
{
    enum { PAUSE = 800, ROOM = 2 * N * (20 * 800 + PAUSE) };
    float *x = zeros(ROOM, sizeof *x);
    size_t n = 0;

    for (int i = 0; i < 2 * N; i++) {
        char name[32];

        snprintf(name, sizeof name, "test-%d.wav", i % N);
        n += read_samples(name, x + n, ROOM - n) + PAUSE;
    }
    write_samples("long.wav", 8000, x, n);
    free(x);
}

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "half", "--set",
                     "train.epochs=8", "--set", "schedule.kind=constant"),
                0);
    if (rename(in_folder("half/model.safetensors"),
               in_folder("half.safetensors")) != 0)
        return 1;
    write_text("pair", "test-0.wav\ntest-1.wav\n");
    write_text("one", "./test-4.wav\n");
    assert_int_equal(mkdir(in_folder("tree"), 0777), 0);
    assert_int_equal(mkdir(in_folder("tree/b"), 0777), 0);
    assert_int_equal(mkdir(in_folder("void"), 0777), 0);
    run_tool((char *[]){"cp", (char *)in_folder("test-4.wav"),
                        (char *)in_folder("tree"), NULL});
    run_tool((char *[]){"cp", (char *)in_folder("test-5.wav"),
                        (char *)in_folder("tree/zz"), NULL});
    run_tool((char *[]){"cp", (char *)in_folder("test-6.wav"),
                        (char *)in_folder("tree/b/z.wav"), NULL});
    write_text("tree/notes.txt", "no recording\n");
    write_text("empty.wav", "");
    write_text("noise.wav", "\001\002\003 these are no samples");
    write_text("story.txt", "Once upon a time\nthere was a text.\n");
    write_text("bad.jsonl", "{\"id\": \"a\", \n");
    write_bytes("page.png", "\x89PNG\r\n\x1a\n", 8);
    write_bytes("dev.hdf", "\x89HDF\r\n\x1a\n", 8);
    write_tone("short.wav", 80, 1, 8000);
    write_tone("silent.wav", 0, 1, 8000);
    run_tool((char *[]){"cp", (char *)in_folder("test-0.wav"),
                        (char *)in_folder("cut.wav"), NULL});
    cut_off(in_folder("cut.wav"), 0.7);
    write_long();
    write_text("pair.jsonl", "{\"id\": \"a\", \"audio\": \"test-0.wav\"}\n");
    assert_code(BMUF("pack", "--audio", "pair.jsonl", "--out", "other-set",
                     "--set", "features.mels=8", "--set", "features.shift_ms=5",
                     "--vocab", "train"),
                0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_packed_set_gives_the_transcripts_of_eval),
        cmocka_unit_test(test_all_ways_to_give_recordings_agree),
        cmocka_unit_test(test_tables_are_manifests),
        cmocka_unit_test(test_a_data_directory_of_kaldi),
        cmocka_unit_test(test_commands_of_lists_run_if_allowed),
        cmocka_unit_test(test_a_folder_is_all_its_recordings),
        cmocka_unit_test(test_a_recording_comes_from_stdin),
        cmocka_unit_test(test_other_rates_are_resampled),
        cmocka_unit_test(test_a_low_rate_is_noted_once),
        cmocka_unit_test(test_excerpts_are_decoded_alone),
        cmocka_unit_test(test_threads_do_not_change_a_byte),
        cmocka_unit_test(test_times_and_confidences_are_those_of_the_logits),
        cmocka_unit_test(test_files_have_the_features_of_packed_sets),
        cmocka_unit_test(test_alternatives_are_in_order),
        cmocka_unit_test(test_ctm_has_the_words),
        cmocka_unit_test(test_stm_has_the_texts),
        cmocka_unit_test(test_subtitles_are_well_formed),
        cmocka_unit_test(test_a_third_line_begins_a_subtitle),
        cmocka_unit_test(test_a_format_that_does_not_fit_is_refused),
        cmocka_unit_test(test_each_input_has_a_file),
        cmocka_unit_test(test_files_that_are_there_are_kept_or_replaced),
        cmocka_unit_test(test_options_of_the_search_reach_it),
        cmocka_unit_test(test_options_without_what_they_are_about_are_refused),
        cmocka_unit_test(test_json_has_names_that_are_not_utf8),
        cmocka_unit_test(test_results_come_before_the_input_ends),
        cmocka_unit_test(test_broken_inputs_are_named_and_others_decoded),
        cmocka_unit_test(test_a_single_broken_input_is_an_error),
        cmocka_unit_test(test_one_broken_file_of_many_is_one_fault),
        cmocka_unit_test(test_a_closed_pipe_ends_it_quietly),
    };

    return cmocka_run_group_tests_name("decode_verb", tests, prepare,
                                       folder_remove);
}
