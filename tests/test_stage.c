/* Input that is written while earlier input is computed with. */
#include "tests/support.h"
#include "tests/support_backend.h"

#include <stdlib.h>

static const char *backend = "cpu";

static bm_backend *open_backend(void)
{
    bm_backend *be = NULL;
    assert_ok(bm_backend_open(&be, backend, 0));
    return be;
}

/* Mini-batch k of n numbers. */
static float value(size_t k, size_t i)
{
    return (float)(100 * k + i % 97);
}

/* sum += input for each, with nobody waiting in between: every number has to be
 * there when it is added, and not be another one's yet. */
static void add_up(bm_stage *stage, bm_backend *be, const size_t *sizes,
                   size_t count, float *sum)
{
    for (size_t k = 0; k < count; k++) {
        float *host = NULL;

        assert_ok(bm_stage_room(stage, sizes[k], &host));
        for (size_t i = 0; i < sizes[k]; i++)
            host[i] = value(k, i);
        bm_axpby(be, sizes[k], 1, bm_stage_send(stage, sizes[k]), 1, sum);
    }
}

static void assert_sums(bm_backend *be, const size_t *sizes, size_t count,
                        const float *sum, size_t most)
{
    float *got = fetch(be, sum, most);

    for (size_t i = 0; i < most; i++) {
        float expected = 0;
        for (size_t k = 0; k < count; k++)
            expected += i < sizes[k] ? value(k, i) : 0;
        assert_true(got[i] == expected);
    }
    free(got);
}

static void test_every_mini_batch_is_the_one_that_was_written(void **state)
{
    enum { MOST = 5000 };
    static const size_t sizes[] = {1000, 1000, 7,    0,    1000, 2000, 1,
                                   4999, 5000, 3000, 3000, 3000, 64,   5000};
    bm_backend *be = open_backend();
    bm_stage *stage = NULL;
    float *sum = NULL;

    (void)state;
    assert_ok(bm_alloc(be, MOST, &sum));
    assert_ok(bm_stage_open(&stage, be));
    add_up(stage, be, sizes, sizeof sizes / sizeof *sizes, sum);
    assert_sums(be, sizes, sizeof sizes / sizeof *sizes, sum, MOST);
    bm_stage_close(stage);
    bm_free(be, sum);
    bm_backend_close(be);
}

static void test_two_stages_know_nothing_of_each_other(void **state)
{
    enum { N = 300 };
    bm_backend *be = open_backend();
    bm_stage *stage[2] = {NULL, NULL};
    float *x[2], *host = NULL, *sum = NULL, *got = NULL;

    (void)state;
    assert_ok(bm_alloc(be, N, &sum));
    for (size_t k = 0; k < 2; k++) {
        assert_ok(bm_stage_open(&stage[k], be));
        assert_ok(bm_stage_room(stage[k], N, &host));
        for (size_t i = 0; i < N; i++)
            host[i] = value(k, i);
        x[k] = bm_stage_send(stage[k], N);
    }
    for (size_t k = 0; k < 2; k++)
        bm_axpby(be, N, k == 0 ? 2 : 3, x[k], 1, sum);
    got = fetch(be, sum, N);
    for (size_t i = 0; i < N; i++)
        assert_true(got[i] == 2 * value(0, i) + 3 * value(1, i));
    free(got);
    bm_stage_close(stage[0]);
    bm_stage_close(stage[1]);
    bm_stage_close(NULL);
    bm_free(be, sum);
    bm_backend_close(be);
}

/* As from any input of which a bf16 form is kept. */
static void test_a_slot_forgets_what_it_held_before(void **state)
{
    enum { N = 32, ROUNDS = 9 };
    bm_backend *be = open_backend();
    bm_stage *stage = NULL;
    float *w = NULL, *y = NULL, one[N];

    (void)state;
    for (size_t i = 0; i < N; i++)
        one[i] = 1;
    w = place(be, one, N);
    assert_ok(bm_backend_use(be, 1, BM_BF16));
    assert_ok(bm_alloc(be, ROUNDS, &y));
    assert_ok(bm_stage_open(&stage, be));
    for (size_t k = 0; k < ROUNDS; k++) {
        float *host = NULL;

        assert_ok(bm_stage_room(stage, N, &host));
        for (size_t i = 0; i < N; i++)
            host[i] = (float)k; /* exact in 8 bits */
        bm_gemm(be, false, true, 1, bm_matrix(bm_stage_send(stage, N), 1, N),
                bm_matrix(w, 1, N), 0, bm_matrix(y + k, 1, 1));
    }
    for (size_t k = 0; k < ROUNDS; k++) {
        float *got = fetch(be, y + k, 1);
        assert_true(*got == (float)(N * k));
        free(got);
    }
    bm_stage_close(stage);
    bm_free(be, y);
    bm_free(be, w);
    bm_backend_close(be);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_mini_batch_is_the_one_that_was_written),
        cmocka_unit_test(test_two_stages_know_nothing_of_each_other),
        cmocka_unit_test(test_a_slot_forgets_what_it_held_before),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return RUN_GROUP(backend, tests);
}
