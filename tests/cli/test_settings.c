/*
 * Invalid and conflicting settings are all reported, before training starts,
 * with the names that the user knows.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char faults[] = "[data]\n"
                             "trian = train\n"
                             "[model]\n"
                             "net = blstm:8 lineal\n"
                             "loss = ctcc\n"
                             "[train]\n"
                             "epochs = 0\n"
                             "rate = fast\n"
                             "strategy = local\n"
                             "[bmuf]\n"
                             "momentum = 1.5\n"
                             "[blok]\n"
                             "size = 1\n"
                             "[sgd]\n"
                             "nesterov = maybe\n"
                             "nonsense\n"
                             "[batch]\n"
                             "order = backwards\n"
                             "sequences = 8\n"
                             "frames = 1000\n"
                             "[block]\n"
                             "steps = 3\n"
                             "frames_total = 1000\n"
                             "[job]\n"
                             "workers = 2\n"
                             "[schedule]\n"
                             "kind = newbob\n";

#define ALL_FAULTS                                                             \
    "15 invalid settings", "faults.ini:2: data.trian is unknown",              \
        "nearest is data.train",                                               \
        "data.train is not set; add [data] train = FOLDER",                    \
        "faults.ini:4: model.net: word 2 'lineal': no such layer",             \
        "faults.ini:5: model.loss: 'ctcc'", "ctc cross_entropy",               \
        "faults.ini:7: train.epochs: 0 is outside [1, ",                       \
        "faults.ini:8: train.rate: 'fast' is not a number",                    \
        "faults.ini:9: train.strategy = local needs one worker, not 2",        \
        "faults.ini:11: bmuf.momentum: 1.5 is outside [0, 0.9999]",            \
        "faults.ini:13: section [blok] is unknown; the nearest is [block]",    \
        "faults.ini:15: sgd.nesterov: 'maybe' is not yes or no",               \
        "faults.ini:16: neither [section] nor key = value",                    \
        "faults.ini:18: batch.order: 'backwards'",                             \
        "faults.ini:20: batch.sequences = 8 and batch.frames = 1000",          \
        "faults.ini:22: block.frames_total and block.steps",                   \
        "faults.ini:27: schedule.kind = newbob needs data.dev"

static void test_all_invalid_settings_are_reported_before_training(void **_)
{
    static const char *const verbs[] = {"train", "explain"};

    (void)_;
    write_text("faults.ini", faults);
    FOR_EACH (i, verbs) {
        outcome o = BMUF(verbs[i], "faults.ini", "-n", "2", "--verbose");

        assert_fails(o, 78, ALL_FAULTS);
        assert_null(strstr(o.err, "starting:"));
    }
}

static void test_invalid_settings_of_the_command_line_are_reported(void **_)
{
    (void)_;
    assert_fails(BMUF("train", "tiny.ini", "--set", "bmuf.momentun=0.9",
                      "--set", "train.rate=0"),
                 78, "command line: bmuf.momentun is unknown",
                 "nearest is bmuf.momentum");
    assert_fails(BMUF("pack", "--audio", "train.jsonl", "--out", "d", "--set",
                      "features.mells=3", "--set", "shard.store=f23"),
                 78, "2 invalid settings", "features.mells", "features.mels",
                 "'f23' is not one of: f32 f16 u8");
    assert_fails(BMUF("eval", "m", "d", "--set", "batch.frames=x"), 78,
                 "batch.frames: 'x'");
    assert_int_equal(access(in_folder("d"), F_OK), -1);
}

static void test_conflicting_settings_are_rejected(void **_)
{
    (void)_;
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=local"), 78,
                 "strategy = local needs one worker, not 2");
    assert_fails(BMUF("train", "tiny.ini", "--set", "data.dev=", "--set",
                      "schedule.kind=newbob"),
                 78, "newbob", "data.dev");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.steps=3"), 78,
                 "block.frames_total and block.steps");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=ssgd",
                      "--set", "sgd.local_state=average"),
                 78, "local_state = average");
    assert_fails(BMUF("train", "tiny.ini", "--set", "sgd.nesterov=yes", "--set",
                      "sgd.update=adamw"),
                 78, "nesterov = yes has no effect with sgd.update");
    assert_fails(
        BMUF("train", "tiny.ini", "--set", "sgd.local_state=extrapolate"), 78,
        "extrapolate needs sgd.update = adamw");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=average",
                      "--set", "sgd.update=adamw", "--set",
                      "sgd.local_state=extrapolate"),
                 78, "needs a strategy with a filter");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=ssgd",
                      "--set", "sgd.update=adamw", "--set",
                      "sgd.local_state=extrapolate"),
                 78, "has no effect, as all workers use one momentum");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=ssgd",
                      "--set", "block.warmup=2"),
                 78, "block.warmup = 2 has no effect");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=ssgd",
                      "--set", "block.seconds=2"),
                 78, "none can stop early");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=ssgd",
                      "--set", "block.fragments=2"),
                 78, "block.fragments needs a strategy that exchanges models");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.overlap=yes",
                      "--set", "sgd.local_state=average"),
                 78, "needs the whole model exchanged");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.overlap=yes",
                      "--set", "job.exchange=nccl"),
                 78, "does not support job.exchange = nccl");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.overlap=yes",
                      "--set", "compress.code=topk"),
                 78, "conflicts with block.fragments");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.fragments=9"), 78,
                 "block.fragments = 9: the network can be cut into");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=ssgd",
                      "--set", "ssgd.overlap=layer", "--set",
                      "job.device=cuda"),
                 78, "ssgd.overlap = layer needs gradients in the host");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.warmup=1", "--set",
                      "ssgd.overlap=merged", "--set", "job.sum=ring"),
                 78, "ssgd.overlap = merged cuts buckets");
    assert_fails(BMUF("train", "tiny.ini", "-n", "3"), 78,
                 "3 ranks, but job.workers = 2");
}

static void test_conflicting_server_settings_are_rejected(void **_)
{
    static const char *const wrong[][3] = {
        {"asgd", "sgd.local_state=average",
         "needs a strategy that exchanges models"},
        {"asgd", "asgd.push_every=2", "not a multiple of asgd.push_every = 2"},
        {"asgd", "asgd.power=2", "no effect without asgd.scaling = power"},
        {"softsync", "softsync.power=2",
         "no effect without softsync.scaling = power"},
        {"ssgd", "ssgd.bucket=2", "= 2 needs ssgd.overlap = bucket"},
        {"softsync", "softsync.n=3", "more than job.workers = 2"},
        {"easgd", "clock.times=1 2 3", "3 numbers for job.workers = 2"},
        {"easgd", "clock.times=1 -2", "not all of these are positive"},
        {"easgd", "easgd.alpha=2", "outside [0, 1]"},
    };
    static const char *const both[] = {"asgd", "softsync"};
    char strategy[40], scaling[40], message[100];

    (void)_;
    FOR_EACH (i, wrong) {
        snprintf(strategy, sizeof strategy, "train.strategy=%s", wrong[i][0]);
        assert_fails(
            BMUF("train", "tiny.ini", "--set", strategy, "--set", wrong[i][1]),
            78, wrong[i][2]);
    }
    FOR_EACH (i, both) {
        snprintf(strategy, sizeof strategy, "train.strategy=%s", both[i]);
        snprintf(scaling, sizeof scaling, "%s.scaling=inverse", both[i]);
        snprintf(message, sizeof message,
                 "%s.scaling scales gradients, which has no effect with "
                 "sgd.update = adamw",
                 both[i]);
        assert_fails(BMUF("train", "tiny.ini", "--set", strategy, "--set",
                          scaling, "--set", "sgd.update=adamw"),
                     78, message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_all_invalid_settings_are_reported_before_training),
        cmocka_unit_test(
            test_invalid_settings_of_the_command_line_are_reported),
        cmocka_unit_test(test_conflicting_settings_are_rejected),
        cmocka_unit_test(test_conflicting_server_settings_are_rejected),
    };
    return cmocka_run_group_tests_name("settings", tests, make_corpus,
                                       folder_remove);
}
