/*
 * What bmuf eval reads: features as the model's, and models and sets that are
 * damaged, or something else.
 */
#include "io/model/safetensors.h"
#include "tests/support/command.h"
#include "tests/support/evaluations.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- features as the model's --------------------------------------------- */

static void test_other_feature_settings_are_an_error(void **_)
{
    (void)_;
    pack_speech("test.jsonl", "bent", "train", "features.preemphasis=0.5");
    assert_fails(BMUF("eval", "half.safetensors", "bent"), 65,
                 "bent has other features than the model half.safetensors:\n"
                 "  features.preemphasis is 0.5, should be 0.97: --set "
                 "features.preemphasis=0.97\n",
                 "--vocab TRAINING-DATA");
    assert_code(BMUF("eval", "half.safetensors", "bent", "--force"), 0);
    assert_fails(
        BMUF("train", "tiny.ini", "--out", "none", "--set", "data.dev=bent"),
        65, "bent has other features than data.train (train):",
        "features.preemphasis is 0.5");
    /* What belongs to the recordings may differ. */
    pack_speech("test.jsonl", "first", "train", "features.channel=1");
    assert_code(BMUF("eval", "half.safetensors", "first"), 0);
}

static void assert_same_files(const char *a, const char *b)
{
    size_t size[2];
    char *x = slurp(in_folder(a), &size[0]), *y = slurp(in_folder(b), &size[1]);

    assert_int_equal(size[0], size[1]);
    assert_memory_equal(x, y, size[0]);
    free(x);
    free(y);
}

/* The means of the training set are in its shards and in the model: a set that
 * was packed like either, and one that was not normalised, give equal logits. */
static void test_the_normalisation_travels_with_the_model(void **_)
{
    static const char *const same[] = {"like", "after", "raw"};
    dump own = {0}, like = {0};
    char dumped[32];

    (void)_;
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "whole",
                     "--set", "features.mels=8", "--set", "features.deltas=1",
                     "--set", "features.stack=2", "--set",
                     "features.normalise=global", "--set",
                     "shard.unit_frames=100"),
                0);
    assert_code(BMUF("train", "tiny.ini", "--out", "global", "--set",
                     "data.train=whole", "--set", "data.dev=", "--set",
                     "train.epochs=1", "--set", "schedule.kind=constant"),
                0);
    write_manifest("few.jsonl", 0, 8, 8);
#define PACK(manifest, set, vocab, normalise)                                  \
    assert_code(BMUF("pack", "--audio", manifest, "--out", set, "--vocab",     \
                     vocab, "--set", "features.mels=8", "--set",               \
                     "features.deltas=1", "--set", "features.stack=2",         \
                     "--set", normalise),                                      \
                0)
    PACK("test.jsonl", "like", "whole", "features.normalise=global");
    PACK("test.jsonl", "after", "global/model.safetensors",
         "features.normalise=global");
    PACK("test.jsonl", "raw", "whole", "features.normalise=none");
    PACK("few.jsonl", "own", "whole/vocab.txt", "features.normalise=global");
#undef PACK
    FOR_EACH (k, same) {
        snprintf(dumped, sizeof dumped, "%s.npz", same[k]);
        assert_code(BMUF("eval", "global", same[k], "--dump", dumped), 0);
        assert_same_files("like.npz", dumped);
    }
    assert_fails(BMUF("eval", "global", "own"), 65,
                 "features.normalise = global has the means of another set");
    assert_code(BMUF("eval", "global", "own", "--force", "--dump", "own.npz"),
                0);
    own = dump_read("own.npz");
    like = dump_read("like.npz");
    assert_memory_not_equal(dump_find(&own, "test-0")->x,
                            dump_find(&like, "test-0")->x, sizeof(float));
    dump_free(&own);
    dump_free(&like);
    /* The numbers are not for people. */
    assert_int_equal(count_of(BMUF("info", "whole").out, "scale"), 0);
    assert_true(strlen(BMUF("info", "whole").out) < 2000);
}

/* ---- sets and paths ------------------------------------------------------ */

