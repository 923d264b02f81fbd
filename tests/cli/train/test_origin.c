/*
 * Starting points: training from a model, and branches of runs. With
 * train.rate = 0 no worker moves, so that what a run starts with is what it
 * ends with.
 */
#include "io/model/safetensors.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STILL "train.rate=0; schedule.kind=constant; train.epochs=1; "

/* A run of three epochs, from which the others start. */
static int make_base(void **state)
{
    program p;

    if (digits_set_up(state) != 0)
        return 1;
    train(&p, "base", 1,
          "train.epochs=3; train.checkpoint_every=1; "
          "train.keep=100");
    assert_ended(&p, 0);
    return 0;
}

/* ---- files ----------------------------------------------------------------- */

static bm_st_file *open_file(const char *path)
{
    bm_st_file *f = NULL;

    assert_ok(bm_st_open(&f, path, false));
    return f;
}

/* A tensor's floats; free(). */
static float *read_tensor(const char *path, const char *name, size_t *n)
{
    bm_st_file *f = open_file(path);
    const bm_st_tensor *t = bm_st_find(f, name);
    float *x = NULL;

    assert_non_null(t);
    *n = (size_t)t->count;
    x = zeros(*n, sizeof *x);
    assert_ok(bm_st_read(f, t, 0, t->count, x));
    bm_st_free(f);
    return x;
}

/* Whether two files have the same bits in a tensor. */
static bool same_tensor(const char *a, const char *b, const char *name)
{
    size_t n = 0, m = 0;
    float *x = read_tensor(a, name, &n), *y = read_tensor(b, name, &m);
    bool same = n == m && memcmp(x, y, n * sizeof *x) == 0;

    free(x);
    free(y);
    return same;
}

static double loss_after(const char *run, int epoch)
{
    json_t *all = journal(run);
    double loss = -1;

    for (size_t i = 0; i < json_array_size(all); i++) {
        const json_t *e = json_array_get(all, i);

        if (strcmp(text(e, "event"), "eval") == 0 &&
            number(e, "epoch") == epoch && strcmp(text(e, "data"), "dev") == 0)
            loss = number(e, "loss");
    }
    json_decref(all);
    assert_true(loss >= 0);
    return loss;
}

static void assert_text(const char *run, const char *event, const char *key,
                        const char *value)
{
    json_t *e = last_event(run, event);

    assert_string_equal(text(e, key), value);
    json_decref(e);
}

/* ---- train.init ------------------------------------------------------------ */

static void test_a_trained_model_learns_faster_than_a_new_one(void **state)
{
    program p;

    (void)state;
    train(&p, "tuned", 1, "train.init=base; train.epochs=1; job.seed=5");
    assert_ended(&p, 0);
    assert_said(&p, "layers taken from base/model-best.safetensors: 0.blstm "
                    "2.linear");
    assert_not_said(&p, "initialised randomly");
    train(&p, "scratch", 1, "train.epochs=1; job.seed=5");
    assert_ended(&p, 0);
    assert_true(loss_after("tuned", 1) < 0.8 * loss_after("scratch", 1));
    assert_true(loss_after("tuned", 1) < loss_after("base", 1));
}

static void test_a_run_starts_with_the_bits_of_the_model(void **state)
{
    static const char *const strategies[] = {
        "bmuf", "ssgd", "onebit", "easgd", "asgd", "lookahead", "average"};
    json_t *start = NULL, *best = last_event("base", "best");
    program p;

    (void)state;
    FOR_EACH (i, strategies) {
        char settings[120];

        remove_run("still");
        snprintf(settings, sizeof settings,
                 STILL "train.init=base/; train.strategy=%s", strategies[i]);
        train(&p, "still", 1, settings);
        assert_ended(&p, 0);
        assert_text("still", "end", "digest", text(best, "digest"));
    }
    start = last_event("still", "start");
    assert_string_equal(text(start, "from"), "base/model-best.safetensors");
    assert_string_equal(text(start, "from_digest"), text(best, "digest"));
    json_decref(start);
    json_decref(best);
}

static void test_layers_that_do_not_fit_begin_anew(void **state)
{
    program p;

    (void)state;
    train(&p, "wide", 1,
          STILL "train.init=base/model.safetensors; "
                "model.net=blstm:12 dropout:0.2 blstm:5 linear");
    assert_ended(&p, 0);
    assert_said(&p, "layers taken from base/model.safetensors: 0.blstm");
    assert_said(&p, "layers initialised randomly: 2.blstm 3.linear");
    assert_true(same_tensor(in_folder("wide/model.safetensors"),
                            in_folder("base/model.safetensors"), "0.blstm.wh"));
    train(&p, "none", 1, STILL "train.init=base; model.net=blstm:9 linear");
    assert_ended(&p, 65);
    assert_said(&p, "no layer fits");
    assert_true(access(in_folder("none"), F_OK) != 0);
}

