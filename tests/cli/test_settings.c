/*
 * Invalid and conflicting settings are all reported, before training starts,
 * with the names that the user knows.
 */
#include "bmuf/trainer/infeasible.h"
#include "cli/conditions.h"
#include "cli/settings.h"
#include "core/file/file.h"
#include "sgd/update.h"
#include "tests/support/command.h"
#include "tests/support/datasets.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char faults[] = "[data]\n"
                             "trian = train\n"
                             "[model]\n"
                             "net = blstm:8 lineal\n"
                             "loss = ctcc\n"
                             "[train]\n"
                             "epochs = -1\n"
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
        "faults.ini:7: train.epochs: -1 is outside [0, ",                      \
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

static void test_data_that_are_given_otherwise_are_explained(void **_)
{
    outcome same = BMUF("explain", "tiny.ini", "--set", "data.dev=train");

    (void)_;
    assert_fails(BMUF("explain", "tiny.ini", "--set", "data.train=train test"),
                 66, "data directory train test", "this is one folder",
                 "into one folder", "docs/data/shards.md");
    assert_code(same, 0);
    assert_says(same.out,
                "warning: data.dev has the same sequences as data.train");
    assert_int_equal(
        count_of(BMUF("explain", "tiny.ini").out, "same sequences"), 0);
}

/* Lists of VALUE@EPOCH are for other settings. */
static void test_a_rate_of_each_epoch_is_answered_with_the_schedule(void **_)
{
    (void)_;
    assert_fails(
        BMUF("explain", "tiny.ini", "--set", "train.rate=0.02@0 0.002@3"), 78,
        "train.rate: '0.02@0 0.002@3' is not a number; ", "[schedule]",
        "bmuf train --from RUN");
    assert_fails(BMUF("explain", "tiny.ini", "--set", "sgd.clip=5@0 1@3"), 78,
                 "sgd.clip: '5@0 1@3' is not a number\n");
    assert_fails(BMUF("explain", "tiny.ini", "--set", "train.rate=fast"), 78,
                 "train.rate: 'fast' is not a number\n");
}

/* In any spelling; what is said in their place is a choice. */
static void test_choices_of_other_programs_are_answered_with_ours(void **_)
{
    static const char *const cases[][3] = {
        {"sgd.update", "adam",
         "; set adamw, which is Adam with sgd.weight_decay = 0\n"},
        {"sgd.update", "AdamW", "; set adamw\n"},
        {"sgd.update", "SGD", "; set momentum, which is SGD with"},
        {"schedule.kind", "plateau",
         "; set newbob, which decays the rate where the error of data.dev "
         "stays\n"},
        {"schedule.kind", "ReduceLROnPlateau", "; set newbob, which"},
        {"schedule.kind", "reduce_lr_on_plateau", "; set newbob, which"},
        {"schedule.kind", "OneCycleLR", "; set onecycle\n"},
        {"schedule.kind", "noamlr", "; set noam\n"},
        {"schedule.kind", "CosineAnnealingLR", "; set cosine\n"},
        {"schedule.kind", "linear", "\n"}, /* no proposal */
        {"model.loss", "CTCLoss", "; set ctc\n"},
        {"model.loss", "cross-entropy", "; set cross_entropy\n"},
        {"job.device", "gpu", "; set cuda\n"},
        {"train.strategy", "BlockMomentumSGD", "; set bmuf\n"},
    };

    (void)_;
    FOR_EACH (i, cases) {
        char set[100], says[100];
        outcome o;

        snprintf(set, sizeof set, "%s=%s", cases[i][0], cases[i][1]);
        snprintf(says, sizeof says, "%s: '%s' is not one of: ", cases[i][0],
                 cases[i][1]);
        o = BMUF("explain", "tiny.ini", "--set", set);
        assert_fails(o, 78, says, cases[i][2]);
        assert_true((strstr(o.err, "; set ") != NULL) ==
                    (cases[i][2][0] == ';'));
        if (cases[i][2][0] != ';')
            continue;
        snprintf(set, sizeof set, "%s=%s", cases[i][0],
                 strstr(o.err, "; set ") + strlen("; set "));
        set[strcspn(set, ",\n")] = '\0';
        o = BMUF("explain", "tiny.ini", "--set", set);
        assert_null(strstr(o.err, "is not one of"));
    }
}

