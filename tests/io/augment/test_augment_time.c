/*
 * Augmentation along time: speeds and warps against their formulas, labels that
 * would not fit, and targets of frames.
 */
#include "core/rng.h"
#include "io/augment/augment.h"
#include "tests/io/augment/sequences.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Frame t of a ramp is t in feature 0 and -t in feature 1. */
static float *ramp(size_t T)
{
    float *x = zeros(2 * T, sizeof *x);

    for (size_t t = 0; t < T; t++) {
        x[2 * t] = (float)t;
        x[2 * t + 1] = -(float)t;
    }
    return x;
}

static void test_a_ramp_is_resampled_by_the_formula(void **_)
{
    static const char *const speeds[] = {"0.25", "0.5", "0.9", "1.1", "2", "4"};
    enum { T = 40 };
    float *x = ramp(T);

    (void)_;
    FOR_EACH (i, speeds) {
        double f = strtod(speeds[i], NULL), n = floor(T / f + 0.5);
        char set[20];
        bm_augment_settings s;
        size_t frames = 0;
        float *y = NULL;

        snprintf(set, sizeof set, "speed=%s", speeds[i]);
        s = SETTINGS(set);
        y = augmented(&s, "", x, T, 2, 1, &frames);
        assert_int_equal(frames, n);
        for (size_t t = 0; t < frames; t++) {
            double at = ((double)t + 0.5) * T / n - 0.5;

            at = fmin(fmax(at, 0), T - 1);
            assert_true(near((double)y[2 * t], at, 1e-6));
            assert_true(y[2 * t + 1] == -y[2 * t]);
        }
        free(y);
    }
    free(x);
}

static void test_factors_of_speed_are_equally_likely(void **_)
{
    bm_augment_settings s = SETTINGS("speed=0.8 1 1.25");
    bm_layout l = bm_layout_of("", 2);
    bm_augmented in = {.frames = 100};
    bm_augmenter *a = NULL;
    double n[3] = {0}, chi = 0;

    (void)_;
    assert_ok(bm_augmenter_new(&a, &s, &l, false));
    for (int64_t i = 0; i < 9000; i++) {
        size_t frames =
            bm_augment_frames(a, bm_augment_key(1, 0, i), &in, &any);

        assert_true(frames == 125 || frames == 100 || frames == 80);
        n[frames == 125 ? 0 : frames == 100 ? 1 : 2]++;
    }
    for (int i = 0; i < 3; i++)
        chi += pow(n[i] - 3000, 2) / 3000;
    assert_true(chi < 13.8); /* 99.9 % */
    bm_augmenter_free(a);
    s = SETTINGS("speed=0.8:1.25");
    assert_ok(bm_augmenter_new(&a, &s, &l, false));
    for (int64_t i = 0; i < 1000; i++)
        assert_in_range(
            bm_augment_frames(a, bm_augment_key(1, 0, i), &in, &any), 80, 125);
    bm_augmenter_free(a);
}

/* *self: how many frames are enough. */
static bool fits(const void *self, size_t frames, const int32_t *labels,
                 size_t n_labels)
{
    const size_t *enough = self;

    assert_int_equal(n_labels, 2);
    assert_int_equal(labels[1], 5);
    return frames >= *enough;
}

static void test_sequences_that_would_not_fit_keep_their_length(void **_)
{
    static const struct {
        const char *speed;
        size_t enough, expected;
    } rows[] = {
        {"speed=2", 50, 50},     {"speed=2", 51, 100},
        {"speed=2", 200, 100},   {"speed=0.5", 50, 200},
        {"speed=0.5", 150, 200}, {"speed=0.5", 999, 100},
    };
    int32_t labels[] = {4, 5};
    bm_augmented in = {.frames = 100, .labels = labels, .n_labels = 2};
    bm_layout l = bm_layout_of("", 2);

    (void)_;
    FOR_EACH (i, rows) {
        bm_augment_settings s = SETTINGS(rows[i].speed);
        bm_fit fit = {fits, &rows[i].enough};
        bm_augmenter *a = NULL;

        assert_ok(bm_augmenter_new(&a, &s, &l, false));
        assert_int_equal(bm_augment_frames(a, 1, &in, &fit), rows[i].expected);
        bm_augmenter_free(a);
    }
}

