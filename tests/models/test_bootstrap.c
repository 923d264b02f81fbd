/*
 * Intervals against what they must be: all draws of a few sequences counted,
 * the binomial distribution, and the normal one for differences.
 */
#include "core/rng.h"
#include "models/bootstrap.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FEW = 5, DRAWS_OF_FEW = 5 * 5 * 5 * 5 * 5 };

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Every draw of FEW sequences is equally probable: rates [DRAWS_OF_FEW],
 * sorted. */
static void all_draws(const bm_error_count count[FEW], double *rates)
{
    for (int draw = 0; draw < DRAWS_OF_FEW; draw++) {
        double errors = 0, total = 0;

        for (int k = 0, rest = draw; k < FEW; k++, rest /= FEW) {
            errors += count[rest % FEW].errors;
            total += count[rest % FEW].total;
        }
        rates[draw] = errors / total;
    }
    qsort(rates, DRAWS_OF_FEW, sizeof *rates, compare);
}

/* The quantile of 10,000 random draws is between the exact ones of p - 0.006
 * and p + 0.006, which is four standard deviations of a share of 0.025. */
static void assert_quantile(double got, const double *rates, double p)
{
    size_t low = (size_t)floor((p - 0.0063) * DRAWS_OF_FEW);
    size_t high = (size_t)ceil((p + 0.0063) * DRAWS_OF_FEW);

    assert_true(got >= rates[low] - 1e-12 && got <= rates[high] + 1e-12);
}

static void test_the_interval_is_that_of_all_draws(void **_)
{
    static double rates[DRAWS_OF_FEW];
    const bm_error_count sets[][FEW] = {
        {{1, 10}, {0, 3}, {4, 12}, {2, 5}, {0, 20}},
        {{-2, 10}, {1, 4}, {0, 6}, {-1, 9}, {1, 5}},
    };

    (void)_;
    for (size_t s = 0; s < sizeof sets / sizeof sets[0]; s++) {
        bm_interval got = {0};
        double below = 0;

        all_draws(sets[s], rates);
        assert_int_equal(bm_bootstrap(sets[s], FEW, &got), BM_OK);
        assert_quantile(got.low, rates, 0.025);
        assert_quantile(got.high, rates, 0.975);
        for (int i = 0; i < DRAWS_OF_FEW; i++)
            below += rates[i] < -1e-12 ? 1 : rates[i] < 1e-12 ? 0.5 : 0;
        assert_true(near(got.below, below / DRAWS_OF_FEW, 0.02));
    }
}

static void test_one_sequence_has_no_interval(void **_)
{
    const bm_error_count a[] = {{3, 10}, {0, 0}}, b[] = {{1, 10}, {0, 0}};
    bm_interval of = {0}, difference = {0};

    (void)_;
    for (size_t n = 1; n <= 2; n++) { /* the second one has no label */
        assert_ok(bm_bootstrap(a, n, &of));
        assert_true(near(of.rate, 0.3, 1e-15));
        assert_true(isnan(of.low) && isnan(of.high) && isnan(of.below));
        assert_ok(bm_bootstrap_difference(a, b, n, &difference));
        assert_true(near(difference.rate, -0.2, 1e-15));
        assert_true(isnan(difference.low) && isnan(difference.below));
    }
}

/* n sequences of a label each, k of them wrong: the number of errors in a draw
 * is binomial with p = k / n. */
static void test_single_labels_have_the_binomial_interval(void **_)
{
    enum { N = 400, K = 60 };
    static bm_error_count count[N];
    bm_interval got = {0};
    double p = (double)K / N, term = pow(1 - p, N), sum = 0;
    int low = -1, high = -1;

    (void)_;
    for (int i = 0; i < N; i++)
        count[i] = (bm_error_count){i % 20 < 3, 1};
    for (int k = 0; k <= N && high < 0; k++) {
        sum += term;
        if (low < 0 && sum >= 0.025)
            low = k;
        if (sum >= 0.975)
            high = k;
        term *= (double)(N - k) / (k + 1) * p / (1 - p);
    }
    assert_int_equal(bm_bootstrap(count, N, &got), BM_OK);
    assert_true(near(got.rate, p, 1e-12));
    assert_true(near(got.low * N, low, 1.01));
    assert_true(near(got.high * N, high, 1.01));
    assert_true(got.below == 0);
}

/* The standard normal distribution's share below x. */
static double below_normal(double x)
{
    return 0.5 * erfc(-x / sqrt(2));
}

/* The difference of two systems on n sequences of a label each is nearly normal:
 * its mean over its standard deviation gives interval and probability. */
