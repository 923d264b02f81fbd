#include "models/net.h"

#include "core/config/config.h"
#include "core/text/words.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_LAYERS = BM_NET_LAYERS,
    MOST_THINGS = 1 << 20,
    MOST_GROUPS = BM_NET_GROUPS
};

static const bm_layer_ops *const known[] = {
#define X(name) &bm_layer_##name,
    BM_LAYERS(X)
#undef X
};

static const char names[] = BM_LAYERS(BM_WORD);

static const char blanks[] = " \t\r\n", ends[] = " \t\r\n()|";

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

bm_status bm_layer_count_up_to(const bm_layer *l, const char *what,
                               const char *text, size_t most, size_t *out)
{
    char number[40];

    snprintf(number, sizeof number, "number of %s", what);
    if (text == NULL || text[0] == '\0')
        return missing(l, number);
    if (!parse_number(text, 1, most, out))
        return bm_layer_fail(l, "'%s' is not a %s from 1 to %zu", text, number,
                             most);
    return BM_OK;
}

bm_status bm_layer_count(const bm_layer *l, const char *what, const char *text,
                         size_t *out)
{
    return bm_layer_count_up_to(l, what, text, MOST_THINGS, out);
}

bm_status bm_layer_probability(const bm_layer *l, const char *text, float *out)
{
    char *end = NULL;
    float p = text != NULL ? strtof(text, &end) : 0;

    if (text == NULL || text[0] == '\0')
        return missing(l, "probability");
    if (*end != '\0' || !(p >= 0) || !(p < 1))
        return bm_layer_fail(l, "'%s' is not a probability in [0, 1)", text);
    *out = p;
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
    if (*x == '\0' || !parse_number(frames, least, BM_LAYER_WINDOW, &out[0]) ||
        !parse_number(x + 1, least, BM_LAYER_WINDOW, &out[1]))
        return bm_layer_fail(l,
                             "'%s' is not a valid %s; give FRAMESxROWS, as in "
                             "3x3, each from %zu to %d",
                             text, what, least, BM_LAYER_WINDOW);
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

bm_status bm_layer_once(const bm_layer *l, const char *word, bool *given)
{
    if (*given)
        return bm_layer_fail(l, "'%.*s' is given twice",
                             (int)strcspn(word, ":"), word);
    *given = true;
    return BM_OK;
}

/* Padding of size - 1 in total, the smaller half first. */
static bm_window same(size_t size, size_t stride)
{
    return (bm_window){size, stride, (size - 1) / 2, size / 2};
}

/* What the words say; the padding counts if there is one. */
typedef struct window_arguments {
    size_t stride[2], pad[2], dilation[2];
    bool strided, padded, dilated, mean; /* the words that are there */
} window_arguments;

static bm_status read_words(const bm_layer *l, const bm_window_words *words,
                            char *rest, window_arguments *a)
{
    const char *word = NULL;

    while ((word = bm_layer_argument(&rest)) != NULL)
        if (strncmp(word, "stride:", 7) == 0) {
            BM_TRY(bm_layer_once(l, word, &a->strided));
            BM_TRY(bm_layer_pair(l, "stride", word + 7, 1, a->stride));
        } else if (strncmp(word, "pad:", 4) == 0) {
            BM_TRY(bm_layer_once(l, word, &a->padded));
            BM_TRY(bm_layer_pair(l, "padding", word + 4, 0, a->pad));
        } else if (words->averages && strcmp(word, "mean") == 0) {
            BM_TRY(bm_layer_once(l, word, &a->mean));
        } else if (words->dilates && strncmp(word, "dilation:", 9) == 0) {
            BM_TRY(bm_layer_once(l, word, &a->dilated));
            BM_TRY(bm_layer_pair(l, "dilation", word + 9, 1, a->dilation));
        } else {
            return bm_layer_fail(
                l, "'%s' is neither %s%sstride:TIMExHEIGHT nor pad:TIMExHEIGHT",
                word, words->averages ? "mean nor " : "",
                words->dilates ? "dilation:TIMExHEIGHT nor " : "");
        }
    return BM_OK;
}

bm_status bm_layer_windows(bm_layer *l, const bm_window_words *words,
                           char *rest)
{
    window_arguments a = {.stride = {words->stride[0], words->stride[1]},
                          .dilation = {1, 1}};
    size_t H = l->n_in / bm_layer_channels_in(l), size[2] = {0};

    BM_TRY(read_words(l, words, rest, &a));
    for (int i = 0; i < 2; i++) {
        l->dilation[i] = a.dilation[i];
        size[i] = (words->size[i] - 1) * a.dilation[i] + 1;
        if (a.dilation[i] > 1 && size[i] > BM_LAYER_WINDOW)
            return bm_layer_fail(l,
                                 "with this dilation a %s spans %zu %s; the "
                                 "limit is %d",
                                 words->what, size[i], i ? "rows" : "frames",
                                 BM_LAYER_WINDOW);
    }
    l->mean = a.mean;
    l->time = same(size[0], a.stride[0]);
    l->rows = same(size[1], a.stride[1]);
    if (a.padded && (a.pad[0] >= size[0] || a.pad[1] >= size[1]))
        return bm_layer_fail(l, "the padding must be smaller than the %s",
                             words->what);
    if (a.padded) {
        l->time.before = l->time.after = a.pad[0];
        l->rows.before = l->rows.after = a.pad[1];
    }
    if (bm_windows(l->rows, H) == 0)
        return bm_layer_fail(l, "the %s is higher than its input of %zu rows",
                             words->what, H);
    return BM_OK;
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

/* A group whose ')' is still to come. */
typedef struct group {
    const bm_layer_ops *ops; /* NULL: '(', which only repeats */
    bm_word word;
    size_t first;    /* its first layer */
    size_t mark;     /* its last separator, or the layer that opens it */
    size_t branches; /* begun so far */
} group;

typedef struct parser {
    bm_layer *layers;
    size_t count;
    group open[MOST_GROUPS];
    size_t depth;
    bm_word word;
} parser;

/* Parses the number of '*number', if any. */
static bm_status parse_times(const bm_word *word, char *text, size_t *times)
{
    char *star = strchr(text, '*');

    *times = 1;
    if (star == NULL)
        return BM_OK;
    *star = '\0';
    if (!parse_number(star + 1, 1, MOST_LAYERS, times))
        return fail(word, "'%s' is not a number of layers from 1 to %d",
                    star + 1, MOST_LAYERS);
    return BM_OK;
}

/* Layers of other programs that are written here with arguments, or with
 * several layers. */
static const struct {
    const char *theirs, *ours;
} written[] = {
    {"avgpool avgpool2d", "pool:TIMExHEIGHT,mean"},
    {"concat concatenate", "branches"},
    {"conv1d", "splice and linear, or conv:CHANNELS,TIMExHEIGHT"},
    {"logsoftmax softmax", "left out, because the loss contains it"},
    {"lstmp", "lstm:CELLS,project:SIZE"},
    {"tdnn", "splice and linear"},
};

/* What a layer of another program is called here, NULL: not known. */
static const char *of_another(const char *name)
{
    char plain[40];

    bm_word_plain(name, strlen(name), plain, sizeof plain);
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i]->others != NULL && bm_is_word_of(plain, known[i]->others))
            return known[i]->name;
    for (size_t i = 0; i < sizeof written / sizeof written[0]; i++)
        if (bm_is_word_of(plain, written[i].theirs))
            return written[i].ours;
    return NULL;
}

