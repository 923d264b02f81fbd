/*
 * import_audio.c - recordings to log-mel features, with the settings of
 * [features]: samples, the frames of recording_features.h, then the chain of
 * feature_chain.h.
 */
#include "core/log.h"
#include "core/words.h"
#include "io/features/recording_features.h"
#include "io/import/import_base.h"
#include "io/import/sound.h"

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
    const bm_recording_settings *s = i->settings;

    BM_TRY(bm_sound_read(&a->sound, row->path, s->channel,
                         (bm_excerpt){row->start, row->duration}, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    a->base.remark = bm_sound_remark(&a->sound);
    BM_TRY(check_rate(a, row, a->sound.rate));
    return bm_sound_resample(&a->sound, s->rate, problem);
}

static bm_status audio_read(bm_importer *i, const bm_manifest_row *row,
                            bm_frames *x, bm_problem *problem)
{
    audio *a = i->self;
    const bm_recording_settings *s = i->settings;

    BM_TRY(read_sound(i, row, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    BM_TRY(
        bm_recording_frames(a->fbank, s, row->id, a->sound.x, a->sound.n, x));
    if (x->n == 0)
        bm_problem_set(problem, "shorter than a window",
                       "%.3f s: shorter than one window of %g ms",
                       (double)a->sound.n / (double)a->sound.rate,
                       s->window_ms);
    return BM_OK;
}

/* Fails if the wanted channel is missing; warns once if several are mixed. */
static bm_status check_channels(audio *a, const bm_recording_settings *s,
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
    bm_recording_settings *s = i->settings;

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

static bm_status audio_open(bm_importer *i, const char *path,
                            double most_missing)
{
    bm_recording_settings *s = i->settings;
    audio *a = NULL;

    BM_TRY(bm_import_open(i, sizeof(audio), path, "audio", most_missing,
                          audio_read));
    BM_TRY(bm_import_probe(i, audio_look, "recordings"));
    a = i->self;
    BM_TRY(bm_recording_bank(&a->fbank, s));
    a->base.frame_shift = bm_recording_shift(s);
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
    .options = bm_recording_options,
    .settings_size = sizeof(bm_recording_settings),
    .store = "f32",
    .open = audio_open,
    .close = audio_close,
    .text = bm_import_text,
    .next = bm_import_next,
    .size = bm_import_size,
    .meta = bm_import_meta,
};
