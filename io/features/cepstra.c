/*
 * cepstra.c - the transform is one matrix; sums are in double, of all cepstra of
 * a frame together, which vector instructions can add.
 */
#include "io/features/cepstra.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;
static const double lifter = 22; /* Q */

struct bm_cepstra {
    size_t bands, n;
    double *weight; /* [bands, n] */
    double *sum;    /* [n] */
};

static void fill(bm_cepstra *c)
{
    double M = (double)c->bands;

    for (size_t k = 0; k < c->n; k++) {
        double scale = sqrt((k == 0 ? 1 : 2) / M) *
                       (1 + lifter / 2 * sin(pi * (double)k / lifter));

        for (size_t m = 0; m < c->bands; m++)
            c->weight[m * c->n + k] =
                scale * cos(pi * (double)k * ((double)m + 0.5) / M);
    }
}

bm_status bm_cepstra_new(bm_cepstra **out, size_t bands, size_t n)
{
    bm_cepstra *c = NULL;
    bm_status status = BM_OK;

    if (n > bands)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.cepstra: %zu cepstra of %zu bands; set "
                       "features.mels to %zu at least",
                       n, bands, n);
    c = calloc(1, sizeof *c);
    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for cepstra");
    c->bands = bands;
    c->n = n;
    c->weight = calloc(n * bands, sizeof *c->weight);
    c->sum = calloc(n, sizeof *c->sum);
    if (c->weight == NULL || c->sum == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu cepstra", n);
    fill(c);
    *out = c;
    c = NULL;
done:
    bm_cepstra_free(c);
    return status;
}

void bm_cepstra_free(bm_cepstra *c)
{
    if (c == NULL)
        return;
    free(c->weight);
    free(c->sum);
    free(c);
}

/* c->sum <- the cepstra of x [bands] */
static void transform(bm_cepstra *c, const float *x)
{
    const double *weight = c->weight;

    memset(c->sum, 0, c->n * sizeof *c->sum);
    for (size_t m = 0; m < c->bands; m++, weight += c->n)
        for (size_t k = 0; k < c->n; k++)
            c->sum[k] += weight[k] * (double)x[m];
}

void bm_cepstra_apply(bm_cepstra *c, const float *x, size_t frames, float *y,
                      size_t stride)
{
    for (size_t t = 0; t < frames; t++, x += c->bands, y += stride) {
        transform(c, x);
        for (size_t k = 0; k < c->n; k++)
            y[k] = (float)c->sum[k];
    }
}
