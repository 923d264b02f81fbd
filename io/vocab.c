/*
 * vocab.c - symbols in an array, found through a hash table of class numbers
 * (open addressing, linear steps, at most half full).
 */
#include "io/vocab.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/file/path.h"
#include "core/text/printable.h"
#include "io/bidi.h"
#include "io/symbol_table.h"
#include "io/text.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

enum { LARGEST_FILE = 1 << 28, FIRST_ROOM = 64 };

static const char blank[] = "<blank>";
static const char space[] = "<space>";

struct bm_vocab {
    bool words;
    bool right_to_left;
    char **symbols; /* [n] */
    size_t n, room;
    int32_t *table; /* [slots]: a class, or -1 */
    size_t slots;   /* a power of two */
};

/* A run of bytes inside a text; NULL at its end. */
typedef struct piece {
    const char *at;
    size_t n;
} piece;

/* A position in a text. */
typedef struct cursor {
    const char *at;
    bool words;
} cursor;

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static cursor begin(const char *text, bool words)
{
    while (is_space(*text))
        text++;
    return (cursor){text, words};
}

/* The next symbol: a word, a character, or one space for a run of white space.
 * A byte that is not UTF-8 is a symbol of its own. */
static piece next(cursor *c)
{
    const char *from = c->at, *to = from;
    size_t n = 0;

    if (*from == '\0')
        return (piece){NULL, 0};
    if (is_space(*from)) {
        while (is_space(*to))
            to++;
        c->at = to;
        return *to != '\0' ? (piece){" ", 1} : (piece){NULL, 0};
    }
    if (!c->words) {
        n = bm_utf8_character(from, NULL);
        n = n > 0 ? n : 1;
        c->at = from + n;
        return (piece){from, n};
    }
    while (*to != '\0' && !is_space(*to))
        to++;
    n = (size_t)(to - from);
    while (is_space(*to))
        to++;
    c->at = to;
    return (piece){from, n};
}

static bool same(const char *symbol, piece p)
{
    return strncmp(symbol, p.at, p.n) == 0 && symbol[p.n] == '\0';
}

/* Is it "<unk>" or such? Among characters no text has it as a symbol. */
static bool is_name(piece p)
{
    return p.n > 2 && p.at[0] == '<' && p.at[p.n - 1] == '>';
}

/* The slot of a symbol, or the free slot for it. */
static size_t slot(const bm_vocab *v, piece p)
{
    size_t i = (size_t)XXH3_64bits(p.at, p.n) & (v->slots - 1);

    while (v->table[i] >= 0 && !same(v->symbols[v->table[i]], p))
        i = (i + 1) & (v->slots - 1);
    return i;
}

static void index_all(bm_vocab *v)
{
    memset(v->table, 0xff, v->slots * sizeof *v->table);
    for (size_t k = 0; k < v->n; k++) {
        piece p = {v->symbols[k], strlen(v->symbols[k])};
        v->table[slot(v, p)] = (int32_t)k;
    }
}

static bm_status grow(bm_vocab *v)
{
    size_t room = v->room ? 2 * v->room : FIRST_ROOM;
    char **symbols = realloc(v->symbols, room * sizeof *symbols);
    int32_t *table = NULL;

    if (symbols != NULL)
        v->symbols = symbols;
    table = malloc(2 * room * sizeof *table);
    if (symbols == NULL || table == NULL) {
        free(table);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu symbols", room);
    }
    free(v->table);
    v->table = table;
    v->slots = 2 * room;
    v->room = room;
    index_all(v);
    return BM_OK;
}

