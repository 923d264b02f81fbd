#include "tests/support/lengths.h"

#include "tests/support/support.h"

#include <stdlib.h>

bm_dataset lengths_make(size_t n_units, const int32_t *counts,
                        int32_t (*length)(void *, int64_t), void *context)
{
    bm_dataset d = {.n_units = n_units};
    int64_t first = 0;

    d.units = zeros(n_units, sizeof *d.units);
    for (size_t u = 0; u < n_units; u++)
        d.n += (size_t)counts[u];
    d.lengths = zeros(2 * d.n, sizeof *d.lengths);
    for (size_t u = 0; u < n_units; u++) {
        bm_unit_at *unit = &d.units[u];
        *unit = (bm_unit_at){0, (int32_t)u, first, counts[u], 0};
        for (int32_t i = 0; i < counts[u]; i++, first++) {
            int32_t frames = length(context, first);
            d.lengths[2 * first] = frames;
            unit->frames += frames;
            d.longest = frames > d.longest ? frames : d.longest;
        }
        d.frames += unit->frames;
    }
    return d;
}

void lengths_drop(bm_dataset *d)
{
    free(d->units);
    free(d->lengths);
}

int32_t lengths_same(void *context, int64_t i)
{
    (void)i;
    return *(const int32_t *)context;
}

/* Many short ones, few long ones, some empty ones. */
static int32_t skewed(void *context, int64_t i)
{
    double u = bm_rng_uniform(context);

    (void)i;
    return (int32_t)(60 * u * u * u);
}

bm_dataset lengths_random(bm_rng *rng, size_t n_units, int32_t most)
{
    int32_t *counts = zeros(n_units, sizeof *counts);
    bm_dataset d;

    for (size_t u = 0; u < n_units; u++)
        counts[u] = (int32_t)bm_rng_below(rng, (uint64_t)most + 1);
    d = lengths_make(n_units, counts, skewed, rng);
    free(counts);
    return d;
}

bm_plan *plan_of(const bm_dataset *d, const bm_plan_settings *s, int workers,
                 uint64_t seed, int64_t epoch)
{
    bm_plan *p = NULL;

    assert_ok(bm_plan_new(&p, d, s, workers, seed, epoch));
    return p;
}

int64_t share_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int worker)
{
    const size_t *units = NULL;
    size_t n = bm_plan_units(p, block, worker, &units);
    int64_t sum = 0;

    for (size_t u = 0; u < n; u++)
        sum += d->units[units[u]].frames;
    return sum;
}

int64_t block_frames(const bm_plan *p, const bm_dataset *d, int64_t block,
                     int workers)
{
    int64_t sum = 0;

    for (int k = 0; k < workers; k++)
        sum += share_frames(p, d, block, k);
    return sum;
}
