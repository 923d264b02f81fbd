/*
 * Features: the filter bank against its definition, in double with a sum for
 * every frequency; deltas against their published scales; the rest against
 * cases computed by hand.
 */
#include "core/rng.h"
#include "io/features/fbank.h"
#include "io/features/feature_chain.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* A test case of the filter bank. */
typedef struct bank_case {
    bm_fbank_settings s;
    size_t samples;
} bank_case;

static const bank_case bank_cases[] = {
    {{16000, 23, 25, 10, "povey", 0.97, 20, 0, true}, 1600},
    {{8000, 40, 25, 10, "hamming", 0.97, 20, 0, false}, 1234},
    {{44100, 80, 30, 7.5, "hanning", 0.9, 0, -200, true}, 6000},
    {{16000, 20, 32, 16, "blackman", 0, 100, 7000, true}, 2048},
    {{11025, 15, 20, 5, "rectangular", 1, 60, -400, false}, 500},
    {{16000, 23, 25, 10, "povey", 0.97, 20, 0, false}, 90}, /* < one window */
};

/* Two tones in noise, in the range of a recording. */
static void make_signal(float *x, size_t n, double rate)
{
    bm_rng rng = bm_rng_make(5, "signal", 0);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(6000 * sin(2 * pi * 300 * (double)i / rate) +
                       900 * cos(2 * pi * 2500 * (double)i / rate) +
                       50 * bm_rng_normal(&rng) + 17);
}

static double window_at(const char *name, size_t i, size_t n)
{
    double a = 2 * pi / (double)(n - 1), x = (double)i;

    if (strcmp(name, "hanning") == 0)
        return 0.5 - 0.5 * cos(a * x);
    if (strcmp(name, "hamming") == 0)
        return 0.54 - 0.46 * cos(a * x);
    if (strcmp(name, "povey") == 0)
        return pow(0.5 - 0.5 * cos(a * x), 0.85);
    if (strcmp(name, "blackman") == 0)
        return 0.42 - 0.5 * cos(a * x) + 0.08 * cos(2 * a * x);
    return 1;
}

static double to_mel(double f)
{
    return 1127 * log(1 + f / 700);
}

/* Sample i of a signal that is mirrored at both ends, edge samples twice. */
static double mirrored(const float *x, long n, long i)
{
    i = (i % (2 * n) + 2 * n) % (2 * n);
    return x[i < n ? i : 2 * n - 1 - i];
}

/* |sum of w exp(-2 pi i k j / padded)|^2 */
static double power(const double *w, size_t n, size_t padded, size_t k)
{
    double re = 0, im = 0;

    for (size_t j = 0; j < n; j++) {
        double a = 2 * pi * (double)((k * j) % padded) / (double)padded;
        re += w[j] * cos(a);
        im -= w[j] * sin(a);
    }
    return re * re + im * im;
}

/* The definition: mels of the window of n samples that begins at `first`. */
static void expected_frame(const bm_fbank_settings *s, const float *x,
                           size_t length, long first, double *out)
{
    double rate = (double)s->rate, mean = 0, w[2048], y[2048];
    double high = s->high_hz > 0 ? s->high_hz : rate / 2 + s->high_hz;
    double low_mel = to_mel(s->low_hz);
    double step = (to_mel(high) - low_mel) / (double)(s->mels + 1);
    size_t n = (size_t)floor(rate * s->window_ms / 1000), padded = 1;

    while (padded < n)
        padded *= 2;
    for (size_t j = 0; j < n; j++)
        mean += (w[j] = mirrored(x, (long)length, first + (long)j));
    for (size_t j = 0; j < n; j++)
        w[j] -= mean / (double)n;
    for (size_t j = 0; j < n; j++)
        y[j] = (w[j] - s->preemphasis * w[j > 0 ? j - 1 : 0]) *
               window_at(s->window, j, n);
    memset(out, 0, (size_t)s->mels * sizeof *out);
    for (size_t k = 0; k < padded / 2; k++) {
        double f = to_mel((double)k * rate / (double)padded);
        double p = power(y, n, padded, k);

        for (long m = 0; m < s->mels; m++) {
            double away = fabs((f - low_mel) / step - (double)(m + 1));
            out[m] += away < 1 ? (1 - away) * p : 0;
        }
    }
    for (long m = 0; m < s->mels; m++)
        out[m] = log(fmax(out[m], 1.1920929e-07));
}

