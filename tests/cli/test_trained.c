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
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The table and the chart of bmuf info against its JSON. */
static void assert_learning_curve(const json_t *run, const char *printed)
{
    const json_t *epochs = json_object_get(run, "epochs"), *epoch = NULL;
    double best = 2;
    size_t i = 0;

    assert_string_equal(text(run, "state"), "done");
    assert_true(number(run, "epochs_done") == 3);
    assert_int_equal(json_array_size(epochs), 3);
    json_array_foreach(epochs, i, epoch)
    {
        char line[80];

        snprintf(line, sizeof line, "\n%5zu %11.4g %10.2f %% %9.4g %8.2f %%",
                 i + 1, number(epoch, "loss"), 100 * number(epoch, "error"),
                 number(epoch, "dev_loss"), 100 * number(epoch, "dev_ler"));
        assert_says(printed, line);
        best = fmin(best, number(epoch, "dev_ler"));
    }
    assert_true(number(run, "best_ler") == best);
    assert_says(printed, "state      done; epochs 3/3, 9 blocks");
    assert_says(printed, "bmuf, 2 workers on 1 rank, cpu fp32\n");
    assert_says(printed, "model      run/model.safetensors\n");
    assert_says(printed, "label errors over epochs");
    assert_says(printed, "time of rank 0\n");
}

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
    assert_learning_curve(run, BMUF("info", "run").out);

    assert_string_equal(text(json_object_get(run, "best"), "file"),
                        "model-best.safetensors");
    assert_says(BMUF("info", "run/model-best.safetensors").out,
                "evaluated    dev\n");

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
    assert_says(o.out, "4389 numbers in total");
    o = BMUF("info", "run/checkpoints/block-00000009.safetensors");
    assert_code(o, 0);
    assert_says(o.out, "delta");
    json_decref(run);
    json_decref(model);
}

/* Else they share a folder there, and remove it while others start. */
static void test_one_process_needs_no_tmpdir(void **_)
{
    char *before = getenv("TMPDIR");
    outcome o;

    (void)_;
    before = before != NULL ? strdup(before) : NULL;
    setenv("TMPDIR", "/dev/null", 1);
    o = BMUF("train", "tiny.ini", "--out", "displaced", "--set",
             "train.epochs=1");
    unsetenv("TMPDIR");
    if (before != NULL)
        setenv("TMPDIR", before, 1);
    free(before);
    assert_code(o, 0);
}

/* The defaults learn without a dev set, on one worker and on four. */
static void test_data_and_net_are_enough(void **_)
{
    static const char *const workers[] = {"job.workers=1", "job.workers=4"};

    (void)_;
    write_text("least.ini", "[data]\ntrain = train\n"
                            "[model]\nnet = stack:2 blstm:16 linear\n");
    for (size_t i = 0; i < 2; i++) {
        char run[8];
        outcome o = {0};
        json_t *result = NULL;

        snprintf(run, sizeof run, "least%zu", i);
        o = BMUF("train", "least.ini", "--out", run, "--set", workers[i]);
        assert_code(o, 0);
        result = parse_json(BMUF("eval", run, "test", "--json").out);
        assert_true(number(result, "ler") < 0.1);
        json_decref(result);
    }
}

