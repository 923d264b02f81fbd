/*
 * Whole runs with [job] trace: the files of all ranks, and the table of bmuf
 * trace.
 */
#include "core/file/file.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <glob.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static json_t *load_rank(const char *run, int rank)
{
    char name[64];

    snprintf(name, sizeof name, "%s/trace/rank-%d.json", run, rank);
    return load_json(name);
}

/* Two spans of a thread are nested or disjoint. */
static void assert_nest(const json_t *a, const json_t *b)
{
    bool apart = end_of(a) <= begin_of(b) || end_of(b) <= begin_of(a);
    bool within = (begin_of(a) <= begin_of(b) && end_of(b) <= end_of(a)) ||
                  (begin_of(b) <= begin_of(a) && end_of(a) <= end_of(b));

    assert_true(apart || within);
}

/* What holds for all traces. */
static void assert_sound(const json_t *file)
{
    const json_t *head = json_object_get(file, "otherData");
    const json_t *a = NULL, *b = NULL;

    assert_chrome_trace(file);
    assert_true(number(head, "round_trip_us") >= 0);
    FOR_EACH_SPAN(a, file)
    {
        assert_true(number(a, "pid") == number(head, "rank"));
        assert_true(begin_of(a) >= 0);
        assert_true(length_of(a) >= 0);
        assert_true(block_of(a) < number(head, "end_block"));
        assert_true((block_of(a) >= number(head, "first_block")) ==
                    (strcmp(thread_of(file, a), "computing") == 0));
        FOR_EACH_SPAN(b, file)
        if (on_one_thread(a, b))
            assert_nest(a, b);
    }
}

/* ---- files of bmuf train ------------------------------------------------ */

/* 15 blocks, with evaluations and checkpoints within the window. */
#define WINDOW "job.trace=blocks 1:7"

/* Whether this block of the run ended an epoch. */
static void assert_named(const json_t *file)
{
    static const char *const names[] = {"forward",  "backward",   "update",
                                        "exchange", "filter",     "wait",
                                        "eval",     "checkpoint", "block"};

    FOR_EACH (i, names)
        assert_string_equal(thread_of(file, find_span(file, names[i])),
                            "computing");
    assert_string_equal(thread_of(file, find_span(file, "read")), "reader");
    assert_int_equal(count_spans(file, "block"), 6);
    for (long long b = 1; b < 7; b++) {
        const json_t *e = NULL;
        size_t n = 0;
        FOR_EACH_SPAN(e, file)
        n += block_of(e) == b && is_named(e, "forward");
        assert_true(n > 0);
    }
}

static void assert_traced(const char *run, int ranks)
{
    char none[64];

    for (int r = 0; r < ranks; r++) {
        json_t *file = load_rank(run, r);
        assert_sound(file);
        assert_named(file);
        assert_true(number(json_object_get(file, "otherData"), "ranks") ==
                    ranks);
        json_decref(file);
    }
    snprintf(none, sizeof none, "%s/trace/rank-%d.json", run, ranks);
    assert_int_equal(access(in_folder(none), F_OK), -1);
}

static void test_every_rank_traces_its_window(void **_)
{
    program p;

    (void)_;
    train(&p, "plain", 1, "");
    assert_ended(&p, 0);
    train(&p, "one", 1, WINDOW);
    assert_ended(&p, 0);
    assert_traced("one", 1);
    assert_same_model("plain", "one");
    train(&p, "three", 3, WINDOW);
    assert_ended(&p, 0);
    assert_traced("three", 3);
    assert_same_model("plain", "three");
    assert_fails(BMUF("trace", "three", "--out", "three/trace/rank-2.json"), 73,
                 "would replace a file of a run");
    assert_fails(BMUF("trace", "three", "--out", "three/journal.jsonl"), 73,
                 "would replace a file of a run");
}

static void test_synchronous_steps_are_traced(void **_)
{
    json_t *file = NULL;
    program p;

    (void)_;
    train(&p, "steps", 2, "train.strategy=ssgd; job.trace=blocks 0:1");
    assert_ended(&p, 0);
    file = load_rank("steps", 1);
    assert_sound(file);
    assert_int_equal(count_spans(file, "block"), 1);
    assert_int_equal(count_spans(file, "update"), count_spans(file, "filter"));
    json_decref(file);
}

