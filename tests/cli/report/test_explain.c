/*
 * The output of bmuf explain, compared with formulas, and its bytes with those
 * that runs report.
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

static void test_explain_agrees_with_the_formulas(void **_)
{
    static const double etas[] = {0.5, 0.75, 0.9};
    double frames = (double)speech_total(42, speech_frames), blocks = 10;

    (void)_;
    FOR_EACH (i, etas) {
        double eta = etas[i], zeta = 0.8, block = frames / blocks;
        char momentum[40];
        outcome o;

        snprintf(momentum, sizeof momentum, "bmuf.momentum=%g", eta);
        o = BMUF("explain", "tiny.ini", "--set", momentum, "--set",
                 "bmuf.rate=0.8", "--set", "block.frames_total=128", "--set",
                 "train.epochs=7", "--set", "batch.sequences=2");
        assert_code(o, 0);
        assert_string_equal(o.err, "");
        assert_says(o.out, "data              42 sequences, ");
        assert_says(o.out, "bmuf, 2 workers on 1 rank\n");
        assert_after(o.out, "block gain", zeta, 6);
        assert_after(o.out, "steady gain", zeta / (1 - eta), 6);
        assert_after(o.out, "block momentum", eta, 6);
        assert_after(o.out, "time constant", -1 / log(eta), 4);
        assert_after(o.out, " blocks = ", -block / log(eta), 4);
        assert_after(o.out, "block    ", block, 2);
        assert_after(o.out, "frames = ", block / 2, 2);
        assert_after(o.out, "= about ", block / 2 / (2 * frames / 42), 1);
        assert_after(o.out, "\nblocks    ", blocks, 6);
        assert_after(o.out, "per epoch, ", 7 * blocks, 6);
        assert_after(o.out, "mini-batches      about ", 7 * 42 / 2. / 2, 1);
    }
}

static void test_explain_says_if_mini_batches_are_few_for_many_workers(void **_)
{
    static const struct {
        const char *workers, *epochs;
        bool few;
    } rows[] = {{"job.workers=16", "train.epochs=7", true},
                {"job.workers=8", "train.epochs=7", false},
                /* 42 / 16 mini-batches of one in an epoch: 19,950, 20,475 */
                {"job.workers=16", "train.epochs=7600", true},
                {"job.workers=16", "train.epochs=7800", false}};

    (void)_;
    FOR_EACH (i, rows) {
        outcome o = BMUF("explain", "tiny.ini", "--set", "batch.sequences=1",
                         "--set", rows[i].workers, "--set", rows[i].epochs);

        assert_code(o, 0);
        assert_true((strstr(o.out, "few for 16 workers") != NULL) ==
                    rows[i].few);
    }
}

/* Blocks of 1.2 times the mini-batches that momentum takes to build up if one
 * worker has them, of 0.6 times if two have. */
static void test_explain_judges_later_epochs(void **_)
{
    double mean = (double)speech_total(42, speech_frames) / 42;
    char total[60], size[60];
    outcome o;

    (void)_;
    snprintf(total, sizeof total, "block.frames_total=%.0f", 6 * mean);
#define EXPLAIN(workers, size)                                                 \
    BMUF("explain", "tiny.ini", "--set", "batch.sequences=1", "--set",         \
         "sgd.momentum=0.8", "--set", "sgd.local_state=reset", "--set",        \
         "bmuf.momentum=0.3", "--set", workers, "--set", size)
    o = EXPLAIN("block.workers=1", total);
    assert_null(strstr(o.out, "warning: sgd.momentum"));
    o = EXPLAIN("block.workers=0", total);
    assert_says(o.out, "\nwarning: sgd.momentum = 0.8 needs 5 steps");
    o = EXPLAIN("block.workers=1@0 2@2", total);
    assert_says(o.out,
                "\nwarning: after 2 epochs: sgd.momentum = 0.8 needs 5 steps");
    assert_int_equal(count_of(o.out, "needs 5 steps"), 1);

    /* What it proposes keeps the change of workers, and helps. */
    assert_says(o.out, "these settings avoid the warnings about blocks: --set "
                       "block.frames_total=");
    snprintf(size, sizeof size, "block.frames_total=%.0f",
             number_after(o.out, "--set block.frames_total="));
    o = EXPLAIN("block.workers=1@0 2@2", size);
    assert_null(strstr(o.out, "warning: "));
#undef EXPLAIN
}

