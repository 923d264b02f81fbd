/*
 * Learning rates of whole runs, recomputed from the errors in the journal by
 * the formulas of docs/sgd.md.
 */
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct rule {
    const char *kind;
    double rate, decay, threshold, least, warmup;
    int patience, stop_after;
} rule;

/* Numbers of the journal have nine digits. */
static const double nine_digits = 1e-8;

/* No ratio of two errors that 20 recordings allow is the threshold itself. */
static const rule newbob = {.kind = "newbob",
                            .rate = 0.3,
                            .decay = 0.6,
                            .threshold = 0.007,
                            .least = 0.1,
                            .warmup = 0.75,
                            .patience = 1};

static void write_settings(const rule *r, int epochs, char out[512])
{
    snprintf(out, 512,
             "schedule.kind=%s; train.rate=%g; schedule.decay=%g; "
             "schedule.threshold=%g; schedule.least=%g; schedule.warmup=%g; "
             "schedule.patience=%d; schedule.stop_after=%d; train.epochs=%d",
             r->kind, r->rate, r->decay, r->threshold, r->least, r->warmup,
             r->patience, r->stop_after, epochs);
}

/* The state of the schedule after an evaluation. */
typedef struct course {
    double factor, old, best;
    int bad, decays, improvements, n;
} course;

static void evaluated(course *c, const rule *r, double error)
{
    bool slow =
        c->n++ > 0 && !((error - c->old) / fabs(error) <= -r->threshold);

    c->old = error;
    c->best = fmin(c->best, error);
    if (c->best > 0.8) /* CTC's plateau of blanks */
        return;
    if (!slow) {
        c->improvements++;
        c->bad = 0;
    } else if (++c->bad > r->patience) {
        c->factor *= r->decay;
        c->decays++;
        c->bad = 0;
    }
}

static double rate_of(const course *c, const rule *r, double epochs)
{
    double rate = r->rate;

    if (strcmp(r->kind, "newbob") == 0)
        rate *= c->factor;
    if (strcmp(r->kind, "exponential") == 0)
        rate *= pow(r->decay, epochs);
    if (strcmp(r->kind, "cosine") == 0)
        rate *= 0.5 * (1 + cos(acos(-1) * epochs / 3));
    if (strcmp(r->kind, "noam") == 0 && epochs > r->warmup)
        rate *= sqrt(r->warmup / epochs);
    if (epochs < r->warmup)
        rate *= 0.1 + 0.9 * epochs / r->warmup;
    return rate;
}

/* Checks the rate of every block; returns the final state. */
static course follow(const char *run, const rule *r)
{
    json_t *all = journal(run), *row = NULL;
    double blocks = number(json_array_get(all, 0), "blocks_per_epoch");
    course c = {.factor = 1, .best = INFINITY};
    size_t i = 0;

    json_array_foreach(all, i, row)
    {
        const char *kind = text(row, "event");

        if (strcmp(kind, "block") == 0) {
            double epochs =
                number(row, "epoch") + number(row, "block") / blocks;
            double expected = rate_of(&c, r, epochs);

            assert_true(c.factor >=
                        r->least); /* else training would have ended */
            if (!near(number(row, "rate") / expected, 1, nine_digits))
                fail_msg("%s: after %g epochs %g, not %g", run, epochs,
                         number(row, "rate"), expected);
        }
        if (strcmp(kind, "eval") == 0)
            evaluated(&c, r, number(row, "ler"));
    }
    json_decref(all);
    return c;
}

static void assert_reason(const char *run, const char *reason, int epochs)
{
    json_t *end = last_event(run, "end");

    assert_string_equal(text(end, "reason"), reason);
    assert_int_equal(number(end, "epochs"), epochs);
    json_decref(end);
}

/* More epochs do not continue a run that its schedule ended. */
static void assert_over(const char *run, const rule *r, const char *why)
{
    char settings[512], said[100];
    int blocks = events(run, "block");
    program p;

    write_settings(r, 500, settings);
    train(&p, run, 1, settings);
    assert_ended(&p, 0);
    snprintf(said, sizeof said, "the schedule ended it (%s)", why);
    assert_said(&p, said);
    assert_not_said(&p, "increase train.epochs");
    assert_int_equal(events(run, "block"), blocks);
}