/* *fresh: the symbol was added, not found. */
static bm_status add(bm_vocab *v, piece p, bool *fresh)
{
    size_t i = 0;

    if (v->n == v->room)
        BM_TRY(grow(v));
    i = slot(v, p);
    *fresh = v->table[i] < 0;
    if (!*fresh)
        return BM_OK;
    if (v->n == INT32_MAX)
        return BM_FAIL(BM_ERR_FORMAT, "more than %d symbols", INT32_MAX);
    v->symbols[v->n] = strndup(p.at, p.n);
    if (v->symbols[v->n] == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a symbol");
    v->table[i] = (int32_t)v->n++;
    return BM_OK;
}

bm_status bm_vocab_new(bm_vocab **out, bool words)
{
    bm_vocab *v = calloc(1, sizeof *v);
    bool fresh = false;
    bm_status status = BM_OK;

    if (v == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a vocabulary");
    v->words = words;
    BM_TRY_DONE(add(v, (piece){blank, sizeof blank - 1}, &fresh));
    *out = v;
    v = NULL;
done:
    bm_vocab_free(v);
    return status;
}

void bm_vocab_free(bm_vocab *v)
{
    if (v == NULL)
        return;
    for (size_t k = 0; k < v->n; k++)
        free(v->symbols[k]);
    free(v->symbols);
    free(v->table);
    free(v);
}

/* The place for a message: "vocab.txt:7" or "vocabulary, line 7". */
static const char *place(char out[PATH_MAX + 32], const char *path, size_t line)
{
    if (path != NULL)
        snprintf(out, PATH_MAX + 32, "%s:%zu", path, line);
    else
        snprintf(out, PATH_MAX + 32, "vocabulary, line %zu", line);
    return out;
}

/* Adds a line of a file, without its newline. */
static bm_status add_line(bm_vocab *v, piece p, const char *path, size_t line)
{
    char where[PATH_MAX + 32], text[64];
    bool fresh = false;

    place(where, path, line);
    snprintf(text, sizeof text, "%.*s", (int)(p.n < 60 ? p.n : 60), p.at);
    if (line == 1) {
        if (!same(blank, p))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: the first symbol is \"%s\", must be %s", where,
                           text, blank);
        return BM_OK;
    }
    if (p.n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s: empty line; write a space as %s",
                       where, space);
    if (!v->words && same(space, p))
        p = (piece){" ", 1};
    else if (!v->words && !is_name(p) && bm_utf8_character(p.at, NULL) != p.n)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: \"%s\" is not one character, and symbols of this "
                       "vocabulary are characters or names such as <unk>; "
                       "write a letter and its accent as one (Unicode's form "
                       "NFC)",
                       where, text);
    for (size_t i = 0; i < p.n; i++)
        if (is_space(p.at[i]) && (v->words || p.n > 1 || p.at[i] != ' '))
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s: white space in \"%s\"; the one symbol that has "
                           "it is %s",
                           where, text, space);
    BM_TRY(add(v, p, &fresh));
    if (!fresh)
        return BM_FAIL(BM_ERR_FORMAT, "%s: duplicate symbol \"%s\"", where,
                       text);
    return BM_OK;
}

static bm_status parse(bm_vocab **out, const char *text, bool words,
                       const char *path)
{
    char where[PATH_MAX + 32];
    size_t bad = bm_utf8_length(text), line = 0;
    bm_vocab *v = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_vocab_new(&v, words));
    for (const char *at = text; *at != '\0';) {
        size_t n = strcspn(at, "\n");
        size_t end = n > 0 && at[n - 1] == '\r' ? n - 1 : n;

        line++;
        if ((size_t)(at - text) + n > bad)
            BM_FAIL_DONE(BM_ERR_FORMAT, "%s: not UTF-8",
                         place(where, path, line));
        BM_TRY_DONE(add_line(v, (piece){at, end}, path, line));
        at += at[n] == '\n' ? n + 1 : n;
    }
    if (line == 0)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: no symbols; line 1 must be %s",
                     place(where, path, 1), blank);
    *out = v;
    v = NULL;
done:
    bm_vocab_free(v);
    return status;
}

bm_status bm_vocab_parse(bm_vocab **out, const char *text, bool words)
{
    return parse(out, text, words, NULL);
}

