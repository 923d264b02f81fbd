/*
 * Runs that are stopped and resumed: the final model is that of an undisturbed
 * run, for any time of the stop and any number of ranks.
 */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* 200 blocks, enough to be stopped several times. */
static const char enough[] = "train.epochs=50; train.checkpoint_every=50";

/* Trains an undisturbed run with these settings. */
static void run_straight_on(int ranks, const char *run, const char *settings)
{
    program p;

    remove_run(run);
    train(&p, run, ranks, settings);
    assert_ended(&p, 0);
}

static void run_straight(const char *run, const char *settings)
{
    run_straight_on(1, run, settings);
}

/* ---- at every block ----------------------------------------------------- */

/* Resumes from a copy of "every" without the checkpoints after this block. */
static void go_on_from(int block, int blocks, const char *settings)
{
    char line[64];
    program p;

    copy_run("every", "rest");
    for (int later = block + 1; later <= blocks; later++)
        assert_int_equal(unlink(checkpoint_of("rest", later)), 0);
    if (block == 0)
        forget_checkpoints("rest");
    assert_int_equal(unlink(in_folder("rest/model.safetensors")), 0);
    train(&p, "rest", 1 + block % 4, settings);
    assert_ended(&p, 0);
    snprintf(line, sizeof line, "block-%08d", block);
    if (block > 0)
        assert_said(&p, line);
    else
        assert_not_said(&p, "resuming");
    assert_same_model("every", "rest");
}

/* The undisturbed run has `ranks` ranks. */
static void assert_resumes_everywhere(const char *settings, int ranks)
{
    char every[512];
    int blocks = 0;

    snprintf(every, sizeof every,
             "%s; train.epochs=2; train.checkpoint_every=1; train.keep=100",
             settings);
    run_straight_on(ranks, "every", every);
    assert_int_equal(checkpoints("every", &blocks), 8);
    assert_int_equal(blocks, 8);
    for (int k = 0; k < blocks; k += short_tests() ? 4 : 1)
        go_on_from(k, blocks, every);
}

static void test_bmuf_resumes_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere("train.strategy=bmuf", 1);
}

static void test_kept_local_state_resumes_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere("sgd.local_state=keep; job.sum=exact", 1);
}

static void test_growing_runs_resume_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere("sgd.local_state=keep; block.workers=2@0 4@1", 2);
}

#define ADAM "sgd.update=adamw; train.rate=0.002; "

static void test_kept_moments_resume_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere(
        ADAM "train.strategy=diloco; diloco.outer_momentum=0.5; "
             "sgd.local_state=keep",
        1);
}

static void test_kept_squares_of_rmsprop_resume_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere(
        "sgd.update=rmsprop; sgd.momentum=0.5; sgd.local_state=keep", 1);
}

static void test_kept_momentum_of_muon_resumes_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere("sgd.update=muon; sgd.local_state=keep", 2);
}

static void test_extrapolated_moments_resume_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere(ADAM "sgd.local_state=extrapolate", 3);
}

static void test_mixed_block_options_resume_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere(
        "block.warmup=2; train.ema=0.5; block.fragments=2; "
        "block.overlap=yes",
        2);
}

static void test_synchronous_sgd_resumes_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere("train.strategy=ssgd", 3);
}

static void test_averaging_resumes_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere("train.strategy=average; sgd.local_state=average",
                              3);
}

static void test_batch_statistics_resume_from_every_block(void **state)
{
    (void)state;
    assert_resumes_everywhere("train.strategy=bmuf; " NORMALISED, 1);
}

/* A run on one rank, without its last checkpoint, resumes on two. */
static void assert_goes_on(const char *settings)
{
    char every[256];
    program p;

    snprintf(every, sizeof every,
             "%s; train.epochs=2; train.checkpoint_every=3", settings);
    run_straight("every", every);
    copy_run("every", "rest");
    assert_int_equal(unlink(checkpoint_of("rest", 8)), 0);
    train(&p, "rest", 2, every);
    assert_ended(&p, 0);
    assert_said(&p, "block-00000006");
    assert_same_model("every", "rest");
}

static void test_a_root_coordinator_resumes(void **state)
{
    (void)state;
    assert_goes_on("job.coordinator=root; bmuf.nesterov=no");
}