/* Under any section, in a file and on the command line. */
static void test_names_of_other_programs_are_answered_with_ours(void **_)
{
    static const char *const cases[][2] = {
        {"train.lr", "train.rate"},
        {"sgd.lr", "train.rate"},
        {"bmuf.learning_rate", "train.rate"},
        {"sgd.optimizer", "sgd.update"},
        {"batch.batch_size", "batch.sequences"},
        {"job.world_size", "job.workers"},
        {"job.nproc", "job.workers"},
        {"data.cv", "data.dev"},
        {"data.val", "data.dev"},
        {"data.valid", "data.dev"},
    };

    (void)_;
    FOR_EACH (i, cases) {
        char set[100], words[100];
        int section = (int)strcspn(cases[i][0], ".");

        snprintf(set, sizeof set, "%s=1", cases[i][0]);
        snprintf(words, sizeof words, "%s is unknown; there is %s\n",
                 cases[i][0], cases[i][1]);
        assert_fails(BMUF("explain", "tiny.ini", "--set", set), 78, words);
        snprintf(set, sizeof set, "[%.*s]\n%s = 1\n", section, cases[i][0],
                 cases[i][0] + section + 1);
        write_text("theirs.ini", set);
        assert_says(BMUF("explain", "theirs.ini").err, words);
        snprintf(words, sizeof words, "did you mean %s?", cases[i][1]);
        assert_fails(BMUF("options", cases[i][0]), 64, words);
    }
    assert_fails(BMUF("pack", "--audio", "train.jsonl", "--out", "d", "--set",
                      "features.num_mel_bins=40"),
                 78,
                 "features.num_mel_bins is unknown; there is features.mels");
}

static void test_missing_settings_name_the_file(void **_)
{
    (void)_;
    write_text("empty.ini", "");
    assert_fails(BMUF("train", "empty.ini"), 78,
                 "empty.ini: data.train is not set; add [data] train");
}

static void test_conflicting_settings_are_rejected(void **_)
{
    (void)_;
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=local"), 78,
                 "strategy = local needs one worker, not 2");
    assert_fails(BMUF("train", "tiny.ini", "--set", "data.dev=", "--set",
                      "schedule.kind=newbob"),
                 78, "newbob", "data.dev");
    assert_fails(BMUF("train", "tiny.ini", "--set", "data.dev=", "--set",
                      "schedule.stop_after=5"),
                 78, "schedule.stop_after = 5 needs data.dev");
    assert_fails(BMUF("train", "tiny.ini", "--set", "schedule.kind=noam"), 78,
                 "schedule.kind = noam needs schedule.warmup");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.steps=3"), 78,
                 "block.frames_total and block.steps");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=ssgd",
                      "--set", "sgd.local_state=average"),
                 78, "local_state = average");
    assert_fails(BMUF("train", "tiny.ini", "--set", "sgd.nesterov=yes", "--set",
                      "sgd.update=adamw"),
                 78, "nesterov = yes has no effect with sgd.update");
    assert_fails(BMUF("train", "tiny.ini", "--set", "sgd.nesterov=yes", "--set",
                      "sgd.update=rmsprop"),
                 78, "nesterov = yes has no effect with sgd.update = rmsprop");
    assert_fails(BMUF("train", "tiny.ini", "--set", "sgd.update=rmsprop",
                      "--set", "sgd.local_state=extrapolate"),
                 78, "extrapolate needs sgd.update = adamw");
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
                 78,
                 "job.exchange = nccl is not available: there is no device");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.overlap=yes",
                      "--set", "compress.code=topk"),
                 78, "conflicts with block.fragments");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.overlap=yes",
                      "--set", "block.workers=1@0 2@1"),
                 78, "block.workers = 1@0 2@1: with block.overlap all workers");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.workers=3"), 78,
                 "3 is more than job.workers = 2");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.fragments=9"), 78,
                 "block.fragments = 9: the network can be cut into");
    assert_fails(BMUF("train", "tiny.ini", "--set", "block.warmup=1", "--set",
                      "ssgd.overlap=merged", "--set", "job.sum=ring"),
                 78, "ssgd.overlap = merged cuts buckets");
    assert_fails(BMUF("train", "tiny.ini", "-n", "3"), 78,
                 "3 ranks, but job.workers = 2");
    assert_fails(BMUF("train", "tiny.ini", "--set", "augment.speed=1.1:0.9"),
                 78, "augment.speed = 1.1:0.9 is invalid", "0.9:1.1");
    assert_fails(BMUF("train", "tiny.ini", "--set", "augment.snr=20:5"), 78,
                 "augment.snr = 20:5 is invalid", "5:20");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=softsync",
                      "--set", "clock.kind=real", "--set", "clock.shards=2"),
                 78, "clock.shards = 2", "groups that wait for each other");
    assert_fails(BMUF("train", "tiny.ini", "--set", "train.strategy=asgd",
                      "--set", "sgd.update=muon", "--set", "clock.kind=real",
                      "--set", "clock.shards=2"),
                 78, "muon needs whole matrices");
    assert_fails(BMUF("explain", "tiny.ini", "-n", "2", "--set",
                      "train.strategy=asgd", "--set", "clock.kind=real",
                      "--set", "clock.shards=3"),
                 78, "clock.shards = 3", "set at most 2, or 0");
    assert_fails(BMUF("explain", "tiny.ini", "--set", "train.strategy=easgd",
                      "--set", "job.workers=1", "--set", "clock.times=1 2"),
                 78, "clock.times has 2 numbers for job.workers = 1");
}

