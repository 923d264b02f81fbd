/* bmuf scale: table and chart for a journal and a network. test_cost tests the
 * forecasts themselves. */
#include "cli/report/scale/forecast.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* A million weights; blocks of ten steps, of 100 frames and 0.1 s each, all
 * equal except for the first, which is slow. */
#define BLOCK(seconds)                                                         \
    "{\"event\":\"block\",\"frames\":1000,\"batches\":10,\"seconds\":1.1,"     \
    "\"compute_s\":" seconds ",\"backward_s\":0.5,\"stall_s\":0}\n"
static const char journal[] =
    "{\"event\":\"start\",\"workers\":1,\"ranks\":1,\"strategy\":\"bmuf\","
    "\"net\":\"linear:8 relu linear\",\"weights\":1000000}\n" BLOCK("9")
        BLOCK("1") BLOCK("1");

static const char network[] = "[link]\nlatency_us = 0\nbandwidth = 1 ; GB/s\n";

static double speedup(const json_t *rows, size_t i, const char *method)
{
    json_t *row = json_array_get(rows, i);
    return json_number_value(
        json_object_get(json_object_get(row, method), "speedup"));
}

/* A ring of two moves 4 MB in 4 ms: once a step, or once in ten. */
static void test_forecast_follows_from_journal_and_network(void **_)
{
    outcome o;
    json_t *all = NULL, *rows = NULL;

    (void)_;
    write_text("journal.jsonl", journal);
    write_text("net.ini", network);
    o = BMUF("scale", ".", "--network", "./net.ini", "--workers", "1,2,...,8",
             "--json");
    assert_code(o, 0);
    all = json_loads(o.out, 0, NULL);
    rows = json_object_get(all, "forecasts");
    assert_int_equal(json_array_size(rows), 4);
    assert_true(near(speedup(rows, 0, "bmuf"), 1, 1e-5));
    assert_true(near(speedup(rows, 1, "ssgd"), 0.2 / 0.104, 1e-5));
    assert_true(near(speedup(rows, 1, "bmuf"), 0.2 / 0.1004, 1e-5));
    assert_true(near(speedup(rows, 3, "ssgd"), 0.8 / 0.107, 1e-5));
    json_decref(all);
    o = BMUF("scale", ".", "--workers", "1,2,4,...,64", "--network", "fdr");
    assert_code(o, 0);
    assert_says(o.out, "100 ms for 100 frames");
    assert_says(o.out, "(2 blocks on 1 rank)");
    assert_says(o.out, "\n64 ");
}

/* Rank 0 trains two of four workers, so that its mean step is one of 20 of 40
 * mini-batches. Means of 95 and 105 ms deviate by 5 %, steps by sqrt(20) times
 * that; a worker has 10 steps in a block. */
#define PART(seconds)                                                          \
    "{\"event\":\"block\",\"frames\":4000,\"batches\":40,\"seconds\":1.1,"     \
    "\"compute_s\":" seconds ",\"backward_s\":0.5,\"stall_s\":0}\n"
static void test_the_variation_is_that_of_a_step_of_rank_0(void **_)
{
    outcome o;

    (void)_;
    write_text("journal.jsonl",
               "{\"event\":\"start\",\"workers\":4,\"ranks\":2,\"strategy\":"
               "\"bmuf\",\"net\":\"linear\",\"weights\":9}\n" PART("9")
                   PART("1.9") PART("2.1"));
    o = BMUF("scale", ".");
    assert_code(o, 0);
    assert_says(o.out, "step of a worker  100 ms for 100 frames");
    assert_says(o.out, "variation         22.4 % of a step");
    assert_says(o.out, "every 10.0 steps");
}

/* The same blocks after a job on one rank that had nothing to train, and on three
 * ranks, of which rank 0 has one of four workers: a step of 0.1 s still. */
#define START(ranks)                                                           \
    "{\"event\":\"start\",\"workers\":4,\"ranks\":" ranks                      \
    ",\"strategy\":\"bmuf\",\"net\":\"linear\",\"weights\":9}\n"
static void test_each_block_counts_with_the_ranks_of_its_job(void **_)
{
    outcome o;

    (void)_;
    write_text("journal.jsonl",
               START("2") PART("9") PART("2") PART("2") START("1"));
    o = BMUF("scale", ".");
    assert_code(o, 0);
    assert_says(o.out, "step of a worker  100 ms for 100 frames");
    assert_says(o.out, "(2 blocks on 2 ranks)");
    assert_says(o.out, "every 10.0 steps");
    o = BMUF("info", ".");
    assert_code(o, 0);
    assert_says(o.out, "4 workers on 2 ranks");

    write_text("journal.jsonl", START("3") PART("9") PART("1") PART("1")
                                    START("2") PART("9") PART("2"));
    o = BMUF("scale", ".");
    assert_code(o, 0);
    assert_says(o.out, "step of a worker  100 ms for 100 frames");
    assert_says(o.out, "(3 blocks on 2 to 3 ranks)");
    assert_says(o.out, "every 10.0 steps");
}