static float *bank_of(const bm_fbank_settings *s, const float *x, size_t n,
                      size_t *frames)
{
    bm_fbank *f = NULL;
    float *y = NULL;

    assert_ok(bm_fbank_new(&f, s));
    *frames = bm_fbank_frames(f, n);
    y = malloc((*frames * (size_t)s->mels + 1) * sizeof *y);
    assert_non_null(y);
    bm_fbank_apply(f, x, n, y, (size_t)s->mels);
    bm_fbank_free(f);
    return y;
}

static void test_filter_bank_equals_its_definition(void **state)
{
    float x[6000];
    double expected[80];

    (void)state;
    FOR_EACH (c, bank_cases) {
        const bm_fbank_settings *s = &bank_cases[c].s;
        size_t n = bank_cases[c].samples, frames = 0;
        long window = (long)floor((double)s->rate * s->window_ms / 1000);
        long shift = (long)floor((double)s->rate * s->shift_ms / 1000);
        long first = s->snip_edges ? 0 : shift / 2 - window / 2;
        float *y = NULL;

        make_signal(x, n, (double)s->rate);
        y = bank_of(s, x, n, &frames);
        assert_int_equal(frames, s->snip_edges ? ((long)n - window) / shift + 1
                                               : ((long)n + shift / 2) / shift);
        for (size_t t = 0; t < frames; t++, first += shift) {
            expected_frame(s, x, n, first, expected);
            for (long m = 0; m < s->mels; m++) {
                double got = y[(long)t * s->mels + m];
                if (!near(got, expected[m], 1e-4))
                    fail_msg("case %zu, frame %zu, band %ld: %g, not %g", c, t,
                             m, got, expected[m]);
            }
        }
        free(y);
    }
}

/* By NumPy 2.4.6 in double, from Kaldi's definition; kaldi-native-fbank 1.23.0,
 * in floats, differs by less than 3e-4. */
static void test_filter_bank_has_the_known_answer(void **state)
{
    static const double frame0[] = {
        9.4798,  12.1437, 17.0365, 23.8375, 23.5348, 15.5264, 11.1942, 8.8852,
        7.1907,  5.8143,  4.5766,  5.1015,  7.0633,  10.0893, 23.8655, 25.0457,
        14.0392, 7.9167,  6.6663,  6.6647,  6.8088,  7.0974,  6.8798};
    static const double frame2[] = {10.3206, 12.3189, 17.0428,
                                    23.8375, 23.5348, 15.5184};
    float x[720], *y = NULL;
    size_t frames = 0;

    (void)state;
    for (size_t i = 0; i < 720; i++)
        x[i] = (float)round(8000 * sin(2 * pi * 440 * (double)i / 16000) +
                            2000 * cos(2 * pi * 3000 * (double)i / 16000));
    y = bank_of(&bank_cases[0].s, x, 720, &frames);
    assert_int_equal(frames, 3);
    FOR_EACH (i, frame0)
        assert_true(near(y[i], frame0[i], 1e-4));
    FOR_EACH (i, frame2)
        assert_true(near(y[2 * 23 + i], frame2[i], 1e-4));
    free(y);
}

/* The first FIRST and the last LAST bands of the first and the last frame, by
 * kaldi-native-fbank 1.23.0, a port of Kaldi's code, without dither. */
