/*
 * language.c - what is known of the language: how the words of a hypothesis are
 * scored.
 *
 * Words end in one of three ways. With a space in the vocabulary they end there:
 * what stands between spaces is a word of the lexicon or, at a price, another one.
 * Without a space but with a lexicon they end wherever a spelling does, and a label
 * outside is a word by itself. With neither, each label is a word.
 */
#include "models/decoding/language.h"

#include "core/file.h"
#include "core/log.h"
#include "models/decoding/hot_words.h"
#include "models/decoding/language_parts.h"
#include "models/decoding/lexicon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST_FILE = 1 << 28, MOST_SPELLINGS = 1000 };

typedef enum level { NO_MODEL, OF_SYMBOLS, OF_WORDS } level;

struct bm_language {
    bm_language_settings set;
    const bm_vocab *vocab; /* borrowed */
    int32_t space;
    level level;
    double weight; /* of log10 p */
    bm_lm *lm;
    bm_lexicon *lexicon;
    uint32_t
        *lm_words; /* numbers in lm: of the lexicon's words, or of classes */
    bm_hot_words *hot;
};

bm_language_settings bm_language_defaults(void)
{
    return (bm_language_settings){.hot_boost = 5,
                                  .lm_weight = 0.5,
                                  .word_score = 1.5,
                                  .unknown_score = -10};
}

/* ---- opening ------------------------------------------------------------- */

/* How a symbol is written in a model of symbols. */
static const char *written(const bm_vocab *vocab, int32_t class)
{
    const char *symbol = bm_vocab_symbol(vocab, class);

    return strcmp(symbol, " ") == 0 ? "<space>" : symbol;
}

static bool is_character(const char *text)
{
    size_t n = 1;

    if (strcmp(text, "<space>") == 0)
        return true;
    while (((unsigned char)text[n] & 0xc0) == 0x80)
        n++; /* further bytes of one character */
    return text[0] != '\0' && text[n] == '\0';
}

/* Are all of its words symbols of a vocabulary such as this? */
static bool is_of_symbols(const bm_lm *lm, const bm_vocab *vocab)
{
    bool all = true;

    for (uint32_t i = 0; all && i < bm_lm_count(lm, 1); i++)
        all = bm_lm_is_special(lm, i) || bm_vocab_words(vocab) ||
              is_character(bm_lm_word(lm, i));
    return all;
}

/* l->lm_words <- for each word of the lexicon, or each class. */
static bm_status find_words(bm_language *l)
{
    bool words = l->level == OF_WORDS;
    size_t n = words ? l->lexicon->n_words : bm_vocab_size(l->vocab);

    l->lm_words = calloc(n + 1, sizeof *l->lm_words);
    if (l->lm_words == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the words of a lexicon");
    for (size_t i = 0; i < n; i++)
        l->lm_words[i] =
            bm_lm_find(l->lm, words ? l->lexicon->texts[i]
                                    : written(l->vocab, (int32_t)i));
    return BM_OK;
}

/* Symbols of several characters may be phones or words. A model of words for
 * phones has other words than symbols; one for words may have many more. */
static bm_status check_units(const bm_language *l, size_t known)
{
    const char *other = NULL;
    size_t words = 0, others = 0;

    for (uint32_t i = 0; i < bm_lm_count(l->lm, 1); i++) {
        const char *word = bm_lm_word(l->lm, i);

        if (bm_lm_is_special(l->lm, i))
            continue;
        words++;
        if (bm_vocab_class(l->vocab, word) > 0)
            continue;
        other = others++ == 0 ? word : other;
    }
    if (2 * others <= words)
        return BM_OK;
    if (2 * known < bm_vocab_size(l->vocab) - 1)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %zu of its %zu words are not symbols of the "
                       "network, such as \"%s\"; if it is a model of words, "
                       "give --lexicon FILE",
                       l->set.lm, others, words, other);
    bm_log(BM_WARNING,
           "%s: %zu of its %zu words are not symbols of the network; if these "
           "are phones, give --lexicon FILE",
           l->set.lm, others, words);
    return BM_OK;
}

static bm_status check_symbols(const bm_language *l)
{
    const char *symbol = NULL;
    size_t known = 0;

    for (size_t k = 1; k < bm_vocab_size(l->vocab); k++)
        known += l->lm_words[k] != bm_lm_unknown(l->lm);
    if (bm_vocab_words(l->vocab) && known > 0)
        return check_units(l, known);
    symbol = bm_vocab_symbol(l->vocab, 1);
    if (known == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has no symbol of the network's vocabulary, not even "
                       "\"%s\"; do upper and lower case agree?%s",
                       l->set.lm, symbol,
                       bm_vocab_words(l->vocab)
                           ? " If it is a model of words, give --lexicon FILE"
                           : "");
    if (l->space >= 0 && l->lm_words[l->space] == bm_lm_unknown(l->lm))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is a model of characters without a space; write the "
                       "space as <space> in the text that it is estimated from",
                       l->set.lm);
    return BM_OK;
}

