/*
 * Settings of a plan from [batch] and [block]: one size each, or the default.
 */
#include "bmuf/block_settings.h"
#include "bmuf/job.h"
#include "io/batch/batch_settings.h"
#include "tests/support/support.h"

#include <string.h>

static bm_status read_plan(const char *const *settings, bm_plan_settings *out)
{
    static const bm_section sections[] = {
        {"batch", bm_batch_options, bm_batch_check, NULL},
        {"block", bm_block_options, bm_block_check, NULL},
        {"job", bm_job_options, bm_job_check, NULL},
        {0}};
    bm_config *config = NULL;
    bm_status status = BM_OK;

    assert_ok(bm_config_new(&config));
    for (; *settings != NULL; settings++)
        assert_ok(bm_config_set(config, *settings));
    status = bm_config_check(config, sections);
    if (status == BM_OK)
        status = bm_plan_read(config, out);
    bm_config_free(config);
    return status;
}

static void test_one_size_or_the_default_is_used(void **state)
{
    static const struct {
        size_t n;
        long sequences;
        int workers;
    } sets[] = {{0, 4, 1},        {4499, 4, 1},     {4501, 5, 1},
                {12000, 12, 4},   {1000000, 16, 4}, {12000, 6, 8},
                {12000, 3, 16},   {12000, 1, 64},   {100, 1, 64},
                {1000000, 1, 48}, {1000000, 2, 32}};
    bm_plan_settings s = {0};

    (void)state;
    assert_ok(read_plan((const char *[]){NULL}, &s));
    assert_int_equal(s.order, BM_ORDER_RANDOM);
    assert_int_equal(s.sequences + s.frames, 0);
    FOR_EACH (i, sets) {
        bm_dataset d = {.n = sets[i].n, .frames = 100};
        bm_plan_settings sized;

        s.workers = sets[i].workers;
        sized = bm_plan_sized(&s, &d);
        assert_int_equal(sized.sequences, sets[i].sequences);
        assert_int_equal(sized.frames, 0);
    }
    assert_int_equal(s.steps, 20);
    assert_int_equal(s.frames_total + s.frames_per_worker, 0);
    assert_ok(
        read_plan((const char *[]){"batch.frames=8000", "batch.order=sorted",
                                   "block.steps=7", NULL},
                  &s));
    assert_int_equal(s.order, BM_ORDER_SORTED);
    s = bm_plan_sized(&s, &(bm_dataset){.n = 9000});
    assert_int_equal(s.sequences, 0);
    assert_int_equal(s.frames, 8000);
    assert_int_equal(s.steps, 7);
    assert_ok(read_plan((const char *[]){"batch.order=sortagrad", NULL}, &s));
    assert_int_equal(s.order, BM_ORDER_SORTAGRAD);
    assert_int_equal(s.accumulate, 1);
    assert_ok(read_plan((const char *[]){"batch.accumulate=4", NULL}, &s));
    assert_int_equal(s.accumulate, 4);
    assert_int_equal(s.frames_per_worker + s.frames_total, 0);
}

static void test_two_sizes_are_reported_by_name(void **state)
{
    static const struct {
        const char *settings[4], *first, *second;
    } cases[] = {
        {{"batch.frames=1", "batch.sequences=1"},
         "batch.frames",
         "batch.sequences"},
        {{"block.steps=1", "block.frames_total=1"},
         "block.steps",
         "block.frames_total"},
        {{"block.frames_per_worker=1", "block.steps=1"},
         "block.frames_per_worker",
         "block.steps"},
        {{"batch.order=backwards"}, "batch.order", "backwards"},
    };
    bm_plan_settings s = {0};

    (void)state;
    FOR_EACH (i, cases) {
        assert_int_equal(read_plan(cases[i].settings, &s), BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), cases[i].first));
        assert_non_null(strstr(bm_last_error(), cases[i].second));
    }
}

/* A size for each epoch; the others stay 0. */
static void test_sizes_may_change_between_epochs(void **state)
{
    static const long sizes[] = {7, 7, 7, 20, 20, 5};
    static const char *const faults[] = {
        "block.steps=7@0 0@3",  "block.steps=7@0 20@1.5",
        "block.steps=7.5",      "block.steps=7@1",
        "block.steps=7@0 20@0", "block.steps=7 20@1 9"};
    bm_plan_settings s = {0};

    (void)state;
    assert_ok(
        read_plan((const char *[]){"block.steps=7@0 20@3 5@5", NULL}, &s));
    FOR_EACH (i, sizes) {
        bm_plan_settings now = bm_plan_in_epoch(&s, (int64_t)i);

        assert_int_equal(now.steps, sizes[i]);
        assert_int_equal(now.frames_total + now.frames_per_worker, 0);
    }
    FOR_EACH (i, faults)
        assert_int_equal(read_plan((const char *[]){faults[i], NULL}, &s),
                         BM_ERR_CONFIG);
}

static void test_workers_may_change_between_epochs(void **state)
{
    static const long workers[] = {4, 4, 16, 16};
    static const struct {
        const char *settings[4], *says;
    } faults[] = {
        {{"job.workers=8", "block.workers=4@0 16@1"}, "16 is more than"},
        {{"block.workers=2"}, "job.workers = 1;"},
        {{"job.workers=8", "block.workers=4@0 8@0.5"}, "whole epochs"},
        {{"job.workers=8", "block.workers=4@1 8@2"}, "with epochs from 0 up"},
        {{"job.workers=8", "block.workers=4@0 8@0"}, "with epochs from 0 up"},
        {{"job.workers=8", "block.workers=4@0 0@1"}, "has 0 in some blocks"},
        {{"job.workers=8", "block.workers=2.5"}, "is not a whole number"},
        {{"job.workers=8",
          "block.workers=1@0 2@1 1@2 2@3 1@4 2@5 1@6 2@7 1@8 2@9",
          "block.steps=2@0 3@10 2@11 3@12 2@13 3@14 2@15 3@16"},
         "more than 15 epochs"}};
    bm_plan_settings s = {0};

    (void)state;
    assert_ok(
        read_plan((const char *[]){"job.workers=16", "block.steps=7@0 9@1",
                                   "block.workers=4@0 16@2", NULL},
                  &s));
    FOR_EACH (i, workers) {
        bm_plan_settings now = bm_plan_in_epoch(&s, (int64_t)i);

        assert_int_equal(now.active, workers[i]);
        assert_int_equal(now.steps, i < 1 ? 7 : 9);
    }
    assert_int_equal(bm_plan_changes(&s).n, 3);
    FOR_EACH (i, faults) {
        assert_int_equal(read_plan(faults[i].settings, &s), BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), faults[i].says));
    }
}

static void test_all_workers_take_part_unless_fewer_are_set(void **state)
{
    bm_block_settings none = {0};
    bm_block_settings growing = {
        .workers = {.n = 2, .value = {4, 16}, .from = {0, 3}}};

    (void)state;
    assert_int_equal(bm_block_workers(&none, 0, 64), 64);
    assert_int_equal(bm_block_workers(&growing, 2, 64), 4);
    assert_int_equal(bm_block_workers(&growing, 3, 64), 16);
    assert_int_equal(bm_block_workers(&growing, 3, 8), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_size_or_the_default_is_used),
        cmocka_unit_test(test_two_sizes_are_reported_by_name),
        cmocka_unit_test(test_sizes_may_change_between_epochs),
        cmocka_unit_test(test_workers_may_change_between_epochs),
        cmocka_unit_test(test_all_workers_take_part_unless_fewer_are_set),
    };

    return RUN_GROUP("block_settings", tests);
}