/* The ramp's values are places in the input. */
static void test_warping_moves_a_point_and_stretches_the_rest(void **_)
{
    enum { T = 60, REACH = 10 };
    bm_augment_settings s = SETTINGS("warp=10");
    float *x = ramp(T);
    double most = 0;

    (void)_;
    for (int64_t i = 0; i < 500; i++) {
        uint64_t key = bm_augment_key(5, 1, i);
        stream r = {bm_rng_fork(key, 2), 0};
        double from = REACH + (double)below(&r, T - 2 * REACH + 1);
        double to = from - REACH + 1 + (double)below(&r, 2 * REACH - 1);
        size_t frames = 0;
        float *y = augmented(&s, "", x, T, 2, key, &frames);

        assert_int_equal(frames, T);
        for (size_t t = 0; t < T; t++) {
            double p = (double)t + 0.5;
            double at =
                p <= to ? p * from / to : T - (T - p) * (T - from) / (T - to);

            at = fmin(fmax(at - 0.5, 0), T - 1);
            assert_true(near((double)y[2 * t], at, 1e-6));
            most = fmax(most, fabs(at - (double)t));
        }
        free(y);
    }
    assert_true(most > REACH - 2 && most < REACH);
    free(x);
}

static void test_short_sequences_are_warped_within_their_length(void **_)
{
    bm_augment_settings s = SETTINGS("warp=1000");

    (void)_;
    for (size_t T = 1; T < 12; T++)
        for (int64_t i = 0; i < 50; i++) {
            float *x = ramp(T), *y = NULL;
            size_t frames = 0;

            y = augmented(&s, "", x, T, 2, bm_augment_key(5, 1, i), &frames);
            assert_int_equal(frames, T);
            for (size_t t = 0; t < T; t++) {
                assert_true(y[2 * t] >= 0 && y[2 * t] <= (float)T - 1);
                assert_true(t == 0 || y[2 * t] >= y[2 * t - 2]);
            }
            free(x);
            free(y);
        }
}

/* Frame t of the input has target t: it must stay near the frame's place. */
static void test_targets_of_frames_move_with_the_frames(void **_)
{
    enum { T = 60 };
    bm_augment_settings s = SETTINGS("warp=20", "speed=0.5:2");
    bm_layout l = bm_layout_of("", 2);
    float *x = ramp(T), y[2 * 2 * T];
    int32_t labels[T], targets[2 * T];
    bm_augmented in = {x, T, labels, T};
    bm_augmenter *a = NULL;

    (void)_;
    for (int32_t t = 0; t < T; t++)
        labels[t] = t;
    assert_ok(bm_augmenter_new(&a, &s, &l, true));
    for (int64_t i = 0; i < 300; i++) {
        uint64_t key = bm_augment_key(5, 1, i);
        size_t frames = bm_augment_frames(a, key, &in, &any);

        assert_in_range(frames, T / 2, 2 * T);
        assert_ok(bm_augment(a, key, &in, frames, y, targets));
        for (size_t t = 0; t < frames; t++)
            assert_true(fabs((double)y[2 * t] - targets[t]) <= 0.5 + 1e-5);
    }
    bm_augmenter_free(a);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_ramp_is_resampled_by_the_formula),
        cmocka_unit_test(test_factors_of_speed_are_equally_likely),
        cmocka_unit_test(test_sequences_that_would_not_fit_keep_their_length),
        cmocka_unit_test(test_warping_moves_a_point_and_stretches_the_rest),
        cmocka_unit_test(test_short_sequences_are_warped_within_their_length),
        cmocka_unit_test(test_targets_of_frames_move_with_the_frames),
    };

    return RUN_GROUP("augment_time", tests);
}
