/*
 * Two ranks that see other files under the same names, as those of two hosts may:
 * rank 1 works in the folder "there". What a run must read alike is compared, and
 * rank 0 decides which file it is.
 */
#include "core/isa.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Replaces a name in "there" by a link. */
static void link_there(const char *name, const char *to)
{
    char path[64], target[64];

    snprintf(path, sizeof path, "there/%s", name);
    snprintf(target, sizeof target, "../%s", to);
    (void)unlink(in_folder(path));
    assert_int_equal(symlink(target, in_folder(path)), 0);
}

/* Runs "base" and "other", which have other weights, and sets of other texts. */
static int make_runs(void **state)
{
    program p;

    if (digits_set_up(state) != 0)
        return 1;
    digits_pack("changed", 100, "one");
    train(&p, "base", 1,
          "train.epochs=2; train.checkpoint_every=1; train.keep=100");
    assert_ended(&p, 0);
    train(&p, "other", 1, "train.epochs=1; job.seed=7");
    assert_ended(&p, 0);
    run_tool((char *[]){"mkdir", (char *)in_folder("there"), NULL});
    link_there("base.ini", "base.ini");
    return 0;
}

/* Both ranks have the same sets. */
static void make_sets(void)
{
    link_there("train", "train");
    link_there("dev", "dev");
}

/* Trains one epoch with a setting on two ranks. */
static outcome train_apart(const char *run, const char *setting)
{
    static const char script[] =
        "test $OMPI_COMM_WORLD_RANK = 0 || cd there\n"
        "exec \"$0\" train base.ini --out \"$1\" --set train.epochs=1 "
        "--set \"$2\"";
    const char *words[] = {"-c",           script,  bmuf_path(),
                           in_folder(run), setting, NULL};

    return command_run(&(command){.program = "sh", .words = words, .ranks = 2});
}

/* The same with one rank. */
static void train_alone(const char *run, const char *setting)
{
    char settings[100];
    program p;

    snprintf(settings, sizeof settings, "train.epochs=1; %s", setting);
    train(&p, run, 1, settings);
    assert_ended(&p, 0);
}

static void assert_refused(outcome o, const char *key)
{
    char words[64];

    assert_code(o, 78);
    assert_int_equal(count_of(o.err, "bmuf: "), 1);
    snprintf(words, sizeof words, "%s: rank 1 (host ", key);
    assert_says(o.err, words);
    assert_says(o.err, "but rank 0 (host ");
    assert_says(o.err, "give all ranks the same files");
}

static void test_ranks_with_other_data_are_refused(void **state)
{
    static const char *const sets[] = {"data.train", "data.dev", "data.test"};

    (void)state;
    FOR_EACH (i, sets) {
        make_sets();
        link_there("test", "dev");
        link_there(sets[i] + 5, "changed");
        if (i == 2)
            copy_run("dev", "test");
        assert_refused(
            train_apart("apart", i == 2 ? "data.test=test" : "train.rate=0.01"),
            sets[i]);
        assert_true(access(in_folder("apart"), F_OK) != 0);
    }
}

/* Also where the run has begun. */
static void test_ranks_resume_on_the_same_data(void **state)
{
    (void)state;
    make_sets();
    train_alone("begun", "job.seed=3");
    link_there("train", "changed");
    assert_refused(train_apart("begun", "job.seed=3"), "data.train");
}

/* The run goes on, or its newest file is not in the list of rank 0 yet. */
static void test_rank_0_chooses_the_checkpoint(void **state)
{
    int newest = 0;

    (void)state;
    make_sets();
    copy_run("base", "early");
    copy_run("base", "there/early");
    (void)checkpoints("early", &newest);
    assert_int_equal(unlink(checkpoint_of("early", newest)), 0);
    train_alone("one", "train.from=early");
    assert_code(train_apart("two", "train.from=early"), 0);
    assert_same_model("one", "two");
}

static void test_rank_0_chooses_the_model(void **state)
{
    (void)state;
    make_sets();
    copy_run("base", "started");
    copy_run("base", "there/started");
    assert_int_equal(unlink(in_folder("started/model-best.safetensors")), 0);
    run_tool((char *[]){"cp", (char *)in_folder("other/model.safetensors"),
                        (char *)in_folder("there/started/"
                                          "model-best.safetensors"),
                        NULL});
    train_alone("three", "train.init=started");
    assert_code(train_apart("four", "train.init=started"), 0);
    assert_same_model("three", "four");
}

static void test_ranks_with_other_models_are_refused(void **state)
{
    outcome o;

    (void)state;
    make_sets();
    copy_run("base", "model");
    copy_run("other", "there/model");
    assert_refused(train_apart("apart", "train.init=model"), "train.init");
    remove_run("there/model");
    o = train_apart("apart", "train.from=model");
    assert_code(o, 66);
    assert_int_equal(count_of(o.err, "bmuf: "), 1);
    assert_says(o.err, "bmuf: rank 1: model/checkpoints/block-");
    assert_true(access(in_folder("apart"), F_OK) != 0);
}

/* Rank 1 computes as an older processor does, and makes other products in its
 * updates. There is no checkpoint with a model that only one rank has. */
static void test_ranks_whose_models_differ_end_together(void **state)
{
    static const char script[] =
        "test $OMPI_COMM_WORLD_RANK = 0 || export BMUF_ISA=baseline "
        "DNNL_MAX_CPU_ISA=SSE41 OPENBLAS_CORETYPE=Nehalem\n"
        "exec \"$0\" train base.ini --out mixed --set train.strategy=ssgd "
        "--set sgd.update=muon "
        "--set train.checkpoint_every=1";
    const char *words[] = {"-c", script, bmuf_path(), NULL};
    const command c = {.program = "sh", .words = words, .ranks = 2};
    int newest = 0;
    outcome o;

    (void)state;
    if (strcmp(bm_isa_best(), "baseline") == 0)
        skip();
    o = command_run(&c);
    assert_code(o, 69);
    assert_int_equal(count_of(o.err, "bmuf: "), 1);
    assert_says(o.err, "after block 1 of epoch 1 the model of rank 1 on host ");
    assert_says(o.err, "BMUF_ISA");
    assert_int_equal(checkpoints("mixed", &newest), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_with_other_data_are_refused),
        cmocka_unit_test(test_ranks_resume_on_the_same_data),
        cmocka_unit_test(test_rank_0_chooses_the_checkpoint),
        cmocka_unit_test(test_rank_0_chooses_the_model),
        cmocka_unit_test(test_ranks_with_other_models_are_refused),
        cmocka_unit_test(test_ranks_whose_models_differ_end_together),
    };

    return cmocka_run_group_tests(tests, make_runs, digits_tear_down);
}
