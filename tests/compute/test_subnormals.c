/* Numbers that are too small for float. */
#include "compute/cpu/subnormals.h"
#include "compute/cpu/thread_pool.h"
#include "io/shard/store.h"
#include "tests/support/support.h"

#include <string.h>

/* IEEE 754: the smallest normal float is 2^-126; half of it is subnormal. */
static float half_of_smallest(void)
{
    volatile float smallest = 0x1p-126f;

    return smallest * 0.5f;
}

static void halve(void *self, size_t part)
{
    ((float *)self)[part] = half_of_smallest();
}

static void test_results_are_zero_in_all_threads(void **state)
{
    bm_thread_pool *pool = NULL;
    float results[64];

    (void)state;
    memset(results, 1, sizeof results);
    assert_true(half_of_smallest() > 0);
    bm_subnormals_to_zero();
    assert_int_equal(bm_thread_pool_open(&pool, 3), BM_OK);
    bm_thread_pool_run(pool, 64, halve, results);
    bm_thread_pool_close(pool);
    for (size_t i = 0; i < 64; i++)
        assert_true(results[i] == 0);
}

static void test_operands_are_zero(void **state)
{
    volatile float x = 0;
    float subnormal = 0x1p-130f;

    (void)state;
    memcpy((float *)&x, &subnormal, sizeof subnormal);
    assert_true(x * 0x1p30f == 0);
}

/* IEEE 754: a subnormal half is m 2^-24, a normal float. */
static void test_subnormal_halves_are_kept(void **state)
{
    const uint16_t halves[] = {0x0001, 0x03ff, 0x8200, 0x0400};
    const float expected[] = {0x1p-24f, 0x3ffp-24f, -0x1p-15f, 0x1p-14f};
    float x[4];

    (void)state;
    bm_store_unpack(BM_STORE_F16, halves, x, 4, 1, NULL, NULL);
    for (size_t i = 0; i < 4; i++)
        assert_true(x[i] == expected[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_results_are_zero_in_all_threads),
        cmocka_unit_test(test_operands_are_zero),
        cmocka_unit_test(test_subnormal_halves_are_kept),
    };
    return RUN_GROUP("subnormals", tests);
}
