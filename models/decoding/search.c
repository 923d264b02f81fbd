/*
 * search.c - the beam search. A frame has at most `beam` hypotheses. Each stays as
 * it is (a blank, or its last label again), and is extended by the most probable
 * labels. A heap keeps the best of the new hypotheses.
 *
 * A prefix is reached in two ways only: from itself and from its parent. Whatever
 * a parent in the beam adds to a child in the beam is added first; every other
 * extension is a new hypothesis by itself. No table of prefixes is needed.
 */
#include "models/decoding/search.h"

#include "models/decoding/search_parts.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_ROOM = 1024, SWEEP = 1 << 12 };

/* A label that extends hypotheses in this frame. */
typedef struct symbol {
    double log_p;
    int32_t label;
} symbol;

/* A hypothesis of the next frame. label 0: the one in slot `from` stays. */
typedef struct candidate {
    double score, blank, label_sum;
    uint32_t from, way;
    int32_t label;
    uint32_t state; /* number of its state of the language */
} candidate;

struct bm_frame_parts {
    symbol *symbols;  /* [classes] */
    candidate *heap;  /* [beam], the worst on top; sorted: best first */
    candidate *stays; /* [beam] */
    int32_t *child;   /* [beam]: a slot with a child of this slot's prefix */
    int32_t *next;    /* [beam]: another child of the same parent */
    uint32_t *marks;  /* [classes]: which slot has a child with this label */
    uint32_t mark;    /* of this slot */
    bm_hypothesis_sum *sums;   /* [beam], of the next frame */
    bm_language_state *states; /* [beam + 1], of candidates */
    uint32_t *moved;           /* of a sweep */
    size_t n_symbols;
    size_t n;       /* candidates in the heap */
    double best;    /* score of all candidates */
    uint32_t spare; /* number of a state that no candidate in the heap has */
    size_t kept;    /* prefixes that the last sweep left */
};
typedef bm_frame_parts parts;

bm_decoder_settings bm_decoder_defaults(size_t classes, int32_t space)
{
    return (bm_decoder_settings){.classes = classes,
                                 .space = space,
                                 .beam = 100,
                                 .nbest = 1,
                                 .threshold = 20,
                                 .symbol_threshold = -10};
}

/* ---- memory -------------------------------------------------------------- */

static bm_status check(const bm_decoder_settings *s)
{
    if (s->classes == 0 || s->classes > INT32_MAX || s->space < -1 ||
        s->space == 0 || s->space >= (int32_t)s->classes)
        return BM_FAIL(BM_ERR_ARG, "%zu classes with space %d", s->classes,
                       s->space);
    if (s->beam == 0 || s->beam > 1000000 || s->nbest == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "a beam of %zu for %zu hypotheses: a beam is in [1, "
                       "1000000], and there is at least one hypothesis",
                       s->beam, s->nbest);
    if (!(s->threshold >= 0) || s->symbol_threshold != s->symbol_threshold ||
        !isfinite(s->prior_scale))
        return BM_FAIL(BM_ERR_ARG,
                       "threshold %g is not at least 0, or symbol threshold %g "
                       "or prior scale %g is not a number",
                       s->threshold, s->symbol_threshold, s->prior_scale);
    return BM_OK;
}

static bool grow(bm_decoder *d)
{
    size_t room = d->room == 0 ? FIRST_ROOM : 2 * d->room;
    void *prefixes = realloc(d->prefixes, room * sizeof *d->prefixes);

    if (prefixes == NULL)
        return false;
    d->prefixes = prefixes;
    if (d->set.language != NULL) {
        void *states = realloc(d->states, room * sizeof *d->states);

        if (states == NULL)
            return false;
        d->states = states;
    }
    d->room = room;
    return true;
}

static parts *new_parts(const bm_decoder_settings *s)
{
    parts *p = calloc(1, sizeof *p);
    bool language = s->language != NULL;

    if (p == NULL)
        return NULL;
    p->symbols = calloc(s->classes, sizeof *p->symbols);
    p->marks = calloc(s->classes, sizeof *p->marks);
    p->heap = calloc(s->beam, sizeof *p->heap);
    p->stays = calloc(s->beam, sizeof *p->stays);
    p->child = calloc(s->beam, sizeof *p->child);
    p->next = calloc(s->beam, sizeof *p->next);
    p->sums = calloc(s->beam, sizeof *p->sums);
    p->states = calloc(language ? s->beam + 1 : 1, sizeof *p->states);
    return p;
}