/* Every fourth mini-batch is an update, which ssgd exchanges: 4 MB in 4 ms beside 0.4 s.
 * The variation is that of four mini-batches. */
static void test_a_step_is_an_update(void **_)
{
    outcome o;
    json_t *all = NULL;

    (void)_;
    write_text("journal.jsonl",
               "{\"event\":\"start\",\"workers\":4,\"ranks\":2,\"strategy\":"
               "\"ssgd\",\"net\":\"linear\",\"weights\":1000000}\n" PART("9")
                   PART("1.9") PART("2.1"));
    write_text("config.ini", "[batch]\naccumulate = 4\n");
    write_text("net.ini", network);
    o = BMUF("scale", ".", "--network", "./net.ini");
    assert_code(o, 0);
    assert_says(o.out, "step of a worker  400 ms for 400 frames");
    assert_says(o.out, "variation         11.2 % of a step");
    assert_says(o.out, "every 2.5 steps");
    o = BMUF("scale", ".", "--network", "./net.ini", "--workers", "1,2",
             "--variation", "0", "--json");
    assert_code(o, 0);
    all = json_loads(o.out, 0, NULL);
    assert_true(near(speedup(json_object_get(all, "forecasts"), 1, "ssgd"),
                     0.8 / 0.404, 1e-5));
    json_decref(all);
    assert_int_equal(remove(in_folder("config.ini")), 0);
}

/* 65536 times 65536 is no int: the dots stop at the last number. */
/* Of four workers one takes part in epoch 0, two in epoch 1, and rank 0 has two of
 * the four: 40 mini-batches are 40 steps, then 20. */
#define PART_OF(epoch, seconds)                                                \
    "{\"event\":\"block\",\"epoch\":" epoch                                    \
    ",\"frames\":4000,\"batches\":40,\"seconds\":1.1,\"compute_s\":" seconds   \
    ",\"backward_s\":0.5,\"stall_s\":0}\n"
static void test_workers_that_take_no_part_have_no_steps(void **_)
{
    outcome o;

    (void)_;
    write_text("config.ini", "[block]\nworkers = 1@0 2@1\n");
    write_text("journal.jsonl", START("2") PART_OF("0", "9") PART_OF("0", "4")
                                    PART_OF("1", "4") PART_OF("1", "4"));
    o = BMUF("scale", ".");
    assert_code(o, 0);
    assert_says(o.out, "step of a worker  100 ms for 100 frames");
    assert_says(o.out, "every 26.7 steps");
    assert_int_equal(remove(in_folder("config.ini")), 0);
}

static void test_large_numbers_of_workers_are_forecast(void **_)
{
    outcome o;

    (void)_;
    write_text("journal.jsonl", journal);
    o = BMUF("scale", ".", "--workers", "1,65536,...,1048576");
    assert_code(o, 0);
    assert_says(o.out, "\n1048576 ");
    assert_null(strstr(o.out, "\n-"));
    o = BMUF("scale", ".", "--workers", "1000000,1048575,...,1048576");
    assert_code(o, 0);
    assert_null(strstr(o.out, "\n-"));
}

static void test_chart_has_two_lines_per_method_and_the_ideal(void **_)
{
    char text[1 << 16] = "";
    size_t lines = 0, n = 0, methods = 0;
    FILE *f = NULL;
    outcome o;

    (void)_;
    write_text("journal.jsonl", journal);
    o = BMUF("scale", ".", "--svg", "chart.svg");
    assert_code(o, 0);
    f = fopen(in_folder("chart.svg"), "r");
    assert_non_null(f);
    n = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    assert_true(n > 0);
    assert_true(strncmp(text, "<svg ", 5) == 0);
    assert_non_null(strstr(text, "</svg>"));
    for (const char *at = text; (at = strstr(at, "<path class='l")) != NULL;
         at++)
        lines++;
    while (bm_forecast_methods[methods].name != NULL)
        methods++;
    /* each of them twice: with a sample in the legend */
    assert_int_equal(lines, 2 * (2 * methods + 1));
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
}

static double exchange_ms(const outcome *o, const char *sum)
{
    json_t *all = json_loads(o->out, 0, NULL);
    json_t *row = json_array_get(json_object_get(all, "forecasts"), 0);
    double ms = json_number_value(json_object_get(
        json_object_get(json_object_get(row, "sums"), sum), "exchange_ms"));

    json_decref(all);
    return ms;
}

