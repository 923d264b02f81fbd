/*
 * CTC against enumeration of all paths, closed forms, and the forward-backward
 * algorithm in double; and sequences without frames, without labels,
 * infeasible, or with logits that are not finite.
 */
#include "models/decoding/best_path.h"
#include "models/edit.h"
#include "models/loss.h"
#include "tests/support/program.h"
#include "tests/support/reference/support_ctc.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1200 }; /* labels */

/* Labels in 1 .. C - 1, with r equal pairs of neighbours. */
static void spell(size_t C, size_t L, size_t r, int32_t *labels)
{
    for (size_t i = 0; i < L; i++)
        labels[i] = i == 0   ? 1
                    : i <= r ? labels[i - 1]
                             : labels[i - 1] % (int32_t)(C - 1) + 1;
}

static size_t repeats(const int32_t *labels, size_t n)
{
    size_t r = 0;

    for (size_t i = 1; i < n; i++)
        r += labels[i] == labels[i - 1];
    return r;
}

static void assert_rows_sum_to_zero(size_t T, size_t C, const float *dy,
                                    double tolerance)
{
    for (size_t t = 0; t < T; t++) {
        double sum = 0;

        for (size_t k = 0; k < C; k++)
            sum += (double)dy[t * C + k];
        assert_true(fabs(sum) <= tolerance);
    }
}

static void test_loss_is_the_sum_over_all_paths(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 300; n++) {
        size_t T = 1 + pick(10 * n, 6), C = 2 + pick(10 * n + 1, 3);
        size_t L = pick(10 * n + 2, T + 1);
        float *y = normals(n, T * C, n % 3 == 0 ? 5 : 1), dy[64];
        double expected[64], loss = 0;
        int32_t labels[8];
        bm_score score;

        for (size_t i = 0; i < L; i++)
            labels[i] = 1 + (int32_t)pick(1000 * n + i, C - 1);
        score = ctc_alone(T, C, y, labels, L, dy);
        if (L + repeats(labels, L) > T) {
            assert_true(score.skipped == 1);
        } else {
            loss = ctc_enumeration(T, C, y, labels, L, expected);
            assert_true(score.sequences == 1 && score.skipped == 0);
            assert_true(near(score.loss, loss, 2e-6));
            assert_true(distance(T * C, dy, expected) < 2e-6);
            assert_rows_sum_to_zero(T, C, dy, 1e-6);
        }
        free(y);
    }
}

/* T equal frames have binom(T + L - r, 2 L) paths for L labels. */
static void test_equal_logits_count_the_paths(void **state)
{
    static const struct {
        size_t T, C, L, r;
    } cases[] = {
        {1, 2, 0, 0},       {1, 2, 1, 0},      {3, 3, 2, 1},
        {20, 4, 3, 1},      {500, 80, 100, 7}, {1000, 80, 100, 10},
        {256, 300, 256, 0}, {640, 3, 560, 0},  {600, 500, 300, 0},
        {4000, 3, 1200, 0},
    };
    size_t n_cases = short_tests() ? 9 : 10;

    (void)state;
    for (size_t i = 0; i < n_cases; i++) {
        size_t T = cases[i].T, C = cases[i].C, L = cases[i].L;
        double top = (double)(T + L - cases[i].r), l = (double)L;
        double paths =
            lgamma(top + 1) - lgamma(2 * l + 1) - lgamma(top - 2 * l + 1);
        float *y = zeros(T * C, sizeof *y), *dy = zeros(T * C, sizeof *dy);
        int32_t labels[LONGEST];
        bm_score score;

        spell(C, L, cases[i].r, labels);
        assert_int_equal(repeats(labels, L), cases[i].r);
        score = ctc_alone(T, C, y, labels, L, dy);
        assert_true(near(score.loss, (double)T * log((double)C) - paths, 1e-6));
        assert_true(near(score.chance, score.loss, 1e-6));
        y[0] = 1; /* chance does not depend on logits */
        score = ctc_alone(T, C, y, labels, L, dy);
        assert_true(
            near(score.chance, (double)T * log((double)C) - paths, 1e-12));
        assert_rows_sum_to_zero(T, C, dy, 1e-5);
        free(y);
        free(dy);
    }
}

