/*
 * The size of a checkpoint according to bmuf explain, compared with that of a
 * run, for all strategies and their states.
 */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Settings, and the number of model-sized vectors saved with four workers. */
static const struct {
    const char *settings;
    int vectors;
} runs[] = {
    {"train.strategy=diloco; diloco.outer_momentum=0.5", 2 + 4 * 2},
    {"train.strategy=asgd; asgd.update=local; sgd.local_state=keep; "
     "sgd.momentum=0.5; train.ema=0.5",
     1 + 4 + 1},
    {"train.strategy=easgd; sgd.momentum=0.5", 1 + 4 + 4},
    {"train.strategy=onebit", 1 + 1 + 4 + 1},
    {"block.fragments=2; sgd.local_state=keep; sgd.momentum=0.5", 2 + 4 + 4},
    {"compress.code=int8; sgd.local_state=average", 2 + 1 + 4 + 1},
};

/* The MB after these words. */
static double explained(const char *run, const char *words)
{
    char name[64];
    size_t size = 0;
    char *all = NULL;
    const char *at = NULL;
    double mb = 0;
    program p;

    snprintf(name, sizeof name, "%s/config.ini", run);
    RUN_PROGRAM(&p, "explain", name);
    assert_ended(&p, 0);
    all = slurp(p.out, &size);
    at = strstr(all, words);
    assert_non_null(at);
    mb = strtod(at + strlen(words), NULL);
    free(all);
    return mb;
}

static void test_a_checkpoint_is_as_large_as_explained(void **state)
{
    char settings[300];

    (void)state;
    FOR_EACH (i, runs) {
        struct stat file;
        json_t *start = NULL;
        double expected = 0;
        int newest = 0;
        program p;

        snprintf(settings, sizeof settings,
                 "model.net=linear:5000 linear; train.epochs=1; "
                 "train.rate=0.0001; %s",
                 runs[i].settings);
        remove_run("sized");
        train(&p, "sized", 1, settings);
        assert_ended(&p, 0);
        start = last_event("sized", "start");
        expected = 4e-6 * number(start, "weights") * runs[i].vectors;
        json_decref(start);
        assert_true(checkpoints("sized", &newest) > 0);
        assert_int_equal(stat(checkpoint_of("sized", newest), &file), 0);
        assert_true(fabs(1e-6 * (double)file.st_size / expected - 1) < 0.03);
        assert_true(
            fabs(explained("sized", "checkpoint        about ") / expected -
                 1) < 0.01);
    }
}

/* The copies of one rank that has all workers, from which the first checkpoint
 * is written while training goes on. */
static void test_copies_are_as_large_as_explained(void **state)
{
    json_t *all = NULL, *e = NULL;
    double copied = 0;
    size_t i = 0;
    program p;

    (void)state;
    remove_run("sized");
    train(&p, "sized", 1,
          "model.net=linear:5000 linear; train.epochs=1; "
          "train.checkpoint_every=1; sgd.local_state=keep");
    assert_ended(&p, 0);
    all = journal("sized");
    json_array_foreach(all, i, e)
    {
        if (strcmp(text(e, "event"), "checkpoint") == 0)
            copied = fmax(copied, number(e, "copied_bytes"));
    }
    json_decref(all);
    assert_true(copied > 0);
    assert_true(
        fabs(explained("sized", "of which a rank copies ") / (1e-6 * copied) -
             1) < 0.01);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_checkpoint_is_as_large_as_explained),
        cmocka_unit_test(test_copies_are_as_large_as_explained),
    };

    return cmocka_run_group_tests_name("sizes", tests, digits_set_up,
                                       digits_tear_down);
}
