/*
 * From shards to a trained model: train and info; and all verbs in sequence on
 * real data, if available.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void test_a_model_is_trained_and_described(void **_)
{
    outcome o =
        BMUF("train", "tiny.ini", "--out", "run", "--set", "data.test=test");
    json_t *run = NULL, *model = NULL, *end = NULL;

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "epochs    3\n");
    assert_after(o.out, "blocks ", 9., 6);
    assert_after(o.out, "frames ", 3. * (double)speech_total(42, speech_frames),
                 6);
    assert_says(o.out, "test LER ");
    assert_says(o.out, "model     run/model.safetensors\n");
    run = parse_json(BMUF("info", "run", "--json").out);
    end = json_object_get(run, "end");
    assert_string_equal(text(end, "reason"), "done");
    assert_true(number(end, "epochs") == 3 && number(end, "blocks") == 9);
    assert_says(o.out, json_string_value(json_object_get(end, "digest")));
    assert_true(number(json_object_get(run, "start"), "workers") == 2);
    assert_true(number(json_object_get(run, "start"), "sequences") == 42);
    assert_string_equal(text(json_object_get(run, "eval"), "data"), "test");
    assert_says(BMUF("info", "run").out, "  reason           \"done\"\n");

    /* The kind of a file does not depend on its directory. */
    run_tool((char *[]){"cp", "-r", (char *)in_folder("run"),
                        (char *)in_folder("block-1"), NULL});
    assert_code(BMUF("info", "block-1/model.safetensors"), 0);
    model = parse_json(BMUF("info", "run/model.safetensors", "--json").out);
    assert_string_equal(text(model, "net"), "stack:2 blstm:16 linear");
    assert_string_equal(text(model, "loss"), "ctc");
    assert_string_equal(text(model, "features"), "8");
    assert_string_equal(text(model, "units"), "characters");
    assert_true(json_array_size(json_object_get(model, "tensors")) > 2);
    /* blstm: 2 x 4 x 16 (16 + 16 + 1); linear: 33 x 5 */
    o = BMUF("info", "run/model.safetensors");
    assert_says(o.out, "4389 floats in total");
    o = BMUF("info", "run/checkpoints/block-00000009.safetensors");
    assert_code(o, 0);
    assert_says(o.out, "delta");
    json_decref(run);
    json_decref(model);
}

/* config.ini of a run describes that run. */
static void test_a_run_can_be_repeated_from_its_config(void **_)
{
    outcome first = BMUF("train", "tiny.ini", "--out", "first", "--set",
                         "train.epochs=1", "--set", "job.seed=7");
    outcome again = BMUF("train", "first/config.ini", "--out", "again1");
    const char *digest = strstr(first.out, "digest ");

    (void)_;
    assert_code(first, 0);
    assert_code(again, 0);
    assert_non_null(digest);
    assert_says(again.out, digest);
}

/* ---- real data ---------------------------------------------------------- */

/* NAME.jsonl with `n` rows of a manifest.tsv: column 1 is the name, 2 the file,
 * the last the text; only rows with `of` in them, `skip` after each. */
static void manifest_of(const char *tsv, const char *key, const char *of,
                        size_t n, size_t skip, const char *name)
{
    static char line[4096], all[1 << 16];
    FILE *in = fopen(tsv, "r");
    size_t used = 0, met = 0, rows = 0;

    assert_non_null(in);
    while (rows < n && fgets(line, sizeof line, in) != NULL) {
        char *file = strchr(line, '\t'), *words = strrchr(line, '\t');

        if (strstr(line, of) == NULL || file == NULL || met++ % (skip + 1) != 0)
            continue;
        *file++ = '\0';
        *strchr(file, '\t') = '\0';
        words[strcspn(words, "\r\n")] = '\0';
        used += (size_t)snprintf(
            all + used, sizeof all - used,
            "{\"id\": \"%s\", \"%s\": \"%s\", \"text\": \"%s\"}\n", line, key,
            file, words + 1);
        rows++;
    }
    fclose(in);
    assert_int_equal(rows, n);
    write_text(name, all);
}