static void test_filter_bank_has_the_numbers_of_kaldi(void **state)
{
    enum { MOST = 3000, FIRST = 7, LAST = 6, KNOWN = FIRST + LAST };
    static const struct {
        bm_fbank_settings s;
        size_t samples, frames;
        double y[2][KNOWN];
    } known[] = {
        {{16000, 23, 25, 10, "povey", 0.97, 20, 0, true},
         720,
         3,
         {{9.1192, 12.2986, 17.0444, 23.8389, 23.5368, 15.5390, 14.5450,
           18.3798, 18.3085, 18.1309, 18.9631, 19.5872, 19.2652},
          {10.5806, 12.4893, 17.0434, 23.8351, 23.5314, 15.6562, 14.4835,
           17.7029, 17.6972, 18.1854, 18.7760, 19.1856, 19.4095}}},
        {{8000, 40, 25, 10, "hamming", 0.97, 20, 0, false},
         500,
         6,
         {{14.8401, 15.9571, 16.8257, 16.8899, 17.8543, 18.8401, 19.3464,
           23.6276, 24.5009, 21.5117, 19.1520, 18.8746, 17.7614},
          {14.6610, 14.8482, 15.9938, 16.6448, 16.9837, 17.6120, 18.3160,
           23.4314, 24.6464, 20.3094, 18.7311, 18.0246, 17.3931}}},
        {{16000, 80, 25, 10, "povey", 0.97, 20, -400, true},
         720,
         3,
         {{8.4180, 8.0749, 7.0168, 5.8255, 8.1809, 9.9163, 11.7929, 18.5132,
           18.5363, 18.0068, 18.1627, 18.0428, 18.1802},
          {9.0434, 9.1754, 9.7796, 8.7379, 8.9252, 10.1471, 11.3876, 18.2130,
           17.9119, 17.9271, 17.8160, 18.2330, 18.5862}}},
        {{44100, 30, 32, 16, "hanning", 0.9, 60, 7600, true},
         3000,
         3,
         {{12.2949, 11.5692, 14.0626, 21.8571, 25.8497, 24.8693, 16.1600,
           18.2674, 18.4859, 18.2875, 18.6500, 18.9445, 19.1013},
          {12.2537, 11.5644, 14.0787, 21.8571, 25.8496, 24.8691, 16.2142,
           18.2683, 18.4812, 18.2836, 18.6516, 18.9428, 19.1016}}},
    };
    float x[MOST];

    (void)state;
    FOR_EACH (k, known) {
        const bm_fbank_settings *s = &known[k].s;
        double turn = 2 * pi / (double)s->rate;
        size_t mels = (size_t)s->mels, frames = 0;
        float *y = NULL;

        for (size_t i = 0; i < known[k].samples; i++)
            x[i] = (float)round(8000 * sin(turn * 440 * (double)i) +
                                2000 * cos(turn * 3000 * (double)i)) +
                   (float)((31 * i * i + 17 * i) % 401) - 200;
        y = bank_of(s, x, known[k].samples, &frames);
        assert_int_equal(frames, known[k].frames);
        for (size_t i = 0; i < KNOWN; i++) {
            size_t m = i < FIRST ? i : mels - KNOWN + i;

            assert_float_equal(y[m], known[k].y[0][i], 1e-3);
            assert_float_equal(y[(frames - 1) * mels + m], known[k].y[1][i],
                               1e-3);
        }
        free(y);
    }
}

static void test_invalid_filter_banks_are_rejected(void **state)
{
    static const struct {
        bm_fbank_settings s;
        const char *message;
    } cases[] = {
        {{16000, 40, 25, 10, "round", 0.97, 20, 0, true}, "'round' is invalid"},
        {{8000, 40, 25, 10, "povey", 0.97, 20, 5000, true}, "5000 Hz"},
        {{8000, 40, 25, 10, "povey", 0.97, 4100, 0, true}, "4100 .. 4000 Hz"},
        {{8000, 200, 25, 10, "povey", 0.97, 20, 0, true}, "features.mels: 200"},
        {{8000, 40, 25, 0.1, "povey", 0.97, 20, 0, true}, "0.1 ms"},
    };

    (void)state;
    FOR_EACH (c, cases) {
        bm_fbank *f = NULL;

        assert_int_equal(bm_fbank_new(&f, &cases[c].s), BM_ERR_CONFIG);
        assert_null(f);
        assert_non_null(strstr(bm_last_error(), cases[c].message));
    }
}

static void test_silence_gives_the_smallest_energy(void **state)
{
    float x[400] = {0}, *y = NULL;
    size_t frames = 0;

    (void)state;
    y = bank_of(&bank_cases[0].s, x, 400, &frames);
    assert_int_equal(frames, 1);
    for (size_t m = 0; m < 23; m++)
        assert_float_equal(y[m], -15.942385, 1e-5); /* ln 2^-23 */
    free(y);
}

static void test_too_few_samples_give_no_frames(void **state)
{
    float x[399] = {0}, *y = NULL;
    size_t frames = 1;

    (void)state;
    y = bank_of(&bank_cases[0].s, x, 399, &frames);
    assert_int_equal(frames, 0);
    free(y);
}