bm_status bm_vocab_read(bm_vocab **out, const char *path, bool words)
{
    char inside[PATH_MAX];
    const char *file = path, *kind = NULL;
    char *text = NULL, *symbols = NULL, *table = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    if (bm_is_folder(path)) {
        BM_TRY(bm_path_join(inside, path, "vocab.txt"));
        file = inside;
    }
    kind = bm_file_kind(file);
    if (kind != NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s is %s, not a vocabulary", file, kind);
    BM_TRY(bm_file_read(file, LARGEST_FILE, &text, &size));
    if (strlen(text) != size)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: byte %zu is zero; not a text file",
                     file, strlen(text));
    symbols = text + bm_utf8_mark(text);
    if (bm_symbol_table_is(symbols))
        BM_TRY_DONE(
            bm_symbol_table_convert(&table, symbols, blank, words, file));
    BM_TRY_DONE(parse(out, table != NULL ? table : symbols, words, file));
done:
    free(table);
    free(text);
    return status;
}

bool bm_vocab_is_table(const char *path)
{
    char head[64] = "";
    FILE *file = NULL;
    struct stat info;
    size_t n = 0;

    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode))
        return false;
    file = fopen(path, "r");
    if (file == NULL)
        return false;
    n = fread(head, 1, sizeof head - 1, file);
    fclose(file);
    head[n] = '\0';
    return bm_symbol_table_is(head + bm_utf8_mark(head));
}

static const char *spelled(const bm_vocab *v, size_t class)
{
    const char *symbol = v->symbols[class];
    return symbol[0] == ' ' ? space : symbol;
}

static bm_status print(const bm_vocab *v, char **out, size_t *length)
{
    size_t size = 1;
    char *text = NULL, *at = NULL;

    for (size_t k = 0; k < v->n; k++)
        size += strlen(spelled(v, k)) + 1;
    text = malloc(size);
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to print %zu symbols", v->n);
    at = text;
    for (size_t k = 0; k < v->n; k++)
        at += sprintf(at, "%s\n", spelled(v, k));
    *out = text;
    *length = size - 1;
    return BM_OK;
}

bm_status bm_vocab_print(const bm_vocab *v, char **out)
{
    size_t length = 0;
    return print(v, out, &length);
}

bm_status bm_vocab_copy(bm_vocab **out, const bm_vocab *v)
{
    char *text = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_vocab_print(v, &text));
    status = bm_vocab_parse(out, text, v->words);
    if (status == BM_OK)
        (*out)->right_to_left = v->right_to_left;
    free(text);
    return status;
}

void bm_vocab_set_right_to_left(bm_vocab *v, bool yes)
{
    v->right_to_left = yes;
}

bool bm_vocab_right_to_left(const bm_vocab *v)
{
    return v->right_to_left;
}

bm_status bm_vocab_write(const bm_vocab *v, const char *path)
{
    char *text = NULL;
    size_t length = 0;
    bm_status status = BM_OK;

    BM_TRY(print(v, &text, &length));
    status = bm_file_write(path, text, length);
    free(text);
    return status;
}

bm_status bm_vocab_learn(bm_vocab *v, const char *text)
{
    cursor c = begin(text, v->words);
    size_t bad = bm_utf8_length(text);
    bool fresh = false;

    if (text[bad] != '\0')
        return BM_FAIL(BM_ERR_FORMAT,
                       "text is not UTF-8 at byte %zu: \"%.60s\"", bad, text);
    for (piece p = next(&c); p.at != NULL; p = next(&c))
        BM_TRY(add(v, p, &fresh));
    return BM_OK;
}

static int by_bytes(const void *a, const void *b)
{
    const char *const *x = a, *const *y = b;
    return strcmp(*x, *y);
}

void bm_vocab_sort(bm_vocab *v)
{
    qsort(v->symbols + 1, v->n - 1, sizeof *v->symbols, by_bytes);
    index_all(v);
}

size_t bm_vocab_size(const bm_vocab *v)
{
    return v->n;
}

const char *bm_vocab_symbol(const bm_vocab *v, int32_t class)
{
    BM_ASSERT(class >= 0 && (size_t) class < v->n);
    return v->symbols[class];
}