static void test_explain_warns_of_changes_that_never_come(void **_)
{
    static const struct {
        const char *setting, *warning;
    } rows[] = {
        {"block.workers=1@0 2@3",
         "warning: block.workers = 1@0 2@3: training ends after 3 epochs, "
         "before epoch 3, where its last value begins"},
        {"block.workers=1@0 2@2", NULL},
        {"bmuf.momentum=0.3@0 0.4@100", "bmuf.momentum = 0.3@0 0.4@100: tra"},
        {"slowmo.slowmo_momentum=0.3@0 0.4@100",
         NULL}, /* of another strategy */
    };

    (void)_;
    FOR_EACH (i, rows) {
        outcome o = BMUF("explain", "tiny.ini", "--set", rows[i].setting);

        assert_code(o, 0);
        if (rows[i].warning != NULL)
            assert_says(o.out, rows[i].warning);
        else
            assert_null(strstr(o.out, ": training ends after"));
    }
}

/* Nor is a list that has been given proposed. */
static void test_explain_says_which_workers_never_train(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "--set", "job.workers=16", "--set",
                     "block.workers=1@0 4@1", "--set", "batch.sequences=1");

    (void)_;
    assert_says(o.out, "warning: block.workers = 1@0 4@1: of 16 workers 12 "
                       "never train; let it rise to 16, or set job.workers = "
                       "4\n");
    assert_null(strstr(o.out, "start with fewer"));
    o = BMUF("explain", "tiny.ini", "--set", "job.workers=16", "--set",
             "block.workers=4@0 16@1", "--set", "batch.sequences=1");
    assert_null(strstr(o.out, "never train"));
    assert_null(strstr(o.out, "start with fewer"));
}

static void test_json_has_the_numbers_of_the_text(void **_)
{
    static const char *const words[] = {"explain", "tiny.ini",
                                        "-n",      "2",
                                        "--set",   "bmuf.momentum=0.75",
                                        "--set",   "sgd.momentum=0.95",
                                        "--json",  NULL};
    static const struct {
        const char *words, *key;
        double unit;
        int digits;
    } rows[] = {
        {"block gain", "block_gain", 1, 6},
        {"steady gain", "steady_gain", 1, 6},
        {"block momentum", "block_momentum", 1, 6},
        {"time constant", "time_constant_blocks", 1, 3},
        {"block   ", "block_frames", 1, 2},
        {"= about ", "batches_per_worker", 1, 1},
        {"blocks   ", "blocks_per_epoch", 1, 6},
        {"mini-batches      about ", "all_batches_per_worker", 1, 0},
        {"are busy ", "balance", 0.01, 1},
        {"checkpoint        about ", "checkpoint_bytes", 1e6, 2},
        {"of which a rank copies ", "checkpoint_copy_bytes", 1e6, 2},
        {"at 1 GB/s ", "sent_bytes", 1e9, 2},
    };
    outcome o = command_run(&(command){.words = words});
    json_t *json = parse_json(o.out);
    char *warnings = NULL;

    (void)_;
    assert_code(o, 0);
    o = BMUF("explain", "tiny.ini", "-n", "2", "--set", "bmuf.momentum=0.75",
             "--set", "sgd.momentum=0.95");
    FOR_EACH (i, rows)
        assert_after(o.out, rows[i].words,
                     number(json, rows[i].key) / rows[i].unit, rows[i].digits);
    assert_true(number(json, "workers") == 2 && number(json, "ranks") == 2);
    assert_true(number(json, "sequences") == 42);
    assert_true(number(json, "weights") == 4389); /* see test_trained.c */
    assert_string_equal(text(json, "strategy"), "bmuf");
    assert_string_equal(text(json, "net"), "stack:2 blstm:16 linear");
    assert_int_equal(json_array_size(json_object_get(json, "warnings")),
                     count_of(o.out, "warning: "));
    assert_true(count_of(o.out, "warning: ") > 0);
    warnings = json_dumps(json_object_get(json, "warnings"), 0);
    assert_says(warnings, "needs 20 steps to take effect");
    free(warnings);
    json_decref(json);
}

