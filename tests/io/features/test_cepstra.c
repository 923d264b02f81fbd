/*
 * Cepstra against their formula, and features of a recording against numbers of
 * kaldi-native-fbank 1.23, a port of Kaldi's code.
 */
#include "io/features/cepstra.h"
#include "io/features/fbank.h"
#include "io/features/recording_features.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* The cepstra of x [frames, bands]: y [frames, n]. */
static void transform(size_t bands, size_t n, const float *x, size_t frames,
                      float *y)
{
    bm_cepstra *c = NULL;

    assert_ok(bm_cepstra_new(&c, bands, n));
    bm_cepstra_apply(c, x, frames, y, n);
    bm_cepstra_free(c);
}

static double lifter(size_t k)
{
    return 1 + 11 * sin(pi * (double)k / 22);
}

static void test_cepstra_equal_their_definition(void **_)
{
    enum { T = 3, MOST = 80 };
    static const size_t sizes[][2] = {{23, 13}, {40, 40}, {80, 1},
                                      {80, 20}, {1, 1},   {7, 6}};
    float x[T * MOST], y[T * MOST];

    (void)_;
    for (size_t i = 0; i < T * MOST; i++)
        x[i] = (float)(30 * uniform(i) - 10);
    FOR_EACH (s, sizes) {
        size_t M = sizes[s][0], n = sizes[s][1];

        transform(M, n, x, T, y);
        for (size_t t = 0; t < T; t++)
            for (size_t k = 0; k < n; k++) {
                double sum = 0;

                for (size_t m = 0; m < M; m++)
                    sum +=
                        (double)x[t * M + m] *
                        cos(pi * (double)(k * (2 * m + 1)) / (double)(2 * M));
                sum *= k == 0 ? 1 / sqrt((double)M) : sqrt(2 / (double)M);
                assert_true(near(y[t * n + k], lifter(k) * sum, 1e-6));
            }
    }
}

/* Without the lifter as many cepstra as bands are a rotation. */
static void test_all_cepstra_keep_lengths_and_angles(void **_)
{
    enum { M = 40 };
    float x[2 * M], y[2 * M];
    double before[3] = {0}, after[3] = {0};

    (void)_;
    for (size_t i = 0; i < 2 * M; i++)
        x[i] = (float)(20 * uniform(i) - 5);
    transform(M, M, x, 2, y);
    for (size_t k = 0; k < M; k++) {
        double a = y[k] / lifter(k), b = y[M + k] / lifter(k);

        before[0] += (double)x[k] * x[k];
        before[1] += (double)x[M + k] * x[M + k];
        before[2] += (double)x[k] * x[M + k];
        after[0] += a * a;
        after[1] += b * b;
        after[2] += a * b;
    }
    for (int i = 0; i < 3; i++)
        assert_true(near(after[i], before[i], 1e-5));
}

/* Twice the amplitude adds ln 4 to each band. */
static void test_the_volume_changes_the_first_alone(void **_)
{
    enum { M = 23, N = 13 };
    float x[2 * M], y[2 * N];

    (void)_;
    for (size_t m = 0; m < M; m++) {
        x[m] = (float)(20 * uniform(m));
        x[M + m] = x[m] + (float)log(4);
    }
    transform(M, N, x, 2, y);
    assert_true(near(y[N] - y[0], sqrt(M) * log(4), 1e-5));
    for (size_t k = 1; k < N; k++)
        assert_float_equal(y[N + k], y[k], 1e-4);
}

static void test_other_columns_are_left_alone(void **_)
{
    static const float x[2][3] = {{1, 2, 4}, {3, 3, 3}};
    float y[2][4] = {{-7, -7, -7, -7}, {-7, -7, -7, -7}};
    bm_cepstra *c = NULL;

    (void)_;
    assert_ok(bm_cepstra_new(&c, 3, 2));
    bm_cepstra_apply(c, x[0], 2, y[0], 4);
    bm_cepstra_free(c);
    assert_true(near(y[0][0], 7 / sqrt(3), 1e-6));
    assert_true(near(y[0][1], lifter(1) * (1 - 4) / sqrt(2), 1e-6));
    assert_true(near(y[1][0], 9 / sqrt(3), 1e-6));
    assert_float_equal(y[1][1], 0, 1e-5);
    for (int t = 0; t < 2; t++)
        assert_true(y[t][2] == -7 && y[t][3] == -7);
}

