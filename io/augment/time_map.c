#include "io/augment/time_map.h"

#include <string.h>

bm_time_map bm_time_map_make(size_t n_in, size_t n_out)
{
    return (bm_time_map){n_in, n_out, (double)n_in, (double)n_in};
}

void bm_time_map_warp(bm_time_map *m, bm_rng *rng, size_t reach)
{
    size_t half = m->n_in / 2;
    size_t most = reach < half ? reach : half;
    size_t from = 0, to = 0;

    if (most < 2)
        return;
    from = most + (size_t)bm_rng_below(rng, m->n_in - 2 * most + 1);
    to = from - most + 1 + (size_t)bm_rng_below(rng, 2 * most - 1);
    m->knee_in = (double)from;
    m->knee_out = (double)to;
}

/* y <- a + f (b - a) */
static void mix(const float *a, const float *b, float f, size_t n, float *y)
{
    for (size_t d = 0; d < n; d++)
        y[d] = a[d] + f * (b[d] - a[d]);
}

void bm_time_map_apply(const bm_time_map *m, const float *x, size_t width,
                       float *y)
{
    double last = (double)m->n_in - 1;

    for (size_t i = 0; i < m->n_out; i++, y += width) {
        double at = bm_time_map_at(m, (double)i + 0.5) - 0.5;
        size_t k = 0;

        at = at < 0 ? 0 : at > last ? last : at;
        k = (size_t)at;
        if ((double)k == at)
            memcpy(y, x + k * width, width * sizeof *y);
        else
            mix(x + k * width, x + (k + 1) * width, (float)(at - (double)k),
                width, y);
    }
}

void bm_time_map_targets(const bm_time_map *m, size_t strips, const int32_t *in,
                         int32_t *out)
{
    size_t n_in = m->n_in / strips, n_out = m->n_out / strips;

    for (size_t t = 0; t < n_out; t++) {
        double middle = ((double)t + 0.5) * (double)strips;
        size_t k = (size_t)(bm_time_map_at(m, middle) / (double)strips);

        out[t] = in[k < n_in ? k : n_in - 1];
    }
}