static bool complete(const parts *p)
{
    return p != NULL && p->symbols != NULL && p->marks != NULL &&
           p->heap != NULL && p->stays != NULL && p->child != NULL &&
           p->next != NULL && p->sums != NULL && p->states != NULL;
}

static void free_parts(parts *p)
{
    if (p == NULL)
        return;
    free(p->symbols);
    free(p->marks);
    free(p->heap);
    free(p->stays);
    free(p->child);
    free(p->next);
    free(p->sums);
    free(p->states);
    free(p->moved);
    free(p);
}

static bool copy_priors(bm_decoder *d)
{
    const bm_decoder_settings *s = &d->set;

    if (s->log_priors == NULL || s->prior_scale == 0)
        return true;
    d->log_priors = malloc(s->classes * sizeof *d->log_priors);
    for (size_t k = 0; d->log_priors != NULL && k < s->classes; k++)
        d->log_priors[k] = (float)(s->prior_scale * (double)s->log_priors[k]);
    return d->log_priors != NULL;
}

bm_status bm_decoder_new(bm_decoder **out, const bm_decoder_settings *settings)
{
    bm_decoder *d = NULL;

    BM_TRY(check(settings));
    d = calloc(1, sizeof *d);
    if (d == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a decoder");
    d->set = *settings;
    d->parts = new_parts(settings);
    d->sums = calloc(settings->beam, sizeof *d->sums);
    if (!complete(d->parts) || d->sums == NULL || !grow(d) || !copy_priors(d) ||
        bm_result_new(&d->result) != BM_OK) {
        bm_decoder_free(d);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a beam of %zu",
                       settings->beam);
    }
    *out = d;
    return BM_OK;
}

void bm_decoder_free(bm_decoder *d)
{
    if (d == NULL)
        return;
    free_parts(d->parts);
    bm_result_free(d->result);
    free(d->log_priors);
    free(d->prefixes);
    free(d->states);
    free(d->sums);
    free(d);
}

/* ---- the tree ------------------------------------------------------------ */

/* Marks the ancestors of hypotheses and removes all other prefixes. */
static bm_status sweep(bm_decoder *d)
{
    parts *p = d->parts;
    size_t n = 0;
    uint32_t *moved = realloc(p->moved, d->n_prefixes * sizeof *moved);

    if (moved == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu prefixes",
                       d->n_prefixes);
    p->moved = moved;
    memset(moved, 0, d->n_prefixes * sizeof *moved);
    for (size_t i = 0; i < d->n_sums; i++)
        moved[d->sums[i].prefix] = 1;
    for (size_t i = d->n_prefixes - 1; i > 0; i--)
        if (moved[i])
            moved[d->prefixes[i].parent] = 1;
    moved[0] = 1;
    for (size_t i = 0; i < d->n_prefixes; i++) {
        bm_prefix q = d->prefixes[i];

        if (!moved[i])
            continue;
        moved[i] = (uint32_t)n;
        q.parent = moved[q.parent];
        q.child = 0;
        q.sibling = n > 0 ? d->prefixes[q.parent].child : 0;
        d->prefixes[n] = q;
        if (n > 0)
            d->prefixes[q.parent].child = (uint32_t)n;
        if (d->states != NULL)
            d->states[n] = d->states[i];
        n++;
    }
    for (size_t i = 0; i < d->n_sums; i++)
        d->sums[i].prefix = moved[d->sums[i].prefix];
    d->n_prefixes = p->kept = n;
    return BM_OK;
}