/* Packs the training set with a first text that has other symbols, and a
 * vocabulary of its own. */
static void pack_other_symbols(void)
{
    char *manifest = slurp(in_folder("train.jsonl"), &(size_t){0});
    char *value = strstr(manifest, "\"text\":\""), *end = NULL, *all = NULL;
    program p;

    assert_non_null(value);
    value += strlen("\"text\":\"");
    end = strchr(value, '"');
    all = zeros(strlen(manifest) + 8, 1);
    snprintf(all, strlen(manifest) + 8, "%.*s#?%s", (int)(value - manifest),
             manifest, end);
    write_text("other.jsonl", all);
    free(all);
    free(manifest);
    RUN_PROGRAM(&p, "pack", "--audio", "other.jsonl", "--out", "other", "--set",
                "shard.unit_frames=100", "--set", "features.mels=12");
    assert_ended(&p, 0);
}

static void test_a_new_vocabulary_keeps_the_rows_of_common_symbols(void **state)
{
    program p;
    json_t *info = NULL;
    char *printed = NULL;
    double classes = 0;
    char line[120];

    (void)state;
    pack_other_symbols();
    RUN_PROGRAM(&p, "info", "other", "--json");
    assert_ended(&p, 0);
    printed = slurp(p.out, &(size_t){0});
    info = parse_json(printed);
    free(printed);
    classes = number(info, "classes");
    json_decref(info);
    train(&p, "rows", 1, STILL "train.init=base; data.train=other; data.dev=");
    assert_ended(&p, 0);
    snprintf(line, sizeof line,
             "of layer 2.linear the rows of %.0f of %.0f symbols are taken, 2 "
             "are initialised randomly",
             classes - 2, classes);
    assert_said(&p, line);
    assert_not_said(&p, "dropped");
    train(&p, "back", 1, STILL "train.init=rows; data.dev=");
    assert_ended(&p, 0);
    assert_said(&p, "2 symbols of that model dropped");
}

static void test_a_resumed_run_does_not_need_the_model(void **state)
{
    program p;

    (void)state;
    copy_run("base", "model");
    train(&p, "whole", 1, "train.init=model; train.epochs=2");
    assert_ended(&p, 0);
    train(&p, "half", 1, "train.init=model; train.epochs=1");
    assert_ended(&p, 0);
    remove_run("model");
    train(&p, "half", 1, "train.init=model; train.epochs=2");
    assert_ended(&p, 0);
    assert_said(&p, "resuming from");
    assert_same_model("whole", "half");
    train(&p, "half", 1, "train.epochs=2");
    assert_ended(&p, 78);
    assert_said(&p, "train.init: was model, now");
    train(&p, "gone", 1, "train.init=model; train.epochs=2");
    assert_ended(&p, 66);
    train(&p, "both", 1, "train.init=base; train.from=base");
    assert_ended(&p, 78);
    assert_said(&p, "a run starts from one of them");
}

/* The configuration names no network: it is that of the model, also in
 * config.ini, and where a resumed run finds the model no more. */
static void test_the_network_is_that_of_the_model(void **state)
{
    char *printed = NULL;
    program p;

    (void)state;
    copy_run("base", "model");
    write_text("no-net.ini", "[data]\n"
                             "train = train\n"
                             "dev = dev\n"
                             "[train]\n"
                             "init = model\n"
                             "[schedule]\n"
                             "kind = constant\n");
    RUN_PROGRAM(&p, "explain", "no-net.ini");
    assert_ended(&p, 0);
    RUN_PROGRAM(&p, "train", "no-net.ini", "--verbose", "--out", "found",
                "--set", "train.epochs=2");
    assert_ended(&p, 0);
    assert_said(&p, "0.blstm 2.linear");
    printed = slurp(in_folder("found/config.ini"), &(size_t){0});
    assert_non_null(strstr(printed, "net = blstm:"));
    free(printed);
    RUN_PROGRAM(&p, "train", "no-net.ini", "--out", "resumed", "--set",
                "train.epochs=1");
    assert_ended(&p, 0);
    remove_run("model");
    RUN_PROGRAM(&p, "train", "no-net.ini", "--verbose", "--out", "resumed",
                "--set", "train.epochs=2");
    assert_ended(&p, 0);
    assert_said(&p, "resuming from");
    assert_same_model("found", "resumed");
    RUN_PROGRAM(&p, "train", "no-net.ini", "--out", "never");
    assert_ended(&p, 66);
    assert_said(&p, "model");
    RUN_PROGRAM(&p, "train", "no-net.ini", "--out", "never", "--set",
                "train.init=");
    assert_ended(&p, 78);
    assert_said(&p, "model.net is not set");
}

