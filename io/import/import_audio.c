/*
 * import_audio.c - recordings to log-mel features or MFCC, and pitch, with the
 * settings of [features]: samples, the frames of recording_features.h, then the
 * chain of feature_chain.h.
 */
#include "core/log.h"
#include "core/text/words.h"
#include "io/features/recording_features.h"
#include "io/import/copies/copies.h"
#include "io/import/import_base.h"
#include "io/sound/sound.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a thread. */
typedef struct thread_state {
    bm_recording_bank *bank;
    bm_sound sound;
    bm_perturber *perturber; /* of copies; NULL: there are none */
} thread_state;

typedef struct audio {
    bm_import_base base; /* must be first */
    bm_sound probe;
    bm_copies *copies;              /* NULL: there are none */
    long rate;                      /* that all must have; 0: any */
    char first[BM_LONGEST_TAG + 1]; /* id of the recording with this rate */
    size_t probed;                  /* readable recordings so far */
    bool warned;                    /* of several channels */
} audio;

/* Without features.rate all recordings must have the same rate. */
static bm_status check_rate(const audio *a, const bm_manifest_row *row,
                            long rate)
{
    if (a->rate == 0 || rate == a->rate)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "recording %s has %ld Hz, but %s has %ld Hz; convert all to "
                   "one rate with --set features.rate=%ld",
                   a->first, a->rate, row->id, rate,
                   rate < a->rate ? rate : a->rate);
}

static void close_thread_state(void *own)
{
    thread_state *t = own;

    bm_recording_bank_free(t->bank);
    bm_sound_free(&t->sound);
    bm_perturber_free(t->perturber);
    free(t);
}