static double data_bytes(const char *speed)
{
    outcome o = BMUF("explain", "tiny.ini", "--set", "augment.share=1", "--set",
                     speed, "--json");
    json_t *json = parse_json(o.out);
    double bytes = number(json, "data_bytes");

    assert_code(o, 0);
    json_decref(json);
    return bytes;
}

static void test_slower_recordings_take_more_memory(void **_)
{
    (void)_;
    assert_true(near(data_bytes("augment.speed=0.8:1.2"),
                     data_bytes("augment.speed=1") / 0.8, 1e-6));
}

static void test_explain_says_what_is_augmented(void **_)
{
    outcome o =
        BMUF("explain", "tiny.ini", "--set", "augment.share=0.8", "--set",
             "augment.speed=0.9:1.1", "--set", "augment.time_masks=2", "--set",
             "augment.slant=0.2", "--set", "augment.frequency_masks=1");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out,
                "\naugment           of 80 % of the sequences, speed 0.9:1.1, "
                "slant up to 0.2, 2 time masks of up to 40 frames and 20 %, 1 "
                "frequency mask of up to 8 of 8 bands\n");
    assert_says(o.out, "warning: augment.slant = 0.2 distorts images, but "
                       "data.train has recordings\n");
    assert_says(o.out, "warning: augment.frequency_width = 8: a mask may have "
                       "more than half of the 8 bands\n");
    o = BMUF("explain", "tiny.ini");
    assert_code(o, 0);
    assert_null(strstr(o.out, "augment"));
}

/* Each alone, and neither is among what is done. */
static void test_explain_warns_of_changes_that_change_nothing(void **_)
{
    static const char *const idle[][3] = {
        {"augment.warp=1", "augment.share=1",
         "warning: augment.warp = 1 moves no frame"},
        {"augment.time_masks=2", "augment.time_share=0",
         "warning: augment.time_masks has no effect with augment.time_share = "
         "0"},
        {"augment.cutouts=2", "augment.cutout_size=0",
         "warning: augment.cutouts has no effect with augment.cutout_size = "
         "0"},
    };

    (void)_;
    FOR_EACH (i, idle) {
        outcome o = BMUF("explain", "tiny.ini", "--set", idle[i][0], "--set",
                         idle[i][1]);

        assert_code(o, 0);
        assert_says(o.out, idle[i][2]);
        assert_null(strstr(o.out, "warping"));
        assert_null(strstr(o.out, "time masks"));
        assert_null(strstr(o.out, "cut-outs of"));
    }
}

/* Rooms and noise, and what train would refuse. */
static void test_explain_opens_what_changes_recordings(void **_)
{
    outcome o = {0};

    (void)_;
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "kept", "--set",
                     "features.mels=8", "--set", "shard.samples=yes", "--vocab",
                     "train"),
                0);
    o = BMUF("explain", "tiny.ini", "--set", "data.train=kept", "--set",
             "augment.noise_sound=pink white", "--set", "augment.snr=10");
    assert_code(o, 0);
    assert_says(o.out, "\naugment           50 % with noise (pink white, 10 "
                       "dB)\n");
    assert_fails(BMUF("explain", "tiny.ini", "--set", "data.train=kept",
                      "--set", "augment.reverb=no/folder"),
                 66, "augment.reverb = no/folder: there is no such folder");
    assert_fails(BMUF("explain", "tiny.ini", "--set", "augment.reverb=made"),
                 78, "augment.reverb = made changes recordings, but train/",
                 "shard.samples=yes");
    o = BMUF("info", "kept");
    assert_code(o, 0);
    assert_says(o.out, " samples at 8000 Hz\n");
}

static void test_explain_warns_of_masks_of_cepstra(void **_)
{
    outcome o = {0};

    (void)_;
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "cepstra",
                     "--set", "features.cepstra=13"),
                0);
    o = BMUF("explain", "tiny.ini", "--set", "data.train=cepstra", "--set",
             "data.dev=", "--set", "augment.cutouts=1", "--set",
             "augment.frequency_masks=2", "--set", "augment.slant=0.2");
    assert_code(o, 0);
    assert_says(o.out, "2 frequency masks of up to 8 of 13 cepstra");
    assert_says(o.out, "warning: augment.frequency_masks = 2 masks bands, but "
                       "data.train has cepstra; set it to 0, or pack bands "
                       "with features.cepstra = 0\n");
    assert_says(o.out, "warning: augment.cutouts = 1 masks bands");
    assert_says(o.out, "warning: augment.slant = 0.2 distorts images");
}

