/* hot_phrases.c - hot words as they are written, spelled by the vocabulary or the
 * lexicon. */
#include "models/decoding/hot_phrases.h"

#include "core/file/file.h"
#include "core/grow.h"
#include "core/text/printable.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 28, MOST_SPELLINGS = 1000 };

/* Phrases, and where they are from, for messages. */
typedef struct phrases {
    bm_hot_phrase *list;
    size_t n, room;
    size_t before;    /* of them: those of other lines */
    const char *path; /* NULL: the command line */
    size_t number;
    bool nfc; /* the vocabulary is in Unicode's form C */
} phrases;

static void free_phrases(phrases *p)
{
    for (size_t i = 0; i < p->n; i++)
        free((int32_t *)p->list[i].labels);
    free(p->list);
}

static bm_status no_memory(void)
{
    return BM_FAIL(BM_ERR_MEMORY, "no memory for hot words");
}

/* Takes labels. */
static bm_status add_phrase(phrases *p, int32_t *labels, size_t n, double boost)
{
    if (bm_grow(&p->list, p->n, &p->room, sizeof *p->list) != BM_OK) {
        free(labels);
        return no_memory();
    }
    p->list[p->n++] = (bm_hot_phrase){labels, n, boost};
    return BM_OK;
}

static bm_status bad_phrase(const phrases *p, const char *text,
                            const char *what)
{
    if (p->path == NULL)
        return BM_FAIL(BM_ERR_ARG, "hot word \"%.60s\": %s", text, what);
    return BM_FAIL(BM_ERR_FORMAT, "%s:%zu: hot word \"%.60s\": %s", p->path,
                   p->number, text, what);
}

/* Adds a phrase, spelled by the symbols of the vocabulary. */
static bm_status spell_composed(const bm_hot_source *s, phrases *p,
                                const char *text, double boost)
{
    size_t n = 0, unknown = 0, k = 0;
    int32_t *labels = malloc((2 * strlen(text) + 1) * sizeof *labels);
    char symbol[64] = "", what[200];
    bm_status status = BM_OK;

    if (labels == NULL)
        return no_memory();
    status = bm_vocab_encode(s->vocab, text, labels, &n, &unknown, symbol);
    if (status != BM_OK) {
        free(labels);
        return status;
    }
    if (unknown > 0 || n == 0) {
        free(labels);
        snprintf(what, sizeof what,
                 "the vocabulary of the network lacks \"%s\"", symbol);
        return bad_phrase(p, text, n == 0 && unknown == 0 ? "no word" : what);
    }
    if (s->space >= 0) {
        for (size_t i = 0; i < n; i++)
            labels[i] = labels[i] == s->space ? 0 : labels[i];
        return add_phrase(p, labels, n, boost);
    }
    for (k = n; k-- > 1;) { /* each label is a word */
        labels[2 * k] = labels[k];
        labels[2 * k - 1] = 0;
    }
    return add_phrase(p, labels, 2 * n - 1, boost);
}

static bm_status spell(const bm_hot_source *s, phrases *p, const char *text,
                       double boost)
{
    char *composed = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_lexicon_compose(text, p->nfc, &composed));
    status = spell_composed(s, p, composed, boost);
    free(composed);
    return status;
}

/* Adds all spellings of the words of a phrase after labels [0, n), which has
 * room for all. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bm_status spell_words(const bm_hot_source *s, phrases *p,
                             const char *text, int32_t *labels, size_t n,
                             double boost, const char *all)
{
    const bm_lexicon *lexicon = s->lexicon;
    const char *word = text + strspn(text, " \t");
    size_t length = strcspn(word, " \t"), found = 0;

    if (length == 0) {
        int32_t *copy = malloc((n + 1) * sizeof *copy);

        if (copy == NULL)
            return no_memory();
        memcpy(copy, labels, n * sizeof *copy);
        if (n == 0 || p->n - p->before == MOST_SPELLINGS) {
            free(copy);
            return bad_phrase(p, all,
                              n == 0 ? "no word" : "too many spellings");
        }
        return add_phrase(p, copy, n, boost);
    }
    if (n > 0)
        labels[n++] = 0;
    for (size_t i = 0; i < lexicon->n_spellings; i++) {
        const char *known = lexicon->texts[lexicon->words[i]];

        if (strncmp(known, word, length) != 0 || known[length] != '\0')
            continue;
        found++;
        BM_TRY(spell_words(s, p, word + length, labels,
                           n + bm_lexicon_spelling(lexicon, i, labels + n),
                           boost, all));
    }
    return found > 0 ? BM_OK
                     : bad_phrase(p, all, "a word is not in the lexicon");
}

/* "WORDS" or "WORDS=BOOST". */
static bm_status add_hot(const bm_hot_source *s, phrases *p, const char *given)
{
    char *text = strdup(given), *equals = NULL, *end = NULL;
    double boost = s->boost;
    int32_t *labels = NULL;
    bm_status status = BM_OK;

    if (text == NULL)
        return no_memory();
    equals = strrchr(text, '=');
    if (equals != NULL) {
        boost = strtod(equals + 1, &end);
        if (end == equals + 1 || *end != '\0')
            BM_TRY_DONE(bad_phrase(
                p, given, "expected a number after '=', as in WORD=5"));
        *equals = '\0';
    }
    if (!(boost > 0) || !isfinite(boost))
        BM_TRY_DONE(bad_phrase(p, given, "the boost must be greater than 0"));
    if (s->lexicon != NULL && s->space < 0) {
        size_t longest = 0, n = 0;

        for (size_t i = 0; i < s->lexicon->n_spellings; i++) {
            n = bm_lexicon_spelling(s->lexicon, i, NULL);
            longest = n > longest ? n : longest;
        }
        labels = malloc((longest + 1) * (strlen(text) + 1) * sizeof *labels);
        if (labels == NULL)
            BM_TRY_DONE(no_memory());
        p->before = p->n;
        status = spell_words(s, p, text, labels, 0, boost, given);
    } else {
        status = spell(s, p, text, boost);
    }
done:
    free(labels);
    free(text);
    return status;
}

static bm_status read_file(const bm_hot_source *s, phrases *p, const char *path)
{
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(path, LARGEST_FILE, &text, &size));
    p->path = path;
    for (char *line = text + bm_utf8_mark(text);
         line != NULL && status == BM_OK; line = rest) {
        size_t n = strcspn(line, "\n");

        rest = line[n] == '\n' ? line + n + 1 : NULL;
        while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL)
            n--;
        line[n] = '\0';
        p->number++;
        if (line[strspn(line, " \t")] != '\0')
            status = add_hot(s, p, line);
    }
    free(text);
    return status;
}

bm_status bm_hot_read(bm_hot_words **out, const bm_hot_source *s)
{
    phrases p = {.nfc = bm_vocab_is_nfc(s->vocab)};
    bm_status status = BM_OK;

    for (size_t i = 0; i < s->n_words; i++)
        BM_TRY_DONE(add_hot(s, &p, s->words[i]));
    if (s->path != NULL)
        BM_TRY_DONE(read_file(s, &p, s->path));
    if (p.n > 0)
        BM_TRY_DONE(bm_hot_new(out, p.list, p.n));
done:
    free_phrases(&p);
    return status;
}
