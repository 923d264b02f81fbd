/*
 * augment.h - changes the features of training sequences at random: resampling
 * along time, distortion of line images, contrast, volume, noise and masks. What
 * is changed before, the recordings, is in io/batch/sound_augment.h.
 *
 * What becomes of a sequence is a function of (seed, epoch, its number in the
 * data set, settings), so that it does not depend on the number of ranks, and a
 * run that is resumed sees the same. The reader's thread calls it:
 *
 *     key = bm_augment_key(seed, epoch, sequence);
 *     in = (bm_augmented){x, frames, labels, n_labels};
 *     n = bm_augment_frames(a, key, &in, &fit);
 *     BM_TRY(bm_augment(a, key, &in, n, y, targets));
 */
#ifndef BM_IO_AUGMENT_AUGMENT_H
#define BM_IO_AUGMENT_AUGMENT_H

#include "core/status.h"
#include "io/augment/augment_settings.h"
#include "io/augment/layout.h"

#include <stdint.h>

typedef struct bm_augmenter bm_augmenter;

/* Copies settings and layout; the settings must be valid. Fails with
 * BM_ERR_MEMORY. Free with bm_augmenter_free; NULL is a no-op. */
BM_CHECKED bm_status bm_augmenter_new(bm_augmenter **out,
                                      const bm_augment_settings *settings,
                                      const bm_layout *layout, bool per_frame);
void bm_augmenter_free(bm_augmenter *a);

/* The largest number of frames for each frame of a sequence, apart from rounding
 * by half a frame; 1: sequences keep their length. */
double bm_augmenter_stretch(const bm_augmenter *a);

/* The key of the random numbers for a sequence in an epoch. */
uint64_t bm_augment_key(uint64_t seed, int64_t epoch, int64_t sequence);

/* Is the sequence with this key one of augment.share? */
bool bm_augment_changes(double share, uint64_t key);

/* A sequence before it is changed: x [frames, D], and its labels, with per_frame
 * one for each frame. */
typedef struct bm_augmented {
    const float *x;
    size_t frames;
    const int32_t *labels;
    size_t n_labels;
} bm_augmented;

/* Whether this number of frames suits the network and these labels. fits NULL:
 * always. */
typedef struct bm_fit {
    bool (*fits)(const void *self, size_t frames, const int32_t *labels,
                 size_t n_labels);
    const void *self; /* borrowed */
} bm_fit;

/* The frames that the sequence will have; frames > 0. A speed with which it does
 * not fit is not used: the sequence keeps its length. */
size_t bm_augment_frames(const bm_augmenter *a, uint64_t key,
                         const bm_augmented *in, const bm_fit *fit);

/* Writes the changed sequence to y [frames, D], with per_frame its targets to
 * targets [frames]; both may overlap with the input. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_augment(bm_augmenter *a, uint64_t key,
                                const bm_augmented *in, size_t frames, float *y,
                                int32_t *targets);

#endif
