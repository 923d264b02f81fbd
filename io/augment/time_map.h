/*
 * time_map.h - where in a sequence each strip of its resampled version comes
 * from: another speed, and time warping, in which a point moves and both sides
 * are stretched (Park et al. 2019). Strips are those of layout.h.
 */
#ifndef BM_IO_AUGMENT_TIME_MAP_H
#define BM_IO_AUGMENT_TIME_MAP_H

#include "core/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bm_time_map {
    size_t n_in, n_out;
    double knee_in, knee_out; /* the point that moves: from where to where, in
                                 strips of the input */
} bm_time_map;

/* Another speed alone. */
bm_time_map bm_time_map_make(size_t n_in, size_t n_out);

/* Moves a point by less than `reach` strips, at least one; in a sequence with
 * less than two strips for each of them by less than half of it. */
void bm_time_map_warp(bm_time_map *m, bm_rng *rng, size_t reach);

/* The place in the input, in [0, n_in], of a place in the output, in
 * [0, n_out]. Step i is from i to i + 1. */
static inline double bm_time_map_at(const bm_time_map *m, double place)
{
    double p = place * ((double)m->n_in / (double)m->n_out);

    return p <= m->knee_out
               ? p * (m->knee_in / m->knee_out)
               : m->knee_in +
                     (p - m->knee_out) * (((double)m->n_in - m->knee_in) /
                                          ((double)m->n_in - m->knee_out));
}

/* x [n_in, width] -> y [n_out, width]: linear between the middles of strips, the
 * first and the last are repeated. */
void bm_time_map_apply(const bm_time_map *m, const float *x, size_t width,
                       float *y);

/* Targets of frames of `strips` strips each, in [n_in / strips] to out
 * [n_out / strips]: that of the frame which the middle comes from. */
void bm_time_map_targets(const bm_time_map *m, size_t strips, const int32_t *in,
                         int32_t *out);

#endif