static void pack_normalised(const char *name, const char *how)
{
    char normalise[64];
    program p;

    snprintf(normalise, sizeof normalise, "features.normalise=%s", how);
    RUN_PROGRAM(&p, "pack", "--audio", "train.jsonl", "--out", name, "--set",
                "shard.unit_frames=100", "--set", "features.mels=12", "--set",
                normalise);
    assert_ended(&p, 0);
}

/* Also when it is resumed; the model that it leads to is one of the features
 * that are normalised. */
static void test_features_are_normalised_as_those_of_the_model(void **state)
{
    program p;

    (void)state;
    pack_normalised("raw", "none");
    pack_normalised("normal", "global");
    train(&p, "on-normal", 1,
          "train.epochs=1; data.train=normal; data.dev=; "
          "schedule.kind=constant");
    assert_ended(&p, 0);
    RUN_PROGRAM(&p, "train", "base.ini", "--out", "on-raw", "--set",
                "train.init=on-normal", "--set", "data.train=raw", "--set",
                "data.dev=", "--set", "schedule.kind=constant");
    assert_ended(&p, 0);
    train(&p, "half-raw", 1,
          "train.init=on-normal; data.train=raw; data.dev=; "
          "schedule.kind=constant; train.epochs=1");
    assert_ended(&p, 0);
    remove_run("on-normal");
    train(&p, "half-raw", 1,
          "train.init=on-normal; data.train=raw; data.dev=; "
          "schedule.kind=constant");
    assert_ended(&p, 0);
    assert_same_model("on-raw", "half-raw");
    RUN_PROGRAM(&p, "eval", "half-raw", "normal");
    assert_ended(&p, 0);
    train(&p, "no", 1,
          "train.init=base; data.train=raw; data.dev=; "
          "schedule.kind=constant");
    assert_ended(&p, 65);
    assert_said(&p, "features.normalise is none, should be utterance");
    assert_said(&p, "Pack it with the model's settings");
}

static void test_ranks_do_not_change_where_a_run_starts(void **state)
{
    program p;

    (void)state;
    if (short_tests())
        return;
    train(&p, "one", 1, "train.init=base; train.epochs=1");
    assert_ended(&p, 0);
    train(&p, "two", 2, "train.init=base; train.epochs=1");
    assert_ended(&p, 0);
    assert_same_model("one", "two");
    train(&p, "three", 1, "train.from=base@2; train.epochs=1");
    assert_ended(&p, 0);
    train(&p, "four", 2, "train.from=base@2; train.epochs=1");
    assert_ended(&p, 0);
    assert_same_model("three", "four");
}

/* ---- branches -------------------------------------------------------------- */

static void test_a_branch_takes_model_and_filter(void **state)
{
    json_t *start = NULL;
    program p;
    char first[128], last[128];
    int newest = 0;

    (void)state;
    RUN_PROGRAM(&p, "train", "base.ini", "--out", "branch", "--from", "base",
                "--set", "train.rate=0.001", "--set", "sgd.clip=1", "--set",
                "train.epochs=1", "--set", "bmuf.momentum=0.5", "--set",
                "train.keep=100");
    assert_ended(&p, 0);
    assert_said(&p, "taken over from that run: delta");
    (void)checkpoints("base", &newest);
    snprintf(last, sizeof last, "%s", checkpoint_of("base", newest));
    snprintf(first, sizeof first, "%s", checkpoint_of("branch", 0));
    assert_true(same_tensor(first, last, "model.0.blstm.wx"));
    assert_true(same_tensor(first, last, "model.2.linear.b"));
    assert_true(same_tensor(first, last, "state.delta"));
    start = last_event("branch", "start");
    assert_non_null(strstr(text(start, "from"), "base/checkpoints/block-"));
    assert_true(number(start, "from_epoch") == 3);
    assert_true(number(start, "from_block") == newest);
    json_decref(start);
}

