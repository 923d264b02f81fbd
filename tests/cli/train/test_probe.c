/* The largest mini-batch is computed before training, so that memory that does
 * not suffice is found at the start. */
#include "cli/train/probe.h"
#include "io/shard/dataset.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest sequence of a set; *tag <- how the message names it. */
static size_t longest(const char *set, char tag[100])
{
    bm_dataset *d = NULL;
    const char *name = NULL;
    size_t at = 0;
    int32_t frames = 0;

    assert_ok(bm_dataset_open(&d, in_folder(set)));
    for (size_t i = 1; i < d->n; i++) /* of equal ones that with more labels */
        if (d->lengths[2 * i] > d->lengths[2 * at] ||
            (d->lengths[2 * i] == d->lengths[2 * at] &&
             d->lengths[2 * i + 1] > d->lengths[2 * at + 1]))
            at = i;
    frames = d->lengths[2 * at];
    assert_ok(bm_dataset_tag(d, (int64_t)at, &name));
    snprintf(tag, 100, "(the longest is '%s')", name);
    bm_dataset_close(d);
    return (size_t)frames;
}

/* Layers without weights whose outputs need terabytes; training ends without a
 * block. */
static void train_without_memory(program *p, const char *settings)
{
    char all[256];

    snprintf(all, sizeof all,
             "model.net=splice:-50..50 splice:-20..20 dropout:0.1*250 linear; "
             "%s",
             settings);
    remove_run("endless");
    setenv("ASAN_OPTIONS", "detect_leaks=0:allocator_may_return_null=1", 1);
    train(p, "endless", 1, all);
    assert_ended(p, 71);
    assert_int_equal(events("endless", "block"), 0);
}

static void test_the_longest_sequences_and_a_remedy_are_named(void **state)
{
    char tag[100], words[100];
    size_t frames = longest("train", tag);
    program p;

    (void)state;
    train_without_memory(&p, "batch.sequences=50");
    snprintf(words, sizeof words,
             "largest mini-batch of data.train, 50 sequences of up to %zu",
             frames);
    assert_said(&p, words);
    assert_said(&p, tag);
    assert_said(&p, "set a batch.sequences of less than 50, or batch.frames");
    train_without_memory(&p, "batch.sequences=0; batch.frames=4000");
    assert_said(&p, "set a batch.frames of less than ");
}

/* Of two sets, of which the first is stretched; by the definition, with every
 * sequence as the longest. */
static void check_choice(const bm_plan_settings *plan, const char *remedy)
{
    static const char *const sets[] = {"train", "dev"};
    static const double stretch[] = {1.25, 1};
    bm_probe p = {0};
    size_t most = 0;

    FOR_EACH (k, sets) {
        bm_dataset *d = NULL;

        assert_ok(bm_dataset_open(&d, in_folder(sets[k])));
        assert_ok(bm_probe_choose(&p, plan, d, stretch[k], sets[k]));
        for (size_t i = 0; i < d->n; i++) {
            size_t frames = (size_t)d->lengths[2 * i], many = 1, shorter = 0;

            for (size_t j = 0; j < d->n; j++)
                shorter += d->lengths[2 * j] <= d->lengths[2 * i];
            many = plan->frames > 0 ? (size_t)plan->frames / frames
                                    : (size_t)plan->sequences;
            many = many < 1 ? 1 : many < shorter ? many : shorter;
            frames = (size_t)ceil((double)frames * stretch[k]);
            most = many * frames > most ? many * frames : most;
        }
        bm_dataset_close(d);
    }
    assert_int_equal(p.B * (size_t)p.frames[0], most);
    for (size_t b = 1; b < p.B; b++)
        assert_true(p.frames[b] <= p.frames[b - 1]);
    assert_non_null(strstr(p.about, remedy));
    bm_probe_free(&p);
}

static void test_the_largest_mini_batch_of_all_sets_is_chosen(void **state)
{
    (void)state;
    check_choice(&(bm_plan_settings){.sequences = 1}, "cut or leave out");
    check_choice(&(bm_plan_settings){.sequences = 7},
                 "batch.sequences of less");
    check_choice(&(bm_plan_settings){.sequences = 1000}, "of less than 60");
    check_choice(&(bm_plan_settings){.frames = 1}, "cut or leave out");
    check_choice(&(bm_plan_settings){.frames = 1000}, "batch.frames of less");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_largest_mini_batch_of_all_sets_is_chosen),
        cmocka_unit_test(test_the_longest_sequences_and_a_remedy_are_named),
    };

    return cmocka_run_group_tests_name("probe", tests, digits_set_up,
                                       digits_tear_down);
}
