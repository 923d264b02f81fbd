/*
 * language_parts.h - the state of a hypothesis in a language, and how labels
 * change it; for the beam search.
 */
#ifndef BM_MODELS_DECODING_LANGUAGE_PARTS_H
#define BM_MODELS_DECODING_LANGUAGE_PARTS_H

#include "models/decoding/language.h"
#include "models/decoding/lm.h"

/* The word that a label ends: a number of the lexicon, or one of these. */
enum {
    BM_WORD_SPELLED = -1, /* a word outside the lexicon */
    BM_WORD_OPEN = -2,    /* none */
};

typedef struct bm_language_state {
    double score;   /* of all labels: what is added to log p */
    uint64_t text;  /* hash of the words so far */
    uint32_t place; /* node of the lexicon, or BM_OUTSIDE in another word */
    uint32_t hot;   /* state of hot words */
    int32_t word;   /* that the last label ended */
    bm_lm_state lm;
} bm_language_state;

#define BM_OUTSIDE UINT32_MAX

/* A hash of a text with one more part. */
static inline uint64_t bm_hash_more(uint64_t hash, uint64_t part)
{
    hash = (hash ^ part) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}

/* Has it words of its own? Else only labels tell hypotheses apart. */
bool bm_language_has_words(const bm_language *l);

/* Has it a model of symbols, which scores each space? */
bool bm_language_scores_spaces(const bm_language *l);

/* The most that one label can add to a score. */
double bm_language_gain(const bm_language *l);

/* The state of the empty prefix. */
void bm_language_begin(const bm_language *l, bm_language_state *out);

/* In how many ways may `label` follow? 0: not at all. */
size_t bm_language_ways(const bm_language *l, const bm_language_state *from,
                        int32_t label);
/* way: in [0, bm_language_ways). */
void bm_language_step(const bm_language *l, const bm_language_state *from,
                      int32_t label, size_t way, bm_language_state *to);

/* The same for the end of the sequence. `incomplete`: an unfinished word may end
 * as well, as one outside the lexicon. */
size_t bm_language_ends(const bm_language *l, const bm_language_state *from,
                        bool incomplete);
void bm_language_end(const bm_language *l, const bm_language_state *from,
                     size_t way, bm_language_state *to);

#endif
