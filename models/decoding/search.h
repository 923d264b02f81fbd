/*
 * search.h - prefix beam search: the most probable label sequences of a network
 * that was trained with CTC (Graves and others 2006). A hypothesis is a prefix of
 * labels; its probability is the sum over all paths that give this prefix. Class 0
 * is the blank.
 *
 *     bm_decoder_settings settings = bm_decoder_defaults(n_classes, space);
 *     bm_hypotheses found;
 *
 *     BM_TRY(bm_decoder_new(&d, &settings));
 *     bm_log_posteriors(logits, frames, stride, n_classes, posteriors);
 *     BM_TRY(bm_decoder_run(d, posteriors, frames, &found));
 *     // found.best[0] is the best hypothesis
 *     bm_decoder_free(d);
 *
 * A decoder belongs to one thread. The same input gives the same bits. Of two
 * hypotheses with equal scores the one is better that was better in the frame
 * before; of one hypothesis the prefix itself before its extensions, and of these
 * the lower class first. Frames are those of the input, from 0.
 */
#ifndef BM_MODELS_DECODING_SEARCH_H
#define BM_MODELS_DECODING_SEARCH_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

struct bm_language;

typedef struct bm_decoder_settings {
    size_t classes; /* blank included */
    int32_t space;  /* class of the space between words; -1: there is none */
    size_t beam;  /* largest number of hypotheses after each frame, 1 or more */
    size_t nbest; /* largest number of hypotheses in the result, 1 or more */
    double threshold; /* hypotheses are dropped whose score is lower than the
                         best one's by more than this; infinite: none is */
    /* Only labels with a log posterior of at least this extend hypotheses; the
     * best one always. */
    double symbol_threshold;
    const float *log_priors; /* [classes], of bm_log_priors; borrowed. NULL: no
                                priors */
    double prior_scale;      /* log posterior - prior_scale * log prior */
    const struct bm_language
        *language; /* of language.h, borrowed; NULL: none */
} bm_decoder_settings;

/* A label of a hypothesis. Its frames are those of the best path, which may be in a
 * prefix only between the first and the last frame in which the beam held it. */
typedef struct bm_found_label {
    int32_t label;
    int32_t first, last; /* frames in which the path emits it */
    float confidence;    /* see bm_found_word */
} bm_found_label;

/*
 * A word: labels [begin, end) of the hypothesis. Words are separated by spaces;
 * with a lexicon they are the lexicon's; without either each label is a word.
 *
 * Confidence is the share, in [0, 1], of all hypotheses of the last frame,
 * weighted by their probability, that have the same word, or the same label,
 * anywhere between the word before and the word after, or the label before and
 * after; for the only word of a text that is anywhere. A word or label of a
 * hypothesis counts for one of another, in order. It is 1 if there is one
 * hypothesis.
 */
typedef struct bm_found_word {
    size_t begin, end;
    int32_t
        word; /* number of a word in the lexicon (language.h); -1: spelled by
                     its labels */
    int32_t first, last; /* frames */
    float confidence;
} bm_found_word;

typedef struct bm_hypothesis {
    double score; /* natural logarithm; with priors or a language not of a
                     probability */
    size_t n_labels, n_words;
    const bm_found_label *labels;
    const bm_found_word *words;
} bm_hypothesis;

/* The best hypotheses, best first, borrowed until the next run or free. n is 0
 * only if every label sequence has probability 0. */
typedef struct bm_hypotheses {
    size_t n;
    const bm_hypothesis *best;
} bm_hypotheses;

typedef struct bm_decoder bm_decoder;

/* Beam 100, one best hypothesis, threshold 20, labels with a log posterior of -10
 * or more, no priors, no language. */
bm_decoder_settings bm_decoder_defaults(size_t classes, int32_t space);

/* Copies settings. Free with bm_decoder_free; NULL is a no-op. Fails with
 * BM_ERR_ARG if a setting is outside its range, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_decoder_new(bm_decoder **out,
                                    const bm_decoder_settings *settings);
void bm_decoder_free(bm_decoder *d);

/* Searches one sequence. y: [frames, classes] log posteriors, natural logarithm;
 * minus infinity is allowed, NaN counts as that. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_decoder_run(bm_decoder *d, const float *y,
                                    size_t frames, bm_hypotheses *out);

/* out [frames, classes] <- log softmax of logits, whose rows are `stride` floats
 * apart. out may be logits if stride is classes. */
void bm_log_posteriors(const float *logits, size_t frames, size_t stride,
                       size_t classes, float *out);

/*
 * out [classes] <- log priors, as Eesen makes them, of how often each label
 * occurs in the training data. counts[0] is the number of blanks if there is one
 * between all labels and at both ends: labels + sequences; it counts blank_scale
 * times, more than 0. A class that does not occur gets infinity: it is never
 * recognised.
 */
void bm_log_priors(const uint64_t *counts, size_t classes, double blank_scale,
                   float *out);

#endif