static void test_dither_is_a_function_of_its_key(void **state)
{
    enum { N = 10000 };
    static float a[N], b[N], c[N];
    double sum = 0, squares = 0;

    (void)state;
    memset(a, 0, sizeof a);
    memset(b, 0, sizeof b);
    memset(c, 0, sizeof c);
    bm_dither(a, N, 3, 17);
    bm_dither(b, N / 2, 3, 17); /* noise does not depend on the length */
    bm_dither(c, N, 3, 18);
    assert_memory_equal(a, b, sizeof a / 2);
    assert_memory_not_equal(a, c, sizeof a);
    for (size_t i = 0; i < N; i++) {
        sum += a[i];
        squares += (double)a[i] * a[i];
    }
    assert_true(fabs(sum / N) <
                0.15); /* five standard deviations of the mean */
    assert_true(fabs(squares / N - 9) < 0.65);
}

/* One feature is 1 at one time and 0 otherwise, the other a ramp. */
static void test_deltas_have_the_published_scales(void **state)
{
    static const double first[] = {-.2, -.1, 0, .1, .2};
    static const double second[] = {.04,  .04, .01, -.04, -.1,
                                    -.04, .01, .04, .04};
    enum { T = 21, AT = 10 };
    float x[T][2] = {{0}}, y[T][6];

    (void)state;
    x[AT][0] = 1;
    for (int t = 0; t < T; t++)
        x[t][1] = (float)(3 * t);
    bm_deltas(x[0], T, 2, 2, 2, y[0]);
    for (int t = 0; t < T; t++) {
        double d1 = abs(t - AT) <= 2 ? first[AT - t + 2] : 0;
        double d2 = abs(t - AT) <= 4 ? second[AT - t + 4] : 0;

        assert_true(y[t][0] == x[t][0] && y[t][1] == x[t][1]);
        assert_float_equal(y[t][2], d1, 1e-7);
        assert_float_equal(y[t][4], d2, 1e-7);
        if (t >= 4 && t < T - 4) {
            assert_float_equal(y[t][3], 3, 1e-5); /* the slope */
            assert_float_equal(y[t][5], 0, 1e-5);
        }
    }
    /* -.2 * 0 - .1 * 0 + .1 * 3 + .2 * 6: frame 0 is repeated before it */
    assert_float_equal(y[0][3], 1.5, 1e-6);
}

static void test_deltas_of_one_frame_are_zero(void **state)
{
    float x[2] = {5, -7}, y[6];

    (void)state;
    bm_deltas(x, 1, 2, 2, 3, y);
    for (int i = 2; i < 6; i++)
        assert_float_equal(y[i], 0, 1e-6);
}

static void test_stacking_repeats_the_last_frame(void **state)
{
    static const float x[5] = {1, 2, 3, 4, 5};
    static const struct {
        size_t n, every, frames;
        float y[15];
    } cases[] = {
        {1, 2, 3, {1, 3, 5}},
        {3, 3, 2, {1, 2, 3, 4, 5, 5}},
        {2, 1, 5, {1, 2, 2, 3, 3, 4, 4, 5, 5, 5}},
        {3, 4, 2, {1, 2, 3, 5, 5, 5}},
        {1, 9, 1, {1}},
    };
    float y[15];

    (void)state;
    FOR_EACH (c, cases) {
        size_t n = cases[c].frames * cases[c].n;

        assert_int_equal(bm_subsampled(5, cases[c].every), cases[c].frames);
        bm_stack(x, 5, 1, cases[c].n, cases[c].every, y);
        assert_memory_equal(y, cases[c].y, n * sizeof *y);
    }
    assert_int_equal(bm_subsampled(0, 3), 0);
    assert_int_equal(bm_subsampled(6, 3), 2);
}

static void test_stacking_keeps_features_together(void **state)
{
    static const float x[3][2] = {{1, -1}, {2, -2}, {3, -3}};
    static const float expected[2][4] = {{1, -1, 2, -2}, {3, -3, 3, -3}};
    float y[2][4];

    (void)state;
    bm_stack(x[0], 3, 2, 2, 2, y[0]);
    assert_memory_equal(y, expected, sizeof y);
}

/* Four sequences of two speakers with two features: the first has another mean
 * in each sequence, the second is far from zero. */
