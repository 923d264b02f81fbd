/*
 * Pitch: resampling, correlation and path against their definitions, with a sum
 * for every sample and every pair of states; sounds of known pitch; numbers of
 * another program.
 */
#include "core/rng.h"
#include "io/features/pitch.h"
#include "io/features/pitch_path.h"
#include "io/features/sinc.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* A low-pass under a Hann window, of so many zeros of the sinc on each side. */
static double kernel(double t, double cutoff, double zeros)
{
    double ideal = t == 0 ? 2 * cutoff : sin(2 * pi * cutoff * t) / (pi * t);

    return fabs(t) < zeros / (2 * cutoff)
               ? ideal * (0.5 + 0.5 * cos(2 * pi * cutoff * t / zeros))
               : 0;
}

/* Sample k at rate `to`, by a sum over all samples x [n] at rate `from`. */
static double resampled(const float *x, size_t n, double from, double to,
                        size_t k)
{
    double sum = 0;

    for (size_t j = 0; j < n; j++)
        sum += x[j] * kernel((double)j / from - (double)k / to, 1000, 1) / from;
    return sum;
}

static void make_noise(float *x, size_t n)
{
    bm_rng rng = bm_rng_make(3, "noise", n);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(1000 * bm_rng_normal(&rng));
}

static void test_resampling_equals_its_definition(void **state)
{
    static const bm_sinc low_pass = {.cutoff = 1000, .zeros = 1};
    static const struct {
        long from;
        size_t n;
    } cases[] = {{16000, 801}, {8000, 400}, {44100, 1000}, {11025, 333},
                 {4000, 50},   {2000, 77},  {22050, 1},    {48000, 7}};
    float x[1000];
    double y[1000];

    (void)state;
    FOR_EACH (c, cases) {
        double from = (double)cases[c].from;
        bm_sinc_resampler *r = NULL;
        size_t n = cases[c].n, samples;

        make_noise(x, n);
        assert_ok(bm_sinc_resampler_new(&r, &low_pass, cases[c].from, 4000));
        samples = bm_sinc_resampled(r, n);
        assert_int_equal(samples, ceil((double)n / from * 4000 - 1e-9));
        bm_sinc_resample(r, x, n, y);
        for (size_t k = 0; k < samples; k++)
            assert_float_equal(y[k], resampled(x, n, from, 4000, k), 1e-8);
        bm_sinc_resampler_free(r);
    }
}

/* ---- paths --------------------------------------------------------------- */

enum { MOST_STATES = 450 };

/* The cost of the best path through cost [frames, states], over all pairs of
 * states. */
static double least_cost(const float *cost, size_t frames, size_t states,
                         double penalty)
{
    double now[MOST_STATES] = {0}, next[MOST_STATES], best = INFINITY;

    for (size_t t = 0; t < frames; t++) {
        for (size_t i = 0; i < states; i++) {
            next[i] = INFINITY;
            for (size_t j = 0; j < states; j++) {
                double d = (double)i - (double)j;
                double jump = t > 0 ? penalty * d * d : i == j ? 0 : INFINITY;
                next[i] = fmin(next[i], now[j] + jump);
            }
            next[i] += cost[t * states + i];
        }
        memcpy(now, next, states * sizeof *now);
    }
    for (size_t i = 0; i < states; i++)
        best = fmin(best, now[i]);
    return best;
}

static double path_cost(const float *cost, size_t frames, size_t states,
                        double penalty, const uint16_t *path)
{
    double sum = 0;

    for (size_t t = 0; t < frames; t++) {
        double d = t > 0 ? (double)path[t] - path[t - 1] : 0;

        assert_true(path[t] < states);
        sum += cost[t * states + path[t]] + penalty * d * d;
    }
    return sum;
}

