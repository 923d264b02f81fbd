/*
 * best_path.h - converts logits of a network to labels, on the host: the best
 * class of every frame. Cannot fail. search.h has the beam search.
 */
#ifndef BM_MODELS_DECODING_BEST_PATH_H
#define BM_MODELS_DECODING_BEST_PATH_H

#include <stddef.h>
#include <stdint.h>

/*
 * Best path decoding: takes the best class of every frame (of equal ones the
 * first), merges repeats and drops blanks (class 0). y holds `frames` rows of
 * n_classes logits, `stride` floats apart. Writes at most `frames` labels and
 * returns how many. *score <- the log probability of the path, unless NULL.
 */
size_t bm_decode_greedy(const float *y, size_t frames, size_t stride,
                        size_t n_classes, int32_t *labels, double *score);

/* classes [frames] <- the best class of every frame; y as above. */
void bm_decode_frames(const float *y, size_t frames, size_t stride,
                      size_t n_classes, int32_t *classes);

#endif
