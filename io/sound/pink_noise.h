/* pink_noise.h - white noise through three one-pole filters, which falls by
 * about 3 dB an octave (Paul Kellet's "economy" filter, musicdsp.org). */
#ifndef BM_IO_SOUND_PINK_NOISE_H
#define BM_IO_SOUND_PINK_NOISE_H

/* state: starts as {0}. */
static inline double bm_pink_noise(double state[3], double white)
{
    state[0] = 0.99765 * state[0] + 0.0990460 * white;
    state[1] = 0.96300 * state[1] + 0.2965164 * white;
    state[2] = 0.57000 * state[2] + 1.0526913 * white;
    return state[0] + state[1] + state[2] + 0.1848 * white;
}

#endif