static void test_an_average_of_models_resumes(void **state)
{
    static const char *const runs[] = {"every", "rest"};
    char *raw[2];
    size_t size[2];

    (void)state;
    assert_goes_on("train.ema=0.75");
    assert_int_equal(events("every", "eval"), 2 * 2); /* dev and dev-ema */
    FOR_EACH (i, runs) {
        char name[64];
        snprintf(name, sizeof name, "%s/model-ema.safetensors", runs[i]);
        raw[i] = slurp(in_folder(name), &size[i]);
    }
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(raw[0], raw[1], size[0]);
    free(raw[0]);
    raw[0] = slurp(in_folder("every/model.safetensors"), &size[0]);
    assert_int_equal(size[0], size[1]);
    assert_memory_not_equal(raw[0], raw[1], size[0]);
    free(raw[0]);
    free(raw[1]);
}

static void test_rounded_factors_resume(void **state)
{
    (void)state;
    assert_goes_on("job.precision=bf16");
}

/* ---- signals ------------------------------------------------------------ */

/* Sends a signal some blocks after the start. Returns whether the run was still
 * going. */
static bool stop_after(int blocks, int number, const char *run, int ranks)
{
    int before = events(run, "block");
    program p;

    train_start(&p, run, ranks, enough);
    if (!event_comes(&p, run, "block", before + blocks))
        return false;
    kill(p.pid, number);
    program_wait(&p);
    if (p.code == 0)
        return false;
    assert_ended(&p, 75);
    assert_said(&p, "run the same command again to resume");
    assert_not_said(&p, "killed by");
    return true;
}

/* The last messages of a stopped run agree with its checkpoints. */
static void assert_stopped(const char *run)
{
    json_t *end = last_event(run, "end");
    int newest = 0;

    assert_string_equal(text(end, "reason"), "stopped");
    assert_true(checkpoints(run, &newest) > 0);
    assert_int_equal(number(end, "blocks"), newest);
    assert_int_equal(strlen(text(end, "digest")), 32);
    json_decref(end);
    assert_int_not_equal(access(in_folder("stopped/model.safetensors"), F_OK),
                         0);
}

static void test_runs_stopped_by_signals_resume(void **state)
{
    static const struct {
        int signal, ranks;
    } stops[] = {
        {SIGTERM, 1}, {SIGINT, 3}, {SIGTERM, 2}, {SIGINT, 1}, {SIGHUP, 4}};
    int stopped = 0;
    program p;

    (void)state;
    run_straight("straight", enough);
    remove_run("stopped");
    FOR_EACH (i, stops) {
        if (!stop_after(10, stops[i].signal, "stopped", stops[i].ranks))
            break;
        assert_stopped("stopped");
        stopped++;
    }
    assert_in_range(stopped, 2, 5);
    train(&p, "stopped", 2, enough);
    assert_ended(&p, 0);
    assert_same_model("straight", "stopped");
}

/* The first signal asks for a stop after the block, whose products continue. On
 * two threads, as each has its own stack. */
static void test_many_signals_do_not_change_the_result(void **state)
{
    long sent = 0;
    program p;

    (void)state;
    remove_run("storm");
    train_start(&p, "storm", 1,
                "model.net=linear:512 relu linear:512 relu linear; "
                "batch.sequences=1; block.frames_total=1000000; "
                "train.strategy=average; "
                "job.threads=2");
    assert_true(said_comes(&p, "computing on"));
    for (; program_runs(&p); sent++) {
        kill(p.pid, SIGUSR1);
        pause_for(2e-5);
    }
    program_wait(&p);
    assert_ended(&p, 75);
    assert_true(sent > 10);
}

/* mpirun may not run yet, may have no ranks, or ranks without a handler. */
static void test_signals_before_training_stop_it(void **state)
{
    static const double when[] = {0, 0.03, 0.1, 0.2, 0.3, 0.4};
    program p;

    (void)state;
    FOR_EACH (i, when) {
        if (short_tests() && i % 2 == 1)
            continue;
        remove_run("early");
        train_start(&p, "early", 2,
                    "train.epochs=100000; schedule.kind=constant; "
                    "train.checkpoint_every=1000");
        assert_true(said_comes(&p, "starting"));
        pause_for(when[i]);
        kill(p.pid, SIGTERM);
        assert_ended(&p, 75);
    }
}

/* A block that takes much longer than the test. */
static const char endless[] = "model.net=blstm:600*3 linear; "
                              "train.epochs=1000; block.frames_total=1200";