/* Two layers: of 8 features to 1000, and of these to 5 classes. */
static void test_explain_prints_block_options(void **_)
{
    outcome o =
        BMUF("explain", "tiny.ini", "-n", "2", "--set",
             "model.net=linear:1000 linear", "--set", "block.fragments=2",
             "--set", "block.overlap=yes", "--set", "block.warmup=3", "--set",
             "block.seconds=20", "--set", "bmuf.momentum=0.5");
    double weights = 9000 + 5005;

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "2, each exchanged every 2 blocks: 9000 5005 weights\n");
    assert_says(o.out, "\noverlap           a block is exchanged during");
    assert_says(o.out, "\nwarm-up           3 blocks");
    assert_says(o.out, "\ntime              a rank has 20 s");
    assert_after(o.out, "time constant", -2 / log(0.5), 4);
    assert_after(o.out, "at 1 GB/s ", 2 * 4 * weights / 2 / 2 * 1e-9, 2);
}

/* 14005 weights, in 14 chunks: slices of 3, 4, 3 and the rest. Ranks host 1, 2,
 * 1 and 2 workers; of those of rank 1, 1 and 2, each is a subtree by itself. */
static void test_explain_counts_bytes_of_an_exchange(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "-n", "4", "--set", "job.workers=6",
                     "--set", "model.net=linear:1000 linear", "--set",
                     "block.frames_total=300", "--set", "batch.sequences=1");
    double weights = 8 * 1000 + 1000 + 1000 * 5 + 5, own = 4 * 1024;

    (void)_;
    assert_code(o, 0);
    assert_says(
        o.out,
        "warning: 6 workers on 4 ranks: some have 2, others 1, and wait; "
        "25 % of the ranks' time is lost");
    assert_says(o.out,
                "exchange          0.1 MB sent by the busiest of 4 ranks "
                "per block;\n");
    assert_after(o.out, "at 1 GB/s ", 4e-9 * (2 * (weights - own) + 3 * own),
                 3);
}

/* In real time a rank that serves a shard sends it to both other ranks, and its
 * worker pushes to their shards; if workers fetch rarely, pushes are more. */
static void test_explain_counts_bytes_of_a_server(void **_)
{
    enum { WEIGHTS = 8 * 1000 + 1000 + 1000 * 5 + 5 };
    enum { LARGEST = 5 * 1024, SMALLEST = 4 * 1024 }; /* of three shards */
    static const struct {
        const char *fetch, *shards;
        double sent;
    } periods[] = {
        {"asgd.fetch_every=1", "clock.shards=1", 2 * WEIGHTS},
        {"asgd.fetch_every=5", "clock.shards=1", 5 * WEIGHTS},
        {"asgd.fetch_every=1", "clock.shards=0", WEIGHTS + LARGEST},
        {"asgd.fetch_every=5", "clock.shards=3", 5 * WEIGHTS - 3 * SMALLEST}};

    (void)_;
    FOR_EACH (i, periods) {
        outcome o =
            BMUF("explain", "tiny.ini", "-n", "3", "--set", "job.workers=3",
                 "--set", "model.net=linear:1000 linear", "--set",
                 "train.strategy=asgd", "--set", "clock.kind=real", "--set",
                 periods[i].fetch, "--set", periods[i].shards);

        assert_code(o, 0);
        assert_says(o.out, "ranks per fetch of all workers;\n");
        assert_after(o.out, "at 1 GB/s ", 4e-9 * periods[i].sent, 3);
    }
}

/* A counter of the run's last block. */
static double counted(const char *run)
{
    json_t *block = last_event(run, "block");
    double bytes = number(block, "sent_bytes") + number(block, "shared_bytes");

    json_decref(block);
    return bytes;
}

#define FIVE                                                                   \
    "--set", "job.workers=5", "--set", "model.net=linear:1000 linear",         \
        "--set", "block.frames_total=500", "--set", "batch.sequences=1",       \
        "--set", "train.epochs=1", "--set", "data.dev=", "--set",              \
        "schedule.kind=constant"

