#include "tools/speech/shard_maker.h"

#include "core/file/file.h"
#include "io/features/feature_chain.h"
#include "tools/speech/acoustics.h"
#include "tools/speech/grammar.h"
#include "tools/speech/synthesis.h"

#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <string.h>

/* Recordings that are heard in the babble of the first ones. */
enum { HEARD_BEFORE = 8 };
enum { FORMANTS = 2 * BM_FORMANT_STEPS + 1 };
static const double full_scale = 32767; /* of samples of 16 bits */

struct bm_shard_maker {
    const bm_corpus *c;
    bm_speech_set set;
    size_t shard;
    uint64_t key; /* of its random numbers */

    bm_resampler *resampler[FORMANTS]; /* NULL: not yet needed */
    bm_reverb *reverb;
    bm_noise *noise;
    bm_signal speech, background;
    bm_recording_bank *bank;
    bm_chain *chain;
    bm_frames frames;
    bm_shard_writer *writer;
    char *manifest; /* [manifest_size] */
    size_t manifest_size;
    FILE *lines; /* writes it */
};

/* One recording. */
typedef struct utterance {
    char id[48], text[BM_LONGEST_TEXT];
    bm_speaker speaker;
    bm_noise_kind noise;
    double snr, t60;
} utterance;

static double within(bm_rng *rng, bm_speech_range r)
{
    return r.from + (r.to - r.from) * bm_rng_uniform(rng);
}

/* The resampler to the rate of the features that also moves formants: they are
 * multiplied by `factor`, and so are pitch and speed. */
static bm_status find_resampler(bm_shard_maker *m, int formants,
                                const bm_resampler **out)
{
    bm_resampler **r = &m->resampler[formants + BM_FORMANT_STEPS];
    double factor = 1 + BM_FORMANT_STEP * formants;

    if (*r == NULL)
        BM_TRY(bm_resampler_new(r, factor * BM_SYNTHESIS_RATE /
                                       (double)m->c->features.rate));
    *out = *r;
    return BM_OK;
}

/* m->speech <- the text, spoken close to a microphone. The speed is made up for
 * what moving the formants does to it. */
static bm_status speak(bm_shard_maker *m, const utterance *u, bm_rng *rng)
{
    double factor = 1 + BM_FORMANT_STEP * u->speaker.formants;
    double speed =
        (u->speaker.speed + (double)bm_rng_below(rng, 31) - 15) / factor;
    const bm_resampler *resampler = NULL;
    const int16_t *x = NULL;
    size_t n = 0;

    BM_TRY(find_resampler(m, u->speaker.formants, &resampler));
    BM_TRY(
        bm_synthesis_speak(&u->speaker, (int)lround(speed), u->text, &x, &n));
    return bm_resample(resampler, x, n, &m->speech);
}

/* Text and speaker of recording `number`. */
static utterance draw(const bm_shard_maker *m, int64_t number, bm_rng *rng)
{
    const bm_corpus *c = m->c;
    utterance u = {0};
    size_t speaker = (size_t)bm_rng_below(rng, c->speakers[m->set]);

    snprintf(u.id, sizeof u.id, "%s-%05zu-%05lld", bm_speech_set_name(m->set),
             m->shard, (long long)number);
    u.speaker = bm_speaker_of((uint64_t)c->s.seed, m->set, speaker);
    bm_grammar_draw(c->s.language, rng, u.text);
    return u;
}

static bm_rng random_of(const bm_shard_maker *m, int64_t number)
{
    return (bm_rng){bm_rng_fork(m->key, (uint64_t)number), 0};
}

/* Room and noise, and a level: the largest sample is 1 to 20 dB below full
 * scale. */
static bm_status place(bm_shard_maker *m, utterance *u, bm_rng *rng)
{
    bm_room room = {.rate = (double)m->c->features.rate};
    double peak = 1e-9, level;

    room.t60 = u->t60 = within(rng, m->c->reverb);
    room.direct = 10 * bm_rng_uniform(rng);
    BM_TRY(bm_reverb_apply(m->reverb, &room, rng, &m->speech));
    u->snr = within(rng, m->c->snr);
    u->noise = (bm_noise_kind)bm_rng_below(rng, BM_NOISE_KINDS);
    BM_TRY(bm_noise_make(m->noise, u->noise, u->snr, &m->speech, rng,
                         &m->background));
    for (size_t i = 0; i < m->speech.n; i++)
        peak = fmax(peak, fabs((double)m->speech.x[i] + m->background.x[i]));
    level = full_scale * pow(10, -(1 + 19 * bm_rng_uniform(rng)) / 20) / peak;
    bm_signal_scale(&m->speech, level);
    bm_signal_scale(&m->background, level);
    return BM_OK;
}

