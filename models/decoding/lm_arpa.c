/*
 * lm_arpa.c - reads ARPA files of n-grams, plain or compressed with gzip. Numbers
 * in the file are not trusted: memory grows with the lines that were read.
 */
#include "models/decoding/lm_parts.h"

#include "core/grow.h"
#include "core/text/printable.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>

enum { LONGEST_LINE = 1 << 16 };

/* log10 p of <unk> in a model without it: what KenLM takes. */
static const float unseen = -100;

typedef struct reader {
    gzFile file;
    const char *path;
    size_t number; /* of the line, from 1 */
    char *line;    /* [LONGEST_LINE + 2], without its end */
    bool ended;
    unsigned long long stated[BM_LM_MOST]; /* numbers of n-grams */
    size_t room_words;
    uint32_t *table; /* [slots]: a word, or BM_LM_NONE */
    size_t slots;    /* a power of two */
    bm_lm_source *out;
} reader;

bool bm_lm_source_add(bm_lm_source *s, int k, const bm_lm_gram *g)
{
    if (bm_grow(&s->grams[k - 1], s->counts[k - 1], &s->room[k - 1],
                sizeof *g) != BM_OK)
        return false;
    s->grams[k - 1][s->counts[k - 1]++] = *g;
    return true;
}

void bm_lm_source_free(bm_lm_source *s)
{
    for (size_t i = 0; i < s->n_words; i++)
        free(s->words[i]);
    free(s->words);
    for (int k = 0; k < BM_LM_MOST; k++)
        free(s->grams[k]);
}

/* ---- lines --------------------------------------------------------------- */

