#include "tools/speech/acoustics.h"

#include "io/sound/pink_noise.h"

#include <kiss_fftr.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

bm_status bm_signal_shape(bm_signal *s, size_t n)
{
    if (n > s->room) {
        free(s->x);
        s->room = 0;
        s->x = malloc(n * sizeof *s->x);
        if (s->x == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu samples", n);
        s->room = n;
    }
    s->n = n;
    return BM_OK;
}

void bm_signal_free(bm_signal *s)
{
    free(s->x);
    *s = (bm_signal){0};
}

double bm_signal_power(const bm_signal *s)
{
    double sum = 0;

    for (size_t i = 0; i < s->n; i++)
        sum += (double)s->x[i] * s->x[i];
    return s->n > 0 ? sum / (double)s->n : 0;
}

void bm_signal_scale(bm_signal *s, double factor)
{
    for (size_t i = 0; i < s->n; i++)
        s->x[i] *= (float)factor;
}

/* ---- sampling rate and vocal tract -------------------------------------- */

/* LANES sums at a time: the compiler may not reorder a single one. */
enum { PHASES = 256, LOBES = 8, LANES = 8 };

struct bm_resampler {
    double step;
    size_t taps;  /* a multiple of LANES */
    float *phase; /* [PHASES, taps]: the filter between two samples */
};

/* sin(pi x) / (pi x), cut off by a Hann window at |x| = LOBES */
static double windowed_sinc(double x)
{
    if (fabs(x) < 1e-9)
        return 1;
    if (fabs(x) >= LOBES)
        return 0;
    return sin(pi * x) / (pi * x) * (0.5 + 0.5 * cos(pi * x / LOBES));
}

bm_status bm_resampler_new(bm_resampler **out, double step)
{
    double band = fmin(1, 1 / step); /* of the input's */
    size_t middle;
    bm_resampler *r = calloc(1, sizeof *r);

    if (r != NULL) {
        r->step = step;
        r->taps = (size_t)(2 * LOBES / band) / LANES * LANES + LANES;
        r->phase = malloc(PHASES * r->taps * sizeof *r->phase);
    }
    if (r == NULL || r->phase == NULL) {
        bm_resampler_free(r);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a resampler");
    }
    middle = r->taps / 2 - 1;
    for (size_t p = 0; p < PHASES; p++)
        for (size_t k = 0; k < r->taps; k++) {
            double at = (double)k - (double)middle - (double)p / PHASES;

            r->phase[p * r->taps + k] =
                (float)(band * windowed_sinc(at * band));
        }
    *out = r;
    return BM_OK;
}

void bm_resampler_free(bm_resampler *r)
{
    if (r == NULL)
        return;
    free(r->phase);
    free(r);
}

static float dot(const float *filter, const int16_t *x, size_t n)
{
    float lane[LANES] = {0}, sum = 0;

    for (size_t k = 0; k < n; k += LANES)
        for (size_t j = 0; j < LANES; j++)
            lane[j] += filter[k + j] * (float)x[k + j];
    for (size_t j = 0; j < LANES; j++)
        sum += lane[j];
    return sum;
}

/* Where the filter reaches beyond the ends, which are silent. */
static float dot_at_end(const float *filter, const int16_t *x, size_t n,
                        ptrdiff_t first, size_t taps)
{
    float sum = 0;

    for (size_t k = 0; k < taps; k++) {
        ptrdiff_t at = first + (ptrdiff_t)k;

        if (at >= 0 && at < (ptrdiff_t)n)
            sum += filter[k] * (float)x[at];
    }
    return sum;
}

bm_status bm_resample(const bm_resampler *r, const int16_t *x, size_t n,
                      bm_signal *y)
{
    BM_TRY(bm_signal_shape(y, (size_t)((double)n / r->step)));
    for (size_t i = 0; i < y->n; i++) {
        size_t phase = (size_t)((double)i * r->step * PHASES + 0.5);
        const float *filter = r->phase + phase % PHASES * r->taps;
        ptrdiff_t first =
            (ptrdiff_t)(phase / PHASES) - (ptrdiff_t)(r->taps / 2 - 1);

        y->x[i] = first >= 0 && (size_t)first + r->taps <= n
                      ? dot(filter, x + first, r->taps)
                      : dot_at_end(filter, x, n, first, r->taps);
    }
    return BM_OK;
}

/* ---- a room -------------------------------------------------------------- */

enum { LEAST_FFT = 1024 };

struct bm_reverb {
    size_t n; /* of the transform; 0: none yet */
    kiss_fftr_cfg forward, backward;
    float *time;            /* [n] */
    kiss_fft_cpx *room, *x; /* [n / 2 + 1] */
    bm_signal out;
};

bm_status bm_reverb_new(bm_reverb **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a room");
    return BM_OK;
}

static void free_transform(bm_reverb *r)
{
    kiss_fftr_free(r->forward);
    kiss_fftr_free(r->backward);
    free(r->time);
    free(r->room);
    free(r->x);
}

void bm_reverb_free(bm_reverb *r)
{
    if (r == NULL)
        return;
    free_transform(r);
    bm_signal_free(&r->out);
    free(r);
}

/* A transform in which a room of `taps` samples leaves space for more than
 * twice as many of the signal. */
static bm_status fit_transform(bm_reverb *r, size_t taps)
{
    size_t n = LEAST_FFT;

    while (n < 3 * taps)
        n *= 2;
    if (n == r->n)
        return BM_OK;
    free_transform(r);
    r->forward = kiss_fftr_alloc((int)n, 0, NULL, NULL);
    r->backward = kiss_fftr_alloc((int)n, 1, NULL, NULL);
    r->time = malloc(n * sizeof *r->time);
    r->room = malloc((n / 2 + 1) * sizeof *r->room);
    r->x = malloc((n / 2 + 1) * sizeof *r->x);
    r->n = n;
    if (!r->forward || !r->backward || !r->time || !r->room || !r->x)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a transform of %zu", n);
    return BM_OK;
}

/* The tail begins 2 to 12 ms after the direct sound, and ends 40 dB lower. */
static void draw_room(bm_reverb *r, const bm_room *room, size_t taps,
                      bm_rng *rng)
{
    size_t start = (size_t)(room->rate * (0.002 + 0.01 * bm_rng_uniform(rng)));
    double fall = exp(-log(1000) / (room->t60 * room->rate));
    double level = 1, energy = 0, gain;

    memset(r->time, 0, r->n * sizeof *r->time);
    for (size_t i = start; i < taps; i++) {
        double h = level * bm_rng_normal(rng);

        r->time[i] = (float)h;
        energy += h * h;
        level *= fall;
    }
    gain = energy > 0 ? sqrt(pow(10, -room->direct / 10) / energy) : 0;
    for (size_t i = start; i < taps; i++)
        r->time[i] *= (float)gain;
    r->time[0] = 1;
    kiss_fftr(r->forward, r->time, r->room);
}

/* y += the convolution of x [n] with the room, as far as it is within y. */
static void convolve(bm_reverb *r, const float *x, size_t n, float *y,
                     size_t room)
{
    size_t used = room < r->n ? room : r->n;
    float scale = 1 / (float)r->n;

    memcpy(r->time, x, n * sizeof *x);
    memset(r->time + n, 0, (r->n - n) * sizeof *x);
    kiss_fftr(r->forward, r->time, r->x);
    for (size_t k = 0; k <= r->n / 2; k++) {
        kiss_fft_cpx a = r->x[k], b = r->room[k];

        r->x[k].r = a.r * b.r - a.i * b.i;
        r->x[k].i = a.r * b.i + a.i * b.r;
    }
    kiss_fftri(r->backward, r->x, r->time);
    for (size_t i = 0; i < used; i++)
        y[i] += scale * r->time[i];
}

bm_status bm_reverb_apply(bm_reverb *r, const bm_room *room, bm_rng *rng,
                          bm_signal *x)
{
    size_t taps = (size_t)(room->t60 * room->rate * 2 / 3) + 1, step;
    bm_signal swap;

    if (room->t60 <= 0)
        return BM_OK;
    BM_TRY(fit_transform(r, taps));
    BM_TRY(bm_signal_shape(&r->out, x->n));
    memset(r->out.x, 0, x->n * sizeof *x->x);
    draw_room(r, room, taps, rng);
    step = r->n - taps + 1;
    for (size_t at = 0; at < x->n; at += step)
        convolve(r, x->x + at, x->n - at < step ? x->n - at : step,
                 r->out.x + at, x->n - at);
    swap = *x;
    *x = r->out;
    r->out = swap;
    return BM_OK;
}

/* ---- noise --------------------------------------------------------------- */

enum { SECONDS = 60, FEWEST_TALKERS = 3, MOST_TALKERS = 8 };

struct bm_noise {
    size_t n;                     /* samples of each table */
    float *white, *pink, *speech; /* [n] */
    size_t heard, next;           /* samples of speech; where more goes */
    bm_signal part;
};

const char *bm_noise_name(bm_noise_kind kind)
{
#define X(name) #name,
    static const char *const names[] = {BM_NOISES(X)};
#undef X

    return names[kind];
}

static void fill_tables(bm_noise *n, bm_rng *rng)
{
    double state[3] = {0};

    for (size_t i = 0; i < n->n; i++) {
        double white = bm_rng_normal(rng);

        n->white[i] = (float)white;
        n->pink[i] = (float)bm_pink_noise(state, white);
    }
}

bm_status bm_noise_new(bm_noise **out, double rate, bm_rng *rng)
{
    bm_noise *n = calloc(1, sizeof *n);

    if (n != NULL) {
        n->n = (size_t)(SECONDS * rate);
        n->white = malloc(n->n * sizeof *n->white);
        n->pink = malloc(n->n * sizeof *n->pink);
        n->speech = malloc(n->n * sizeof *n->speech);
    }
    if (n == NULL || !n->white || !n->pink || !n->speech) {
        bm_noise_free(n);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d s of noise", SECONDS);
    }
    fill_tables(n, rng);
    *out = n;
    return BM_OK;
}

void bm_noise_free(bm_noise *n)
{
    if (n == NULL)
        return;
    free(n->white);
    free(n->pink);
    free(n->speech);
    bm_signal_free(&n->part);
    free(n);
}

void bm_noise_remember(bm_noise *n, const bm_signal *speech)
{
    double power = bm_signal_power(speech);
    float gain = power > 0 ? (float)(1 / sqrt(power)) : 0;

    for (size_t i = 0; i < speech->n; i++) {
        n->speech[n->next] = gain * speech->x[i];
        n->next = (n->next + 1) % n->n;
    }
    n->heard = n->heard + speech->n < n->n ? n->heard + speech->n : n->n;
}

/* y [n] += the table [size], which is a ring, from `at` on */
static void add_table(const float *table, size_t size, size_t at, float *y,
                      size_t n)
{
    for (size_t k; n > 0; y += k, n -= k, at = 0) {
        k = size - at < n ? size - at : n;
        for (size_t i = 0; i < k; i++)
            y[i] += table[at + i];
    }
}

/* `times` stretches of a table at once. */
static bm_status draw_stretches(const float *table, size_t size, size_t times,
                                bm_rng *rng, size_t n, bm_signal *out)
{
    BM_TRY(bm_signal_shape(out, n));
    memset(out->x, 0, n * sizeof *out->x);
    while (times-- > 0)
        add_table(table, size, (size_t)bm_rng_below(rng, size), out->x, n);
    return BM_OK;
}

static bm_status draw_babble(bm_noise *n, bm_rng *rng, size_t samples,
                             bm_signal *out)
{
    size_t talkers =
        FEWEST_TALKERS +
        (size_t)bm_rng_below(rng, MOST_TALKERS - FEWEST_TALKERS + 1);

    BM_ASSERT(n->heard > 0);
    return draw_stretches(n->speech, n->heard, talkers, rng, samples, out);
}

static void set_power(bm_signal *x, double power)
{
    double now = bm_signal_power(x);

    bm_signal_scale(x, now > 0 ? sqrt(power / now) : 0);
}

bm_status bm_noise_make(bm_noise *n, bm_noise_kind kind, double snr,
                        const bm_signal *speech, bm_rng *rng, bm_signal *out)
{
    if (kind == BM_NOISE_babble || kind == BM_NOISE_crowd)
        BM_TRY(draw_babble(n, rng, speech->n, out));
    else
        BM_TRY(draw_stretches(kind == BM_NOISE_white ? n->white : n->pink, n->n,
                              1, rng, speech->n, out));
    if (kind == BM_NOISE_crowd) {
        BM_TRY(draw_stretches(n->pink, n->n, 1, rng, speech->n, &n->part));
        set_power(out, 1);
        set_power(&n->part, 1);
        for (size_t i = 0; i < out->n; i++)
            out->x[i] += n->part.x[i];
    }
    set_power(out, bm_signal_power(speech) * pow(10, -snr / 10));
    return BM_OK;
}
