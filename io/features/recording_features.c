#include "io/features/recording_features.h"

#include "core/rng.h"

#include <string.h>
#include <xxhash.h>

/* A row of the option table. */
#define ROW(key, type) #key, type, offsetof(bm_recording_settings, key)

const bm_option bm_recording_options[] = {
    {ROW(rate, BM_INT), "0", 0, 384000, "Hz",
     "sampling rate that recordings are converted to; 0: as recorded"},
    {ROW(channel, BM_INT), "0", 0, 1024, NULL,
     "channel of a recording, from 1; 0: the mean of all"},
    {ROW(mels, BM_INT), "40", 1, 512, "bands", "size of the mel filter bank"},
    {ROW(window_ms, BM_FLOAT), "25", 0.1, 1000, "ms", "length of a window"},
    {ROW(shift_ms, BM_FLOAT), "10", 0.1, 1000, "ms",
     "distance from one window to the next"},
    {ROW(window, BM_CHOICE), "povey", 0, 0,
     "povey hanning hamming blackman rectangular", "shape of a window"},
    {ROW(preemphasis, BM_FLOAT), "0.97", 0, 1, NULL,
     "factor of the previous sample that is subtracted"},
    {ROW(dither, BM_FLOAT), "0", 0, 1000, NULL,
     "standard deviation of noise added to 16-bit samples"},
    {ROW(low_hz, BM_FLOAT), "20", 0, 192000, "Hz", "low end of the bands"},
    {ROW(high_hz, BM_FLOAT), "0", -192000, 192000, "Hz",
     "high end of the bands; 0 or less: added to half the rate"},
    {ROW(snip_edges, BM_FLAG), "yes", 0, 0, NULL,
     "use whole windows only; no: reflect the signal at its ends"},
    BM_CHAIN_OPTIONS(bm_recording_settings),
    {ROW(seed, BM_INT), "1", 0, 0, NULL, "random seed of the dither"},
    {0},
};

bm_status bm_recording_bank(bm_fbank **out, bm_recording_settings *s)
{
    const bm_fbank_settings bank = {
        .rate = s->rate,
        .mels = s->mels,
        .window_ms = s->window_ms,
        .shift_ms = s->shift_ms,
        .window = s->window,
        .preemphasis = s->preemphasis,
        .low_hz = s->low_hz,
        .high_hz = s->high_hz,
        .snip_edges = s->snip_edges,
    };

    BM_TRY(bm_fbank_new(out, &bank));
    if (s->high_hz <= 0)
        s->high_hz += 0.5 * (double)s->rate;
    return BM_OK;
}

double bm_recording_shift(const bm_recording_settings *s)
{
    return s->shift_ms / 1000 * (double)s->chain.subsample;
}

bm_status bm_recording_frames(bm_fbank *bank, const bm_recording_settings *s,
                              const char *id, float *x, size_t n,
                              bm_frames *out)
{
    size_t frames = bm_fbank_frames(bank, n);

    if (s->dither > 0) {
        uint64_t name = XXH3_64bits(id, strlen(id));
        bm_rng rng = bm_rng_make((uint64_t)s->seed, "dither", name);

        bm_dither(x, n, s->dither, rng.key);
    }
    BM_TRY(bm_frames_shape(out, frames, (size_t)s->mels));
    if (frames > 0)
        bm_fbank_apply(bank, x, n, out->x);
    return BM_OK;
}