static void test_as_many_frames_as_labels_have_one_path(void **state)
{
    enum { T = 40, C = 7 };
    float *y = normals(77, T * C, 4), dy[T * C];
    double expected[T * C], loss = 0;
    int32_t labels[T];
    bm_score score;

    (void)state;
    spell(C, T, 0, labels);
    for (size_t t = 0; t < T; t++) {
        log_softmax(C, y + t * C, expected + t * C);
        loss -= expected[t * C + (size_t)labels[t]];
        for (size_t k = 0; k < C; k++)
            expected[t * C + k] = exp(expected[t * C + k]);
        expected[t * C + (size_t)labels[t]] -= 1;
    }
    score = ctc_alone(T, C, y, labels, T, dy);
    assert_true(near(score.loss, loss, 1e-6));
    assert_true(distance((size_t)T * C, dy, expected) < 1e-6);
    free(y);
}

static void test_no_labels_have_one_path_of_blanks(void **state)
{
    enum { T = 5, C = 3 };
    float *y = normals(78, T * C, 1), dy[T * C];
    double expected[T * C], loss = 0, blank = 0;
    bm_score score = ctc_alone(T, C, y, NULL, 0, dy);

    (void)state;
    for (size_t t = 0; t < T; t++) {
        log_softmax(C, y + t * C, expected + t * C);
        loss -= expected[t * C];
        for (size_t k = 0; k < C; k++)
            expected[t * C + k] = exp(expected[t * C + k]);
        blank += expected[t * C];
        expected[t * C] -= 1;
    }
    assert_true(near(score.loss, loss, 1e-6));
    assert_true(near(score.blank, blank, 1e-6));
    assert_true(score.count == 0 && score.frames == T);
    assert_true(distance((size_t)T * C, dy, expected) < 1e-6);
    free(y);
}

/* warp-ctc returns wrong results for `certain` and `certain_wrong`. */
static void test_probabilities_of_one_and_nearly_zero(void **state)
{
    static const float small[] = {.1f, .6f, .1f, .1f, .1f,
                                  .1f, .1f, .6f, .1f, .1f};
    static const float certain[] = {0, 800}, wrong[] = {0, 0, 800};
    static const int32_t labels[] = {1, 2};
    double p = exp(.6) / (exp(.6) + 4 * exp(.1));
    float dy[10];
    bm_score score = ctc_alone(2, 5, small, labels, 2, dy);

    (void)state;
    assert_true(near(score.loss, -2 * log(p), 1e-6));
    assert_true(near(dy[1], p - 1, 1e-6) && near(dy[0], (1 - p) / 4, 1e-6));
    score = ctc_alone(1, 2, certain, labels, 1, dy);
    assert_true(score.loss == 0 && dy[0] == 0 && dy[1] == 0);
    assert_true(score.errors == 0 && score.count == 1 && score.blank == 0);
    score = ctc_alone(1, 3, wrong, labels, 1, dy);
    assert_true(near(score.loss, 800, 1e-6));
    assert_true(dy[0] == 0 && near(dy[1], -1, 1e-6) && near(dy[2], 1, 1e-6));
    assert_true(score.errors == 1 && score.count == 1);
}

static void test_gradient_is_the_slope_of_the_loss(void **state)
{
    enum { T = 12, C = 5, L = 5 };
    static const int32_t labels[L] = {1, 1, 3, 4, 4};
    const float h = 0x1p-6f;
    float *y = normals(5, T * C, 1), dy[T * C];

    (void)state;
    ctc_alone(T, C, y, labels, L, dy);
    for (size_t i = 0; i < (size_t)T * C; i++) {
        float kept = y[i];
        double up = 0, down = 0;

        y[i] = kept + h;
        up = ctc_alone(T, C, y, labels, L, NULL).loss;
        y[i] = kept - h;
        down = ctc_alone(T, C, y, labels, L, NULL).loss;
        y[i] = kept;
        /* h^2 / 6 times a third derivative below 1, and floats over 2 h */
        assert_true(fabs((up - down) / (2 * (double)h) - (double)dy[i]) < 3e-4);
    }
    free(y);
}

