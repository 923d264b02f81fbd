/* Cross entropy against its formula in double. */
#include "models/loss.h"
#include "tests/support_backend.h"
#include "tests/support_ctc.h"

#include <math.h>
#include <stdlib.h>

enum { C = 5, T = 7, B = 3 };

static const int32_t frames[B] = {7, 0, 4};

/* A class per frame, drawn from `key`. */
static batch made(uint64_t key)
{
    batch b = batch_new(T, B, C);

    for (size_t n = 0; n < B; n++) {
        float *y = normals(key + n, T * C, 3);
        int32_t classes[T];

        for (size_t t = 0; t < T; t++)
            classes[t] = (int32_t)pick(100 * key + T * n + t, C);
        batch_put(&b, n, (size_t)frames[n], y, classes, (size_t)frames[n]);
        free(y);
    }
    return b;
}

/* The score of sequence n; its gradient over `count` must be in the batch. */
static bm_score expected(const batch *b, size_t n, double count)
{
    const int32_t *classes = b->classes;
    bm_score s = {.sequences = 1};

    for (size_t i = 0; i < n; i++)
        classes += b->count[i];
    for (size_t t = 0; t < T; t++) {
        const float *dy = batch_row(b, b->dy, n, t);
        double lp[C] = {0};
        size_t best = 0, k = 0;

        for (size_t i = 0; t >= (size_t)b->frames[n] && i < C; i++)
            assert_true(dy[i] == 0);
        if (t >= (size_t)b->frames[n])
            continue;
        k = (size_t)classes[t];
        log_softmax(C, batch_row(b, b->y, n, t), lp);
        for (size_t i = 0; i < C; i++) {
            double g = (exp(lp[i]) - (i == k)) / count;

            assert_true(near((double)dy[i], g, 1e-6));
            best = lp[i] > lp[best] ? i : best;
        }
        s.loss -= lp[k];
        s.errors += best != k;
        s.count++;
        s.frames++;
    }
    return s;
}

static void assert_scores(bm_score got, bm_score sum)
{
    assert_true(near(got.loss, sum.loss, 1e-6));
    assert_true(got.errors == sum.errors && got.count == sum.count);
    assert_true(got.sequences == sum.sequences && got.frames == sum.frames);
    assert_true(got.skipped == sum.skipped && got.blank == 0);
}

static void test_gradient_is_that_of_the_mean_over_frames(void **state)
{
    (void)state;
    for (uint64_t key = 0; key < 20; key++) {
        batch b = made(10 * key);
        bm_score sum = {0};

        batch_run(&b, "cross_entropy", BM_INFEASIBLE_SKIP);
        for (size_t n = 0; n < B; n++) {
            bm_score own = expected(&b, n, 7 + 4);
            bm_score_add(&sum, &own);
        }
        assert_scores(b.score, sum);
        batch_free(&b);
    }
}

static void test_sequence_without_numbers_is_skipped(void **state)
{
    batch b = made(3);
    bm_score sum = {0}, own;

    (void)state;
    batch_row(&b, b.y, 2, 1)[4] = NAN;
    batch_run(&b, "cross_entropy", BM_INFEASIBLE_SKIP);
    for (size_t n = 0; n < 2; n++) {
        own = expected(&b, n, 7);
        bm_score_add(&sum, &own);
    }
    sum.skipped = 1;
    assert_scores(b.score, sum);
    for (size_t t = 0; t < T; t++)
        for (size_t k = 0; k < C; k++)
            assert_true(batch_row(&b, b.dy, 2, t)[k] == 0);
    batch_free(&b);
}

static void test_equal_logits_cost_the_logarithm_of_their_number(void **state)
{
    static const float y[C] = {-2, -2, -2, -2, -2};
    static const int32_t k = 3;
    batch b = batch_new(1, 1, C);

    (void)state;
    batch_put(&b, 0, 1, y, &k, 1);
    batch_run(&b, "cross_entropy", BM_INFEASIBLE_SKIP);
    assert_true(near(b.score.loss, log(C), 1e-6));
    assert_true(b.score.errors == 1);
    for (int i = 0; i < C; i++)
        assert_true(near(b.dy[i], i == k ? 1.0 / C - 1 : 1.0 / C, 1e-6));
    batch_free(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradient_is_that_of_the_mean_over_frames),
        cmocka_unit_test(test_sequence_without_numbers_is_skipped),
        cmocka_unit_test(test_equal_logits_cost_the_logarithm_of_their_number),
    };

    if (argc > 1)
        loss_backend = argv[1];
    if (!have_backend(loss_backend))
        return SKIPPED;
    return RUN_GROUP("cross_entropy", tests);
}
