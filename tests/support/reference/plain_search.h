/*
 * plain_search.h - a beam search as plain as it can be: a hypothesis is a text; each
 * frame keeps all candidates, sorts them and cuts the list. A reference for tests.
 *
 *     search_plainly(&rig, &settings, y, T, true);
 *     for (size_t i = 0; i < n_results; i++)
 *         use(results[i].words, results[i].score);
 */
#ifndef BM_TESTS_SUPPORT_REFERENCE_PLAIN_SEARCH_H
#define BM_TESTS_SUPPORT_REFERENCE_PLAIN_SEARCH_H

#include "models/decoding/search.h"
#include "tests/support/reference/plain_texts.h"

enum {
    MOST_FRAMES = 16, /* of best_path */
    MOST_BEAM = 64,
    MOST_RESULTS = 4 * MOST_BEAM,
};

/* Words, each followed by a space. */
typedef struct result {
    char words[TEXT];
    double score;    /* of all hypotheses with these words */
    char text[TEXT]; /* of the best one of them */
    double best;     /* its score */
} result;

extern result results[MOST_RESULTS];
extern size_t n_results;

/* results <- those of y [T, classes]. `noting`: for best_path. */
void search_plainly(const rig *r, const bm_decoder_settings *s, const float *y,
                    size_t T, bool noting);

typedef struct path {
    double score;
    char classes[MOST_FRAMES]; /* labels, or "-" for the blank */
} path;

/* The best path of a text that is in each of its prefixes only between the first
 * and the last frame in which this was a hypothesis; false: there is none. */
bool best_path(const rig *r, const char *text, const float *y, size_t T,
               path *out);

#endif