/* Logarithms in float have an error of 1e-4 for the fourth of these and of 5e-5
 * for the fifth; floats with exponents only that of their roundings. */
static void test_long_sequences_are_accurate(void **state)
{
    static const struct {
        size_t T, C, L;
        double scale;
    } cases[] = {
        {100, 30, 20, 1},   {500, 80, 60, 1},   {700, 20, 540, 1},
        {2000, 80, 300, 8}, {2000, 80, 300, 1}, {4000, 3, 1200, 1},
    };
    size_t n_cases = short_tests() ? 4 : 6;

    (void)state;
    for (size_t i = 0; i < n_cases; i++) {
        size_t T = cases[i].T, C = cases[i].C, L = cases[i].L, n = T * C;
        float *y = normals(i, n, cases[i].scale), *dy = zeros(n, sizeof *dy);
        double *expected = zeros(n, sizeof *expected), loss = 0;
        int32_t labels[LONGEST];
        bm_score score;

        for (size_t j = 0; j < L; j++)
            labels[j] = 1 + (int32_t)pick(j, C - 1);
        score = ctc_alone(T, C, y, labels, L, dy);
        loss = ctc_reference(T, C, y, labels, L, expected);
        assert_true(near(score.loss, loss, 1e-7));
        assert_true(distance(n, dy, expected) < 3e-6);
        free(y);
        free(dy);
        free(expected);
    }
}

/* Five sequences of unequal length: ordinary, infeasible, without labels,
 * without frames, ordinary. */
static batch mixed(void)
{
    enum { C = 6 };
    static const size_t frames[] = {9, 4, 7, 0, 13};
    static const int32_t labels[] = {1, 2, 2, 5, 5, 5, 5, 3, 4, 3, 3, 1};
    static const size_t from[] = {0, 3, 7, 7, 7, 12};
    batch b = batch_new(15, 5, C);

    for (size_t n = 0; n < b.B; n++) {
        float *y = normals(100 + n, frames[n] * C, 2);
        batch_put(&b, n, frames[n], y, labels + from[n], from[n + 1] - from[n]);
        free(y);
    }
    return b;
}

/* Sequence n alone has the same score and, divided by `count`, the same
 * gradient, bit for bit, as in the batch. */
static bm_score assert_as_alone(const batch *b, size_t n, double count)
{
    size_t frames = (size_t)b->frames[n], L = (size_t)b->count[n];
    float *y = zeros(frames * b->C, sizeof *y);
    float *dy = zeros(frames * b->C, sizeof *dy);
    const int32_t *labels = b->classes;
    bm_score score;

    for (size_t i = 0; i < n; i++)
        labels += b->count[i];
    for (size_t t = 0; t < frames; t++)
        memcpy(y + t * b->C, batch_row(b, b->y, n, t), b->C * sizeof *y);
    score = ctc_alone(frames, b->C, y, labels, L, dy);
    for (size_t t = 0; t < b->T; t++)
        for (size_t k = 0; k < b->C; k++) {
            float g = t < frames ? dy[t * b->C + k] * (float)(1 / count) : 0;
            assert_true(batch_row(b, b->dy, n, t)[k] == g);
        }
    free(y);
    free(dy);
    return score;
}

static void test_result_does_not_depend_on_the_batch(void **state)
{
    batch b = mixed();
    bm_score sum = {0};

    (void)state;
    batch_run(&b, "ctc", BM_INFEASIBLE_SKIP);
    assert_true(b.score.sequences == 3 && b.score.skipped == 2);
    assert_true(b.score.count == 3 + 5 && b.score.frames == 9 + 7 + 13);
    for (size_t n = 0; n < b.B; n++) {
        bm_score own = assert_as_alone(&b, n, 3);
        bm_score_add(&sum, &own);
    }
    assert_memory_equal(&sum, &b.score, sizeof sum);
    batch_free(&b);
}

