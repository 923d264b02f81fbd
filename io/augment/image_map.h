/*
 * image_map.h - affine and elastic distortion of line images. Every pixel of the
 * output takes its value from a place in the input, between pixels bilinearly;
 * beyond the image is paper. Displacements of the elastic distortion are
 * random on a grid, cubic B-splines in between (Simard et al. 2003 smooth
 * random fields instead).
 *
 * Frames that are no columns of pixels are distorted likewise, over time and
 * bands, column by column of their layout; beyond them their edge is repeated.
 */
#ifndef BM_IO_AUGMENT_IMAGE_MAP_H
#define BM_IO_AUGMENT_IMAGE_MAP_H

#include "io/augment/augment_settings.h"
#include "io/augment/layout.h"
#include "io/augment/time_map.h"

typedef struct bm_image_map {
    bm_time_map time;
    double slant;   /* strips for a band: bands above the middle move right */
    double scale;   /* of the height */
    double shift;   /* bands; > 0: down */
    double spacing; /* of the grid, in strips and in bands; 0: no grid */
    size_t rows, columns; /* of the grid */
    float paper;          /* of an image: what is beyond it */
} bm_image_map;

/* Draws a distortion, without a grid's displacements. `key`: of the
 * sequence. */
bm_image_map bm_image_map_draw(const bm_augment_settings *s, const bm_layout *l,
                               const bm_time_map *time, uint64_t key);

/* Floats of scratch for bm_image_map_apply. */
size_t bm_image_map_work(const bm_image_map *m, const bm_layout *l);

/* x -> y, of as many strips as m->time says. */
void bm_image_map_apply(const bm_image_map *m, const bm_augment_settings *s,
                        const bm_layout *l, uint64_t key, const float *x,
                        float *y, float *work);

#endif