static void test_conflicting_server_settings_are_rejected(void **_)
{
    static const char *const wrong[][3] = {
        {"asgd", "sgd.local_state=average",
         "needs a strategy that exchanges models"},
        {"asgd", "asgd.push_every=2", "not a multiple of asgd.push_every = 2"},
        {"softsync", "softsync.n=3", "more than job.workers = 2"},
        {"easgd", "clock.times=1 2 3", "3 numbers for job.workers = 2"},
        {"easgd", "clock.times=1 -2", "not all of these are positive"},
        {"easgd", "easgd.alpha=2", "outside [0, 1]"},
        {"easgd", "block.workers=1@0 2@1",
         "block.workers is not for train.strategy = easgd"},
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

/* ---- settings that do nothing -------------------------------------------- */

/* The warnings of bm_conditions_check, one per line. */
typedef struct warnings {
    int n;
    char text[2000];
} warnings;

static void listen(void *self, const char *text)
{
    warnings *w = self;
    size_t used = strlen(w->text);

    w->n++;
    snprintf(w->text + used, sizeof w->text - used, "%s\n", text);
}

static bm_config *settings_of(const char *const *list, size_t n)
{
    bm_config *config = NULL;

    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "data.train=d"));
    assert_ok(bm_config_set(config, "model.net=linear"));
    for (size_t i = 0; i < n && list[i] != NULL; i++)
        assert_ok(bm_config_set(config, list[i]));
    assert_ok(bm_config_check(config, bm_train_sections()));
    return config;
}

static void test_every_setting_has_a_row_of_conditions(void **_)
{
    (void)_;
    for (const bm_section *s = bm_train_sections(); s->name != NULL; s++)
        for (const bm_option *o = s->options; o->key != NULL; o++)
            if (bm_condition(s->name, o->key) == NULL)
                fail_msg("add %s.%s to the table in cli/conditions.c", s->name,
                         o->key);
}

static void test_conditions_of_updates_are_what_the_updates_use(void **_)
{
    static const char *const keys[] = {"momentum", "beta1", "beta2", "epsilon"};

    (void)_;
    for (size_t k = 0; bm_updates[k] != NULL; k++) {
        char update[40];
        bm_config *config = NULL;

        snprintf(update, sizeof update, "sgd.update=%s", bm_updates[k]->name);
        config = settings_of((const char *const[]){update}, 1);
        FOR_EACH (i, keys)
            if (bm_condition_holds(config, "sgd", keys[i]) !=
                bm_update_uses(bm_updates[k], keys[i]))
                fail_msg("correct %s in the row of sgd.%s in cli/conditions.c",
                         update, keys[i]);
        if (!bm_updates[k]->momentum_only &&
            !bm_condition_holds(config, "sgd", "local_state"))
            fail_msg("add %s to the row of sgd.local_state in cli/conditions.c",
                     update);
        bm_config_free(config);
    }
}

