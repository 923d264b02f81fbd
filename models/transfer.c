#include "models/transfer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Both networks with their weights on the host. */
typedef struct job {
    bm_trained from, to;
    float *old, *new;   /* [n] of each */
    int32_t *old_class; /* [classes of to]: of the same symbol; -1: none */
    bool same_symbols;
} job;

/* ---- symbols --------------------------------------------------------------- */

typedef struct symbol {
    const char *text;
    int32_t class;
} symbol;

static int by_text(const void *a, const void *b)
{
    return strcmp(((const symbol *)a)->text, ((const symbol *)b)->text);
}

static bm_status match_symbols(job *j)
{
    const bm_vocab *old = j->from.vocab, *new = j->to.vocab;
    size_t n_old = bm_vocab_size(old), n_new = bm_vocab_size(new);
    symbol *sorted = malloc(n_old * sizeof *sorted);

    j->same_symbols = bm_vocab_equal(old, new);
    j->old_class = calloc(n_new, sizeof *j->old_class);
    if (sorted == NULL || j->old_class == NULL) {
        free(sorted);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu symbols", n_new);
    }
    for (size_t i = 0; i < n_old; i++)
        sorted[i] = (symbol){bm_vocab_symbol(old, (int32_t)i), (int32_t)i};
    qsort(sorted, n_old, sizeof *sorted, by_text);
    for (size_t i = 0; i < n_new; i++) {
        symbol key = {bm_vocab_symbol(new, (int32_t)i), 0};
        const symbol *found =
            bsearch(&key, sorted, n_old, sizeof *sorted, by_text);

        j->old_class[i] = found != NULL ? found->class : -1;
    }
    free(sorted);
    return BM_OK;
}

/* ---- layers ---------------------------------------------------------------- */

/* Characters of the layer's name: "2.blstm" of "2.blstm.wx". */
static size_t layer_length(const char *segment)
{
    size_t n = strcspn(segment, ".");

    return segment[n] == '\0' ? n : n + 1 + strcspn(segment + n + 1, ".");
}

static bool is_of_layer(const bm_segment *s, const char *layer)
{
    size_t n = layer_length(s->name);

    return strlen(layer) == n && strncmp(s->name, layer, n) == 0;
}

static const bm_segment *find(const bm_params *p, const char *name)
{
    for (size_t i = 0; i < p->n_segments; i++)
        if (strcmp(p->segments[i].name, name) == 0)
            return &p->segments[i];
    return NULL;
}

static size_t count(const bm_params *p, const char *layer)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n_segments; i++)
        n += is_of_layer(&p->segments[i], layer);
    return n;
}

/* Equal shapes, from dimension `first` on. */
static bool same_shape(const bm_segment *a, const bm_segment *b, int first)
{
    if (a == NULL || a->rank != b->rank)
        return false;
    for (int i = first; i < a->rank; i++)
        if (a->dim[i] != b->dim[i])
            return false;
    return true;
}

/* Both networks have the layer, with these dimensions equal. */
static bool fits(const job *j, const char *layer, int first)
{
    const bm_params *old = j->from.params, *new = j->to.params;

    if (count(old, layer) != count(new, layer))
        return false;
    for (size_t i = 0; i < new->n_segments; i++) {
        const bm_segment *s = &new->segments[i];

        if (is_of_layer(s, layer) && !same_shape(find(old, s->name), s, first))
            return false;
    }
    return true;
}

/* A layer with a row for each class, in both networks. */
static bool has_rows(const job *j, const char *layer)
{
    const bm_params *old = j->from.params, *new = j->to.params;

    for (size_t i = 0; i < new->n_segments; i++) {
        const bm_segment *s = &new->segments[i];

        if (is_of_layer(s, layer) &&
            (s->dim[0] != bm_vocab_size(j->to.vocab) ||
             find(old, s->name)->dim[0] != bm_vocab_size(j->from.vocab)))
            return false;
    }
    return true;
}