/* 4 workers, 2 of a host, 4 MB; inside 4 us and 370 GB/s, between 1 GB/s. A ring
 * has 6 steps of 1 MB. A slice of 250000 floats has 7 lanes. */
static void test_sums_are_compared_on_two_levels(void **_)
{
    double b = 4e6 / 7, in = 2 * 4e-6 + b / 370e9, between = b / 1e9;
    outcome o;

    (void)_;
    write_text("journal.jsonl", journal);
    write_text("net.ini", network);
    o = BMUF("scale", ".", "--network", "./net.ini", "--inside", "nvlink",
             "--topology", "2x2", "--sum", "all", "--workers", "4", "--json");
    assert_code(o, 0);
    assert_true(near(exchange_ms(&o, "ring"), 6 * (4e-3 + 1), 1e-4));
    assert_true(near(exchange_ms(&o, "hier"),
                     1e3 * (in + between + 6 * between), 1e-4));
    write_text("two.ini", "[link]\nlatency_us = 0\nbandwidth = 1\n[inside]\n"
                          "workers = 2\nlatency_us = 4\nbandwidth = 370\n");
    o = BMUF("scale", ".", "--network", "./two.ini", "--sum", "all",
             "--workers", "4", "--json");
    assert_true(near(exchange_ms(&o, "hier"),
                     1e3 * (in + between + 6 * between), 1e-4));
    o = BMUF("scale", ".", "--network", "./two.ini", "--sum", "all");
    assert_code(o, 0);
    assert_says(o.out, "An exchange of all weights, in ms");
    assert_says(o.out, "ssgd: synchronous SGD");
    o = BMUF("scale", ".", "--network", "fdr", "--inside", "nvlink",
             "--topology", "4x8x8", "--workers", "4,256");
    assert_code(o, 0);
    assert_says(o.out, "workers of a host 4\n");
    assert_says(o.out, "topology          4x8x8 for 256 workers");
    assert_says(o.out, "sum               hier");
}

static void test_invalid_arguments_are_reported(void **_)
{
    outcome o;

    (void)_;
    write_text("journal.jsonl", journal);
    o = BMUF("scale", ".", "--network", "carrier pigeon");
    assert_code(o, 64);
    assert_says(o.err, "10gbe");
    o = BMUF("scale", ".", "--workers", "4,2");
    assert_code(o, 64);
    assert_says(o.err, "increasing");
    o = BMUF("scale", ".", "--set", "train.rate=1");
    assert_code(o, 64);
    assert_says(o.err, "--set changes a CONFIG, which needs --step-ms");
    o = BMUF("scale", ".", "--host-workers", "4");
    assert_code(o, 64);
    assert_says(o.err, "--host-workers needs --inside");
    o = BMUF("scale", ".", "--inside", "nvlink");
    assert_code(o, 64);
    assert_says(o.err, "--inside needs --host-workers P");
    o = BMUF("scale", ".", "--sum", "abacus");
    assert_code(o, 64);
    o = BMUF("scale", ".", "--topology", "4x");
    assert_code(o, 64);
    o = BMUF("scale", ".", "--sum", "all", "--svg", "chart.svg");
    assert_code(o, 64);
    write_text("odd.json", "{\"network\": {\"link\": {\"bandwidth\": -1}}}");
    o = BMUF("scale", ".", "--network", "./odd.json");
    assert_code(o, 65);
    assert_says(o.err, "no measured network");
    o = BMUF("scale", "nowhere");
    assert_code(o, 66);
    o = BMUF("scale", ".", "--network", "./missing.ini");
    assert_code(o, 66);
    write_text("journal.jsonl", "");
    o = BMUF("scale", ".");
    assert_code(o, 65);
    assert_says(o.err, "no complete start event");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forecast_follows_from_journal_and_network),
        cmocka_unit_test(test_the_variation_is_that_of_a_step_of_rank_0),
        cmocka_unit_test(test_each_block_counts_with_the_ranks_of_its_job),
        cmocka_unit_test(test_workers_that_take_no_part_have_no_steps),
        cmocka_unit_test(test_a_step_is_an_update),
        cmocka_unit_test(test_large_numbers_of_workers_are_forecast),
        cmocka_unit_test(test_chart_has_two_lines_per_method_and_the_ideal),
        cmocka_unit_test(test_sums_are_compared_on_two_levels),
        cmocka_unit_test(test_invalid_arguments_are_reported),
    };
    return cmocka_run_group_tests_name("scale", tests, folder_make,
                                       folder_remove);
}