/* Up to two settings, and which of them the warning names, with why. */
static void test_settings_that_do_nothing_are_warned_of(void **_)
{
    static const char *const idle[][4] = {
        {"train.strategy=average", "bmuf.momentum=0.5",
         "bmuf.momentum = 0.5 has no effect",
         "applies only with train.strategy = bmuf"},
        {"train.strategy=ssgd", "bmuf.rate=2", "bmuf.rate = 2",
         "with train.strategy = bmuf"},
        {"train.strategy=cntk", "bmuf.momentum=0.5", "bmuf.momentum = 0.5",
         "with train.strategy = bmuf"},
        {"clock.times=2", NULL, "clock.times = 2",
         "applies only with an asynchronous strategy"},
        {"train.strategy=ssgd", "clock.kind=real", "clock.kind = real", ""},
        {"train.strategy=asgd", "clock.shards=2", "clock.shards = 2",
         "applies only with clock.kind = real"},
        {"ssgd.overlap=layer", NULL, "ssgd.overlap = layer",
         "train.strategy = ssgd or block.warmup > 0"},
        {"sgd.beta1=0.8", NULL, "sgd.beta1 = 0.8", "sgd.update = adamw"},
        {"sgd.beta1=0.8", "sgd.update=rmsprop", "sgd.beta1 = 0.8",
         "sgd.update = adamw"},
        {"sgd.momentum=0.5", "sgd.update=adamw", "sgd.momentum = 0.5",
         "sgd.update = momentum"},
        {"schedule.kind=constant", "schedule.decay=0.7", "schedule.decay = 0.7",
         "schedule.kind = exponential,newbob"},
        {"sgd.nesterov=yes", "sgd.momentum=0", "sgd.nesterov = yes",
         "applies only with sgd.momentum > 0"},
        {"schedule.kind=constant", "schedule.ramp=yes", "schedule.ramp = yes",
         "schedule.kind = newbob"},
        {"schedule.kind=exponential", "schedule.patience=2",
         "schedule.patience = 2", "schedule.kind = newbob"},
        {"augment.share=0", "augment.speed=0.9:1.1", "augment.speed = 0.9:1.1",
         "augment.share > 0"},
        {"slowmo.slowmo_lr=2", NULL, "slowmo.slowmo_lr = 2",
         "train.strategy = slowmo"},
        {"compress.share=0.2", "compress.code=int8", "compress.share = 0.2",
         "compress.code = topk"},
        {"job.sum=ring", "job.topology=1", "job.topology = 1",
         "job.sum = hier"},
        {"train.strategy=ssgd", "ssgd.bucket=2", "ssgd.bucket = 2",
         "ssgd.overlap = bucket"},
        {"train.strategy=ssgd", "sgd.local_state=keep",
         "sgd.local_state = keep", "a strategy that exchanges once per block"},
        {"train.strategy=asgd", "sgd.local_state=keep",
         "sgd.local_state = keep", "or asgd.update = local"},
        {"sgd.momentum=0", "sgd.local_state=keep", "sgd.local_state = keep",
         "and with sgd.momentum > 0 or sgd.update = adamw,rmsprop"},
        {"batch.order=sorted", "batch.buckets=3", "batch.buckets = 3",
         "batch.order = random"},
        {"model.loss=cross_entropy", "model.infeasible=zero",
         "model.infeasible = zero", "model.loss = ctc"},
        {"augment.time_width=3", "augment.frequency_masks=2",
         "augment.time_width = 3", "augment.time_masks > 0"},
        {"augment.noise_sound=pink", "augment.t60=0.3", "augment.t60 = 0.3",
         "augment.reverb = made"},
        {"augment.snr=3", "augment.reverb=made", "augment.snr = 3",
         "augment.noise_sound != no"},
        {"train.keep_best=yes", NULL, "train.keep_best = yes",
         "applies only with data.dev"},
        {"augment.cutout_size=0.1", NULL, "augment.cutout_size = 0.1",
         "augment.cutouts > 0"},
    };

    (void)_;
    FOR_EACH (i, idle) {
        bm_config *config = settings_of(idle[i], 2);
        warnings w = {0};

        bm_conditions_check(config, listen, &w);
        if (w.n != 1 || !strstr(w.text, idle[i][2]) ||
            !strstr(w.text, idle[i][3]))
            fail_msg("%s %s: %d warnings: %s", idle[i][0], idle[i][1], w.n,
                     w.text);
        bm_config_free(config);
    }
}

