/*
 * plan_cut.c - cuts a share into mini-batches. Sequences are shuffled, sorted
 * by length in windows so that sequences of similar length are together, and
 * cut; then, in random order, the mini-batches are shuffled. Laplace order is
 * RETURNN's, except that mini-batches with a size in frames end where lengths
 * jump.
 */
#include "io/batch/plan_parts.h"

#include "core/rng.h"

#include <math.h>
#include <stdlib.h>

/* A mini-batch costs its frames, padding included, and 1 / CALL of the limit.
 * FINE: so far back every sequence is tried as a start. */
enum { CALL = 48, FINE = 64 };

/* A sequence of a share. */
typedef struct item {
    int64_t sequence;
    size_t place; /* before windows are sorted */
    int32_t frames;
} item;

static int by_place(const item *x, const item *y)
{
    return (x->place > y->place) - (x->place < y->place);
}

static int rising(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (x->frames != y->frames)
        return x->frames < y->frames ? -1 : 1;
    return by_place(x, y);
}

static int falling(const void *a, const void *b)
{
    const item *x = a, *y = b;

    if (x->frames != y->frames)
        return x->frames > y->frames ? -1 : 1;
    return by_place(x, y);
}

static size_t count_sequences(const bm_plan *p, int64_t block, int worker)
{
    const size_t *units = NULL;
    size_t n_units = bm_plan_units(p, block, worker, &units), n = 0;

    for (size_t u = 0; u < n_units; u++)
        n += (size_t)p->d->units[units[u]].sequences;
    return n;
}

/* Lists all sequences of a share, in the order of its units or shuffled. */
static void list(const bm_plan *p, int64_t block, int worker, bm_rng *rng,
                 item *items)
{
    const size_t *units = NULL;
    size_t n_units = bm_plan_units(p, block, worker, &units), n = 0;

    for (size_t u = 0; u < n_units; u++) {
        const bm_unit_at *unit = &p->d->units[units[u]];
        for (int32_t i = 0; i < unit->sequences; i++, n++) {
            items[n].sequence = unit->first + i;
            items[n].frames = p->d->lengths[2 * items[n].sequence];
        }
    }
    for (size_t i = n; bm_order_is_shuffled(p->set.order) && i > 1; i--) {
        size_t j = (size_t)bm_rng_below(rng, i);
        item kept = items[i - 1];
        items[i - 1] = items[j];
        items[j] = kept;
    }
    for (size_t i = 0; i < n; i++)
        items[i].place = i;
}

/* The number of the next n sequences that are sorted together. */
static size_t window(const bm_plan *p, const item *items, size_t n)
{
    const bm_plan_settings *s = &p->set;
    int64_t left = (int64_t)s->buckets * (s->sequences + s->frames);
    size_t i = 0;

    if (p->set.order == BM_ORDER_SORTED)
        return n;
    for (; i < n && left > 0; i++)
        left -= s->frames > 0 ? items[i].frames : 1;
    return i;
}

/* Windows are sorted up and down in turn, so that a mini-batch across two of
 * them has similar lengths on both sides; in Laplace order, where a share may be
 * one window, the first ones of blocks likewise. */
static void sort_windows(const bm_plan *p, int64_t block, item *items, size_t n)
{
    bool up = p->set.order != BM_ORDER_LAPLACE || block % 2 == 0;

    if (p->set.order == BM_ORDER_FILE)
        return;
    for (size_t i = 0, size; i < n; i += size, up = !up) {
        size = window(p, items + i, n - i);
        qsort(items + i, size, sizeof *items, up ? rising : falling);
    }
}

/* Mini-batches of `size` sequences. */
static size_t cut_by_number(size_t size, size_t n, size_t *starts)
{
    size_t n_batches = 0;

    for (size_t i = 0; i < n; i += size)
        starts[n_batches++] = i;
    starts[n_batches] = n;
    return n_batches;
}

/* The cheapest way to cut all sequences before a place. */
typedef struct way {
    int64_t cost;
    size_t last; /* first sequence of its last mini-batch */
    size_t run;  /* first of the run of equal lengths that ends at the place */
} way;

/*
 * Tries all starts of the last mini-batch before `end` for which it fits into
 * s->frames. More than FINE sequences back, only the first of a run of equal
 * lengths and the first that fits are tried: many short sequences have few
 * different lengths.
 */
static void cut_before(const bm_plan_settings *s, const item *items, way *ways,
                       size_t end)
{
    way *w = &ways[end];
    int64_t longest = 0;

    w->cost = INT64_MAX;
    w->run = end > 1 && items[end - 2].frames == items[end - 1].frames
                 ? ways[end - 1].run
                 : end - 1;
    for (size_t i = end, most = end; i > 0;) {
        size_t next = end - i < FINE ? i - 1 : ways[i].run;
        int64_t cost = 0;

        if (longest < items[i - 1].frames)
            longest = items[i - 1].frames;
        if (longest > 0)
            most = longest < s->frames ? (size_t)(s->frames / longest) : 1;
        if (end - i >= most)
            return;
        i = end - next > most ? end - most : next;
        cost = ways[i].cost + s->frames + CALL * longest * (int64_t)(end - i);
        if (cost < w->cost) {
            w->cost = cost;
            w->last = i;
        }
    }
}

/* Minimises the sum of all frames, padding included, and 1 / CALL of s->frames
 * for each mini-batch. */
