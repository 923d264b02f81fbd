#include "io/features/recording_features.h"

#include "core/rng.h"
#include "io/features/cepstra.h"
#include "io/features/fbank.h"
#include "io/features/pitch.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* A row of the option table. */
#define ROW(key, type) #key, type, offsetof(bm_recording_settings, key)

const bm_option bm_recording_options[] = {
    {ROW(rate, BM_INT), "0", 0, BM_MOST_HZ, "Hz",
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
    {ROW(cepstra, BM_INT), "0", 0, 512, NULL,
     "number of MFCC that replace the bands; 0: none, the bands"},
    {ROW(energy, BM_FLAG), "no", 0, 0, NULL,
     "the log energy of the window replaces the first of the cepstra"},
    {ROW(pitch, BM_FLAG), "no", 0, 0, NULL,
     "append three columns: voicing, pitch, and the slope of pitch"},
    BM_CHAIN_OPTIONS(bm_recording_settings),
    {ROW(seed, BM_INT), "1", 0, 0, NULL, "random seed of the dither"},
    {0},
};

struct bm_recording_bank {
    bm_fbank *fbank;
    bm_cepstra *cepstra; /* NULL: the bands are features */
    bm_frames bands;     /* of cepstra */
    bm_pitch *pitch;     /* NULL: none */
};

static bm_status open_fbank(bm_fbank **out, const bm_recording_settings *s)
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

    return bm_fbank_new(out, &bank);
}

static bm_status open_cepstra(bm_cepstra **out, const bm_recording_settings *s)
{
    if (s->energy && s->cepstra == 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.energy = yes replaces the first of the "
                       "cepstra, but features.cepstra = 0; set it to 13");
    if (s->cepstra == 0)
        return BM_OK;
    return bm_cepstra_new(out, (size_t)s->mels, (size_t)s->cepstra);
}

/* Its frames begin where those of the filter bank do. */
static bm_status open_pitch(bm_pitch **out, const bm_recording_settings *s,
                            const bm_fbank *fbank)
{
    const bm_pitch_settings pitch = {
        .rate = s->rate,
        .window_ms = s->window_ms,
        .shift = bm_fbank_shift(fbank),
        .snip_edges = s->snip_edges,
    };

    return s->pitch ? bm_pitch_new(out, &pitch) : BM_OK;
}

bm_status bm_recording_bank_new(bm_recording_bank **out,
                                bm_recording_settings *s)
{
    bm_recording_bank *b = calloc(1, sizeof *b);
    bm_status status = BM_OK;

    if (b == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for features");
    BM_TRY_DONE(open_fbank(&b->fbank, s));
    BM_TRY_DONE(open_cepstra(&b->cepstra, s));
    BM_TRY_DONE(open_pitch(&b->pitch, s, b->fbank));
    if (s->high_hz <= 0)
        s->high_hz += 0.5 * (double)s->rate;
    *out = b;
    b = NULL;
done:
    bm_recording_bank_free(b);
    return status;
}

void bm_recording_bank_free(bm_recording_bank *b)
{
    if (b == NULL)
        return;
    bm_fbank_free(b->fbank);
    bm_cepstra_free(b->cepstra);
    bm_frames_free(&b->bands);
    bm_pitch_free(b->pitch);
    free(b);
}

size_t bm_recording_bank_frames(const bm_recording_bank *b, size_t samples)
{
    return bm_fbank_frames(b->fbank, samples);
}

size_t bm_recording_columns(const bm_recording_settings *s)
{
    return (size_t)(s->cepstra > 0 ? s->cepstra : s->mels) +
           (s->pitch ? BM_PITCH_COLUMNS : 0);
}

/* The filter bank moves by whole samples, truncated as it does. */
double bm_recording_shift(const bm_recording_settings *s)
{
    double samples = floor(s->shift_ms * (double)s->rate / 1000 + 1e-6);

    return samples / (double)s->rate * (double)s->chain.subsample;
}

static void add_dither(const bm_recording_settings *s, const char *id, float *x,
                       size_t n)
{
    uint64_t name = XXH3_64bits(id, strlen(id));
    bm_rng rng = bm_rng_make((uint64_t)s->seed, "dither", name);

    if (s->dither > 0)
        bm_dither(x, n, s->dither, rng.key);
}

/* The columns after the bands. */
static bm_status add_pitch(bm_recording_bank *b, const float *x, size_t n,
                           bm_frames *y)
{
    const bm_pitch_point *track = NULL;

    BM_TRY(bm_pitch_track(b->pitch, x, n, y->n, &track));
    bm_pitch_columns(track, y->n, y->x + y->dim - BM_PITCH_COLUMNS, y->dim);
    return BM_OK;
}

/* The first columns: cepstra, or bands. */
static bm_status add_spectrum(bm_recording_bank *b,
                              const bm_recording_settings *s, const float *x,
                              size_t n, bm_frames *y)
{
    if (b->cepstra == NULL) {
        bm_fbank_apply(b->fbank, x, n, y->x, y->dim);
        return BM_OK;
    }
    BM_TRY(bm_frames_shape(&b->bands, y->n, (size_t)s->mels));
    bm_fbank_apply(b->fbank, x, n, b->bands.x, b->bands.dim);
    bm_cepstra_apply(b->cepstra, b->bands.x, y->n, y->x, y->dim);
    if (s->energy)
        bm_fbank_energies(b->fbank, x, n, y->x, y->dim);
    return BM_OK;
}

bm_status bm_recording_frames(bm_recording_bank *b,
                              const bm_recording_settings *s, const char *id,
                              float *x, size_t n, bm_frames *out)
{
    BM_TRY(bm_frames_shape(out, bm_fbank_frames(b->fbank, n),
                           bm_recording_columns(s)));
    if (out->n > 0 && b->pitch != NULL)
        BM_TRY(add_pitch(b, x, n, out));
    add_dither(s, id, x, n);
    return out->n > 0 ? add_spectrum(b, s, x, n, out) : BM_OK;
}