/* Costs of all kinds: from jumps over all states to none. */
static void test_path_costs_no_more_than_the_best_of_all(void **state)
{
    static const struct {
        size_t states, frames;
        double penalty, size;
    } cases[] = {{1, 5, 1, 1},
                 {2, 1, 0.1, 1},
                 {7, 30, 0.05, 1},
                 {40, 25, 1e-3, 1},
                 {120, 20, 2.5e-6, 1},
                 {120, 20, 2.5e-6, 1e-3},
                 {417, 12, 2.5e-6, 0.01},
                 {50, 20, 100, 1}};

    (void)state;
    FOR_EACH (c, cases) {
        size_t states = cases[c].states, frames = cases[c].frames;
        double penalty = cases[c].penalty;
        float *cost = zeros(states * frames, sizeof *cost);
        uint16_t path[30];
        bm_pitch_path *p = NULL;

        assert_ok(bm_pitch_path_new(&p, states, penalty));
        for (uint64_t round = 0; round < 3; round++) {
            double least;

            for (size_t i = 0; i < states * frames; i++)
                cost[i] = (float)(cases[c].size * uniform(i + 1000 * round));
            assert_ok(bm_pitch_path_start(p, frames));
            for (size_t t = 0; t < frames; t++)
                bm_pitch_path_add(p, cost + t * states);
            bm_pitch_path_end(p, path);
            least = least_cost(cost, frames, states, penalty);
            assert_true(path_cost(cost, frames, states, penalty, path) <=
                        least + 1e-6 * (double)frames * cases[c].size);
        }
        bm_pitch_path_free(p);
        free(cost);
    }
}

/* ---- tracks -------------------------------------------------------------- */

enum { LOWEST = 8, LAGS = 75, STATES = 417, MOST_SAMPLES = 1200 };

/* What a track is defined by: the signal x [n] at 4 kHz, with zeros beyond. */
typedef struct reference {
    size_t n, window;
    double x[MOST_SAMPLES];
} reference;

static double sample(const reference *r, long at)
{
    return at >= 0 && at < (long)r->n ? r->x[at] : 0;
}

/* nccf at a whole lag of the window that begins at `first`, plus b */
static double nccf_at(const reference *r, long first, long lag, double b)
{
    double mean = 0, product = 0, a = 0, c = 0, n = (double)r->window;

    for (long i = 0; i < (long)r->window; i++)
        mean += sample(r, first + i) / n;
    for (long i = 0; i < (long)r->window; i++) {
        double u = sample(r, first + i) - mean;
        double v = sample(r, first + i + lag) - mean;

        product += u * v;
        a += u * u;
        c += v * v;
    }
    return a * c + b > 0 ? product / sqrt(a * c + b) : 0;
}

/* Between whole lags. */
static double nccf_between(const double *nccf, double lag)
{
    double sum = 0;

    for (int l = 0; l < LAGS; l++)
        sum += nccf[l] * kernel(lag - (LOWEST + l) / 4000.0, 2000, 5) / 4000;
    return sum;
}

/* 7000 (N mean square)^2 of the first n samples */
static double ballast_of(const reference *r, size_t n)
{
    double mean = 0, square = 0;

    for (size_t i = 0; i < n; i++)
        mean += r->x[i] / (double)n;
    for (size_t i = 0; i < n; i++)
        square += (r->x[i] - mean) * (r->x[i] - mean) / (double)n;
    return 7000 * pow((double)r->window * square, 2);
}

static long begin_of(const reference *r, const bm_pitch_settings *s, size_t t)
{
    double shift = s->shift / (double)s->rate * 4000;

    if (s->snip_edges)
        return lround((double)t * shift);
    return (long)floor(((double)t + 0.5) * shift) - (long)(r->window + 82) / 2;
}

static void make_reference(reference *r, const bm_pitch_settings *s,
                           const float *x, size_t n)
{
    r->n = (size_t)ceil((double)n * 4000 / (double)s->rate - 1e-9);
    r->window = (size_t)floor(s->window_ms * 4);
    assert_true(r->n <= MOST_SAMPLES);
    for (size_t k = 0; k < r->n; k++)
        r->x[k] = resampled(x, n, (double)s->rate, 4000, k);
}

