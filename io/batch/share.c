/*
 * share.c - units are read in the order of the file, whatever the order of
 * sequences in mini-batches; a sequence is found by bisection.
 */
#include "io/batch/share.h"

#include <stdlib.h>

static bool reserve_units(bm_share *s, size_t n)
{
    size_t *units = NULL;
    bm_share_offsets *begin = NULL;

    if (s->units != NULL && s->begin != NULL && n <= s->units_capacity)
        return true;
    units = realloc(s->units, (n + 1) * sizeof *units);
    s->units = units != NULL ? units : s->units;
    begin = realloc(s->begin, (n + 1) * sizeof *begin);
    s->begin = begin != NULL ? begin : s->begin;
    if (units == NULL || begin == NULL)
        return false;
    s->units_capacity = n;
    return true;
}

static bool reserve_samples(bm_share *s, size_t n)
{
    bm_sample *samples = NULL;

    if (s->samples != NULL && n <= s->samples_capacity)
        return true;
    samples = realloc(s->samples, (n + 1) * sizeof *samples);
    if (samples == NULL)
        return false;
    s->samples = samples;
    s->samples_capacity = n;
    return true;
}

static int by_number(const void *a, const void *b)
{
    const size_t *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* The most frames that `frames` of some sequences can become. */
static size_t stretched(const bm_share *s, size_t frames, size_t sequences)
{
    return s->stretch > 1 ? (size_t)((double)frames * s->stretch) + sequences
                          : frames;
}

/* Sets where each unit begins. */
static void lay_out(bm_share *s, const bm_dataset *d)
{
    bm_share_offsets at = {0};

    for (size_t i = 0; i < s->n_units; i++) {
        const bm_unit_at *u = &d->units[s->units[i]];
        size_t sequences = (size_t)u->sequences, labels = (size_t)u->labels;

        s->begin[i] = at;
        at.sequences += sequences;
        at.frames += stretched(s, (size_t)u->frames, sequences);
        at.labels += s->per_frame ? stretched(s, labels, sequences) : labels;
    }
    s->begin[s->n_units] = at;
}

bm_status bm_share_plan(bm_share *s, const bm_dataset *d, const bm_plan *p,
                        int64_t block, int worker)
{
    const size_t *units = NULL;
    size_t n = bm_plan_units(p, block, worker, &units);
    bm_share_offsets end;

    BM_TRY(bm_plan_cut(p, block, worker, &s->cut));
    if (!reserve_units(s, n) || !reserve_samples(s, s->cut.n_sequences))
        return BM_FAIL(BM_ERR_MEMORY,
                       "no memory for a share of %zu sequences; make blocks "
                       "smaller",
                       s->cut.n_sequences);
    for (size_t i = 0; i < n; i++)
        s->units[i] = units[i];
    qsort(s->units, n, sizeof *s->units, by_number);
    s->n_units = n;
    lay_out(s, d);
    end = s->begin[n];
    return bm_sequences_reserve(&s->all, end.sequences, end.frames, end.labels,
                                d->features);
}

void bm_share_free(bm_share *s)
{
    bm_sequences_free(&s->all);
    bm_cut_free(&s->cut);
    free(s->units);
    free(s->begin);
    free(s->samples);
    *s = (bm_share){0};
}

/* The memory of a unit. */
static bm_sequences memory_of(const bm_share *s, size_t i)
{
    bm_share_offsets from = s->begin[i], to = s->begin[i + 1];
    size_t D = s->all.features;

    return (bm_sequences){.features = D,
                          .x = s->all.x + from.frames * D,
                          .frames = s->all.frames + from.sequences,
                          .targets = s->all.targets + from.labels,
                          .labels = s->all.labels + from.sequences,
                          .room_x = (to.frames - from.frames) * D,
                          .room_targets = to.labels - from.labels,
                          .room_n = to.sequences - from.sequences,
                          .packed = s->packed};
}

/* How the features of a unit are stored in it. */
static bm_stored packing(const bm_share *s, const bm_dataset *d, size_t i)
{
    bm_stored floats = {.bytes = sizeof(float)};

    return s->packed ? bm_shard_stored(d->shards[d->units[s->units[i]].shard])
                     : floats;
}

bm_status bm_share_read(bm_share *s, bm_dataset *d, size_t i)
{
    bm_sequences in = memory_of(s, i);
    bm_sample *out = s->samples + s->begin[i].sequences;
    bm_stored at = packing(s, d, i);
    const char *x = (const char *)in.x;
    const int32_t *targets = in.targets;

    BM_TRY(bm_dataset_read(d, s->units[i], &in));
    BM_ASSERT(in.n == s->begin[i + 1].sequences - s->begin[i].sequences);
    for (size_t k = 0; k < in.n; k++) {
        at.x = x;
        out[k] = (bm_sample){at, targets, in.frames[k], in.labels[k]};
        x += (size_t)in.frames[k] * in.features * at.bytes;
        targets += in.labels[k];
    }
    return BM_OK;
}

/*
 * Sequences are changed from the last to the first, and put at the end of the
 * unit's memory, so that those before them are still there if they grow.
 */
bm_status bm_share_augment(bm_share *s, const bm_dataset *d, size_t i,
                           const bm_changes *changes)
{
    bm_augmenter *a = changes->augmenter;
    bm_share_offsets from = s->begin[i], to = s->begin[i + 1];
    int64_t first = d->units[s->units[i]].first;
    float *x = s->all.x + to.frames * d->features;
    int32_t *targets = s->all.targets + to.labels;

    for (size_t k = to.sequences; k-- > from.sequences;) {
        bm_sample *p = &s->samples[k];
        int64_t sequence = first + (int64_t)(k - from.sequences);
        uint64_t key = bm_augment_key(changes->seed, changes->epoch, sequence);
        bm_augmented in = {p->x.x, (size_t)p->frames, p->targets,
                           (size_t)p->labels};
        size_t n = 0;

        if (p->frames == 0)
            continue;
        if (changes->sound != NULL)
            BM_TRY(bm_sound_augment(changes->sound, key, sequence, &in));
        n = bm_augment_frames(a, key, &in, &changes->fit);
        x -= n * d->features;
        if (s->per_frame)
            targets -= n;
        BM_TRY(bm_augment(a, key, &in, n, x, targets));
        p->x.x = x;
        p->frames = (int32_t)n;
        if (s->per_frame) {
            p->targets = targets;
            p->labels = (int32_t)n;
        }
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
    return s->samples + s->begin[from].sequences +
           (sequence - d->units[s->units[from]].first);
}
