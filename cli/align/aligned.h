/*
 * aligned.h - a sequence whose labels and words have times, from the spans of
 * models/align.h.
 */
#ifndef BM_CLI_ALIGN_ALIGNED_H
#define BM_CLI_ALIGN_ALIGNED_H

#include "io/vocab.h"
#include "models/align.h"

#include <stdbool.h>

/* How frames of the network's output lie on stored frames: output frame k is
 * [k stride, (k + 1) stride), and the last one reaches to the end. */
typedef struct bm_frame_map {
    size_t frames, outputs; /* stored frames; outputs of the network */
    size_t stride;
} bm_frame_map;

/* The output that stands for a stored frame, in [0, frames). */
size_t bm_frame_output(const bm_frame_map *m, size_t frame);

/* A label or a word, in stored frames [first, end). */
typedef struct bm_aligned_span {
    const char *text; /* a space is <space> */
    size_t first, end;
    double log_p; /* mean over its labels' output frames of ln p(label) */
} bm_aligned_span;

typedef struct bm_aligned {
    const char *id;   /* borrowed */
    bm_frame_map map; /* of its frames */
    double shift;     /* seconds of a stored frame; 0: not a recording */
    double log_p;     /* of the path */
    bm_aligned_span *labels, *words; /* owned */
    size_t n_labels, n_words;
    bool has_words; /* labels form words */
    char *text;     /* of all words, owned */
} bm_aligned;

/* Fills labels and words from spans [n]; the other fields are set. Words are
 * labels, or runs of them between spaces; without a space in the vocabulary
 * there are none. Fails with BM_ERR_MEMORY; free with bm_aligned_free, also
 * then. */
BM_CHECKED bm_status bm_aligned_fill(bm_aligned *a, const bm_vocab *vocab,
                                     const int32_t *labels,
                                     const bm_label_span *spans, size_t n);
void bm_aligned_free(bm_aligned *a);

/* Do labels of this vocabulary form words? */
bool bm_vocab_has_words(const bm_vocab *vocab);

#endif
