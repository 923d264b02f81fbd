/*
 * lm_build.c - from the n-grams of an ARPA file to the compact form.
 *
 * The tree needs of each n-gram also the one without its first word (its parent),
 * and back-off the one without its last word (its context). A pruned model may lack
 * them. They are added: a parent with the p that back-off gives, a context with
 * back-off weight 0. No probability changes.
 */
#include "models/decoding/lm_parts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_words(const void *a, const void *b)
{
    const bm_lm_gram *x = a, *y = b;

    for (int i = 0; i < BM_LM_MOST; i++)
        if (x->words[i] != y->words[i])
            return x->words[i] < y->words[i] ? -1 : 1;
    return 0;
}

static void sort(bm_lm_source *s, int k)
{
    if (s->counts[k - 1] > 1)
        qsort(s->grams[k - 1], s->counts[k - 1], sizeof *s->grams[k - 1],
              by_words);
}

/* An n-gram of k words, or NULL. */
static bm_lm_gram *find(const bm_lm_source *s, int k, const bm_lm_gram *g,
                        size_t n)
{
    return n == 0 ? NULL : bsearch(g, s->grams[k - 1], n, sizeof *g, by_words);
}

/* Without the first word. */
static bm_lm_gram parent_of(const bm_lm_gram *g, int k)
{
    bm_lm_gram out = *g;

    out.words[k - 1] = 0;
    return out;
}

/* Without the last word. */
static bm_lm_gram context_of(const bm_lm_gram *g, int k)
{
    bm_lm_gram out = {.words = {0}};

    memcpy(out.words, g->words + 1, (size_t)(k - 1) * sizeof *out.words);
    return out;
}

static bm_status check_twice(const bm_lm_source *s, int k, const char *path)
{
    const bm_lm_gram *g = s->grams[k - 1];
    char text[200] = "";
    size_t length = 0;

    for (size_t i = 1; i < s->counts[k - 1]; i++) {
        if (by_words(&g[i - 1], &g[i]) != 0)
            continue;
        for (int w = k - 1; w >= 0 && length < sizeof text - 1; w--)
            length +=
                (size_t)snprintf(text + length, sizeof text - length, "%s%.30s",
                                 w < k - 1 ? " " : "", s->words[g[i].words[w]]);
        return BM_FAIL(
            BM_ERR_FORMAT,
            "%s: the %d-gram \"%s\" occurs twice; remove one of them "
            "or estimate the model again",
            path, k, text);
    }
    return BM_OK;
}

/* Adds what n-grams of k words need and n-grams of k - 1 words lack. Their p is
 * NaN until fill(). */
static bool add_missing(bm_lm_source *s, int k)
{
    size_t known = s->counts[k - 2], n = 0;

    for (size_t i = 0; i < s->counts[k - 1]; i++) {
        const bm_lm_gram *g = &s->grams[k - 1][i];
        bm_lm_gram needed[2] = {parent_of(g, k), context_of(g, k)};

        for (int j = 0; j < 2; j++) {
            needed[j].p = NAN;
            needed[j].backoff = 0;
            if (find(s, k - 1, &needed[j], known) == NULL &&
                !bm_lm_source_add(s, k - 1, &needed[j]))
                return false;
        }
    }
    if (s->counts[k - 2] == known)
        return true;
    sort(s, k - 1); /* the same may have been added several times */
    n = 1;
    for (size_t i = 1; i < s->counts[k - 2]; i++)
        if (by_words(&s->grams[k - 2][n - 1], &s->grams[k - 2][i]) != 0)
            s->grams[k - 2][n++] = s->grams[k - 2][i];
    s->counts[k - 2] = n;
    return true;
}

/* p of the n-grams that were added: that of back-off. */
static void fill(bm_lm_source *s, int k)
{
    for (size_t i = 0; i < s->counts[k - 1]; i++) {
        bm_lm_gram *g = &s->grams[k - 1][i];
        bm_lm_gram parent = parent_of(g, k), context = context_of(g, k);

        if (g->p == g->p)
            continue;
        g->p = find(s, k - 1, &parent, s->counts[k - 2])->p +
               find(s, k - 1, &context, s->counts[k - 2])->backoff;
    }
}

