/* Random numbers: known values, moments, permutations. */
#include "core/rng.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>

static void test_numbers_match_splitmix64(void **state)
{
    /* The reference implementation's first outputs for seed 1234567. */
    static const uint64_t known[] = {6457827717110365317u, 3203168211198807973u,
                                     9817491932198370423u, 4593380528125082431u,
                                     16408922859458223821u};
    bm_rng rng = {1234567, 0};

    (void)state;
    FOR_EACH (k, known) {
        assert_true(bm_rng_at(1234567, k) == known[k]);
        assert_true(bm_rng_bits(&rng) == known[k]);
    }
}

static void test_a_stream_depends_on_seed_name_and_worker(void **state)
{
    bm_rng rng = bm_rng_make(1, "dropout", 2), again = rng;
    uint64_t keys[] = {rng.key,
                       bm_rng_make(2, "dropout", 2).key,
                       bm_rng_make(1, "dropout", 3).key,
                       bm_rng_make(1, "weights", 2).key,
                       bm_rng_make(1, "dropou", 2).key,
                       bm_rng_make(1, "", 2).key,
                       bm_rng_make(2, "dropout", 1).key,
                       bm_rng_fork(rng.key, 0),
                       bm_rng_fork(rng.key, 1),
                       bm_rng_fork(bm_rng_fork(rng.key, 0), 1),
                       bm_rng_fork(bm_rng_fork(rng.key, 1), 0)};

    (void)state;
    FOR_EACH (i, keys)
        for (size_t k = 0; k < i; k++)
            assert_true(keys[i] != keys[k]);
    for (int i = 0; i < 10; i++)
        bm_rng_uniform(&rng);
    again.next = 10; /* a restart needs only the count */
    for (int i = 0; i < 10; i++)
        assert_true(bm_rng_bits(&rng) == bm_rng_bits(&again));
}

static void test_uniform_numbers_are_uniform(void **state)
{
    enum { CELLS = 64, DRAWS = 64000 };
    const double mean = (double)DRAWS / CELLS;
    bm_rng rng = bm_rng_make(5, "test", 0);
    int cell[CELLS] = {0};
    double chi = 0, sum = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double x = bm_rng_uniform(&rng);
        assert_true(x >= 0 && x < 1);
        cell[(int)(x * CELLS)]++;
        sum += x;
    }
    for (int i = 0; i < CELLS; i++)
        chi += pow(cell[i] - mean, 2) / mean;
    /* chi-square of 63 degrees of freedom: 63 +- 11.2; five sigma. */
    assert_true(chi > 63 - 56 && chi < 63 + 56);
    assert_true(near(sum / DRAWS, 0.5, 5 * sqrt(1.0 / 12 / DRAWS)));
}

static void test_normal_numbers_have_their_moments(void **state)
{
    enum { DRAWS = 100000 };
    bm_rng rng = bm_rng_make(6, "test", 0);
    double m1 = 0, m2 = 0, m4 = 0, beyond = 0;

    (void)state;
    for (int i = 0; i < DRAWS; i++) {
        double x = bm_rng_normal(&rng);
        assert_true(isfinite(x));
        m1 += x / DRAWS;
        m2 += x * x / DRAWS;
        m4 += pow(x, 4) / DRAWS;
        beyond += (fabs(x) > 2) / (double)DRAWS;
    }
    /* Variances of the estimates: 1, 2 and 96 over the number of draws. */
    assert_true(fabs(m1) < 5 * sqrt(1.0 / DRAWS));
    assert_true(fabs(m2 - 1) < 5 * sqrt(2.0 / DRAWS));
    assert_true(fabs(m4 - 3) < 5 * sqrt(96.0 / DRAWS));
    assert_true(fabs(beyond - erfc(sqrt(2))) < 5 * sqrt(0.0455 / DRAWS));
}

static void test_integers_are_below_n_and_uniform(void **state)
{
    enum { DRAWS = 70000 };
    static const uint64_t ends[] = {1, 2, 7, ((uint64_t)1 << 63) + 1,
                                    UINT64_MAX};
    bm_rng rng = bm_rng_make(7, "test", 0);
    int count[7] = {0}, high = 0;

    (void)state;
    FOR_EACH (i, ends)
        for (int k = 0; k < 1000; k++)
            assert_true(bm_rng_below(&rng, ends[i]) < ends[i]);
    for (int i = 0; i < DRAWS; i++) {
        count[bm_rng_below(&rng, 7)]++;
        /* x % n would fall below 2^62 in half of the cases, not a third. */
        high += bm_rng_below(&rng, (uint64_t)3 << 62) < (uint64_t)1 << 62;
    }
    for (int i = 0; i < 7; i++) /* sigma: sqrt(10000 * 6 / 7) = 93 */
        assert_true(abs(count[i] - DRAWS / 7) < 5 * 93);
    assert_true(fabs(high - DRAWS / 3.0) < 5 * sqrt(DRAWS * 2.0 / 9));
}

static void test_shuffles_are_uniform_permutations(void **state)
{
    enum { MANY = 1000, DRAWS = 24000 };
    bm_rng rng = bm_rng_make(8, "test", 0), again = rng;
    size_t x[MANY], y[MANY], small[4];
    bool seen[MANY] = {false};
    int count[256] = {0}, orders = 0;

    (void)state;
    for (size_t i = 0; i < MANY; i++)
        x[i] = y[i] = i;
    bm_rng_shuffle(&rng, x, MANY);
    bm_rng_shuffle(&again, y, MANY);
    assert_memory_equal(x, y, sizeof x);
    for (size_t i = 0; i < MANY; i++) {
        assert_true(x[i] < MANY && !seen[x[i]]);
        seen[x[i]] = true;
    }
    for (int i = 0; i < DRAWS; i++) {
        for (size_t k = 0; k < 4; k++)
            small[k] = k;
        bm_rng_shuffle(&rng, small, 4);
        count[small[0] + 4 * small[1] + 16 * small[2] + 64 * small[3]]++;
    }
    FOR_EACH (i, count) {
        orders += count[i] > 0;
        assert_true(count[i] == 0 || abs(count[i] - DRAWS / 24) < 5 * 31);
    }
    assert_int_equal(orders, 24);
    bm_rng_shuffle(&rng, small, 0);
    bm_rng_shuffle(&rng, small, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_match_splitmix64),
        cmocka_unit_test(test_a_stream_depends_on_seed_name_and_worker),
        cmocka_unit_test(test_uniform_numbers_are_uniform),
        cmocka_unit_test(test_normal_numbers_have_their_moments),
        cmocka_unit_test(test_integers_are_below_n_and_uniform),
        cmocka_unit_test(test_shuffles_are_uniform_permutations),
    };
    return cmocka_run_group_tests_name("rng", tests, NULL, NULL);
}
