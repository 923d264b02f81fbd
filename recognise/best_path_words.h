/*
 * best_path_words.h - the best path of a network's output as a hypothesis of
 * models/decoding/search.h: with the frames and the confidence of its words.
 */
#ifndef BM_RECOGNISE_BEST_PATH_WORDS_H
#define BM_RECOGNISE_BEST_PATH_WORDS_H

#include "models/decoding/search.h"

/* Memory that is reused. Starts as {0}; free with bm_best_path_free. */
typedef struct bm_best_path {
    bm_found_label *labels;
    bm_found_word *words;
    size_t room;
} bm_best_path;

/*
 * y [frames, classes]: log posteriors. *out is borrowed from p until the next
 * call. The labels are those of bm_decode_greedy, and the score is the log
 * probability of the path. Words are separated by `space`; -1: each label is a
 * word. The confidence of a label is the largest posterior of its frames, that
 * of a word the product of its labels', as one wrong letter makes it wrong. Fails
 * with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_best_path_words(bm_best_path *p, const float *y,
                                        size_t frames, size_t classes,
                                        int32_t space, bm_hypothesis *out);
void bm_best_path_free(bm_best_path *p);

#endif