static void test_differences_have_the_normal_interval(void **_)
{
    enum { N = 2000 };
    static bm_error_count a[N], b[N];
    bm_rng rng = bm_rng_make(3, "test", 0);
    bm_interval got = {0}, back = {0};
    double mean = 0, square = 0, deviation = 0;

    (void)_;
    for (int i = 0; i < N; i++) {
        a[i] = (bm_error_count){bm_rng_uniform(&rng) < 0.12, 1};
        b[i] = (bm_error_count){bm_rng_uniform(&rng) < 0.11, 1};
        mean += (b[i].errors - a[i].errors) / N;
        square += pow(b[i].errors - a[i].errors, 2) / N;
    }
    deviation = sqrt((square - mean * mean) / N);
    assert_int_equal(bm_bootstrap_difference(a, b, N, &got), BM_OK);
    assert_true(near(got.rate, mean, 1e-12));
    assert_true(near(got.low, mean - 1.96 * deviation, 0.1 * deviation));
    assert_true(near(got.high, mean + 1.96 * deviation, 0.1 * deviation));
    assert_true(near(got.below, below_normal(-mean / deviation), 0.02));
    assert_int_equal(bm_bootstrap_difference(b, a, N, &back), BM_OK);
    assert_true(near(back.rate, -got.rate, 1e-15));
    assert_true(near(back.below, 1 - got.below, 1e-12));
    assert_true(near(back.low, -got.high, 1e-12));
}

/* Errors of both systems in the same sequences: the difference is known much
 * better than either rate. */
static void test_paired_draws_cancel_what_systems_share(void **_)
{
    enum { N = 300 };
    static bm_error_count a[N], b[N];
    bm_interval one = {0}, difference = {0};

    (void)_;
    for (int i = 0; i < N; i++) {
        a[i] = (bm_error_count){i % 5 == 0 ? 4 : 0, 10};
        b[i] = (bm_error_count){i % 5 == 0 ? 3 : 0, 10};
    }
    assert_int_equal(bm_bootstrap(a, N, &one), BM_OK);
    assert_int_equal(bm_bootstrap_difference(a, b, N, &difference), BM_OK);
    assert_true(near((difference.high - difference.low) / (one.high - one.low),
                     0.25, 1e-9));
    assert_true(difference.below == 1);
}

static void test_equal_systems_do_not_differ(void **_)
{
    const bm_error_count a[] = {{1, 4}, {0, 4}, {2, 9}};
    bm_interval got = {0};

    (void)_;
    assert_int_equal(bm_bootstrap_difference(a, a, 3, &got), BM_OK);
    assert_true(got.rate == 0 && got.low == 0 && got.high == 0);
    assert_true(got.below == 0.5);
}

/* More sequences than groups: the interval of a mean is as wide as before
 * pooling, sqrt(p (1 - p) / n) each side. */
static void test_many_sequences_are_pooled(void **_)
{
    enum { N = 3 * BM_DRAWN_GROUPS + 7 };
    bm_error_count *count = calloc(N, sizeof *count);
    bm_rng rng = bm_rng_make(5, "test", 0);
    bm_interval got = {0};
    double p = 0;

    (void)_;
    assert_non_null(count);
    for (int i = 0; i < N; i++) {
        count[i] = (bm_error_count){bm_rng_uniform(&rng) < 0.1, 1};
        p += count[i].errors / N;
    }
    assert_int_equal(bm_bootstrap(count, N, &got), BM_OK);
    assert_true(near(got.rate, p, 1e-12));
    assert_true(near((got.high - got.low) / (2 * 1.96 * sqrt(p * (1 - p) / N)),
                     1, 0.06));
    free(count);
}

static void test_without_labels_there_is_no_rate(void **_)
{
    const bm_error_count none[] = {{0, 0}, {0, 0}};
    bm_interval got = {0};

    (void)_;
    assert_int_equal(bm_bootstrap(none, 2, &got), BM_OK);
    assert_true(isnan(got.rate) && isnan(got.low) && isnan(got.high));
    assert_int_equal(bm_bootstrap(none, 0, &got), BM_OK);
    assert_true(isnan(got.rate) && isnan(got.below));
}

static void test_equal_counts_give_equal_bits(void **_)
{
    const bm_error_count a[] = {{1, 4}, {0, 4}, {2, 9}, {0, 1}};
    bm_interval one = {0}, two = {0};

    (void)_;
    assert_int_equal(bm_bootstrap(a, 4, &one), BM_OK);
    assert_int_equal(bm_bootstrap(a, 4, &two), BM_OK);
    assert_memory_equal(&one, &two, sizeof one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_sequence_has_no_interval),
        cmocka_unit_test(test_the_interval_is_that_of_all_draws),
        cmocka_unit_test(test_single_labels_have_the_binomial_interval),
        cmocka_unit_test(test_differences_have_the_normal_interval),
        cmocka_unit_test(test_paired_draws_cancel_what_systems_share),
        cmocka_unit_test(test_equal_systems_do_not_differ),
        cmocka_unit_test(test_many_sequences_are_pooled),
        cmocka_unit_test(test_without_labels_there_is_no_rate),
        cmocka_unit_test(test_equal_counts_give_equal_bits),
    };

    return RUN_GROUP("bootstrap", tests);
}