static void test_a_second_signal_stops_at_once(void **state)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    pid_t all[FAMILY];
    program p;

    (void)state;
    for (int ranks = 1; ranks <= 2; ranks++) {
        double since = 0;
        size_t n = 0;

        remove_run("twice");
        train_start(&p, "twice", ranks, endless);
        assert_true(event_comes(&p, "twice", "start", 1));
        n = family(&p, all);
        assert_true(ranks == 1 || n == 3); /* alone, Open MPI adds its own */
        kill(p.pid, numbers[ranks - 1]);
        pause_for(0.1);
        since = now();
        kill(p.pid, numbers[ranks - 1]);
        assert_ended(&p, 128 + numbers[ranks - 1]);
        assert_true(now() - since < 5);
        assert_gone(all, n);
        assert_int_equal(events("twice", "block"), 0);
    }
}

/* ---- finished or changed runs ------------------------------------------- */

#define CONSTANT "schedule.kind=constant"

static void test_a_finished_run_is_not_changed(void **state)
{
    program p;

    (void)state;
    run_straight("done", "");
    copy_run("done", "again");
    for (int ranks = 1; ranks <= 2; ranks++) {
        train(&p, "again", ranks, "");
        assert_ended(&p, 0);
        assert_said(&p, "is complete, nothing to train");
        assert_int_equal(events("again", "block"), events("done", "block"));
        assert_same_model("done", "again");
    }
}

static void test_more_epochs_continue_a_finished_run(void **state)
{
    program p;

    (void)state;
    run_straight("long", "train.epochs=4; schedule.kind=constant");
    run_straight("short", "train.epochs=2; schedule.kind=constant");
    train(&p, "short", 2,
          "train.epochs=4; schedule.kind=constant; "
          "train.keep=1; train.checkpoint_every=1");
    assert_ended(&p, 0);
    assert_same_model("long", "short");
    assert_not_said(&p, "train.epochs was");
    run_straight("cosine", "train.epochs=2; schedule.kind=cosine");
    train(&p, "cosine", 1, "train.epochs=3; schedule.kind=cosine");
    assert_ended(&p, 0);
    assert_said(&p, "train.epochs was 2, now 3: the learning rate jumps");
    train(&p, "cosine", 1,
          "train.epochs=3; schedule.kind=cosine; tune.epochs=9");
    assert_ended(&p, 0);
    assert_not_said(&p, "learning rate jumps");
}

/* The same command would stop at once, for ever. */
static void test_a_run_until_an_epoch_names_the_option(void **state)
{
    static const char *const until[] = {"2", "2", "1"};
    program p;

    (void)state;
    remove_run("part");
    FOR_EACH (i, until) {
        char settings[120];

        snprintf(settings, sizeof settings, "train.epochs=3; --until %s",
                 until[i]);
        train(&p, "part", 1, settings);
        assert_ended(&p, 0);
        assert_said(&p, i < 2 ? "stopped after epoch 2 (--until 2); the same "
                                "command without --until goes on"
                              : "has 2 epochs already, more than --until 1; "
                                "the same command without --until goes on");
        assert_not_said(&p, "run the same command again");
    }
    train(&p, "part", 1, "train.epochs=3");
    assert_ended(&p, 0);
    assert_int_equal(events("part", "block"), 3 * 4);
}

/* A line of a run's config.ini that begins with `key` becomes `line`. */
static void edit(const char *run, const char *key, const char *line)
{
    char words[200], path[64];

    snprintf(words, sizeof words, "s/^%s.*/%s/", key, line);
    snprintf(path, sizeof path, "%s/config.ini", run);
    run_tool((char *[]){"sed", "-i", words, (char *)in_folder(path), NULL});
}

static void test_an_edited_run_is_told_how_to_go_on(void **state)
{
    program p;

    (void)state;
    remove_run("part");
    remove_run("next");
    train(&p, "part", 1, "--until 1");
    assert_ended(&p, 0);
    edit("part", "rate = 0.02", "rate = 0.01");
    for (int ranks = 1; ranks <= 2; ranks++) {
        RUN_PROGRAM(&p, "train", "part", "-n", ranks == 1 ? "1" : "2");
        assert_ended(&p, 78);
        assert_said(&p, "train.rate: was 0.02, now 0.01");
        assert_said(&p, "config.ini has other settings than its checkpoints: "
                        "restore them");
        assert_said(&p, "--from part --out NEW");
    }
    RUN_PROGRAM(&p, "train", "part", "--from", "part", "--out", "next",
                "--until", "2");
    assert_ended(&p, 0);
    edit("part", "rate = 0.01", "rate = 0.02");
    RUN_PROGRAM(&p, "train", "part", "--until", "2");
    assert_ended(&p, 0);
    train(&p, "part", 1, "train.rate=0.01; train.from=next");
    assert_ended(&p, 78);
    assert_said(&p, "train.from: was (none), now next");
    assert_said(&p, "go on with the new settings: --from part --out NEW");
}

