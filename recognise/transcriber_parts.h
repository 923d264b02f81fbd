/* transcriber_parts.h - internal to recognise/: a transcript as it is made. */
#ifndef BM_RECOGNISE_TRANSCRIBER_PARTS_H
#define BM_RECOGNISE_TRANSCRIBER_PARTS_H

#include "io/vocab.h"
#include "models/decoding/language.h"
#include "models/decoding/search.h"
#include "recognise/transcriber.h"

/* Where frames of the network lie: frame t is [start + t * step,
 * start + (t + 1) * step), within [0, length]. */
typedef struct bm_frame_places {
    double start, step, length;
} bm_frame_places;

/* *r <- the words of a hypothesis and the text, without needless spaces; language:
 * NULL: none. Fails with BM_ERR_MEMORY; free with bm_reading_free, also then. */
BM_CHECKED bm_status bm_reading_make(bm_reading *r, const bm_hypothesis *h,
                                     const bm_vocab *vocab,
                                     const bm_language *language,
                                     const bm_frame_places *places);
void bm_reading_free(bm_reading *r);

#endif
