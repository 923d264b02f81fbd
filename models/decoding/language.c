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

#include "core/log.h"
#include "models/decoding/hot_phrases.h"
#include "models/decoding/language_parts.h"
#include "models/decoding/lexicon.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static bm_status open_hot(bm_language *l)
{
    const bm_hot_source source = {.words = l->set.hot_words,
                                  .n_words = l->set.n_hot_words,
                                  .path = l->set.hot_file,
                                  .boost = l->set.hot_boost,
                                  .vocab = l->vocab,
                                  .space = l->space,
                                  .lexicon = l->lexicon};

    return bm_hot_read(&l->hot, &source);
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