static bm_status complete(bm_lm_source *s, const char *path)
{
    for (int k = 1; k <= s->order; k++) {
        sort(s, k);
        BM_TRY(check_twice(s, k, path));
    }
    for (int k = s->order; k > 2; k--)
        if (!add_missing(s, k))
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    for (int k = 2; k < s->order; k++)
        fill(s, k);
    return BM_OK;
}

/* ---- the compact form ---------------------------------------------------- */

static void put_words(const bm_lm_source *s, const bm_lm *lm)
{
    uint64_t *offsets = (uint64_t *)lm->offsets;
    char *texts = (char *)lm->texts;
    uint64_t at = 0;

    for (size_t i = 0; i < s->n_words; i++) {
        size_t n = strlen(s->words[i]) + 1;

        offsets[i] = at;
        memcpy(texts + at, s->words[i], n);
        at += n;
    }
    offsets[s->n_words] = at;
}

/* Is the n-gram of k words the parent of the one with k + 1? */
static bool is_parent(const bm_lm_gram *parent, const bm_lm_gram *child, int k)
{
    return memcmp(parent->words, child->words,
                  (size_t)k * sizeof *parent->words) == 0;
}

static void put_level(const bm_lm_source *s, const bm_lm *lm, int k)
{
    bm_lm_node *nodes = (bm_lm_node *)lm->levels[k - 1];
    const bm_lm_gram *g = s->grams[k - 1];
    size_t n_children = k < s->order ? s->counts[k] : 0, child = 0;

    for (size_t i = 0; i < s->counts[k - 1]; i++) {
        nodes[i] = (bm_lm_node){g[i].words[k - 1], g[i].p, g[i].backoff,
                                (uint32_t)child};
        while (child < n_children && is_parent(&g[i], &s->grams[k][child], k))
            child++;
    }
    BM_ASSERT(child == n_children);
    nodes[s->counts[k - 1]] = (bm_lm_node){.first = (uint32_t)child};
}

static void put_leaves(const bm_lm_source *s, const bm_lm *lm)
{
    bm_lm_leaf *leaves = (bm_lm_leaf *)lm->leaves;
    const bm_lm_gram *g = s->grams[s->order - 1];

    for (size_t i = 0; i < s->counts[s->order - 1]; i++)
        leaves[i] = (bm_lm_leaf){g[i].words[s->order - 1], g[i].p};
}

static bm_status describe(const bm_lm_source *s, const char *path,
                          bm_lm_header *h)
{
    *h = (bm_lm_header){.magic = "bmuf-lm", .one = 1, .version = 1};
    h->magic[7] = '\n';
    h->order = (uint32_t)s->order;
    h->begin = s->begin;
    h->end = s->end;
    h->unknown = s->unknown;
    for (int k = 0; k < s->order; k++)
        h->counts[k] = s->counts[k];
    for (size_t i = 0; i < s->n_words; i++)
        h->text_bytes += strlen(s->words[i]) + 1;
    h->text_bytes = (h->text_bytes + 7) / 8 * 8;
    h->bytes = bm_lm_size(h);
    if (h->bytes == 0 || h->bytes > SIZE_MAX)
        return BM_FAIL(BM_ERR_FORMAT, "%s has more than 2^32 n-grams of a kind",
                       path);
    return BM_OK;
}

bm_status bm_lm_build(bm_lm **out, bm_lm_source *s, const char *path)
{
    bm_lm_header header;
    bm_status status = BM_OK;
    bm_lm *lm = calloc(1, sizeof *lm);

    if (lm == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    BM_TRY_DONE(complete(s, path));
    BM_TRY_DONE(describe(s, path, &header));
    lm->size = (size_t)header.bytes;
    lm->memory = calloc(1, lm->size);
    if (lm->memory == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu bytes of %s", lm->size,
                     path);
    memcpy(lm->memory, &header, sizeof header);
    lm->header = lm->memory;
    lm->offsets = (const uint64_t *)(lm->header + 1);
    lm->texts = (const char *)(lm->offsets + s->n_words + 1);
    put_words(s, lm);
    BM_TRY_DONE(bm_lm_attach(lm, path));
    for (int k = 1; k <= s->order; k++)
        if (k > 1 && k == s->order)
            put_leaves(s, lm);
        else
            put_level(s, lm, k);
    ((bm_lm_header *)lm->memory)->checksum =
        bm_lm_checksum(lm->memory, lm->size);
    *out = lm;
    lm = NULL;
done:
    bm_lm_close(lm);
    return status;
}
