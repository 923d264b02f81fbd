/*
 * Augmentation of what is in frames: distortions and strokes of small images with
 * known answers, contrast, volume and noise with the draws of the documentation.
 */
#include "core/rng.h"
#include "io/augment/augment.h"
#include "io/augment/draw.h"
#include "io/augment/image_map.h"
#include "io/augment/time_map.h"
#include "io/augment/values.h"
#include "tests/io/augment/sequences.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>

/* ---- images -------------------------------------------------------------- */

/* A distortion of x [STRIPS, ROWS]. */
static void distort(bm_image_map m, const float *x, float *y)
{
    bm_augment_settings s = SETTINGS("share=1");
    bm_layout l = bm_layout_of(image, ROWS);

    m.time = bm_time_map_make(STRIPS, STRIPS);
    bm_image_map_apply(&m, &s, &l, 1, x, y, NULL);
}

/* The pixel, or background. */
static float pixel_at(const float *x, int i, int j)
{
    return i >= 0 && i < STRIPS && j >= 0 && j < ROWS ? x[i * ROWS + j] : 0;
}

static void test_shifts_and_slants_by_whole_pixels_are_exact(void **_)
{
    float *x = some(STRIPS * ROWS), y[STRIPS * ROWS];

    (void)_;
    for (int shift = -2; shift <= 2; shift++)
        for (int slant = -2; slant <= 2; slant++) {
            distort((bm_image_map){.scale = 1, .shift = shift, .slant = slant},
                    x, y);
            for (int i = 0; i < STRIPS; i++)
                for (int j = 0; j < ROWS; j++)
                    assert_true(
                        y[i * ROWS + j] ==
                        pixel_at(x, i + slant * (j - ROWS / 2), j - shift));
        }
    free(x);
}

static void test_heights_are_scaled_around_the_middle(void **_)
{
    float *x = some(STRIPS * ROWS), y[STRIPS * ROWS];

    (void)_;
    distort((bm_image_map){.scale = 0.5}, x, y);
    for (int i = 0; i < STRIPS; i++)
        for (int j = 0; j < ROWS; j++)
            assert_true(y[i * ROWS + j] == pixel_at(x, i, 2 * j - 4));
    distort((bm_image_map){.scale = 2}, x, y);
    for (int i = 0; i < STRIPS; i++)
        for (int j = 0; j < ROWS; j += 2)
            assert_true(y[i * ROWS + j] == pixel_at(x, i, j / 2 + 2));
    free(x);
}

/* A shift of half a pixel is the mean of two. */
static void test_pixels_are_interpolated(void **_)
{
    float *x = some(STRIPS * ROWS), y[STRIPS * ROWS];

    (void)_;
    distort((bm_image_map){.scale = 1, .shift = 0.5}, x, y);
    for (int i = 0; i < STRIPS; i++)
        for (int j = 0; j < ROWS; j++)
            assert_true(near(
                (double)y[i * ROWS + j],
                ((double)pixel_at(x, i, j - 1) + (double)pixel_at(x, i, j)) / 2,
                1e-6));
    free(x);
}

/* What comes in from beyond an image is paper, and so are cut-outs: an image of
 * nothing but paper stays as it is. */
static void test_paper_stays_paper(void **_)
{
    enum { T = 11, D = 18 }; /* two columns of nine pixels */
    static const int levels[] = {0, 20, 77, 255};
    bm_augment_settings s = SETTINGS(
        "slant=1", "height=0.5", "shift=0.5", "elastic=0.2", "cutouts=3",
        "cutout_size=0.5", "time_masks=1", "frequency_masks=1");

    (void)_;
    FOR_EACH (k, levels) {
        float x[T * D], paper = (float)levels[k] / 255, *y = NULL;
        size_t frames = 0;

        FOR_EACH (i, x)
            x[i] = paper;
        y = augmented(&s, image, x, T, D, bm_augment_key(3, 1, 0), &frames);
        assert_int_equal(frames, T);
        FOR_EACH (i, x)
            assert_true(
                near((double)y[i], (double)paper, paper > 0 ? 1e-6 : 0));
        free(y);
    }
}

/* Two columns of pixels in a frame are neighbours; bands of stacked frames are
 * distorted apart from each other, and repeat their edge. */