static void test_data_that_do_not_fit_the_model_are_rejected(void **_)
{
    (void)_;
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "wide"), 0);
    assert_fails(BMUF("eval", "half.safetensors", "wide"), 65,
                 "wide has other features than the model half.safetensors (40 "
                 "in a frame, not 8):\n"
                 "  features.mels is 40, should be 8: --set features.mels=8\n");
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "worded",
                     "--units", "words", "--set", "features.mels=8"),
                0);
    assert_fails(BMUF("eval", "half.safetensors", "worded"), 65,
                 "worded has 17 words, the model half.safetensors has 5 "
                 "characters; the first that differs is 'a' in place of "
                 "'<space>'; pack it with --vocab TRAINING-DATA");
    write_text("fewer.txt", "<blank>\n<space>\n");
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "fewer",
                     "--vocab", "fewer.txt", "--units", "characters", "--set",
                     "features.mels=8", "--max-unknown", "100"),
                0);
    assert_fails(BMUF("eval", "half.safetensors", "fewer"), 65,
                 "fewer has 2 characters, the model half.safetensors has 5 "
                 "characters; the first that differs is none in place of '");
    write_text("line.pgm", "P5\n4 4\n255\n0123456789abcdef");
    write_text("line.jsonl",
               "{\"id\": \"l\", \"image\": \"line.pgm\", \"text\": \"a\"}\n");
    assert_code(BMUF("pack", "--images", "line.jsonl", "--out", "line"), 0);
    assert_fails(BMUF("eval", "half.safetensors", "line"), 65,
                 "line has images, the model half.safetensors was trained on "
                 "recordings\n");
    write_text("wordless.jsonl",
               "{\"id\": \"a\", \"audio\": \"test-0.wav\"}\n");
    assert_code(BMUF("pack", "--audio", "wordless.jsonl", "--out", "wordless",
                     "--set", "features.mels=8"),
                0);
    assert_fails(BMUF("eval", "half.safetensors", "wordless"), 65,
                 "wordless has no labels, and no vocabulary for them");
    write_text("test.tsv", "id\taudio\na\ttest-0.wav\n");
    assert_fails(BMUF("eval", "half.safetensors", "test.tsv"), 65,
                 "bmuf: test.tsv is a text, not a shard; if it is a manifest, "
                 "pack it first: bmuf pack --audio test.tsv --out DIR,");
    assert_fails(BMUF("eval", "half.safetensors", "test.jsonl"), 65,
                 "bmuf: test.jsonl is JSON, not a shard; if it is a manifest");
    assert_fails(BMUF("eval", "test.jsonl", "test"), 65,
                 "test.jsonl is JSON, not a model");
    assert_fails(BMUF("eval", "test", "half.safetensors"), 65,
                 "test is a packed set, not a model; the model or run comes "
                 "first");
    write_text("test.onnx", "");
    assert_fails(BMUF("eval", "test.onnx", "test"), 65,
                 "test.onnx is an ONNX file for other programs, not a model");
    write_speech("first.wav", "ab");
    assert_fails(BMUF("decode", "first.wav", "half.safetensors"), 65,
                 "first.wav is a WAV recording, not a model; the model or run "
                 "comes first");
    assert_fails(BMUF("info", "test.jsonl"), 65, "test.jsonl is JSON, not a");
    assert_fails(
        BMUF("eval", "half.safetensors", "test", "--hyp", "no/where.trn"), 73,
        "no/where.trn", "there is no directory no/");
    /* Checked first, before even the model is read. */
    assert_fails(BMUF("eval", "no.safetensors", "test", "--hyp", "test"), 73,
                 "test is a directory");
}

/* Opening a pipe waits for its other end. */
static void test_pipes_in_place_of_files_are_refused(void **_)
{
    static const char refused[] = "pipe is a pipe, not a regular file";

    (void)_;
    assert_int_equal(mkfifo(in_folder("pipe"), 0600), 0);
    assert_int_equal(mkdir(in_folder("piped"), 0777), 0);
    assert_int_equal(mkfifo(in_folder("piped/data-00000.bmuf.h5"), 0600), 0);
    assert_fails(BMUF("eval", "pipe", "test"), 66, refused);
    assert_fails(BMUF("eval", "half.safetensors", "piped"), 66,
                 "data-00000.bmuf.h5 is a pipe");
    assert_fails(BMUF("info", "pipe"), 66, "pipe");
    assert_fails(BMUF("decode", "half.safetensors", "pipe"), 66, refused,
                 "give - to read stdin");
    assert_fails(BMUF("train", "pipe", "--out", "never"), 66, refused);
    assert_fails(BMUF("pack", "--audio", "pipe", "--out", "never"), 66,
                 refused);
    assert_fails(BMUF("pack", "--audio", "test.jsonl", "--out", "never",
                      "--vocab", "pipe"),
                 66, refused);
    assert_fails(BMUF("eval", "half.safetensors", "test", "--hyp", "pipe"), 73,
                 "pipe is a device or a pipe");
    assert_int_equal(unlink(in_folder("piped/data-00000.bmuf.h5")), 0);
}

/* ---- models -------------------------------------------------------------- */

/* bmuf export --weights writes a model under any name. */
static void test_info_knows_a_model_under_any_name(void **_)
{
    outcome named = BMUF("info", "half.safetensors");

    (void)_;
    run_tool((char *[]){"cp", (char *)in_folder("half.safetensors"),
                        (char *)in_folder("nameless"), NULL});
    assert_code(named, 0);
    assert_string_equal(BMUF("info", "nameless").out, named.out);
}