/* Workers learn next to nothing, so that the first exchange of each fragment
 * finds no change: Delta has moved the start model and them. */
static void test_a_branch_in_fragments_begins_where_delta_leads(void **state)
{
    static const char *const settings[] = {
        "block.fragments=2", "block.overlap=yes",
        "block.fragments=2; block.overlap=yes"};
    char all[200];
    program p;

    (void)state;
    FOR_EACH (i, settings) {
        json_t *blocks = NULL;
        size_t n = 0;

        remove_run("cut");
        snprintf(all, sizeof all,
                 "train.from=base; train.epochs=1; train.rate=1e-9; "
                 "schedule.kind=constant; %s",
                 settings[i]);
        train(&p, "cut", 1, all);
        assert_ended(&p, 0);
        blocks = journal("cut");
        for (size_t k = 0; k < json_array_size(blocks) && n < 3; k++) {
            const json_t *e = json_array_get(blocks, k);

            if (strcmp(text(e, "event"), "block") != 0)
                continue;
            n++;
            if (json_is_number(json_object_get(e, "g_norm")))
                assert_true(number(e, "g_norm") < 1e-6);
        }
        assert_int_equal(n, 3);
        json_decref(blocks);
        assert_said(&p, "taken over from that run: delta");
        assert_not_said(&p, "delta, delta");
    }
}

/* Also where it is stopped before its first block. */
static void test_a_branch_in_fragments_has_one_result(void **state)
{
    static const char settings[] = "train.from=base; train.epochs=1; "
                                   "block.fragments=2; block.overlap=yes; "
                                   "train.checkpoint_every=1; train.keep=100";
    int newest = 0;
    program p;

    (void)state;
    train(&p, "cut-one", 1, settings);
    assert_ended(&p, 0);
    train(&p, "cut-two", 2, settings);
    assert_ended(&p, 0);
    assert_same_model("cut-one", "cut-two");
    copy_run("cut-one", "cut-again");
    (void)checkpoints("cut-again", &newest);
    for (int k = 1; k <= newest; k++)
        assert_int_equal(unlink(checkpoint_of("cut-again", k)), 0);
    train(&p, "cut-again", 1, settings);
    assert_ended(&p, 0);
    assert_said(&p, "block-00000000.safetensors");
    assert_same_model("cut-one", "cut-again");
}

static void test_a_branch_says_what_does_not_fit(void **state)
{
    program p;

    (void)state;
    train(&p, "kept", 1,
          "train.epochs=1; sgd.local_state=keep; job.workers=3; "
          "train.ema=0.5");
    assert_ended(&p, 0);
    train(&p, "more", 1,
          "train.from=kept; train.epochs=1; job.workers=5; "
          "sgd.local_state=keep");
    assert_ended(&p, 0);
    assert_said(&p, "taken over from that run: delta, sgd.v");
    assert_said(&p, "reset: sgd.v of 2 workers");
    assert_said(&p, "not used by the new settings: ema");
    train(&p, "steps", 1,
          "train.from=kept; train.epochs=1; train.strategy=ssgd");
    assert_ended(&p, 0);
    assert_said(&p, "reset: sgd.v");
    assert_said(&p, "not used by the new settings: delta");
}

static void test_a_branch_is_resumed_without_the_run(void **state)
{
    program p;

    (void)state;
    copy_run("base", "trunk");
    train(&p, "whole", 1, "train.from=trunk; train.rate=0.01");
    assert_ended(&p, 78); /* test_a_resumed_run_does_not_need_the_model */
    remove_run("whole");
    train(&p, "whole", 1, "train.from=trunk; train.rate=0.01");
    assert_ended(&p, 0);
    remove_run("half");
    train(&p, "half", 1, "train.from=trunk; train.rate=0.01; train.epochs=1");
    assert_ended(&p, 0);
    remove_run("trunk");
    train(&p, "half", 1, "train.from=trunk; train.rate=0.01");
    assert_ended(&p, 0);
    assert_same_model("whole", "half");
}

/* The first block looks ahead along the Delta of the run. */
static void test_a_branch_has_the_same_bits_with_an_exact_code(void **state)
{
    program p;

    (void)state;
    train(&p, "plain", 1, "train.from=base; train.epochs=1");
    assert_ended(&p, 0);
    for (int ranks = 1; ranks <= 2; ranks++) {
        remove_run("exact");
        train(&p, "exact", ranks,
              "train.from=base; train.epochs=1; compress.code=fp32");
        assert_ended(&p, 0);
        assert_said(&p, "taken over from that run: delta");
        assert_same_model("plain", "exact");
    }
}

