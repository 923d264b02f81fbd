/*
 * CTC against known answers of other programs, recomputed in double, in
 * BMUF_DATA/../reference/known_answers (its README describes them). Skipped if
 * they are absent. There the blank may be any class; here it is 0.
 */
#include "tests/support/program.h"
#include "tests/support/reference/support_ctc.h"
#include "tests/support/support_backend.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>

/* Inputs are rounded to float, which changes a loss by some 1e-7 of the logits;
 * the rest is for sums over many frames. */
static const double loss_tolerance = 1e-6;

static const json_t *known; /* the whole file */

static const json_t *field(const json_t *item, const char *name)
{
    const json_t *value = json_object_get(item, name);
    assert_non_null(value);
    return value;
}

static double number(const json_t *item, const char *name)
{
    return json_number_value(field(item, name));
}

static size_t size(const json_t *item, const char *name)
{
    return (size_t)json_integer_value(field(item, name));
}

/* The number of class k when the blank is moved to the front. */
static size_t moved(size_t k, size_t blank)
{
    return k == blank ? 0 : k < blank ? k + 1 : k;
}

static size_t read_labels(const json_t *item, size_t blank, int32_t **out)
{
    const json_t *array = field(item, "label");
    size_t n = json_array_size(array);

    *out = zeros(n, sizeof **out);
    for (size_t i = 0; i < n; i++) {
        size_t k = (size_t)json_integer_value(json_array_get(array, i));
        (*out)[i] = (int32_t)moved(k, blank);
    }
    return n;
}

static double at(const json_t *rows, size_t t, size_t k)
{
    return json_number_value(json_array_get(json_array_get(rows, t), k));
}

static void check_gradient(const json_t *rows, size_t T, size_t C, size_t blank,
                           const float *dy)
{
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < C; k++)
            assert_true(near((double)dy[t * C + moved(k, blank)],
                             at(rows, t, k), 1e-6));
}

static void check_case(const json_t *item)
{
    size_t T = size(item, "T"), C = size(item, "C"), L = 0;
    size_t blank = size(item, "blank");
    float *y = zeros(T * C, sizeof *y), *dy = zeros(T * C, sizeof *dy);
    int32_t *labels = NULL;
    bm_score score;

    print_message("%s\n", json_string_value(field(item, "name")));
    L = read_labels(item, blank, &labels);
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < C; k++)
            y[t * C + moved(k, blank)] = (float)at(field(item, "logits"), t, k);
    score = ctc_alone(T, C, y, labels, L, dy);
    if (json_is_true(field(item, "feasible"))) {
        assert_true(score.sequences == 1);
        assert_true(near(score.loss, number(item, "loss"), loss_tolerance));
        check_gradient(field(item, "grad"), T, C, blank, dy);
    } else {
        assert_true(score.skipped == 1 && score.sequences == 0);
        for (size_t i = 0; i < T * C; i++)
            assert_true(dy[i] == 0);
    }
    free(labels);
    free(y);
    free(dy);
}

static void test_cases_match_other_programs(void **state)
{
    const json_t *item = NULL;
    size_t i = 0;

    (void)state;
    json_array_foreach(field(known, "cases"), i, item) check_case(item);
    assert_true(i > 0);
}

