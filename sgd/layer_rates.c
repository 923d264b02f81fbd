#include "sgd/layer_rates.h"

#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char blanks[] = " \t";

enum { NAME = 64 };

/* A word of a setting: the names of layers, and a factor. */
typedef struct word {
    char name[NAME];
    double factor;
} word;

/* "2.blstm" of "2.blstm.wx". */
static void layer_of(const bm_segment *s, char out[NAME])
{
    size_t n = strcspn(s->name, ".");

    if (s->name[n] == '.')
        n += 1 + strcspn(s->name + n + 1, ".");
    snprintf(out, NAME, "%.*s", (int)n, s->name);
}

static bool fits(const word *w, const bm_segment *s)
{
    char layer[NAME];

    layer_of(s, layer);
    return fnmatch(w->name, layer, 0) == 0;
}

/* Which layers to name. */
typedef enum choice { ALL, FROZEN, WITH_RATE } choice;

static bool is_chosen(choice which, double factor)
{
    if (which == FROZEN)
        return factor == 0;
    return which == ALL || (factor != 0 && factor != 1);
}

/* Names of layers with learned weights, with the factors of WITH_RATE; free().
 * NULL: no memory. factors: of the segments; of ALL not read. */
static char *names_of(const bm_params *p, const double *factors, choice which)
{
    char *text = NULL, last[NAME] = "", layer[NAME];
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < p->n_segments; i++) {
        double factor = which == ALL ? 1 : factors[i];

        layer_of(&p->segments[i], layer);
        if (!is_chosen(which, factor) ||
            p->segments[i].offset >= p->n_learned || strcmp(layer, last) == 0)
            continue;
        fprintf(out, "%s%s",
                last[0] == '\0'      ? ""
                : which == WITH_RATE ? ", "
                                     : " ",
                layer);
        if (which == WITH_RATE)
            fprintf(out, " %g", factor);
        memcpy(last, layer, sizeof last);
    }
    return fclose(out) == 0 ? text : NULL;
}

static bm_status unknown(const bm_params *p, const char *key, const char *name)
{
    char *all = names_of(p, NULL, ALL);
    bm_status status =
        BM_FAIL(BM_ERR_CONFIG,
                "train.%s: no layer fits '%s'; the layers with weights are: %s",
                key, name, all != NULL ? all : "");

    free(all);
    return status;
}

/* The next word; its end in *text. false: there is none. */
static bm_status next_word(const char **text, const char *key, word *out,
                           bool *found)
{
    size_t n = 0;
    char *colon = NULL, *end = NULL;

    *text += strspn(*text, blanks);
    n = strcspn(*text, blanks);
    *found = n > 0;
    if (n == 0)
        return BM_OK;
    if (n >= NAME)
        return BM_FAIL(BM_ERR_CONFIG,
                       "train.%s: '%.*s..' has %zu characters, at most %d are "
                       "possible; write * for a part of the layer's name",
                       key, NAME - 1, *text, n, NAME - 1);
    snprintf(out->name, NAME, "%.*s", (int)n, *text);
    *text += n;
    out->factor = 0;
    if (strcmp(key, "freeze") == 0)
        return BM_OK;
    colon = strrchr(out->name, ':');
    if (colon != NULL)
        out->factor = strtod(colon + 1, &end);
    if (colon == NULL || end == colon + 1 || *end != '\0' ||
        !isfinite(out->factor) || out->factor <= 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "train.rates: '%s' is not LAYER:FACTOR with a factor "
                       "above 0; for a layer that does not move use "
                       "train.freeze",
                       out->name);
    *colon = '\0';
    return BM_OK;
}

/* Statistics have no rate, but they can be frozen. */
static bm_status read_setting(const bm_params *p, const char *key,
                              const char *text, double *factors)
{
    for (;;) {
        bool found = false, any = false;
        word w;

        BM_TRY(next_word(&text, key, &w, &found));
        if (!found)
            return BM_OK;
        for (size_t i = 0; i < p->n_segments; i++) {
            const bm_segment *s = &p->segments[i];

            if (!fits(&w, s))
                continue;
            any = true;
            if (w.factor == 0 || s->offset < p->n_learned)
                factors[i] = w.factor;
        }
        if (!any)
            return unknown(p, key, w.name);
    }
}

