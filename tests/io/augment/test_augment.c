/*
 * What augmentation makes of small sequences: known answers, replicas that are
 * written again from the documentation, and distributions.
 */
#include "io/augment/augment.h"
#include "io/augment/draw.h"
#include "io/augment/image_map.h"
#include "io/augment/time_map.h"
#include "io/augment/values.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- settings and sequences
 * --------------------------------------------------- */

static bm_augment_settings settings_of(const char *const *set, size_t n)
{
    static bm_config *kept; /* the settings borrow a text of the last one */
    bm_augment_settings s;

    bm_config_free(kept);
    assert_ok(bm_config_new(&kept));
    for (size_t i = 0; i < n; i++) {
        char text[100];

        snprintf(text, sizeof text, "augment.%s", set[i]);
        assert_ok(bm_config_set(kept, text));
    }
    assert_ok(bm_config_fill(kept, "augment", bm_augment_options, &s));
    return s;
}

#define SETTINGS(...)                                                          \
    settings_of((const char *const[]){__VA_ARGS__},                            \
                sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static const char speech[] = "{\"kind\": \"audio\", \"mels\": 8}";
static const char image[] = "{\"kind\": \"images\", \"height\": 9}";

static const bm_fit any = {0};

/* Augments x [T, D] by settings; free(). */
static float *augmented(const bm_augment_settings *s, const char *description,
                        const float *x, size_t T, size_t D, uint64_t key,
                        size_t *frames)
{
    bm_layout l = bm_layout_of(description, D);
    bm_augmented in = {x, T, NULL, 0};
    bm_augmenter *a = NULL;
    float *y = NULL;

    assert_ok(bm_augmenter_new(&a, s, &l, false));
    *frames = bm_augment_frames(a, key, &in, &any);
    y = zeros(*frames * D, sizeof *y);
    assert_ok(bm_augment(a, key, &in, *frames, y, NULL));
    bm_augmenter_free(a);
    return y;
}

/* Numbers in [0, 1) that are a function of the place. */
static float *some(size_t n)
{
    float *x = zeros(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)uniform(i);
    return x;
}

/* ---- tables
 * ------------------------------------------------------------------- */

static void test_speeds_are_a_list_or_a_range(void **_)
{
    static const struct {
        const char *text;
        int n; /* 0: invalid */
        bool range;
        double last, stretch;
    } rows[] = {
        {"", 1, false, 1, 1},
        {"1", 1, false, 1, 1},
        {"0.9 1 1.1", 3, false, 1.1, 1 / 0.9},
        {"0.5:2", 2, true, 2, 2},
        {"1.1:1.2", 2, true, 1.2, 1},
        {"0.25  4", 2, false, 4, 4},
        {.text = "1.1:0.9"},
        {.text = "0.9,1.1"},
        {.text = "0.2"},
        {.text = "4.1"},
        {.text = "nan"},
        {.text = "1:2:3"},
        {.text = "fast"},
        {.text = "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"},
    };

    (void)_;
    FOR_EACH (i, rows) {
        bm_speeds s = {0};

        assert_int_equal(bm_speeds_read(rows[i].text, &s), rows[i].n > 0);
        assert_int_equal(s.n, rows[i].n);
        if (s.n == 0)
            continue;
        assert_int_equal(s.range, rows[i].range);
        assert_true(s.factor[s.n - 1] == rows[i].last);
        assert_true(near(bm_speeds_stretch(&s), rows[i].stretch, 1e-12));
    }
}

static void test_each_setting_augments_by_itself(void **_)
{
    static const char *const on[] = {
        "speed=1.1",  "warp=5",     "time_masks=1", "frequency_masks=1",
        "offset=1",   "contrast=1", "noise=1",      "slant=1",
        "height=0.1", "shift=0.1",  "elastic=0.1",  "stroke=1",
        "cutouts=1",
    };
    bm_augment_settings s = SETTINGS("time_width=3");

    (void)_;
    assert_false(bm_augment_any(&s));
    s = SETTINGS("speed=1");
    assert_false(bm_augment_any(&s));
    FOR_EACH (i, on) {
        s = SETTINGS(on[i]);
        assert_true(bm_augment_any(&s));
        s = SETTINGS(on[i], "share=0");
        assert_false(bm_augment_any(&s));
    }
}

static void test_layouts_are_those_of_features(void **_)
{
    static const struct {
        const char *text;
        size_t D;
        bm_frame_kind kind;
        size_t bands, columns, orders, extra;
    } rows[] = {
        {"{\"kind\":\"audio\",\"mels\":80,\"pitch\":true}", 83,
         BM_FRAMES_SPEECH, 80, 1, 1, 3},
        {"{\"kind\":\"audio\",\"mels\":3,\"pitch\":true,\"deltas\":1,"
         "\"stack\":2}",
         24, BM_FRAMES_SPEECH, 3, 4, 2, 3},
        {"{\"kind\":\"audio\",\"mels\":40,\"pitch\":true}", 80, BM_FRAMES_OTHER,
         80, 1, 1, 0},
        {"{\"kind\":\"audio\",\"mels\":23,\"cepstra\":13,\"deltas\":2}", 39,
         BM_FRAMES_CEPSTRA, 13, 3, 3, 0},
        {"{\"kind\":\"audio\",\"mels\":40,\"cepstra\":13,\"pitch\":true,"
         "\"stack\":2}",
         32, BM_FRAMES_CEPSTRA, 13, 2, 1, 3},
        {"{\"kind\":\"audio\",\"mels\":40,\"cepstra\":0}", 40, BM_FRAMES_SPEECH,
         40, 1, 1, 0},
        {"{\"kind\":\"audio\",\"mels\":40,\"deltas\":0,\"stack\":1}", 40,
         BM_FRAMES_SPEECH, 40, 1, 1, 0},
        {"{\"kind\":\"audio\",\"mels\":40,\"deltas\":2,\"stack\":3}", 360,
         BM_FRAMES_SPEECH, 40, 9, 3, 0},
        {"{\"kind\":\"images\",\"height\":48,\"columns\":4}", 192,
         BM_FRAMES_IMAGE, 48, 4, 1, 0},
        {"{\"kind\":\"idx\",\"pad\":2}", 32, BM_FRAMES_IMAGE, 32, 1, 1, 0},
        {"{\"kind\":\"features\",\"deltas\":1,\"stack\":2}", 52,
         BM_FRAMES_OTHER, 13, 4, 2, 0},
        {"{\"kind\":\"features\",\"deltas\":1,\"stack\":2}", 50,
         BM_FRAMES_OTHER, 50, 1, 1, 0},
        {"{\"kind\":\"audio\",\"mels\":41}", 40, BM_FRAMES_OTHER, 40, 1, 1, 0},
        {"{\"kind\":\"audio\",\"mels\":-1}", 40, BM_FRAMES_SPEECH, 1, 40, 1, 0},
        {"{\"mels\":1e300,\"deltas\":99,\"stack\":-4}", 6, BM_FRAMES_SPEECH, 1,
         6, 1, 0},
        {"", 13, BM_FRAMES_OTHER, 13, 1, 1, 0},
        {"not JSON", 13, BM_FRAMES_OTHER, 13, 1, 1, 0},
    };

    (void)_;
    FOR_EACH (i, rows) {
        bm_layout l = bm_layout_of(rows[i].text, rows[i].D);

        if (l.features != rows[i].D || l.kind != rows[i].kind ||
            l.bands != rows[i].bands || l.columns != rows[i].columns ||
            l.orders != rows[i].orders || l.extra != rows[i].extra)
            fail_msg("%s: kind %d, %zu bands, %zu columns, %zu orders, %zu "
                     "extra",
                     rows[i].text, l.kind, l.bands, l.columns, l.orders,
                     l.extra);
    }
}

/* ---- masks
 * -------------------------------------------------------------------- */

/* Number k of a stream of a sequence, by the definitions of core/rng.h. */
typedef struct stream {
    uint64_t key, k;
} stream;

static uint64_t below(stream *s, uint64_t n)
{
    bm_rng rng = {s->key, s->k};
    uint64_t x = bm_rng_below(&rng, n);

    s->k = rng.next;
    return x;
}

/* Marks the masks of a stream in hit [n]. */
static void mark(stream *s, size_t widest, size_t n, bool *hit)
{
    size_t width = (size_t)below(s, (widest < n ? widest : n) + 1);
    size_t first = (size_t)below(s, n - width + 1);

    for (size_t i = first; i < first + width; i++)
        hit[i] = true;
}

static void test_masks_are_where_a_replica_puts_them(void **_)
{
    enum { T = 50, BANDS = 8, COLUMNS = 3, D = BANDS * COLUMNS };
    static const char stacked[] =
        "{\"kind\": \"audio\", \"mels\": 8, \"stack\": 3}";
    bm_augment_settings s =
        SETTINGS("time_masks=2", "time_width=30", "time_share=0.3",
                 "frequency_masks=2", "frequency_width=3");
    float *x = some(T * D), mean[D] = {0};
    size_t n_hit = 0, frames = 0;

    (void)_;
    for (size_t d = 0; d < D; d++) {
        double sum = 0;
        for (size_t t = 0; t < T; t++)
            sum += (double)x[t * D + d];
        mean[d] = (float)(sum / T);
    }
    for (int64_t sequence = 0; sequence < 200; sequence++) {
        uint64_t key = bm_augment_key(3, 7, sequence);
        float *y = augmented(&s, stacked, x, T, D, key, &frames);
        stream over_time = {bm_rng_fork(key, 8), 0},
               over_bands = {bm_rng_fork(key, 9), 0};
        bool time[T] = {false}, band[BANDS] = {false};

        for (int k = 0; k < 2; k++) {
            mark(&over_time, 15, T, time); /* 0.3 of 50 */
            mark(&over_bands, 3, BANDS, band);
        }
        assert_int_equal(frames, T);
        for (size_t t = 0; t < T; t++)
            for (size_t d = 0; d < D; d++) {
                bool hit = time[t] || band[d % BANDS];

                n_hit += hit;
                assert_true(y[t * D + d] == (hit ? mean[d] : x[t * D + d]));
            }
        free(y);
    }
    assert_true(n_hit > 0);
    free(x);
}

static void test_cut_outs_of_images_are_background(void **_)
{
    enum { T = 20, D = 18 }; /* two columns of nine pixels */
    bm_augment_settings s = SETTINGS("cutouts=3", "cutout_size=0.5");
    float *x = some(T * D);
    size_t n_hit = 0, frames = 0;

    (void)_;
    for (size_t i = 0; i < T * D; i++)
        x[i] += 0.01f;
    for (int64_t sequence = 0; sequence < 100; sequence++) {
        uint64_t key = bm_augment_key(3, 7, sequence);
        float *y = augmented(&s, image, x, T, D, key, &frames);
        stream r = {bm_rng_fork(key, 10), 0};
        bool hit[2 * T][9] = {{false}};

        for (int k = 0; k < 3; k++) {
            bool column[2 * T] = {false}, row[9] = {false};

            mark(&r, 5, sizeof column, column); /* 0.5 of 9, rounded */
            mark(&r, 5, sizeof row, row);
            for (size_t i = 0; i < sizeof column; i++)
                for (size_t j = 0; j < sizeof row; j++)
                    hit[i][j] |= column[i] && row[j];
        }
        for (size_t i = 0; i < 2 * T; i++)
            for (size_t j = 0; j < 9; j++) {
                n_hit += hit[i][j];
                assert_true(y[i * 9 + j] == (hit[i][j] ? 0 : x[i * 9 + j]));
            }
        free(y);
    }
    assert_true(n_hit > 0);
    free(x);
}

/* Widths 0 .. 4 are equally likely, and so are the places of each: the statistic
 * of chi squared with 4 degrees of freedom is below 18.5 with 99.9 %. */
static void test_widths_of_masks_are_uniform(void **_)
{
    enum { T = 12, D = 2, N = 20000 };
    bm_augment_settings s =
        SETTINGS("time_masks=1", "time_width=4", "time_share=1");
    float x[T * D];
    double widths[5] = {0}, chi = 0;
    size_t frames = 0;

    (void)_;
    for (size_t i = 0; i < T * D; i++)
        x[i] = i % 4 == 0 ? 1 : -1; /* the mean is no value */
    for (int64_t i = 0; i < N; i++) {
        float *y = augmented(&s, "", x, T, D, bm_augment_key(1, 0, i), &frames);
        int width = 0;

        for (size_t t = 0; t < T; t++)
            width += y[t * D] != x[t * D];
        assert_in_range(width, 0, 4);
        widths[width]++;
        free(y);
    }
    for (int w = 0; w < 5; w++)
        chi += pow(widths[w] - N / 5.0, 2) / (N / 5.0);
    assert_true(chi < 18.5);
}

/* ---- time
 * --------------------------------------------------------------------- */

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

/* ---- images
 * ------------------------------------------------------------------- */

enum { STRIPS = 7, ROWS = 9 };

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

/* ---- values
 * ------------------------------------------------------------------- */

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

/* With the draws of docs/augmentation.md: contrast, offset, then the level of
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

/* ---- all
 * ------------------------------------------------------------------------ */

static void test_a_share_of_the_sequences_is_changed(void **_)
{
    bm_augment_settings s = SETTINGS("share=0.3", "noise=1");
    float *x = some(STRIPS * ROWS);
    int changed = 0;

    (void)_;
    for (int64_t k = 0; k < 2000; k++) {
        size_t frames = 0;
        float *y = augmented(&s, speech, x, STRIPS, ROWS,
                             bm_augment_key(1, 2, k), &frames);

        changed += x[0] != y[0];
        free(y);
    }
    assert_in_range(changed, 520, 680); /* 4 deviations */
    free(x);
}

static void test_a_setting_does_not_change_what_others_draw(void **_)
{
    enum { T = 40, D = 8 };
    float *x = some(T * D);
    size_t masked = 0, frames = 0;

    (void)_;
    for (int64_t k = 0; k < 50; k++) {
        uint64_t key = bm_augment_key(1, 2, k);
        bm_augment_settings s = SETTINGS("time_masks=2", "time_share=0.5");
        float *y = augmented(&s, "", x, T, D, key, &frames), *z = NULL;

        s = SETTINGS("time_masks=2", "time_share=0.5", "noise=0.1");
        z = augmented(&s, "", x, T, D, key, &frames);
        for (size_t i = 0; i < T * D; i++)
            if (y[i] != x[i]) {
                masked++;
                assert_true(z[i] == y[i]);
            }
        free(y);
        free(z);
    }
    assert_true(masked > 0);
    free(x);
}

/* As the reader does: the output begins within the input, or before it. */
static void test_a_sequence_can_be_changed_in_place(void **_)
{
    enum { T = 60, D = 9 };
    bm_augment_settings s = SETTINGS(
        "speed=0.5:2", "warp=9", "slant=0.4", "height=0.1", "shift=0.1",
        "elastic=0.05", "stroke=1", "contrast=0.3", "offset=0.1", "noise=0.1",
        "time_masks=2", "frequency_masks=1", "cutouts=2");
    bm_layout l = bm_layout_of(image, D);
    bm_augmenter *a = NULL;
    float *x = some(T * D);

    (void)_;
    assert_ok(bm_augmenter_new(&a, &s, &l, false));
    for (int64_t k = 0; k < 60; k++) {
        float *whole = zeros(3 * T * D, sizeof *whole);
        uint64_t key = bm_augment_key(1, 2, k);
        size_t frames = 0;
        float *y = augmented(&s, image, x, T, D, key, &frames);
        bm_augmented in = {whole + T * D, T, NULL, 0};
        float *at = whole + (k % 3 == 0 ? T * D : 2 * T * D - frames * D);

        memcpy(whole + T * D, x, T * D * sizeof *x);
        assert_int_equal(bm_augment_frames(a, key, &in, &any), frames);
        assert_ok(bm_augment(a, key, &in, frames, at, NULL));
        assert_memory_equal(at, y, frames * D * sizeof *y);
        free(whole);
        free(y);
    }
    bm_augmenter_free(a);
    free(x);
}

static void test_seed_epoch_and_sequence_make_the_key(void **_)
{
    uint64_t key = bm_augment_key(1, 2, 3);

    (void)_;
    assert_true(key == bm_augment_key(1, 2, 3));
    assert_true(key != bm_augment_key(2, 2, 3));
    assert_true(key != bm_augment_key(1, 3, 3));
    assert_true(key != bm_augment_key(1, 2, 4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_speeds_are_a_list_or_a_range),
        cmocka_unit_test(test_each_setting_augments_by_itself),
        cmocka_unit_test(test_layouts_are_those_of_features),
        cmocka_unit_test(test_masks_are_where_a_replica_puts_them),
        cmocka_unit_test(test_cut_outs_of_images_are_background),
        cmocka_unit_test(test_widths_of_masks_are_uniform),
        cmocka_unit_test(test_a_ramp_is_resampled_by_the_formula),
        cmocka_unit_test(test_factors_of_speed_are_equally_likely),
        cmocka_unit_test(test_sequences_that_would_not_fit_keep_their_length),
        cmocka_unit_test(test_warping_moves_a_point_and_stretches_the_rest),
        cmocka_unit_test(test_short_sequences_are_warped_within_their_length),
        cmocka_unit_test(test_targets_of_frames_move_with_the_frames),
        cmocka_unit_test(test_shifts_and_slants_by_whole_pixels_are_exact),
        cmocka_unit_test(test_heights_are_scaled_around_the_middle),
        cmocka_unit_test(test_pixels_are_interpolated),
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
        cmocka_unit_test(test_a_share_of_the_sequences_is_changed),
        cmocka_unit_test(test_a_setting_does_not_change_what_others_draw),
        cmocka_unit_test(test_a_sequence_can_be_changed_in_place),
        cmocka_unit_test(test_seed_epoch_and_sequence_make_the_key),
    };

    return RUN_GROUP("augment", tests);
}
