/* lexicon.c - reads lexicons and makes trees of them, level by level. */
#include "models/decoding/lexicon.h"

#include "core/file/file.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "core/text/words.h"

#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 30 };

static const char blanks[] = " \t\r\v\f";

static bm_status no_memory(void)
{
    return BM_FAIL(BM_ERR_MEMORY, "no memory for a lexicon");
}

/* ---- lists --------------------------------------------------------------- */

bm_status bm_lexicon_list_add(bm_lexicon_list *list, const char *text,
                              const int32_t *labels, size_t n)
{
    bm_lexicon_entry *e = NULL;

    BM_TRY(
        bm_grow(&list->entries, list->n, &list->room, sizeof *list->entries));
    e = &list->entries[list->n];
    e->text = strdup(text);
    e->labels = malloc((n + 1) * sizeof *labels);
    e->n = n;
    if (e->text == NULL || e->labels == NULL) {
        free(e->text);
        free(e->labels);
        return no_memory();
    }
    if (n > 0)
        memcpy(e->labels, labels, n * sizeof *labels);
    list->n++;
    return BM_OK;
}

void bm_lexicon_list_free(bm_lexicon_list *list)
{
    for (size_t i = 0; i < list->n; i++) {
        free(list->entries[i].text);
        free(list->entries[i].labels);
    }
    free(list->entries);
    *list = (bm_lexicon_list){0};
}

/* ---- trees --------------------------------------------------------------- */

static int by_text(const void *a, const void *b)
{
    const bm_lexicon_entry *x = a, *y = b;
    return strcmp(x->text, y->text);
}

static int by_labels(const void *a, const void *b)
{
    const bm_lexicon_entry *x = a, *y = b;
    size_t n = x->n < y->n ? x->n : y->n;

    for (size_t i = 0; i < n; i++)
        if (x->labels[i] != y->labels[i])
            return x->labels[i] < y->labels[i] ? -1 : 1;
    if (x->n != y->n)
        return x->n < y->n ? -1 : 1;
    return x->word != y->word ? (x->word < y->word ? -1 : 1) : 0;
}

/* Numbers words; the lexicon takes their texts. */
static bool number_words(bm_lexicon *l, bm_lexicon_list *list)
{
    qsort(list->entries, list->n, sizeof *list->entries, by_text);
    l->texts = calloc(list->n + 1, sizeof *l->texts);
    if (l->texts == NULL)
        return false;
    for (size_t i = 0; i < list->n; i++) {
        bm_lexicon_entry *e = &list->entries[i];

        if (l->n_words == 0 || strcmp(l->texts[l->n_words - 1], e->text) != 0) {
            l->texts[l->n_words++] = e->text;
            e->text = NULL;
        }
        e->word = (uint32_t)(l->n_words - 1);
    }
    return true;
}

/* Sorts by labels; entries without labels and repeated ones go. */
static void sort_spellings(bm_lexicon_list *list)
{
    size_t n = 0;

    qsort(list->entries, list->n, sizeof *list->entries, by_labels);
    for (size_t i = 0; i < list->n; i++) {
        bm_lexicon_entry *e = &list->entries[i];

        if (e->n == 0 || (n > 0 && by_labels(&list->entries[n - 1], e) == 0)) {
            free(e->text);
            free(e->labels);
        } else {
            list->entries[n++] = *e;
        }
    }
    list->n = n;
}

/* The entries below a node: those that begin with its labels. */
typedef struct range {
    size_t begin, end, depth;
} range;

/* Splits the entries below node i into its own and those of its children. */
static void branch(bm_lexicon *l, const bm_lexicon_list *list, range *ranges,
                   size_t i)
{
    range r = ranges[i];
    bm_lexicon_node *node = &l->nodes[i];
    size_t at = r.begin;

    while (at < r.end && list->entries[at].n == r.depth)
        l->ends[at++] = (uint32_t)i;
    node->spelling = (uint32_t)r.begin;
    node->spellings = (uint32_t)(at - r.begin);
    node->child = (uint32_t)l->n_nodes;
    while (at < r.end) {
        int32_t label = list->entries[at].labels[r.depth];
        size_t begin = at;

        while (at < r.end && list->entries[at].labels[r.depth] == label)
            at++;
        ranges[l->n_nodes] = (range){begin, at, r.depth + 1};
        l->nodes[l->n_nodes++] =
            (bm_lexicon_node){.parent = (uint32_t)i, .label = label};
    }
    node->children = (uint32_t)l->n_nodes - node->child;
}