/* The state is kept when a finished run is continued on other ranks. */
static void test_newbob_follows_the_errors_until_it_ends(void **state)
{
    static const int ranks[] = {1, 3, 2}, epochs[] = {4, 9, 400};
    char settings[512], words[100];
    course c;
    program p;

    (void)state;
    FOR_EACH (i, ranks) {
        write_settings(&newbob, epochs[i], settings);
        train(&p, "newbob", ranks[i], settings);
        assert_ended(&p, 0);
        if (epochs[i] < 400)
            assert_reason("newbob", "done", epochs[i]);
    }
    c = follow("newbob", &newbob);
    assert_true(c.factor < newbob.least);
    assert_true(c.improvements > 1 && c.decays == 5); /* 0.6^5 < 0.1 */
    assert_over("newbob", &newbob, "schedule.least = 0.1");
    assert_reason("newbob", "converged", events("newbob", "eval"));
    assert_printed(&p, "(ended by the schedule)");
    snprintf(words, sizeof words, "dev LER   %.2f %%, best %.2f %%",
             100 * c.old, 100 * c.best);
    assert_printed(&p, words);
}

static void test_other_schedules_ignore_the_error(void **state)
{
    static const rule rules[] = {
        {"cosine", 0.02, 0.5, 0.01, 1e-6, 1.5, 0, 0},
        {"exponential", 0.03, 0.7, 0.01, 1e-6, 1.25, 0, 0},
        {"exponential", 0.02, 0.5, 0.01, 1e-6, 0, 0, 0},
        {"constant", 0.02, 0.5, 0.01, 1e-6, 2.5, 0, 0},
    };
    char settings[512];
    program p;

    (void)state;
    FOR_EACH (i, rules) {
        remove_run("other");
        write_settings(&rules[i], 3, settings);
        train(&p, "other", 2, settings);
        assert_ended(&p, 0);
        follow("other", &rules[i]);
        assert_reason("other", "done", 3);
    }
}

/* Evaluations until the third in a row that is not better than the best. */
static int evaluations_until_stop(const char *run)
{
    json_t *all = journal(run), *row = NULL;
    double best = INFINITY;
    int waited = 0, n = 0;
    size_t i = 0;

    json_array_foreach(all, i, row)
    {
        if (strcmp(text(row, "event"), "eval") != 0 || waited == 3)
            continue;
        waited = number(row, "ler") < best || best > 0.8 ? 0 : waited + 1;
        best = fmin(best, number(row, "ler"));
        n++;
    }
    json_decref(all);
    assert_int_equal(waited, 3);
    return n;
}

/* A run that is resumed in between has waited as long. */
static void test_early_stopping_counts_across_a_restart(void **state)
{
    static const rule noam = {
        .kind = "noam", .rate = 0.3, .warmup = 0.75, .stop_after = 3};
    char settings[512];
    int epochs = 0;
    program p;

    (void)state;
    write_settings(&noam, 400, settings);
    train(&p, "early", 1, settings);
    assert_ended(&p, 0);
    assert_printed(&p, "(ended by the schedule)");
    follow("early", &noam);
    epochs = evaluations_until_stop("early");
    assert_reason("early", "converged", epochs);
    assert_over("early", &noam, "schedule.stop_after = 3");
    for (int n = epochs - 1, k = 0; k < 2; n = 400, k++) {
        write_settings(&noam, n, settings);
        train(&p, "again", 1, settings);
        assert_ended(&p, 0);
    }
    assert_reason("again", "converged", epochs);
    assert_same_model("early", "again");
}

/* ---- the evaluated model ------------------------------------------------ */

