/*
 * import_audio.c - recordings to log-mel features, with the settings of
 * [features]: samples, dither, filter bank, then the chain of feature_chain.h.
 */
#include "core/log.h"
#include "core/rng.h"
#include "core/words.h"
#include "io/features/fbank.h"
#include "io/import/import_base.h"
#include "io/import/sound.h"

#include <string.h>
#include <xxhash.h>

typedef struct settings {
    long rate, mels, channel, seed;
    double window_ms, shift_ms;
    const char *window;
    double preemphasis, dither, low_hz, high_hz;
    bool snip_edges;
    bm_chain_settings chain;
} settings;

/* A row of the option table. */
#define ROW(key, type) #key, type, offsetof(settings, key)

static const bm_option options[] = {
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
    BM_CHAIN_OPTIONS(settings),
    {ROW(seed, BM_INT), "1", 0, 0, NULL, "random seed of the dither"},
    {0},
};

typedef struct audio {
    bm_import_base base; /* must be first */
    bm_fbank *fbank;
    bm_sound sound;
    long rate;             /* that all recordings must have; 0: any */
    bm_manifest_row first; /* the recording with this rate */
    size_t probed;         /* readable recordings so far */
    bool warned;           /* of several channels */
} audio;

/* Without features.rate all recordings must have the same rate. */
static bm_status check_rate(const audio *a, const bm_manifest_row *row,
                            long rate)
{
    if (a->rate == 0 || rate == a->rate)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s has %ld Hz, but %s has %ld Hz; convert all to one "
                   "rate with --set features.rate=%ld",
                   a->first.path, a->rate, row->path, rate,
                   rate < a->rate ? rate : a->rate);
}

static bm_status read_sound(bm_importer *i, const bm_manifest_row *row,
                            bm_problem *problem)
{
    audio *a = i->self;
    const settings *s = i->settings;

    BM_TRY(bm_sound_read(&a->sound, row->path, s->channel,
                         (bm_excerpt){row->start, row->duration}, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    a->base.remark = bm_sound_remark(&a->sound);
    BM_TRY(check_rate(a, row, a->sound.rate));
    BM_TRY(bm_sound_resample(&a->sound, s->rate, problem));
    if (s->dither > 0) {
        uint64_t name = XXH3_64bits(row->id, strlen(row->id));
        bm_rng rng = bm_rng_make((uint64_t)s->seed, "dither", name);
        bm_dither(a->sound.x, a->sound.n, s->dither, rng.key);
    }
    return BM_OK;
}

static bm_status audio_read(bm_importer *i, const bm_manifest_row *row,
                            bm_frames *x, bm_problem *problem)
{
    audio *a = i->self;
    const settings *s = i->settings;
    size_t frames;

    BM_TRY(read_sound(i, row, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    frames = bm_fbank_frames(a->fbank, a->sound.n);
    if (frames == 0) {
        bm_problem_set(problem, "shorter than a window",
                       "%.3f s: shorter than one window of %g ms",
                       (double)a->sound.n / (double)a->sound.rate,
                       s->window_ms);
        return BM_OK;
    }
    BM_TRY(bm_frames_shape(x, frames, (size_t)s->mels));
    bm_fbank_apply(a->fbank, a->sound.x, a->sound.n, x->x);
    return BM_OK;
}

/* Fails if the wanted channel is missing; warns once if several are mixed. */
static bm_status check_channels(audio *a, const settings *s,
                                const bm_manifest_row *row)
{
    long channels = a->sound.channels;

    if (s->channel > channels)
        return BM_FAIL(BM_ERR_FORMAT, "%s has %s; features.channel = %ld",
                       row->path, bm_count_noun(channels, "channel").text,
                       s->channel);
    if (s->channel == 0 && channels > 1 && !a->warned) {
        bm_log(BM_WARNING,
               "%s has %ld channels; their mean is used; set "
               "features.channel to use one",
               row->path, channels);
        a->warned = true;
    }
    return BM_OK;
}

/* Reads the header of every recording, so that different rates are reported
 * before hours of work. The first one decides the rate if it is not set. */
static bm_status audio_look(bm_importer *i, const bm_manifest_row *row,
                            bool *enough, bm_problem *problem)
{
    audio *a = i->self;
    settings *s = i->settings;

    *enough = false;
    BM_TRY(bm_sound_probe(&a->sound, row->path, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    BM_TRY(check_channels(a, s, row));
    BM_TRY(check_rate(a, row, a->sound.rate));
    if (a->probed++ == 0 && s->rate == 0) {
        a->rate = s->rate = a->sound.rate;
        a->first = *row;
    }
    return BM_OK;
}

static bm_status open_bank(bm_importer *i)
{
    audio *a = i->self;
    settings *s = i->settings;
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

    BM_TRY(bm_fbank_new(&a->fbank, &bank));
    if (s->high_hz <= 0)
        s->high_hz += 0.5 * (double)s->rate;
    return BM_OK;
}

static bm_status audio_open(bm_importer *i, const char *path,
                            double most_missing)
{
    const settings *s = i->settings;

    BM_TRY(bm_import_open(i, sizeof(audio), path, "audio", most_missing,
                          audio_read));
    BM_TRY(bm_import_probe(i, audio_look, "recordings"));
    BM_TRY(open_bank(i));
    ((audio *)i->self)->base.frame_shift =
        s->shift_ms / 1000 * (double)s->chain.subsample;
    BM_TRY(bm_import_refine(i, &s->chain, (size_t)s->mels));
    return bm_import_describe(i);
}

static void audio_close(bm_importer *i)
{
    audio *a = i->self;

    if (a == NULL)
        return;
    bm_fbank_free(a->fbank);
    bm_sound_free(&a->sound);
    bm_import_close(i);
}

const bm_importer_ops bm_importer_audio = {
    .name = "audio",
    .help = "Recordings (WAV, FLAC ..) to log-mel features",
    .section = "features",
    .options = options,
    .settings_size = sizeof(settings),
    .store = "f32",
    .open = audio_open,
    .close = audio_close,
    .text = bm_import_text,
    .next = bm_import_next,
    .size = bm_import_size,
    .meta = bm_import_meta,
};