static bm_status open_thread_state(const bm_importer *i, void **own)
{
    const audio *a = i->self;
    bm_recording_settings s = *(const bm_recording_settings *)i->settings;
    thread_state *t = calloc(1, sizeof *t);
    bm_status status = BM_OK;

    if (t == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to read recordings");
    status = bm_recording_bank_new(&t->bank, &s);
    if (status == BM_OK && a->copies != NULL)
        status = bm_perturber_new(&t->perturber, bm_copies_perturb(a->copies));
    if (status == BM_OK)
        *own = t;
    else
        close_thread_state(t);
    return status;
}

static bm_status read_sound(bm_importer *i, bm_import_reader *r,
                            const bm_manifest_row *row)
{
    const bm_recording_settings *s = i->settings;
    const audio *a = i->self;
    thread_state *t = r->own;
    bm_sound *sound = &t->sound;
    double speed = row->speed;

    BM_TRY(bm_sound_read(sound, row->path, s->channel,
                         (bm_excerpt){row->start, row->duration, row->channel},
                         &r->problem));
    if (bm_problem_is(&r->problem))
        return BM_OK;
    r->remark = bm_sound_remark(sound);
    BM_TRY(check_rate(a, row, sound->rate));
    if (a->copies != NULL)
        speed *= bm_copies_speed(a->copies, row);
    BM_TRY(bm_sound_speed(sound, speed, s->rate, &r->problem));
    if (row->copy == 0 || bm_problem_is(&r->problem))
        return BM_OK;
    return bm_copies_apply(a->copies, t->perturber, row, sound, &r->problem);
}

/* The sound in 16 bits; what is beyond their range is clipped, and remarked on. */
static bm_status keep_samples(bm_import_reader *r, const bm_sound *sound)
{
    BM_TRY(bm_waveform_shape(&r->recording, sound->n));
    for (size_t i = 0; i < sound->n; i++)
        r->recording.x[i] =
            (int16_t)fminf(fmaxf(rintf(sound->x[i]), INT16_MIN), INT16_MAX);
    if (r->remark == NULL)
        r->remark = bm_sound_remark(sound);
    return BM_OK;
}

static bm_status audio_read(bm_importer *i, bm_import_reader *r,
                            const bm_manifest_row *row)
{
    const bm_recording_settings *s = i->settings;
    const audio *a = i->self;
    thread_state *t = r->own;

    BM_TRY(read_sound(i, r, row));
    if (bm_problem_is(&r->problem))
        return BM_OK;
    if (a->base.sample_rate > 0)
        BM_TRY(keep_samples(r, &t->sound)); /* without dither */
    BM_TRY(bm_recording_frames(t->bank, s, row->id, t->sound.x, t->sound.n,
                               &r->frames));
    if (r->frames.n == 0)
        bm_problem_set(&r->problem, "shorter than a window",
                       "%s: %.3f s: shorter than one window of %g ms",
                       row->path, (double)t->sound.n / (double)t->sound.rate,
                       s->window_ms);
    return BM_OK;
}

/* Fails if the wanted channel is missing; warns once if several are mixed. */
static bm_status check_channels(audio *a, const bm_recording_settings *s,
                                const bm_manifest_row *row)
{
    long channels = a->probe.channels;

    if (s->channel > channels)
        return BM_FAIL(BM_ERR_FORMAT, "%s has %s; features.channel = %ld",
                       row->path, bm_count_noun(channels, "channel").text,
                       s->channel);
    if (s->channel == 0 && row->channel == 0 && channels > 1 && !a->warned) {
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
    BM_TRY(bm_sound_probe(&a->probe, row->path, problem));
    if (bm_problem_is(problem))
        return BM_OK;
    if (s->rate == 0 && a->probe.rate > BM_MOST_HZ) {
        bm_problem_set(problem, "a rate that is too high",
                       "%s: %ld Hz; at most %d are possible, unless "
                       "features.rate is set",
                       row->path, a->probe.rate, BM_MOST_HZ);
        return BM_OK;
    }
    BM_TRY(check_channels(a, s, row));
    BM_TRY(check_rate(a, row, a->probe.rate));
    if (a->probed++ == 0 && s->rate == 0) {
        a->rate = s->rate = a->probe.rate;
        snprintf(a->first, sizeof a->first, "%s", row->id);
    }
    return BM_OK;
}

/* Adds the rows of copies, and what they need. Classes of frames have the times
 * of the recording. */
static bm_status open_copies(bm_importer *i)
{
    const bm_recording_settings *s = i->settings;
    audio *a = i->self;
    bm_copies_source source = {
        .manifest = a->base.manifest, .rate = s->rate, .channel = s->channel};

    if (i->copies.count == 0)
        return BM_OK;
    if (a->base.classes != NULL && i->copies.speed[0] != '\0')
        return BM_FAIL(
            BM_ERR_CONFIG,
            "copies.speed cannot be combined with --targets, whose classes "
            "have the times of the recordings; use [augment] speed "
            "in training");
    BM_TRY(bm_manifest_copy(a->base.manifest, (size_t)i->copies.count));
    return bm_copies_open(&a->copies, &i->copies, &source);
}

static bm_status audio_open(bm_importer *i, const bm_import_source *source)
{
    static const bm_import_parts parts = {.kind = "audio",
                                          .read = audio_read,
                                          .open_own = open_thread_state,
                                          .close_own = close_thread_state};
    bm_recording_settings *s = i->settings;
    bm_recording_bank *bank = NULL;
    audio *a = NULL;

    BM_TRY(bm_import_open(i, sizeof(audio), source, &parts));
    BM_TRY(bm_import_probe(i, audio_look, "recordings"));
    a = i->self;
    BM_TRY(bm_recording_bank_new(&bank, s)); /* checks and completes *s */
    bm_recording_bank_free(bank);
    a->base.frame_shift = bm_recording_shift(s);
    if (source->samples)
        a->base.sample_rate = s->rate;
    BM_TRY(open_copies(i));
    return bm_import_refine(i, &s->chain, bm_recording_columns(s));
}

static void audio_close(bm_importer *i)
{
    audio *a = i->self;

    if (a == NULL)
        return;
    bm_sound_free(&a->probe);
    bm_copies_close(a->copies);
    bm_import_close(i);
}

const bm_importer_ops bm_importer_audio = {
    .name = "audio",
    .kind = "audio",
    .help = "Recordings (WAV, FLAC ..) to log-mel features or MFCC",
    .section = "features",
    .options = bm_recording_options,
    .settings_size = sizeof(bm_recording_settings),
    .store = "f32",
    .recordings = true,
    .open = audio_open,
    .close = audio_close,
    .meta = bm_import_meta,
    BM_IMPORT_ROWS,
};