static bm_status open_files(bm_language *l)
{
    const bm_language_settings *s = &l->set;

    if (s->lexicon != NULL)
        BM_TRY(bm_lexicon_read(&l->lexicon, s->lexicon, l->vocab));
    if (s->lm == NULL)
        return BM_OK;
    BM_TRY(bm_lm_open(&l->lm, s->lm));
    l->level = is_of_symbols(l->lm, l->vocab) &&
                       !(bm_vocab_words(l->vocab) && l->lexicon != NULL)
                   ? OF_SYMBOLS
                   : OF_WORDS;
    if (l->level == OF_WORDS && l->lexicon == NULL)
        BM_TRY(bm_lexicon_of_lm(&l->lexicon, l->lm, s->lm, l->vocab));
    BM_TRY(find_words(l));
    return l->level == OF_SYMBOLS ? check_symbols(l) : BM_OK;
}

/* ---- hot words ----------------------------------------------------------- */

/* Phrases, and where they are from, for messages. */
typedef struct phrases {
    bm_hot_phrase *list;
    size_t n, room;
    size_t before;    /* of them: those of other lines */
    const char *path; /* NULL: the command line */
    size_t number;
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
    if (p->n == p->room) {
        size_t room = p->room == 0 ? 16 : 2 * p->room;
        void *grown = realloc(p->list, room * sizeof *p->list);

        if (grown == NULL) {
            free(labels);
            return no_memory();
        }
        p->list = grown;
        p->room = room;
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
static bm_status spell(const bm_language *l, phrases *p, const char *text,
                       double boost)
{
    size_t n = 0, unknown = 0, k = 0;
    int32_t *labels = malloc((2 * strlen(text) + 1) * sizeof *labels);
    char symbol[64] = "", what[200];

    if (labels == NULL)
        return no_memory();
    n = bm_vocab_encode(l->vocab, text, labels, &unknown, symbol);
    if (unknown > 0 || n == 0) {
        free(labels);
        snprintf(what, sizeof what,
                 "the vocabulary of the network lacks \"%s\"", symbol);
        return bad_phrase(p, text, n == 0 && unknown == 0 ? "no word" : what);
    }
    if (l->space >= 0) {
        for (size_t i = 0; i < n; i++)
            labels[i] = labels[i] == l->space ? 0 : labels[i];
        return add_phrase(p, labels, n, boost);
    }
    for (k = n; k-- > 1;) { /* each label is a word */
        labels[2 * k] = labels[k];
        labels[2 * k - 1] = 0;
    }
    return add_phrase(p, labels, 2 * n - 1, boost);
}

/* Adds all spellings of the words of a phrase after labels [0, n), which has
 * room for all. */
/* NOLINTNEXTLINE(misc-no-recursion) */
static bm_status spell_words(const bm_language *l, phrases *p, const char *text,
                             int32_t *labels, size_t n, double boost,
                             const char *all)
{
    const bm_lexicon *lexicon = l->lexicon;
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
        BM_TRY(spell_words(l, p, word + length, labels,
                           n + bm_lexicon_spelling(lexicon, i, labels + n),
                           boost, all));
    }
    return found > 0 ? BM_OK
                     : bad_phrase(p, all, "a word is not in the lexicon");
}

/* "WORDS" or "WORDS=BOOST". */
static bm_status add_hot(const bm_language *l, phrases *p, const char *given)
{
    char *text = strdup(given), *equals = NULL, *end = NULL;
    double boost = l->set.hot_boost;
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
    if (l->lexicon != NULL && l->space < 0) {
        size_t longest = 0, n = 0;

        for (size_t i = 0; i < l->lexicon->n_spellings; i++) {
            n = bm_lexicon_spelling(l->lexicon, i, NULL);
            longest = n > longest ? n : longest;
        }
        labels = malloc((longest + 1) * (strlen(text) + 1) * sizeof *labels);
        if (labels == NULL)
            BM_TRY_DONE(no_memory());
        p->before = p->n;
        status = spell_words(l, p, text, labels, 0, boost, given);
    } else {
        status = spell(l, p, text, boost);
    }
done:
    free(labels);
    free(text);
    return status;
}

static bm_status read_hot(const bm_language *l, phrases *p, const char *path)
{
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_read(path, LARGEST_FILE, &text, &size));
    p->path = path;
    for (char *line = text; line != NULL && status == BM_OK; line = rest) {
        size_t n = strcspn(line, "\n");

        rest = line[n] == '\n' ? line + n + 1 : NULL;
        while (n > 0 && strchr(" \t\r", line[n - 1]) != NULL)
            n--;
        line[n] = '\0';
        p->number++;
        if (line[strspn(line, " \t")] != '\0')
            status = add_hot(l, p, line);
    }
    free(text);
    return status;
}

