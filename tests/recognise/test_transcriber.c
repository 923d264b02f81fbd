/*
 * The interface for other programs: recordings in memory give the same words as
 * files, on any thread. What cannot be used is named, and the transcriber goes
 * on. Models that are refused; priors.
 */
#include "recognise/best_path_words.h"
#include "recognise/priors.h"
#include "recognise/transcriber.h"
#include "recognise/transcriber_parts.h"
#include "tests/recognise/transcribing.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FORKS = 4 };

/* ---- recordings ---------------------------------------------------------- */

static void test_samples_give_the_words_of_their_file(void **_)
{
    static float x[16000];
    bm_transcriber *t = open_model("speech");
    bm_transcriber_about about = bm_transcriber_describe(t);

    (void)_;
    assert_int_equal(about.kind, BM_RECORDINGS);
    assert_int_equal(about.rate, 8000);
    assert_int_equal(about.features, 8);
    assert_true(near(about.frame_shift, 0.01, 1e-12));
    assert_string_equal(about.file, in_folder("speech/model-best.safetensors"));
    for (int i = 0; i < N; i++) {
        char name[32];
        bm_transcript *file = NULL, *memory = NULL;
        size_t n = 0;

        snprintf(name, sizeof name, "test-%d.wav", i);
        n = read_samples(name, x, 16000);
        file = transcribe(t, name);
        assert_ok(bm_transcriber_samples(t, x, n, 8000, &memory));
        assert_true(same(file, memory));
        assert_true(near(file->length, (double)n / 8000, 1e-9));
        bm_transcript_free(file);
        bm_transcript_free(memory);
    }
    bm_transcriber_close(t);
}

typedef struct listener {
    bm_transcriber *t;
    bm_transcript *heard[N];
    bm_status status;
} listener;

static void *listen(void *self)
{
    listener *l = self;

    for (int i = 0; i < N && l->status == BM_OK; i++) {
        char path[200];

        snprintf(path, sizeof path, "%s/test-%d.wav",
                 bm_transcriber_describe(l->t).file, i);
        snprintf(strstr(path, "/speech/"), 32, "/test-%d.wav", i);
        l->status = bm_transcriber_file(l->t, path, NULL, &l->heard[i]);
    }
    return NULL;
}

static void test_forks_hear_the_same_on_all_threads(void **_)
{
    bm_transcriber *t = open_model("speech");
    listener all[FORKS] = {{0}};
    pthread_t threads[FORKS];

    (void)_;
    all[0].t = t;
    for (size_t k = 1; k < FORKS; k++)
        assert_ok(bm_transcriber_fork(&all[k].t, t));
    for (size_t k = 0; k < FORKS; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, listen, &all[k]), 0);
    for (size_t k = 0; k < FORKS; k++)
        assert_int_equal(pthread_join(threads[k], NULL), 0);
    for (size_t k = FORKS; k-- > 0;) {
        assert_ok(all[k].status);
        for (int i = 0; i < N; i++)
            assert_true(same(all[k].heard[i], all[0].heard[i]));
        for (int i = 0; k > 0 && i < N; i++)
            bm_transcript_free(all[k].heard[i]);
        if (k > 0)
            bm_transcriber_close(all[k].t);
    }
    for (int i = 0; i < N; i++)
        bm_transcript_free(all[0].heard[i]);
    bm_transcriber_close(t);
}

static void test_after_a_fault_the_transcriber_goes_on(void **_)
{
    float x[400] = {0};
    bm_transcriber *t = open_model("speech");
    bm_transcript *before = transcribe(t, "test-0.wav"), *after = NULL,
                  *none = NULL;

    (void)_;
    assert_status(bm_transcriber_samples(t, x, 0, 8000, &none), BM_ERR_FORMAT,
                  "0.000 s: shorter than one window");
    assert_status(bm_transcriber_samples(t, x, 199, 8000, &none), BM_ERR_FORMAT,
                  "shorter than one window of 25 ms");
    assert_status(bm_transcriber_samples(t, x, 400, 0, &none), BM_ERR_ARG,
                  "0 Hz is not a sampling rate");
    x[7] = NAN;
    assert_status(bm_transcriber_samples(t, x, 400, 8000, &none), BM_ERR_FORMAT,
                  "sample 7 is NaN or infinite");
    assert_status(bm_transcriber_file(t, in_folder("no.wav"), NULL, &none),
                  BM_ERR_MISSING, "no.wav");
    assert_status(bm_transcriber_image(t, (unsigned char[]){0}, 1, 1, &none),
                  BM_ERR_FORMAT, "trained on recordings, not on line images");
    assert_status(bm_transcriber_features(t, x, 1, 4, &none), BM_ERR_FORMAT,
                  "trained on recordings, not on feature files");
    assert_null(none);
    after = transcribe(t, "test-0.wav");
    assert_true(same(before, after));
    bm_transcript_free(before);
    bm_transcript_free(after);
    bm_transcriber_close(t);
}

/* ---- models -------------------------------------------------------------- */

