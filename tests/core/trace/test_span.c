/* Spans are reported to watchers in order. */
#include "core/trace/span.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include "models/model.h"

#include <stdio.h>
#include <string.h>

static char events[512]; /* "forward< forward> " */
static double least = 1e9;

static void add(const char *name, const char *sign)
{
    size_t n = strlen(events);

    snprintf(events + n, sizeof events - n, "%s%s ", name, sign);
}

static void begin(const char *name)
{
    add(name, "<");
}

static void end(const char *name, double began, double ended)
{
    add(name, ">");
    least = ended - began < least ? ended - began : least;
}

static const bm_span_watcher watcher = {begin, end};

/* Must be the first test: watchers stay. */
static void test_an_unwatched_span_measures_time(void **state)
{
    double before = bm_clock(), seconds = 0;
    bm_span span = bm_span_begin("alone");

    (void)state;
    assert_true(span.began >= before);
    seconds = bm_span_end(span);
    assert_true(seconds >= 0 && seconds <= bm_clock() - before);
    assert_string_equal(events, "");
    assert_false(bm_span_watched);
}

static void test_spans_nest(void **state)
{
    bm_span outer, inner;
    double seconds = 0;

    (void)state;
    events[0] = '\0';
    bm_span_watch(&watcher);
    bm_span_watch(&watcher); /* no-op */
    outer = bm_span_begin("outer");
    inner = bm_span_begin("inner");
    seconds = bm_span_end(inner);
    assert_true(bm_span_end(outer) >= seconds);
    assert_string_equal(events, "outer< inner< inner> outer> ");
    assert_true(least >= 0);
}

static void test_a_gradient_is_forward_loss_and_backward(void **state)
{
    enum { T = 3, B = 2, D = 4, C = 5 };
    static const int32_t frames[B] = {3, 2}, classes[5] = {1, 2, 3, 4, 0};
    bm_model_settings settings = {"linear:6 relu linear", "cross_entropy",
                                  "skip"};
    bm_model_shape shape = {D, C, 1};
    bm_batch batch = {.extent = {T, B, frames}, .targets = {classes, frames}};
    float x[T * B * D] = {1};
    bm_model *m = NULL;

    (void)state;
    bm_span_watch(&watcher);
    batch.x = (bm_tensor){x, 3, {T, B, D, 1}};
    assert_ok(bm_model_new(&m, &settings, &shape, cpu, 1));
    events[0] = '\0';
    bm_model_gradient(m, &batch, 0, 0);
    assert_ok(bm_sync(cpu));
    assert_string_equal(events, "forward< forward> loss< loss> "
                                "backward< backward> ");
    bm_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_unwatched_span_measures_time),
        cmocka_unit_test(test_spans_nest),
        cmocka_unit_test(test_a_gradient_is_forward_loss_and_backward),
    };

    return cmocka_run_group_tests_name("span", tests, open_cpu, close_cpu);
}
