/*
 * picture.h - pictures of features, as PNG: a line image as ink on paper, other
 * features as a spectrogram, with time to the right and the first feature at the
 * bottom, from violet for low to yellow for high (matplotlib's viridis).
 */
#ifndef BM_IO_INSPECT_PICTURE_H
#define BM_IO_INSPECT_PICTURE_H

#include "core/status.h"
#include "io/augment/layout.h"

#include <stdint.h>

typedef struct bm_picture {
    size_t width, height;
    uint8_t *rgb; /* [height, width, 3] */
} bm_picture;

/* A white picture. Fails with BM_ERR_MEMORY, with BM_ERR_UNSUPPORTED if it would
 * have more than 2^27 pixels. Free with bm_picture_free. */
BM_CHECKED bm_status bm_picture_new(bm_picture *p, size_t width, size_t height);
void bm_picture_free(bm_picture *p);

/* How features are drawn. */
typedef struct bm_drawing {
    bm_layout layout;
    size_t zoom;     /* pixels for a strip, and for a feature of it */
    float low, high; /* values of the darkest and the lightest colour; images:
                        not used */
} bm_drawing;

/* So that a strip is about 100 pixels high. */
size_t bm_drawing_zoom(const bm_layout *l);

/* Pixels of a sequence. */
size_t bm_drawing_width(const bm_drawing *d, size_t frames);
size_t bm_drawing_height(const bm_drawing *d);

/* Draws x [frames, D] at the left, `top` pixels from above. Precondition: it has
 * room. */
void bm_picture_draw(bm_picture *p, const bm_drawing *d, const float *x,
                     size_t frames, size_t top);

/* Writes a PNG file. Fails as bm_file_write, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_picture_write(const bm_picture *p, const char *path);

#endif