static size_t cut_by_frames(const bm_plan_settings *s, const item *items,
                            size_t n, way *ways, size_t *starts)
{
    size_t n_batches = 0;

    ways[0] = (way){0};
    for (size_t end = 1; end <= n; end++)
        cut_before(s, items, ways, end);
    for (size_t at = n; at > 0; at = ways[at].last)
        n_batches++;
    starts[n_batches] = n;
    for (size_t at = n, b = n_batches; b-- > 0;)
        starts[b] = at = ways[at].last;
    return n_batches;
}

bm_status bm_plan_count(const bm_plan_settings *s, const int32_t *lengths,
                        size_t n, size_t *batches)
{
    item *items = malloc((n + 1) * sizeof *items);
    size_t *starts = malloc((n + 1) * sizeof *starts);
    way *ways = malloc((n + 1) * sizeof *ways);
    bm_status status = BM_OK;

    if (!items || !starts || !ways)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu sequences", n);
    for (size_t i = 0; i < n; i++)
        items[i] = (item){0, i, lengths[i]};
    qsort(items, n, sizeof *items, rising);
    *batches = cut_by_frames(s, items, n, ways, starts);
done:
    free(items);
    free(starts);
    free(ways);
    return status;
}

/* Returns false without memory. */
static bool reserve(bm_cut *cut, size_t n, size_t n_batches)
{
    if (cut->sequences == NULL || cut->sequences_capacity < n) {
        int64_t *x = realloc(cut->sequences, (n + 1) * sizeof *x);
        if (x == NULL)
            return false;
        cut->sequences = x;
        cut->sequences_capacity = n;
    }
    if (cut->ends == NULL || cut->ends_capacity < n_batches) {
        size_t *x = realloc(cut->ends, (n_batches + 1) * sizeof *x);
        if (x == NULL)
            return false;
        cut->ends = x;
        cut->ends_capacity = n_batches;
    }
    return true;
}

/* Writes the mini-batches in the order `which`. */
static void write_out(const item *items, const size_t *starts,
                      const size_t *which, size_t n_batches, bm_cut *cut)
{
    cut->n_sequences = 0;
    cut->n_batches = n_batches;
    for (size_t b = 0; b < n_batches; b++) {
        for (size_t i = starts[which[b]]; i < starts[which[b] + 1]; i++)
            cut->sequences[cut->n_sequences++] = items[i].sequence;
        cut->ends[b] = cut->n_sequences;
    }
}

bm_status bm_plan_cut(const bm_plan *p, int64_t block, int worker, bm_cut *cut)
{
    bm_rng rng = {
        bm_rng_fork(bm_rng_fork(p->key, (uint64_t)block), (uint64_t)worker), 0};
    size_t n = count_sequences(p, block, worker), n_batches = 0;
    item *items = calloc(n + 1, sizeof *items);
    size_t *starts = malloc((n + 1) * sizeof *starts);
    way *ways = p->set.frames > 0 ? malloc((n + 1) * sizeof *ways) : NULL;
    size_t *which = malloc((n + 1) * sizeof *which);
    bm_status status = BM_OK;

    if (!items || !starts || !which || (p->set.frames > 0 && !ways))
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a share of %zu sequences",
                     n);
    list(p, block, worker, &rng, items);
    sort_windows(p, block, items, n);
    n_batches = ways != NULL
                    ? cut_by_frames(&p->set, items, n, ways, starts)
                    : cut_by_number((size_t)p->set.sequences, n, starts);
    for (size_t b = 0; b < n_batches; b++)
        which[b] = b;
    if (p->set.order == BM_ORDER_RANDOM)
        bm_rng_shuffle(&rng, which, n_batches);
    if (!reserve(cut, n, n_batches))
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu mini-batches",
                     n_batches);
    write_out(items, starts, which, n_batches, cut);
done:
    free(items);
    free(ways);
    free(starts);
    free(which);
    return status;
}

void bm_cut_free(bm_cut *cut)
{
    free(cut->sequences);
    free(cut->ends);
    *cut = (bm_cut){0};
}

bm_status bm_plan_steps(const bm_plan *p, int64_t block, int64_t *steps)
{
    bm_status status = BM_OK;
    bm_cut cut = {0};
    int64_t most = 0;

    for (int k = 0; block < p->blocks && k < p->workers; k++) {
        BM_TRY_DONE(bm_plan_cut(p, block, k, &cut));
        if (most < (int64_t)cut.n_batches)
            most = (int64_t)cut.n_batches;
    }
    *steps = most;
done:
    bm_cut_free(&cut);
    return status;
}

static void add_share(const bm_plan *p, const bm_cut *cut, bm_filling *sum)
{
    for (size_t b = 0, i = 0; b < cut->n_batches; b++) {
        size_t first = i;
        double longest = 0;

        for (; i < cut->ends[b]; i++) {
            double frames = p->d->lengths[2 * cut->sequences[i]];

            sum->frames += frames;
            longest = fmax(longest, frames);
        }
        sum->padded += longest * (double)(i - first);
    }
    sum->batches += (double)cut->n_batches;
}

bm_status bm_plan_fill(const bm_plan *p, int64_t block, bm_filling *sum)
{
    bm_status status = BM_OK;
    bm_cut cut = {0};

    for (int k = 0; k < p->workers; k++) {
        BM_TRY_DONE(bm_plan_cut(p, block, k, &cut));
        add_share(p, &cut, sum);
    }
done:
    bm_cut_free(&cut);
    return status;
}