/* Checks the correlations of a track, and that its path is among the best. */
static void check_track(const reference *r, const bm_pitch_settings *s,
                        const bm_pitch_point *track, size_t frames)
{
    double a = 0.1 * pow(log(1.005), 2), nccf[LAGS], spoken[LAGS];
    float *cost = zeros(frames * STATES, sizeof *cost);
    uint16_t *path = zeros(frames, sizeof *path);

    for (size_t t = 0; t < frames; t++) {
        long first = begin_of(r, s, t);
        bool late = first + (long)r->window + 82 > (long)r->n - 2;
        double b = ballast_of(r, late ? r->n : r->n - 2);

        for (int l = 0; l < LAGS; l++) {
            spoken[l] = nccf_at(r, first, LOWEST + l, 0);
            nccf[l] = nccf_at(r, first, LOWEST + l, b);
        }
        assert_float_equal(track[t].nccf,
                           nccf_between(spoken, exp(-track[t].log_hz)), 1e-9);
        for (int i = 0; i < STATES; i++) {
            double lag = pow(1.005, i) / 400;
            double phi = nccf_between(nccf, lag);
            cost[t * STATES + (size_t)i] = (float)(1 - phi * (1 - 10 * lag));
        }
        path[t] = (uint16_t)lround((log(400) - track[t].log_hz) / log(1.005));
        assert_float_equal(track[t].log_hz, log(400) - path[t] * log(1.005),
                           1e-9);
    }
    assert_true(path_cost(cost, frames, STATES, a, path) <=
                least_cost(cost, frames, STATES, a) + 3e-7 * (double)frames);
    free(cost);
    free(path);
}

/* Two harmonics whose pitch moves, in noise, with a pause. */
static void make_voice(float *x, size_t n, double rate)
{
    bm_rng rng = bm_rng_make(5, "voice", 0);

    for (size_t i = 0; i < n; i++) {
        double t = (double)i / rate, phase = 2 * pi * (130 * t + 90 * t * t);
        double loud = t > 0.1 && t < 0.14 ? 0.001 : 1;

        x[i] = (float)(loud * (3000 * sin(phase) + 2500 * cos(2 * phase) +
                               300 * bm_rng_normal(&rng)) +
                       17);
    }
}

static void test_track_equals_its_definition(void **state)
{
    static const struct {
        bm_pitch_settings s;
        size_t n, frames;
    } cases[] = {
        {{16000, 25, 160, true}, 4000, 23},  {{8000, 25, 80, true}, 1000, 11},
        {{8000, 25, 80, false}, 1000, 13},   {{11025, 32, 110, true}, 2000, 15},
        {{44100, 20, 441, false}, 5000, 12}, {{8000, 10, 40, false}, 60, 2},
    };
    float x[5000];

    (void)state;
    FOR_EACH (c, cases) {
        const bm_pitch_settings *s = &cases[c].s;
        size_t n = cases[c].n, frames = cases[c].frames;
        const bm_pitch_point *track = NULL;
        bm_pitch *p = NULL;
        reference r = {0};

        make_voice(x, 5000, (double)s->rate);
        make_reference(&r, s, x, n);
        assert_ok(bm_pitch_new(&p, s));
        assert_ok(
            bm_pitch_track(p, x + 9, 800, 3, &track)); /* leaves nothing */
        assert_ok(bm_pitch_track(p, x, n, frames, &track));
        check_track(&r, s, track, frames);
        bm_pitch_free(p);
    }
}

/* ---- known pitches ------------------------------------------------------- */

typedef double wave(double phase); /* of the phase in periods */

static double tone(double phase)
{
    return sin(2 * pi * phase);
}

/* Pulses of a tenth of a period, as of a voice. */
static double pulses(double phase)
{
    double x = phase - floor(phase);

    return x < 0.1 ? 0.5 - 0.5 * cos(20 * pi * x) : 0;
}

enum { SECOND = 16000, FRAMES = 98 };

/* The track of a second of a sound whose pitch goes from one to another. */
static const bm_pitch_point *track_of(bm_pitch **p, wave *of, double from,
                                      double to)
{
    static const bm_pitch_settings s = {SECOND, 25, 160, true};
    static float x[SECOND];
    const bm_pitch_point *track = NULL;

    for (size_t i = 0; i < SECOND; i++) {
        double t = (double)i / SECOND;
        x[i] = (float)(5000 * of(from * t + (to - from) * t * t / 2));
    }
    assert_ok(bm_pitch_new(p, &s));
    assert_ok(bm_pitch_track(*p, x, SECOND, FRAMES, &track));
    return track;
}