static bm_recording_settings settings_of(const char *const *set, size_t n,
                                         bm_config **config)
{
    bm_recording_settings s = {0};

    assert_ok(bm_config_new(config));
    for (size_t i = 0; i < n && set[i] != NULL; i++)
        assert_ok(bm_config_set(*config, set[i]));
    assert_ok(bm_config_fill(*config, "features", bm_recording_options, &s));
    return s;
}

/* A window of n samples that alternate around any mean. */
static void test_energy_is_that_of_the_window_less_its_mean(void **_)
{
    enum { W = 200, N = 10 * W };
    static const bm_fbank_settings s = {8000, 23,   25, 25,  "hamming",
                                        0.97, 20.0, 0,  true};
    static const double amplitude[] = {0, 1, 300, 20000};
    float x[N], y[2 * N / W];
    bm_fbank *f = NULL;

    (void)_;
    assert_ok(bm_fbank_new(&f, &s));
    FOR_EACH (k, amplitude) {
        double a = amplitude[k];

        for (size_t i = 0; i < N; i++) {
            size_t t = i / W;
            x[i] = (float)((i % 2 == 0 ? a : -a) + 100 * (double)t);
        }
        for (size_t i = 0; i < 2 * N / W; i++)
            y[i] = -7;
        bm_fbank_energies(f, x, N, y, 2);
        for (size_t t = 0; t < N / W; t++) {
            assert_true(near(y[2 * t], log(fmax(W * a * a, 1.1920929e-07)),
                             1e-6)); /* Kaldi's floor */
            assert_true(y[2 * t + 1] == -7);
        }
    }
    bm_fbank_free(f);
}

/* By kaldi-native-fbank 1.23.0 with the defaults of compute-mfcc-feats, with
 * --use-energy=false, by conf/mfcc_hires.conf, and at 8 kHz with reflected
 * ends: the first FIRST and the last LAST cepstra of the first and the last
 * frame. Of 13 these are all. */
static void test_features_have_the_known_answer(void **_)
{
    enum { N = 720, FIRST = 7, LAST = 6, KNOWN = FIRST + LAST, SET = 5 };
    static const struct {
        const char *set[SET];
        size_t n, frames;
        double y[2][KNOWN];
    } known[] = {
        {{"features.rate=16000", "features.mels=23", "features.cepstra=13",
          "features.energy=yes"},
         13,
         3,
         {{23.3323, -17.3768, -0.2030, 10.9542, -40.7111, -79.5294, -29.7363,
           -70.2529, -67.1611, 28.2018, 14.6904, 0.6078, 52.7179},
          {23.3321, -15.3959, 1.3753, 15.0580, -33.0272, -82.5776, -29.8634,
           -63.6165, -59.1788, 36.4770, 14.6202, -2.2014, 59.5036}}},
        {{"features.rate=16000", "features.mels=23", "features.cepstra=13"},
         13,
         3,
         {{84.4379, -17.3768, -0.2030, 10.9542, -40.7111, -79.5294, -29.7363,
           -70.2529, -67.1611, 28.2018, 14.6904, 0.6078, 52.7179},
          {84.2176, -15.3959, 1.3753, 15.0580, -33.0272, -82.5776, -29.8634,
           -63.6165, -59.1788, 36.4770, 14.6202, -2.2014, 59.5036}}},
        {{"features.rate=16000", "features.mels=40", "features.cepstra=40",
          "features.high_hz=-400"},
         40,
         3,
         {{103.8503, -27.0930, 0.4466, -0.4641, -55.4175, -85.8830, -46.3945,
           8.8227, -0.3563, -8.0178, -2.0622, -7.9643, -5.0758},
          {103.8032, -23.8832, 2.7159, 6.5683, -45.0813, -90.2798, -45.4332,
           12.6359, 2.3767, -4.2404, -2.2122, -8.4377, -3.5115}}},
        {{"features.rate=8000", "features.mels=30", "features.cepstra=20",
          "features.high_hz=-200", "features.snip_edges=no"},
         20,
         9,
         {{103.8662, 0.0554, 16.8942, -60.4436, -21.6134, -18.9999, -35.3059,
           -7.3850, -1.1559, 4.1960, 1.5384, 1.2253, -3.3183},
          {107.5522, -6.8301, 5.6183, -38.1406, -35.3371, -21.4490, -20.1131,
           -11.7788, 6.0695, 3.1666, 0.5295, 3.1847, -3.3304}}},
    };

    (void)_;
    FOR_EACH (k, known) {
        bm_config *config = NULL;
        bm_recording_settings s = settings_of(known[k].set, SET, &config);
        bm_recording_bank *bank = NULL;
        bm_frames y = {0};
        double turn = 2 * pi / (double)s.rate;
        float x[N];

        for (size_t i = 0; i < N; i++)
            x[i] = (float)round(8000 * sin(turn * 440 * (double)i) +
                                2000 * cos(turn * 3000 * (double)i)) +
                   (float)((31 * i * i + 17 * i) % 401) - 200;
        assert_ok(bm_recording_bank_new(&bank, &s));
        assert_ok(bm_recording_frames(bank, &s, "a", x, N, &y));
        assert_int_equal(y.n, known[k].frames);
        assert_int_equal(y.dim, known[k].n);
        assert_int_equal(bm_recording_columns(&s), known[k].n);
        for (size_t i = 0; i < KNOWN; i++) {
            size_t d = i < FIRST ? i : y.dim - KNOWN + i;

            assert_float_equal(y.x[d], known[k].y[0][i], 1e-3);
            assert_float_equal(y.x[(y.n - 1) * y.dim + d], known[k].y[1][i],
                               1e-3);
        }
        bm_frames_free(&y);
        bm_recording_bank_free(bank);
        bm_config_free(config);
    }
}