/* Two channels of floats: speech, noise. */
static bm_status write_sound(const bm_shard_maker *m, const utterance *u)
{
    SF_INFO info = {.samplerate = (int)m->c->features.rate,
                    .channels = 2,
                    .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
    char path[PATH_MAX];
    SNDFILE *file = NULL;
    sf_count_t written = 0;
    size_t n = m->speech.n;
    float *x = malloc((2 * n + 1) * sizeof *x);
    bm_status status = BM_OK;

    if (x == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu samples", n);
    for (size_t i = 0; i < n; i++) {
        x[2 * i] = m->speech.x[i] / (float)(full_scale + 1);
        x[2 * i + 1] = m->background.x[i] / (float)(full_scale + 1);
    }
    snprintf(path, sizeof path, "%.4000s/listen/%s.wav", m->c->s.out, u->id);
    file = sf_open(path, SFM_WRITE, &info);
    if (file == NULL)
        BM_FAIL_DONE(BM_ERR_CREATE, "%s: %s", path, sf_strerror(NULL));
    sf_command(file, SFC_SET_ADD_PEAK_CHUNK, NULL, SF_FALSE); /* has the time */
    written = sf_writef_float(file, x, (sf_count_t)n);
    if (sf_close(file) != 0 || written != (sf_count_t)n)
        status = BM_FAIL(BM_ERR_IO, "%s: cannot be written; is the disk full?",
                         path);
done:
    free(x);
    return status;
}

static void note(bm_shard_maker *m, const utterance *u)
{
    fprintf(m->lines,
            "{\"id\": \"%s\", \"text\": \"%s\", \"speaker\": \"%s\", "
            "\"duration\": %.3f, \"voice\": \"%s\", \"snr\": %.1f, "
            "\"noise\": \"%s\", \"t60\": %.2f}\n",
            u->id, u->text, u->speaker.name,
            (double)m->speech.n / (double)m->c->features.rate, u->speaker.voice,
            u->snr, bm_noise_name(u->noise), u->t60);
}

/* Adds the recording to the shard. The sum of speech and noise is made in
 * m->background. */
static bm_status add(bm_shard_maker *m, const utterance *u)
{
    const bm_frames *y = NULL;
    int32_t labels[BM_LONGEST_TEXT];
    size_t unknown = 0, n = 0;

    for (size_t i = 0; i < m->speech.n; i++)
        m->background.x[i] += m->speech.x[i];
    BM_TRY(bm_recording_frames(m->bank, &m->c->features, u->id, m->background.x,
                               m->background.n, &m->frames));
    BM_TRY(bm_chain_apply(m->chain, 0, &m->frames, &y));
    BM_TRY(bm_vocab_encode(m->c->vocab, u->text, labels, &n, &unknown, NULL));
    BM_ASSERT(unknown == 0);
    note(m, u);
    return bm_shard_writer_add(m->writer, u->id, u->speaker.name, y->x, y->n,
                               labels, n);
}

/* Seconds of the frames of m->speech. */
static double seconds(const bm_shard_maker *m)
{
    const bm_recording_settings *f = &m->c->features;
    size_t frames = bm_recording_bank_frames(m->bank, m->speech.n);

    return (double)bm_subsampled(frames, (size_t)f->chain.subsample) *
           bm_recording_shift(f);
}

/* Recordings until the next would rather end after the length of the shard
 * than before it. */
static bm_status make_all(bm_shard_maker *m, bm_shard_progress *progress,
                          void *self)
{
    const bm_corpus *c = m->c;
    double total = 0,
           most = c->hours[m->set] * 3600 / (double)c->shards[m->set];

    for (int64_t i = -HEARD_BEFORE;; i++) {
        bm_rng rng = random_of(m, i);
        utterance u = draw(m, i, &rng);
        double more;

        BM_TRY(speak(m, &u, &rng));
        more = seconds(m);
        if (more <= 0)
            return BM_FAIL(BM_ERR_UNSUPPORTED,
                           "espeak-ng says nothing for \"%s\" with %s", u.text,
                           u.speaker.voice);
        bm_noise_remember(m->noise, &m->speech);
        if (i < 0)
            continue;
        if (i > 0 && total + more / 2 > most)
            return BM_OK;
        BM_TRY(place(m, &u, &rng));
        if (m->shard == 0 && i < c->s.listen)
            BM_TRY(write_sound(m, &u));
        BM_TRY(add(m, &u));
        total += more;
        BM_TRY(progress(self, more));
    }
}

static bm_status open_writer(bm_shard_maker *m)
{
    const bm_corpus *c = m->c;
    bm_shard_settings set = {0};
    bm_shard_meta meta = {
        .features = bm_chain_features(m->chain),
        .vocab = c->vocab,
        .features_text = c->features_text,
        .text_form = "nfc",
        .frame_shift = bm_recording_shift(&c->features),
    };
    char directory[PATH_MAX];

    BM_TRY(bm_config_fill(NULL, "shard", bm_shard_options, &set));
    set.store = c->s.store;
    set.unit_frames = c->s.unit_frames;
    BM_TRY(bm_corpus_path(c, m->set, directory));
    return bm_shard_part_open(&m->writer, directory, "data", &set, &meta);
}

static bm_status open_all(bm_shard_maker *m)
{
    const bm_corpus *c = m->c;
    bm_recording_settings features = c->features;
    bm_rng rng;

    m->key = bm_rng_make((uint64_t)c->s.seed, "made speech",
                         bm_rng_fork(m->set, m->shard))
                 .key;
    rng = random_of(m, INT64_MAX);
    m->lines = open_memstream(&m->manifest, &m->manifest_size);
    if (m->lines == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a manifest");
    BM_TRY(bm_synthesis_open());
    BM_TRY(bm_reverb_new(&m->reverb));
    BM_TRY(bm_noise_new(&m->noise, (double)c->features.rate, &rng));
    BM_TRY(bm_recording_bank_new(&m->bank, &features));
    BM_TRY(bm_chain_new(&m->chain, &c->features.chain, "features",
                        bm_recording_columns(&c->features), 1));
    return open_writer(m);
}

bm_status bm_shard_make(bm_shard_maker **out, const bm_corpus *c,
                        bm_speech_set set, size_t shard,
                        bm_shard_progress *progress, void *self)
{
    bm_shard_maker *m = calloc(1, sizeof *m);
    bm_status status = BM_OK;

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a shard");
    m->c = c;
    m->set = set;
    m->shard = shard;
    BM_TRY_DONE(open_all(m));
    BM_TRY_DONE(make_all(m, progress, self));
    *out = m;
    m = NULL;
done:
    bm_shard_maker_free(m);
    return status;
}

void bm_shard_maker_free(bm_shard_maker *m)
{
    if (m == NULL)
        return;
    bm_synthesis_close();
    for (int i = 0; i < FORMANTS; i++)
        bm_resampler_free(m->resampler[i]);
    bm_reverb_free(m->reverb);
    bm_noise_free(m->noise);
    bm_signal_free(&m->speech);
    bm_signal_free(&m->background);
    bm_recording_bank_free(m->bank);
    bm_chain_free(m->chain);
    bm_frames_free(&m->frames);
    bm_shard_writer_close(m->writer);
    if (m->lines != NULL)
        fclose(m->lines);
    free(m->manifest);
    free(m);
}

bm_status bm_shard_maker_write(bm_shard_maker *m, bm_shard_place *place)
{
    bool last = place->index + 1 == (int64_t)m->c->shards[m->set];
    char path[PATH_MAX], directory[PATH_MAX];

    if (fflush(m->lines) != 0)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a manifest");
    BM_TRY(bm_corpus_path(m->c, m->set, directory));
    snprintf(path, sizeof path, "%.4000s/data-%05zu.jsonl", directory,
             m->shard);
    BM_TRY(bm_file_write(path, m->manifest, m->manifest_size));
    return bm_shard_part_finish(m->writer, last, place);
}
