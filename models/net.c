#include "models/net.h"

#include "core/config.h"
#include "core/words.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LAYERS = 256, MOST_THINGS = 1 << 20, MOST_FRAMES = 1024 };

static const bm_layer_ops *const known[] = {
#define X(name) &bm_layer_##name,
    BM_LAYERS(X)
#undef X
};

static const char names[] = BM_LAYERS(BM_WORD);

static const char blanks[] = " \t\r\n";

/* out <- the line, as much of it as fits, and a second one that underlines the
 * word. */
static void point(const bm_word *word, char *out, size_t room)
{
    enum { BEFORE = 40, WIDTH = 72, INDENT = 4 };
    size_t from = word->start > BEFORE ? word->start - BEFORE : 0;
    size_t shown = strlen(word->net + from), at = word->start - from;
    size_t end = 0;
    char line[WIDTH + 1] = "", mark[WIDTH + 1] = "";

    shown = shown < WIDTH ? shown : WIDTH;
    end = at + word->length < shown ? at + word->length : shown;
    for (size_t i = 0; i < shown; i++) {
        char c = word->net[from + i];
        line[i] = strchr(blanks, c) != NULL ? ' ' : c;
        mark[i] = i < at || i >= end ? ' ' : '~';
    }
    mark[at] = '^';
    mark[end] = '\0';
    snprintf(out, room, "\n%*s%s\n%*s%s", INDENT, "", line, INDENT, "", mark);
}

static bm_status fail_at(const bm_word *word, const char *format, va_list args)
{
    char what[256], where[256];

    vsnprintf(what, sizeof what, format, args);
    point(word, where, sizeof where);
    return BM_FAIL(BM_ERR_CONFIG, "model.net: word %zu '%.*s': %s%s",
                   word->number, (int)word->length, word->net + word->start,
                   what, where);
}

static bm_status fail(const bm_word *word, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bm_status fail(const bm_word *word, const char *format, ...)
{
    va_list args;
    bm_status status = BM_OK;

    va_start(args, format);
    status = fail_at(word, format, args);
    va_end(args);
    return status;
}

bm_status bm_layer_fail(const bm_layer *l, const char *format, ...)
{
    va_list args;
    bm_status status = BM_OK;

    va_start(args, format);
    status = fail_at(&l->word, format, args);
    va_end(args);
    return status;
}

/* False unless the whole text is an integer from `least` to `most`. */
static bool parse_number(const char *text, size_t least, size_t most,
                         size_t *out)
{
    char *end = NULL;
    unsigned long value = 0;

    errno = 0;
    if (text[0] < '0' || text[0] > '9')
        return false;
    value = strtoul(text, &end, 10);
    if (*end != '\0' || errno != 0 || value < least || value > most)
        return false;
    *out = value;
    return true;
}

static bm_status missing(const bm_layer *l, const char *what)
{
    return bm_layer_fail(l, "the %s is missing: %s", what, l->ops->help);
}

bm_status bm_layer_count(const bm_layer *l, const char *what, const char *text,
                         size_t *out)
{
    char number[40];

    snprintf(number, sizeof number, "number of %s", what);
    if (text == NULL || text[0] == '\0')
        return missing(l, number);
    if (!parse_number(text, 1, MOST_THINGS, out))
        return bm_layer_fail(l, "'%s' is not a %s from 1 to %d", text, number,
                             MOST_THINGS);
    return BM_OK;
}

bm_status bm_layer_pair(const bm_layer *l, const char *what, const char *text,
                        size_t least, size_t out[2])
{
    char frames[40];
    const char *x = NULL;

    if (text == NULL || text[0] == '\0')
        return missing(l, what);
    x = strchr(text, 'x');
    x = x != NULL ? x : text + strlen(text);
    snprintf(frames, sizeof frames, "%.*s", (int)(x - text), text);
    if (*x == '\0' || !parse_number(frames, least, MOST_FRAMES, &out[0]) ||
        !parse_number(x + 1, least, MOST_FRAMES, &out[1]))
        return bm_layer_fail(l,
                             "'%s' is not a valid %s; give FRAMESxROWS, as in "
                             "3x3, each from %zu to %d",
                             text, what, least, MOST_FRAMES);
    return BM_OK;
}

const char *bm_layer_argument(char **rest)
{
    char *word = *rest, *comma = word != NULL ? strchr(word, ',') : NULL;

    *rest = comma != NULL ? comma + 1 : NULL;
    if (comma != NULL)
        *comma = '\0';
    return word;
}

const float *bm_layer_weight(const bm_layer *l, const char *name)
{
    const float *at[] = {l->w, l->s}; /* learned, statistics */

    for (int i = 0; i < l->n_weights; i++) {
        const bm_weight *w = &l->weights[i];
        size_t n = 1;

        if (strcmp(w->name, name) == 0)
            return at[w->statistic];
        for (int k = 0; k < w->rank; k++)
            n *= w->dim[k];
        at[w->statistic] += n;
    }
    return NULL;
}

void bm_layer_glorot(float *w, size_t n, size_t fan_in, size_t fan_out,
                     bm_rng *rng)
{
    double limit = sqrt(6.0 / (double)(fan_in + fan_out));

    for (size_t i = 0; i < n; i++)
        w[i] = (float)(limit * (2 * bm_rng_uniform(rng) - 1));
}

static const bm_layer_ops *find(const char *name)
{
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strcmp(known[i]->name, name) == 0)
            return known[i];
    return NULL;
}