enum { SEQUENCES = 4, LONGEST = 9, DIM = 2 };

typedef struct corpus {
    float x[SEQUENCES][LONGEST * DIM];
    bm_frames frames[SEQUENCES];
} corpus;

static size_t speaker_of(size_t sequence)
{
    return sequence % 2;
}

static void make_corpus(corpus *c)
{
    bm_rng rng = bm_rng_make(3, "corpus", 0);

    for (size_t s = 0; s < SEQUENCES; s++) {
        size_t n = LONGEST - s;
        for (size_t i = 0; i < n * DIM; i++)
            c->x[s][i] = (float)(bm_rng_normal(&rng) * (double)(s + 1) +
                                 (i % 2 == 1 ? 1000 : 5 * (double)s));
        c->frames[s] = (bm_frames){.x = c->x[s], .n = n, .dim = DIM};
    }
}

/* Passes every sequence through the chain. */
static void run_chain(const bm_chain_settings *settings,
                      float y[SEQUENCES][LONGEST * DIM])
{
    corpus c;
    bm_chain *chain = NULL;

    make_corpus(&c);
    assert_ok(bm_chain_new(&chain, settings, "features", DIM, 2));
    for (size_t s = 0; bm_chain_learns(chain) && s < SEQUENCES; s++)
        assert_ok(bm_chain_learn(chain, speaker_of(s), &c.frames[s]));
    for (size_t s = 0; s < SEQUENCES; s++) {
        const bm_frames *out = NULL;

        assert_ok(bm_chain_apply(chain, speaker_of(s), &c.frames[s], &out));
        assert_int_equal(out->n, c.frames[s].n);
        assert_int_equal(out->dim, DIM);
        memcpy(y[s], out->x, out->n * DIM * sizeof **y);
    }
    bm_chain_free(chain);
}

/* The group of each sequence for normalisation. */
static const struct {
    const char *name;
    size_t group[SEQUENCES];
} groupings[] = {
    {"utterance", {0, 1, 2, 3}},
    {"speaker", {0, 1, 0, 1}},
    {"global", {0, 0, 0, 0}},
};

/* Feature d of all frames of a group: their mean, and their mean squared
 * distance from it. */
static void measure(const corpus *c, const size_t *group, size_t of, size_t d,
                    double *mean, double *variance)
{
    double sum[2] = {0}, n = 0;

    for (int pass = 0; pass < 2; pass++) {
        n = 0;
        for (size_t s = 0; s < SEQUENCES; s++)
            for (size_t t = 0; group[s] == of && t < c->frames[s].n; t++, n++) {
                double x = c->x[s][t * DIM + d];
                sum[pass] += pass == 0 ? x : (x - *mean) * (x - *mean);
            }
        *mean = sum[0] / n;
    }
    *variance = sum[1] / n;
}

static void test_normalisation_is_by_group(void **state)
{
    corpus c;

    (void)state;
    make_corpus(&c);
    FOR_EACH (k, groupings)
        for (int variance = 0; variance < 2; variance++) {
            bm_chain_settings set = {
                0, 2, 1, 1, groupings[k].name, variance == 1, 600};
            float y[SEQUENCES][LONGEST * DIM];

            run_chain(&set, y);
            for (size_t s = 0; s < SEQUENCES; s++)
                for (size_t i = 0; i < c.frames[s].n * DIM; i++) {
                    double mean = 0, var = 0;

                    measure(&c, groupings[k].group, groupings[k].group[s],
                            i % DIM, &mean, &var);
                    assert_true(near(y[s][i],
                                     (c.x[s][i] - mean) /
                                         (variance == 1 ? sqrt(var) : 1),
                                     1e-6));
                }
        }
}

/* Normalising by speaker does not give each sequence mean 0, nor normalising
 * over all sequences each speaker. */
static void test_wider_groups_do_not_normalise_narrower_ones(void **state)
{
    (void)state;
    for (size_t k = 1; k < 3; k++) {
        const size_t *narrow = groupings[k - 1].group;
        bm_chain_settings set = {0, 2, 1, 1, groupings[k].name, true, 600};
        float y[SEQUENCES][LONGEST * DIM];

        run_chain(&set, y);
        for (size_t g = 0; g < 2; g++) { /* the first feature of a group */
            double sum = 0, n = 0;

            for (size_t s = 0; s < SEQUENCES; s++)
                for (size_t t = 0; narrow[s] == g && t < LONGEST - s; t++, n++)
                    sum += y[s][t * DIM];
            assert_true(fabs(sum / n) > 0.1);
        }
    }
}