static void test_changed_settings_are_rejected_by_name(void **state)
{
    size_t size[2];
    char *config[2];
    program p;

    (void)state;
    run_straight("done", "");
    config[0] = slurp(in_folder("done/config.ini"), &size[0]);
    for (int ranks = 1; ranks <= 2; ranks++) {
        train(&p, "done", ranks,
              "train.rate=0.5; job.workers=5; sgd.clip=7; train.epochs=9");
        assert_ended(&p, 78);
        assert_said(&p, "train.rate: was 0.02, now 0.5\n");
        assert_said(&p, "sgd.momentum: was 0.9, now 0, the default");
        assert_said(&p, "job.workers: was 4, now 5");
        assert_said(&p, "sgd.clip: was 5, now 7");
        assert_not_said(&p, "train.epochs:");
        assert_not_said(&p, "model.net:");
        assert_int_equal(times_said(&p, "started with other settings"), 1);
    }
    config[1] = slurp(in_folder("done/config.ini"), &size[1]);
    assert_string_equal(config[0], config[1]);
    free(config[0]);
    free(config[1]);
    assert_int_equal(events("done", "start"), 1);
}

static void test_equal_settings_may_be_written_differently(void **state)
{
    program p;

    (void)state;
    run_straight("done", "");
    train(&p, "done", 1,
          "train.rate=2e-2; sgd.clip=5.0; bmuf.nesterov=yes; "
          "batch.sequences=2");
    assert_ended(&p, 0);
}

static void test_changed_data_are_rejected(void **state)
{
    program p;

    (void)state;
    digits_pack("data", 60, NULL);
    run_straight("done", "data.train=data");
    remove_run("data");
    digits_pack("data", 200, NULL); /* other units */
    for (int ranks = 1; ranks <= 2; ranks++) {
        train(&p, "done", ranks, "data.train=data");
        assert_ended(&p, 78);
        assert_said(&p, "have changed since");
        assert_int_equal(times_said(&p, "bmuf: "), 1);
    }
    train(&p, "done", 1, "data.train=train");
    assert_ended(&p, 0); /* as data had them */
    for (int ranks = 1; ranks <= 2; ranks++) {
        train(&p, "done", ranks, "data.train=data");
        assert_ended(&p, 78);
        assert_said(&p, "data.train = data has other data than train, with "
                        "which the run was begun; give another --out");
        assert_not_said(&p, "have changed since");
    }
}

/* Another disk, or another spelling of a path. */
static void test_data_may_move(void **state)
{
    char old[200];
    program p;

    (void)state;
    remove_run("data");
    digits_pack("data", 60, NULL);
    run_straight("long", "data.train=data; train.epochs=4; " CONSTANT);
    run_straight("short", "data.train=data; train.epochs=2; " CONSTANT);
    snprintf(old, sizeof old, "%s", in_folder("data"));
    remove_run("elsewhere");
    assert_int_equal(rename(old, in_folder("elsewhere")), 0);
    train(&p, "short", 2, "data.train=./elsewhere/; train.epochs=4; " CONSTANT);
    assert_ended(&p, 0);
    assert_same_model("long", "short");
}

static void test_a_run_is_resumed_by_its_name(void **state)
{
    program p;

    (void)state;
    run_straight("long", "train.epochs=4; " CONSTANT);
    run_straight("short", "train.epochs=2; " CONSTANT);
    copy_run("short", "other");
    RUN_PROGRAM(&p, "train", "short", "--set", "train.epochs=4");
    assert_ended(&p, 0);
    assert_same_model("long", "short");
    RUN_PROGRAM(&p, "train", "other/config.ini", "--set", "train.epochs=4");
    assert_ended(&p, 0);
    assert_same_model("long", "other");
    copy_run("short", "other"); /* also without its journal */
    remove_run("other/journal.jsonl");
    remove_run("run");
    RUN_PROGRAM(&p, "train", "other", "--set", "train.epochs=4");
    assert_ended(&p, 0);
    assert_same_model("long", "other");
    assert_int_not_equal(access(in_folder("run"), F_OK), 0);
    remove_run("other/journal.jsonl"); /* the folder of a recipe */
    remove_run("other/checkpoints");
    RUN_PROGRAM(&p, "train", "other", "--set", "train.epochs=1");
    assert_ended(&p, 0);
    assert_int_equal(access(in_folder("run/journal.jsonl"), F_OK), 0);
    remove_run("run");
}