/* Copies a model with another text in its header. */
static void edit_model(const char *to, const char *text, const char *by)
{
    size_t size = 0, length = 0, n = 0;
    char *file = slurp(in_folder("speech/model.safetensors"), &size);
    char *header = zeros(size, 1), *found = NULL, *out = zeros(2 * size, 1);

    for (size_t i = 8; i-- > 0;)
        length = length << 8 | (unsigned char)file[i];
    memcpy(header, file + 8, length);
    found = strstr(header, text);
    assert_non_null(found);
    n = (size_t)sprintf(out + 8, "%.*s%s%s", (int)(found - header), header, by,
                        found + strlen(text));
    while (n % 8 != 0)
        out[8 + n++] = ' ';
    for (size_t i = 0; i < 8; i++)
        out[i] = (char)(n >> (8 * i));
    memcpy(out + 8 + n, file + 8 + length, size - 8 - length);
    spill(in_folder(to), out, size - length + n);
    free(file);
    free(header);
    free(out);
}

static void test_models_that_cannot_transcribe_are_refused(void **_)
{
    bm_transcriber *t = NULL;
    bm_transcript *none = NULL;

    (void)_;
    assert_int_equal(bm_transcriber_open(&t, in_folder("nowhere"), NULL),
                     BM_ERR_MISSING);
    assert_status(bm_transcriber_open(&t, in_folder("tiny.ini"), NULL),
                  BM_ERR_FORMAT, "not a model");
    edit_model("wrong.safetensors", "\\\"rate\\\": 8000", "\\\"rate\\\": 0");
    assert_status(bm_transcriber_open(&t, in_folder("wrong.safetensors"), NULL),
                  BM_ERR_FORMAT, "at which rate");
    edit_model("wrong.safetensors", "\\\"mels\\\": 8", "\\\"mels\\\": 9");
    assert_status(bm_transcriber_open(&t, in_folder("wrong.safetensors"), NULL),
                  BM_ERR_FORMAT, "takes 8 features per frame");
    edit_model("wrong.safetensors", "\\\"mels\\\": 8", "\\\"mels\\\": -8");
    assert_status(bm_transcriber_open(&t, in_folder("wrong.safetensors"), NULL),
                  BM_ERR_FORMAT, "features.mels");
    assert_null(t);

    /* An older file, which does not say how features were made. */
    edit_model("old.safetensors", "\\\"kind\\\": \\\"audio\\\"",
               "\\\"made\\\": \\\"audio\\\"");
    t = open_model("old.safetensors");
    assert_int_equal(bm_transcriber_describe(t).kind, BM_PACKED_ONLY);
    assert_status(bm_transcriber_file(t, in_folder("test-0.wav"), NULL, &none),
                  BM_ERR_FORMAT, "decode a packed set");
    bm_transcriber_close(t);

    /* Of classes of images, as MNIST's. */
    edit_model("mnist.safetensors", "\\\"kind\\\": \\\"audio\\\"",
               "\\\"kind\\\": \\\"idx\\\"");
    t = open_model("mnist.safetensors");
    assert_status(bm_transcriber_file(t, in_folder("test-0.wav"), NULL, &none),
                  BM_ERR_FORMAT,
                  "trained on what bmuf pack --idx makes, and reads packed "
                  "sets alone; pack the file and decode the set: bmuf pack "
                  "--idx FILE --out DIR --vocab MODEL");
    bm_transcriber_close(t);
    write_gzip("pen.gz", ".VERSION 1.0\n");
    write_text("pen.dat", ".VERSION 1.0\n");
    assert_fails(BMUF("decode", "mnist.safetensors", "pen.gz"), 65,
                 "pen.gz: the model was trained on what bmuf pack --idx makes");
    assert_fails(
        BMUF("decode", "mnist.safetensors", "pen.dat"), 65,
        "pen.dat: the model was trained on what bmuf pack --idx makes");
}

/* Blanks are between all labels and at both ends; class 1 is the space. */
static void test_priors_are_the_frequencies_of_labels(void **_)
{
    static const char symbols[] = "\b abc";
    double counts[5] = {0}, all = 0;
    bm_vocab *vocab = NULL, *other = NULL;
    float *priors = NULL;
    bm_transcriber_settings set = bm_transcriber_defaults();
    bm_transcriber *t = NULL;
    bm_transcript *plain = NULL, *heard = NULL;

    (void)_;
    for (size_t i = 0; i < 42; i++) {
        counts[0] += 1;
        for (const char *c = speech_text(i); *c != '\0'; c++) {
            counts[strchr(symbols, *c) - symbols]++;
            counts[0]++;
        }
    }
    counts[0] *= 0.5;
    for (size_t c = 0; c < 5; c++)
        all += counts[c];
    assert_ok(bm_vocab_read(&vocab, in_folder("train"), false));
    assert_ok(bm_priors_read(&priors, in_folder("train"), vocab, 0.5));
    for (size_t c = 0; c < 5; c++)
        assert_true(near((double)priors[c], log(counts[c] / all), 1e-6));
    free(priors);
    assert_ok(bm_vocab_new(&other, false));
    assert_status(bm_priors_read(&priors, in_folder("train"), other, 1),
                  BM_ERR_FORMAT, "another vocabulary than the model");
    assert_status(bm_priors_read(&priors, in_folder("train"), vocab, 0),
                  BM_ERR_ARG, "the blank scale is greater than 0, not 0");
    bm_vocab_free(other);
    bm_vocab_free(vocab);

    /* Every class has a prior below 1, so that scores rise. */
    set.beam = 20;
    assert_ok(bm_transcriber_open(&t, in_folder("speech"), &set));
    plain = transcribe(t, "test-0.wav");
    bm_transcriber_close(t);
    set.priors = in_folder("train");
    assert_ok(bm_transcriber_open(&t, in_folder("speech"), &set));
    heard = transcribe(t, "test-0.wav");
    bm_transcriber_close(t);
    assert_true(heard->readings[0].score > plain->readings[0].score);
    bm_transcript_free(plain);
    bm_transcript_free(heard);
}