static void check_formula(const json_t *item)
{
    size_t T = size(item, "T"), C = size(item, "C"), L = 0;
    float *y = zeros(T * C, sizeof *y), *dy = zeros(T * C, sizeof *dy);
    const json_t *first = field(item, "grad_t0");
    const json_t *last = field(item, "grad_tlast");
    double sum = 0, squares = 0;
    int32_t *labels = NULL;
    bm_score score;

    L = read_labels(item, 0, &labels);
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < C; k++)
            y[t * C + k] =
                (float)(2 * sin(1.7 * (double)t + 0.9 * (double)(k * k) + 0.3));
    score = ctc_alone(T, C, y, labels, L, dy);
    assert_true(near(score.loss, number(item, "loss"), loss_tolerance));
    for (size_t i = 0; i < T * C; i++) {
        sum += fabs((double)dy[i]);
        squares += (double)dy[i] * (double)dy[i];
    }
    assert_true(near(sum, number(item, "grad_abs_sum"), 1e-5));
    assert_true(near(squares, number(item, "grad_sq_sum"), 1e-5));
    for (size_t k = 0; k < json_array_size(first); k++) {
        double a = json_number_value(json_array_get(first, k));
        double b = json_number_value(json_array_get(last, k));
        assert_true(near((double)dy[k], a, 2e-5));
        assert_true(near((double)dy[(T - 1) * C + k], b, 2e-5));
    }
    free(labels);
    free(y);
    free(dy);
}

static void test_cases_with_inputs_by_formula_match(void **state)
{
    const json_t *item = NULL;
    size_t i = 0;

    (void)state;
    json_array_foreach(field(known, "formula"), i, item) check_formula(item);
    assert_true(i > 0);
}

/* Labels with r equal pairs of neighbours, whichever. */
static void check_uniform(const json_t *item)
{
    size_t T = size(item, "T"), C = size(item, "C"), L = size(item, "L");
    size_t r = size(item, "r");
    float *y = zeros(T * C, sizeof *y);
    int32_t *labels = zeros(L, sizeof *labels);

    for (size_t i = 0; i < L; i++)
        labels[i] = 1 + (i <= r ? 0 : (int32_t)((i - r) % (C - 1)));
    assert_true(near(ctc_alone(T, C, y, labels, L, NULL).loss,
                     number(item, "loss"), loss_tolerance));
    free(y);
    free(labels);
}

static void test_cases_with_equal_logits_match(void **state)
{
    const json_t *item = NULL;
    size_t i = 0;

    (void)state;
    json_array_foreach(field(known, "uniform"), i, item)
    {
        if (!short_tests() || size(item, "T") <= 1000)
            check_uniform(item);
    }
    assert_true(i > 0);
}

static void test_cases_with_thousands_of_classes_match(void **state)
{
    enum { T = 8, C = 6000, N = 2 };
    const json_t *items = field(known, "large_classes"), *item = NULL;
    batch b = batch_new(T, N, C);
    float *y = zeros((size_t)T * C, sizeof *y);
    double loss = 0;
    size_t n = 0;

    (void)state;
    assert_int_equal(json_array_size(items), N);
    json_array_foreach(items, n, item)
    {
        int32_t *labels = NULL;
        size_t L = read_labels(item, 0, &labels);

        for (size_t i = 0; i < (size_t)T * C; i++) {
            long f = (long)((i / C * N + n) * C + i % C);
            long v = (f / 16 - f % 16) % C;
            y[i] = (float)((double)(v < 0 ? v + C : v) / 13);
        }
        batch_put(&b, n, T, y, labels, L);
        loss += number(item, "loss");
        assert_true(near(ctc_alone(T, C, y, labels, L, NULL).loss,
                         number(item, "loss"), loss_tolerance));
        free(labels);
    }
    batch_run(&b, "ctc", BM_INFEASIBLE_SKIP);
    assert_true(near(b.score.loss, loss, loss_tolerance));
    assert_true(b.score.sequences == N);
    batch_free(&b);
    free(y);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases_match_other_programs),
        cmocka_unit_test(test_cases_with_inputs_by_formula_match),
        cmocka_unit_test(test_cases_with_equal_logits_match),
        cmocka_unit_test(test_cases_with_thousands_of_classes_match),
    };
    json_t *file = known_answers();
    int failed = 0;

    if (file == NULL)
        return SKIPPED;
    if (argc > 1)
        loss_backend = argv[1];
    known = file;
    failed = have_backend(loss_backend) ? RUN_GROUP("known answers", tests)
                                        : SKIPPED;
    loss_close();
    json_decref(file);
    return failed;
}