/* The least numbers of samples that have 1 and 1001 frames are 1000 shifts
 * apart. */
static void test_the_shift_is_that_of_the_frames(void **_)
{
    static const char *const known[][3] = {
        {"features.rate=22050"},
        {"features.rate=11025", "features.subsample=3"},
        {"features.rate=44100", "features.shift_ms=12.5"},
        {"features.rate=16000"},
    };

    (void)_;
    FOR_EACH (k, known) {
        bm_config *config = NULL;
        bm_recording_settings s = settings_of(known[k], 3, &config);
        bm_recording_bank *bank = NULL;
        size_t first = 0, last = 0;
        double apart = 0;

        assert_ok(bm_recording_bank_new(&bank, &s));
        while (bm_recording_bank_frames(bank, first) < 1)
            first++;
        for (last = first; bm_recording_bank_frames(bank, last) < 1001;)
            last++;
        apart = (double)(last - first) / (double)s.rate;
        assert_true(near(bm_recording_shift(&s),
                         apart / 1000 * (double)s.chain.subsample, 1e-12));
        bm_recording_bank_free(bank);
        bm_config_free(config);
    }
}

static void test_invalid_settings_are_rejected_with_the_remedy(void **_)
{
    static const struct {
        const char *set[3], *message;
    } cases[] = {
        {{"features.mels=12", "features.cepstra=13"},
         "features.cepstra: 13 cepstra of 12 bands; set features.mels to 13 at "
         "least"},
        {{"features.energy=yes"}, "features.cepstra = 0; set it to 13"},
    };

    (void)_;
    FOR_EACH (k, cases) {
        bm_config *config = NULL;
        bm_recording_settings s = settings_of(cases[k].set, 3, &config);
        bm_recording_bank *bank = NULL;

        s.rate = 8000;
        assert_int_equal(bm_recording_bank_new(&bank, &s), BM_ERR_CONFIG);
        assert_null(bank);
        assert_non_null(strstr(bm_last_error(), cases[k].message));
        bm_config_free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cepstra_equal_their_definition),
        cmocka_unit_test(test_all_cepstra_keep_lengths_and_angles),
        cmocka_unit_test(test_the_volume_changes_the_first_alone),
        cmocka_unit_test(test_other_columns_are_left_alone),
        cmocka_unit_test(test_energy_is_that_of_the_window_less_its_mean),
        cmocka_unit_test(test_features_have_the_known_answer),
        cmocka_unit_test(test_the_shift_is_that_of_the_frames),
        cmocka_unit_test(test_invalid_settings_are_rejected_with_the_remedy),
    };
    return RUN_GROUP("cepstra", tests);
}