static void test_without_normalisation_the_bits_are_unchanged(void **state)
{
    bm_chain_settings s = {0, 2, 1, 1, "none", true, 600};
    bm_chain *chain = NULL;
    const bm_frames *y = NULL;
    corpus c;

    (void)state;
    make_corpus(&c);
    assert_ok(bm_chain_new(&chain, &s, "features", DIM, 2));
    assert_ok(bm_chain_apply(chain, 0, &c.frames[0], &y));
    assert_memory_equal(y->x, c.x[0], sizeof c.x[0]);
    bm_chain_free(chain);
}

static void test_constant_features_become_zero(void **state)
{
    float x[3][2] = {
        {0.1f, -15.942385f}, {0.1f, -15.942385f}, {0.1f, -15.942385f}};
    double m[BM_MOMENTS(2)] = {0};

    (void)state;
    bm_moments_add(m, x[0], 3, 2);
    bm_normalise(x[0], 3, 2, m, true);
    for (size_t t = 0; t < 3; t++)
        assert_true(x[t][0] == 0 && x[t][1] == 0);
}

/* Deltas first: 2 -> 6; normalised: the means of all 6 are 0; then 3 frames
 * side by side, every second. */
static void test_steps_of_the_chain_are_in_order(void **state)
{
    bm_chain_settings s = {2, 2, 3, 2, "utterance", false, 600};
    bm_chain *chain = NULL;
    const bm_frames *y = NULL;
    float deltas[LONGEST][3 * DIM];
    corpus c;

    (void)state;
    make_corpus(&c);
    bm_deltas(c.x[0], LONGEST, DIM, 2, 2, deltas[0]);
    assert_ok(bm_chain_new(&chain, &s, "features", DIM, 1));
    assert_int_equal(bm_chain_features(chain), 18);
    assert_ok(bm_chain_apply(chain, 0, &c.frames[0], &y));
    assert_int_equal(y->n, 5);
    assert_int_equal(y->dim, 18);
    for (size_t d = 0; d < 3 * DIM; d++) {
        double mean = 0;

        for (size_t t = 0; t < LONGEST; t++)
            mean += deltas[t][d] / LONGEST;
        for (size_t t = 0; t < 5; t++)
            for (size_t k = 0; k < 3; k++) {
                size_t from = 2 * t + k < LONGEST ? 2 * t + k : LONGEST - 1;
                assert_float_equal(y->x[t * 18 + k * 6 + d],
                                   deltas[from][d] - mean, 2e-4);
            }
    }
    bm_chain_free(chain);
}

/* Kaldi's apply-cmvn-sliding --center=true, frame by frame. */
static void test_a_sliding_window_is_centred_and_moved_inwards(void **state)
{
    enum { T = 40 };
    static const struct {
        long frames, window;
    } cases[] = {{T, 7}, {T, 8}, {T, 600}, {T, 2}, {1, 5}, {5, 5}, {6, 5}};
    float x[T * DIM];

    (void)state;
    for (size_t i = 0; i < T * DIM; i++)
        x[i] = (float)(sin(3.7 * (double)(i * i)) * 5 + 100);
    FOR_EACH (k, cases)
        for (int variance = 0; variance < 2; variance++) {
            bm_chain_settings s = {
                0, 2, 1, 1, "sliding", variance == 1, cases[k].window};
            bm_chain *chain = NULL;
            bm_frames in = {.x = x, .n = (size_t)cases[k].frames, .dim = DIM};
            const bm_frames *y = NULL;

            assert_ok(bm_chain_new(&chain, &s, "features", DIM, 1));
            assert_false(bm_chain_learns(chain));
            assert_ok(bm_chain_apply(chain, 0, &in, &y));
            assert_int_equal(y->n, in.n);
            for (long t = 0; t < cases[k].frames; t++)
                for (size_t d = 0; d < DIM; d++) {
                    long first = t - cases[k].window / 2;
                    long end = first + cases[k].window;
                    double mean = 0, var = 0, n;

                    if (first < 0)
                        end -= first, first = 0;
                    if (end > cases[k].frames)
                        first -= end - cases[k].frames, end = cases[k].frames;
                    first = first < 0 ? 0 : first;
                    n = (double)(end - first);
                    for (long u = first; u < end; u++)
                        mean += x[u * DIM + (long)d] / n;
                    for (long u = first; u < end; u++)
                        var += pow(x[u * DIM + (long)d] - mean, 2) / n;
                    if (n == 1)
                        assert_true(y->x[d] == 0);
                    else
                        assert_true(near(y->x[t * DIM + (long)d],
                                         (x[t * DIM + (long)d] - mean) /
                                             (variance ? sqrt(var) : 1),
                                         1e-5));
                }
            bm_chain_free(chain);
        }
}

