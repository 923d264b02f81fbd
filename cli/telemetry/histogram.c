#include "cli/telemetry/histogram.h"

#include <math.h>

static double element(const float *x, const float *minus, size_t i)
{
    return minus != NULL ? (double)x[i] - (double)minus[i] : (double)x[i];
}

static void add_up(bm_histogram *h, const float *x, const float *minus,
                   size_t n)
{
    h->min = INFINITY;
    h->max = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        double y = element(x, minus, i);

        if (!isfinite(y))
            continue;
        h->n++;
        h->sum += y;
        h->sum_squares += y * y;
        h->min = y < h->min ? y : h->min;
        h->max = y > h->max ? y : h->max;
    }
}

bool bm_histogram_make(bm_histogram *h, const float *x, const float *minus,
                       size_t n)
{
    double width = 0, per_width = 0;

    *h = (bm_histogram){0};
    add_up(h, x, minus, n);
    if (h->n == 0)
        return false;
    width = h->max - h->min;
    h->bins = width > 0 ? BM_HISTOGRAM_BINS : 1;
    per_width = width > 0 ? (double)h->bins / width : 0;
    for (size_t k = 0; k < h->bins; k++)
        h->limit[k] = k + 1 < h->bins
                          ? h->min + width * (double)(k + 1) / (double)h->bins
                          : h->max;
    for (size_t i = 0; i < n; i++) {
        double y = element(x, minus, i);
        size_t k = 0;

        if (!isfinite(y))
            continue;
        k = (size_t)((y - h->min) * per_width);
        h->count[k < h->bins ? k : h->bins - 1]++;
    }
    return true;
}