static bm_status open_hot(bm_language *l)
{
    phrases p = {0};
    bm_status status = BM_OK;

    for (size_t i = 0; i < l->set.n_hot_words; i++)
        BM_TRY_DONE(add_hot(l, &p, l->set.hot_words[i]));
    if (l->set.hot_file != NULL)
        BM_TRY_DONE(read_hot(l, &p, l->set.hot_file));
    if (p.n > 0)
        BM_TRY_DONE(bm_hot_new(&l->hot, p.list, p.n));
done:
    free_phrases(&p);
    return status;
}

static bm_status check(const bm_language_settings *s)
{
    if (!(s->lm_weight >= 0) || !isfinite(s->lm_weight))
        return BM_FAIL(BM_ERR_ARG,
                       "the weight of a language model is at least 0, not %g",
                       s->lm_weight);
    if (!isfinite(s->word_score))
        return BM_FAIL(BM_ERR_ARG, "the score of a word is a number, not %g",
                       s->word_score);
    if (!(s->unknown_score < INFINITY))
        return BM_FAIL(BM_ERR_ARG,
                       "the score of an unknown word is a number or minus "
                       "infinity, not %g",
                       s->unknown_score);
    return BM_OK;
}

bm_status bm_language_open(bm_language **out,
                           const bm_language_settings *settings,
                           const bm_vocab *vocab)
{
    bm_language *l = NULL;
    bm_status status = BM_OK;

    BM_TRY(check(settings));
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a language");
    l->set = *settings;
    l->vocab = vocab;
    l->space = bm_vocab_space(vocab);
    l->weight = settings->lm_weight * log(10);
    BM_TRY_DONE(open_files(l));
    BM_TRY_DONE(open_hot(l));
    *out = l;
    l = NULL;
done:
    bm_language_close(l);
    return status;
}

void bm_language_close(bm_language *l)
{
    if (l == NULL)
        return;
    bm_lm_close(l->lm);
    bm_lexicon_free(l->lexicon);
    bm_hot_free(l->hot);
    free(l->lm_words);
    free(l);
}

const char *bm_language_word(const bm_language *l, int32_t word)
{
    BM_ASSERT(l->lexicon != NULL && word >= 0 &&
              (size_t)word < l->lexicon->n_words);
    return l->lexicon->texts[word];
}

/* ---- in the search ------------------------------------------------------- */

bool bm_language_has_words(const bm_language *l)
{
    return l->lexicon != NULL;
}

bool bm_language_scores_spaces(const bm_language *l)
{
    return l->level == OF_SYMBOLS && l->lexicon == NULL;
}

double bm_language_gain(const bm_language *l)
{
    double gain = l->hot != NULL ? bm_hot_gain(l->hot) : 0;

    gain += l->set.word_score > 0 ? l->set.word_score : 0;
    return gain + (l->set.unknown_score > 0 ? l->set.unknown_score : 0);
}

void bm_language_begin(const bm_language *l, bm_language_state *out)
{
    *out = (bm_language_state){.word = BM_WORD_OPEN};
    if (l->lm != NULL)
        bm_lm_begin(l->lm, &out->lm);
}

static void score_lm(const bm_language *l, uint32_t lm_word,
                     bm_language_state *to)
{
    bm_lm_state before = to->lm;

    to->score += l->weight * bm_lm_score(l->lm, &before, lm_word, &to->lm);
}

static void step_hot(const bm_language *l, int32_t label, bm_language_state *to)
{
    if (l->hot != NULL)
        to->hot = bm_hot_step(l->hot, to->hot, label, &to->score);
}

/* A word of the lexicon, or BM_WORD_SPELLED, has ended. */
static void end_word(const bm_language *l, int32_t word, bm_language_state *to)
{
    to->word = word;
    to->place = 0;
    to->text = bm_hash_more(to->text, (uint64_t)(word + 1) << 32);
    to->score += l->level == OF_SYMBOLS ? 0 : l->set.word_score;
    if (l->level == OF_WORDS)
        score_lm(l, word >= 0 ? l->lm_words[word] : bm_lm_unknown(l->lm), to);
}

/* The word has, or will have, a spelling that is not in the lexicon. */
static void leave(const bm_language *l, bm_language_state *to)
{
    to->text = bm_hash_more(to->text, (uint64_t)1 << 62 | to->place);
    to->place = BM_OUTSIDE;
    if (isfinite(l->set.unknown_score)) /* else the sequence ends here */
        to->score += l->set.unknown_score;
}

