#include "io/augment/values.h"

#include "io/augment/draw.h"

#include <math.h>
#include <string.h>

/* ---- units ----------------------------------------------------------------- */

static void find_image(bm_moments *m, const bm_layout *l, const float *x,
                       size_t frames)
{
    double sum = 0;

    for (size_t i = 0; i < frames * l->features; i++)
        sum += (double)x[i];
    for (size_t d = 0; d < l->features; d++) {
        m->mean[d] = (float)(sum / (double)(frames * l->features));
        m->unit[d] = 1;
    }
}

void bm_moments_find(bm_moments *m, const bm_layout *l, const float *x,
                     size_t frames)
{
    size_t D = l->features;

    if (l->kind == BM_FRAMES_IMAGE) {
        find_image(m, l, x, frames);
        return;
    }
    memset(m->sums, 0, D * sizeof *m->sums);
    for (size_t t = 0; t < frames; t++)
        for (size_t d = 0; d < D; d++)
            m->sums[d] += (double)x[t * D + d];
    for (size_t d = 0; d < D; d++) {
        m->mean[d] = (float)(m->sums[d] / (double)frames);
        m->sums[d] = 0;
    }
    for (size_t t = 0; t < frames; t++)
        for (size_t d = 0; d < D; d++) {
            double from = (double)x[t * D + d] - (double)m->mean[d];

            m->sums[d] += from * from;
        }
    for (size_t d = 0; d < D; d++)
        m->unit[d] = (float)sqrt(m->sums[d] / (double)frames);
}

float bm_paper(const bm_layout *l, const float *x, size_t frames)
{
    size_t strips = bm_layout_strips(l, frames), bands = l->bands;
    size_t count[256] = {0}, all = 0, below = 0;
    int level = 0;

    for (size_t i = 0; i < strips; i++) {
        bool end = i == 0 || i + 1 == strips;

        for (size_t j = 0; j < bands; j += end || bands < 3 ? 1 : bands - 1) {
            float ink = fminf(fmaxf(x[i * bands + j], 0), 1);

            count[(int)(ink * 255 + 0.5f)]++;
            all++;
        }
    }
    while (2 * (below += count[level]) < all)
        level++;
    return (float)level / 255;
}

/* ---- contrast, offset, noise ------------------------------------------------ */

/* Slopes and pitch do not change with the volume, and of cepstra only the first
 * does: the others have weights of the bands whose sum is 0. */
static bool has_volume(const bm_layout *l, size_t d)
{
    size_t stride = bm_layout_stride(l);
    size_t end = l->kind == BM_FRAMES_CEPSTRA ? 1 : l->bands;

    return d / stride % l->orders == 0 && d % stride < end;
}

/* The mean unit of all values that change with the volume. */
static double mean_unit(const bm_layout *l, const bm_moments *m)
{
    double sum = 0, n = 0;

    for (size_t d = 0; d < l->features; d++)
        if (has_volume(l, d)) {
            sum += (double)m->unit[d];
            n++;
        }
    return n > 0 ? sum / n : 0;
}

static void add_noise(const bm_moments *m, uint64_t key, double level, float *x,
                      size_t frames, size_t D)
{
    uint64_t stream = bm_draw_stream(key, BM_DRAW_NOISE).key, k = 0;

    for (size_t t = 0; t < frames; t++, x += D)
        for (size_t d = 0; d < D; d++)
            x[d] += (float)level * m->unit[d] *
                    bm_draw_gauss(bm_rng_at(stream, k++));
}

void bm_values_change(const bm_augment_settings *s, const bm_layout *l,
                      const bm_moments *m, uint64_t key, float *x,
                      size_t frames, float *add)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_VALUES);
    float contrast = (float)(1 + s->contrast * bm_draw_sign(&rng));
    double offset = s->offset * bm_draw_sign(&rng) * mean_unit(l, m);
    double level = s->noise * bm_rng_uniform(&rng);
    size_t D = l->features;

    for (size_t d = 0; d < D; d++)
        add[d] = m->mean[d] * (1 - contrast) +
                 (has_volume(l, d) ? (float)offset : 0);
    for (size_t t = 0; t < frames; t++)
        for (size_t d = 0; d < D; d++)
            x[t * D + d] = contrast * x[t * D + d] + add[d];
    if (level > 0)
        add_noise(m, key, level, x, frames, D);
    if (l->kind == BM_FRAMES_IMAGE)
        for (size_t i = 0; i < frames * D; i++)
            x[i] = x[i] < 0 ? 0 : x[i] > 1 ? 1 : x[i];
}

/* ---- strokes ---------------------------------------------------------------- */

static float extreme(float a, float b, bool largest)
{
    return (a > b) == largest ? a : b;
}

/* y [n] <- of each value and its neighbours in the column. */
static void along_bands(const float *x, size_t n, bool largest, float *y)
{
    for (size_t j = 0; j < n; j++)
        y[j] = x[j];
    for (size_t j = 1; j < n; j++)
        y[j] = extreme(y[j], x[j - 1], largest);
    for (size_t j = 0; j + 1 < n; j++)
        y[j] = extreme(y[j], x[j + 1], largest);
}

/* x moves by `part` towards the extreme of the squares of 3 x 3 around. */
static void one_pixel(const bm_layout *l, bool largest, float part, float *x,
                      size_t strips, float *work)
{
    size_t width = bm_layout_width(l), stride = bm_layout_stride(l);

    for (size_t j = 0; j < strips * width; j += stride)
        along_bands(x + j, l->bands, largest, work + j);
    for (size_t i = 0; i < strips; i++) {
        const float *here = work + i * width;
        const float *before = i > 0 ? here - width : here,
                    *after = i + 1 < strips ? here + width : here;
        float *to = x + i * width;

        for (size_t j = 0; j < width; j++)
            if (j % stride < l->bands)
                to[j] += part * (extreme(extreme(before[j], here[j], largest),
                                         after[j], largest) -
                                 to[j]);
    }
}

void bm_strokes_change(const bm_layout *l, double amount, float *x,
                       size_t frames, float *work)
{
    size_t strips = bm_layout_strips(l, frames);
    double size = fabs(amount);
    int whole = (int)size;

    for (int k = 0; k < whole; k++)
        one_pixel(l, amount > 0, 1, x, strips, work);
    if (size > whole)
        one_pixel(l, amount > 0, (float)(size - whole), x, strips, work);
}