static void take_whole(job *j, const bm_segment *s)
{
    const bm_segment *old = find(j->from.params, s->name);

    memcpy(j->new + s->offset, j->old + old->offset, s->count * sizeof *j->new);
}

static void take_rows(job *j, const bm_segment *s)
{
    const bm_segment *old = find(j->from.params, s->name);
    size_t width = s->count / s->dim[0];

    for (size_t i = 0; i < s->dim[0]; i++)
        if (j->old_class[i] >= 0)
            memcpy(j->new + s->offset + i *width,
                   j->old + old->offset + (size_t)j->old_class[i] * width,
                   width * sizeof *j->new);
}

static void take(job *j, const char *layer,
                 void (*of)(job *, const bm_segment *))
{
    const bm_params *new = j->to.params;

    for (size_t i = 0; i < new->n_segments; i++)
        if (is_of_layer(&new->segments[i], layer))
            of(j, &new->segments[i]);
}

static void note(char names[BM_TRANSFER_NAMES], const char *layer)
{
    size_t at = strlen(names);

    snprintf(names + at, BM_TRANSFER_NAMES - at, "%s%s", at > 0 ? " " : "",
             layer);
}

static void note_symbols(const job *j, const char *layer, bm_transfer *out)
{
    snprintf(out->output, sizeof out->output, "%s", layer);
    out->symbols = bm_vocab_size(j->to.vocab);
    for (size_t i = 0; i < out->symbols; i++)
        out->symbols_common += j->old_class[i] >= 0;
    out->symbols_dropped = bm_vocab_size(j->from.vocab) - out->symbols_common;
}

/* `last`: the output layer. Other symbols mean other rows, also if there are as
 * many. */
static void take_layer(job *j, const char *layer, bool last, bm_transfer *out)
{
    if (last && !j->same_symbols) {
        if (fits(j, layer, 1) && has_rows(j, layer)) {
            take(j, layer, take_rows);
            note_symbols(j, layer, out);
            return;
        }
    } else if (fits(j, layer, 0)) {
        take(j, layer, take_whole);
        note(out->taken, layer);
        out->n_taken++;
        return;
    }
    note(out->anew, layer);
    out->n_anew++;
}

/* Layers in the order of the network, each once: learned weights come first,
 * and a layer with statistics has some. */
static void take_all(job *j, bm_transfer *out)
{
    const bm_params *p = j->to.params;
    char layer[64] = "", next[64] = "";

    for (size_t i = 0; i < p->n_segments; i++) {
        const char *name = p->segments[i].name;
        bool learned = p->segments[i].offset < p->n_learned;

        snprintf(next, sizeof next, "%.*s", (int)layer_length(name), name);
        if (!learned || strcmp(layer, next) == 0)
            continue;
        if (layer[0] != '\0')
            take_layer(j, layer, false, out);
        memcpy(layer, next, sizeof layer);
    }
    take_layer(j, layer, true, out);
    out->whole = out->n_anew == 0 && out->output[0] == '\0' &&
                 j->from.params->n_segments == p->n_segments;
}

static bm_status to_host(const bm_params *p, float **out)
{
    *out = malloc((p->n + 1) * sizeof **out);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", p->n);
    bm_get(p->be, *out, p->w, p->n);
    return bm_sync(p->be);
}

bm_status bm_transfer_layers(bm_trained from, bm_trained to, bm_transfer *out)
{
    job j = {.from = from, .to = to};
    bm_status status = BM_OK;

    memset(out, 0, sizeof *out);
    BM_TRY_DONE(to_host(from.params, &j.old));
    BM_TRY_DONE(to_host(to.params, &j.new));
    BM_TRY_DONE(match_symbols(&j));
    take_all(&j, out);
    bm_put(to.params->be, to.params->w, j.new, to.params->n);
    status = bm_sync(to.params->be);
done:
    free(j.old);
    free(j.new);
    free(j.old_class);
    return status;
}