static bool make_tree(bm_lexicon *l, const bm_lexicon_list *list)
{
    size_t most = 1;
    range *ranges = NULL;

    for (size_t i = 0; i < list->n; i++)
        most += list->entries[i].n;
    if (most >= UINT32_MAX)
        return false;
    ranges = malloc(most * sizeof *ranges);
    l->nodes = calloc(most, sizeof *l->nodes);
    l->words = calloc(list->n + 1, sizeof *l->words);
    l->ends = calloc(list->n + 1, sizeof *l->ends);
    if (ranges == NULL || l->nodes == NULL || l->words == NULL ||
        l->ends == NULL) {
        free(ranges);
        return false;
    }
    for (size_t i = 0; i < list->n; i++)
        l->words[i] = list->entries[i].word;
    l->n_spellings = list->n;
    l->n_nodes = 1;
    ranges[0] = (range){0, list->n, 0};
    for (size_t i = 0; i < l->n_nodes; i++)
        branch(l, list, ranges, i);
    free(ranges);
    return true;
}

bm_status bm_lexicon_build(bm_lexicon **out, bm_lexicon_list *list)
{
    bm_lexicon *l = calloc(1, sizeof *l);
    bool made = l != NULL && number_words(l, list);

    if (made) {
        sort_spellings(list);
        made = make_tree(l, list);
    }
    if (!made) {
        bm_lexicon_free(l);
        return no_memory();
    }
    *out = l;
    return BM_OK;
}

void bm_lexicon_free(bm_lexicon *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n_words; i++)
        free(l->texts[i]);
    free(l->texts);
    free(l->nodes);
    free(l->words);
    free(l->ends);
    free(l);
}

uint32_t bm_lexicon_child(const bm_lexicon *l, uint32_t node, int32_t label)
{
    uint32_t low = l->nodes[node].child, high = low + l->nodes[node].children;
    uint32_t end = high;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (l->nodes[middle].label < label)
            low = middle + 1;
        else
            high = middle;
    }
    return low < end && l->nodes[low].label == label ? low : 0;
}

size_t bm_lexicon_spelling(const bm_lexicon *l, size_t spelling,
                           int32_t *labels)
{
    size_t n = 0, k = 0;

    for (uint32_t i = l->ends[spelling]; i != 0; i = l->nodes[i].parent)
        n++;
    k = n;
    for (uint32_t i = l->ends[spelling]; labels != NULL && i != 0;
         i = l->nodes[i].parent)
        labels[--k] = l->nodes[i].label;
    return n;
}

/* ---- spelling ------------------------------------------------------------ */

/* Words with their spellings, and those that cannot be spelled. */
typedef struct speller {
    const bm_vocab *vocab;
    bool nfc; /* the vocabulary is in Unicode's form C */
    bm_lexicon_list list;
    size_t left_out;
    char first[64]; /* of the words that were left out */
    char symbol[64];
} speller;

/* Counts a word that the vocabulary cannot spell. */
static void leave_out(speller *s, const char *word, const char *symbol)
{
    if (s->left_out++ > 0)
        return;
    snprintf(s->first, sizeof s->first, "%s", word);
    snprintf(s->symbol, sizeof s->symbol, "%s", symbol);
}

bm_status bm_lexicon_compose(const char *word, bool nfc, char **out)
{
    bm_status status = nfc ? bm_text_nfc(word, out) : BM_ERR_FORMAT;

    if (status != BM_ERR_FORMAT)
        return status;
    *out = strdup(word);
    return *out != NULL ? BM_OK : no_memory();
}

/* Adds a word, spelled by its characters, or leaves it out. A vocabulary of words
 * has the word itself. The word stays as it is written, also where its spelling is
 * composed. */
