/*
 * sinc.c - the weights of an output depend on where it lies between two inputs.
 * That repeats after `out` outputs and `in` inputs, the rates over their
 * greatest common divisor.
 */
#include "io/features/sinc.h"

#include <math.h>
#include <stdlib.h>

static const double pi = 3.14159265358979323846;

struct bm_sinc_resampler {
    size_t in, out, taps;
    ptrdiff_t *first; /* [out]: the first input */
    double *weights;  /* [out, taps] */
};

double bm_sinc_at(const bm_sinc *s, double t)
{
    double a = 2 * pi * s->cutoff * t;

    if (fabs(t) >= s->zeros / (2 * s->cutoff))
        return 0;
    return (t == 0 ? 2 * s->cutoff : sin(a) / (pi * t)) *
           (1 + cos(a / s->zeros)) / 2;
}

static long common_divisor(long a, long b)
{
    while (b != 0) {
        long rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

static void fill(bm_sinc_resampler *r, const bm_sinc *s, long from, long to)
{
    double reach = s->zeros / (2 * s->cutoff) * (double)from;

    for (size_t k = 0; k < r->out; k++) {
        double at = (double)k / (double)to * (double)from;

        r->first[k] = (ptrdiff_t)ceil(at - reach);
        for (size_t i = 0; i < r->taps; i++) {
            double j = (double)(r->first[k] + (ptrdiff_t)i);
            r->weights[k * r->taps + i] =
                bm_sinc_at(s, (j - at) / (double)from) / (double)from;
        }
    }
}

bm_status bm_sinc_resampler_new(bm_sinc_resampler **out, const bm_sinc *s,
                                long from, long to)
{
    bm_sinc_resampler *r = calloc(1, sizeof *r);
    long divisor = common_divisor(from, to);
    bm_status status = BM_OK;

    if (r == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to resample");
    BM_ASSERT((double)from >= 2 * s->cutoff && to >= 1);
    r->in = (size_t)(from / divisor);
    r->out = (size_t)(to / divisor);
    r->taps = (size_t)floor(s->zeros / s->cutoff * (double)from) + 1;
    r->first = calloc(r->out, sizeof *r->first);
    r->weights = calloc(r->out, r->taps * sizeof *r->weights);
    if (r->first == NULL || r->weights == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to resample %ld Hz to %ld Hz",
                     from, to);
    fill(r, s, from, to);
    *out = r;
    r = NULL;
done:
    bm_sinc_resampler_free(r);
    return status;
}

void bm_sinc_resampler_free(bm_sinc_resampler *r)
{
    if (r == NULL)
        return;
    free(r->first);
    free(r->weights);
    free(r);
}

size_t bm_sinc_resampled(const bm_sinc_resampler *r, size_t n)
{
    return n / r->in * r->out + (n % r->in * r->out + r->in - 1) / r->in;
}

void bm_sinc_resample(const bm_sinc_resampler *r, const float *x, size_t n,
                      double *y)
{
    size_t samples = bm_sinc_resampled(r, n);

    for (size_t k = 0; k < samples; k++) {
        const double *weight = r->weights + k % r->out * r->taps;
        ptrdiff_t first =
            r->first[k % r->out] + (ptrdiff_t)(k / r->out * r->in);
        size_t begin = first < 0 ? (size_t)-first : 0, end = r->taps;
        double sum = 0;

        if ((ptrdiff_t)n - first < (ptrdiff_t)end)
            end = (size_t)((ptrdiff_t)n - first);
        for (size_t i = begin; i < end; i++)
            sum += weight[i] * x[first + (ptrdiff_t)i];
        y[k] = sum;
    }
}