/* Lags are 0.5 % apart. The windows of 25 ms hold fewer than three periods of low
 * sounds, the means of which are not 0: these have 2.5 %. */
static void test_steady_sounds_have_their_pitch(void **state)
{
    static const double hz[] = {60, 75, 99, 110, 128, 160, 201, 250, 333, 390};
    static wave *const waves[] = {tone, pulses};

    (void)state;
    FOR_EACH (k, hz)
        FOR_EACH (w, waves) {
            bool low = hz[k] * 0.025 < 3;
            bm_pitch *p = NULL;
            const bm_pitch_point *track = track_of(&p, waves[w], hz[k], hz[k]);

            for (size_t t = 0; t < FRAMES; t++) {
                assert_float_equal(track[t].log_hz, log(hz[k]),
                                   low ? 0.025 : 0.0075);
                assert_true(low || track[t].nccf > 0.75);
            }
            bm_pitch_free(p);
        }
}

/* The window and its copy are 25 ms and a period long, so that they tell of the
 * time between. */
static void test_gliding_sounds_are_followed(void **state)
{
    static const double ends[][2] = {{100, 180}, {300, 150}, {90, 110}};

    (void)state;
    FOR_EACH (k, ends) {
        double from = ends[k][0], to = ends[k][1];
        bm_pitch *p = NULL;
        const bm_pitch_point *track = track_of(&p, pulses, from, to);

        for (size_t t = 3; t < FRAMES - 3; t++) {
            double middle = 0.01 * (double)t + 0.0125 + 0.5 / from;
            double hz = from + (to - from) * middle;

            assert_float_equal(track[t].log_hz, log(hz), 0.03);
        }
        bm_pitch_free(p);
    }
}

static double noise(double phase)
{
    return 2 * uniform((uint64_t)lround(phase * SECOND)) - 1;
}

static double silence(double phase)
{
    return 0 * phase;
}

static void test_noise_and_silence_are_not_voiced(void **state)
{
    bm_pitch *p = NULL;
    const bm_pitch_point *track = track_of(&p, noise, 1, 1);
    double sum = 0;

    (void)state;
    for (size_t t = 0; t < FRAMES; t++)
        sum += fabs(track[t].nccf) / FRAMES;
    assert_true(sum < 0.5);
    bm_pitch_free(p);
    track = track_of(&p, silence, 1, 1);
    for (size_t t = 0; t < FRAMES; t++) {
        assert_true(track[t].nccf == 0);
        assert_float_equal(track[t].log_hz, log(400), 1e-9); /* shortest lag */
    }
    bm_pitch_free(p);
}

/* ---- columns ------------------------------------------------------------- */

/* The probability of voicing, of Ghahremani et al. */
static double voiced(double n)
{
    double a = fabs(n) > 1 ? 1 : fabs(n);

    return 1 / (1 + exp(5.2 - 5.4 * exp(7.5 * (a - 1)) - 4.8 * a +
                        2 * exp(-10 * a) - 4.2 * exp(20 * (a - 1))));
}

static void test_columns_equal_their_definition(void **state)
{
    enum { T = 200, STRIDE = 5 };
    static const size_t lengths[] = {T, 1, 2, 4, 76, 151, 152};
    bm_pitch_point track[T];
    float y[T * STRIDE];

    (void)state;
    for (size_t t = 0; t < T; t++)
        track[t] =
            (bm_pitch_point){2.1 * uniform(t) - 1.05, 4 + 1.9 * uniform(t + T)};
    FOR_EACH (k, lengths) {
        long n = (long)lengths[k];

        for (size_t i = 0; i < T * STRIDE; i++)
            y[i] = -7;
        bm_pitch_columns(track, lengths[k], y + 1, STRIDE);
        for (long t = 0; t < n; t++) {
            const float *row = y + t * STRIDE;
            double weight = 0, sum = 0, slope = 0, c = track[t].nccf;

            for (long u = t - 75; u <= t + 75; u++)
                if (u >= 0 && u < n) {
                    weight += voiced(track[u].nccf);
                    sum += voiced(track[u].nccf) * track[u].log_hz;
                }
            for (long j = -2; j <= 2; j++) {
                long u = t + j < 0 ? 0 : t + j >= n ? n - 1 : t + j;
                slope += (double)j * track[u].log_hz / 10;
            }
            c = c > 1 ? 1 : c < -1 ? -1 : c;
            assert_float_equal(row[1], 2 * (pow(1.0001 - c, 0.15) - 1), 1e-5);
            assert_float_equal(row[2], 2 * (track[t].log_hz - sum / weight),
                               1e-5);
            assert_float_equal(row[3], 10 * slope, 1e-5);
            assert_true(row[0] == -7 && row[4] == -7);
        }
    }
}