/* config.ini of a run describes that run. */
static void test_a_run_can_be_repeated_from_its_config(void **_)
{
    outcome first = BMUF("train", "tiny.ini", "--out", "first", "--set",
                         "train.epochs=1", "--set", "job.seed=7");
    outcome again = BMUF("train", "first/config.ini", "--out", "again1");
    const char *digest = strstr(first.out, "digest ");
    char line[64];

    (void)_;
    assert_code(first, 0);
    assert_code(again, 0);
    assert_non_null(digest);
    snprintf(line, sizeof line, "%.*s", (int)strcspn(digest, "\n"), digest);
    assert_says(again.out, line);
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

/* Epoch 1 has the later of the two blocks 0/1: losses 4 and 1 of 100 and 300
 * frames, 400 frames in 4 s. */
static const char resumed[] =
    "{\"event\":\"start\",\"strategy\":\"bmuf\",\"workers\":4,\"ranks\":1,"
    "\"blocks_per_epoch\":2,\"net\":\"linear\",\"weights\":9}\n"
    "{\"event\":\"block\",\"epoch\":0,\"block\":0,\"loss\":4,\"error\":0.8,"
    "\"rate\":0.5,\"frames\":100,\"seconds\":1}\n"
    "{\"event\":\"block\",\"epoch\":0,\"block\":1,\"loss\":9,\"error\":0.9,"
    "\"rate\":0.5,\"frames\":300,\"seconds\":30}\n"
    "{\"event\":\"eval\",\"data\":\"dev\",\"epoch\":1,\"loss\":3,\"ler\":0.9}\n"
    "{\"event\":\"start\",\"strategy\":\"bmuf\",\"workers\":4,\"ranks\":2,"
    "\"blocks_per_epoch\":2,\"net\":\"linear\",\"weights\":9}\n"
    "{\"event\":\"block\",\"epoch\":0,\"block\":1,\"loss\":1,\"error\":0.4,"
    "\"rate\":0.25,\"frames\":300,\"seconds\":3}\n"
    "{\"event\":\"eval\",\"data\":\"dev\",\"epoch\":1,\"loss\":2,\"ler\":0.3}\n"
    "{\"event\":\"block\",\"epoch\":1,\"block\":0,\"loss\":0.5,\"error\":0.2,"
    "\"rate\":0.125,\"frames\":100,\"seconds\":2}\n"
    "{\"event\":\"block\",\"epoch\":1,\"blo";

static void test_info_tells_where_a_killed_run_stands(void **_)
{
    static const struct {
        const char *reason, *state;
    } ends[] = {{"converged", "converged"},
                {"stopped", "stopped"},
                {"not a finite number", "diverged"},
                {"file cannot be read or written",
                 "failed: file cannot be read or written"}};
    json_t *run = NULL, *first = NULL, *list = NULL;
    outcome o;

    (void)_;
    run_tool((char *[]){"mkdir", "-p", (char *)in_folder("several/killed"),
                        (char *)in_folder("several/empty"), NULL});
    write_text("several/killed/journal.jsonl", resumed);
    write_text("several/killed/config.ini", "[train]\nepochs = 5\n");
    run = parse_json(BMUF("info", "several/killed", "--json").out);
    assert_string_equal(text(run, "state"), "killed");
    assert_true(number(run, "blocks") == 3);
    assert_true(number(run, "epochs_done") == 1);
    assert_true(number(run, "epochs_wanted") == 5);
    assert_true(number(run, "best_epoch") == 1);
    assert_true(near(number(run, "best_ler"), 0.3, 1e-9));
    assert_true(near(number(run, "frames_per_s"), 500. / 6, 1e-6));
    assert_int_equal(json_array_size(json_object_get(run, "epochs")), 2);
    first = json_array_get(json_object_get(run, "epochs"), 0);
    assert_true(near(number(first, "loss"), (4. + 3 * 1) / 4, 1e-9));
    assert_true(near(number(first, "error"), (0.8 + 3 * 0.4) / 4, 1e-9));
    assert_true(number(first, "rate") == 0.25);
    assert_true(number(first, "dev_loss") == 2);
    assert_true(number(first, "frames_per_s") == 100);
    assert_true(json_is_null(json_object_get(
        json_array_get(json_object_get(run, "epochs"), 1), "dev_ler")));
    json_decref(run);

    o = BMUF("info", "several/killed");
    assert_says(o.out, "state      killed; epochs 1/5, 3 blocks, 6 s, ");
    assert_says(o.out, "bmuf, 4 workers on 2 ranks");
    assert_says(o.out, "best       epoch 1: dev error 30.00 %\n");
    assert_says(o.out, "    1        1.75      50.00 %         2    30.00 %    "
                       "   0.25        100  best\n");
    assert_says(o.out, "    2         0.5      20.00 %         -          - ");

    FOR_EACH (k, ends) {
        char journal[4000];

        snprintf(journal, sizeof journal,
                 "%s\n{\"event\": \"end\", \"reason\": \"%s\"}\n", resumed,
                 ends[k].reason);
        write_text("several/killed/journal.jsonl", journal);
        run = parse_json(BMUF("info", "several/killed", "--json").out);
        assert_string_equal(text(run, "state"), ends[k].state);
        json_decref(run);
    }
    write_text("several/killed/journal.jsonl", resumed);

    /* A directory of runs: a line for each. */
    o = BMUF("info", "several");
    assert_code(o, 0);
    assert_int_equal(count_of(o.out, "\n"), 2);
    assert_says(o.out, "killed bmuf          4       1/5   30.00 %   30.00 %   "
                       "      -         83  killed\n");
    list = parse_json(BMUF("info", "several", "--json").out);
    assert_int_equal(json_array_size(json_object_get(list, "runs")), 1);
    first = json_array_get(json_object_get(list, "runs"), 0);
    assert_string_equal(text(first, "run"), "several/killed");
    assert_string_equal(text(first, "state"), "killed");
    json_decref(list);
}

/* Of two epochs with equal errors the model of the one with less loss is kept,
 * and named. */
static void test_info_names_the_epoch_of_the_best_model(void **_)
{
    json_t *run = NULL;

    (void)_;
    assert_int_equal(mkdir(in_folder("tied"), 0777), 0);
    write_text(
        "tied/journal.jsonl",
        "{\"event\":\"start\",\"workers\":1,\"blocks_per_epoch\":1}\n"
        "{\"event\":\"block\",\"epoch\":0,\"block\":0,\"frames\":9}\n"
        "{\"event\":\"eval\",\"epoch\":1,\"data\":\"dev\",\"loss\":2.5,"
        "\"ler\":0.25}\n"
        "{\"event\":\"best\",\"epoch\":1,\"data\":\"dev\",\"ler\":0.25}\n"
        "{\"event\":\"block\",\"epoch\":1,\"block\":0,\"frames\":9}\n"
        "{\"event\":\"eval\",\"epoch\":2,\"data\":\"dev\",\"loss\":1.5,"
        "\"ler\":0.25}\n"
        "{\"event\":\"best\",\"epoch\":2,\"data\":\"dev\",\"ler\":0.25}\n"
        "{\"event\":\"end\",\"reason\":\"done\",\"epochs\":2}\n");
    assert_says(BMUF("info", "tied").out, "epoch 2: dev error 25.00 %");
    run = parse_json(BMUF("info", "tied", "--json").out);
    assert_true(number(run, "best_epoch") == 2);
    assert_true(number(run, "best_ler") == 0.25);
    json_decref(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_model_is_trained_and_described),
        cmocka_unit_test(test_info_tells_where_a_killed_run_stands),
        cmocka_unit_test(test_info_names_the_epoch_of_the_best_model),
        cmocka_unit_test(test_data_and_net_are_enough),
        cmocka_unit_test(test_one_process_needs_no_tmpdir),
        cmocka_unit_test(test_a_run_can_be_repeated_from_its_config),
        cmocka_unit_test(test_spoken_digits_end_to_end),
        cmocka_unit_test(test_handwritten_lines_end_to_end),
    };
    return cmocka_run_group_tests_name("trained", tests, make_corpus,
                                       folder_remove);
}