/* Nor on the other lengths, which change how the work is divided. */
static void test_long_and_short_sequences_share_a_batch(void **state)
{
    enum { C = 30 };
    static const size_t frames[] = {90, 470, 1, 200}, L[] = {40, 420, 1, 150};
    batch b = batch_new(470, 4, C);

    (void)state;
    for (size_t n = 0; n < b.B; n++) {
        float *y = normals(200 + n, frames[n] * C, 2);
        int32_t labels[LONGEST];

        spell(C, L[n], 9 % L[n], labels);
        batch_put(&b, n, frames[n], y, labels, L[n]);
        free(y);
    }
    batch_run(&b, "ctc", BM_INFEASIBLE_SKIP);
    assert_true(b.score.sequences == 4);
    for (size_t n = 0; n < b.B; n++)
        assert_as_alone(&b, n, 4);
    batch_free(&b);
}

/* By half a unit of 8 bits, since only products read the gradient. */
static void test_bf16_rounds_only_the_gradient(void **state)
{
    batch full = mixed(), half = mixed();

    (void)state;
    batch_run(&full, "ctc", BM_INFEASIBLE_SKIP);
    loss_precision = BM_BF16;
    batch_run(&half, "ctc", BM_INFEASIBLE_SKIP);
    loss_precision = BM_FP32;
    assert_memory_equal(&half.score, &full.score, sizeof full.score);
    for (size_t i = 0; i < full.T * full.B * full.C; i++) {
        double g = (double)full.dy[i];
        assert_true(fabs((double)half.dy[i] - g) <= 0x1p-8 * fabs(g));
    }
    batch_free(&full);
    batch_free(&half);
}

/* Their loops use no instruction that rounds differently. */
static void test_every_instruction_set_has_the_same_bits(void **state)
{
    enum { T = 300, C = 37, L = 70 };
    static const char *const sets[] = {"baseline", "avx2", "avx512"};
    float *y = normals(9, (size_t)T * C, 3);
    float dy[3][T * C];
    int32_t labels[L];
    bm_score score[3] = {{.loss = 0}};

    (void)state;
    spell(C, L, 9, labels);
    FOR_EACH (i, sets) {
        setenv("BMUF_ISA", sets[i], 1);
        loss_close();
        if (!have_backend(loss_backend))
            break; /* nor the better ones */
        score[i] = ctc_alone(T, C, y, labels, L, dy[i]);
        assert_memory_equal(&score[i], &score[0], sizeof score[0]);
        assert_memory_equal(dy[i], dy[0], sizeof dy[0]);
    }
    unsetenv("BMUF_ISA");
    loss_close();
    assert_true(score[0].sequences == 1);
    free(y);
}

static void test_infeasible_sequences_can_count_with_loss_zero(void **state)
{
    batch skip = mixed(), zero = mixed();

    (void)state;
    batch_run(&skip, "ctc", BM_INFEASIBLE_SKIP);
    batch_run(&zero, "ctc", BM_INFEASIBLE_ZERO);
    assert_true(zero.score.sequences == 5 && zero.score.skipped == 0);
    assert_true(zero.score.zeroed == 2 && skip.score.zeroed == 0);
    assert_true(zero.score.loss == skip.score.loss);
    assert_true(zero.score.count == skip.score.count + 4);
    assert_true(zero.score.frames == skip.score.frames + 4);
    for (size_t n = 0; n < zero.B; n++)
        assert_as_alone(&zero, n, 5);
    batch_free(&skip);
    batch_free(&zero);
}

static void
test_sequence_with_a_loss_that_is_not_finite_is_skipped(void **state)
{
    static const float bad[] = {NAN, INFINITY, -INFINITY};

    (void)state;
    FOR_EACH (i, bad)
        for (int policy = 0; policy < 2; policy++) {
            batch b = mixed();
            double others = policy == BM_INFEASIBLE_ZERO ? 4 : 2;

            for (size_t k = 0; k < b.C; k++)
                if (k == 4 || bad[i] == -INFINITY)
                    batch_row(&b, b.y, 4, 6)[k] = bad[i];
            batch_run(&b, "ctc", (bm_infeasible)policy);
            assert_true(b.score.sequences == others && isfinite(b.score.loss));
            assert_true(b.score.skipped == 5 - others);
            for (size_t n = 0; n < b.B; n++)
                assert_as_alone(&b, n, others);
            batch_free(&b);
        }
}