/* The child of a prefix, which is made if it is missing. */
static bm_status descend(bm_decoder *d, uint32_t parent, const candidate *c,
                         int32_t t, uint32_t *out)
{
    uint32_t i = d->prefixes[parent].child;

    while (i != 0 &&
           (d->prefixes[i].label != c->label || d->prefixes[i].way != c->way))
        i = d->prefixes[i].sibling;
    if (i == 0) {
        if (d->n_prefixes == UINT32_MAX ||
            (d->n_prefixes == d->room && !grow(d)))
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu prefixes",
                           d->n_prefixes);
        i = (uint32_t)d->n_prefixes++;
        d->prefixes[i] = (bm_prefix){.parent = parent,
                                     .sibling = d->prefixes[parent].child,
                                     .label = c->label,
                                     .way = c->way,
                                     .slot = BM_NO_SLOT,
                                     .first = t};
        d->prefixes[parent].child = i;
        if (d->states != NULL)
            d->states[i] = d->parts->states[c->state];
    }
    *out = i;
    return BM_OK;
}

/* ---- candidates ---------------------------------------------------------- */

/* Is a better than b? No two candidates are equal. */
static bool better(const candidate *a, const candidate *b)
{
    if (a->score != b->score)
        return a->score > b->score;
    if (a->from != b->from)
        return a->from < b->from;
    if (a->label != b->label)
        return a->label < b->label;
    return a->way < b->way;
}

/* Puts c in place of the worst, which is on top of the heap of n. */
static void sink(candidate *heap, size_t n, const candidate *c)
{
    candidate put = *c;
    size_t at = 0;

    for (size_t below = 2 * at + 1; below < n; below = 2 * at + 1) {
        if (below + 1 < n && better(&heap[below], &heap[below + 1]))
            below++;
        if (better(&heap[below], &put))
            break;
        heap[at] = heap[below];
        at = below;
    }
    heap[at] = put;
}

/* Keeps c if it is among the best. The caller has written the state of an extension to
 * p->states[p->spare]; if c is kept, that is its own and another one is spare. A
 * hypothesis that stays has the state of its prefix. */