/* One worker keeps its momentum; with steps or events that is no setting. */
static void test_defaults_are_not_warned_of(void **_)
{
    static const char *const strategies[] = {
        "train.strategy=bmuf", "train.strategy=ssgd", "train.strategy=asgd"};

    (void)_;
    FOR_EACH (i, strategies) {
        outcome o = BMUF("explain", "tiny.ini", "--set", "job.workers=1",
                         "--set", "sgd.momentum=0", "--set", strategies[i]);

        assert_code(o, 0);
        assert_null(strstr(o.out, "has no effect"));
    }
}

static void test_settings_that_count_are_not_warned_of(void **_)
{
    static const char *const counting[][3] = {
        {"bmuf.momentum=0.5", "sgd.momentum=0.5"},
        {"sgd.nesterov=yes", "sgd.momentum=0.5", "sgd.update=muon"},
        {"train.strategy=easgd", "clock.times=2", "clock.spread=0"},
        {"block.warmup=2", "ssgd.overlap=bucket", "ssgd.bucket=2"},
        {"train.strategy=diloco", "sgd.update=adamw", "sgd.beta1=0.8"},
        {"compress.code=topk", "compress.share=0.2"},
        {"train.strategy=average", "bmuf.momentum=auto", "sgd.beta1=0.9"},
        {"train.strategy=asgd", "asgd.update=local", "sgd.local_state=keep"},
        {"sgd.update=rmsprop", "sgd.momentum=0", "sgd.local_state=average"},
        {"sgd.update=muon", "sgd.momentum=0.5", "sgd.local_state=average"},
    };

    (void)_;
    FOR_EACH (i, counting) {
        bm_config *config = settings_of(counting[i], 3), *again = NULL;
        FILE *file = fopen(in_folder("kept.ini"), "w");
        warnings w = {0};

        bm_conditions_check(config, listen, &w);
        assert_ok(bm_config_write(config, bm_train_sections(), file));
        fclose(file);
        assert_ok(bm_config_new(&again)); /* as a run keeps its settings */
        assert_ok(bm_config_read(again, in_folder("kept.ini")));
        bm_conditions_check(again, listen, &w);
        if (w.n > 0)
            fail_msg("%s", w.text);
        bm_config_free(again);
        bm_config_free(config);
    }
}

static void test_train_and_explain_warn_of_settings_that_do_nothing(void **_)
{
    static const char warning[] = "clock.times = 2 has no effect";
    outcome o = BMUF("explain", "tiny.ini", "--set", "clock.times=2");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, warning);
    write_text("many.ini", "[data]\ntrain = train\n[model]\nnet = linear\n"
                           "[job]\nworkers = 16\n[sgd]\nnesterov = yes\n");
    o = BMUF("explain", "many.ini");
    assert_code(o, 0); /* so many have no momentum of their own */
    assert_says(o.out, "sgd.nesterov = yes has no effect");
    o = BMUF("explain", "many.ini", "--set", "sgd.nesterov=no", "--set",
             "sgd.local_state=average");
    assert_code(o, 0);
    assert_says(o.out, "sgd.local_state = average has no effect");
    o = BMUF("train", "tiny.ini", "--out", "idle", "--set", "clock.times=2",
             "--set", "train.epochs=1");
    assert_code(o, 0);
    assert_int_equal(count_of(o.err, warning), 1);
}

/* A network that can be trained, but hardly what its author wants. */
static void test_layers_that_lose_their_input_are_warned_of(void **_)
{
    static const char one[] = "makes one number of a whole sequence";
    static const struct {
        const char *net, *layer, *what; /* NULL: no warning */
    } nets[] = {
        {"model.net=linear:8 tanh pool:all,mean linear", "2.pool", one},
        {"model.net=blstm:8 pool:3x1 pool:all linear", "2.pool", one},
        {"model.net=conv:4,3x3 linear:8 pool:all linear", "2.pool", one},
        {"model.net=blstm:8 pool:2x2 linear", "1.pool",
         "pool:2x1 pools frames"},
        {"model.net=stack:2 instancenorm pool:2x2 linear", NULL, NULL},
        {"model.net=conv:4,3x3 relu pool:2x2 pool:all,mean linear", NULL, NULL},
        {"model.net=conv:4,3x3 pool:all instancenorm linear", "2.instancenorm",
         "does not depend on the input"},
        {"model.net=conv:4,3x3 pool:4x2 instancenorm linear", NULL, NULL},
        {"model.net=linear:8 tanh pool:1024x1,mean linear", NULL, NULL},
    };

    (void)_;
    FOR_EACH (i, nets) {
        bm_config *config = settings_of(&nets[i].net, 1);
        warnings w = {0};

        bm_conditions_check(config, listen, &w);
        assert_int_equal(w.n, nets[i].layer != NULL);
        if (nets[i].layer != NULL) {
            assert_says(w.text, nets[i].layer);
            assert_says(w.text, nets[i].what);
        }
        bm_config_free(config);
    }
}

