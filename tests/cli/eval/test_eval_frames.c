/*
 * Models with a class for every frame: frame error rates are compared with the
 * logits.
 */
#include "tests/support/command.h"
#include "tests/support/datasets.h"
#include "tests/support/folder.h"
#include "tests/support/reference/support_ctc.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 70, CLASSES = 5 };

/* Frames of class t % 5; in some of them the features indicate the class. */
static int make_frames(void **state)
{
    char directory[200];
    corpus c;

    if (folder_make(state) != 0)
        return 1;
    snprintf(directory, sizeof directory, "%s", in_folder("frames"));
    c = corpus_make(directory, "f", N);
    c.meta.per_frame = true;
    assert_int_equal(corpus_write(&c), 1);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    write_text("frames.ini", "[data]\n"
                             "train = frames\n"
                             "[model]\n"
                             "net = blstm:8 linear\n"
                             "loss = cross_entropy\n"
                             "[train]\n"
                             "epochs = 5\n"
                             "rate = 0.1\n"
                             "[schedule]\n"
                             "kind = constant\n"
                             "[job]\n"
                             "workers = 2\n"
                             "[sgd]\n"
                             "momentum = 0.5\n"
                             "[batch]\n"
                             "sequences = 4\n"
                             "[block]\n"
                             "steps = 3\n");
    assert_code(BMUF("train", "frames.ini", "--out", "run"), 0);
    return 0;
}

static void test_errors_and_loss_are_those_of_the_logits(void **_)
{
    outcome o = BMUF("eval", "run/model.safetensors", "frames", "--json",
                     "--dump", "f.npz");
    double loss = 0, wrong = 0, sequences = 0, frames = 0;
    json_t *result = NULL;
    dump d = {0};

    (void)_;
    assert_code(o, 0);
    result = parse_json(o.out);
    d = dump_read("f.npz");
    assert_int_equal(d.n, N);
    for (size_t i = 0; i < N; i++) {
        const dump_array *a = NULL;
        double before = wrong;
        char id[32];

        snprintf(id, sizeof id, "f/%zu", i);
        a = dump_find(&d, id);
        assert_int_equal(a->rows, corpus_frames(i));
        assert_int_equal(a->columns, CLASSES);
        for (size_t t = 0; t < a->rows; t++) {
            const float *row = a->x + t * CLASSES;
            double log_p[CLASSES];
            size_t best = 0;

            log_softmax(CLASSES, row, log_p);
            for (size_t c = 1; c < CLASSES; c++)
                best = row[c] > row[best] ? c : best;
            loss -= log_p[t % CLASSES];
            wrong += best != t % CLASSES;
        }
        frames += (double)a->rows;
        sequences += wrong > before;
    }
    assert_true(wrong > 0 && wrong < frames); /* else nothing is tested */
    assert_true(near(number(result, "loss"), loss / frames, 1e-5));
    assert_true(number(result, "substitutions") == wrong);
    assert_true(number(result, "deletions") == 0);
    assert_true(number(result, "insertions") == 0);
    assert_true(number(result, "labels") == frames);
    assert_true(number(result, "frames") == frames);
    assert_true(number(result, "wrong") == sequences);
    assert_true(near(number(result, "ler"), wrong / frames, 1e-8));
    dump_free(&d);
    json_decref(result);
}

/* Two sequences of a class, one of them with a NaN: that one is skipped, and its
 * frames are in no rate. */
static void test_a_sequence_with_a_nan_is_counted_as_skipped(void **_)
{
    enum { FRAMES = 10 };
    char *directory = strdup(in_folder("nan"));
    corpus c = corpus_make(directory, "nan", 0);
    const int32_t classes[FRAMES] = {0};
    float x[FRAMES * CORPUS_D] = {0};
    bm_shard_writer *w = NULL;
    json_t *result = NULL;
    size_t shards = 0;

    (void)_;
    c.meta.per_frame = true;
    run_tool((char *[]){"mkdir", directory, NULL});
    assert_ok(
        bm_shard_writer_open(&w, c.directory, c.name, &c.settings, &c.meta));
    assert_ok(bm_shard_writer_add(w, "a", NULL, x, FRAMES, classes, FRAMES));
    x[7] = NAN;
    assert_ok(bm_shard_writer_add(w, "b", NULL, x, FRAMES, classes, FRAMES));
    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    free(directory);
    result =
        parse_json(BMUF("eval", "run/model.safetensors", "nan", "--json").out);
    assert_true(number(result, "sequences") == 2);
    assert_true(number(result, "skipped") == 1);
    assert_true(number(result, "labels") == FRAMES);
    json_decref(result);
}

static void test_the_loss_is_per_frame(void **_)
{
    outcome o = BMUF("eval", "run/model.safetensors", "frames");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, " nats per frame\n");
    assert_says(BMUF("info", "frames").out, ", one a frame\n");
}

/* Frames are compared one by one: all errors are substitutions, and a run and
 * its model itself have the same. */
static void test_frames_are_reported_and_compared(void **_)
{
    json_t *result = parse_json(
        BMUF("eval", "run/model.safetensors", "frames", "--json").out);
    char words[120];
    char *html = NULL;
    size_t size = 0;

    (void)_;
    assert_true(number(result, "substitutions") > 0);
    snprintf(words, sizeof words,
             "of %.0f labels taken for another, 0 missing and 0 too many",
             number(result, "substitutions"));
    assert_code(BMUF("report", "run", "--on", "frames"), 0);
    html = slurp(in_folder("run/report.html"), &size);
    assert_says(html, words);
    assert_int_equal(count_of(html, "class='pair ins'"), 0);
    free(html);
    assert_says(
        BMUF("compare", "run", "run/model.safetensors", "--on", "frames").out,
        "no difference in any sequence");
    json_decref(result);
}

/* Labels of sequences with a loss for frames, and the reverse. */
static void test_a_loss_that_does_not_fit_the_labels_is_rejected(void **_)
{
    (void)_;
    assert_fails(
        BMUF("train", "frames.ini", "--out", "ctc", "--set", "model.loss=ctc"),
        65, "frames has labels for frames", "use cross_entropy");
    make_speech("talk", 21);
    assert_code(BMUF("pack", "--audio", "talk.jsonl", "--out", "talk", "--set",
                     "features.mels=5", "--set", "shard.unit_frames=50"),
                0);
    assert_fails(
        BMUF("train", "frames.ini", "--out", "ce", "--set", "data.train=talk"),
        65, "talk has labels for whole sequences", "use ctc");
    assert_fails(BMUF("eval", "run/model.safetensors", "talk"), 65,
                 "talk has labels for whole sequences",
                 "give a set with such labels, or a model trained with ctc");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_and_loss_are_those_of_the_logits),
        cmocka_unit_test(test_a_sequence_with_a_nan_is_counted_as_skipped),
        cmocka_unit_test(test_the_loss_is_per_frame),
        cmocka_unit_test(test_frames_are_reported_and_compared),
        cmocka_unit_test(test_a_loss_that_does_not_fit_the_labels_is_rejected),
    };
    return cmocka_run_group_tests_name("eval_frames", tests, make_frames,
                                       folder_remove);
}