/* Parses "name:args*times". */
static bm_status parse_word(const bm_word *word, bm_layer *l, size_t *times)
{
    char text[sizeof l->args], nearest[40];
    char *colon = NULL;

    if (word->length >= sizeof l->args)
        return fail(word, "longer than the limit of %zu characters",
                    sizeof l->args - 1);
    memcpy(text, word->net + word->start, word->length);
    text[word->length] = '\0';
    *l = (bm_layer){.word = *word, .time = {1, 1, 0, 0}};
    BM_TRY(parse_times(word, text, times));
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
    if (of_another(text) != NULL)
        return fail(word, "no such layer; here it is %s", of_another(text));
    if (bm_nearest_word(text, names, nearest, sizeof nearest))
        return fail(word, "no such layer; the nearest is %s", nearest);
    return fail(word, "no such layer; the layers are %s", names);
}

static bm_status add_layer(parser *p, const bm_layer *l)
{
    if (p->count == MOST_LAYERS)
        return fail(&p->word, "more than %d layers in total", MOST_LAYERS);
    p->layers[p->count++] = *l;
    return BM_OK;
}

/* A layer of the innermost group: its separator, or the layer that closes it.
 */
static bm_status add_mark(parser *p, const bm_layer_ops *ops)
{
    group *g = &p->open[p->depth - 1];

    BM_TRY(add_layer(p, &(bm_layer){.ops = ops,
                                    .word = p->word,
                                    .time = {1, 1, 0, 0},
                                    .opening = p->count - g->first,
                                    .previous = p->count - g->mark}));
    g->mark = p->count - 1;
    return BM_OK;
}

static bm_status open_group(parser *p)
{
    bm_word name = p->word;
    bm_layer l = {0};
    size_t times = 0;

    if (p->depth == MOST_GROUPS)
        return fail(&p->word, "more than %d groups inside each other",
                    MOST_GROUPS);
    name.length--; /* without '(' */
    if (name.length > 0) {
        BM_TRY(parse_word(&name, &l, &times));
        BM_ASSERT(l.ops != NULL);
        if (l.ops->role != BM_OPENS || l.args[0] != '\0' || times != 1)
            return fail(&p->word,
                        "only '(', 'residual(' and 'branches(' open a group");
        l.word = p->word;
        BM_TRY(add_layer(p, &l));
    }
    p->open[p->depth++] =
        (group){.ops = l.ops,
                .word = p->word,
                .first = l.ops != NULL ? p->count - 1 : p->count,
                .mark = p->count - 1,
                .branches = 1};
    return BM_OK;
}