static void test_a_bucketed_exchange_has_its_own_thread(void **_)
{
    const json_t *e = NULL;
    json_t *file = NULL;
    size_t sent = 0;
    program p;

    (void)_;
    train(&p, "comm_thread", 2,
          "train.strategy=ssgd; ssgd.overlap=layer; job.trace=blocks 0:2");
    assert_ended(&p, 0);
    file = load_rank("comm_thread", 1);
    assert_sound(file);
    FOR_EACH_SPAN(e, file)
    sent += is_named(e, "exchange") &&
            strcmp(thread_of(file, e), "communication") == 0;
    assert_true(sent > 0);
    json_decref(file);
}

static bool is_within(const json_t *a, const json_t *b)
{
    return a != b && on_one_thread(a, b) && begin_of(b) <= begin_of(a) &&
           end_of(a) <= end_of(b);
}

/* A span's own time, without its direct children, by brute force. */
static double own_seconds(const json_t *file, const json_t *a)
{
    long long own = length_of(a);
    const json_t *b = NULL, *c = NULL;

    FOR_EACH_SPAN(b, file)
    {
        bool right_within = is_within(b, a);
        if (!right_within)
            continue;
        FOR_EACH_SPAN(c, file)
        if (is_within(b, c) && is_within(c, a))
            right_within = false;
        if (right_within)
            own -= length_of(b);
    }
    return 1e-9 * (double)own;
}

static double seconds_in(const json_t *file, const char *phase)
{
    const json_t *e = NULL;
    double sum = 0;

    FOR_EACH_SPAN(e, file)
    if (is_named(e, phase))
        sum += own_seconds(file, e);
    return sum;
}

/* After test_every_rank_traces_its_window. */
static void test_a_trace_that_is_missing_is_named(void **_)
{
    char here[4096], away[4096];

    (void)_;
    snprintf(here, sizeof here, "%s", in_folder("three/trace/rank-1.json"));
    snprintf(away, sizeof away, "%s", in_folder("three/away.json"));
    assert_int_equal(rename(here, away), 0);
    assert_fails(BMUF("trace", "three"), 66,
                 "copy the file from the host of rank 1");
    assert_int_equal(rename(away, here), 0);
}

/* After test_every_rank_traces_its_window. */
static void test_table_is_the_sum_of_the_files(void **_)
{
    json_t *o = NULL, *row = NULL, *merged = NULL, *files[3];
    size_t i = 0, events = 0;
    double blocks = 0, phases = 0;
    outcome said = BMUF("trace", "three", "--json", "--out", "all.json");

    (void)_;
    assert_code(said, 0);
    o = json_loads(said.out, 0, NULL);
    for (int r = 0; r < 3; r++) {
        const json_t *e = NULL;
        files[r] = load_rank("three", r);
        events += json_array_size(json_object_get(files[r], "traceEvents"));
        FOR_EACH_SPAN(e, files[r])
        if (is_named(e, "block"))
            blocks += 1e-9 * (double)length_of(e);
    }
    json_array_foreach(json_object_get(o, "phases"), i, row)
    {
        const json_t *list = json_object_get(row, "seconds");
        double sum = 0, most = 0;
        for (int r = 0; r < 3; r++) {
            double own = seconds_in(files[r], text(row, "phase"));
            assert_true(near(json_number_value(json_array_get(list, (size_t)r)),
                             own, 1e-7));
            sum += own;
            most = fmax(most, own);
        }
        assert_true(near(number(row, "total_s"), sum, 1e-7));
        assert_true(near(number(row, "mean_s"), sum / 3, 1e-7));
        assert_true(near(number(row, "most_s"), most, 1e-7));
        if (strcmp(text(row, "thread"), "computing") == 0)
            phases += sum;
    }
    assert_true(near(phases, blocks, 1e-6));
    assert_int_equal(json_array_size(json_object_get(o, "blocks")), 6);
    merged = load_json("all.json");
    assert_chrome_trace(merged);
    assert_int_equal(json_array_size(json_object_get(merged, "traceEvents")),
                     events);
    for (int r = 0; r < 3; r++)
        json_decref(files[r]);
    json_decref(merged);
    json_decref(o);
    said = BMUF("trace", "three");
    assert_code(said, 0);
    assert_says(said.out, "backward     computing");
    assert_says(said.out, "read         reader");
    assert_says(said.out, "\nstraggler    rank ");
    assert_says(said.out, "three/trace.json");
    said = BMUF("trace", "one");
    assert_code(said, 0);
    assert_int_equal(count_of(said.out, "straggler    rank"), 0);
}

