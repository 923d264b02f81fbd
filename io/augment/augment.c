/*
 * augment.c - the order of the changes: time and place, strokes, values, masks.
 * Each has a stream of random numbers of its own. Scratch memory grows to the
 * longest sequence and is kept.
 */
#include "io/augment/augment.h"

#include "core/size.h"
#include "io/augment/draw.h"
#include "io/augment/image_map.h"
#include "io/augment/masks.h"
#include "io/augment/time_map.h"
#include "io/augment/values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bm_augmenter {
    bm_augment_settings set;
    bm_speeds speeds;
    bm_layout layout;
    bool per_frame;
    bm_moments moments;
    float *fill, *add; /* [D] */
    float *x;          /* [x_capacity]: the sequence as it was */
    float *work;       /* [work_capacity] */
    int32_t *labels;   /* [labels_capacity] likewise */
    size_t x_capacity, work_capacity, labels_capacity;
};

static bool make_moments(bm_moments *m, size_t D)
{
    m->mean = calloc(D + 1, sizeof *m->mean);
    m->unit = calloc(D + 1, sizeof *m->unit);
    m->sums = calloc(D + 1, sizeof *m->sums);
    return m->mean != NULL && m->unit != NULL && m->sums != NULL;
}

bm_status bm_augmenter_new(bm_augmenter **out,
                           const bm_augment_settings *settings,
                           const bm_layout *layout, bool per_frame)
{
    bm_augmenter *a = calloc(1, sizeof *a);
    size_t D = layout->features;

    if (a == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to augment sequences");
    a->set = *settings;
    a->set.speed = a->set.reverb = a->set.noise_sound = NULL; /* borrowed */
    a->set.t60 = a->set.direct = a->set.snr = NULL;
    a->layout = *layout;
    a->per_frame = per_frame;
    BM_ASSERT(bm_speeds_read(settings->speed, &a->speeds));
    a->fill = calloc(D + 1, sizeof *a->fill);
    a->add = calloc(D + 1, sizeof *a->add);
    if (!make_moments(&a->moments, D) || a->fill == NULL || a->add == NULL) {
        bm_augmenter_free(a);
        return BM_FAIL(BM_ERR_MEMORY, "no memory to augment %zu features", D);
    }
    *out = a;
    return BM_OK;
}

void bm_augmenter_free(bm_augmenter *a)
{
    if (a == NULL)
        return;
    free(a->moments.mean);
    free(a->moments.unit);
    free(a->moments.sums);
    free(a->fill);
    free(a->add);
    free(a->x);
    free(a->work);
    free(a->labels);
    free(a);
}

double bm_augmenter_stretch(const bm_augmenter *a)
{
    return bm_speeds_stretch(&a->speeds);
}

uint64_t bm_augment_key(uint64_t seed, int64_t epoch, int64_t sequence)
{
    uint64_t key = bm_rng_make(seed, "augment", 0).key;

    return bm_rng_fork(bm_rng_fork(key, (uint64_t)epoch), (uint64_t)sequence);
}

bool bm_augment_changes(double share, uint64_t key)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_SHARE);

    return bm_rng_uniform(&rng) < share;
}

/* ---- frames ---------------------------------------------------------------- */

static double draw_speed(const bm_speeds *s, uint64_t key)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_SPEED);

    if (s->range)
        return s->factor[0] +
               (s->factor[1] - s->factor[0]) * bm_rng_uniform(&rng);
    return s->factor[bm_rng_below(&rng, (uint64_t)s->n)];
}

size_t bm_augment_frames(const bm_augmenter *a, uint64_t key,
                         const bm_augmented *in, const bm_fit *fit)
{
    double n = 0;

    if (!bm_augment_changes(a->set.share, key))
        return in->frames;
    n = floor((double)in->frames / draw_speed(&a->speeds, key) + 0.5);
    if (n < 1 || n > INT32_MAX)
        return in->frames;
    if (n != (double)in->frames && fit->fits != NULL &&
        !fit->fits(fit->self, (size_t)n, in->labels, in->n_labels))
        return in->frames;
    return (size_t)n;
}

/* ---- time and place -------------------------------------------------------- */

/* *old [*capacity] <- room for n elements of `size` bytes; contents are lost. */
static bm_status reserve(void **old, size_t *capacity, size_t n, size_t size)
{
    void *grown = NULL;

    if (n <= *capacity)
        return BM_OK;
    if (bm_size_mul(n, size) <= PTRDIFF_MAX)
        grown = malloc(n * size);
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to augment %zu numbers", n);
    free(*old);
    *old = grown;
    *capacity = n;
    return BM_OK;
}

static bm_status reserve_floats(float **x, size_t *capacity, size_t n)
{
    void *memory = *x;
    bm_status status = reserve(&memory, capacity, n, sizeof **x);

    *x = memory;
    return status;
}