/* A class of probability 0 has no effect unless a label needs it. */
static void test_impossible_class_matters_only_for_its_labels(void **state)
{
    enum { T = 6, C = 4 };
    static const int32_t without[] = {1, 2}, with[] = {1, 3};
    static const float none[] = {-INFINITY, -1e30f};
    float *y = normals(6, T * C, 1), dy[T * C], few[T * 3];
    double expected[T * 3], loss = 0;

    (void)state;
    FOR_EACH (i, none) {
        bm_score score;

        for (size_t t = 0; t < T; t++) {
            y[t * C + 3] = none[i];
            memcpy(few + t * 3, y + t * C, 3 * sizeof *few);
        }
        loss = ctc_reference(T, 3, few, without, 2, expected);
        score = ctc_alone(T, C, y, without, 2, dy);
        assert_true(near(score.loss, loss, 1e-6));
        for (size_t t = 0; t < T; t++) {
            assert_true(distance(3, dy + t * C, expected + t * 3) < 1e-6);
            assert_true(dy[t * C + 3] == 0);
        }
        score = ctc_alone(T, C, y, with, 2, dy);
        assert_true(score.skipped == 1 && score.loss == 0);
        for (size_t j = 0; j < (size_t)T * C; j++)
            assert_true(dy[j] == 0);
    }
    free(y);
}

static void test_gradient_is_zero_if_no_sequence_counts(void **state)
{
    static const int32_t labels[] = {1, 1};
    float *y = normals(8, 6, 1);
    batch b = batch_new(3, 2, 3);

    (void)state;
    batch_put(&b, 0, 2, y, labels, 2);
    batch_put(&b, 1, 0, y, labels, 1);
    batch_run(&b, "ctc", BM_INFEASIBLE_SKIP);
    assert_true(b.score.skipped == 2 && b.score.sequences == 0);
    assert_true(b.score.loss == 0 && b.score.frames == 0 && b.score.count == 0);
    for (size_t i = 0; i < 3 * 2 * 3; i++)
        assert_true(b.dy[i] == 0);
    batch_free(&b);
    free(y);
}

static void test_no_frames_and_a_single_class(void **state)
{
    static const float y[] = {3, -1000, 5};
    float dy[3];
    bm_score score = ctc_alone(0, 4, NULL, NULL, 0, NULL);

    (void)state;
    assert_true(score.loss == 0 && score.sequences == 0 && score.skipped == 1);
    score = ctc_alone(3, 1, y, NULL, 0, dy);
    assert_true(score.loss == 0 && score.sequences == 1 && score.blank == 3);
    assert_true(dy[0] == 0 && dy[1] == 0 && dy[2] == 0);
}

static void test_score_is_added_to(void **state)
{
    enum { FLOATS = sizeof(bm_score) / sizeof(float) };
    static const float y[] = {0, 800, 0, 0};
    int32_t frames = 2, labels[] = {1}, count = 1;
    bm_extent e = {2, 1, &frames};
    bm_targets t = {labels, &count};
    bm_tensor x = {NULL, 3, {2, 1, 2, 1}}, none = x;
    bm_score score = {.loss = 100,
                      .chance = 70,
                      .errors = 10,
                      .count = 20,
                      .sequences = 30,
                      .skipped = 40,
                      .frames = 50,
                      .blank = 60};
    bm_backend *be = loss_open();
    float *sum = place(be, (const float *)(const void *)&score, FLOATS);
    float *work = NULL;

    (void)state;
    x.data = place(be, y, 4);
    assert_ok(bm_alloc(be, bm_ctc_work(be, e, t, 2), &work));
    bm_ctc(be, e, t, BM_INFEASIBLE_SKIP, 0, x, none, work,
           (bm_score *)(void *)sum);
    bm_get(be, (float *)(void *)&score, sum, FLOATS);
    assert_ok(bm_sync(be));
    /* 1 and then either class: p = 1. */
    assert_true(score.loss == 100 && score.errors == 10 && score.count == 21);
    assert_true(score.sequences == 31 && score.skipped == 40);
    assert_true(near(score.chance, 70 + log(4.0 / 3), 1e-12)); /* 3 of 4 */
    assert_true(score.frames == 52 && near(score.blank, 60.5, 1e-6));
    bm_free(be, x.data);
    bm_free(be, sum);
    bm_free(be, work);
}

