/*
 * Strategies named after other programs, selected by one setting: the log has
 * their eta and zeta, and settings of their publications are the defaults.
 */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* With four workers and defaults. */
static const struct recipe {
    const char *name;
    double eta, zeta;
    bool nesterov;
    const char *update, *local_state; /* [sgd] */
    const char *said;                 /* on stderr */
} recipes[] = {
    {"diloco", 0.9, 0.7, true, "adamw", "keep",
     "eta = 0.9, zeta = 0.7, Nesterov block momentum; block gain 0.7, "
     "steady"},
    {"cntk", 0.75, 1.75, false, "momentum", "reset",
     "classical, also where it says Nesterov, as in its published results"},
    {"fairseq", 0.875, 1, false, "momentum", "keep",
     "eta = 0.875, zeta = 1, classical block momentum"},
};

/* The value of a setting in a run's config.ini. */
static void assert_kept(const char *run, const char *section, const char *key,
                        const char *value)
{
    char name[64], head[32], line[64];
    size_t size = 0;
    char *all = NULL;
    const char *at = NULL;

    snprintf(name, sizeof name, "%s/config.ini", run);
    snprintf(head, sizeof head, "[%s]\n", section);
    snprintf(line, sizeof line, "\n%s = %s\n", key, value);
    all = slurp(in_folder(name), &size);
    at = strstr(all, head);
    assert_non_null(at);
    at = strstr(at, line);
    assert_non_null(at);
    free(all);
}

static void run(program *p, const char *name, const char *settings)
{
    char all[300];

    snprintf(all, sizeof all,
             "train.strategy=%s; train.epochs=3; train.rate=0.002; %s", name,
             settings);
    remove_run(name);
    train(p, name, 1, all);
    assert_ended(p, 0);
}

static void test_the_strategy_name_sets_the_rest(void **state)
{
    (void)state;
    FOR_EACH (i, recipes) {
        const struct recipe *r = &recipes[i];
        json_t *start = NULL;
        program p;

        run(&p, r->name, "schedule.kind=constant");
        assert_said(&p, r->said);
        assert_not_said(&p, "diloco expects");
        assert_kept(r->name, "sgd", "update", r->update);
        assert_kept(r->name, "sgd", "local_state", r->local_state);
        start = last_event(r->name, "start");
        assert_true(near(number(start, "block_momentum"), r->eta, 1e-8));
        assert_true(near(number(start, "block_rate"), r->zeta, 1e-8));
        assert_true(number(start, "nesterov") == r->nesterov);
        json_decref(start);
    }
}

/* Given settings override those of the publication, with a warning if the
 * method then differs. */
static void test_given_settings_are_kept(void **state)
{
    program p;

    (void)state;
    run(&p, "diloco", "sgd.update=momentum; sgd.momentum=0.5");
    assert_kept("diloco", "sgd", "update", "momentum");
    assert_said(&p,
                "train.strategy = diloco expects AdamW as the local update");
    run(&p, "fairseq", "sgd.local_state=average");
    assert_kept("fairseq", "sgd", "local_state", "average");
}

static void test_rmsprop_has_the_defaults_of_pytorch(void **state)
{
    program p;

    (void)state;
    run(&p, "average", "sgd.update=rmsprop");
    assert_kept("average", "sgd", "momentum", "0");
    assert_kept("average", "sgd", "beta2", "0.99");
    run(&p, "average", "sgd.update=rmsprop; sgd.momentum=0.5; sgd.beta2=0.8");
    assert_kept("average", "sgd", "momentum", "0.5");
    assert_kept("average", "sgd", "beta2", "0.8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_strategy_name_sets_the_rest),
        cmocka_unit_test(test_given_settings_are_kept),
        cmocka_unit_test(test_rmsprop_has_the_defaults_of_pytorch),
    };

    return cmocka_run_group_tests_name("recipes", tests, digits_set_up,
                                       digits_tear_down);
}