/* Those that were assumed while there were no data. */
static void test_sizes_are_those_of_the_data(void **_)
{
    (void)_;
    assert_fails(BMUF("explain", "tiny.ini", "--set",
                      "model.net=stack:1000000*2 linear"),
                 78, "8000000000000 outputs per frame; the limit is");
}

/* ---- explain, train --dry-run and train ---------------------------------- */

/* Without a device, and on as many ranks. */
static void test_explain_and_dry_run_end_as_training_does(void **_)
{
    static const struct {
        const char *setting, *ranks;
        int code;
    } bad[] = {
        {"job.exchange=nccl", "1", 78},
        {"job.exchange=mpi", "1", 78},
        {"job.precision=tf32", "1", 78},
        {"job.device=cuda", "1", 69},
        {"clock.kind=real", "1", 78},
        {"block.fragments=9", "1", 78},
        {"bmuf.momentum=2", "1", 78},
        {"job.workers=1", "2", 78},
        {"data.train=nowhere", "1", 66},
        {"data.dev=nowhere", "1", 66},
        {"model.net=stack:300 lstm:8 linear", "1", 65},
        {"model.net=lstm:8", "1", 78},
    };
    char *plugins = getenv("BMUF_PLUGINS"), before[1000];

    (void)_;
    snprintf(before, sizeof before, "%s", plugins != NULL ? plugins : "");
    setenv("BMUF_PLUGINS", "/nowhere", 1);
    FOR_EACH (i, bad) {
        const char *real = strstr(bad[i].setting, "clock") != NULL
                               ? "train.strategy=easgd"
                               : "train.epochs=1";
        const char *set = bad[i].setting, *n = bad[i].ranks;

        assert_code(
            BMUF("explain", "tiny.ini", "-n", n, "--set", set, "--set", real),
            bad[i].code);
        assert_code(BMUF("train", "tiny.ini", "-n", n, "--out", "bad", "--set",
                         set, "--set", real, "--dry-run"),
                    bad[i].code);
        assert_code(BMUF("train", "tiny.ini", "-n", n, "--out", "bad", "--set",
                         set, "--set", real),
                    bad[i].code);
    }
    if (plugins != NULL)
        setenv("BMUF_PLUGINS", before, 1);
    else
        unsetenv("BMUF_PLUGINS");
}

static void test_a_dry_run_needs_a_folder_to_write_to(void **_)
{
    static const char *const folders[] = {"tiny.ini", "tiny.ini/run",
                                          "read_only/run", "read_only"};

    (void)_;
    assert_int_equal(mkdir(in_folder("read_only"), 0500), 0);
    for (size_t i = 0; i < (geteuid() == 0 ? 2U : 4U); i++) {
        outcome o = BMUF("train", "tiny.ini", "--dry-run", "--out", folders[i]);

        assert_code(o, 73);
        assert_says(o.err, "the run cannot be written: ");
        assert_says(o.err, "; give another --out");
        assert_fails(BMUF("train", "tiny.ini", "--out", folders[i]), 73,
                     folders[i], "; give another --out");
    }
    assert_code(BMUF("train", "tiny.ini", "--dry-run", "--out", "a/b/c"), 0);
    assert_int_not_equal(access(in_folder("a"), F_OK), 0);
}

