#include "io/augment/masks.h"

#include "io/augment/draw.h"

#include <math.h>
#include <string.h>

typedef struct range {
    size_t from, to;
} range;

static range draw(bm_rng *rng, size_t widest, size_t n)
{
    size_t most = widest < n ? widest : n;
    size_t width = (size_t)bm_rng_below(rng, most + 1);
    size_t from = (size_t)bm_rng_below(rng, n - width + 1);

    return (range){from, from + width};
}

/* Bands of all columns of the frames, or of the strips, of `width` features. */
static void mask_bands(const bm_layout *l, range bands, const float *fill,
                       float *x, range strips, size_t width)
{
    for (size_t i = strips.from; i < strips.to; i++)
        for (size_t c = 0; c < width; c += bm_layout_stride(l))
            for (size_t j = bands.from; j < bands.to; j++)
                x[i * width + c + j] = fill[c + j];
}

static void mask_time(const bm_augment_settings *s, const bm_layout *l,
                      uint64_t key, const float *fill, float *x, size_t frames)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_TIME_MASKS);
    size_t share = (size_t)(s->time_share * (double)frames);
    size_t widest =
        (size_t)s->time_width < share ? (size_t)s->time_width : share;

    for (long k = 0; k < s->time_masks; k++) {
        range r = draw(&rng, widest, frames);

        for (size_t t = r.from; t < r.to; t++)
            memcpy(x + t * l->features, fill, l->features * sizeof *x);
    }
}

static void mask_frequency(const bm_augment_settings *s, const bm_layout *l,
                           uint64_t key, const float *fill, float *x,
                           size_t frames)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_FREQUENCY_MASKS);

    for (long k = 0; k < s->frequency_masks; k++)
        mask_bands(l, draw(&rng, (size_t)s->frequency_width, l->bands), fill, x,
                   (range){0, frames}, l->features);
}

static void cut_out(const bm_augment_settings *s, const bm_layout *l,
                    uint64_t key, const float *fill, float *x, size_t frames)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_CUTOUTS);
    size_t side = (size_t)lround(s->cutout_size * (double)l->bands);

    for (long k = 0; k < s->cutouts; k++) {
        range strips = draw(&rng, side, bm_layout_strips(l, frames));
        range bands = draw(&rng, side, l->bands);

        mask_bands(l, bands, fill, x, strips, bm_layout_width(l));
    }
}

void bm_masks_apply(const bm_augment_settings *s, const bm_layout *l,
                    uint64_t key, const float *fill, float *x, size_t frames)
{
    mask_time(s, l, key, fill, x, frames);
    mask_frequency(s, l, key, fill, x, frames);
    cut_out(s, l, key, fill, x, frames);
}