/* Parses "name:args*times". */
static bm_status parse_word(const bm_word *word, bm_layer *l, size_t *times)
{
    char text[64], nearest[40];
    char *colon = NULL, *star = NULL;

    if (word->length >= sizeof l->args)
        return fail(word, "longer than the limit of %zu characters",
                    sizeof l->args - 1);
    memcpy(text, word->net + word->start, word->length);
    text[word->length] = '\0';
    *times = 1;
    *l = (bm_layer){.word = *word, .time = {1, 1, 0, 0}};
    star = strchr(text, '*');
    if (star != NULL) {
        *star = '\0';
        if (!parse_number(star + 1, 1, MOST_LAYERS, times))
            return fail(word, "'%s' is not a number of layers from 1 to %d",
                        star + 1, MOST_LAYERS);
    }
    colon = strchr(text, ':');
    if (colon != NULL) {
        *colon = '\0';
        snprintf(l->args, sizeof l->args, "%s", colon + 1);
        if (l->args[0] == '\0')
            return fail(word, "arguments are missing after the colon");
    }
    l->ops = find(text);
    if (l->ops != NULL)
        return BM_OK;
    if (bm_nearest_word(text, names, nearest, sizeof nearest))
        return fail(word, "no such layer; the nearest is %s", nearest);
    return fail(word, "no such layer; the layers are %s", names);
}

/* The next word; false at the end of the line. */
static bool next_word(bm_word *word)
{
    size_t start = word->start + word->length;

    start += strspn(word->net + start, blanks);
    word->start = start;
    word->length = strcspn(word->net + start, blanks);
    word->number++;
    return word->length > 0;
}

bm_status bm_net_parse(const char *net, bm_layer **out, size_t *n)
{
    bm_layer *layers = calloc(MOST_LAYERS, sizeof *layers);
    bm_word word = {.net = net};
    size_t count = 0;
    bm_status status = BM_OK;

    if (layers == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the layers of a network");
    while (next_word(&word)) {
        bm_layer l = {0};
        size_t times = 0;

        BM_TRY_DONE(parse_word(&word, &l, &times));
        BM_ASSERT(l.ops != NULL);
        if (times > MOST_LAYERS - count) {
            status = fail(&word, "more than %d layers in total", MOST_LAYERS);
            goto done;
        }
        for (; times > 0; times--, count++) {
            snprintf(l.name, sizeof l.name, "%zu.%s", count, l.ops->name);
            layers[count] = l;
        }
    }
    if (count == 0)
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "model.net is empty; the smallest network is 'linear'");
    *out = layers;
    *n = count;
    layers = NULL;
done:
    free(layers);
    return status;
}

static bool is_epilogue(const bm_layer *l)
{
    return l->does.pools || l->does.f != BM_IDENTITY;
}

void bm_net_fuse(bm_layer *layers, size_t n)
{
    for (size_t k = 0, next = 1; k < n; k = next++) {
        bm_layer *l = &layers[k];

        for (; next < n && l->ops->fuse != NULL && is_epilogue(&layers[next]) &&
               l->ops->fuse(l, &layers[next].does);
             next++)
            l->fused++;
    }
}
