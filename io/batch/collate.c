/*
 * collate.c - copies sequences into [T, B, D], padded with zeros.
 */
#include "io/batch/collate.h"

#include <stdlib.h>

/* The size of a mini-batch. */
typedef struct extent {
    size_t T, B, classes;
} extent;

static extent measure(const bm_collator *c, const bm_share *share,
                      const int64_t *sequences, size_t n)
{
    extent e = {0, n, 0};

    for (size_t b = 0; b < n; b++) {
        const bm_sample *s = bm_share_sample(share, c->d, sequences[b]);

        if (e.T < (size_t)s->frames)
            e.T = (size_t)s->frames;
        e.classes += (size_t)s->labels;
    }
    e.T = bm_stage_frames(c->be, e.T);
    return e;
}

static bm_status reserve(bm_collator *c, extent e)
{
    if (c->stage == NULL)
        BM_TRY(bm_stage_open(&c->stage, c->be));
    if (c->id == NULL || e.B > c->sequences_capacity) {
        free(c->frames);
        free(c->count);
        free(c->id);
        free(c->packed);
        c->packed = malloc((e.B + 1) * sizeof *c->packed);
        c->frames = malloc((e.B + 1) * sizeof *c->frames);
        c->count = malloc((e.B + 1) * sizeof *c->count);
        c->id = malloc((e.B + 1) * sizeof *c->id);
        c->sequences_capacity = e.B;
    }
    if (c->classes == NULL || e.classes > c->classes_capacity) {
        free(c->classes);
        c->classes = malloc((e.classes + 1) * sizeof *c->classes);
        c->classes_capacity = e.classes;
    }
    if (c->frames == NULL || c->count == NULL || c->id == NULL ||
        c->packed == NULL || c->classes == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu sequences", e.B);
    return BM_OK;
}

static void note(bm_collator *c, const bm_share *share,
                 const int64_t *sequences, extent e)
{
    int32_t *classes = c->classes;

    for (size_t b = 0; b < e.B; b++) {
        const bm_sample *s = bm_share_sample(share, c->d, sequences[b]);

        c->packed[b] = s->x;
        c->frames[b] = s->frames;
        c->count[b] = s->labels;
        c->id[b] = sequences[b];
        for (int32_t i = 0; i < s->labels; i++)
            *classes++ = s->targets[i];
    }
}

bm_status bm_collate(bm_collator *c, const bm_share *share, int64_t step,
                     const bm_batch **out)
{
    const bm_cut *cut = &share->cut;
    const int64_t *sequences = NULL;
    size_t from = 0;
    float *x = NULL;
    extent e;

    if (step >= (int64_t)cut->n_batches) {
        *out = NULL;
        return BM_OK;
    }
    from = step > 0 ? cut->ends[step - 1] : 0;
    sequences = cut->sequences + from;
    e = measure(c, share, sequences, cut->ends[step] - from);
    BM_TRY(reserve(c, e));
    note(c, share, sequences, e);
    BM_TRY(bm_stage_send(c->stage, (bm_extent){e.T, e.B, c->frames},
                         c->d->features, c->packed, &x));
    c->batch = (bm_batch){
        .extent = {e.T, e.B, c->frames},
        .x = {x, 3, {e.T, e.B, c->d->features, 1}},
        .targets = {c->classes, c->count},
        .id = c->id,
    };
    *out = &c->batch;
    return BM_OK;
}

void bm_collator_free(bm_collator *c)
{
    bm_stage_close(c->stage);
    free(c->frames);
    free(c->count);
    free(c->id);
    free(c->packed);
    free(c->classes);
    *c = (bm_collator){0};
}
