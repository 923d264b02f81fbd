/*
 * front_end.h - makes the frames that a model was trained on: of recordings,
 * line images and feature files, with the settings that the model's file holds.
 * A front end is for one thread at a time.
 */
#ifndef BM_RECOGNISE_FRONT_END_H
#define BM_RECOGNISE_FRONT_END_H

#include "io/import/images/line_image.h"
#include "io/sound/sound.h"

typedef enum bm_input_kind {
    BM_RECORDINGS,
    BM_IMAGES,
    BM_FEATURE_FILES,
    BM_PACKED_ONLY /* it is not known how the features were made */
} bm_input_kind;

/* "recordings"; static. */
const char *bm_input_noun(bm_input_kind kind);

typedef struct bm_front_end bm_front_end;

/*
 * Frames [n, dim], borrowed until the next call. Places are seconds of a
 * recording, pixels of an image from its left edge, or frames of features
 * without a rate: that of frame t is (t - lead) * step, at most `length`; step is
 * below 0 for an image that is read from right to left.
 */
typedef struct bm_input_frames {
    const float *x;
    size_t n, dim;
    double lead, step, length;
    size_t height;      /* of an image in pixels; else 0 */
    double empty_above; /* Hz: bands from there on are empty, as a recording has
                           a low sampling rate; 0: none is */
} bm_input_frames;

enum { BM_CHANNEL_AS_TRAINED = -1 };

/* By the description of a model's features (io/features/feature_text.h), of
 * which there are `features` per frame. channel: of recordings, from 1; 0: the
 * mean of all; or BM_CHANNEL_AS_TRAINED, that of the description. Fails with
 * BM_ERR_FORMAT if the description is invalid, or with BM_ERR_MEMORY. Close with
 * bm_front_end_close; NULL is a no-op. */
BM_CHECKED bm_status bm_front_end_open(bm_front_end **out,
                                       const char *description, size_t features,
                                       long channel);
void bm_front_end_close(bm_front_end *f);

bm_input_kind bm_front_end_kind(const bm_front_end *f);
long bm_front_end_rate(const bm_front_end *f);    /* in Hz; 0: no recordings */
double bm_front_end_shift(const bm_front_end *f); /* s of a frame; 0: no time */

/* Pixels to which lines are scaled; 0: no images. */
size_t bm_front_end_height(const bm_front_end *f);

/* What the model's features were normalised over, as features.normalise says
 * it, "speaker"; borrowed. */
const char *bm_front_end_normalise(const bm_front_end *f);

/*
 * Features that were normalised by speaker are normalised by recording, unless
 * all inputs are learned first:
 *
 *     bm_front_end_speakers(f, n);
 *     bm_front_end_learn(f, speaker, path, part);     for each input
 *     bm_front_end_set_speaker(f, speaker);           for each input again
 *     bm_front_end_file(f, path, part, &frames);
 *
 * They fail as bm_front_end_file. Images have no speakers.
 */
BM_CHECKED bm_status bm_front_end_speakers(bm_front_end *f, size_t n);
BM_CHECKED bm_status bm_front_end_learn(bm_front_end *f, size_t speaker,
                                        const char *path, bm_excerpt part);
void bm_front_end_set_speaker(bm_front_end *f, size_t speaker);

/*
 * The frames of a file, of an image in memory, or of features as the feature
 * files have them; of x [n], samples from -1 to 1 at any rate.
 * All fail with BM_ERR_FORMAT or BM_ERR_MISSING if the input cannot be used, with
 * BM_ERR_IO if the disk fails, and with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_front_end_file(bm_front_end *f, const char *path,
                                       bm_excerpt part, bm_input_frames *out);
BM_CHECKED bm_status bm_front_end_samples(bm_front_end *f, const float *x,
                                          size_t n, long rate,
                                          bm_input_frames *out);
BM_CHECKED bm_status bm_front_end_image(bm_front_end *f,
                                        const bm_line_image *image,
                                        bm_input_frames *out);
BM_CHECKED bm_status bm_front_end_features(bm_front_end *f, const float *x,
                                           size_t frames, size_t dim,
                                           bm_input_frames *out);

#endif
