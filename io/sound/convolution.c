#include "io/sound/convolution.h"

#include "io/sound/sound.h"

#include <kiss_fftr.h>
#include <stdlib.h>
#include <string.h>

enum { LEAST_FFT = 4096 };

struct bm_convolver {
    size_t n; /* of the transforms; 0: none yet */
    kiss_fftr_cfg forward, backward;
    float *time;         /* [n] */
    kiss_fft_cpx *h, *x; /* [n / 2 + 1] */
    float *y;            /* [capacity] */
    size_t capacity;
};

bm_status bm_convolver_new(bm_convolver **out)
{
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a convolution");
    return BM_OK;
}

static void free_transforms(bm_convolver *c)
{
    kiss_fftr_free(c->forward);
    kiss_fftr_free(c->backward);
    free(c->time);
    free(c->h);
    free(c->x);
    c->forward = c->backward = NULL;
    c->time = NULL;
    c->h = c->x = NULL;
    c->n = 0;
}

void bm_convolver_free(bm_convolver *c)
{
    if (c == NULL)
        return;
    free_transforms(c);
    free(c->y);
    free(c);
}

/* Transforms of at least three times the taps: two thirds are of the signal. */
static bm_status fit_transforms(bm_convolver *c, size_t taps)
{
    size_t n = LEAST_FFT;

    while (n < 3 * taps)
        n *= 2;
    if (n == c->n)
        return BM_OK;
    free_transforms(c);
    c->forward = kiss_fftr_alloc((int)n, 0, NULL, NULL);
    c->backward = kiss_fftr_alloc((int)n, 1, NULL, NULL);
    c->time = malloc(n * sizeof *c->time);
    c->h = malloc((n / 2 + 1) * sizeof *c->h);
    c->x = malloc((n / 2 + 1) * sizeof *c->x);
    if (!c->forward || !c->backward || !c->time || !c->h || !c->x) {
        free_transforms(c);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a transform of %zu", n);
    }
    c->n = n;
    return BM_OK;
}

static bm_status fit_output(bm_convolver *c, size_t n)
{
    BM_TRY(bm_samples_reserve(&c->y, &c->capacity, n));
    memset(c->y, 0, n * sizeof *c->y);
    return BM_OK;
}

/* out <- the transform of x [n], padded with zeros. */
static void transform(bm_convolver *c, const float *x, size_t n,
                      kiss_fft_cpx *out)
{
    memcpy(c->time, x, n * sizeof *x);
    memset(c->time + n, 0, (c->n - n) * sizeof *x);
    kiss_fftr(c->forward, c->time, out);
}

/* y [capacity] += the convolution of x [n] with c->h, as far as it is within y.
 * */
static void add_part(bm_convolver *c, const float *x, size_t n, float *y,
                     size_t capacity)
{
    size_t used = capacity < c->n ? capacity : c->n;
    float scale = 1 / (float)c->n;

    transform(c, x, n, c->x);
    for (size_t k = 0; k <= c->n / 2; k++) {
        kiss_fft_cpx a = c->x[k], b = c->h[k];

        c->x[k].r = a.r * b.r - a.i * b.i;
        c->x[k].i = a.r * b.i + a.i * b.r;
    }
    kiss_fftri(c->backward, c->x, c->time);
    for (size_t i = 0; i < used; i++)
        y[i] += scale * c->time[i];
}

bm_status bm_convolve(bm_convolver *c, const float *h, size_t taps,
                      size_t shift, float *x, size_t n)
{
    size_t length = n + taps - 1, step = 0;

    BM_ASSERT(shift < taps && taps <= BM_MOST_TAPS);
    BM_TRY(fit_transforms(c, taps));
    BM_TRY(fit_output(c, length));
    transform(c, h, taps, c->h);
    step = c->n - taps + 1;
    for (size_t at = 0; at < n; at += step)
        add_part(c, x + at, n - at < step ? n - at : step, c->y + at,
                 length - at);
    memcpy(x, c->y + shift, n * sizeof *x);
    return BM_OK;
}