static bm_status separate(parser *p)
{
    group *g = p->depth > 0 ? &p->open[p->depth - 1] : NULL;

    if (g == NULL || g->ops == NULL)
        return fail(&p->word, "branches are separated inside of "
                              "'branches( .. )' and 'residual( .. )' alone");
    g->branches++;
    return add_mark(p, &bm_layer_separator);
}

/* Appends the layers from `first` on again. */
static bm_status repeat(parser *p, size_t first, size_t times)
{
    size_t n = p->count - first;

    for (size_t k = n; k < n * times; k++)
        BM_TRY(add_layer(p, &p->layers[first + k % n]));
    return BM_OK;
}

/* ")*times" */
static bm_status close_group(parser *p)
{
    const group *g = p->depth > 0 ? &p->open[p->depth - 1] : NULL;
    char text[32];
    size_t times = 0;

    if (g == NULL)
        return fail(&p->word, "it closes no group; groups begin with '(', "
                              "'residual(' or 'branches('");
    snprintf(text, sizeof text, "%.*s", (int)p->word.length,
             p->word.net + p->word.start);
    BM_TRY(parse_times(&p->word, text, &times));
    if (text[1] != '\0')
        return fail(&p->word, "only '*' and a number may follow ')' without a "
                              "blank, as in )*3");
    if (p->count == g->first + (g->ops != NULL))
        return fail(&g->word, "the group is empty");
    if (g->ops == &bm_layer_branches && g->branches == 1)
        return fail(&g->word, "give two branches or more, with | between them");
    if (g->ops == &bm_layer_residual && g->branches == 1)
        BM_TRY(add_mark(p, &bm_layer_separator));
    if (g->ops != NULL) {
        p->layers[g->mark].last = true;
        BM_TRY(add_mark(p, &bm_layer_closing));
    }
    p->depth--;
    return repeat(p, g->first, times);
}

static bm_status add_word(parser *p)
{
    const char *text = p->word.net + p->word.start;
    bm_layer l = {0};
    size_t times = 0;

    if (text[0] == ')')
        return close_group(p);
    if (text[0] == '|')
        return separate(p);
    if (text[p->word.length - 1] == '(')
        return open_group(p);
    BM_TRY(parse_word(&p->word, &l, &times));
    BM_ASSERT(l.ops != NULL);
    if (l.ops->role == BM_OPENS)
        return fail(&p->word, "the '(' is missing: %s", l.ops->help);
    BM_TRY(add_layer(p, &l));
    return repeat(p, p->count - 1, times);
}

/* The next word; false at the end of the line. '(' ends a word, '|' is one, and
 * ')' begins one. */
static bool next_word(bm_word *word)
{
    size_t start = word->start + word->length;
    const char *at = NULL;

    start += strspn(word->net + start, blanks);
    at = word->net + start;
    word->start = start;
    if (at[0] == '|')
        word->length = 1;
    else if (at[0] == ')')
        word->length = 1 + strcspn(at + 1, ends);
    else
        word->length = strcspn(at, ends);
    if (at[0] != '|' && at[0] != ')' && at[word->length] == '(')
        word->length++;
    word->number++;
    return word->length > 0;
}

/* Layers are counted without those of groups, which have the words themselves
 * as names. */
static void name_layers(bm_layer *layers, size_t n)
{
    size_t number = 0;

    for (size_t k = 0; k < n; k++) {
        bm_layer *l = &layers[k];

        l->number = number;
        if (l->ops->role == BM_ALONE)
            snprintf(l->name, sizeof l->name, "%zu.%s", number++, l->ops->name);
        else
            snprintf(l->name, sizeof l->name, "%s%s", l->ops->name,
                     l->ops->role == BM_OPENS ? "(" : "");
    }
}

bm_status bm_net_parse(const char *net, bm_layer **out, size_t *n)
{
    parser p = {.layers = calloc(MOST_LAYERS, sizeof *p.layers),
                .word = {.net = net}};
    bm_status status = BM_OK;

    if (p.layers == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the layers of a network");
    while (next_word(&p.word))
        BM_TRY_DONE(add_word(&p));
    if (p.depth > 0) {
        status = fail(&p.open[p.depth - 1].word, "the ')' is missing");
        goto done;
    }
    if (p.count == 0)
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "model.net is empty; the smallest network is 'linear'");
    name_layers(p.layers, p.count);
    *out = p.layers;
    *n = p.count;
    p.layers = NULL;
done:
    free(p.layers);
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