static void test_frames_are_distorted_by_their_layout(void **_)
{
    bm_augment_settings s = SETTINGS("share=1");
    bm_layout two = bm_layout_of(image, 2 * ROWS),
              stacked = bm_layout_of("{\"mels\": 3}", 6);
    bm_image_map m = {.scale = 1, .slant = 1};
    float *x = some(4 * 2 * ROWS), y[4 * 2 * ROWS];

    (void)_;
    m.time = bm_time_map_make(8, 8);
    bm_image_map_apply(&m, &s, &two, 1, x, y, NULL);
    for (int i = 0; i < 8; i++)
        for (int j = 0; j < ROWS; j++) {
            int from = i + j - ROWS / 2;

            assert_true(y[i * ROWS + j] ==
                        (from >= 0 && from < 8 ? x[from * ROWS + j] : 0));
        }
    m.time = bm_time_map_make(4, 4);
    bm_image_map_apply(&m, &s, &stacked, 1, x, y, NULL);
    for (int t = 0; t < 4; t++)
        for (int d = 0; d < 6; d++) {
            int from = t + d % 3 - 1;

            from = from < 0 ? 0 : from > 3 ? 3 : from;
            assert_true(y[t * 6 + d] == x[from * 6 + d]);
        }
    free(x);
}

/* Two stacked frames of four bands and three features of the pitch. Time is
 * warped for all; bands alone are masked, shifted and have a volume. */
static void test_pitch_is_only_changed_along_time(void **_)
{
    enum { T = 40, BANDS = 4, STRIDE = BANDS + 3, D = 2 * STRIDE };
    static const char pitch[] = "{\"mels\": 4, \"pitch\": true, \"stack\": 2}";
    static const char *const sets[][2] = {
        {"frequency_masks=2", "frequency_width=4"},
        {"shift=0.5", "elastic=0.2"},
        {"offset=2", "contrast=0"}};
    bm_augment_settings slow, shifted;
    float *x = some(T * D);
    size_t frames = 0;

    (void)_;
    FOR_EACH (k, sets) {
        bm_augment_settings s = SETTINGS(sets[k][0], sets[k][1]);
        size_t changed = 0;

        for (int64_t i = 0; i < 20; i++) {
            float *y =
                augmented(&s, pitch, x, T, D, bm_augment_key(1, 2, i), &frames);

            assert_int_equal(frames, T);
            for (size_t j = 0; j < T * D; j++)
                if (j % STRIDE >= BANDS)
                    assert_true(y[j] == x[j]);
                else
                    changed += y[j] != x[j];
            free(y);
        }
        assert_true(changed > T * D);
    }
    slow = SETTINGS("speed=0.5");
    shifted = slow;
    shifted.shift = 0.5;
    for (int64_t i = 0; i < 20; i++) {
        uint64_t key = bm_augment_key(1, 2, i);
        float *y = augmented(&shifted, pitch, x, T, D, key, &frames);
        float *z = augmented(&slow, pitch, x, T, D, key, &frames);

        assert_int_equal(frames, 2 * T);
        for (size_t j = 0; j < 2 * T * D; j++)
            if (j % STRIDE >= BANDS)
                assert_true(near(y[j], z[j], 1e-5));
        free(y);
        free(z);
    }
    free(x);
}

/* Of a ramp along one direction the change is the displacement. */
static void test_elastic_displacements_have_their_size_and_are_smooth(void **_)
{
    enum { W = 400, H = 40, D = H, MARGIN = 12 };
    static const char tall[] = "{\"kind\": \"images\", \"height\": 40}";
    bm_augment_settings s = SETTINGS("elastic=0.05", "elastic_grid=0.3");
    float *x = zeros(W * H, sizeof *x);

    (void)_;
    for (int along = 0; along < 2; along++) {
        double sum = 0, step = 0, n = 0;

        for (size_t i = 0; i < W; i++)
            for (size_t j = 0; j < H; j++)
                x[i * H + j] = (float)(along ? i : j);
        for (int64_t k = 0; k < 12; k++) {
            size_t frames = 0;
            float *y =
                augmented(&s, tall, x, W, D, bm_augment_key(1, 1, k), &frames);

            for (size_t i = MARGIN; i < W - MARGIN; i++)
                for (size_t j = MARGIN; j < H - MARGIN; j++) {
                    double change = (double)y[i * H + j] - (double)x[i * H + j];
                    double next =
                        (double)y[(i + 1) * H + j] - (double)x[(i + 1) * H + j];

                    sum += change * change;
                    step += (next - change) * (next - change);
                    n++;
                }
            free(y);
        }
        assert_true(near(sqrt(sum / n) / 2, 1, 0.1)); /* 0.05 of 40 */
        assert_true(sqrt(step / n) < 2 * sqrt(sum / n) / 12);
    }
    free(x);
}

