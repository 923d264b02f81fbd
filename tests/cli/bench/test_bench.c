/* bmuf bench: its numbers are consistent. Their size is not tested. */
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static double rate(const json_t *row, const char *key)
{
    const json_t *value = json_object_get(row, key);

    assert_true(json_is_real(value));
    return json_real_value(value);
}

static void test_bench_prints_rates(void **_)
{
    outcome o = BMUF("bench", "--quick", "--only", "ctc");

    (void)_;
    assert_code(o, 0);
    assert_says(o.out, "frames/s");
    assert_says(o.out, "ctc alone");
    o = BMUF("bench", "--quick", "--only", "read u8");
    assert_code(o, 0);
    assert_says(o.out, "as batches");
    o = BMUF("bench", "--quick", "--only", "start 10M");
    assert_code(o, 0);
    assert_says(o.out, "start 10M");
    o = BMUF("bench", "--quick", "--only", "bf16", "--json");
    assert_code(o, 0);
    assert_says(o.out, "\"encode_ns\"");
    assert_says(o.out, "\"sum_copies\"");
    o = BMUF("bench", "--only", "exchange");
    assert_code(o, 0);
    assert_says(o.err, "bmuf bench -n 2 --only exchange");
    o = BMUF("bench", "-n", "2", "--quick", "--only", "tree");
    assert_code(o, 0);
    assert_says(o.out, "allreduces");
    assert_says(o.out, "tree");
    o = BMUF("bench", "-n", "2", "--quick", "--only", "link", "--json");
    assert_code(o, 0);
    assert_says(o.out, "\"latency_us\"");
    assert_says(o.out, "\"gb_per_s\"");
    o = BMUF("bench", "--only", "transformer");
    assert_code(o, 64);
    assert_says(o.err, "blstm 4x320");
}

static void test_options_of_a_network_are_checked(void **_)
{
    outcome o = BMUF("bench", "--quick", "--net", "foo linear");

    (void)_;
    assert_code(o, 64);
    assert_string_equal(o.out, "");
    assert_says(o.err, "--net: word 1 'foo'");
    assert_null(strstr(o.err, "model.net"));
    o = BMUF("bench", "--quick", "--batch", "4");
    assert_code(o, 64);
    assert_says(o.err, "--batch needs --net");
    assert_fails(BMUF("bench", "--net", "linear", "--classes", "1"), 64,
                 "--classes 1: CTC has a blank");
    assert_fails(BMUF("bench", "--net", "linear", "--only", "read"), 64,
                 "--only", "without --net");
    o = BMUF("bench", "--quick", "--net", "stack:10 linear", "--frames", "100",
             "--labels", "20");
    assert_code(o, 0);
    assert_says(o.err, "warning r0 100 % of the sequences have more labels");
}

/* T = 200, B = 16, D = 120, three layers of two directions with H cells of
 * `matrices` matrices for x and for h, 30 classes: a product counts 2 m n k,
 * three times, except for the gradient of the input. */
static double flops_of(double H, double matrices)
{
    const double F = 200 * 16, before = 199 * 16, gates = 2 * matrices * H;
    const double first = 2 * 2 * gates * F * 120 + 3 * 2 * gates * before * H;
    const double next = 3 * 2 * gates * (F * 2 * H + before * H);

    return first + 2 * next + 3 * 2 * F * 2 * H * 30;
}

static void test_a_gru_counts_three_matrices(void **_)
{
    outcome o = BMUF("bench", "--quick", "--json", "--net", "bgru:16*3 linear",
                     "--input", "120", "--classes", "30", "--batch", "16",
                     "--frames", "200", "--labels", "25");
    json_t *all = json_loads(o.out, 0, NULL),
           *row = json_array_get(json_object_get(all, "benchmarks"), 0);

    (void)_;
    assert_code(o, 0);
    assert_true(
        near(rate(row, "gflops") * rate(row, "step_ms") / flops_of(16, 3) * 1e6,
             1, 1e-4));
    json_decref(all);
}

static void test_bench_counts_flops(void **_)
{
    const double F = 200 * 16, flops = flops_of(128, 4);
    outcome o = BMUF("bench", "--quick", "--json", "--only", "3x128");
    json_t *all = json_loads(o.out, 0, NULL),
           *rows = json_object_get(all, "benchmarks"),
           *row = json_array_get(rows, 0);
    double parts = 0;

    (void)_;
    assert_code(o, 0);
    assert_int_equal(json_array_size(rows), 1);
    assert_true(near(rate(row, "gflops") * rate(row, "step_ms") / flops * 1e6,
                     1, 1e-4));
    assert_true(near(rate(row, "frames_per_s") * rate(row, "step_ms") / F / 1e3,
                     1, 1e-4));
    parts = rate(row, "forward") + rate(row, "loss") + rate(row, "backward") +
            rate(row, "update");
    assert_true(near(parts, 1, 1e-5));
    json_decref(all);
    if (!short_tests()) {
        o = BMUF("bench", "--quick", "--only", "3x128", "--precision", "bf16",
                 "--threads", "2");
        assert_code(o, 0);
        assert_says(o.out, "2 threads, bf16");
    }
    o = BMUF("bench", "--precision", "fp8");
    assert_code(o, 64);
    assert_says(o.err, "is not one of: auto fp32 tf32 bf16");
    o = BMUF("bench", "--peer");
    assert_code(o, 0);
    assert_says(o.out, "torch_peer.py");
    assert_says(o.out, "--net 'bgru:320*4 linear' --loss ctc --input 120 "
                       "--classes 30 --batch 16 --frames 200 --labels 25\n");
    assert_says(o.out, "--net '' --loss ctc --input 80 --classes 80 --batch 32 "
                       "--frames 800 --labels 100 --modes fp32:native\n");
}

/* A verb that cannot go on ends as by the user's signal, without a word about its ranks. */
static void test_a_stopped_benchmark_names_no_rank(void **_)
{
    program p;

    (void)_;
    program_start(&p, (const char *const[]){"bench", "-n", "2", NULL});
    sleep(2);
    kill(p.pid, SIGINT);
    program_wait(&p);
    assert_ended(&p, 128 + SIGINT);
    assert_int_equal(times_said(&p, "killed by signal"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bench_prints_rates),
        cmocka_unit_test(test_options_of_a_network_are_checked),
        cmocka_unit_test(test_bench_counts_flops),
        cmocka_unit_test(test_a_gru_counts_three_matrices),
        cmocka_unit_test(test_a_stopped_benchmark_names_no_rank),
    };
    return cmocka_run_group_tests_name("bench", tests, folder_make,
                                       folder_remove);
}
