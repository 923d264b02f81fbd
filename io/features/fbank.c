/*
 * fbank.c - everything except the Fourier transform is computed in double, so
 * that only the transform's rounding separates results from exact ones.
 */
#include "io/features/fbank.h"

#include "core/rng.h"

#include <kiss_fftr.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

/* A triangle: weights of the spectrum's points first .. first + n - 1. */
typedef struct band {
    size_t first, n;
    double *weight; /* in bm_fbank's weights */
} band;

struct bm_fbank {
    size_t window, shift, padded, mels;
    bool snip_edges;
    double preemphasis;
    double *shape; /* [window] */
    band *bands;   /* [mels] */
    double *weights;
    double *frame;      /* [window] */
    float *time;        /* [padded] */
    kiss_fft_cpx *freq; /* [padded / 2 + 1] */
    double *power;      /* [padded / 2] */
    kiss_fftr_cfg fft;
};

static double povey(double c)
{
    return pow(0.5 - 0.5 * c, 0.85);
}

static double hanning(double c)
{
    return 0.5 - 0.5 * c;
}

static double hamming(double c)
{
    return 0.54 - 0.46 * c;
}

/* 0.42 - 0.5 cos a + 0.08 cos 2a */
static double blackman(double c)
{
    return 0.42 - 0.5 * c + 0.08 * (2 * c * c - 1);
}

static double rectangular(double c)
{
    (void)c;
    return 1;
}

/* Shapes as functions of cos(2 pi i / (length - 1)). */
static const struct {
    const char *name;
    double (*at)(double c);
} shapes[] = {
    {"povey", povey},       {"hanning", hanning},         {"hamming", hamming},
    {"blackman", blackman}, {"rectangular", rectangular},
};

static bm_status fill_shape(bm_fbank *f, const char *name)
{
    double (*at)(double) = NULL;

    for (size_t k = 0; k < sizeof shapes / sizeof shapes[0]; k++)
        if (strcmp(name, shapes[k].name) == 0)
            at = shapes[k].at;
    if (at == NULL)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.window: '%s' is invalid; take povey, "
                       "hanning, hamming, blackman or rectangular",
                       name);
    for (size_t i = 0; i < f->window; i++)
        f->shape[i] = at(cos(2 * pi * (double)i / (double)(f->window - 1)));
    return BM_OK;
}

static double mel(double hz)
{
    return 1127 * log(1 + hz / 700);
}

/* Height at x of a triangle over (left, left + 2 step), 1 in the middle. */
static double triangle(double x, double left, double step)
{
    double center = left + step;

    if (x <= left || x >= center + step)
        return 0;
    return x <= center ? (x - left) / step : (center + step - x) / step;
}

static bm_status fill_bands(bm_fbank *f, const bm_fbank_settings *s)
{
    double top = 0.5 * (double)s->rate;
    double high = s->high_hz > 0 ? s->high_hz : top + s->high_hz;
    double step, width = (double)s->rate / (double)f->padded;
    double *weight = f->weights;

    if (!(s->low_hz >= 0 && s->low_hz < high && high <= top))
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.low_hz, high_hz: %g .. %g Hz is outside "
                       "0 .. %g Hz, half the sampling rate",
                       s->low_hz, high, top);
    step = (mel(high) - mel(s->low_hz)) / (double)(f->mels + 1);
    for (size_t m = 0; m < f->mels; m++) {
        double left = mel(s->low_hz) + (double)m * step;
        band *b = &f->bands[m];

        b->weight = weight;
        for (size_t i = 0; i < f->padded / 2; i++) {
            double w = triangle(mel((double)i * width), left, step);
            if (w <= 0)
                continue;
            if (b->n == 0)
                b->first = i;
            b->n++;
            *weight++ = w;
        }
        if (b->n == 0)
            return BM_FAIL(BM_ERR_CONFIG,
                           "features.mels: %zu bands are too narrow for %g ms "
                           "at %ld Hz: band %zu has no frequency; take fewer "
                           "mels or a longer window_ms",
                           f->mels, s->window_ms, s->rate, m + 1);
    }
    return BM_OK;
}

/* Whole samples, truncated as in Kaldi; 1e-6 allows for rounding of ms. */
static size_t samples(double ms, long rate)
{
    return (size_t)(ms * (double)rate / 1000 + 1e-6);
}