/* One model for each sum; test_bytes tests all sums on all ranks. */
static void test_explained_bytes_are_those_of_a_run(void **_)
{
    static const char *const runs[][2] = {
        {"job.sum=tree", "4"}, {"job.sum=exact", "3"},   {"job.sum=mpi", "2"},
        {"job.sum=ring", "3"}, {"job.sum=halving", "4"}, {"job.sum=hier", "2"},
        {"job.sum=tree", "1"}};

    (void)_;
    FOR_EACH (i, runs) {
        outcome o = BMUF("explain", "tiny.ini", "-n", runs[i][1], "--set",
                         runs[i][0], "--set", "train.strategy=average", FIVE);

        assert_code(o, 0);
        remove_run("sent");
        assert_code(BMUF("train", "tiny.ini", "--out", "sent", "-n", runs[i][1],
                         "--set", runs[i][0], "--set", "train.strategy=average",
                         FIVE),
                    0);
        if (strcmp(runs[i][1], "1") != 0)
            assert_after(o.out, "at 1 GB/s ", 1e-9 * counted("sent"), 3);
        else
            assert_true(counted("sent") == 0 &&
                        strstr(o.out, "exchange ") == NULL);
    }
}

static void test_explained_bytes_of_a_server_are_those_of_a_run(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "-n", "3", FIVE, "--set",
                     "train.strategy=asgd");
    json_t *service = NULL;

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "ranks per update of the server;\n");
    assert_code(BMUF("train", "tiny.ini", "--out", "served", "-n", "3", FIVE,
                     "--set", "train.strategy=asgd"),
                0);
    service = last_event("served", "server");
    assert_after(o.out, "at 1 GB/s ",
                 1e-9 * counted("served") / number(service, "updates"), 3);
    json_decref(service);
}

/* With two ranks of one worker, each sends one coded model. */
static void test_explain_counts_bytes_of_codes(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "-n", "2", "--set", "job.workers=2",
                     "--set", "model.net=linear:1000 linear", "--set",
                     "compress.code=onebit");
    /* columns of 8 and of 1000 weights, two vectors */
    double bytes =
        1000 * (8 + 4 * 1) + (8 + 4 * 32) + 5 * (8 + 4 * 32) + (8 + 4 * 1);

    (void)_;
    assert_code(o, 0);
    assert_after(o.out, "at 1 GB/s ", bytes * 1e-9, 2);
    o = BMUF("explain", "tiny.ini", "--set", "compress.code=int8", "--set",
             "job.sum=exact");
    assert_code(o, 78);
    assert_says(o.err, "job.sum = exact conflicts with codes");
}

/* All sequences in one mini-batch, and each in its own. */
static void test_explain_counts_padding(void **_)
{
    static const char *const size[] = {"batch.sequences=42",
                                       "batch.sequences=1"};
    double frames = (double)speech_total(42, speech_frames), longest = 0;
    double percent[] = {0, 0};

    (void)_;
    for (size_t i = 0; i < 42; i++)
        longest = fmax(longest, (double)speech_frames(i));
    percent[0] = 100 * (1 - frames / (42 * longest));
    FOR_EACH (i, size) {
        outcome o = BMUF("explain", "tiny.ini", "--set", "job.workers=1",
                         "--set", "train.strategy=local", "--set",
                         "block.frames_total=10000", "--set", size[i]);

        assert_code(o, 0);
        assert_true(fabs(number_after(o.out, "padding ") - percent[i]) < 0.051);
    }
}

static void test_explain_fails_and_warns(void **_)
{
    outcome o = BMUF("explain", "tiny.ini", "--set", "bmuf.rate=2.5", "--set",
                     "train.epochs=9");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "warning: bmuf.rate = 2.5 moves the model 2.5 times");
    o = BMUF("explain", "tiny.ini", "--set", "block.frames_total=5000");
    assert_code(o, 0);
    assert_says(o.out, "warning: an epoch is one block");
    assert_says(
        o.out,
        "warning: these settings avoid the warnings about blocks: --set ");
    o = BMUF("explain", "tiny.ini", "--set", "block.frames_total=100");
    assert_code(o, 0);
    assert_says(o.out, "of a mini-batch, so some workers learn nothing");
    o = BMUF("explain", "tiny.ini", "--set", "train.epochs=1");
    assert_code(o, 0);
    assert_null(strstr(o.out, "these settings avoid"));
    o = BMUF("explain", "tiny.ini", "--set", "train.strategy=average");
    assert_code(o, 0);
    assert_null(strstr(o.out, "gain"));
    o = BMUF("explain", "tiny.ini", "--set", "train.strategy=diloco", "--set",
             "train.epochs=9", "--set", "sgd.update=momentum");
    assert_code(o, 0);
    assert_says(o.out, "warning: train.strategy = diloco expects AdamW");
}

