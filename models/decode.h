/*
 * decode.h - from the outputs of a network to labels. On the host.
 */
#ifndef BM_MODELS_DECODE_H
#define BM_MODELS_DECODE_H

#include <stddef.h>
#include <stdint.h>

/*
 * Best path: the best class of every frame (the first of equals), repeats
 * merged, blanks (class 0) left out. y: `frames` rows of n_classes logits, each
 * `stride` floats after the one before. labels has room for `frames`; returns
 * how many there are. *score, unless NULL, gets the path's log probability.
 */
size_t bm_decode_greedy(const float *y, size_t frames, size_t stride,
                        size_t n_classes, int32_t *labels, double *score);

/* The best class of every frame, of the same y. */
void bm_decode_frames(const float *y, size_t frames, size_t stride,
                      size_t n_classes, int32_t *classes);

#endif
