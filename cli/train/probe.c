#include "cli/train/probe.h"

#include "core/text/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the largest mini-batch ----------------------------------------------- */

/* A sequence of a set. */
typedef struct item {
    int32_t frames, labels;
    int64_t sequence;
} item;

static int longest_first(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (x->frames != y->frames)
        return x->frames > y->frames ? -1 : 1;
    if (x->labels != y->labels)
        return x->labels > y->labels ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Sequences of a mini-batch in which the longest one has `frames` frames. */
static size_t fit(const bm_plan_settings *s, int32_t frames)
{
    if (s->frames == 0)
        return (size_t)s->sequences;
    return frames > 0 && s->frames > frames ? (size_t)(s->frames / frames) : 1;
}

static int32_t stretched(const item *x, double stretch)
{
    return (int32_t)fmin(ceil(x->frames * stretch), INT32_MAX);
}

/* The first of the sequences that make the largest mini-batch, padding
 * included; *B <- how many. */
static size_t find(const bm_plan_settings *s, const item *items, size_t n,
                   double stretch, size_t *B)
{
    size_t best = 0, first = 0;

    *B = 0;
    for (size_t i = 0; i < n; i++) {
        size_t many = fit(s, items[i].frames);
        size_t frames = 0;

        many = many < n - i ? many : n - i;
        frames = many * (size_t)stretched(&items[i], stretch);
        if (frames > best) {
            best = frames;
            first = i;
            *B = many;
        }
    }
    return first;
}

static void describe(bm_probe *p, const bm_plan_settings *s, const char *name,
                     const char *tag)
{
    char remedy[120];

    if (s->frames > 0 && p->B > 1)
        snprintf(remedy, sizeof remedy, "set a batch.frames of less than %zu",
                 p->B * (size_t)p->frames[0]);
    else if (p->B > 1)
        snprintf(remedy, sizeof remedy,
                 "set a batch.sequences of less than %zu, or batch.frames",
                 p->B);
    else
        snprintf(remedy, sizeof remedy,
                 "cut or leave out sequences this long, or make model.net "
                 "smaller");
    snprintf(p->about, sizeof p->about,
             "the largest mini-batch of %s, %s of up to %d frames (the longest "
             "is '%.100s'); %s",
             name, bm_count_noun((long long)p->B, "sequence").text,
             (int)p->frames[0], tag, remedy);
}

static bm_status take(bm_probe *p, const item *items, size_t B, double stretch)
{
    int32_t *frames = malloc((B + 1) * sizeof *frames);
    int32_t *labels = malloc((B + 1) * sizeof *labels);

    free(p->frames);
    free(p->labels);
    p->frames = frames;
    p->labels = labels;
    p->B = 0;
    if (frames == NULL || labels == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu sequences", B);
    p->B = B;
    for (size_t b = 0; b < B; b++) {
        frames[b] = stretched(&items[b], stretch);
        labels[b] = items[b].labels;
    }
    return BM_OK;
}

bm_status bm_probe_choose(bm_probe *p, const bm_plan_settings *plan,
                          bm_dataset *d, double stretch, const char *name)
{
    bm_plan_settings sized = bm_plan_sized(plan, d);
    item *items = malloc((d->n + 1) * sizeof *items);
    size_t first = 0, B = 0;
    const char *tag = NULL;
    bm_status status = BM_OK;

    if (items == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu sequences", d->n);
    for (size_t i = 0; i < d->n; i++)
        items[i] = (item){d->lengths[2 * i], d->lengths[2 * i + 1], (int64_t)i};
    qsort(items, d->n, sizeof *items, longest_first);
    first = find(&sized, items, d->n, stretch, &B);
    if (B == 0 || (p->B > 0 && B * (size_t)stretched(&items[first], stretch) <=
                                   p->B * (size_t)p->frames[0]))
        goto done;
    BM_TRY_DONE(bm_dataset_tag(d, items[first].sequence, &tag));
    BM_TRY_DONE(take(p, items + first, B, stretch));
    p->features = d->features;
    p->classes = d->classes;
    describe(p, &sized, name, tag);
done:
    free(items);
    return status;
}

/* ---- its gradient --------------------------------------------------------- */

/* Labels without neighbours that are equal, where there are two of them. */
static void fill_targets(const bm_probe *p, bool per_frame, int32_t *classes,
                         int32_t *count)
{
    size_t at = 0;

    for (size_t b = 0; b < p->B; b++) {
        count[b] = per_frame ? p->frames[b] : p->labels[b];
        for (int32_t i = 0; i < count[b]; i++)
            classes[at++] =
                p->classes > 1 ? 1 + i % (int32_t)(p->classes - 1) : 0;
    }
}

static size_t labels_of(const bm_probe *p, bool per_frame)
{
    size_t n = 0;

    for (size_t b = 0; b < p->B; b++)
        n += (size_t)(per_frame ? p->frames[b] : p->labels[b]);
    return n;
}

static bm_status compute(bm_model *model, const bm_batch *batch)
{
    bm_backend *be = bm_model_params(model)->be;
    size_t n = bm_count(batch->x);

    bm_axpby(be, n, 0, batch->x.data, 0, batch->x.data);
    BM_TRY(bm_model_probe(model, batch));
    return bm_sync(be);
}

/* What augmentation would make too long for the model keeps its length
 * (bm_infeasible_fit). */
static void shorten(bm_probe *p, const bm_model *model)
{
    for (size_t b = 0; b < p->B; b++)
        while (p->frames[b] > 1 && !bm_model_takes(model, (size_t)p->frames[b]))
            p->frames[b]--;
}

bm_status bm_probe_run(bm_probe *p, bm_model *model)
{
    bool per_frame = bm_model_loss(model)->per_frame;
    bm_backend *be = bm_model_params(model)->be;
    int32_t *classes = NULL, *count = NULL;
    size_t T = 0;
    float *x = NULL;
    bm_batch batch = {0};
    bm_status status = BM_OK;

    shorten(p, model);
    T = p->B > 0 ? (size_t)p->frames[0] : 0;
    if (T == 0)
        return BM_OK;
    classes = malloc((labels_of(p, per_frame) + 1) * sizeof *classes);
    count = malloc(p->B * sizeof *count);
    if (classes == NULL || count == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %s", p->about);
    fill_targets(p, per_frame, classes, count);
    status = bm_alloc(be, T * p->B * p->features, &x);
    if (status == BM_OK) {
        batch = (bm_batch){.extent = {T, p->B, p->frames},
                           .x = {x, 3, {T, p->B, p->features, 1}},
                           .targets = {classes, count}};
        status = compute(model, &batch);
    }
    if (status == BM_ERR_MEMORY) {
        char why[256];

        snprintf(why, sizeof why, "%s", bm_last_message());
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %s (%s)", p->about, why);
    }
done:
    bm_free(be, x);
    free(classes);
    free(count);
    return status;
}

void bm_probe_free(bm_probe *p)
{
    free(p->frames);
    free(p->labels);
    *p = (bm_probe){0};
}