/* From real recordings to an error rate, with all verbs. */
static void test_spoken_digits_end_to_end(void **_)
{
    const char *archive = real_data("speech/fsdd/fsdd-wav.tar.xz"), *tsv = NULL;
    json_t *result = NULL;

    (void)_;
    if (archive == NULL)
        skip();
    unpack(archive);
    tsv = real_data("speech/fsdd/manifest.tsv");
    manifest_of(tsv, "audio", "\ttrain\t", 100, 22, "digits.jsonl");
    manifest_of(tsv, "audio", "\ttest\t", 30, 8, "dtest.jsonl");
    assert_code(BMUF("pack", "--audio", "digits.jsonl", "--out", "digits",
                     "--set", "shard.unit_frames=200"),
                0);
    assert_code(BMUF("pack", "--audio", "dtest.jsonl", "--out", "dtest",
                     "--vocab", "digits"),
                0);
    assert_code(BMUF("check", "digits"), 0);
    assert_code(BMUF("check", "dtest"), 0);
    write_text("digits.ini", "[data]\ntrain = digits\n"
                             "[model]\nnet = stack:3 blstm:16 linear\n"
                             "[train]\nepochs = 2\nrate = 0.05\n"
                             "[job]\nworkers = 4\n"
                             "[batch]\nsequences = 3\n"
                             "[sgd]\nclip = 5\nmomentum = 0.5\n"
                             "[schedule]\nkind = constant\n"
                             "[block]\nsteps = 2\n");
    assert_code(BMUF("explain", "digits.ini"), 0);
    assert_code(BMUF("train", "digits.ini", "--dry-run", "--out", "drun"), 0);
    assert_code(BMUF("train", "digits.ini", "--out", "drun", "-n", "2"), 0);
    result = parse_json(
        BMUF("eval", "drun/model.safetensors", "dtest", "--json").out);
    assert_true(number(result, "sequences") == 30);
    assert_true(number(result, "loss") > 0);
    assert_true(number(result, "ler") > 0 && number(result, "ler") <= 1);
    json_decref(result);
}

static void test_handwritten_lines_end_to_end(void **_)
{
    const char *archive = real_data("handwriting/copiste/copiste-dev.tar.gz");
    const char *tsv = NULL;
    json_t *result = NULL;

    (void)_;
    if (archive == NULL)
        skip();
    unpack(archive);
    tsv = real_data("handwriting/copiste/manifest.tsv");
    manifest_of(tsv, "image", "\tdev\t", 40, 0, "hand.jsonl");
    assert_code(BMUF("pack", "--images", "hand.jsonl", "--out", "hand", "--set",
                     "shard.unit_frames=400"),
                0);
    assert_code(BMUF("check", "hand"), 0);
    assert_says(BMUF("info", "hand").out, "stored as u8");
    write_text("hand.ini", "[data]\ntrain = hand\n"
                           "[model]\nnet = blstm:8 linear\n"
                           "[train]\nepochs = 1\nrate = 0.02\n"
                           "[job]\nworkers = 2\n"
                           "[batch]\nsequences = 2\n"
                           "[sgd]\nclip = 5\nmomentum = 0.5\n"
                           "[schedule]\nkind = constant\n"
                           "[block]\nsteps = 4\n");
    assert_code(BMUF("explain", "hand.ini"), 0);
    assert_code(BMUF("train", "hand.ini", "--out", "hrun"), 0);
    result = parse_json(
        BMUF("eval", "hrun/model.safetensors", "hand", "--json").out);
    assert_true(number(result, "sequences") == 40);
    assert_true(number(result, "words") > 40);
    json_decref(result);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_model_is_trained_and_described),
        cmocka_unit_test(test_a_run_can_be_repeated_from_its_config),
        cmocka_unit_test(test_spoken_digits_end_to_end),
        cmocka_unit_test(test_handwritten_lines_end_to_end),
    };
    return cmocka_run_group_tests_name("trained", tests, make_corpus,
                                       folder_remove);
}
