#include "io/features/feature_ops.h"

#include "core/status.h"

#include <math.h>
#include <string.h>

enum { WIDEST = 2 * BM_DELTA_ORDER * BM_DELTA_WINDOW + 1 };

/* Weights of frames t - reach .. t + reach. */
typedef struct filter {
    size_t reach;
    double weight[WIDEST];
} filter;

/* The filter, convolved with j / sum j^2. */
static filter differentiate(const filter *f, size_t window)
{
    filter d = {.reach = f->reach + window};
    double squares = 0, w = (double)window;

    for (size_t j = 1; j <= window; j++)
        squares += 2 * (double)(j * j);
    for (size_t i = 0; i <= 2 * f->reach; i++)
        for (size_t j = 0; j <= 2 * window; j++)
            d.weight[i + j] += f->weight[i] * ((double)j - w) / squares;
    return d;
}

static size_t clamp(size_t t, size_t reach, size_t frames)
{
    size_t at = t > reach ? t - reach : 0;
    return at < frames ? at : frames - 1;
}

/* One frame, filtered in time. */
static void filter_frame(const filter *f, const float *x, size_t frames,
                         size_t dim, size_t t, float *y)
{
    for (size_t d = 0; d < dim; d++) {
        double sum = 0;

        for (size_t i = 0; i <= 2 * f->reach; i++)
            sum += f->weight[i] * x[clamp(t + i, f->reach, frames) * dim + d];
        y[d] = (float)sum;
    }
}

void bm_deltas(const float *x, size_t frames, size_t dim, size_t order,
               size_t window, float *y)
{
    filter f[BM_DELTA_ORDER + 1] = {{0, {1}}};

    BM_ASSERT(order <= BM_DELTA_ORDER && window <= BM_DELTA_WINDOW);
    for (size_t k = 1; k <= order; k++)
        f[k] = differentiate(&f[k - 1], window);
    for (size_t t = 0; t < frames; t++)
        for (size_t k = 0; k <= order; k++) {
            filter_frame(&f[k], x, frames, dim, t, y);
            y += dim;
        }
}

size_t bm_subsampled(size_t frames, size_t every)
{
    return frames / every + (frames % every > 0);
}

void bm_stack(const float *x, size_t frames, size_t dim, size_t n, size_t every,
              float *y)
{
    for (size_t t = 0; t < frames; t += every)
        for (size_t k = 0; k < n; k++) {
            memcpy(y, x + clamp(t + k, 0, frames) * dim, dim * sizeof *y);
            y += dim;
        }
}

void bm_moments_add(double *moments, const float *x, size_t frames, size_t dim)
{
    double *sum = moments + 1, *squares = sum + dim;

    moments[0] += (double)frames;
    for (size_t t = 0; t < frames; t++, x += dim)
        for (size_t d = 0; d < dim; d++) {
            sum[d] += x[d];
            squares[d] += (double)x[d] * x[d];
        }
}

void bm_moments_norm(const double *moments, size_t dim, bool variance, size_t d,
                     double *mean, double *scale)
{
    const double *sum = moments + 1, *squares = sum + dim;
    double m = sum[d] / moments[0];
    double var = squares[d] / moments[0] - m * m;
    /* A smaller variance is rounding error of floats. */
    double least = fmax(1e-20, 1e-12 * m * m);

    *mean = m;
    *scale = variance ? 1 / sqrt(fmax(var, least)) : 1;
}

void bm_normalise(float *x, size_t frames, size_t dim, const double *moments,
                  bool variance)
{
    for (size_t d = 0; d < dim; d++) {
        double mean = 0, scale = 1;

        bm_moments_norm(moments, dim, variance, d, &mean, &scale);
        for (size_t t = 0; t < frames; t++)
            x[t * dim + d] = (float)((x[t * dim + d] - mean) * scale);
    }
}

/* Adds a frame, or takes it out again: sign = -1. */
static void add_frame(double *moments, const float *x, size_t dim, double sign)
{
    double *sum = moments + 1, *squares = sum + dim;

    moments[0] += sign;
    for (size_t d = 0; d < dim; d++) {
        sum[d] += sign * x[d];
        squares[d] += sign * (double)x[d] * x[d];
    }
}

void bm_normalise_sliding(const float *x, size_t frames, size_t dim,
                          size_t window, bool variance, double *moments,
                          float *y)
{
    size_t half = window / 2, begin = 0, end = 0; /* frames in the moments */

    window = window < frames ? window : frames;
    memset(moments, 0, BM_MOMENTS(dim) * sizeof *moments);
    for (size_t t = 0; t < frames; t++) {
        size_t first = t > half ? t - half : 0;

        first = first < frames - window ? first : frames - window;
        while (end < first + window)
            add_frame(moments, x + end++ * dim, dim, 1);
        while (begin < first)
            add_frame(moments, x + begin++ * dim, dim, -1);
        memcpy(y + t * dim, x + t * dim, dim * sizeof *y);
        bm_normalise(y + t * dim, 1, dim, moments, variance);
    }
}