/* Computed by kaldi-native-fbank 1.23, a port of Kaldi's, without its noise in
 * the last column. */
static void test_columns_have_the_known_answer(void **state)
{
    enum { N = 8000, T = 48 };
    static const bm_pitch_settings s = {16000, 25, 160, true};
    static const struct {
        size_t t;
        double y[BM_PITCH_COLUMNS];
    } known[] = {
        {0, {-0.88859, -0.54407, 0.03491}},
        {1, {-0.75550, -0.53410, 0.05486}},
        {10, {-0.86897, -0.22487, 0.05486}},
        {19, {-0.27480, -0.18497, -0.06982}},
        {20, {-0.92512, -0.19494, -0.03491}},
        {22, {-0.64301, -0.18497, 0.31920}},
        {24, {-0.32852, 0.08436, 0.45387}},
        {25, {-0.55236, 0.13424, 0.29925}},
        {30, {-0.84182, 0.19409, 0.06484}},
        {40, {-0.75591, 0.31379, 0.07980}},
        {47, {-0.49073, 0.42351, 0.03492}},
    };
    static float x[N], y[T * BM_PITCH_COLUMNS];
    const bm_pitch_point *track = NULL;
    bm_pitch *p = NULL;

    (void)state;
    for (size_t i = 0; i < N; i++) {
        double t = (double)i / 16000, phase = 2 * pi * (130 * t + 90 * t * t);
        double loud = t > 0.2 && t < 0.25 ? 0.05 : 1;

        x[i] = (float)round(loud * (3000 * sin(phase) + 2500 * cos(2 * phase)) +
                            1500 * sin(2 * pi * 777 * t));
    }
    assert_ok(bm_pitch_new(&p, &s));
    assert_ok(bm_pitch_track(p, x, N, T, &track));
    bm_pitch_columns(track, T, y, BM_PITCH_COLUMNS);
    FOR_EACH (k, known)
        for (size_t d = 0; d < BM_PITCH_COLUMNS; d++)
            assert_float_equal(y[known[k].t * BM_PITCH_COLUMNS + d],
                               known[k].y[d], 1e-3);
    bm_pitch_free(p);
}

static void test_invalid_settings_are_rejected(void **state)
{
    static const struct {
        bm_pitch_settings s;
        const char *message;
    } cases[] = {
        {{1999, 25, 20, true}, "features.pitch: a rate of 1999 Hz"},
        {{8000, 9.9, 80, true}, "features.window_ms to 10 at least"},
    };

    (void)state;
    FOR_EACH (c, cases) {
        bm_pitch *p = NULL;

        assert_int_equal(bm_pitch_new(&p, &cases[c].s), BM_ERR_CONFIG);
        assert_null(p);
        assert_non_null(strstr(bm_last_error(), cases[c].message));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resampling_equals_its_definition),
        cmocka_unit_test(test_path_costs_no_more_than_the_best_of_all),
        cmocka_unit_test(test_track_equals_its_definition),
        cmocka_unit_test(test_steady_sounds_have_their_pitch),
        cmocka_unit_test(test_gliding_sounds_are_followed),
        cmocka_unit_test(test_noise_and_silence_are_not_voiced),
        cmocka_unit_test(test_columns_equal_their_definition),
        cmocka_unit_test(test_columns_have_the_known_answer),
        cmocka_unit_test(test_invalid_settings_are_rejected),
    };
    return RUN_GROUP("pitch", tests);
}