/* What was refused, or has diverged at once, keeps no folder from a command that
 * is right. */
static void test_a_run_without_blocks_takes_other_settings(void **state)
{
    program p;

    (void)state;
    remove_run("first");
    train(&p, "first", 1, "augment.reverb=made");
    assert_ended(&p, 78);
    assert_said(&p, "shard.samples=yes");
    train(&p, "first", 1, "sgd.clip=0; train.rate=1000");
    assert_ended(&p, 76);
    assert_said(&p, "no result of block 1 of epoch 1");
    train(&p, "first", 1, "");
    assert_ended(&p, 0);
    train(&p, "first", 1, "train.rate=0.5");
    assert_ended(&p, 78);
}

static void test_fewer_epochs_than_are_done_are_refused(void **state)
{
    size_t size[2];
    char *config[2];
    json_t *info = NULL;
    program p;
    outcome o;

    (void)state;
    run_straight("done", "train.epochs=2");
    config[0] = slurp(in_folder("done/config.ini"), &size[0]);
    train(&p, "done", 2, "train.epochs=1");
    assert_ended(&p, 78);
    assert_said(&p, "train.epochs = 1, but 2 epochs are done");
    o = BMUF("info", "done", "--json");
    info = parse_json(o.out);
    assert_string_equal(text(info, "state"), "done");
    json_decref(info);
    assert_int_equal(times_said(&p, "bmuf: "), 1);
    config[1] = slurp(in_folder("done/config.ini"), &size[1]);
    assert_string_equal(config[0], config[1]);
    free(config[0]);
    free(config[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bmuf_resumes_from_every_block),
        cmocka_unit_test(test_kept_local_state_resumes_from_every_block),
        cmocka_unit_test(test_growing_runs_resume_from_every_block),
        cmocka_unit_test(test_kept_moments_resume_from_every_block),
        cmocka_unit_test(test_kept_squares_of_rmsprop_resume_from_every_block),
        cmocka_unit_test(test_kept_momentum_of_muon_resumes_from_every_block),
        cmocka_unit_test(test_extrapolated_moments_resume_from_every_block),
        cmocka_unit_test(test_mixed_block_options_resume_from_every_block),
        cmocka_unit_test(test_synchronous_sgd_resumes_from_every_block),
        cmocka_unit_test(test_averaging_resumes_from_every_block),
        cmocka_unit_test(test_batch_statistics_resume_from_every_block),
        cmocka_unit_test(test_a_root_coordinator_resumes),
        cmocka_unit_test(test_an_average_of_models_resumes),
        cmocka_unit_test(test_rounded_factors_resume),
        cmocka_unit_test(test_runs_stopped_by_signals_resume),
        cmocka_unit_test(test_many_signals_do_not_change_the_result),
        cmocka_unit_test(test_signals_before_training_stop_it),
        cmocka_unit_test(test_a_second_signal_stops_at_once),
        cmocka_unit_test(test_a_finished_run_is_not_changed),
        cmocka_unit_test(test_more_epochs_continue_a_finished_run),
        cmocka_unit_test(test_a_run_until_an_epoch_names_the_option),
        cmocka_unit_test(test_an_edited_run_is_told_how_to_go_on),
        cmocka_unit_test(test_changed_settings_are_rejected_by_name),
        cmocka_unit_test(test_equal_settings_may_be_written_differently),
        cmocka_unit_test(test_changed_data_are_rejected),
        cmocka_unit_test(test_data_may_move),
        cmocka_unit_test(test_a_run_is_resumed_by_its_name),
        cmocka_unit_test(test_a_run_without_blocks_takes_other_settings),
        cmocka_unit_test(test_fewer_epochs_than_are_done_are_refused),
    };

    return cmocka_run_group_tests_name("stop", tests, digits_set_up,
                                       digits_tear_down);
}
