/*
 * search_parts.h - shared by the files of the beam search: the tree of prefixes,
 * and the hypotheses of the last frame.
 */
#ifndef BM_MODELS_DECODING_SEARCH_PARTS_H
#define BM_MODELS_DECODING_SEARCH_PARTS_H

#include "models/decoding/language_parts.h"
#include "models/decoding/search.h"

#include <math.h>
#include <stdbool.h>

enum { BM_NO_SLOT = -1 };

/* A prefix of labels: a node of the tree. Prefix 0 is the empty one. */
typedef struct bm_prefix {
    uint32_t parent;         /* smaller than its own number */
    uint32_t child, sibling; /* 0: none */
    int32_t label;
    uint32_t way;        /* what the label means to the language */
    int32_t slot;        /* its hypothesis in this frame, or BM_NO_SLOT */
    int32_t first, last; /* frames in which it was a hypothesis */
} bm_prefix;

/* A prefix in the beam, and the logarithms of the probability of all paths that
 * give it and end in a blank, or in its last label. */
typedef struct bm_hypothesis_sum {
    uint32_t prefix;
    double blank, label;
    double both;  /* log(exp(blank) + exp(label)) */
    double score; /* both, and what the language adds */
} bm_hypothesis_sum;

/* Memory of search.c and of search_result.c. */
typedef struct bm_frame_parts bm_frame_parts;
typedef struct bm_result bm_result;

struct bm_decoder {
    bm_decoder_settings set;
    float *log_priors; /* [classes], scaled; NULL: none */

    /* The tree, and the states of the language if there is one. */
    bm_prefix *prefixes;
    bm_language_state *states;
    size_t n_prefixes, room;

    bm_hypothesis_sum *sums; /* [n_sums], best first */
    size_t n_sums;

    bm_frame_parts *parts; /* what search.c needs within a frame */
    bm_result *result;

    const float *y; /* of this run, borrowed */
    size_t frames;
};

static inline double bm_log_add(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;

    return low == -INFINITY ? high : high + log1p(exp(low - high));
}

/* Between words one space is as good as several, and none is needed before the
 * first word: a prefix that ends in a space takes further spaces in, as the empty
 * one does; but not if a model scores each space. */
static inline bool bm_takes_spaces(const bm_decoder *d, uint32_t prefix)
{
    return d->set.space >= 0 &&
           (prefix == 0 || d->prefixes[prefix].label == d->set.space) &&
           (d->set.language == NULL ||
            !bm_language_scores_spaces(d->set.language));
}

/* Log posterior of class k in frame t, with priors. */
static inline double bm_decoder_at(const bm_decoder *d, size_t t, int32_t k)
{
    double y = (double)d->y[t * d->set.classes + (size_t)k];

    if (d->log_priors != NULL)
        y -= (double)d->log_priors[k];
    return y == y ? y : -INFINITY;
}

/* Makes the result of the hypotheses of the last frame. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_result_new(bm_result **out);
void bm_result_free(bm_result *r);
BM_CHECKED bm_status bm_result_make(bm_decoder *d, bm_hypotheses *out);

#endif