/* The output of bmuf eval; json_decref() it. */
static json_t *opinion(const char *model)
{
    json_t *out = NULL;
    size_t size = 0;
    char *words = NULL;
    program p;

    RUN_PROGRAM(&p, "eval", model, "dev", "--json", "--set",
                "batch.sequences=2");
    assert_ended(&p, 0);
    words = slurp(p.out, &size);
    out = json_loads(words, 0, NULL);
    assert_non_null(out);
    free(words);
    return out;
}

/* The global model is evaluated and written; workers start from another one. A
 * checkpoint holds the global model. */
static void test_the_error_is_that_of_the_global_model(void **state)
{
    static const char *const keys[] = {"loss", "ler", "wrong", "sequences",
                                       "skipped"};
    const char *const models[] = {"whose/model.safetensors",
                                  checkpoint_of("whose", 8)};
    json_t *eval = NULL;
    program p;

    (void)state;
    train(&p, "whose", 2,
          "bmuf.nesterov=yes; bmuf.momentum=0.75; schedule.kind=constant");
    assert_ended(&p, 0);
    eval = last_event("whose", "eval");
    assert_string_equal(text(eval, "data"), "dev");
    assert_int_equal(number(eval, "block"), 8);
    FOR_EACH (m, models) {
        json_t *result = opinion(models[m]);

        FOR_EACH (i, keys)
            assert_true(near(number(eval, keys[i]), number(result, keys[i]),
                             nine_digits));
        json_decref(result);
    }
    json_decref(eval);
}

/* ---- eta, zeta and blocks ------------------------------------------------- */

/* The k-th event of a kind; borrowed. */
static const json_t *event_at(const json_t *all, const char *kind, size_t k)
{
    for (size_t i = 0; i < json_array_size(all); i++)
        if (strcmp(text(json_array_get(all, i), "event"), kind) == 0 &&
            k-- == 0)
            return json_array_get(all, i);
    fail_msg("there are fewer events %s", kind);
    return NULL;
}

#define CHANGING                                                               \
    "bmuf.momentum=0.2@0 0.6@0.5 auto@2; bmuf.rate=1@0 0.5@1; "                \
    "block.frames_total=600@0 1200@1 600@2; "

static void test_the_filter_and_blocks_change_as_set(void **state)
{
    json_t *all = NULL;
    char *printed = NULL;
    size_t n[3] = {0};
    program p;

    (void)state;
    train(&p, "changing", 1, CHANGING "train.epochs=3");
    assert_ended(&p, 0);
    all = journal("changing");
    for (size_t k = 0; k < (size_t)events("changing", "block"); k++)
        n[(size_t)number(event_at(all, "block", k), "epoch")]++;
    assert_true(n[0] > 3 && n[0] == n[2]);
    assert_true(fabs((double)n[1] - (double)n[0] / 2) <= 1);
    for (size_t k = 0; k < n[0] + n[1] + n[2]; k++) {
        const json_t *e = event_at(all, "block", k);
        double epochs =
            number(e, "epoch") +
            number(e, "block") / (double)n[(size_t)number(e, "epoch")];
        double eta = epochs < 0.5 ? 0.2 : epochs < 2 ? 0.6 : 0.75;

        assert_true(near(number(e, "block_momentum"), eta, nine_digits));
        assert_true(
            near(number(e, "block_rate"), epochs < 1 ? 1 : 0.5, nine_digits));
    }
    json_decref(all);
    RUN_PROGRAM(&p, "explain", "base.ini", "--set", "train.epochs=3", "--set",
                "block.frames_total=600@0 1200@1 600@2");
    assert_ended(&p, 0);
    assert_printed(&p, "changes           block.frames_total = 600@0 1200@1 ");
    printed = slurp(p.out, &(size_t){0});
    assert_true(number_after(printed, "per epoch, ") ==
                (double)(n[0] + n[1] + n[2]));
    free(printed);
}

/* The last job of the run began after the epochs of the blocks that were done;
 * first, second: blocks of these epochs. */
static void assert_began(const char *run, double first, double second)
{
    json_t *start = last_event(run, "start");
    double blocks = number(start, "blocks");
    double epochs =
        blocks < first ? blocks / first : 1 + (blocks - first) / second;

    assert_true(near(number(start, "epochs_done"), epochs, nine_digits));
    json_decref(start);
}