/* White space at the ends and between words is as in texts: io/vocab.h. */
static void test_a_text_has_no_needless_spaces(void **_)
{
    enum { T = 9, C = 4 };
    static const int path[T] = {1, 2, 0, 1, 0, 1, 3, 0, 1}; /* " a  b " */
    const bm_frame_places places = {.step = 1, .length = T};
    bm_best_path memory = {0};
    bm_hypothesis found;
    bm_reading r;
    bm_vocab *vocab = NULL;
    float y[T * C];

    (void)_;
    for (size_t i = 0; i < T * C; i++)
        y[i] = path[i / C] == (int)(i % C) ? 0 : -9;
    assert_ok(bm_vocab_parse(&vocab, "<blank>\n<space>\na\nb\n", false));
    assert_ok(bm_best_path_words(&memory, y, T, C, 1, &found));
    assert_int_equal(found.n_labels, 6);
    assert_ok(bm_reading_make(&r, &found, vocab, NULL, &places));
    assert_string_equal(r.text, "a b");
    assert_int_equal(r.n_words, 2);
    bm_reading_free(&r);
    bm_best_path_free(&memory);
    bm_vocab_free(vocab);
}

/* A word is right if all of its labels are, each with the largest probability of
 * its frames; a reading has the geometric mean of all labels, spaces among them. */
static void test_confidence_is_that_of_the_labels(void **_)
{
    enum { T = 6, C = 4 };
    static const int path[T] = {2, 2, 0, 3, 1, 3}; /* "ab b" */
    static const double p[T] = {0.5, 0.8, 0.9, 0.5, 1, 0.25};
    const bm_frame_places places = {.step = 1, .length = T};
    bm_best_path memory = {0};
    bm_hypothesis found;
    bm_reading r;
    bm_vocab *vocab = NULL;
    float y[T * C];

    (void)_;
    for (size_t i = 0; i < T * C; i++)
        y[i] = path[i / C] == (int)(i % C) ? (float)log(p[i / C]) : -99;
    assert_ok(bm_vocab_parse(&vocab, "<blank>\n<space>\na\nb\n", false));
    assert_ok(bm_best_path_words(&memory, y, T, C, 1, &found));
    assert_ok(bm_reading_make(&r, &found, vocab, NULL, &places));
    assert_string_equal(r.text, "ab b");
    assert_true(near(r.words[0].confidence, 0.8 * 0.5, 1e-6));
    assert_true(near(r.words[1].confidence, 0.25, 1e-6));
    assert_true(near(r.confidence, pow(0.8 * 0.5 * 1 * 0.25, 0.25), 1e-6));
    bm_reading_free(&r);

    for (size_t i = 0; i < T * C; i++)
        y[i] = i % C == 0 ? 0 : -99;
    assert_ok(bm_best_path_words(&memory, y, T, C, 1, &found));
    assert_ok(bm_reading_make(&r, &found, vocab, NULL, &places));
    assert_string_equal(r.text, "");
    assert_true(isnan(r.confidence));
    bm_reading_free(&r);

    for (size_t i = 0; i < T * C; i++)
        y[i] = i % C == 1 ? 0 : -99; /* a space alone */
    assert_ok(bm_best_path_words(&memory, y, T, C, 1, &found));
    assert_int_equal(found.n_labels, 1);
    assert_ok(bm_reading_make(&r, &found, vocab, NULL, &places));
    assert_string_equal(r.text, "");
    assert_true(isnan(r.confidence));
    bm_reading_free(&r);
    bm_best_path_free(&memory);
    bm_vocab_free(vocab);
}

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    assert_code(BMUF("train", "tiny.ini", "--out", "speech", "--set",
                     "train.epochs=8", "--set", "schedule.kind=constant"),
                0);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_give_the_words_of_their_file),
        cmocka_unit_test(test_forks_hear_the_same_on_all_threads),
        cmocka_unit_test(test_after_a_fault_the_transcriber_goes_on),
        cmocka_unit_test(test_models_that_cannot_transcribe_are_refused),
        cmocka_unit_test(test_priors_are_the_frequencies_of_labels),
        cmocka_unit_test(test_a_text_has_no_needless_spaces),
        cmocka_unit_test(test_confidence_is_that_of_the_labels),
    };

    return cmocka_run_group_tests_name("transcriber", tests, prepare,
                                       folder_remove);
}
