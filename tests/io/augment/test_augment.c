/*
 * Augmentation as a whole: settings and layouts, masks against a replica that is
 * written again from the documentation, and what is the same whatever is changed.
 */
#include "core/rng.h"
#include "io/augment/augment.h"
#include "tests/io/augment/sequences.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables -------------------------------------------------------------- */

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

/* ---- masks --------------------------------------------------------------- */

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

static int by_size(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;

    return (x > y) - (x < y);
}

/* The lighter median of the edge of an image of columns of nine pixels, in steps
 * of 1/255. */
static float paper_of(const float *x, size_t strips)
{
    float edge[100];
    size_t n = 0;

    for (size_t i = 0; i < strips; i++)
        for (size_t j = 0; j < 9; j++)
            if (i == 0 || i == strips - 1 || j == 0 || j == 8)
                edge[n++] = x[i * 9 + j];
    assert_int_equal(n, 2 * strips + 14);
    qsort(edge, n, sizeof *edge, by_size);
    return roundf(255 * edge[(n - 1) / 2]) / 255;
}

static void test_cut_outs_of_images_are_paper(void **_)
{
    enum { T = 20, D = 18 }; /* two columns of nine pixels */
    bm_augment_settings s = SETTINGS("cutouts=3", "cutout_size=0.5");
    float *x = some(T * D), paper = paper_of(x, 2 * T);
    size_t n_hit = 0, frames = 0;

    (void)_;
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
                assert_true(y[i * 9 + j] == (hit[i][j] ? paper : x[i * 9 + j]));
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

/* ---- all ----------------------------------------------------------------- */

static const char speech[] = "{\"kind\": \"audio\", \"mels\": 8}";

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
        cmocka_unit_test(test_cut_outs_of_images_are_paper),
        cmocka_unit_test(test_widths_of_masks_are_uniform),
        cmocka_unit_test(test_a_share_of_the_sequences_is_changed),
        cmocka_unit_test(test_a_setting_does_not_change_what_others_draw),
        cmocka_unit_test(test_a_sequence_can_be_changed_in_place),
        cmocka_unit_test(test_seed_epoch_and_sequence_make_the_key),
    };

    return RUN_GROUP("augment", tests);
}
