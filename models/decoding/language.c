/* language.c - what is known of the language. */
#include "models/decoding/language.h"

#include "models/decoding/language_parts.h"

#include <stdlib.h>

struct bm_language {
    bm_language_settings set;
    const bm_vocab *vocab; /* borrowed */
};

bm_language_settings bm_language_defaults(void)
{
    return (bm_language_settings){.hot_boost = 5,
                                  .lm_weight = 0.5,
                                  .word_score = 1.5,
                                  .unknown_score = -10};
}

bm_status bm_language_open(bm_language **out,
                           const bm_language_settings *settings,
                           const bm_vocab *vocab)
{
    bm_language *l = NULL;

    if (settings->lm != NULL || settings->lexicon != NULL ||
        settings->hot_file != NULL || settings->n_hot_words > 0)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "no language models yet");
    l = calloc(1, sizeof *l);
    if (l == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a language");
    l->set = *settings;
    l->vocab = vocab;
    *out = l;
    return BM_OK;
}

void bm_language_close(bm_language *l)
{
    free(l);
}

const char *bm_language_word(const bm_language *l, int32_t word)
{
    return bm_vocab_symbol(l->vocab, word);
}

bool bm_language_has_words(const bm_language *l)
{
    (void)l;
    return false;
}

double bm_language_gain(const bm_language *l)
{
    return l->set.word_score > 0 ? l->set.word_score : 0;
}

void bm_language_begin(const bm_language *l, bm_language_state *out)
{
    (void)l;
    *out = (bm_language_state){.word = BM_WORD_OPEN};
}

size_t bm_language_ways(const bm_language *l, const bm_language_state *from,
                        int32_t label)
{
    (void)l;
    (void)from;
    (void)label;
    return 1;
}

void bm_language_step(const bm_language *l, const bm_language_state *from,
                      int32_t label, size_t way, bm_language_state *to)
{
    (void)label;
    (void)way;
    *to = *from;
    to->score += l->set.word_score;
}

size_t bm_language_ends(const bm_language *l, const bm_language_state *from,
                        bool incomplete)
{
    (void)l;
    (void)from;
    return incomplete ? 0 : 1;
}

void bm_language_end(const bm_language *l, const bm_language_state *from,
                     size_t way, bm_language_state *to)
{
    (void)l;
    (void)way;
    *to = *from;
}