static bm_status make(bm_fbank *f, const bm_fbank_settings *s)
{
    size_t half;

    f->window = samples(s->window_ms, s->rate);
    f->shift = samples(s->shift_ms, s->rate);
    if (f->window < 2 || f->shift < 1)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.window_ms, shift_ms: %g and %g ms are too "
                       "short at %ld Hz",
                       s->window_ms, s->shift_ms, s->rate);
    for (f->padded = 2; f->padded < f->window;)
        f->padded *= 2;
    half = f->padded / 2;
    f->mels = (size_t)s->mels;
    f->snip_edges = s->snip_edges;
    f->preemphasis = s->preemphasis;
    f->shape = calloc(f->window, sizeof *f->shape);
    f->bands = calloc(f->mels, sizeof *f->bands);
    f->weights =
        calloc(2 * half, sizeof *f->weights); /* each point is in two bands */
    f->frame = calloc(f->window, sizeof *f->frame);
    f->time = calloc(f->padded, sizeof *f->time);
    f->freq = calloc(half + 1, sizeof *f->freq);
    f->power = calloc(half, sizeof *f->power);
    f->fft = kiss_fftr_alloc((int)f->padded, 0, NULL, NULL);
    if (!f->shape || !f->bands || !f->weights || !f->frame || !f->time ||
        !f->freq || !f->power || !f->fft)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu mels", f->mels);
    BM_TRY(fill_shape(f, s->window));
    return fill_bands(f, s);
}

bm_status bm_fbank_new(bm_fbank **out, const bm_fbank_settings *s)
{
    bm_fbank *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a filter bank");
    BM_TRY_DONE(make(f, s));
    *out = f;
    f = NULL;
done:
    bm_fbank_free(f);
    return status;
}

void bm_fbank_free(bm_fbank *f)
{
    if (f == NULL)
        return;
    free(f->shape);
    free(f->bands);
    free(f->weights);
    free(f->frame);
    free(f->time);
    free(f->freq);
    free(f->power);
    if (f->fft != NULL)
        kiss_fftr_free(f->fft);
    free(f);
}

size_t bm_fbank_frames(const bm_fbank *f, size_t n)
{
    if (!f->snip_edges)
        return (n + f->shift / 2) / f->shift;
    return n < f->window ? 0 : 1 + (n - f->window) / f->shift;
}

/* The samples of frame t; those beyond the ends are reflected. */
static void cut(bm_fbank *f, const float *x, size_t n, size_t t)
{
    ptrdiff_t first = (ptrdiff_t)(t * f->shift), end = (ptrdiff_t)n;

    if (!f->snip_edges)
        first += (ptrdiff_t)(f->shift / 2) - (ptrdiff_t)(f->window / 2);
    for (size_t i = 0; i < f->window; i++) {
        ptrdiff_t at = first + (ptrdiff_t)i;
        while (at < 0 || at >= end)
            at = at < 0 ? -at - 1 : 2 * end - 1 - at;
        f->frame[i] = x[at];
    }
}

/* The samples of frame t, less their mean. */
static void centre(bm_fbank *f, const float *x, size_t n, size_t t)
{
    double mean = 0;

    cut(f, x, n, t);
    for (size_t i = 0; i < f->window; i++)
        mean += f->frame[i];
    mean /= (double)f->window;
    for (size_t i = 0; i < f->window; i++)
        f->frame[i] -= mean;
}

static void shape(bm_fbank *f)
{
    double p = f->preemphasis;

    for (size_t i = f->window; i-- > 0;) {
        double before = f->frame[i > 0 ? i - 1 : 0];
        f->time[i] = (float)((f->frame[i] - p * before) * f->shape[i]);
    }
}

static void transform(bm_fbank *f)
{
    kiss_fftr(f->fft, f->time, f->freq);
    for (size_t i = 0; i < f->padded / 2; i++) {
        double re = f->freq[i].r, im = f->freq[i].i;
        f->power[i] = re * re + im * im;
    }
}

static float floored_log(double energy)
{
    return (float)log(fmax(energy, 0x1p-23));
}

static double band_energy(const bm_fbank *f, const band *b)
{
    double sum = 0;

    for (size_t i = 0; i < b->n; i++)
        sum += b->weight[i] * f->power[b->first + i];
    return sum;
}

size_t bm_fbank_shift(const bm_fbank *f)
{
    return f->shift;
}

void bm_fbank_apply(bm_fbank *f, const float *x, size_t n, float *y,
                    size_t stride)
{
    size_t frames = bm_fbank_frames(f, n);

    for (size_t t = 0; t < frames; t++, y += stride) {
        centre(f, x, n, t);
        shape(f);
        transform(f);
        for (size_t m = 0; m < f->mels; m++)
            y[m] = floored_log(band_energy(f, &f->bands[m]));
    }
}

void bm_fbank_energies(bm_fbank *f, const float *x, size_t n, float *y,
                       size_t stride)
{
    size_t frames = bm_fbank_frames(f, n);

    for (size_t t = 0; t < frames; t++, y += stride) {
        double sum = 0;

        centre(f, x, n, t);
        for (size_t i = 0; i < f->window; i++)
            sum += f->frame[i] * f->frame[i];
        *y = floored_log(sum);
    }
}

void bm_dither(float *x, size_t n, double amount, uint64_t key)
{
    bm_rng rng = {key, 0};

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(x[i] + amount * bm_rng_normal(&rng));
}