/* A set of n sequences of a label each, whose features are all NaN. */
static void make_set_of_nan(const char *name, size_t n)
{
    enum { FRAMES = 10, D = CORPUS_D };
    char *directory = strdup(in_folder(name));
    corpus c = corpus_make(directory, name, 0);
    bm_shard_writer *w = NULL;
    float x[FRAMES * D];
    int32_t label = 2;
    size_t shards = 0;
    char tag[20];

    for (size_t i = 0; i < FRAMES * D; i++)
        x[i] = NAN;
    assert_int_equal(mkdir(directory, 0777), 0);
    assert_ok(
        bm_shard_writer_open(&w, c.directory, name, &c.settings, &c.meta));
    for (size_t i = 0; i < n; i++) {
        snprintf(tag, sizeof tag, "nan/%zu", i);
        assert_ok(bm_shard_writer_add(w, tag, "anna", x, FRAMES, &label, 1));
    }
    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    free(directory);
}

/* stack:2 leaves five, one and two frames of ten, two and four. */
static void test_sequences_that_fit_are_counted(void **_)
{
    int32_t lengths[][2] = {{10, 5}, {2, 2}, {4, 2}};
    bm_dataset d = {.directory = "some",
                    .n = 3,
                    .labels = 9,
                    .lengths = lengths[0],
                    .longest = 10};
    bm_model_settings settings = {"stack:2 linear", "ctc", "skip"};
    bm_model_shape shape = {5, 5, 1};
    bm_backend *be = NULL;
    bm_model *m = NULL;

    (void)_;
    assert_ok(bm_backend_open(&be, "cpu", 0));
    assert_ok(bm_model_new(&m, &settings, &shape, be, 1));
    assert_int_equal(bm_infeasible_count(m, &d), 1);
    assert_ok(bm_infeasible_check_data(m, &d, "data.train"));
    lengths[0][1] = 6; /* two of three do not fit */
    assert_int_equal(bm_infeasible_count(m, &d), 2);
    assert_int_equal(bm_infeasible_check_data(m, &d, "data.train"),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(),
                           "2 of 3 sequences of data.train = some have more "
                           "labels than model.net leaves frames: it leaves 5 "
                           "of the 10 of the longest"));
    d.labels = 0;
    assert_int_equal(bm_infeasible_check_data(m, &d, "data.train"),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "some has no labels"));
    d.n = 0;
    assert_int_equal(bm_infeasible_check_data(m, &d, "data.train"),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "some has no sequences"));
    bm_model_free(m);
    bm_backend_close(be);
}

static void test_training_that_learns_nothing_fails(void **_)
{
    (void)_;
    make_set_of_nan("nan", 30);
    assert_fails(BMUF("train", "tiny.ini", "--out", "none", "--set",
                      "data.train=nan", "--set", "data.dev="),
                 65, "the features of all sequences are NaN or infinite");
    assert_fails(BMUF("train", "tiny.ini", "--out", "none", "--set",
                      "model.net=stack:300 lstm:8 linear"),
                 65, "more labels than model.net leaves frames");
}

static void test_small_sets_have_more_epochs_by_default(void **_)
{
    static const struct {
        size_t n, frames;
        long sequences, limit, epochs;
    } sets[] = {
        {100000, 1, 0, 0, 30}, /* 16 sequences: 6250 mini-batches */
        {400, 1, 4, 0, 30},    /* 100 mini-batches */
        {300, 1, 4, 0, 40},    /* 75 */
        {300, 1, 0, 0, 40},    /* 4 sequences by default */
        {300, 6000, 0, 100, 50}, {8, 1, 0, 0, 100}, {0, 0, 0, 0, 100},
    };

    (void)_;
    FOR_EACH (i, sets) {
        bm_dataset d = {.n = sets[i].n, .frames = sets[i].frames};
        bm_settings s = {
            .plan = {.sequences = sets[i].sequences, .frames = sets[i].limit}};

        assert_int_equal(bm_settings_epochs(&s, &d), sets[i].epochs);
        s.train.epochs = 7;
        assert_int_equal(bm_settings_epochs(&s, &d), 7);
    }
}

/* What a run of data, net and one more setting has kept; see
 * docs/decisions/25-many-workers.md. */