static void test_strokes_grow_and_shrink_by_pixels(void **_)
{
    static const struct {
        double amount;
        float far, near, here; /* two pixels away, one, the pixel itself */
    } rows[] = {
        {1, 0, 1, 1},      {0.5, 0, 0.5f, 1}, {2, 1, 1, 1},
        {1.5, 0.5f, 1, 1}, {-1, 0, 0, 0},     {-0.25, 0, 0, 0.75f},
    };
    bm_layout l = bm_layout_of(image, ROWS);

    (void)_;
    FOR_EACH (i, rows) {
        float x[STRIPS * ROWS] = {0}, work[STRIPS * ROWS];

        x[3 * ROWS + 4] = 1;
        bm_strokes_change(&l, rows[i].amount, x, STRIPS, work);
        for (int a = 0; a < STRIPS; a++)
            for (int b = 0; b < ROWS; b++) {
                int off = abs(a - 3) > abs(b - 4) ? abs(a - 3) : abs(b - 4);
                float want = off == 0   ? rows[i].here
                             : off == 1 ? rows[i].near
                             : off == 2 ? rows[i].far
                                        : 0;

                assert_true(x[a * ROWS + b] == want);
            }
    }
}

/* Two stacked frames of four bands and two values of the pitch, which stay. */
static void test_strokes_stay_within_their_bands(void **_)
{
    enum { BANDS = 4, PITCH = 2, STRIDE = BANDS + PITCH, WIDTH = 2 * STRIDE };
    const bm_layout l = {BM_FRAMES_SPEECH, WIDTH, BANDS, PITCH, 2, 1};
    float x[3 * WIDTH] = {0}, work[3 * WIDTH];

    (void)_;
    x[WIDTH + BANDS - 1] = 1;      /* the last band of the first frame */
    x[WIDTH + STRIDE + BANDS] = 2; /* a pitch of the second */
    bm_strokes_change(&l, 1, x, 3, work);
    for (int i = 0; i < 3 * WIDTH; i++) {
        int strip = i / WIDTH, d = i % WIDTH;
        bool pitch = strip == 1 && d == STRIDE + BANDS;
        bool near = d == BANDS - 1 || d == BANDS - 2;

        assert_true(x[i] == (pitch ? 2 : near ? 1 : 0));
    }
}

/* ---- values -------------------------------------------------------------- */

static void test_gaussian_numbers_have_their_moments(void **_)
{
    enum { N = 200000 };
    double sum = 0, squares = 0, fourth = 0;

    (void)_;
    assert_true(near((double)bm_draw_gauss(0), -1020 / sqrt(43690), 1e-6));
    assert_true(
        near((double)bm_draw_gauss(UINT64_MAX), 1020 / sqrt(43690), 1e-6));
    for (uint64_t i = 0; i < N; i++) {
        double x = (double)bm_draw_gauss(bm_rng_at(7, i));

        sum += x;
        squares += x * x;
        fourth += x * x * x * x;
    }
    assert_true(fabs(sum / N) < 0.01);
    assert_true(near(squares / N, 1, 0.01));
    assert_true(near(fourth / N, 3 - 1.2 / 8, 0.05)); /* of eight uniform */
}

/* Mean and deviation of feature d. */
static void measure(const float *x, size_t T, size_t D, size_t d, double *mean,
                    double *deviation)
{
    double sum = 0, squares = 0;

    for (size_t t = 0; t < T; t++)
        sum += (double)x[t * D + d];
    *mean = sum / (double)T;
    for (size_t t = 0; t < T; t++)
        squares += pow((double)x[t * D + d] - *mean, 2);
    *deviation = sqrt(squares / (double)T);
}

/* With the draws of docs/data/augmentation.md: contrast, offset, then the level of
 * noise. Of x [T, D] the first `loud` features have a volume. */
