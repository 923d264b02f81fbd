/* transcriber_parts.h - internal to recognise/: a transcript as it is made. */
#ifndef BM_RECOGNISE_TRANSCRIBER_PARTS_H
#define BM_RECOGNISE_TRANSCRIBER_PARTS_H

#include "io/vocab.h"
#include "recognise/transcriber.h"

/* A label that was recognised in frames [first, last] of the network. */
typedef struct bm_found_label {
    int32_t class;
    size_t first, last;
    double confidence;
} bm_found_label;

typedef struct bm_found {
    const bm_found_label *labels; /* [n] */
    size_t n;
    double score;
} bm_found;

/* Where frames of the network lie: frame t is [start + t * step,
 * start + (t + 1) * step), within [0, length]. */
typedef struct bm_frame_places {
    double start, step, length;
} bm_frame_places;

/* The class of the space between words; -1: labels are words, or there is no
 * space, so that a text is one word. */
int32_t bm_space_class(const bm_vocab *vocab);

/* *r <- the text and words of labels that were found. Fails with BM_ERR_MEMORY;
 * free with bm_reading_free, also then. */
BM_CHECKED bm_status bm_reading_make(bm_reading *r, const bm_found *found,
                                     const bm_vocab *vocab, int32_t space,
                                     const bm_frame_places *places);
void bm_reading_free(bm_reading *r);

#endif