/* It starts from the model, not from what workers had of the start. */
static void test_a_branch_of_a_coded_run_starts_from_the_model(void **state)
{
    program p;

    (void)state;
    train(&p, "coded", 1, "train.epochs=1; compress.code=fp32");
    assert_ended(&p, 0);
    train(&p, "from-coded", 1,
          "train.from=coded; train.epochs=1; compress.code=fp32; "
          "bmuf.momentum=0.2");
    assert_ended(&p, 0);
    assert_said(&p, "reset: common");
    train(&p, "from-coded-plain", 1,
          "train.from=coded; train.epochs=1; bmuf.momentum=0.2");
    assert_ended(&p, 0);
    assert_same_model("from-coded", "from-coded-plain");
}

static void test_an_epoch_that_is_not_kept_is_an_error(void **state)
{
    json_t *start = NULL;
    program p;

    (void)state;
    train(&p, "second", 1, "train.from=base@2; train.epochs=1");
    assert_ended(&p, 0);
    start = last_event("second", "start");
    assert_true(number(start, "from_epoch") == 2);
    json_decref(start);
    train(&p, "ninth", 1, "train.from=base@9; train.epochs=1");
    assert_ended(&p, 66);
    assert_said(&p,
                "has no checkpoint after 9 epochs; it has those after epoch "
                "3 (block ");
    train(&p, "ninth", 1, "train.from=nowhere; train.epochs=1");
    assert_ended(&p, 66);
    assert_true(access(in_folder("ninth"), F_OK) != 0);
}

/* As a resumed run does. */
static void test_a_damaged_checkpoint_is_passed_over(void **state)
{
    json_t *start = NULL;
    int newest = 0;
    program p;

    (void)state;
    copy_run("base", "damaged");
    (void)checkpoints("damaged", &newest);
    damage(checkpoint_of("damaged", newest), 0.9, 1);
    remove_run("second");
    train(&p, "second", 1, "train.from=damaged; train.epochs=1");
    assert_ended(&p, 0);
    assert_said(&p, "wrong checksum: the file is damaged; trying an older one");
    start = last_event("second", "start");
    assert_true(number(start, "from_block") < newest);
    json_decref(start);
}

static void test_explain_shows_where_a_run_starts(void **state)
{
    program p;

    (void)state;
    RUN_PROGRAM(&p, "explain", "base.ini", "--set", "train.init=base");
    assert_ended(&p, 0);
    assert_printed(&p, "start             layers taken from base/model-best");
    RUN_PROGRAM(&p, "train", "base.ini", "--from", "base@9", "--dry-run",
                "--out", "dry");
    assert_ended(&p, 66);
}

/* ---- frozen layers --------------------------------------------------------- */

/* A branch brings a Delta and momentum that would move the layer. */
static void test_frozen_layers_keep_the_bits_of_the_model(void **state)
{
    static const char *const starts[] = {
        "train.init=base", "train.from=base; block.warmup=1",
        "train.from=base; sgd.update=adamw; sgd.weight_decay=0.01"};
    static const char *const files[] = {"model-best.safetensors",
                                        "model.safetensors"};
    char settings[300];
    program p;

    (void)state;
    FOR_EACH (i, starts) {
        const char *from =
            i == 0 ? "base/model-best.safetensors" : "base/model.safetensors";

        remove_run("frozen");
        snprintf(settings, sizeof settings,
                 "%s; train.epochs=1; train.freeze=0.blstm; "
                 "train.rates=2.linear:0.5",
                 starts[i]);
        train(&p, "frozen", 1, settings);
        assert_ended(&p, 0);
        assert_said(&p, "frozen: 0.blstm, ");
        assert_said(&p, "factors of train.rate: 2.linear 0.5");
        FOR_EACH (k, files) {
            char path[100];

            snprintf(path, sizeof path, "%s%s", in_folder("frozen/"), files[k]);
            assert_true(same_tensor(path, in_folder(from), "0.blstm.wx"));
            assert_true(same_tensor(path, in_folder(from), "0.blstm.wh"));
            assert_true(same_tensor(path, in_folder(from), "0.blstm.b"));
            assert_false(same_tensor(path, in_folder(from), "2.linear.w"));
        }
    }
}

