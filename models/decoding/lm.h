/*
 * lm.h - n-gram language models with back-off, read from an ARPA file, which may
 * be compressed with gzip, or from the compact form that bm_lm_write makes and
 * that is mapped into memory.
 *
 *     bm_lm_state before, after;
 *
 *     BM_TRY(bm_lm_open(&lm, "words.lm"));
 *     bm_lm_begin(lm, &before);
 *     log10_p = bm_lm_score(lm, &before, bm_lm_find(lm, "the"), &after);
 *
 * Words are numbered from 0. A model does not change: threads may share it.
 */
#ifndef BM_MODELS_DECODING_LM_H
#define BM_MODELS_DECODING_LM_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BM_LM_MOST = 6 }; /* largest order */

/* No word: of a model without <s> or </s>. */
#define BM_LM_NONE UINT32_MAX

typedef struct bm_lm bm_lm;

/* The words before, the last one first: as many as the model knows n-grams of.
 * backoff[i] is the back-off weight of the last i + 1 words. */
typedef struct bm_lm_state {
    uint32_t n;
    uint32_t words[BM_LM_MOST - 1];
    float backoff[BM_LM_MOST - 1];
} bm_lm_state;

/* Close with bm_lm_close; NULL is a no-op. Fails with BM_ERR_MISSING, BM_ERR_IO,
 * BM_ERR_MEMORY, or BM_ERR_FORMAT: with file and line if an ARPA file has an
 * error, or if a compact file is damaged. */
BM_CHECKED bm_status bm_lm_open(bm_lm **out, const char *path);
void bm_lm_close(bm_lm *lm);

/* Is it a file of the compact form, by its first bytes? */
bool bm_lm_is_compact(const char *path);

/* Writes the compact form. Fails with BM_ERR_CREATE or BM_ERR_IO. */
BM_CHECKED bm_status bm_lm_write(const bm_lm *lm, const char *path);

int bm_lm_order(const bm_lm *lm);                 /* n of the longest n-grams */
uint64_t bm_lm_count(const bm_lm *lm, int order); /* of n-grams; those included
                                                     that the model needs and the
                                                     ARPA file left out */
uint64_t bm_lm_bytes(const bm_lm *lm);            /* of the compact form */

/* The number of a word; that of <unk> if the model does not have it. */
uint32_t bm_lm_find(const bm_lm *lm, const char *word);
uint32_t bm_lm_unknown(const bm_lm *lm);
uint32_t bm_lm_end(const bm_lm *lm); /* </s>, or BM_LM_NONE */
/* Is it <s>, </s> or <unk>? */
bool bm_lm_is_special(const bm_lm *lm, uint32_t word);
/* The text of a word, borrowed. */
const char *bm_lm_word(const bm_lm *lm, uint32_t word);

/* The state after <s>; without <s> in the model, after nothing. */
void bm_lm_begin(const bm_lm *lm, bm_lm_state *out);

/* Returns log10 p of a word after others. *to <- the state after the word; it
 * may not be *from. */
double bm_lm_score(const bm_lm *lm, const bm_lm_state *from, uint32_t word,
                   bm_lm_state *to);

#endif