/* A resumed run keeps the trace of blocks that it does not train again. */
static void test_a_trace_survives_a_restart(void **_)
{
    json_t *before = NULL, *after = NULL;
    program p;

    (void)_;
    train(&p, "again", 2, "train.epochs=1; job.trace=blocks 0:2");
    assert_ended(&p, 0);
    before = load_rank("again", 1);
    train(&p, "again", 2, "train.epochs=2; job.trace=blocks 0:2");
    assert_ended(&p, 0);
    after = load_rank("again", 1);
    assert_true(json_equal(before, after));
    json_decref(after);
    train(&p, "again", 1, "train.epochs=3; job.trace=blocks 0:1000");
    assert_ended(&p, 0);
    after = load_rank("again", 0);
    assert_true(number(json_object_get(after, "otherData"), "attempt") == 3);
    assert_sound(after);
    assert_code(BMUF("trace", "again"), 0); /* rank 1's file was removed */
    json_decref(before);
    json_decref(after);
    train(&p, "again", 1, "train.epochs=4; job.trace=blocks 5000:5001");
    assert_ended(&p, 0);
    assert_said(&p, "block 5000");
}

/* Killed at any time in the window. */
static void test_a_killed_run_leaves_valid_files(void **_)
{
    json_t *file = NULL;
    program p;

    (void)_;
    for (int n = 1; n <= 3; n++) {
        remove_run("killed");
        train_start(&p, "killed", 1,
                    "train.epochs=50; job.trace=blocks 0:100000");
        assert_true(event_comes(&p, "killed", "block", 4 * n));
        kill(p.pid, SIGKILL);
        program_wait(&p);
        file = load_rank("killed", 0);
        assert_sound(file);
        assert_true(count_spans(file, "block") + 1 >= (size_t)(4 * n - 1));
        json_decref(file);
        assert_code(BMUF("trace", "killed"), 0);
    }
}

static void test_invalid_windows_are_reported(void **_)
{
    program p;

    (void)_;
    train(&p, "bad", 1, "job.trace=blocks 3:3; train.keep=0");
    assert_ended(&p, 78);
    assert_said(&p, "job.trace = blocks 3:3");
    assert_said(&p, "train.keep");
}

/* ---- bmuf trace --------------------------------------------------------- */

static char made[8192];

