/* Cross entropy against its formula in double. */
#include "models/loss.h"
#include "tests/support/reference/support_ctc.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { C = 5, T = 7, B = 3, MOST = 1500 };

/* A gradient may be rounded to bf16. */
static double rounded(double g)
{
    return loss_precision == BM_BF16 ? 0x1p-8 * fabs(g) : 0;
}

static const int32_t frames[B] = {7, 0, 4};

/* One class for each frame, drawn from `key`. */
static batch made(uint64_t key, size_t classes_of)
{
    batch b = batch_new(T, B, classes_of);

    for (size_t n = 0; n < B; n++) {
        float *y = normals(key + n, T * b.C, 3);
        int32_t classes[T];

        for (size_t t = 0; t < T; t++)
            classes[t] = (int32_t)pick(100 * key + T * n + t, b.C);
        batch_put(&b, n, (size_t)frames[n], y, classes, (size_t)frames[n]);
        free(y);
    }
    return b;
}

/* The score of sequence n; its gradient over `count` must be in the batch. */
static bm_score expected(const batch *b, size_t n, double count)
{
    const int32_t *classes = b->classes;
    bool any = b->frames[n] > 0;
    bm_score s = {.sequences = any, .skipped = !any};

    for (size_t i = 0; i < n; i++)
        classes += b->count[i];
    for (size_t t = 0; t < T; t++) {
        const float *dy = batch_row(b, b->dy, n, t);
        double lp[MOST];
        size_t best = 0, k = 0;

        for (size_t i = 0; t >= (size_t)b->frames[n] && i < b->C; i++)
            assert_true(dy[i] == 0);
        if (t >= (size_t)b->frames[n])
            continue;
        k = (size_t)classes[t];
        log_softmax(b->C, batch_row(b, b->y, n, t), lp);
        for (size_t i = 0; i < b->C; i++) {
            double g = (exp(lp[i]) - (i == k)) / count;

            assert_true(near((double)dy[i], g, 1e-6 + rounded(g)));
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

/* Checks all sequences of a batch and frees it. */
static void check_batch(batch b)
{
    bm_score sum = {0};

    batch_run(&b, "cross_entropy", BM_INFEASIBLE_SKIP);
    for (size_t n = 0; n < B; n++) {
        bm_score own = expected(&b, n, 7 + 4);
        bm_score_add(&sum, &own);
    }
    assert_scores(b.score, sum);
    batch_free(&b);
}

static void test_any_number_of_classes_matches_the_formula(void **state)
{
    static const size_t numbers[] = {1, 4, 33, 128, 1024, 1028, MOST};

    (void)state;
    FOR_EACH (i, numbers)
        check_batch(made(i, numbers[i]));
}

/* The first of equal maxima is the answer. */
static void test_first_of_the_largest_logits_is_the_answer(void **state)
{
    static const size_t numbers[] = {C, 700, MOST};

    (void)state;
    FOR_EACH (i, numbers)
        for (int32_t k = 0; k < 3; k++) {
            size_t n = numbers[i];
            float *y = zeros(n, sizeof *y);
            batch b = batch_new(1, 1, n);

            y[1] = y[n / 2] = y[n - 1] = 1;
            batch_put(&b, 0, 1, y, &k, 1);
            batch_run(&b, "cross_entropy", BM_INFEASIBLE_SKIP);
            assert_true(b.score.errors == (k != 1));
            batch_free(&b);
            free(y);
        }
}

/* A logit of minus infinity is a probability of 0. */
static void test_impossible_class_matters_only_as_the_reference(void **state)
{
    static const float y[C] = {-INFINITY, 1, -INFINITY, 1, -INFINITY};

    (void)state;
    for (int32_t k = 0; k < 2; k++) {
        batch b = batch_new(1, 1, C);

        batch_put(&b, 0, 1, y, &k, 1);
        batch_run(&b, "cross_entropy", BM_INFEASIBLE_SKIP);
        assert_true(b.score.skipped == (k == 0));
        assert_true(near(b.score.loss, k == 0 ? 0 : log(2), 1e-6));
        for (int i = 0; i < C; i++)
            assert_true(b.dy[i] == (k == 0   ? 0
                                    : i == 1 ? -0.5
                                    : i == 3 ? 0.5
                                             : 0));
        batch_free(&b);
    }
}

static void test_sequence_with_nan_is_skipped(void **state)
{
    static const size_t numbers[] = {C, MOST};

    (void)state;
    FOR_EACH (i, numbers) {
        batch b = made(3, numbers[i]);
        bm_score sum = {0}, own;

        batch_row(&b, b.y, 2, 1)[4] = NAN;
        batch_run(&b, "cross_entropy", BM_INFEASIBLE_SKIP);
        for (size_t n = 0; n < 2; n++) {
            own = expected(&b, n, 7);
            bm_score_add(&sum, &own);
        }
        sum.skipped += 1;
        assert_scores(b.score, sum);
        for (size_t t = 0; t < T; t++)
            for (size_t k = 0; k < b.C; k++)
                assert_true(batch_row(&b, b.dy, 2, t)[k] == 0);
        batch_free(&b);
    }
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
        assert_true(
            near(b.dy[i], i == k ? 1.0 / C - 1 : 1.0 / C, 1e-6 + rounded(1)));
    batch_free(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_number_of_classes_matches_the_formula),
        cmocka_unit_test(test_first_of_the_largest_logits_is_the_answer),
        cmocka_unit_test(test_impossible_class_matters_only_as_the_reference),
        cmocka_unit_test(test_sequence_with_nan_is_skipped),
        cmocka_unit_test(test_equal_logits_cost_the_logarithm_of_their_number),
    };
    int failed = 0;

    if (argc > 1)
        loss_backend = argv[1];
    if (argc > 2 && strcmp(argv[2], "bf16") == 0)
        loss_precision = BM_BF16;
    if (!have_backend(loss_backend))
        return SKIPPED;
    failed = RUN_GROUP("cross_entropy", tests);
    loss_close();
    return failed;
}
