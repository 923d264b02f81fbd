/*
 * import_audio.c - recordings to log-mel features, by [features]:
 * samples, dither, filter bank, then the chain of feature_chain.h.
 */
#include "core/log.h"
#include "core/rng.h"
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

/* The rows of numbers and texts of [features] itself. */
#define ROW(key, type) #key, type, offsetof(settings, key)

static const bm_option options[] = {
    {ROW(rate, BM_INT), "0", 0, 384000, "Hz",
     "sampling rate to bring recordings to; 0: as they are"},
    {ROW(channel, BM_INT), "0", 0, 1024, NULL,
     "which channel of a recording; 0: the mean of all"},
    {ROW(mels, BM_INT), "40", 1, 512, "bands", "of the mel filter bank"},
    {ROW(window_ms, BM_FLOAT), "25", 0.1, 1000, "ms", "length of a window"},
    {ROW(shift_ms, BM_FLOAT), "10", 0.1, 1000, "ms",
     "from one window to the next"},
    {ROW(window, BM_CHOICE), "povey", 0, 0,
     "povey hanning hamming blackman rectangular", "shape of a window"},
    {ROW(preemphasis, BM_FLOAT), "0.97", 0, 1, NULL,
     "share of the sample before that is subtracted"},
    {ROW(dither, BM_FLOAT), "0", 0, 1000, NULL,
     "deviation of noise that is added to 16-bit samples"},
    {ROW(low_hz, BM_FLOAT), "20", 0, 192000, "Hz", "where the bands begin"},
    {ROW(high_hz, BM_FLOAT), "0", -192000, 192000, "Hz",
     "where they end; 0 or less: so much below half the rate"},
    {ROW(snip_edges, BM_FLAG), "yes", 0, 0, NULL,
     "whole windows only; no: reflect the signal at its ends"},
    BM_CHAIN_OPTIONS(settings),
    {ROW(seed, BM_INT), "1", 0, 0, NULL, "of the dither"},
    {0},
};

typedef struct audio {
    bm_import_base base; /* must be first */
    bm_fbank *fbank;
    bm_sound sound;
    long rate;             /* of all recordings, as recorded; 0: any */
    bm_manifest_row first; /* the recording that has it */
} audio;

/* Without features.rate all recordings have the rate of the first. */
static bm_status check_rate(const audio *a, const bm_manifest_row *row,
                            long rate)
{
    if (a->rate == 0 || rate == a->rate)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s has %ld Hz, but %s has %ld Hz; bring all to one rate "
                   "with --set features.rate=%ld",
                   a->first.path, a->rate, row->path, rate,
                   rate < a->rate ? rate : a->rate);
}

static bm_status read_sound(bm_importer *i, const bm_manifest_row *row,
                            bm_problem *problem)
{
    audio *a = i->self;
    const settings *s = i->settings;

    BM_TRY(bm_sound_read(&a->sound, row->path, s->channel, problem));
    if (bm_problem_is(problem))
        return BM_OK;
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
        bm_problem_set(problem, "%.3f s is shorter than one window of %g ms",
                       (double)a->sound.n / (double)a->sound.rate,
                       s->window_ms);
        return BM_OK;
    }
    BM_TRY(bm_frames_shape(x, frames, (size_t)s->mels));
    bm_fbank_apply(a->fbank, a->sound.x, a->sound.n, x->x);
    return BM_OK;
}

/* Several channels become one silently otherwise. */
static bm_status check_channels(const settings *s, const bm_manifest_row *row,
                                long channels, bool *told)
{
    if (s->channel > channels)
        return BM_FAIL(
            BM_ERR_FORMAT, "%s has %ld channel%s, no features.channel=%ld",
            row->path, channels, channels == 1 ? "" : "s", s->channel);
    if (s->channel == 0 && channels > 1 && !*told) {
        bm_log(BM_WARNING,
               "%s has %ld channels; their mean is used unless "
               "features.channel chooses one",
               row->path, channels);
        *told = true;
    }
    return BM_OK;
}

/* Reads the heads of all recordings: what they disagree in is told before any
 * work is done, not after an hour of it. */
static bm_status probe_all(bm_importer *i)
{
    audio *a = i->self;
    settings *s = i->settings;
    size_t usable = 0, n = bm_manifest_size(a->base.manifest);
    bool told = false;
    bm_problem first = {""};

    for (size_t k = 0; k < n; k++) {
        bm_manifest_row row = bm_manifest_at(a->base.manifest, k);
        bm_problem problem = {""};

        bm_sound_probe(&a->sound, row.path, &problem);
        if (bm_problem_is(&problem)) {
            first = bm_problem_is(&first) ? first : problem;
            continue;
        }
        BM_TRY(check_channels(s, &row, a->sound.channels, &told));
        BM_TRY(check_rate(a, &row, a->sound.rate));
        if (usable++ == 0 && s->rate == 0) {
            a->rate = s->rate = a->sound.rate;
            a->first = row;
        }
    }
    if (usable == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: none of the %zu recordings can be read: %s",
                       bm_manifest_path(a->base.manifest), n, first.text);
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

static bm_status audio_open(bm_importer *i, const char *path)
{
    const settings *s = i->settings;

    BM_TRY(bm_import_open(i, sizeof(audio), path, "audio", audio_read));
    BM_TRY(probe_all(i));
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
    .meta = bm_import_meta,
};
