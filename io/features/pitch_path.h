/*
 * pitch_path.h - the smoothest path through costs: the states s_0 .. s_(T-1)
 * with the least
 *
 *     sum over t of cost_t(s_t) + sum over t > 0 of a (s_t - s_(t-1))^2
 *
 *     bm_pitch_path_start(path, T);
 *     for each t: bm_pitch_path_add(path, cost_t);
 *     bm_pitch_path_end(path, s);
 */
#ifndef BM_IO_FEATURES_PITCH_PATH_H
#define BM_IO_FEATURES_PITCH_PATH_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bm_pitch_path bm_pitch_path;

/* For states 0 .. states - 1, 0 < states <= 65535, and a = penalty > 0. Fails
 * with BM_ERR_MEMORY. Free with bm_pitch_path_free; NULL is a no-op. */
BM_CHECKED bm_status bm_pitch_path_new(bm_pitch_path **out, size_t states,
                                       double penalty);
void bm_pitch_path_free(bm_pitch_path *p);

/* Makes room for this number of frames. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_pitch_path_start(bm_pitch_path *p, size_t frames);

/* Takes the costs [states] of the next frame. Time and memory are linear in the
 * number of states. */
void bm_pitch_path_add(bm_pitch_path *p, const float *cost);

/* The states [frames] of the path, of the frames that were added. */
void bm_pitch_path_end(const bm_pitch_path *p, uint16_t *out);

#endif