bool bm_vocab_words(const bm_vocab *v)
{
    return v->words;
}

bool bm_vocab_has_characters(const bm_vocab *v)
{
    bool single = true;

    for (size_t k = 1; single && k < v->n; k++) {
        const char *symbol = v->symbols[k];
        size_t n = strlen(symbol);

        single =
            bm_utf8_character(symbol, NULL) == n || is_name((piece){symbol, n});
    }
    return single;
}

int32_t bm_vocab_space(const bm_vocab *v)
{
    for (size_t k = 1; k < v->n; k++)
        if (strcmp(v->symbols[k], " ") == 0)
            return (int32_t)k;
    return -1;
}

int32_t bm_vocab_class(const bm_vocab *v, const char *symbol)
{
    bool is_character = !v->words && strcmp(symbol, space) == 0;
    const char *text = is_character ? " " : symbol;

    return v->table[slot(v, (piece){text, strlen(text)})];
}

bool bm_vocab_equal(const bm_vocab *a, const bm_vocab *b)
{
    bool equal = a->words == b->words && a->n == b->n;

    for (size_t k = 0; equal && k < a->n; k++)
        equal = strcmp(a->symbols[k], b->symbols[k]) == 0;
    return equal;
}

bm_status bm_text_nfc(const char *text, char **out)
{
    static const bm_text_rules nfc = {.form = BM_TEXT_NFC};

    return bm_text_apply(&nfc, text, out);
}

bool bm_vocab_is_nfc(const bm_vocab *v)
{
    bool nfc = true;

    for (size_t k = 0; nfc && k < v->n; k++) {
        char *composed = NULL;

        nfc = bm_text_nfc(v->symbols[k], &composed) == BM_OK &&
              strcmp(composed, v->symbols[k]) == 0;
        free(composed);
    }
    return nfc;
}

/* As many whole characters of a symbol as fit into 64 bytes. */
static void show(piece p, char *out)
{
    size_t n = 0, k = 0;

    while (n < p.n && (k = bm_utf8_character(p.at + n, NULL)) > 0 && n + k < 64)
        n += k;
    n = n == 0 ? 1 : n; /* one byte that is not UTF-8 */
    memcpy(out, p.at, n);
    out[n] = '\0';
}

/* The text of n labels, with where[i] <- the byte at which label i begins; where:
 * [n], or NULL. */
static bm_status spell(const bm_vocab *v, const int32_t *labels, size_t n,
                       char **out, size_t *where)
{
    size_t size = 1;
    char *text = NULL, *at = NULL;

    for (size_t i = 0; i < n; i++) {
        if (labels[i] < 0 || (size_t)labels[i] >= v->n)
            return BM_FAIL(BM_ERR_ARG, "label %d is outside [0, %zu)",
                           labels[i], v->n);
        size += strlen(v->symbols[labels[i]]) + 1;
    }
    text = at = malloc(size);
    if (text == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a text of %zu bytes",
                       size);
    for (size_t i = 0; i < n; i++) {
        bool shown = labels[i] != 0; /* the blank is not */

        if (shown && v->words && at != text)
            *at++ = ' ';
        if (where != NULL)
            where[i] = (size_t)(at - text);
        if (shown)
            at += sprintf(at, "%s", v->symbols[labels[i]]);
    }
    *at = '\0';
    *out = text;
    return BM_OK;
}

bm_status bm_vocab_spell(const bm_vocab *v, const int32_t *labels, size_t n,
                         char **out)
{
    return spell(v, labels, n, out, NULL);
}

/* Label i runs to the right, as label i - 1 and, between words, the space do. */
static bool goes_on(const bm_vocab *v, const bool *runs_right,
                    const size_t *where, size_t i)
{
    return i > 0 && runs_right[where[i]] && runs_right[where[i - 1]] &&
           (!v->words || where[i] == 0 || runs_right[where[i] - 1]);
}

/* order [n] <- that of the text for labels as the frames have them, or back. join: of
 * bm_text_runs_right. */