static bm_status spell(speller *s, const char *word)
{
    size_t n = 0, unknown = 0;
    int32_t *labels = NULL;
    char symbol[64] = "", *spelling = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_lexicon_compose(word, s->nfc, &spelling));
    labels = malloc((strlen(spelling) + 1) * sizeof *labels);
    if (labels == NULL)
        status = no_memory();
    else
        status =
            bm_vocab_encode(s->vocab, spelling, labels, &n, &unknown, symbol);
    if (status == BM_OK && unknown == 0)
        status = bm_lexicon_list_add(&s->list, word, labels, n);
    else if (status == BM_OK)
        leave_out(s, word, symbol);
    free(labels);
    free(spelling);
    return status;
}

static bm_status finish(speller *s, bm_lexicon **out, const char *path)
{
    if (s->list.n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       s->left_out > 0
                           ? "%s: no word is spelled in the vocabulary of the "
                             "network: it lacks \"%s\" of \"%s\"; do upper and "
                             "lower case agree?"
                           : "%s has no words",
                       path, s->symbol, s->first);
    if (s->left_out > 0)
        bm_log(BM_WARNING,
               "%s: %s left out with symbols that the vocabulary of the "
               "network lacks, such as \"%s\" of \"%s\"",
               path, bm_count_noun((long long)s->left_out, "word").text,
               s->symbol, s->first);
    return bm_lexicon_build(out, &s->list);
}

/* A line with a word and its symbols. at: after the word. */
static bm_status read_symbols(speller *s, const char *word, char *at)
{
    int32_t *labels = malloc((strlen(at) + 1) * sizeof *labels);
    size_t n = 0;
    bm_status status = BM_OK;

    if (labels == NULL)
        return no_memory();
    while (*(at += strspn(at, blanks)) != '\0') {
        size_t length = strcspn(at, blanks);
        char end = at[length];
        int32_t label = 0;

        at[length] = '\0';
        label = bm_vocab_class(s->vocab, at);
        if (label <= 0) {
            leave_out(s, word, at);
            goto done;
        }
        labels[n++] = label;
        at += length;
        *at = end;
    }
    status = bm_lexicon_list_add(&s->list, word, labels, n);
done:
    free(labels);
    return status;
}

static bm_status read_line(speller *s, char *line)
{
    char *word = line + strspn(line, blanks);
    size_t n = strcspn(word, blanks);
    char *at = word + n;

    if (n == 0)
        return BM_OK;
    at += strspn(at, blanks);
    word[n] = '\0';
    return *at == '\0' ? spell(s, word) : read_symbols(s, word, at);
}

bm_status bm_lexicon_read(bm_lexicon **out, const char *path,
                          const bm_vocab *vocab)
{
    speller s = {.vocab = vocab, .nfc = bm_vocab_is_nfc(vocab)};
    char *text = NULL, *rest = NULL;
    size_t size = 0, bad = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(path, LARGEST_FILE, &text, &size));
    bad = bm_utf8_length(text);
    if (bad < size) {
        size_t number = 1;

        for (size_t i = 0; i < bad; i++)
            number += text[i] == '\n';
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s:%zu: the line is not UTF-8", path,
                     number);
    }
    for (char *line = text + bm_utf8_mark(text); line != NULL; line = rest) {
        rest = strchr(line, '\n');
        if (rest != NULL)
            *rest++ = '\0';
        BM_TRY_DONE(read_line(&s, line));
    }
    BM_TRY_DONE(finish(&s, out, path));
done:
    bm_lexicon_list_free(&s.list);
    free(text);
    return status;
}

bm_status bm_lexicon_of_lm(bm_lexicon **out, const bm_lm *lm, const char *path,
                           const bm_vocab *vocab)
{
    speller s = {.vocab = vocab, .nfc = bm_vocab_is_nfc(vocab)};
    bm_status status = BM_OK;

    for (uint32_t i = 0; i < bm_lm_count(lm, 1); i++)
        if (!bm_lm_is_special(lm, i))
            BM_TRY_DONE(spell(&s, bm_lm_word(lm, i)));
    BM_TRY_DONE(finish(&s, out, path));
done:
    bm_lexicon_list_free(&s.list);
    return status;
}
