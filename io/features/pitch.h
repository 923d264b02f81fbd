/*
 * pitch.h - pitch and voicing of each frame, as Kaldi defines them by default
 * (P. Ghahremani et al., "A pitch extraction algorithm tuned for automatic
 * speech recognition", ICASSP 2014):
 *
 *     the signal at 4 kHz, low-passed at 1 kHz; of frame t the window w of N
 *     samples and the 82 after it, less the window's mean;
 *     nccf(t, l) = <w, w_l> / sqrt(|w|^2 |w_l|^2 + b), w_l: l samples later,
 *         b = 7000 (N mean square of the signal)^2 for the path, 0 for voicing,
 *         interpolated at the lags L_s = 1.005^s / 400 s, up to 1/50 s;
 *     the path s_t with the least sum of 1 - nccf(t, L_s) (1 - 10 L_s) and
 *         0.1 (ln 1.005)^2 (s_t - s_(t-1))^2
 */
#ifndef BM_IO_FEATURES_PITCH_H
#define BM_IO_FEATURES_PITCH_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { BM_PITCH_COLUMNS = 3 };

typedef struct bm_pitch bm_pitch;

typedef struct bm_pitch_settings {
    long rate;        /* samples per second */
    double window_ms; /* N */
    double shift;     /* from one frame to the next, in samples at `rate` */
    bool snip_edges;  /* as in fbank.h; no: zeros beyond the ends */
} bm_pitch_settings;

/* A frame of a path. */
typedef struct bm_pitch_point {
    double nccf; /* without ballast, about -1 .. 1 */
    double log_hz;
} bm_pitch_point;

/* Fails with BM_ERR_CONFIG, naming a key of [features], if a setting is invalid,
 * or with BM_ERR_MEMORY. Free with bm_pitch_free; NULL is a no-op. */
BM_CHECKED bm_status bm_pitch_new(bm_pitch **out, const bm_pitch_settings *s);
void bm_pitch_free(bm_pitch *p);

/* The path through x [n]. *out [frames] is borrowed until the next call. One
 * thread at a time: p has the scratch memory. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_pitch_track(bm_pitch *p, const float *x, size_t n,
                                    size_t frames, const bm_pitch_point **out);

/*
 * track [T] -> y [T, stride]: the first BM_PITCH_COLUMNS of each row are
 *
 *     2 ((1.0001 - nccf)^0.15 - 1);
 *     2 (log_hz - its mean over frames t - 75 .. t + 75, each weighted by the
 *         probability that it is voiced);
 *     10 times the slope of log_hz over +-2 frames.
 */
void bm_pitch_columns(const bm_pitch_point *track, size_t frames, float *y,
                      size_t stride);

#endif