static void test_defaults_of_many_workers(void **_)
{
    static const char bare[] = "[data]\ntrain = train\n"
                               "[model]\nnet = stack:2 linear\n";
    static const struct {
        const char *workers, *more, *momentum, *rate, *steps;
    } rows[] = {
        {"4", "sgd.clip=5", "0.9", "0.02", "20"},
        {"8", "sgd.clip=5", "0", "0.1", "10"},
        {"16", "sgd.clip=5", "0", "0.1", "5"},
        {"64", "sgd.clip=5", "0", "0.1", "5"},
        {"1", "sgd.momentum=0", "0", "0.1", "20"},
        {"16", "sgd.momentum=0.9", "0.9", "0.02", "10"},
        {"16", "sgd.momentum=0.95", "0.95", "0.02", "20"},
        {"16", "train.rate=0.3", "0", "0.3", "5"},
        {"16", "block.steps=7", "0", "0.1", "7"},
        {"16", "block.steps=0", "0", "0.1", "5"}, /* 0: no size is set */
        {"4", "batch.accumulate=3", "0.9", "0.02", "60"},
        {"8", "batch.accumulate=3", "0", "0.1", "30"},
        {"16", "block.frames_total=900", "0", "0.1", "0"},
        {"16", "sgd.update=adamw", "0.9", "0.001", "10"},
        {"16", "sgd.update=muon", "0.9", "0.02", "10"},
        {"16", "train.strategy=average", "0.9", "0.02", "10"},
        {"16", "train.strategy=ssgd", "0.9", "0.02", "20"},
    };

    (void)_;
    assert_ok(bm_file_write(in_folder("bare.ini"), bare, strlen(bare)));
    FOR_EACH (i, rows) {
        char workers[32], out[32], kept[48];
        bm_config *config = NULL;
        outcome o;

        snprintf(workers, sizeof workers, "job.workers=%s", rows[i].workers);
        snprintf(out, sizeof out, "many-%d", (int)i);
        snprintf(kept, sizeof kept, "%s/config.ini", out);
        o = BMUF("train", "bare.ini", "--out", out, "--set", workers, "--set",
                 rows[i].more, "--set", "train.epochs=1");
        assert_true(o.code == 0 || o.code == 76);
        assert_ok(bm_config_new(&config));
        assert_ok(bm_config_read(config, in_folder(kept)));
        assert_string_equal(bm_config_text(config, "sgd", "momentum"),
                            rows[i].momentum);
        assert_string_equal(bm_config_text(config, "train", "rate"),
                            rows[i].rate);
        assert_string_equal(bm_config_text(config, "block", "steps"),
                            rows[i].steps);
        bm_config_free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(
            test_all_invalid_settings_are_reported_before_training),
        cmocka_unit_test(
            test_invalid_settings_of_the_command_line_are_reported),
        cmocka_unit_test(test_data_that_are_given_otherwise_are_explained),
        cmocka_unit_test(
            test_a_rate_of_each_epoch_is_answered_with_the_schedule),
        cmocka_unit_test(test_choices_of_other_programs_are_answered_with_ours),
        cmocka_unit_test(test_names_of_other_programs_are_answered_with_ours),
        cmocka_unit_test(test_missing_settings_name_the_file),
        cmocka_unit_test(test_conflicting_settings_are_rejected),
        cmocka_unit_test(test_conflicting_server_settings_are_rejected),
        cmocka_unit_test(test_every_setting_has_a_row_of_conditions),
        cmocka_unit_test(test_conditions_of_updates_are_what_the_updates_use),
        cmocka_unit_test(test_layers_that_lose_their_input_are_warned_of),
        cmocka_unit_test(test_sizes_are_those_of_the_data),
        cmocka_unit_test(test_settings_that_do_nothing_are_warned_of),
        cmocka_unit_test(test_defaults_are_not_warned_of),
        cmocka_unit_test(test_settings_that_count_are_not_warned_of),
        cmocka_unit_test(
            test_train_and_explain_warn_of_settings_that_do_nothing),
        cmocka_unit_test(test_small_sets_have_more_epochs_by_default),
        cmocka_unit_test(test_defaults_of_many_workers),
        cmocka_unit_test(test_explain_and_dry_run_end_as_training_does),
        cmocka_unit_test(test_a_dry_run_needs_a_folder_to_write_to),
        cmocka_unit_test(test_sequences_that_fit_are_counted),
        cmocka_unit_test(test_training_that_learns_nothing_fails),
    };
    return cmocka_run_group_tests_name("settings", tests, make_corpus,
                                       folder_remove);
}
