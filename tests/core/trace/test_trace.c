/* The file of a trace: its times, and that it is valid at any time. */
#include "core/clock.h"
#include "core/trace/span.h"
#include "core/trace/trace.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <glob.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const bm_trace_about about = {.window = {10, 12},
                                     .rank = 3,
                                     .ranks = 4,
                                     .attempt = 2,
                                     .offset = 100,
                                     .round_trip = 1e-6,
                                     .origin = 101};

/* A span with given times. */
static void span(const char *name, double began, double ended)
{
    bm_span_notify_begin(name);
    bm_span_notify_end((bm_span){name, began}, ended);
}

static void assert_times(const json_t *file, const char *name, double ts,
                         double dur, int block)
{
    const json_t *e = find_span(file, name);

    assert_true(begin_of(e) == llround(1e3 * ts));
    assert_true(length_of(e) == llround(1e3 * dur));
    assert_true(number(e, "pid") == 3);
    assert_true(block_of(e) == block);
}

static void *read_some(void *unused)
{
    bm_span_thread("reader");
    span("read", 1.25, 1.5);
    return unused;
}

static void run_thread(void *(*what)(void *))
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, what, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* ts = clock + 100 s - 101 s. */
static void test_times_follow_the_clock(void **_)
{
    json_t *file = NULL;
    glob_t left = {0};

    (void)_;
    bm_trace_watch();
    span("early", 1, 2);
    assert_ok(bm_trace_open(in_folder("one.json"), &about));
    file = load_json("one.json");
    assert_int_equal(json_array_size(json_object_get(file, "traceEvents")), 1);
    json_decref(file);
    assert_ok(bm_trace_block(10));
    span("forward", 1.000001, 1.0000035);
    span("block", 1, 1.5);
    run_thread(read_some);
    run_thread(read_some); /* reuses the track of the first one */
    assert_ok(bm_trace_block(11));
    file = load_json("one.json");
    assert_times(file, "forward", 1, 2.5, 10);
    assert_times(file, "block", 0, 5e5, 10);
    assert_times(file, "read", 2.5e5, 2.5e5, -1);
    assert_int_equal(count_spans(file, "read"), 2);
    assert_int_equal(count_spans(file, "early"), 0);
    assert_string_equal(thread_of(file, find_span(file, "block")), "computing");
    assert_string_equal(thread_of(file, find_span(file, "read")), "reader");
    assert_true(
        on_one_thread(find_span(file, "block"), find_span(file, "forward")));
    json_decref(file);
    span("backward", 2, 3.0000000004); /* to the nanosecond */
    assert_ok(bm_trace_close());
    span("late", 3, 4);
    assert_ok(bm_trace_close());
    file = load_json("one.json");
    assert_times(file, "backward", 1e6, 1e6, 11);
    assert_int_equal(count_spans(file, "late"), 0);
    assert_true(number(json_object_get(file, "otherData"), "attempt") == 2);
    json_decref(file);
    assert_int_equal(glob(in_folder(".*.tmp"), 0, NULL, &left), GLOB_NOMATCH);
}

enum { MANY = 500, BLOCKS = 20 };

static void *nest_many(void *unused)
{
    bm_span_thread("reader");
    for (int i = 0; i < MANY; i++) {
        bm_span outer = bm_span_begin("outer"), inner = bm_span_begin("inner");
        (void)bm_span_end(inner);
        inner = bm_span_begin("other");
        (void)bm_span_end(inner);
        (void)bm_span_end(outer);
    }
    return unused;
}

typedef struct extent {
    int tid;
    long long from, to;
} extent;

static int earlier_first(const void *a, const void *b)
{
    const extent *x = a, *y = b;

    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to < y->to) - (x->to > y->to);
}

/* A span that ends after a flush is written behind the spans that it
 * contains. */
static void assert_nested(const json_t *file)
{
    static extent all[4 * MANY * 3];
    const json_t *e = NULL;
    long long at[16][8] = {{0}}; /* ends of the open spans of each thread */
    int deep[16] = {0};
    size_t n = 0;

    FOR_EACH_SPAN(e, file)
    {
        assert_true(n < sizeof all / sizeof all[0]);
        all[n++] = (extent){(int)number(e, "tid"), begin_of(e), end_of(e)};
    }
    qsort(all, n, sizeof *all, earlier_first);
    for (size_t i = 0; i < n; i++) {
        int tid = all[i].tid;

        while (deep[tid] > 0 && at[tid][deep[tid] - 1] <= all[i].from)
            deep[tid]--;
        if (deep[tid] > 0)
            assert_true(all[i].to <= at[tid][deep[tid] - 1]);
        assert_true(deep[tid] < 8);
        at[tid][deep[tid]++] = all[i].to;
    }
}

