/* How a gradient is cut into buckets. */
#include "bmuf/exchange/buckets.h"
#include "comm/sum/sum.h"
#include "tests/support/reference/cuts.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = BM_SUM_CHUNK };

static const bm_range some[] = {{41000, 3000}, {40900, 100}, {40100, 800},
                                {9216, 30884}, {9000, 216},  {0, 9000}};

static const bm_params cuttable = {
    .n = 44000, .n_learned = 44000, .ranges = some, .n_ranges = 6};

static void test_layers_become_buckets_of_whole_chunks(void **state)
{
    /* 9000 to 9216 is within a chunk, 40100 to 41000, too. */
    static const bm_bucket expected[] = {
        {41984, 2016, 0}, {40960, 1024, 1}, {9216, 31744, 3}, {0, 9216, 5}};
    bm_bucket b[BM_BUCKETS + 1];

    (void)state;
    assert_int_equal(bm_buckets_of_layers(&cuttable, b), 4);
    assert_memory_equal(b, expected, sizeof expected);
    check_cut(&cuttable, 4, b);
}

/* Complete with layer 0, and not adjacent to it. */
static void test_statistics_are_the_last_bucket(void **state)
{
    bm_params p = cuttable;
    bm_bucket b[BM_BUCKETS + 1];
    size_t n = 0;

    (void)state;
    p.n += 100;
    n = bm_buckets_of_layers(&p, b);
    assert_int_equal(n, 5);
    assert_int_equal(b[4].offset, 42 * CHUNK);
    check_cut(&p, n, b);
    n = bm_buckets_fill(n, b, 1e9);
    assert_int_equal(n, 2);
    check_cut(&p, n, b);
    p.n_learned = 44000 - 1; /* within the same chunk */
    n = bm_buckets_of_layers(&p, b);
    check_cut(&p, n, b);
}

static void test_small_or_unknown_models_are_one_bucket(void **state)
{
    static const bm_range halves[] = {{50, 50}, {0, 50}};
    const bm_params small = {.n = 120,
                             .n_learned = 100,
                             .ranges = halves,
                             .n_ranges = 2},
                    plain = {.n = 5000, .n_learned = 5000};
    bm_bucket b[BM_BUCKETS + 1];

    (void)state;
    assert_int_equal(bm_buckets_of_layers(&small, b), 1);
    check_cut(&small, 1, b);
    assert_int_equal(bm_buckets_of_layers(&plain, b), 1);
    assert_true(b[0].offset == 0 && b[0].n == 5000 && b[0].range == 0);
}

/* Ten layers of two chunks, 8192 bytes each. */
static void test_buckets_are_filled_to_a_size(void **state)
{
    static const struct {
        double bytes;
        size_t n, layers[10]; /* in each bucket */
    } cases[] = {
        {1, 10, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}},
        {8193, 6, {1, 2, 2, 2, 2, 1}}, /* filled beyond it */
        {3 * 8192, 4, {1, 3, 3, 3}},
        {25 * 8193., 2, {2, 8}}, /* the first has a 25th */
        {1e9, 1, {10}},
    };
    bm_bucket b[BM_BUCKETS + 1];

    (void)state;
    FOR_EACH (i, cases) {
        size_t at = 0, n = 0;

        for (size_t k = 0; k < 10; k++)
            b[k] = (bm_bucket){(9 - k) * 2 * CHUNK, 2 * CHUNK, k};
        n = bm_buckets_fill(10, b, cases[i].bytes);
        assert_int_equal(n, cases[i].n);
        for (size_t k = 0; k < n; k++) {
            at += cases[i].layers[k];
            assert_int_equal(b[k].n, cases[i].layers[k] * 2 * CHUNK);
            assert_int_equal(b[k].offset, (10 - at) * 2 * CHUNK);
            assert_int_equal(b[k].range, at - 1);
        }
    }
}

enum { L = 12 };

/* s_l: s_L = ready_L, s_k = max(s_{k+1} + t_c(k+1), ready_k). */
static double start(const double *ready, const double *t_c, int l)
{
    double s = ready[L];

    for (int k = L - 1; k >= l; k--)
        s = fmax(s + t_c[k + 1], ready[k]);
    return s;
}

