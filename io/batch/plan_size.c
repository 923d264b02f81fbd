/*
 * plan_size.c - the sizes of mini-batches and blocks in frames, from settings
 * and a data set.
 */
#include "io/batch/plan_parts.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>

/* Units of a share: the fewest, and how many they are if units are cut. */
enum { FEWEST_UNITS = 16, CUT_UNITS = 32 };
enum { SHARES = 4 }; /* drawn at random to find the size of one */
/* The default size of a mini-batch. Small sets need small ones to make enough
 * updates. */
enum { FEWEST = 4, MOST = 16, BATCHES = 1000 };

static long default_sequences(const bm_plan_settings *s, const bm_dataset *d)
{
    double few = fmin(fmax(round((double)d->n / BATCHES), FEWEST), MOST);
    double times = fmax((double)s->workers / BM_FEW_WORKERS, 1);

    return (long)fmax(round(few / times), 1);
}

bm_plan_settings bm_plan_sized(const bm_plan_settings *s, const bm_dataset *d)
{
    bm_plan_settings sized = *s;

    if (s->frames == 0 && s->sequences == 0)
        sized.sequences = default_sequences(s, d);
    return sized;
}

bm_plan_settings bm_plan_in_epoch(const bm_plan_settings *s, int64_t epoch)
{
    bm_plan_settings now = *s;
    long size = (long)bm_series_at(&s->sizes, (double)epoch);

    if (bm_series_changes(&s->actives))
        now.active = (long)bm_series_at(&s->actives, (double)epoch);
    if (s->order == BM_ORDER_SORTAGRAD)
        now.order = epoch == 0 ? BM_ORDER_SORTED : BM_ORDER_RANDOM;
    if (!bm_series_changes(&s->sizes))
        return now;
    now.frames_per_worker = s->frames_per_worker > 0 ? size : 0;
    now.frames_total = s->frames_total > 0 ? size : 0;
    now.steps = s->steps > 0 ? size : 0;
    return now;
}

bm_series bm_plan_changes(const bm_plan_settings *s)
{
    bm_series changes = {0};

    BM_ASSERT(bm_series_join(&s->sizes, &s->actives, &changes));
    return changes;
}

/* Sequences that fill s->steps mini-batches if all sequences of a mini-batch
 * have the same length. */
static double ideal_share(const bm_plan_settings *s, const bm_dataset *d)
{
    double epoch = 0;

    if (s->frames == 0)
        return (double)(s->steps * s->sequences);
    for (size_t i = 0; i < d->n; i++) {
        int32_t length = d->lengths[2 * i];
        long together = length > 0 ? s->frames / length : 0;

        if (length > 0)
            epoch += 1 / (double)(together > 0 ? together : 1);
    }
    return epoch > 0 ? (double)s->steps * (double)d->n / epoch : (double)d->n;
}

/*
 * Lengths differ, so mini-batches have fewer sequences than that, the more so
 * in a small share. So random shares are drawn and cut, and each result gives
 * the size of the next share.
 */
static bm_status real_share(const bm_plan_settings *s, const bm_dataset *d,
                            double *sequences)
{
    double n = fmin(*sequences, (double)d->n);
    bm_plan_settings cut = {.frames = s->frames};
    int32_t *lengths = malloc(((size_t)n + 2) * sizeof *lengths);
    bm_status status = BM_OK;

    if (lengths == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %.0f lengths", n);
    for (uint64_t k = 0; k < SHARES && n >= 1; k++) {
        bm_rng rng = bm_rng_make(0, "steps", k);
        size_t drawn = (size_t)round(n), batches = 0;

        for (size_t i = 0; i < drawn; i++)
            lengths[i] = d->lengths[2 * bm_rng_below(&rng, d->n)];
        BM_TRY_DONE(bm_plan_count(&cut, lengths, drawn, &batches));
        *sequences = (double)s->steps * (double)drawn / (double)batches;
        n = fmin(n, *sequences);
    }
done:
    free(lengths);
    return status;
}

bm_status bm_plan_block_frames(const bm_plan_settings *s, const bm_dataset *d,
                               int workers, double *out)
{
    bm_plan_settings sized = bm_plan_sized(s, d);
    double mean = (double)d->frames / (double)(d->n > 0 ? d->n : 1), n = 0;

    if (s->frames_total > 0) {
        *out = (double)s->frames_total;
        return BM_OK;
    }
    if (s->frames_per_worker > 0) {
        *out = (double)s->frames_per_worker * workers;
        return BM_OK;
    }
    n = ideal_share(&sized, d);
    if (sized.frames > 0)
        BM_TRY(real_share(&sized, d, &n));
    *out = n * mean * workers;
    return BM_OK;
}

/* Frames of a share from this epoch on. */
static bm_status share_frames(const bm_plan_settings *s, const bm_dataset *d,
                              int workers, int64_t epoch, double *out)
{
    bm_plan_settings now = bm_plan_in_epoch(s, epoch);
    double size = 0, blocks = 1;

    if (now.active > 0 && now.active < workers)
        workers = (int)now.active;
    BM_TRY(bm_plan_block_frames(&now, d, workers, &size));
    if (size > 0)
        blocks = fmax(round((double)d->frames / size), 1);
    *out = (double)d->frames / blocks / workers;
    return BM_OK;
}

bm_status bm_plan_fit(const bm_plan_settings *s, bm_dataset *d, int workers)
{
    bm_series changes = bm_plan_changes(s);
    double unit = (double)d->frames / fmax((double)d->n_units, 1);
    double least = INFINITY;

    if (s->order == BM_ORDER_SORTED || s->order == BM_ORDER_SORTAGRAD)
        return bm_dataset_cut(d, 1);
    for (int i = 0; i < changes.n; i++) {
        double share = 0;

        BM_TRY(share_frames(s, d, workers, (int64_t)changes.from[i], &share));
        least = fmin(least, share);
    }
    if (least >= FEWEST_UNITS * unit)
        return BM_OK;
    return bm_dataset_cut(d, (int64_t)fmax(floor(least / CUT_UNITS), 1));
}