/* The file that a kill between two flushes would leave. */
static void test_the_file_is_valid_while_threads_work(void **_)
{
    bm_trace_about a = about;
    pthread_t threads[3];
    json_t *file = NULL;

    (void)_;
    a.origin = bm_clock();
    a.offset = 0;
    a.window = (bm_trace_window){0, BLOCKS};
    assert_ok(bm_trace_open(in_folder("many.json"), &a));
    FOR_EACH (i, threads)
        assert_int_equal(pthread_create(&threads[i], NULL, nest_many, NULL), 0);
    for (int block = 0; block < BLOCKS; block++) {
        bm_span outer;
        assert_ok(bm_trace_block(block));
        outer = bm_span_begin("block");
        file = load_json("many.json");
        assert_int_equal(count_spans(file, "block"), block);
        json_decref(file);
        (void)bm_span_end(outer);
    }
    FOR_EACH (i, threads)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_ok(bm_trace_close());
    assert_int_equal(bm_trace_lost(), 0);
    file = load_json("many.json");
    assert_int_equal(count_spans(file, "block"), BLOCKS);
    assert_int_equal(count_spans(file, "outer"), 3 * MANY);
    assert_int_equal(count_spans(file, "inner"), 3 * MANY);
    assert_nested(file);
    json_decref(file);
}

static void test_a_failed_write_keeps_the_old_file(void **_)
{
    json_t *file = NULL;

    (void)_;
    assert_int_equal(bm_trace_open(in_folder("nowhere/x.json"), &about),
                     BM_ERR_CREATE);
    assert_false(bm_trace_is_open());
    assert_int_equal(mkdir(in_folder("kept"), 0777), 0);
    assert_ok(bm_trace_open(in_folder("kept/a.json"), &about));
    span("forward", 1, 2);
    assert_ok(bm_trace_block(11));
    assert_int_equal(rename(in_folder("kept"), in_folder("moved")), 0);
    assert_int_equal(bm_trace_block(12), BM_ERR_CREATE);
    assert_false(bm_trace_is_open());
    file = load_json("moved/a.json");
    assert_int_equal(count_spans(file, "forward"), 1);
    json_decref(file);
}

static void test_too_many_spans_are_counted(void **_)
{
    char line[512] = "";
    size_t lines = 0;
    FILE *file = NULL;

    (void)_;
    assert_ok(bm_trace_open(in_folder("full.json"), &about));
    for (int i = 0; i < BM_TRACE_MOST + 7; i++)
        bm_span_notify_end((bm_span){"x", 1}, 1);
    assert_int_equal(bm_trace_lost(), 7);
    assert_ok(bm_trace_close());
    file = fopen(in_folder("full.json"), "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL)
        lines += strstr(line, "\"x\"") != NULL;
    fclose(file);
    assert_int_equal(lines, BM_TRACE_MOST);
    assert_string_equal(line, "]}\n");
    remove(in_folder("full.json"));
}

static void test_windows_are_parsed(void **_)
{
    static const char *const bad[] = {"blocks",
                                      "blocks 1",
                                      "blocks 2:2",
                                      "blocks 3:2",
                                      "10:12",
                                      "blocks -1:2",
                                      "blocks 1:",
                                      "blocks :2",
                                      "blocks 1:2x",
                                      "blocks 1:2:3",
                                      "all",
                                      "blocks 1.5:2",
                                      "blocks 1:99999999999999999999"};
    bm_trace_window w = {1, 1};

    (void)_;
    assert_true(bm_trace_window_read("", &w));
    assert_true(w.first == 0 && w.end == 0);
    assert_true(bm_trace_window_read("blocks 10:12", &w));
    assert_true(w.first == 10 && w.end == 12);
    FOR_EACH (i, bad)
        if (bm_trace_window_read(bad[i], &w))
            fail_msg("%s is accepted", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_are_parsed),
        cmocka_unit_test(test_times_follow_the_clock),
        cmocka_unit_test(test_the_file_is_valid_while_threads_work),
        cmocka_unit_test(test_a_failed_write_keeps_the_old_file),
        cmocka_unit_test(test_too_many_spans_are_counted),
    };

    return cmocka_run_group_tests_name("trace", tests, folder_make,
                                       folder_remove);
}