static void offer(parts *p, size_t beam, const candidate *c)
{
    candidate put = *c;
    size_t at = p->n;

    if (!(c->score > -INFINITY))
        return;
    p->best = c->score > p->best ? c->score : p->best;
    put.state = p->spare;
    if (p->n == beam) {
        if (better(&p->heap[0], c))
            return;
        p->spare = p->heap[0].state;
        sink(p->heap, p->n, &put);
        return;
    }
    p->spare = (uint32_t)++p->n;
    while (at > 0 && better(&p->heap[(at - 1) / 2], &put)) {
        p->heap[at] = p->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    p->heap[at] = put;
}

/* Sorts the heap, best first. */
static void sort(parts *p)
{
    for (size_t n = p->n; n > 1; n--) {
        candidate worst = p->heap[0], last = p->heap[n - 1];

        sink(p->heap, n - 1, &last);
        p->heap[n - 1] = worst;
    }
}

/* ---- a frame ------------------------------------------------------------- */

static int by_probability(const void *a, const void *b)
{
    const symbol *x = a, *y = b;

    if (x->log_p != y->log_p)
        return x->log_p > y->log_p ? -1 : 1;
    return x->label < y->label ? -1 : 1;
}

/* The labels that extend hypotheses in frame t, best first, so that `extend` can
 * stop at the first one that is too bad. */
static void select_symbols(bm_decoder *d, size_t t)
{
    const float *y = d->y + t * d->set.classes;
    parts *p = d->parts;
    float most = -INFINITY;

    p->n_symbols = 0;
    for (size_t k = 1; k < d->set.classes; k++)
        most = y[k] > most ? y[k] : most;
    for (size_t k = 1; k < d->set.classes; k++) {
        double log_p = bm_decoder_at(d, t, (int32_t)k);

        if (log_p > -INFINITY &&
            (y[k] == most || (double)y[k] >= d->set.symbol_threshold))
            p->symbols[p->n_symbols++] = (symbol){log_p, (int32_t)k};
    }
    qsort(p->symbols, p->n_symbols, sizeof *p->symbols, by_probability);
}

/* log p of hypothesis s with one more label. */
static double extended(const bm_decoder *d, const bm_hypothesis_sum *s,
                       int32_t label, double log_p)
{
    bool again = d->prefixes[s->prefix].label == label; /* blank between */

    return (again ? s->blank : s->both) + log_p;
}

/* What the language adds to a prefix. */
static double added(const bm_decoder *d, uint32_t prefix)
{
    return d->states != NULL ? d->states[prefix].score : 0;
}

/* Hypotheses that stay, with what their parents add. */
static void stay(bm_decoder *d, size_t t)
{
    parts *p = d->parts;
    double log_blank = bm_decoder_at(d, t, 0);

    for (size_t i = 0; i < d->n_sums; i++)
        p->child[i] = BM_NO_SLOT;
    for (size_t i = 0; i < d->n_sums; i++) {
        const bm_hypothesis_sum *s = &d->sums[i];
        const bm_prefix *q = &d->prefixes[s->prefix];
        candidate c = {.blank = s->both + log_blank,
                       .label_sum = -INFINITY,
                       .from = (uint32_t)i};

        if (bm_takes_spaces(d, s->prefix)) {
            double space = s->both + bm_decoder_at(d, t, d->set.space);

            if (s->prefix == 0)
                c.blank = bm_log_add(c.blank, space);
            else
                c.label_sum = space;
        }
        if (s->prefix != 0) {
            int32_t parent = d->prefixes[q->parent].slot;
            double log_p = bm_decoder_at(d, t, q->label);

            if (c.label_sum == -INFINITY)
                c.label_sum = s->label + log_p;
            if (parent != BM_NO_SLOT) {
                c.label_sum =
                    bm_log_add(c.label_sum,
                               extended(d, &d->sums[parent], q->label, log_p));
                p->next[i] = p->child[parent];
                p->child[parent] = (int32_t)i;
            }
        }
        c.score = bm_log_add(c.blank, c.label_sum) + added(d, s->prefix);
        p->stays[i] = c;
    }
    for (size_t i = 0; i < d->n_sums; i++)
        offer(p, d->set.beam, &p->stays[i]);
}

/* Is this child of slot i in the beam? Then its probability has been added. */
static bool is_child(const bm_decoder *d, size_t i, int32_t label, uint32_t way)
{
    const parts *p = d->parts;
    int32_t j = p->marks[label] == p->mark ? p->child[i] : BM_NO_SLOT;

    for (; j != BM_NO_SLOT; j = p->next[j]) {
        const bm_prefix *q = &d->prefixes[d->sums[j].prefix];

        if (q->label == label && q->way == way)
            return true;
    }
    return false;
}

static void mark_children(bm_decoder *d, size_t i)
{
    parts *p = d->parts;

    if (++p->mark == 0) { /* it has wrapped */
        memset(p->marks, 0, d->set.classes * sizeof *p->marks);
        p->mark = 1;
    }
    for (int32_t j = p->child[i]; j != BM_NO_SLOT; j = p->next[j])
        p->marks[d->prefixes[d->sums[j].prefix].label] = p->mark;
}

/* The score below which a candidate is dropped. It rises in the course of a frame:
 * what is below now would not be kept at the end. */
static double least(const bm_decoder *d)
{
    const parts *p = d->parts;
    double least_of_best = p->best - d->set.threshold;

    if (p->n == d->set.beam && p->heap[0].score > least_of_best)
        return p->heap[0].score;
    return least_of_best;
}

static void extend(bm_decoder *d, size_t i)
{
    const bm_hypothesis_sum *s = &d->sums[i];
    const bm_language *language = d->set.language;
    const bm_language_state *state =
        language != NULL ? &d->states[s->prefix] : NULL;
    double gain = language != NULL ? bm_language_gain(language) : 0;
    parts *p = d->parts;

    mark_children(d, i);
    for (size_t k = 0; k < p->n_symbols; k++) {
        int32_t label = p->symbols[k].label;
        size_t ways = 1;
        candidate c = {.blank = -INFINITY,
                       .from = (uint32_t)i,
                       .label = label,
                       .label_sum = extended(d, s, label, p->symbols[k].log_p)};

        if (s->score + p->symbols[k].log_p + gain < least(d))
            return; /* further labels are worse */
        if (label == d->set.space && bm_takes_spaces(d, s->prefix))
            continue; /* it stays */
        if (c.label_sum + added(d, s->prefix) + gain < least(d))
            continue;
        if (language != NULL)
            ways = bm_language_ways(language, state, label);
        for (c.way = 0; c.way < ways; c.way++) {
            if (is_child(d, i, label, c.way))
                continue;
            c.score = c.label_sum;
            if (language != NULL) {
                bm_language_step(language, state, label, c.way,
                                 &p->states[p->spare]);
                c.score += p->states[p->spare].score;
            }
            offer(p, d->set.beam, &c);
        }
    }
}

/* The best candidates become the hypotheses of the next frame. */
static bm_status advance(bm_decoder *d, size_t t)
{
    parts *p = d->parts;
    bm_hypothesis_sum *sums = p->sums;
    size_t n = 0;

    sort(p);
    for (; n < p->n && p->heap[n].score >= p->best - d->set.threshold; n++) {
        const candidate *c = &p->heap[n];
        uint32_t prefix = d->sums[c->from].prefix;

        if (c->label != 0)
            BM_TRY(descend(d, prefix, c, (int32_t)t, &prefix));
        sums[n] =
            (bm_hypothesis_sum){prefix, c->blank, c->label_sum,
                                bm_log_add(c->blank, c->label_sum), c->score};
    }
    for (size_t i = 0; i < d->n_sums; i++)
        d->prefixes[d->sums[i].prefix].slot = BM_NO_SLOT;
    p->sums = d->sums;
    d->sums = sums;
    d->n_sums = n;
    if (d->n_prefixes > 2 * p->kept + SWEEP)
        BM_TRY(sweep(d));
    for (size_t i = 0; i < n; i++) {
        bm_prefix *q = &d->prefixes[d->sums[i].prefix];

        q->slot = (int32_t)i;
        q->last = (int32_t)t;
    }
    return BM_OK;
}

static bm_status frame(bm_decoder *d, size_t t)
{
    parts *p = d->parts;

    p->n = 0;
    p->spare = 0;
    p->best = -INFINITY;
    select_symbols(d, t);
    stay(d, t);
    for (size_t i = 0; i < d->n_sums; i++)
        extend(d, i);
    return advance(d, t);
}

static void begin(bm_decoder *d)
{
    d->n_prefixes = d->n_sums = 1;
    d->parts->kept = 1;
    d->prefixes[0] = (bm_prefix){.first = -1, .last = -1};
    d->sums[0] = (bm_hypothesis_sum){.label = -INFINITY};
    if (d->states == NULL)
        return;
    bm_language_begin(d->set.language, &d->states[0]);
    d->sums[0].score = d->states[0].score;
}

bm_status bm_decoder_run(bm_decoder *d, const float *y, size_t frames,
                         bm_hypotheses *out)
{
    BM_ASSERT(frames <= INT32_MAX);
    d->y = y;
    d->frames = frames;
    begin(d);
    for (size_t t = 0; t < frames; t++)
        BM_TRY(frame(d, t));
    return bm_result_make(d, out);
}

/* ---- posteriors and priors ----------------------------------------------- */

void bm_log_posteriors(const float *logits, size_t frames, size_t stride,
                       size_t classes, float *out)
{
    for (size_t t = 0; t < frames; t++) {
        const float *x = logits + t * stride;
        float *y = out + t * classes, most = -INFINITY;
        double sum = 0;

        for (size_t k = 0; k < classes; k++)
            most = x[k] > most ? x[k] : most;
        for (size_t k = 0; k < classes; k++)
            sum += exp((double)x[k] - (double)most);
        for (size_t k = 0; k < classes; k++)
            y[k] = (float)((double)x[k] - (double)most - log(sum));
    }
}

void bm_log_priors(const uint64_t *counts, size_t classes, double blank_scale,
                   float *out)
{
    double sum = blank_scale * (double)counts[0];

    for (size_t k = 1; k < classes; k++)
        sum += (double)counts[k];
    for (size_t k = 0; k < classes; k++) {
        double n = (k == 0 ? blank_scale : 1) * (double)counts[k];

        out[k] = n > 0 ? (float)log(n / sum) : INFINITY;
    }
}