/* Stopped where sizes change, and within an epoch of other blocks. */
static void test_a_changing_run_is_resumed_with_the_same_bits(void **state)
{
    int first = 0, second = 0; /* blocks of these epochs */
    program p;

    (void)state;
    train(&p, "changed", 1, CHANGING "train.epochs=1");
    assert_ended(&p, 0);
    first = events("changed", "block");
    train(&p, "changed", 1, CHANGING "train.epochs=2");
    assert_ended(&p, 0);
    second = events("changed", "block") - first;
    assert_true(second < first);
    assert_began("changed", first, second);
    remove_run("before");
    copy_run("changed", "before");
    assert_int_equal(unlink(checkpoint_of("before", events("before", "block"))),
                     0);
    train(&p, "changed", 1, CHANGING "train.epochs=3");
    assert_ended(&p, 0);
    assert_began("changed", first, second);
    assert_same_model("changing", "changed");
    train(&p, "before", 1, CHANGING "train.epochs=3");
    assert_ended(&p, 0);
    assert_began("before", first, second);
    assert_same_model("changing", "before");
}

/* With an exact code it has the same bits; with any code it has them after a
 * stop where eta changes, too. */
static void test_a_changing_run_may_send_codes(void **state)
{
    program p;

    (void)state;
    train(&p, "exact", 2, CHANGING "train.epochs=3; compress.code=fp32");
    assert_ended(&p, 0);
    assert_same_model("changing", "exact");
    train(&p, "rounded", 1, CHANGING "train.epochs=3; compress.code=int8");
    assert_ended(&p, 0);
    for (int epochs = 2; epochs <= 3; epochs++) {
        char settings[200];

        snprintf(settings, sizeof settings,
                 CHANGING "train.epochs=%d; compress.code=int8", epochs);
        train(&p, "stopped", epochs - 1, settings);
        assert_ended(&p, 0);
    }
    assert_same_model("rounded", "stopped");
}

static void test_a_time_constant_gives_eta(void **state)
{
    json_t *block = NULL, *start = NULL;
    program p;

    (void)state;
    train(&p, "constant", 1, "bmuf.time_constant=1500; train.epochs=1");
    assert_ended(&p, 0);
    block = last_event("constant", "block");
    start = last_event("constant", "start");
    assert_true(near(number(block, "block_momentum"),
                     exp(-number(start, "frames") /
                         number(start, "blocks_per_epoch") / 1500),
                     nine_digits));
    assert_true(number(start, "block_momentum") ==
                number(block, "block_momentum"));
    json_decref(block);
    json_decref(start);
    RUN_PROGRAM(&p, "explain", "base.ini", "--set", "bmuf.time_constant=1500");
    assert_ended(&p, 0);
    assert_printed(&p, "= 1500 frames of all workers");
    RUN_PROGRAM(&p, "explain", "base.ini", "--set", "bmuf.time_constant=1500",
                "--set", "bmuf.momentum=0.9");
    assert_ended(&p, 78);
    assert_said(&p, "both set eta; leave one of them out");
    RUN_PROGRAM(&p, "explain", "base.ini", "--set", "bmuf.momentum=0.9@0 0.5@1",
                "--set", "block.fragments=2");
    assert_ended(&p, 78);
    assert_said(&p, "bmuf.momentum changes in the course of training");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newbob_follows_the_errors_until_it_ends),
        cmocka_unit_test(test_other_schedules_ignore_the_error),
        cmocka_unit_test(test_early_stopping_counts_across_a_restart),
        cmocka_unit_test(test_the_error_is_that_of_the_global_model),
        cmocka_unit_test(test_the_filter_and_blocks_change_as_set),
        cmocka_unit_test(test_a_changing_run_is_resumed_with_the_same_bits),
        cmocka_unit_test(test_a_changing_run_may_send_codes),
        cmocka_unit_test(test_a_time_constant_gives_eta),
    };

    return cmocka_run_group_tests_name("rates", tests, digits_set_up,
                                       digits_tear_down);
}