static bm_status fail(const reader *r, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bm_status fail(const reader *r, const char *format, ...)
{
    char words[400];
    va_list list;

    va_start(list, format);
    vsnprintf(words, sizeof words, format, list);
    va_end(list);
    return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: %s", r->path, r->number, words);
}

/* Fails if the file did not end where it should. */
static bm_status check_end(const reader *r)
{
    int error = Z_OK;
    const char *text = gzerror(r->file, &error);

    if (error == Z_ERRNO)
        return BM_FAIL(BM_ERR_IO, "%s cannot be read: %s", r->path,
                       strerror(errno));
    if (error == Z_MEM_ERROR)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to read %s", r->path);
    if (error != Z_OK && error != Z_STREAM_END)
        return fail(r,
                    "the compressed file is damaged or incomplete (%s); make "
                    "or copy it again",
                    text);
    return BM_OK;
}

/* The next line, or r->ended. */
static bm_status next_line(reader *r)
{
    size_t n = 0;

    r->ended = gzgets(r->file, r->line, LONGEST_LINE + 2) == NULL;
    if (r->ended) {
        r->line[0] = '\0';
        return check_end(r);
    }
    r->number++;
    n = strlen(r->line);
    if (n > 0 && r->line[n - 1] == '\n')
        n--;
    else if (gzeof(r->file) && n <= LONGEST_LINE)
        BM_TRY(check_end(r));
    else
        return fail(r,
                    "the line has a zero byte or more than %d bytes; this is "
                    "no ARPA file",
                    LONGEST_LINE);
    while (n > 0 && (r->line[n - 1] == '\r' || r->line[n - 1] == ' ' ||
                     r->line[n - 1] == '\t'))
        n--;
    r->line[n] = '\0';
    return BM_OK;
}

/* The next line that is not empty, or r->ended. */
static bm_status next_full_line(reader *r)
{
    do
        BM_TRY(next_line(r));
    while (!r->ended && r->line[0] == '\0');
    return BM_OK;
}

/* Cuts the next word off a line; NULL at its end. */
static char *next_word(char **at)
{
    char *word = *at + strspn(*at, " \t");
    size_t n = strcspn(word, " \t");

    if (n == 0)
        return NULL;
    *at = word + n;
    if (**at != '\0')
        *(*at)++ = '\0';
    return word;
}

static bool number(const char *word, float *out)
{
    char *end = NULL;

    if (word == NULL || strpbrk(word, "xXnN") != NULL)
        return false;
    *out = strtof(word, &end);
    return *end == '\0' && end != word && isfinite(*out);
}

/* ---- words --------------------------------------------------------------- */

/* The slot of a word in r->table, or the free one where it belongs. */
static size_t slot(const reader *r, const char *word)
{
    size_t i = XXH3_64bits(word, strlen(word)) & (r->slots - 1);

    BM_ASSERT(r->table != NULL);
    while (r->table[i] != BM_LM_NONE &&
           strcmp(r->out->words[r->table[i]], word) != 0)
        i = (i + 1) & (r->slots - 1);
    return i;
}

static bm_status no_memory(const reader *r)
{
    return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", r->path);
}

/* Adds a unigram; its word has the number of the unigram until sort_words. */
static bm_status add_word(reader *r, const char *word, float p, float backoff)
{
    bm_lm_source *s = r->out;
    bm_lm_gram g = {
        .words = {(uint32_t)s->n_words}, .p = p, .backoff = backoff};

    if (!bm_is_utf8(word))
        return fail(r,
                    "the word \"%.60s\" is not UTF-8; estimate the model from "
                    "a text in UTF-8. What cuts characters off a text, such as "
                    "sed, needs LC_ALL=C.UTF-8 for that",
                    word);
    if (s->n_words == UINT32_MAX - 1)
        return fail(r, "more than %u words", UINT32_MAX - 1);
    if (bm_grow(&s->words, s->n_words, &r->room_words, sizeof *s->words) !=
        BM_OK)
        return no_memory(r);
    s->words[s->n_words] = strdup(word);
    if (s->words[s->n_words] == NULL)
        return no_memory(r);
    s->n_words++;
    return bm_lm_source_add(s, 1, &g) ? BM_OK : no_memory(r);
}

/* A word with its unigram. */
typedef struct entry {
    char *word;
    bm_lm_gram gram;
} entry;

static int by_bytes(const void *a, const void *b)
{
    const entry *x = a, *y = b;
    return strcmp(x->word, y->word);
}

/* Numbers words in byte order, and makes the table. */
static bm_status sort_words(reader *r)
{
    bm_lm_source *s = r->out;
    entry *entries = malloc((s->n_words + 1) * sizeof *entries);

    if (entries == NULL)
        return no_memory(r);
    for (size_t i = 0; i < s->n_words; i++)
        entries[i] = (entry){s->words[i], s->grams[0][i]};
    qsort(entries, s->n_words, sizeof *entries, by_bytes);
    for (size_t i = 0; i < s->n_words; i++) {
        s->words[i] = entries[i].word;
        s->grams[0][i] = entries[i].gram;
        s->grams[0][i].words[0] = (uint32_t)i;
    }
    free(entries);
    for (r->slots = 16; r->slots < 2 * s->n_words; r->slots *= 2)
        continue;
    r->table = malloc(r->slots * sizeof *r->table);
    if (r->table == NULL)
        return no_memory(r);
    memset(r->table, 0xff, r->slots * sizeof *r->table); /* BM_LM_NONE */
    for (size_t i = 0; i < s->n_words; i++)
        r->table[slot(r, s->words[i])] = (uint32_t)i;
    for (size_t i = 1; i < s->n_words; i++)
        if (strcmp(s->words[i - 1], s->words[i]) == 0)
            return BM_FAIL(
                BM_ERR_FORMAT,
                "%s: the 1-gram \"%.60s\" occurs twice; remove one of "
                "them or estimate the model again",
                r->path, s->words[i]);
    return BM_OK;
}

static uint32_t word_number(const reader *r, const char *word)
{
    BM_ASSERT(r->table != NULL);
    return r->table[slot(r, word)];
}

/* <unk> or <UNK>; a model without is given one. */
static bm_status find_special(reader *r)
{
    bm_lm_source *s = r->out;
    bool known = false;

    for (size_t i = 0; i < s->n_words; i++)
        known = known || strcmp(s->words[i], "<unk>") == 0 ||
                strcmp(s->words[i], "<UNK>") == 0;
    if (!known)
        BM_TRY(add_word(r, "<unk>", unseen, 0));
    BM_TRY(sort_words(r));
    s->begin = word_number(r, "<s>");
    s->end = word_number(r, "</s>");
    s->unknown = word_number(r, "<unk>");
    if (s->unknown == BM_LM_NONE)
        s->unknown = word_number(r, "<UNK>");
    return BM_OK;
}

/* ---- sections ------------------------------------------------------------ */

/* IRSTLM has files with the sections of an ARPA file and other numbers in
 * them. */
static bm_status check_first_line(const reader *r)
{
    if (strncmp(r->line, "iARPA", 5) == 0)
        return fail(r, "an intermediate file of IRSTLM; make an ARPA file of "
                       "it: compile-lm FILE --text=yes words.arpa");
    if (strncmp(r->line, "qARPA", 5) == 0)
        return fail(r, "a quantised model of IRSTLM; give the ARPA file that "
                       "it was made of");
    return BM_OK;
}

/* \data\ and the numbers of n-grams; ends at the line after them. */
static bm_status read_data(reader *r)
{
    int k = 0;
    unsigned long long n = 0;
    char rest = '\0';

    BM_TRY(next_line(r));
    memmove(r->line, r->line + bm_utf8_mark(r->line),
            strlen(r->line + bm_utf8_mark(r->line)) + 1);
    BM_TRY(check_first_line(r));
    while (!r->ended && strcmp(r->line, "\\data\\") != 0)
        BM_TRY(next_line(r));
    if (r->ended)
        return fail(r,
                    "there is no line \\data\\; this is neither an ARPA file "
                    "nor one that bmuf lm made");
    for (;;) {
        BM_TRY(next_full_line(r));
        if (strncmp(r->line, "ngram", 5) != 0)
            break;
        if (sscanf(r->line, "ngram %d = %llu %c", &k, &n, &rest) != 2)
            return fail(r, "\"%.60s\" is not of the form ngram 1=1000",
                        r->line);
        if (k > BM_LM_MOST)
            return fail(r, "%d-grams; the longest that are read have %d words",
                        k, BM_LM_MOST);
        if (k != r->out->order + 1)
            return fail(r,
                        "the number of %d-grams where that of %d-grams is "
                        "expected",
                        k, r->out->order + 1);
        r->stated[r->out->order++] = n;
    }
    if (r->out->order == 0)
        return fail(r, "no line such as ngram 1=1000 after \\data\\");
    return BM_OK;
}

static bm_status read_gram(reader *r, int k)
{
    char *at = r->line, *word = next_word(&at), *words[BM_LM_MOST] = {NULL};
    bm_lm_gram g = {.words = {0}};

    if (!number(word, &g.p))
        return fail(
            r,
            "expected log10 of the probability of a %d-gram, found \"%.60s\"",
            k, word != NULL ? word : "");
    if (g.p > 0)
        return fail(r, "log10 of a probability is at most 0, not %g",
                    (double)g.p);
    for (int i = 0; i < k; i++) {
        words[i] = next_word(&at);
        if (words[i] == NULL)
            return fail(r, "a %d-gram has %d words, not %d", k, k, i);
    }
    word = next_word(&at);
    if (word != NULL && !number(word, &g.backoff))
        return fail(r,
                    "expected a back-off weight after the %s, found \"%.60s\"",
                    k == 1 ? "word" : "words", word);
    if (next_word(&at) != NULL)
        return fail(r, "more than %d words and a back-off weight in a %d-gram",
                    k, k);
    if (k == 1)
        return add_word(r, words[0], g.p, g.backoff);
    for (int i = 0; i < k; i++) {
        g.words[k - 1 - i] = word_number(r, words[i]);
        if (g.words[k - 1 - i] == BM_LM_NONE)
            return fail(r, "\"%.60s\" is not among the 1-grams", words[i]);
    }
    return bm_lm_source_add(r->out, k, &g) ? BM_OK : no_memory(r);
}

static bm_status read_section(reader *r, int k)
{
    char title[24];
    size_t n = 0;

    snprintf(title, sizeof title, "\\%d-grams:", k);
    if (r->ended || strcmp(r->line, title) != 0)
        return fail(r, "%s is missing; the file is incomplete or no ARPA file",
                    title);
    for (;;) {
        BM_TRY(next_full_line(r));
        if (r->ended || r->line[0] == '\\')
            break;
        n++;
        BM_TRY(read_gram(r, k));
    }
    if (n != r->stated[k - 1])
        return fail(r,
                    "there are %zu %d-grams and not %llu, as the file says at "
                    "its beginning; it is incomplete or was edited",
                    n, k, r->stated[k - 1]);
    if (k == 1 && n == 0)
        return fail(r, "no words");
    return k == 1 ? find_special(r) : BM_OK;
}

static bm_status read_all(reader *r)
{
    BM_TRY(read_data(r));
    for (int k = 1; k <= r->out->order; k++)
        BM_TRY(read_section(r, k));
    if (r->ended || strcmp(r->line, "\\end\\") != 0)
        return fail(r, "\\end\\ is missing; the file is incomplete");
    return BM_OK;
}

bm_status bm_lm_arpa_read(bm_lm_source *out, int fd, const char *path)
{
    reader r = {.path = path, .out = out};
    bm_status status = BM_OK;
    int own = dup(fd);

    r.line = malloc(LONGEST_LINE + 2);
    r.file = own >= 0 ? gzdopen(own, "rb") : NULL;
    if (r.line == NULL || r.file == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to read %s", path);
    gzbuffer(r.file, 1 << 17);
    status = read_all(&r);
done:
    if (r.file != NULL)
        gzclose(r.file);
    else if (own >= 0)
        close(own);
    free(r.line);
    free(r.table);
    return status;
}
