/*
 * Features by the interface for other programs: what is in memory gives the same
 * words as a file. What cannot be used is named.
 */
#include "recognise/transcriber.h"
#include "tests/recognise/transcribing.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { DIM = 6 };

/* Frames that say which letter they are of. */
static size_t make_features(const char *text, float *x)
{
    size_t n = 0;

    for (; *text != '\0'; text++)
        for (int i = 0; i < 6; i++, n++)
            for (size_t d = 0; d < DIM; d++)
                x[n * DIM + d] =
                    (float)(*text != ' ' && (size_t)(*text - 'a') == d % 3 &&
                            i < 5);
    return n;
}

static void write_npy(const char *name, const float *x, size_t n)
{
    static const char magic[] = "\x93NUMPY\1\0v"; /* a header of 118 bytes */
    char file[8192];
    int size = 0;

    memcpy(file, magic, sizeof magic);
    memset(file + 10, ' ', 118);
    size = snprintf(file + 10, 118,
                    "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, "
                    "%d), }",
                    n, DIM);
    file[10 + size] = ' ';
    file[127] = '\n';
    memcpy(file + 128, x, n * DIM * sizeof *x);
    write_bytes(name, file, 128 + n * DIM * sizeof *x);
}

static void write_features(void)
{
    static char manifest[42 * 100];
    float x[MOST_GLYPHS * 6 * DIM];
    size_t used = 0;

    for (size_t i = 0; i < 42; i++) {
        char name[32];

        snprintf(name, sizeof name, "f-%zu.npy", i);
        write_npy(name, x, make_features(speech_text(i), x));
        used += (size_t)sprintf(
            manifest + used,
            "{\"id\": \"f-%zu\", \"feats\": \"%s\", \"text\": \"%s\"}\n", i,
            name, speech_text(i));
    }
    write_text("feats.jsonl", manifest);
}

static void test_features_give_the_words_of_their_file(void **_)
{
    float x[MOST_GLYPHS * 6 * DIM];
    bm_transcriber *t = open_model("feats");
    bm_transcript *none = NULL;
    outcome packed = BMUF("decode", "feats", "packed-feats", "--nbest", "2");
    outcome files = BMUF("decode", "feats", "feats.jsonl", "--nbest", "2");

    (void)_;
    assert_int_equal(bm_transcriber_describe(t).kind, BM_FEATURE_FILES);
    assert_true(near(bm_transcriber_describe(t).frame_shift, 0.02, 1e-12));
    for (size_t i = 0; i < N; i++) {
        size_t n = make_features(speech_text(i), x);
        char name[32];
        bm_transcript *file = NULL, *memory = NULL;

        snprintf(name, sizeof name, "f-%zu.npy", i);
        file = transcribe(t, name);
        assert_ok(bm_transcriber_features(t, x, n, DIM, &memory));
        assert_true(same(file, memory));
        bm_transcript_free(file);
        bm_transcript_free(memory);
    }
    assert_status(bm_transcriber_features(t, x, 2, DIM - 1, &none),
                  BM_ERR_FORMAT,
                  "5 numbers per frame, but the model was "
                  "trained on 6");
    bm_transcriber_close(t);
    assert_code(packed, 0);
    assert_string_equal(packed.out, files.out);
}

/* Frames of a program that makes its own. */
static void test_outputs_that_are_not_finite_are_no_words(void **_)
{
    float x[4 * DIM];
    const bm_input_frames frames = {.x = x, .n = 4, .dim = DIM, .step = 1};
    bm_transcriber *t = open_model("feats");
    bm_transcript *none = NULL;

    (void)_;
    for (size_t i = 0; i < 4 * DIM; i++)
        x[i] = i == 0 ? NAN : 1;
    assert_status(bm_transcriber_frames(t, &frames, &none), BM_ERR_FORMAT,
                  "the network's outputs are not finite; are the features made "
                  "as the model's were?");
    assert_null(none);
    bm_transcriber_close(t);
}

static void test_arrays_need_their_ending(void **_)
{
    float x[MOST_GLYPHS * 6 * DIM];
    bm_transcriber *t = open_model("feats");
    bm_transcript *none = NULL;
    outcome o;

    (void)_;
    write_npy("array.bin", x, make_features("abc", x));
    assert_status(bm_transcriber_file(t, in_folder("array.bin"), NULL, &none),
                  BM_ERR_FORMAT,
                  "array.bin is a NumPy array, whose name must end in .npy or "
                  ".npz");
    bm_transcriber_close(t);
    o = command_run(
        &(command){.words = (const char *const[]){"decode", "feats", "-", NULL},
                   .in = "array.bin"});
    assert_code(o, 65);
    assert_says(o.err, "stdin takes none");
}

/* Each third frame of seven. */
static void test_places_are_frames_of_files_without_a_rate(void **_)
{
    static const char description[] =
        "{\"kind\": \"features\", \"dim\": 6, \"shift_ms\": 0, "
        "\"subsample\": 3, \"normalise\": \"none\"}";
    float x[7 * DIM] = {0};
    bm_front_end *f = NULL;
    bm_input_frames out = {0};

    (void)_;
    assert_ok(bm_front_end_open(&f, description, DIM, 0));
    assert_ok(bm_front_end_features(f, x, 7, DIM, &out));
    assert_int_equal(out.n, 3);
    assert_true(out.step == 3 && out.lead == 0 && out.length == 7);
    bm_front_end_close(f);
}

static int prepare(void **state)
{
    if (make_corpus(state) != 0)
        return 1;
    write_features();
    make_model("--features", "feats.jsonl", "packed-feats",
               "features.subsample=2", "feats");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features_give_the_words_of_their_file),
        cmocka_unit_test(test_outputs_that_are_not_finite_are_no_words),
        cmocka_unit_test(test_arrays_need_their_ending),
        cmocka_unit_test(test_places_are_frames_of_files_without_a_rate),
    };

    return cmocka_run_group_tests_name("transcriber_features", tests, prepare,
                                       folder_remove);
}