/* One range for neighbours with the same factor. */
static void list_ranges(const bm_params *p, const double *factors,
                        bm_layer_rates *out)
{
    for (size_t i = 0; i < p->n_segments; i++) {
        const bm_segment *s = &p->segments[i];
        bm_layer_rate *last = out->n > 0 ? &out->list[out->n - 1] : NULL;

        if (factors[i] == 1)
            continue;
        if (last != NULL && last->factor == factors[i] &&
            last->offset + last->count == s->offset)
            last->count += s->count;
        else
            out->list[out->n++] =
                (bm_layer_rate){s->offset, s->count, factors[i]};
        if (factors[i] == 0)
            out->frozen += bm_learned(p, s->offset, s->count);
    }
}

bm_status bm_layer_rates_read(bm_layer_rates *out, const bm_params *params,
                              const char *freeze, const char *rates)
{
    bm_layer_rates p = {0};
    double *factors = calloc(params->n_segments + 1, sizeof *factors);
    bm_status status = BM_OK;

    p.list = calloc(params->n_segments + 1, sizeof *p.list);
    if (factors == NULL || p.list == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for the rates of layers");
    for (size_t i = 0; i < params->n_segments; i++)
        factors[i] = 1;
    BM_TRY_DONE(read_setting(params, "rates", rates, factors));
    BM_TRY_DONE(read_setting(params, "freeze", freeze, factors));
    list_ranges(params, factors, &p);
    if (p.frozen == params->n_learned && p.frozen > 0)
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "train.freeze = %s: no layer is left to learn; leave one "
                     "out",
                     freeze);
    p.frozen_text = names_of(params, factors, FROZEN);
    p.rates_text = names_of(params, factors, WITH_RATE);
    if (p.frozen_text == NULL || p.rates_text == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for the rates of layers");
    *out = p;
    p = (bm_layer_rates){0};
done:
    free(factors);
    bm_layer_rates_free(&p);
    return status;
}

void bm_layer_rates_free(bm_layer_rates *p)
{
    free(p->list);
    free(p->frozen_text);
    free(p->rates_text);
    *p = (bm_layer_rates){0};
}

bm_status bm_layer_rates_cut(bm_layer_rate **out, bm_params *slice,
                             const bm_params *whole, size_t offset)
{
    bm_layer_rate *list = calloc(whole->n_layer_rates + 1, sizeof *list);
    size_t end = offset + slice->n, n = 0;

    if (list == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the rates of layers");
    for (size_t i = 0; i < whole->n_layer_rates; i++) {
        bm_layer_rate x = whole->layer_rates[i];
        size_t from = x.offset > offset ? x.offset : offset;
        size_t to = x.offset + x.count < end ? x.offset + x.count : end;

        if (from < to)
            list[n++] = (bm_layer_rate){from - offset, to - from, x.factor};
    }
    slice->layer_rates = *out = list;
    slice->n_layer_rates = n;
    return BM_OK;
}

bool bm_frozen_any(const bm_params *params)
{
    for (size_t i = 0; i < params->n_layer_rates; i++)
        if (params->layer_rates[i].factor == 0)
            return true;
    return false;
}

/* n elements. */
static void copy(bm_backend *be, size_t n, const float *from, float *to)
{
    if (be != NULL)
        bm_axpby(be, n, from != NULL, from != NULL ? from : to, 0, to);
    else if (from != NULL)
        memcpy(to, from, n * sizeof *to);
    else
        memset(to, 0, n * sizeof *to);
}

void bm_frozen_copy(const bm_params *params, const bm_state *slice,
                    const float *from)
{
    size_t end = slice->offset + slice->count;

    for (size_t i = 0; i < params->n_layer_rates; i++) {
        const bm_layer_rate *p = &params->layer_rates[i];
        size_t a = p->offset > slice->offset ? p->offset : slice->offset;
        size_t b = p->offset + p->count < end ? p->offset + p->count : end;

        if (p->factor == 0 && a < b)
            copy(slice->be, b - a,
                 from != NULL ? from + (a - slice->offset) : NULL,
                 slice->x + (a - slice->offset));
    }
}
