/*
 * layout.h - what the features of a frame are: bands of a filter bank, cepstra,
 * pixels of a line image, or unknown. Augmentation must know which are
 * neighbours.
 */
#ifndef BM_IO_AUGMENT_LAYOUT_H
#define BM_IO_AUGMENT_LAYOUT_H

#include <stddef.h>

typedef enum bm_frame_kind {
    BM_FRAMES_OTHER,
    BM_FRAMES_SPEECH,  /* logarithms of energies in frequency bands */
    BM_FRAMES_CEPSTRA, /* of speech; the first has the volume */
    BM_FRAMES_IMAGE    /* columns of pixels; background 0, ink 1 */
} bm_frame_kind;

/* Feature d of a frame is in column d / stride, with stride = bands + extra: band
 * d % stride, or a feature without neighbours after the bands. */
typedef struct bm_layout {
    bm_frame_kind kind;
    size_t features; /* D = columns * stride */
    size_t bands;    /* frequencies, cepstra, or the height in pixels */
    size_t extra;    /* of the pitch: only changed along time, and by noise */
    size_t columns;  /* of an image: of pixels; else: stacked frames with their
                        deltas */
    size_t orders;   /* deltas + 1: column c has values if c % orders is 0, else
                        slopes */
} bm_layout;

/* From the description of a data set's features (feature_text.h). A frame that
 * the description does not fit, or without one, is a single column. */
bm_layout bm_layout_of(const char *description, size_t features);

static inline size_t bm_layout_stride(const bm_layout *l)
{
    return l->bands + l->extra;
}

/* Strips are what features are resampled along: columns of pixels of an image,
 * else frames. */
static inline size_t bm_layout_strips(const bm_layout *l, size_t frames)
{
    return l->kind == BM_FRAMES_IMAGE ? frames * l->columns : frames;
}

/* Features of a strip. */
static inline size_t bm_layout_width(const bm_layout *l)
{
    return l->kind == BM_FRAMES_IMAGE ? l->bands : l->features;
}

#endif