static bm_status find_order(const bm_vocab *v, const int32_t *labels, size_t n,
                            bool join, size_t *order)
{
    size_t *where = NULL;
    bool *runs_right = NULL;
    char *text = NULL;
    bm_status status = BM_OK;

    for (size_t i = 0; i < n; i++)
        order[i] = i;
    if (!v->right_to_left)
        return BM_OK;
    where = calloc(n + 1, sizeof *where);
    if (where == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to order %zu labels", n);
    BM_TRY_DONE(spell(v, labels, n, &text, where));
    runs_right = calloc(strlen(text) + 1, sizeof *runs_right);
    if (runs_right == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to order %zu labels", n);
    BM_TRY_DONE(bm_text_runs_right(text, join, runs_right));
    for (size_t from = 0, to = 0; from < n; from = to) {
        for (to = from + 1; to < n && goes_on(v, runs_right, where, to);)
            to++;
        for (size_t i = from; i < to; i++)
            order[i] = from + to - 1 - i;
    }
done:
    free(where);
    free(runs_right);
    free(text);
    return status;
}

/* Puts labels [n] in an order. Runs are reversed: labels change in pairs. */
static void rearrange(int32_t *labels, size_t n, const size_t *order)
{
    for (size_t i = 0; i < n; i++)
        if (order[i] > i) {
            int32_t label = labels[i];

            labels[i] = labels[order[i]];
            labels[order[i]] = label;
        }
}

/* Puts labels [n] of a text in the order of the frames. */
static bm_status turn(const bm_vocab *v, int32_t *labels, size_t n)
{
    size_t *order = NULL;
    bm_status status = BM_OK;

    if (!v->right_to_left)
        return BM_OK;
    order = malloc((n + 1) * sizeof *order);
    if (order == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to order %zu labels", n);
    status = find_order(v, labels, n, false, order);
    if (status == BM_OK)
        rearrange(labels, n, order);
    free(order);
    return status;
}

bm_status bm_vocab_order(const bm_vocab *v, const int32_t *labels, size_t n,
                         size_t *order)
{
    size_t bytes = n * sizeof *labels;
    int32_t *again = malloc(bytes + 1);
    bm_status status = BM_OK;

    if (again == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to order %zu labels", n);
    memcpy(again, labels, bytes);
    BM_TRY_DONE(find_order(v, again, n, true, order));
    rearrange(again, n, order);
    BM_TRY_DONE(turn(v, again, n));
    if (memcmp(again, labels, bytes) != 0) /* such a text looks different */
        BM_TRY_DONE(find_order(v, labels, n, false, order));
done:
    free(again);
    return status;
}

bm_status bm_vocab_encode(const bm_vocab *v, const char *text, int32_t *labels,
                          size_t *n, size_t *unknown, char *first)
{
    cursor c = begin(text, v->words);

    *n = *unknown = 0;
    if (first != NULL)
        *first = '\0';
    for (piece p = next(&c); p.at != NULL; p = next(&c)) {
        int32_t class = v->table[slot(v, p)];

        if (class > 0) { /* a text has no blanks */
            labels[(*n)++] = class;
            continue;
        }
        if (first != NULL && *unknown == 0)
            show(p, first);
        ++*unknown;
    }
    return turn(v, labels, *n);
}

bm_status bm_vocab_decode(const bm_vocab *v, const int32_t *labels, size_t n,
                          char **out)
{
    int32_t *turned = NULL;
    size_t *order = NULL;
    bm_status status = BM_OK;

    if (!v->right_to_left)
        return bm_vocab_spell(v, labels, n, out);
    turned = malloc((n + 1) * sizeof *turned);
    order = malloc((n + 1) * sizeof *order);
    if (turned == NULL || order == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to order %zu labels", n);
    memcpy(turned, labels, n * sizeof *turned);
    BM_TRY_DONE(bm_vocab_order(v, labels, n, order));
    rearrange(turned, n, order);
    BM_TRY_DONE(bm_vocab_spell(v, turned, n, out));
done:
    free(turned);
    free(order);
    return status;
}
