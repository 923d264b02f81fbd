/*
 * shard.c - sequences in memory, and digests of a shard's tables, for reading
 * and writing.
 */
#include "io/shard/shard.h"

#include "io/shard/shard_parts.h"
#include "io/shard/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bm_status make_room(void **at, size_t *room, size_t n, size_t size)
{
    void *grown = NULL;

    if (n <= *room && *at != NULL)
        return BM_OK;
    n = n > *room + *room / 2 ? n : *room + *room / 2; /* grow by half */
    grown = n < PTRDIFF_MAX / size ? realloc(*at, (n + 1) * size) : NULL;
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu times %zu bytes", n,
                       size);
    *at = grown;
    *room = n;
    return BM_OK;
}

bm_status bm_sequences_reserve(bm_sequences *s, size_t n, size_t frames,
                               size_t labels, size_t features)
{
    void *x = s->x, *targets = s->targets, *of_frames = s->frames;
    void *of_labels = s->labels;
    size_t room = s->room_n;
    bm_status status = BM_OK;

    if (features > 0 && frames > PTRDIFF_MAX / sizeof(float) / features)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames of %zu", frames,
                       features);
    BM_TRY_DONE(make_room(&x, &s->room_x, frames * features, sizeof *s->x));
    BM_TRY_DONE(
        make_room(&targets, &s->room_targets, labels, sizeof *s->targets));
    BM_TRY_DONE(make_room(&of_frames, &room, n, sizeof *s->frames));
    BM_TRY_DONE(make_room(&of_labels, &s->room_n, n, sizeof *s->labels));
    s->features = features;
done:
    s->x = x;
    s->targets = targets;
    s->frames = of_frames;
    s->labels = of_labels;
    return status;
}

void bm_sequences_free(bm_sequences *s)
{
    free(s->x);
    free(s->frames);
    free(s->targets);
    free(s->labels);
    *s = (bm_sequences){0};
}

bm_status bm_waveform_shape(bm_waveform *w, size_t n)
{
    void *x = w->x;
    bm_status status = make_room(&x, &w->room, n, sizeof *w->x);

    w->x = x;
    w->n = status == BM_OK ? n : 0;
    return status;
}

bm_status bm_waveform_set_moments(bm_waveform *w, const double *moments,
                                  size_t n)
{
    double *grown = w->moments;

    if (n != w->n_moments) {
        grown = realloc(w->moments, n * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu moments", n);
    }
    w->moments = grown;
    w->n_moments = n;
    if (moments != NULL)
        memcpy(grown, moments, n * sizeof *grown);
    return BM_OK;
}

void bm_waveform_move(bm_waveform *to, bm_waveform *from)
{
    bm_waveform_free(to);
    *to = *from;
    *from = (bm_waveform){0};
}

void bm_waveform_free(bm_waveform *w)
{
    free(w->x);
    free(w->moments);
    *w = (bm_waveform){0};
}

static void spell(XXH128_hash_t hash, char out[BM_DIGEST_LENGTH + 1])
{
    snprintf(out, BM_DIGEST_LENGTH + 1, "%016llx%016llx",
             (unsigned long long)hash.high64, (unsigned long long)hash.low64);
}

void bm_digest(const void *data, size_t size, char out[BM_DIGEST_LENGTH + 1])
{
    spell(XXH3_128bits(data, size), out);
}

bm_status bm_shard_digest(const bm_shard_tables *t,
                          char out[BM_DIGEST_LENGTH + 1])
{
    XXH3_state_t *state = XXH3_createState();

    if (state == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a hash");
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, t->lengths, 2 * t->n * sizeof *t->lengths);
    XXH3_128bits_update(state, t->unit,
                        BM_UNIT_COLUMNS * t->units * sizeof *t->unit);
    XXH3_128bits_update(state, t->crc, 2 * t->units * sizeof *t->crc);
    if (t->store == BM_STORE_U8) {
        XXH3_128bits_update(state, t->scale, t->features * sizeof *t->scale);
        XXH3_128bits_update(state, t->offset, t->features * sizeof *t->offset);
    }
    spell(XXH3_128bits_digest(state), out);
    XXH3_freeState(state);
    return BM_OK;
}

bm_status bm_sample_digest(const bm_sample_tables *t, size_t n,
                           char out[BM_DIGEST_LENGTH + 1])
{
    XXH3_state_t *state = XXH3_createState();

    if (state == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a hash");
    XXH3_128bits_reset(state);
    XXH3_128bits_update(state, &t->rate, sizeof t->rate);
    XXH3_128bits_update(state, t->offset, (n + 1) * sizeof *t->offset);
    XXH3_128bits_update(state, t->crc, n * sizeof *t->crc);
    if (t->moments > 0)
        XXH3_128bits_update(state, t->moments_crc, n * sizeof *t->moments_crc);
    spell(XXH3_128bits_digest(state), out);
    XXH3_freeState(state);
    return BM_OK;
}

void bm_shard_tables_free(bm_shard_tables *t)
{
    free(t->lengths);
    free(t->unit);
    free(t->crc);
    free(t->scale);
    free(t->offset);
    *t = (bm_shard_tables){0};
}