/* Weights of 4 TB; neither verb takes memory for them. */
static void test_networks_larger_than_the_memory_are_refused(void **_)
{
    static const char huge[] = "model.net=linear:1000000 linear:1000000 linear";
    outcome explained = BMUF("explain", "tiny.ini", "--set", huge),
            trained = BMUF("train", "tiny.ini", "--out", "huge", "--set", huge);

    (void)_;
    assert_code(explained, 71);
    assert_says(explained.out, "MB a rank for weights and states, ");
    assert_says(explained.out, "\nwarning: 1 rank on this host will need ");
    assert_says(explained.err, "weights and their gradient need 1.2e+04 GB");
    assert_code(trained, 71);
    assert_says(trained.err, "rank on this host will need ");
    assert_says(trained.err, "weights and their gradient need 1.2e+04 GB");
}

/* A branch begins with what is before its group: the first pool has features in order in
 * front of it, the second has not. */
static void test_explain_warns_of_pools_without_order(void **_)
{
    static const char *const nets[] = {
        "model.net=residual( linear:4 | pool:1x2 ) linear",
        "model.net=linear:8 pool:1x2 linear"};

    (void)_;
    for (size_t i = 0; i < 2; i++) {
        outcome o = BMUF("explain", "tiny.ini", "--set", nets[i]);
        bool warned = strstr(o.out, "pools neighbouring units") != NULL ||
                      strstr(o.err, "pools neighbouring units") != NULL;

        assert_code(o, 0);
        assert_int_equal(warned, i > 0);
    }
}

/* Without momentum there is no state. */
static void test_explain_names_the_local_update(void **_)
{
    (void)_;
    assert_says(BMUF("explain", "tiny.ini", "--set", "sgd.momentum=0").out,
                "local update      SGD\n");
    assert_says(BMUF("explain", "tiny.ini", "--set", "sgd.momentum=0.5").out,
                "local update      momentum SGD, its state ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_explain_agrees_with_the_formulas),
        cmocka_unit_test(
            test_explain_says_if_mini_batches_are_few_for_many_workers),
        cmocka_unit_test(test_explain_judges_later_epochs),
        cmocka_unit_test(test_explain_warns_of_changes_that_never_come),
        cmocka_unit_test(test_explain_says_which_workers_never_train),
        cmocka_unit_test(test_json_has_the_numbers_of_the_text),
        cmocka_unit_test(test_slower_recordings_take_more_memory),
        cmocka_unit_test(test_explain_says_what_is_augmented),
        cmocka_unit_test(test_explain_warns_of_changes_that_change_nothing),
        cmocka_unit_test(test_explain_opens_what_changes_recordings),
        cmocka_unit_test(test_explain_warns_of_masks_of_cepstra),
        cmocka_unit_test(test_explain_prints_block_options),
        cmocka_unit_test(test_explain_counts_bytes_of_an_exchange),
        cmocka_unit_test(test_explain_counts_bytes_of_a_server),
        cmocka_unit_test(test_explained_bytes_are_those_of_a_run),
        cmocka_unit_test(test_explained_bytes_of_a_server_are_those_of_a_run),
        cmocka_unit_test(test_explain_counts_bytes_of_codes),
        cmocka_unit_test(test_explain_counts_padding),
        cmocka_unit_test(test_explain_fails_and_warns),
        cmocka_unit_test(test_networks_larger_than_the_memory_are_refused),
        cmocka_unit_test(test_explain_warns_of_pools_without_order),
        cmocka_unit_test(test_explain_names_the_local_update),
    };
    return cmocka_run_group_tests_name("explain", tests, make_corpus,
                                       folder_remove);
}
