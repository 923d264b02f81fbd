/*
 * plan.c - puts units in the epoch's order, cuts them into blocks of equal
 * frames, and deals the units of a block to workers: the largest unit first,
 * always to the worker with the fewest frames, so that shares differ by less
 * than a unit.
 */
#include "io/batch/plan_parts.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A unit while it is sorted or dealt. */
typedef struct item {
    size_t unit;
    size_t place;  /* in the epoch's order */
    double length; /* mean frames of its sequences, or all its frames */
} item;

/* What a worker has received of a block so far. */
typedef struct load {
    double frames;
    int32_t worker;
} load;

/* Scratch memory. */
typedef struct scratch {
    item *items;   /* [units] */
    load *loads;   /* [workers] */
    size_t *begin; /* [workers + 1] */
} scratch;

static int compare(double a, double b)
{
    return (a > b) - (a < b);
}

static int compare_places(size_t a, size_t b)
{
    return (a > b) - (a < b);
}

static int by_length(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int difference = compare(x->length, y->length);

    return difference != 0 ? difference : compare_places(x->place, y->place);
}

static int by_length_falling(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int difference = compare(y->length, x->length);

    return difference != 0 ? difference : compare_places(x->place, y->place);
}

static int64_t frames_of(const bm_plan *p, size_t place)
{
    return p->d->units[p->units[place]].frames;
}

/* ---- blocks ------------------------------------------------------------ */

static void put_in_order(bm_plan *p, item *items)
{
    bm_rng rng = {p->key, 0};

    for (size_t i = 0; i < p->d->n_units; i++)
        if (p->d->units[i].sequences > 0)
            p->units[p->n++] = i;
    if (bm_order_is_shuffled(p->set.order))
        bm_rng_shuffle(&rng, p->units, p->n);
    if (p->set.order != BM_ORDER_SORTED)
        return;
    for (size_t i = 0; i < p->n; i++) {
        const bm_unit_at *u = &p->d->units[p->units[i]];
        items[i] =
            (item){p->units[i], i, (double)u->frames / (double)u->sequences};
    }
    qsort(items, p->n, sizeof *items, by_length);
    for (size_t i = 0; i < p->n; i++)
        p->units[i] = items[i].unit;
}

/* The number of blocks that makes their size nearest to the one set, but at
 * most the number of units. */
static bm_status count_blocks(bm_plan *p)
{
    double size = 0, blocks = 1;

    BM_TRY(bm_plan_block_frames(&p->set, p->d, p->active, &size));
    if (size > 0)
        blocks = round((double)p->d->frames / size);
    p->blocks = (int64_t)fmin(fmax(blocks, 1), (double)p->n);
    return BM_OK;
}

/* Block b ends after the last unit whose middle is before b / blocks of all
 * frames. Each block has at least one unit. */
static void find_blocks(bm_plan *p)
{
    size_t at = 0;
    double frames = 0;

    for (int64_t b = 1; b < p->blocks; b++) {
        double end = (double)p->d->frames * ((double)b / (double)p->blocks);
        size_t least = p->start[b - 1] + 1;
        size_t most = p->n - (size_t)(p->blocks - b);

        while (at < most) {
            double unit = (double)frames_of(p, at);
            if (at >= least && frames + unit / 2 > end)
                break;
            frames += unit;
            at++;
        }
        p->start[b] = at;
    }
    p->start[p->blocks] = p->n;
}

/* ---- shares ------------------------------------------------------------ */

static bool before(const load *a, const load *b)
{
    return a->frames < b->frames ||
           (a->frames == b->frames && a->worker < b->worker);
}

/* Restores the heap, smallest load on top, after the top has changed. */
static void sift(load *loads, size_t n)
{
    size_t i = 0, least = 0;

    for (;; i = least) {
        load kept = loads[i];

        for (size_t k = 2 * i + 1; k <= 2 * i + 2 && k < n; k++)
            if (before(&loads[k], &loads[least]))
                least = k;
        if (least == i)
            return;
        loads[i] = loads[least];
        loads[least] = kept;
    }
}

/* Sorts the units of a block by owner, in the epoch's order for each owner. */
static void sort_by_owner(const bm_plan *p, size_t *units, int32_t *owner,
                          size_t n, scratch *t)
{
    memset(t->begin, 0, ((size_t)p->workers + 1) * sizeof *t->begin);
    for (size_t i = 0; i < n; i++)
        t->begin[owner[i] + 1]++;
    for (int k = 0; k < p->workers; k++)
        t->begin[k + 1] += t->begin[k];
    for (size_t i = 0; i < n; i++)
        t->items[t->begin[owner[i]]++].unit = units[i];
    for (size_t i = 0, k = 0; i < n; i++) { /* begin[k] is now k's end */
        while (i == t->begin[k])
            k++;
        units[i] = t->items[i].unit;
        owner[i] = (int32_t)k;
    }
}