static bool allows_unknown(const bm_language *l)
{
    return l->set.unknown_score > -INFINITY;
}

static size_t words_at(const bm_language *l, uint32_t place)
{
    return place == BM_OUTSIDE ? 0 : l->lexicon->nodes[place].spellings;
}

static int32_t word_at(const bm_language *l, uint32_t place, size_t way)
{
    return (int32_t)l->lexicon->words[l->lexicon->nodes[place].spelling + way];
}

static uint32_t child_at(const bm_language *l, uint32_t place, int32_t label)
{
    return place == BM_OUTSIDE ? 0 : bm_lexicon_child(l->lexicon, place, label);
}

static size_t has_children(const bm_language *l, uint32_t place)
{
    return place != 0 && l->lexicon->nodes[place].children > 0 ? 1 : 0;
}

/* Ends the word between spaces. */
static void end_between(const bm_language *l, size_t way, bm_language_state *to)
{
    if (way < words_at(l, to->place)) {
        end_word(l, word_at(l, to->place, way), to);
        return;
    }
    if (to->place != BM_OUTSIDE)
        leave(l, to);
    end_word(l, BM_WORD_SPELLED, to);
}

static size_t ways_to_end(const bm_language *l, uint32_t place, bool unknown)
{
    size_t words = words_at(l, place);

    return place == 0 || (words == 0 && unknown) ? 1 : words;
}

size_t bm_language_ways(const bm_language *l, const bm_language_state *from,
                        int32_t label)
{
    uint32_t child = 0;
    size_t words = 0;

    if (l->lexicon == NULL)
        return 1;
    if (label == l->space)
        return from->place == 0
                   ? 0 /* a space after a space */
                   : ways_to_end(l, from->place, allows_unknown(l));
    child = child_at(l, from->place, label);
    if (l->space >= 0)
        return child != 0 || allows_unknown(l) ? 1 : 0;
    words = child != 0 ? words_at(l, child) : 0;
    return words + has_children(l, child) +
           (words == 0 && from->place == 0 && allows_unknown(l) ? 1 : 0);
}

/* A label of a word between spaces. */
static void step_between(const bm_language *l, int32_t label,
                         bm_language_state *to)
{
    uint32_t child = child_at(l, to->place, label);

    if (child != 0) {
        to->place = child;
        return;
    }
    if (to->place != BM_OUTSIDE)
        leave(l, to);
    to->text = bm_hash_more(to->text, (uint64_t)label);
}

/* A label without spaces: first the ways that end a word, then the one that goes
 * on, then that of a label by itself. */
static void step_along(const bm_language *l, int32_t label, size_t way,
                       bm_language_state *to)
{
    uint32_t child = child_at(l, to->place, label);
    size_t words = child != 0 ? words_at(l, child) : 0;

    if (way < words) {
        end_word(l, word_at(l, child, way), to);
    } else if (way < words + has_children(l, child)) {
        to->place = child;
    } else {
        leave(l, to);
        to->text = bm_hash_more(to->text, (uint64_t)label);
        end_word(l, BM_WORD_SPELLED, to);
    }
}

void bm_language_step(const bm_language *l, const bm_language_state *from,
                      int32_t label, size_t way, bm_language_state *to)
{
    bool space = label == l->space;

    *to = *from;
    to->word = BM_WORD_OPEN;
    if (l->level == OF_SYMBOLS) {
        score_lm(l, l->lm_words[label], to);
        to->score += l->set.word_score;
    }
    if (!space)
        step_hot(l, label, to);
    if (l->lexicon != NULL) {
        if (!space && l->space >= 0)
            step_between(l, label, to);
        else if (!space)
            step_along(l, label, way, to);
        else
            end_between(l, way, to);
    }
    if (space || (l->space < 0 && (l->lexicon == NULL || to->place == 0)))
        step_hot(l, 0, to);
}

size_t bm_language_ends(const bm_language *l, const bm_language_state *from,
                        bool incomplete)
{
    if (l->lexicon == NULL)
        return 1;
    if (l->space >= 0)
        return ways_to_end(l, from->place, incomplete || allows_unknown(l));
    return from->place == 0 || incomplete ? 1 : 0;
}

void bm_language_end(const bm_language *l, const bm_language_state *from,
                     size_t way, bm_language_state *to)
{
    *to = *from;
    to->word = BM_WORD_OPEN;
    if (l->lexicon != NULL && to->place != 0) {
        /* without spaces an end within a word is incomplete */
        end_between(l, l->space >= 0 ? way : words_at(l, to->place), to);
    }
    if (l->hot != NULL)
        bm_hot_end(l->hot, to->hot, &to->score);
    if (l->lm != NULL && bm_lm_end(l->lm) != BM_LM_NONE)
        score_lm(l, bm_lm_end(l->lm), to);
}