static void check_contrast_and_volume(const char *description, const float *x,
                                      size_t T, size_t D, size_t loud)
{
    bm_augment_settings s = SETTINGS("contrast=0.5", "offset=2");
    double unit = 0;

    for (size_t d = 0; d < loud; d++) {
        double mean = 0, deviation = 0;

        measure(x, T, D, d, &mean, &deviation);
        unit += deviation / (double)loud;
    }
    for (int64_t i = 0; i < 50; i++) {
        uint64_t key = bm_augment_key(1, 2, i);
        bm_rng r = {bm_rng_fork(key, 6), 0};
        double c = 1 + 0.5 * (2 * bm_rng_uniform(&r) - 1);
        double offset = 2 * (2 * bm_rng_uniform(&r) - 1) * unit;
        size_t frames = 0;
        float *y = augmented(&s, description, x, T, D, key, &frames);

        for (size_t d = 0; d < D; d++) {
            double mean = 0, deviation = 0;

            measure(x, T, D, d, &mean, &deviation);
            for (size_t t = 0; t < T; t++) {
                double want = mean + c * ((double)x[t * D + d] - mean) +
                              (d < loud ? offset : 0);

                assert_true(near((double)y[t * D + d], want, 1e-5));
            }
        }
        free(y);
    }
}

static void test_contrast_and_volume_are_as_drawn(void **_)
{
    enum { T = 30, D = 4 }; /* values, then their slopes */
    float *x = some(T * D);

    (void)_;
    for (size_t t = 0; t < T; t++)
        x[t * D + 1] = 100 + 10 * x[t * D + 1];
    check_contrast_and_volume("{\"mels\": 2, \"deltas\": 1}", x, T, D, 2);
    check_contrast_and_volume("{\"mels\": 9, \"cepstra\": 2, \"deltas\": 1}", x,
                              T, D, 1);
    free(x);
}

static void test_noise_is_in_deviations_of_each_feature(void **_)
{
    enum { T = 4000, D = 3 };
    bm_augment_settings s = SETTINGS("noise=0.5");
    float *x = some(T * D);

    (void)_;
    for (size_t t = 0; t < T; t++) {
        x[t * D + 1] *= 100;
        x[t * D + 2] = 7; /* does not change */
    }
    for (int64_t i = 0; i < 10; i++) {
        uint64_t key = bm_augment_key(1, 2, i);
        bm_rng r = {bm_rng_fork(key, 6), 2};
        double level = 0.5 * bm_rng_uniform(&r);
        size_t frames = 0;
        float *y = augmented(&s, "", x, T, D, key, &frames);

        for (size_t d = 0; d < 2; d++) {
            double mean = 0, deviation = 0, noise = 0, before = 0;

            measure(x, T, D, d, &mean, &before);
            for (size_t t = 0; t < T; t++)
                y[t * D + d] -= x[t * D + d];
            measure(y, T, D, d, &mean, &deviation);
            noise = deviation / before;
            assert_true(near(noise / level, 1, 0.05));
            assert_true(fabs(mean) < 0.1 * deviation);
        }
        for (size_t t = 0; t < T; t++)
            assert_true(y[t * D + 2] == 7);
        free(y);
    }
    free(x);
}

static void test_pixels_stay_between_background_and_ink(void **_)
{
    bm_augment_settings s = SETTINGS("noise=1", "contrast=1", "offset=1");
    float *x = some(STRIPS * ROWS);
    int low = 0, high = 0;

    (void)_;
    for (int64_t k = 0; k < 50; k++) {
        size_t frames = 0;
        float *y = augmented(&s, image, x, STRIPS, ROWS,
                             bm_augment_key(1, 2, k), &frames);

        for (size_t i = 0; i < STRIPS * ROWS; i++) {
            assert_true(y[i] >= 0 && y[i] <= 1);
            low += y[i] == 0;
            high += y[i] == 1;
        }
        free(y);
    }
    assert_true(low > 0 && high > 0);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shifts_and_slants_by_whole_pixels_are_exact),
        cmocka_unit_test(test_heights_are_scaled_around_the_middle),
        cmocka_unit_test(test_pixels_are_interpolated),
        cmocka_unit_test(test_paper_stays_paper),
        cmocka_unit_test(test_frames_are_distorted_by_their_layout),
        cmocka_unit_test(test_pitch_is_only_changed_along_time),
        cmocka_unit_test(
            test_elastic_displacements_have_their_size_and_are_smooth),
        cmocka_unit_test(test_strokes_grow_and_shrink_by_pixels),
        cmocka_unit_test(test_strokes_stay_within_their_bands),
        cmocka_unit_test(test_gaussian_numbers_have_their_moments),
        cmocka_unit_test(test_contrast_and_volume_are_as_drawn),
        cmocka_unit_test(test_noise_is_in_deviations_of_each_feature),
        cmocka_unit_test(test_pixels_stay_between_background_and_ink),
    };

    return RUN_GROUP("augment_frames", tests);
}