/* The rule of MG-WFBP, with layers counted from 1; merged[l]: layer l is joined
 * to l - 1. */
static void merge_by_the_rule(const double *t_b, const double *bytes,
                              double alpha, double beta, bool *merged)
{
    double ready[L + 1] = {0}, t_c[L + 1], load[L + 1];

    for (int l = 1; l <= L; l++) {
        for (int k = l; k <= L; k++)
            ready[l] += t_b[k];
        load[l] = bytes[l];
        t_c[l] = alpha + beta * load[l];
    }
    for (int l = L; l >= 2; l--) {
        double s = start(ready, t_c, l);

        merged[l] = ready[l - 1] < s + t_c[l] &&
                    (s > ready[l - 1] || ready[l - 1] - s < alpha);
        if (!merged[l])
            continue;
        load[l - 1] += load[l];
        t_c[l] = 0;
        t_c[l - 1] = alpha + beta * load[l - 1];
    }
}

/* Reproducible numbers in (0, 1). */
static double made_up(int i)
{
    return fmod(0.5 + 0.6180339887498949 * i * i, 1);
}

/* On invented times, from networks that hide everything to ones that hide
 * nothing. */
static void test_merged_buckets_follow_the_rule(void **state)
{
    int joined = 0, apart = 0;

    (void)state;
    for (int seed = 0; seed < 300; seed++) {
        double t_b[L + 1], bytes[L + 1], seconds[L];
        double alpha = pow(10, 4 * made_up(seed) - 3);
        double beta = pow(10, 4 * made_up(seed + 7) - 8);
        bool merged[L + 1] = {false};
        bm_bucket b[BM_BUCKETS + 1];
        size_t at = 0, n = 0;

        for (int l = L; l >= 1; l--) {
            size_t chunks = 1 + (size_t)(20 * made_up(100 * seed + l));

            t_b[l] = made_up(100 * seed + 50 + l);
            seconds[L - l] = l == L ? 0 : t_b[l]; /* nobody sees the first */
            bytes[l] = (double)(chunks * CHUNK * sizeof(float));
            b[L - l] = (bm_bucket){0, chunks * CHUNK, (size_t)(L - l)};
        }
        for (int k = L - 2; k >= 0; k--)
            b[k].offset = b[k + 1].offset + b[k + 1].n;
        merge_by_the_rule(t_b, bytes, alpha, beta, merged);
        n = bm_buckets_merge(L, b, seconds, alpha, beta);
        for (int l = L; l >= 1; l--) {
            size_t left = l == 1 || !merged[l];

            assert_true(at < n);
            if (left)
                assert_int_equal(b[at].range, L - l);
            at += left;
            joined += l > 1 && merged[l];
            apart += l > 1 && !merged[l];
        }
        assert_int_equal(at, n);
    }
    assert_true(joined > 300 && apart > 300);
}

static void test_a_line_is_fitted(void **state)
{
    static const double x[] = {1, 2, 4, 8}, falls[] = {4, 3, 2, 1};
    /* 3 + x / 2, and off it by e with sum e = sum e x = 0 */
    static const double t[] = {3.5 + 2, 4 - 3, 5 + 1, 7};
    double a = 0, b = 0;

    (void)state;
    bm_buckets_line(4, x, t, &a, &b);
    assert_true(near(a, 3, 1e-12) && near(b, 0.5, 1e-12));
    bm_buckets_line(4, x, falls, &a, &b);
    assert_true(near(a, 2.5, 1e-12) && b == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layers_become_buckets_of_whole_chunks),
        cmocka_unit_test(test_statistics_are_the_last_bucket),
        cmocka_unit_test(test_small_or_unknown_models_are_one_bucket),
        cmocka_unit_test(test_buckets_are_filled_to_a_size),
        cmocka_unit_test(test_merged_buckets_follow_the_rule),
        cmocka_unit_test(test_a_line_is_fitted),
    };
    return RUN_GROUP("buckets", tests);
}