/* Before the deltas, which are those of normalised features. */
static void test_given_statistics_come_before_the_deltas(void **state)
{
    bm_chain_settings s = {1, 2, 1, 1, "kaldi", true, 600};
    static const double bob[BM_MOMENTS(DIM)] = {4, 8, -4, 80, 20};
    bm_chain *chain = NULL, *copy = NULL;
    const bm_frames *y = NULL, *z = NULL;
    float normed[LONGEST * DIM], expected[LONGEST * 2 * DIM];
    corpus c;

    (void)state;
    make_corpus(&c);
    for (size_t t = 0; t < LONGEST; t++) {
        normed[t * DIM] = (float)((c.x[0][t * DIM] - 2.0) / 4); /* 80/4 - 2^2 */
        normed[t * DIM + 1] = (float)((c.x[0][t * DIM + 1] + 1.0) / 2);
    }
    bm_deltas(normed, LONGEST, DIM, 1, 2, expected);
    assert_ok(bm_chain_new(&chain, &s, "features", DIM, 3));
    assert_true(bm_chain_needs_statistics(chain));
    assert_true(bm_chain_needs_speakers(chain));
    assert_false(bm_chain_learns(chain));
    bm_chain_take(chain, 2, bob);
    assert_ok(bm_chain_copy(&copy, chain));
    assert_ok(bm_chain_apply(chain, 2, &c.frames[0], &y));
    assert_ok(bm_chain_apply(copy, 2, &c.frames[0], &z));
    for (size_t i = 0; i < LONGEST * 2 * DIM; i++) {
        assert_true(near(y->x[i], expected[i], 1e-5));
        assert_true(y->x[i] == z->x[i]);
    }
    bm_chain_free(chain);
    bm_chain_free(copy);
}

static void test_unknown_normalisation_is_reported(void **state)
{
    bm_chain_settings s = {0, 2, 1, 1, "speakers", true, 600};
    bm_chain *chain = NULL;

    (void)state;
    assert_int_equal(bm_chain_new(&chain, &s, "features", 1, 1), BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "features.normalise: 'speakers'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_filter_bank_equals_its_definition),
        cmocka_unit_test(test_filter_bank_has_the_known_answer),
        cmocka_unit_test(test_filter_bank_has_the_numbers_of_kaldi),
        cmocka_unit_test(test_invalid_filter_banks_are_rejected),
        cmocka_unit_test(test_silence_gives_the_smallest_energy),
        cmocka_unit_test(test_too_few_samples_give_no_frames),
        cmocka_unit_test(test_dither_is_a_function_of_its_key),
        cmocka_unit_test(test_deltas_have_the_published_scales),
        cmocka_unit_test(test_deltas_of_one_frame_are_zero),
        cmocka_unit_test(test_stacking_repeats_the_last_frame),
        cmocka_unit_test(test_stacking_keeps_features_together),
        cmocka_unit_test(test_normalisation_is_by_group),
        cmocka_unit_test(test_wider_groups_do_not_normalise_narrower_ones),
        cmocka_unit_test(test_without_normalisation_the_bits_are_unchanged),
        cmocka_unit_test(test_constant_features_become_zero),
        cmocka_unit_test(test_steps_of_the_chain_are_in_order),
        cmocka_unit_test(test_a_sliding_window_is_centred_and_moved_inwards),
        cmocka_unit_test(test_given_statistics_come_before_the_deltas),
        cmocka_unit_test(test_unknown_normalisation_is_reported),
    };
    return RUN_GROUP("features", tests);
}