static bm_status keep_labels(bm_augmenter *a, const bm_augmented *in)
{
    void *memory = a->labels;
    bm_status status =
        reserve(&memory, &a->labels_capacity, in->n_labels, sizeof *a->labels);

    a->labels = memory;
    if (status == BM_OK && in->n_labels > 0)
        memcpy(a->labels, in->labels, in->n_labels * sizeof *a->labels);
    return status;
}

/* Copies the input: the output may overlap with it. */
static bm_status keep(bm_augmenter *a, const bm_augmented *in)
{
    size_t n = in->frames * a->layout.features;

    BM_TRY(reserve_floats(&a->x, &a->x_capacity, n));
    memcpy(a->x, in->x, n * sizeof *a->x);
    return a->per_frame ? keep_labels(a, in) : BM_OK;
}

static bm_time_map time_of(const bm_augmenter *a, uint64_t key,
                           const bm_augmented *in, size_t frames)
{
    const bm_layout *l = &a->layout;
    bm_rng rng = bm_draw_stream(key, BM_DRAW_WARP);
    bm_time_map m = bm_time_map_make(bm_layout_strips(l, in->frames),
                                     bm_layout_strips(l, frames));

    bm_time_map_warp(&m, &rng, bm_layout_strips(l, (size_t)a->set.warp));
    return m;
}

/* a->fill <- the paper of an image; what is beyond it, and masks, become that. */
static void fill_with_paper(bm_augmenter *a, size_t frames)
{
    size_t D = a->layout.features;
    float paper = 0;

    if (a->layout.kind != BM_FRAMES_IMAGE ||
        !(bm_augment_distorts(&a->set) || bm_augment_has_masks(&a->set)))
        return;
    paper = bm_paper(&a->layout, a->x, frames);
    for (size_t d = 0; d < D; d++)
        a->fill[d] = paper;
}

/* a->x to y. */
static bm_status place(bm_augmenter *a, uint64_t key, const bm_time_map *time,
                       float *y)
{
    const bm_layout *l = &a->layout;
    bm_image_map m;

    if (!bm_augment_distorts(&a->set)) {
        bm_time_map_apply(time, a->x, bm_layout_width(l), y);
        return BM_OK;
    }
    m = bm_image_map_draw(&a->set, l, time, key);
    m.paper = a->fill[0];
    BM_TRY(
        reserve_floats(&a->work, &a->work_capacity, bm_image_map_work(&m, l)));
    bm_image_map_apply(&m, &a->set, l, key, a->x, y, a->work);
    return BM_OK;
}

/* ---- values ---------------------------------------------------------------- */

static bm_status change_strokes(bm_augmenter *a, uint64_t key, float *y,
                                size_t frames)
{
    bm_rng rng = bm_draw_stream(key, BM_DRAW_STROKE);

    if (a->set.stroke == 0)
        return BM_OK;
    BM_TRY(reserve_floats(&a->work, &a->work_capacity,
                          frames * a->layout.features));
    bm_strokes_change(&a->layout, a->set.stroke * bm_draw_sign(&rng), y, frames,
                      a->work);
    return BM_OK;
}

/* The units are those of the sequence as it was. */
static void change_values(bm_augmenter *a, uint64_t key, size_t frames_before,
                          float *y, size_t frames)
{
    const bm_augment_settings *s = &a->set;
    bool values = bm_augment_has_values(s), masks = bm_augment_has_masks(s);
    bool image = a->layout.kind == BM_FRAMES_IMAGE;

    if (values || (masks && !image))
        bm_moments_find(&a->moments, &a->layout, a->x, frames_before);
    if (values)
        bm_values_change(s, &a->layout, &a->moments, key, y, frames, a->add);
    if (masks)
        bm_masks_apply(s, &a->layout, key, image ? a->fill : a->moments.mean, y,
                       frames);
}

bm_status bm_augment(bm_augmenter *a, uint64_t key, const bm_augmented *in,
                     size_t frames, float *y, int32_t *targets)
{
    bm_time_map time = time_of(a, key, in, frames);

    BM_TRY(keep(a, in));
    if (!bm_augment_changes(a->set.share, key)) {
        memmove(y, a->x, frames * a->layout.features * sizeof *y);
        if (a->per_frame)
            memmove(targets, a->labels, frames * sizeof *targets);
        return BM_OK;
    }
    fill_with_paper(a, in->frames);
    BM_TRY(place(a, key, &time, y));
    if (a->per_frame)
        bm_time_map_targets(&time, bm_layout_strips(&a->layout, 1), a->labels,
                            targets);
    BM_TRY(change_strokes(a, key, y, frames));
    change_values(a, key, in->frames, y, frames);
    return BM_OK;
}