/* For feasible and infeasible sequences. */
static void test_errors_are_the_edit_distance_of_the_best_path(void **state)
{
    (void)state;
    for (uint64_t n = 0; n < 60; n++) {
        size_t T = 5 + pick(n, 40), C = 2 + pick(n + 1000, 4), n_path = 0;
        size_t L = pick(n + 2000, n < 50 ? T / 2 : (size_t)LONGEST);
        float *y = normals(n, T * C, 1);
        batch b = batch_new(T, 1, C);
        int32_t labels[LONGEST], path[64];
        bm_edits edits;

        for (size_t i = 0; i < L; i++)
            labels[i] = 1 + (int32_t)pick(1000 * n + i, C - 1);
        n_path = bm_decode_greedy(y, T, C, C, path, NULL);
        assert_ok(bm_edit(labels, L, path, n_path, &edits));
        batch_put(&b, 0, T, y, labels, L);
        batch_run(&b, "ctc", BM_INFEASIBLE_ZERO);
        assert_true(b.score.errors == (double)bm_edits_total(edits));
        batch_free(&b);
        free(y);
    }
}

static void test_feasible_counts_the_blanks_between_repeats(void **state)
{
    static const int32_t labels[] = {1, 1, 1, 2, 2};
    const bm_loss_ops *ctc = bm_loss_find("ctc");

    (void)state;
    assert_false(ctc->feasible(7, labels, 5));
    assert_true(ctc->feasible(8, labels, 5));
    assert_false(ctc->feasible(0, labels, 1));
    assert_false(ctc->feasible(0, labels, 0));
    assert_true(ctc->feasible(1, labels, 0));
    assert_null(bm_loss_find("ctd"));
}

int main(int argc, char **argv)
{
    int failed = 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loss_is_the_sum_over_all_paths),
        cmocka_unit_test(test_equal_logits_count_the_paths),
        cmocka_unit_test(test_as_many_frames_as_labels_have_one_path),
        cmocka_unit_test(test_no_labels_have_one_path_of_blanks),
        cmocka_unit_test(test_probabilities_of_one_and_nearly_zero),
        cmocka_unit_test(test_gradient_is_the_slope_of_the_loss),
        cmocka_unit_test(test_long_sequences_are_accurate),
        cmocka_unit_test(test_result_does_not_depend_on_the_batch),
        cmocka_unit_test(test_long_and_short_sequences_share_a_batch),
        cmocka_unit_test(test_bf16_rounds_only_the_gradient),
        cmocka_unit_test(test_every_instruction_set_has_the_same_bits),
        cmocka_unit_test(test_infeasible_sequences_can_count_with_loss_zero),
        cmocka_unit_test(
            test_sequence_with_a_loss_that_is_not_finite_is_skipped),
        cmocka_unit_test(test_impossible_class_matters_only_for_its_labels),
        cmocka_unit_test(test_gradient_is_zero_if_no_sequence_counts),
        cmocka_unit_test(test_no_frames_and_a_single_class),
        cmocka_unit_test(test_score_is_added_to),
        cmocka_unit_test(test_errors_are_the_edit_distance_of_the_best_path),
        cmocka_unit_test(test_feasible_counts_the_blanks_between_repeats),
    };

    if (argc > 1)
        loss_backend = argv[1];
    if (!have_backend(loss_backend))
        return SKIPPED;
    failed = RUN_GROUP(loss_backend, tests);
    loss_close();
    return failed;
}
