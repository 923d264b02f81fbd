/*
 * share.c - units are read in the order in which they lie on disk, whatever the
 * order of the sequences in mini-batches, so that a sequence is found by
 * bisection.
 */
#include "io/share.h"

#include <stdlib.h>

static bool reserve_units(bm_share *s, size_t n)
{
    size_t *units = NULL, *first = NULL;
    bm_sequences *read = NULL;

    if (s->units != NULL && n <= s->room_units)
        return true;
    units = realloc(s->units, (n + 1) * sizeof *units);
    s->units = units != NULL ? units : s->units;
    first = realloc(s->first, (n + 1) * sizeof *first);
    s->first = first != NULL ? first : s->first;
    read = realloc(s->read, (n + 1) * sizeof *read);
    s->read = read != NULL ? read : s->read;
    if (units == NULL || first == NULL || read == NULL)
        return false;
    for (size_t i = s->room_units; i < n; i++)
        s->read[i] = (bm_sequences){0};
    s->room_units = n;
    return true;
}

static bool reserve_samples(bm_share *s, size_t n)
{
    bm_sample *samples = NULL;

    if (s->samples != NULL && n <= s->room_samples)
        return true;
    samples = realloc(s->samples, (n + 1) * sizeof *samples);
    if (samples == NULL)
        return false;
    s->samples = samples;
    s->room_samples = n;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const size_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

bm_status bm_share_plan(bm_share *s, const bm_dataset *d, const bm_plan *p,
                        int64_t block, int worker)
{
    const size_t *units = NULL;
    size_t n = bm_plan_units(p, block, worker, &units);

    BM_TRY(bm_plan_cut(p, block, worker, &s->cut));
    if (!reserve_units(s, n) || !reserve_samples(s, s->cut.n_sequences))
        return BM_FAIL(BM_ERR_MEMORY,
                       "no memory for a share of %zu sequences; smaller blocks "
                       "need less",
                       s->cut.n_sequences);
    for (size_t i = 0; i < n; i++)
        s->units[i] = units[i];
    qsort(s->units, n, sizeof *s->units, by_number);
    s->n_units = n;
    s->first[0] = 0;
    for (size_t i = 0; i < n; i++)
        s->first[i + 1] = s->first[i] + (size_t)d->units[s->units[i]].sequences;
    return BM_OK;
}

void bm_share_free(bm_share *s)
{
    for (size_t i = 0; i < s->room_units; i++)
        bm_sequences_free(&s->read[i]);
    bm_cut_free(&s->cut);
    free(s->units);
    free(s->first);
    free(s->read);
    free(s->samples);
    *s = (bm_share){0};
}

bm_status bm_share_read(bm_share *s, bm_dataset *d, size_t i)
{
    bm_sequences *in = &s->read[i];
    bm_sample *out = s->samples + s->first[i];
    const float *x = NULL;
    const int32_t *targets = NULL;

    BM_TRY(bm_dataset_read(d, s->units[i], in));
    BM_ASSERT(in->n == s->first[i + 1] - s->first[i]);
    x = in->x;
    targets = in->targets;
    for (size_t k = 0; k < in->n; k++) {
        out[k] = (bm_sample){x, targets, in->frames[k], in->labels[k]};
        x += (size_t)in->frames[k] * in->features;
        targets += in->labels[k];
    }
    return BM_OK;
}

const bm_sample *bm_share_sample(const bm_share *s, const bm_dataset *d,
                                 int64_t sequence)
{
    size_t from = 0, to = s->n_units;

    while (to - from > 1) {
        size_t middle = from + (to - from) / 2;
        if (d->units[s->units[middle]].first <= sequence)
            from = middle;
        else
            to = middle;
    }
    return s->samples + s->first[from] +
           (sequence - d->units[s->units[from]].first);
}