/* The last checkpoint of a run holds its model. */
static void test_a_checkpoint_is_scored_like_its_model(void **_)
{
    outcome model, checkpoint;
    glob_t found = {0};

    (void)_;
    assert_code(BMUF("train", "tiny.ini", "--out", "kept"), 0);
    assert_int_equal(
        glob(in_folder("kept/checkpoints/*.safetensors"), 0, NULL, &found), 0);
    model = BMUF("eval", "kept/model.safetensors", "test", "--json");
    checkpoint =
        BMUF("eval", found.gl_pathv[found.gl_pathc - 1], "test", "--json");
    assert_code(model, 0);
    assert_code(checkpoint, 0);
    assert_same_result(model.out, checkpoint.out);
    globfree(&found);
}

/* A model whose header differs in one byte. */
static void test_a_model_without_features_is_rejected(void **_)
{
    static const char right[] = "\"features\":\"8\"";
    size_t size = 0;
    char *model = slurp(in_folder("half.safetensors"), &size);
    size_t at = 0;

    (void)_;
    while (at + sizeof right < size &&
           memcmp(model + at, right, sizeof right - 1) != 0)
        at++;
    assert_true(at + sizeof right < size);
    model[at + sizeof right - 3] = '0';
    write_bytes("odd.safetensors", model, size);
    free(model);
    assert_fails(BMUF("eval", "odd.safetensors", "test"), 65,
                 "odd.safetensors: '0' is not a valid number of features");
}

/* Writes half.safetensors again, with another network and one small tensor. */
static void claim(const char *to, const char *net)
{
    static const char *const keys[] = {
        "format",           "loss",      "features", "infeasible", "units",
        "feature_settings", "vocabulary"};
    const bm_st_tensor t = {"0.lstm.wx", BM_F32, 2, {4, 8}, 32};
    const float x[32] = {0};
    bm_st_file *f = NULL;
    bm_st_writer *w = NULL;

    assert_ok(bm_st_open(&f, in_folder("half.safetensors"), false));
    assert_ok(bm_st_create(&w, in_folder(to), false));
    FOR_EACH (i, keys)
        assert_ok(bm_st_meta(w, keys[i], bm_st_text(f, keys[i])));
    assert_ok(bm_st_meta(w, "net", net));
    assert_ok(bm_st_declare(w, &t));
    assert_ok(bm_st_write(w, x, sizeof x));
    assert_ok(bm_st_commit(w, NULL));
    bm_st_close(w);
    bm_st_free(f);
}

/* The second of them has 2 TB of weights, which no test machine allocates. */
static void test_a_network_larger_than_its_file_is_rejected(void **_)
{
    static const struct {
        const char *net, *message;
    } claims[] = {
        {"lstm:20000 linear", "tensor 0.lstm.wx is [4, 8], but the network has "
                              "[80000, 8]"},
        {"linear:1048576 linear:524288 linear", "tensor 0.linear.w is missing"},
        {"stack:1048576*3 stack:16 linear", "outputs per frame; the limit is"},
        {"linear:1048576*3 linear", "weights in total"},
    };

    (void)_;
    FOR_EACH (i, claims) {
        claim("claims.safetensors", claims[i].net);
        assert_fails(BMUF("eval", "claims.safetensors", "test"), 65,
                     "claims.safetensors: ", claims[i].message);
    }
}

static void test_texts_of_a_model_do_not_reach_the_terminal_raw(void **_)
{
    outcome o;

    (void)_;
    claim("red.safetensors", "\033]0;title\a linear");
    o = BMUF("info", "red.safetensors");
    assert_code(o, 0);
    assert_says(o.out, "\\x1b]0;title\\x07 linear");
    assert_int_equal(count_of(o.out, "\033"), 0);
    o = BMUF("eval", "red.safetensors", "test");
    assert_code(o, 65);
    assert_says(o.err, "\\x1b]0;title");
    assert_int_equal(count_of(o.err, "\033"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_feature_settings_are_an_error),
        cmocka_unit_test(test_the_normalisation_travels_with_the_model),
        cmocka_unit_test(test_data_that_do_not_fit_the_model_are_rejected),
        cmocka_unit_test(test_info_knows_a_model_under_any_name),
        cmocka_unit_test(test_pipes_in_place_of_files_are_refused),
        cmocka_unit_test(test_a_checkpoint_is_scored_like_its_model),
        cmocka_unit_test(test_a_model_without_features_is_rejected),
        cmocka_unit_test(test_a_network_larger_than_its_file_is_rejected),
        cmocka_unit_test(test_texts_of_a_model_do_not_reach_the_terminal_raw),
    };
    return cmocka_run_group_tests_name("eval_inputs", tests, make_half_trained,
                                       folder_remove);
}