static void make(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void make(const char *format, ...)
{
    size_t n = strlen(made);
    va_list args;

    va_start(args, format);
    vsnprintf(made + n, sizeof made - n, format, args);
    va_end(args);
}

static void make_span(int rank, const char *name, int block, double ts,
                      double dur)
{
    make(",{\"ph\":\"X\",\"name\":\"%s\",\"pid\":%d,\"tid\":1,\"ts\":%.3f,"
         "\"dur\":%.3f,\"args\":{\"block\":%d}}",
         name, rank, ts, dur, block);
}

/* In each of two blocks of 1 s, each rank computes 0.1 s, except rank 1 in the
 * first one, 0.3 s, and rank 2 in the second one, 0.9 s; then it exchanges. A
 * checkpoint of rank 0 follows, which does not count as work. */
static void make_rank(int rank, int ranks, int attempt)
{
    char name[64];

    made[0] = '\0';
    make("{\"otherData\":{\"rank\":%d,\"ranks\":%d,\"host\":\"node-%c\","
         "\"attempt\":%d},\"traceEvents\":[{\"ph\":\"M\",\"name\":"
         "\"thread_name\",\"pid\":%d,\"tid\":1,\"args\":{\"name\":"
         "\"computing\"}}",
         rank, ranks, 'a' + rank, attempt, rank);
    for (int b = 0; b < 2; b++) {
        double work = b == 1 && rank == 2   ? 0.9e6
                      : b == 0 && rank == 1 ? 0.3e6
                                            : 0.1e6;
        double at = 1e6 * b, save = rank == 0 ? 0.09e6 : 0;
        make_span(rank, "exchange", b, at + work, 0.91e6 - work);
        make_span(rank, "filter", b, at + work, 0.001e6);
        make_span(rank, "block", b, at, 0.91e6 + save);
        make_span(rank, "forward", b, at, work);
        make_span(rank, "checkpoint", b, at + 0.91e6, save);
    }
    make("]}");
    snprintf(name, sizeof name, "slow/trace/rank-%d.json", rank);
    write_text(name, made);
}

static void make_run(void)
{
    assert_ok(bm_file_make_directory(in_folder("slow/trace")));
    write_text("slow/journal.jsonl", "");
    for (int r = 0; r < 3; r++)
        make_rank(r, 3, 1);
}

static void test_the_slow_rank_is_named(void **_)
{
    json_t *o = NULL, *blocks = NULL, *worst = NULL, *row = NULL;
    size_t i = 0;
    outcome said;

    (void)_;
    make_run();
    said = BMUF("trace", "slow", "--json");
    assert_code(said, 0);
    o = json_loads(said.out, 0, NULL);
    worst = json_object_get(o, "straggler");
    assert_true(number(worst, "rank") == 2);
    assert_string_equal(text(worst, "host"), "node-c");
    assert_true(number(worst, "blocks") == 1);
    assert_true(near(number(worst, "lost_s"), 0.8 + 0.8, 1e-8));
    blocks = json_object_get(o, "blocks");
    assert_true(number(json_array_get(blocks, 0), "straggler") == 1);
    assert_true(near(number(json_array_get(blocks, 0), "lost_s"), 0.4, 1e-8));
    assert_true(near(number(json_array_get(blocks, 1), "seconds"), 1, 1e-8));
    json_array_foreach(json_object_get(o, "phases"), i, row)
    {
        bool forward = strcmp(text(row, "phase"), "forward") == 0;
        if (forward)
            assert_true(near(number(row, "total_s"), 1.6, 1e-8));
        if (forward || strcmp(text(row, "phase"), "exchange") == 0)
            assert_true(number(row, "straggler") == 2);
    }
    json_decref(o);
    said = BMUF("trace", "slow");
    assert_code(said, 0);
    assert_says(said.out, "straggler    rank 2 on node-c, in 1 of 2 blocks");
}

static void test_damaged_traces_are_reported(void **_)
{
    glob_t left = {0};

    (void)_;
    assert_fails(BMUF("trace", "nowhere"), 66, "nowhere");
    assert_ok(bm_file_make_directory(in_folder("blank")));
    assert_fails(BMUF("trace", "blank"), 66, "not a run");
    write_text("blank/journal.jsonl", "");
    assert_fails(BMUF("trace", "blank"), 66, "job.trace");
    make_run();
    cut_off(in_folder("slow/trace/rank-1.json"), 0.7);
    assert_fails(BMUF("trace", "slow"), 65, "slow/trace/rank-1.json");
    assert_int_equal(glob(in_folder("slow/.*.tmp"), 0, NULL, &left),
                     GLOB_NOMATCH);
    remove(in_folder("slow/trace/rank-1.json"));
    assert_fails(BMUF("trace", "slow"), 66, "slow/trace/rank-1.json");
    make_rank(1, 3, 2);
    assert_fails(BMUF("trace", "slow"), 65, "rank-1.json", "attempt 2");
    write_text("slow/trace/rank-1.json", "[]");
    assert_fails(BMUF("trace", "slow"), 65, "rank-1.json is not a trace");
    make_rank(1, 3, 1);
    made[strlen(made) - 2] = '\0';
    make_span(1, "odd", 1, 0.05e6, 1e6);
    make("]}");
    write_text("slow/trace/rank-1.json", made);
    assert_fails(BMUF("trace", "slow"), 65, "rank-1.json", "overlap");
    make_run();
    assert_fails(BMUF("trace", "slow", "--out", "no/where.json"), 73, "no/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invalid_windows_are_reported),
        cmocka_unit_test(test_every_rank_traces_its_window),
        cmocka_unit_test(test_a_trace_that_is_missing_is_named),
        cmocka_unit_test(test_table_is_the_sum_of_the_files),
        cmocka_unit_test(test_synchronous_steps_are_traced),
        cmocka_unit_test(test_a_bucketed_exchange_has_its_own_thread),
        cmocka_unit_test(test_a_trace_survives_a_restart),
        cmocka_unit_test(test_a_killed_run_leaves_valid_files),
        cmocka_unit_test(test_the_slow_rank_is_named),
        cmocka_unit_test(test_damaged_traces_are_reported),
    };

    return cmocka_run_group_tests_name("traces", tests, digits_set_up,
                                       digits_tear_down);
}