/* The i-th worker that has a share: every so many, so that ranks have equally
 * many. */
static int32_t active_worker(const bm_plan *p, int i)
{
    return (int32_t)((int64_t)i * p->workers / p->active);
}

static void deal(bm_plan *p, int64_t block, scratch *t)
{
    size_t first = p->start[block], n = p->start[block + 1] - first;
    int32_t *owner = p->owner + first;

    for (int i = 0; i < p->active; i++)
        t->loads[i] = (load){0, active_worker(p, i)};
    for (size_t i = 0; i < n; i++)
        t->items[i] =
            (item){p->units[first + i], i, (double)frames_of(p, first + i)};
    qsort(t->items, n, sizeof *t->items, by_length_falling);
    for (size_t i = 0; i < n; i++) {
        owner[t->items[i].place] = t->loads[0].worker;
        t->loads[0].frames += t->items[i].length;
        sift(t->loads, (size_t)p->active);
    }
    sort_by_owner(p, p->units + first, owner, n, t);
}

/* ---- the plan ---------------------------------------------------------- */

static bm_status lay_out(bm_plan *p, scratch *t)
{
    put_in_order(p, t->items);
    BM_TRY(count_blocks(p));
    p->start = calloc((size_t)p->blocks + 1, sizeof *p->start);
    if (p->start == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to plan %lld blocks",
                       (long long)p->blocks);
    find_blocks(p);
    for (int64_t b = 0; b < p->blocks; b++)
        deal(p, b, t);
    return BM_OK;
}

bm_status bm_plan_new(bm_plan **out, const bm_dataset *d,
                      const bm_plan_settings *s, int workers, uint64_t seed,
                      int64_t epoch)
{
    bm_plan *p = calloc(1, sizeof *p);
    size_t capacity = d->n_units + 1;
    scratch t = {malloc(capacity * sizeof *t.items),
                 malloc((size_t)workers * sizeof *t.loads),
                 malloc(((size_t)workers + 1) * sizeof *t.begin)};
    bm_status status = BM_OK;

    BM_ASSERT(workers > 0 && (s->sequences == 0 || s->frames == 0));
    if (!p || !t.items || !t.loads || !t.begin)
        BM_FAIL_DONE(BM_ERR_MEMORY,
                     "no memory to plan %zu units for %d workers", d->n_units,
                     workers);
    p->d = d;
    p->set = bm_plan_in_epoch(s, epoch);
    p->set = bm_plan_sized(&p->set, d);
    p->workers = p->active = workers;
    if (p->set.active > 0 && p->set.active < workers)
        p->active = (int)p->set.active;
    p->key = bm_rng_make(seed, "plan", (uint64_t)epoch).key;
    p->units = malloc(capacity * sizeof *p->units);
    p->owner = malloc(capacity * sizeof *p->owner);
    if (p->units == NULL || p->owner == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a plan of %zu units",
                     d->n_units);
    BM_TRY_DONE(lay_out(p, &t));
    *out = p;
    p = NULL;
done:
    bm_plan_free(p);
    free(t.items);
    free(t.loads);
    free(t.begin);
    return status;
}

void bm_plan_free(bm_plan *p)
{
    if (p == NULL)
        return;
    free(p->units);
    free(p->owner);
    free(p->start);
    free(p);
}

int64_t bm_plan_blocks(const bm_plan *p)
{
    return p->blocks;
}

/* The first unit of a block that belongs to this or a later worker. */
static size_t find(const bm_plan *p, int64_t block, int worker)
{
    size_t from = p->start[block], to = p->start[block + 1];

    while (from < to) {
        size_t middle = from + (to - from) / 2;
        if (p->owner[middle] < worker)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

size_t bm_plan_units(const bm_plan *p, int64_t block, int worker,
                     const size_t **units)
{
    size_t first = 0;

    BM_ASSERT(block >= 0 && block < p->blocks);
    first = find(p, block, worker);
    *units = p->units + first;
    return find(p, block, worker + 1) - first;
}

double bm_plan_balance(const bm_plan *p, int64_t block)
{
    double all = 0, share = 0, largest = 0;

    BM_ASSERT(block >= 0 && block < p->blocks);
    for (size_t i = p->start[block]; i < p->start[block + 1]; i++) {
        double frames = (double)frames_of(p, i);

        if (i == p->start[block] || p->owner[i] != p->owner[i - 1])
            share = 0;
        share += frames;
        all += frames;
        largest = fmax(largest, share);
    }
    return largest > 0 ? all / p->active / largest : 1;
}