/* The server's model has its own memory, and its own update. */
static void test_a_server_freezes_layers_too(void **state)
{
    static const char *const strategies[] = {
        "train.strategy=asgd", "train.strategy=asgd; asgd.update=local",
        "train.strategy=easgd"};
    char settings[300];
    program p;

    (void)state;
    FOR_EACH (i, strategies) {
        remove_run("served");
        snprintf(settings, sizeof settings,
                 "train.init=base; train.epochs=1; train.freeze=0.blstm; "
                 "sgd.weight_decay=0.01; clock.kind=real; job.workers=2; %s",
                 strategies[i]);
        train(&p, "served", 2, settings);
        assert_ended(&p, 0);
        assert_true(same_tensor(in_folder("served/model.safetensors"),
                                in_folder("base/model-best.safetensors"),
                                "0.blstm.wx"));
        assert_false(same_tensor(in_folder("served/model.safetensors"),
                                 in_folder("base/model-best.safetensors"),
                                 "2.linear.w"));
    }
}

/* Statistics of a frozen layer do not move either; codes send zeros as such. */
static void test_statistics_are_frozen_with_their_layer(void **state)
{
    program p;

    (void)state;
    train(&p, "statistics", 1, NORMALISED "; train.epochs=1");
    assert_ended(&p, 0);
    train(&p, "cold", 1,
          NORMALISED "; train.epochs=1; train.from=statistics; "
                     "train.freeze=0.conv 1.batchnorm; compress.code=int8");
    assert_ended(&p, 0);
    assert_true(same_tensor(in_folder("cold/model.safetensors"),
                            in_folder("statistics/model.safetensors"),
                            "1.batchnorm.mean"));
    assert_true(same_tensor(in_folder("cold/model.safetensors"),
                            in_folder("statistics/model.safetensors"),
                            "0.conv.w"));
    assert_false(same_tensor(in_folder("cold/model.safetensors"),
                             in_folder("statistics/model.safetensors"),
                             "5.batchnorm.mean"));
    RUN_PROGRAM(&p, "explain", "base.ini", "--set", "train.freeze=*.blstm",
                "--set", "train.rates=2.*:3");
    assert_ended(&p, 0);
    assert_printed(&p, "frozen            0.blstm: ");
    assert_printed(&p, "rates             of 2.linear 3 times train.rate");
    train(&p, "no", 1, "train.freeze=1.conv");
    assert_ended(&p, 78);
    assert_said(&p, "no layer fits '1.conv'; the layers with weights are: "
                    "0.blstm 2.linear");
    assert_true(access(in_folder("no"), F_OK) != 0);
    train(&p, "no", 1, "train.freeze=0.blstm; compress.code=onebit");
    assert_ended(&p, 78);
    assert_said(&p, "one bit cannot be 0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_trained_model_learns_faster_than_a_new_one),
        cmocka_unit_test(test_a_run_starts_with_the_bits_of_the_model),
        cmocka_unit_test(test_layers_that_do_not_fit_begin_anew),
        cmocka_unit_test(
            test_a_new_vocabulary_keeps_the_rows_of_common_symbols),
        cmocka_unit_test(test_a_resumed_run_does_not_need_the_model),
        cmocka_unit_test(test_the_network_is_that_of_the_model),
        cmocka_unit_test(test_features_are_normalised_as_those_of_the_model),
        cmocka_unit_test(test_ranks_do_not_change_where_a_run_starts),
        cmocka_unit_test(test_a_branch_takes_model_and_filter),
        cmocka_unit_test(test_a_branch_in_fragments_begins_where_delta_leads),
        cmocka_unit_test(test_a_branch_in_fragments_has_one_result),
        cmocka_unit_test(test_a_branch_says_what_does_not_fit),
        cmocka_unit_test(test_a_branch_is_resumed_without_the_run),
        cmocka_unit_test(test_a_branch_has_the_same_bits_with_an_exact_code),
        cmocka_unit_test(test_a_branch_of_a_coded_run_starts_from_the_model),
        cmocka_unit_test(test_an_epoch_that_is_not_kept_is_an_error),
        cmocka_unit_test(test_a_damaged_checkpoint_is_passed_over),
        cmocka_unit_test(test_explain_shows_where_a_run_starts),
        cmocka_unit_test(test_frozen_layers_keep_the_bits_of_the_model),
        cmocka_unit_test(test_a_server_freezes_layers_too),
        cmocka_unit_test(test_statistics_are_frozen_with_their_layer),
    };
    return cmocka_run_group_tests(tests, make_base, digits_tear_down);
}
