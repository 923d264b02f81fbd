/*
 * text_errors.h - the errors of recognised texts: words are aligned with those
 * of the reference, characters with those of its words.
 */
#ifndef BM_CLI_SCORE_TEXT_ERRORS_H
#define BM_CLI_SCORE_TEXT_ERRORS_H

#include "io/text.h"
#include "models/edit.h"

typedef struct bm_text_scorer bm_text_scorer;

/* An alignment: pairs of classes, of words or of characters. Owned. */
typedef struct bm_text_pairs {
    bm_pair *of; /* [n] */
    size_t n, room;
} bm_text_pairs;

/* Of one text; starts as {0}, and is used again for the next one. */
typedef struct bm_text_errors {
    bm_edits words, characters;
    size_t n_words, n_characters; /* of the reference, as it was aligned */
    bm_text_pairs word_pairs;
    bm_text_pairs character_pairs; /* of bm_text_pair_characters */
    bool bad_hyp; /* after a failure: it is not the reference that is bad */
} bm_text_errors;

/* costs: static. rules: copied. Free with bm_text_scorer_free; NULL is a
 * no-op. */
BM_CHECKED bm_status bm_text_scorer_new(bm_text_scorer **out,
                                        const bm_text_rules *rules,
                                        const bm_edit_costs *costs);
void bm_text_scorer_free(bm_text_scorer *s);

/*
 * *out <- the errors of a text. alternatives: `ref` may have groups
 * "{ uh / um / @ }", of which the cheapest alternative counts, @ for none;
 * groups may be in groups. Characters include one space between two words; of
 * alternatives they are those that the words were aligned with. Fails with
 * BM_ERR_FORMAT if a text is not UTF-8 or a group does not end, or with
 * BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_text_score(bm_text_scorer *s, const char *ref,
                                   bool alternatives, const char *hyp,
                                   bm_text_errors *out);
void bm_text_errors_free(bm_text_errors *e);

/* After bm_text_score: also the pairs that it counted as characters. Fails only
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_text_pair_characters(bm_text_scorer *s,
                                             bm_text_errors *e);

/* The words that were aligned, of the reference or else of the other text, with a
 * space between two; free(*out). Fails only with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_text_aligned(const bm_text_scorer *s,
                                     const bm_text_errors *e, bool reference,
                                     char **out);

/* The word or character of a class in pairs, borrowed; a space is <space>. */
const char *bm_text_word(const bm_text_scorer *s, int32_t class);
const char *bm_text_character(const bm_text_scorer *s, int32_t class);

#endif
