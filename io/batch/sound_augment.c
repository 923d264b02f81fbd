#include "io/batch/sound_augment.h"

#include "core/log.h"
#include "io/augment/draw.h"
#include "io/features/recording_features.h"
#include "io/sound/perturb.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { MOST_WARNINGS = 10 };

struct bm_sound_augmenter {
    bm_dataset *d;         /* borrowed */
    pthread_mutex_t *lock; /* of its shards, borrowed; NULL: none */
    bool reverb, noise;    /* are there some in the settings? */
    double share, reverb_share, noise_share;
    bm_perturb *perturb;
    bm_perturber *perturber;

    bm_config *config; /* owns the texts of `set` */
    bm_recording_settings set;
    bm_recording_bank *bank;
    bm_chain *chain;

    bm_waveform wave; /* as read */
    bm_sound sound;   /* that changes */
    bm_frames frames; /* of it */
    float *normed;    /* [normed_capacity]: normalised as the data set is */
    size_t normed_capacity;

    uint64_t warned[MOST_WARNINGS]; /* hashes of the texts */
    size_t n_warned;
};

/* ---- opening --------------------------------------------------------------- */

/* The first setting that wants samples, for messages. */
static const char *wanted(const bm_augment_settings *s, const char **value)
{
    bool reverb = bm_augment_has_reverb(s);

    *value = reverb ? s->reverb : s->noise_sound;
    return reverb ? "reverb" : "noise_sound";
}

static bm_status check_shards(const bm_dataset *d,
                              const bm_augment_settings *settings)
{
    const char *value = NULL, *key = wanted(settings, &value);
    const bm_shard *first = d->shards[0];

    for (size_t i = 0; i < d->n_shards; i++) {
        const bm_shard *s = d->shards[i];

        if (bm_shard_sample_rate(s) == 0)
            return BM_FAIL(
                BM_ERR_CONFIG,
                "augment.%s = %s changes recordings, but %s has only "
                "features; pack data.train again from recordings, "
                "with --set shard.samples=yes, or leave augment.%s "
                "out",
                key, value, d->paths[i], key);
        if (bm_shard_sample_rate(s) != bm_shard_sample_rate(first) ||
            bm_shard_moments(s) != bm_shard_moments(first))
            return BM_FAIL(BM_ERR_CONFIG,
                           "augment.%s = %s makes features of recordings, but "
                           "those of %s and %s were made with different "
                           "settings; pack data.train again",
                           key, value, d->paths[0], d->paths[i]);
    }
    return BM_OK;
}

/* What makes features, by the description in the shards. */
static bm_status open_features(bm_sound_augmenter *a)
{
    const char *text = bm_shard_features_text(a->d->shards[0]);
    bm_recording_settings *s = &a->set;
    bm_cmvn norm = {0};
    size_t moments = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_features_settings(text, bm_recording_options, &a->config, s));
    if (s->rate != bm_shard_sample_rate(a->d->shards[0]))
        return BM_FAIL(BM_ERR_FORMAT,
                       "features were made at %ld Hz, but samples have %ld Hz",
                       s->rate, bm_shard_sample_rate(a->d->shards[0]));
    BM_TRY(bm_recording_bank_new(&a->bank, s));
    BM_TRY(bm_chain_new(&a->chain, &s->chain, "features",
                        bm_recording_columns(s), 1));
    status = bm_cmvn_read(&norm, text);
    if (status == BM_OK)
        status = bm_chain_give(a->chain, "features", &norm);
    bm_cmvn_free(&norm);
    BM_TRY(status);
    (void)bm_chain_moments_of(a->chain, 0, &moments);
    if (moments != bm_shard_moments(a->d->shards[0]))
        return BM_FAIL(BM_ERR_FORMAT,
                       "features.normalise = %s takes %zu moments, but each "
                       "recording has %zu",
                       s->chain.normalise, moments,
                       bm_shard_moments(a->d->shards[0]));
    if (bm_chain_learns(a->chain) && moments == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "features.normalise = %s, by means that are not in the "
                       "shards",
                       s->chain.normalise);
    if (bm_chain_features(a->chain) != a->d->features)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%zu features a frame, but their settings make %zu",
                       a->d->features, bm_chain_features(a->chain));
    return BM_OK;
}

static bm_status open_perturb(bm_sound_augmenter *a,
                              const bm_augment_settings *s)
{
    bm_perturb_settings set = {.sound = bm_augment_sound(s),
                               .reverb = "augment.reverb",
                               .noise = "augment.noise_sound",
                               .rate = a->set.rate};

    if (!a->reverb)
        set.sound.reverb = "no";
    if (!a->noise)
        set.sound.noise = "no";
    BM_TRY(bm_perturb_open(&a->perturb, &set));
    if (bm_perturb_babbles(a->perturb) && a->d->n < 2)
        return BM_FAIL(BM_ERR_CONFIG,
                       "augment.noise_sound: babble is of other recordings, "
                       "and %s has only one; take white or pink",
                       a->d->directory);
    return bm_perturber_new(&a->perturber, a->perturb);
}

bm_status bm_sound_augmenter_open(bm_sound_augmenter **out, bm_dataset *d,
                                  pthread_mutex_t *lock,
                                  const bm_augment_settings *settings)
{
    bm_sound_augmenter *a = NULL;
    bm_status status = BM_OK;

    *out = NULL;
    if (!bm_augment_has_reverb(settings) && !bm_augment_has_noises(settings))
        return BM_OK;
    BM_TRY(check_shards(d, settings));
    a = calloc(1, sizeof *a);
    if (a == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to change recordings");
    a->d = d;
    a->lock = lock;
    a->share = settings->share;
    a->reverb_share = settings->reverb_share;
    a->noise_share = settings->noise_sound_share;
    a->reverb = bm_augment_has_reverb(settings);
    a->noise = bm_augment_has_noises(settings);
    status = open_features(a);
    if (status == BM_ERR_FORMAT || status == BM_ERR_CONFIG)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: %s", d->directory, bm_last_message());
    BM_TRY_DONE(status);
    BM_TRY_DONE(open_perturb(a, settings));
    *out = a;
    a = NULL;
done:
    bm_sound_augmenter_close(a);
    return status;
}

uint64_t bm_sound_augmenter_digest(const bm_sound_augmenter *a)
{
    return a != NULL ? bm_perturb_digest(a->perturb) : 0;
}

void bm_sound_augmenter_close(bm_sound_augmenter *a)
{
    if (a == NULL)
        return;
    bm_perturber_free(a->perturber);
    bm_perturb_close(a->perturb);
    bm_chain_free(a->chain);
    bm_recording_bank_free(a->bank);
    bm_config_free(a->config);
    bm_waveform_free(&a->wave);
    bm_sound_free(&a->sound);
    bm_frames_free(&a->frames);
    free(a->normed);
    free(a);
}

/* ---- recordings ------------------------------------------------------------ */

/* The recording of a sequence. */
static bm_status read_sound(bm_sound_augmenter *a, int64_t sequence,
                            bm_sound *out)
{
    bm_status status = BM_OK;

    if (a->lock != NULL)
        pthread_mutex_lock(a->lock);
    status = bm_dataset_read_waveform(a->d, sequence, &a->wave);
    if (a->lock != NULL)
        pthread_mutex_unlock(a->lock);
    BM_TRY(status);
    BM_TRY(bm_samples_reserve(&out->x, &out->capacity, a->wave.n));
    for (size_t i = 0; i < a->wave.n; i++)
        out->x[i] = a->wave.x[i];
    out->n = a->wave.n;
    out->rate = a->set.rate;
    out->channels = 1;
    return BM_OK;
}

/* Normalisation by the moments of the sequence that was read last. */
static bm_status take_moments(bm_sound_augmenter *a, int64_t sequence)
{
    const bm_waveform *w = &a->wave;
    bool valid = w->n_moments == 0 || w->moments[0] > 0;

    for (size_t i = 0; i < w->n_moments; i++)
        valid = valid && isfinite(w->moments[i]);
    if (!valid)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: the moments of sequence number %lld are invalid; "
                       "pack it again",
                       a->d->directory, (long long)sequence);
    if (w->n_moments > 0)
        bm_chain_take(a->chain, 0, w->moments);
    return BM_OK;
}

/* Other sequences for babble: those of the same shard, whose file is open, if it
 * has more than one. */
typedef struct babble_sequences {
    bm_sound_augmenter *a;
    int64_t first;
} babble_sequences;

static bm_status read_babble(void *self, size_t k, bm_sound *out,
                             bm_problem *problem)
{
    const babble_sequences *c = self;

    (void)problem; /* what is damaged in a shard ends training */
    return read_sound(c->a, c->first + (int64_t)k, out);
}

static bm_babble_source babble_of(babble_sequences *c, int64_t sequence)
{
    const bm_dataset *d = c->a->d;
    size_t i = 0, n = bm_shard_sequences(d->shards[0]);

    for (c->first = 0; c->first + (int64_t)n <= sequence;
         n = bm_shard_sequences(d->shards[++i]))
        c->first += (int64_t)n;
    if (n < 2) {
        c->first = 0;
        n = d->n;
    }
    return (bm_babble_source){.n = n,
                              .own = (size_t)(sequence - c->first),
                              .read = read_babble,
                              .self = c};
}

/* Once for each file; the reader's thread goes on with the sequence as it is. */
static void warn(bm_sound_augmenter *a, const char *text)
{
    uint64_t hash = XXH3_64bits(text, strlen(text));

    for (size_t i = 0; i < a->n_warned; i++)
        if (a->warned[i] == hash)
            return;
    if (a->n_warned == MOST_WARNINGS)
        return;
    a->warned[a->n_warned++] = hash;
    bm_log(BM_WARNING,
           "%s; sequences for which it is drawn are trained on without room "
           "and noise%s",
           text,
           a->n_warned == MOST_WARNINGS ? "; more will not be logged" : "");
}

/* ---- features -------------------------------------------------------------- */

/* The name of a sequence, which dither depends on; else "". */
static bm_status find_id(bm_sound_augmenter *a, int64_t sequence,
                         const char **id)
{
    bm_status status = BM_OK;

    *id = "";
    if (a->set.dither == 0)
        return BM_OK;
    if (a->lock != NULL)
        pthread_mutex_lock(a->lock);
    status = bm_dataset_tag(a->d, sequence, id);
    if (a->lock != NULL)
        pthread_mutex_unlock(a->lock);
    return status;
}

/* a->sound -> in->x, as bmuf pack makes them, and as the reader reads them. */
static bm_status make_features(bm_sound_augmenter *a, int64_t sequence,
                               bm_augmented *in)
{
    const bm_frames *x = &a->frames;
    const char *id = NULL;
    size_t n = 0;

    BM_TRY(find_id(a, sequence, &id));
    BM_TRY(bm_recording_frames(a->bank, &a->set, id, a->sound.x, a->sound.n,
                               &a->frames));
    if (a->frames.n > 0)
        BM_TRY(bm_chain_apply(a->chain, 0, &a->frames, &x));
    if (x->n != in->frames)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: sequence number %lld has %zu frames, but its "
                       "samples make %zu; pack it again",
                       a->d->directory, (long long)sequence, in->frames, x->n);
    in->x = x->x;
    if (a->d->norm.dim == 0)
        return BM_OK;
    n = x->n * x->dim;
    BM_TRY(bm_samples_reserve(&a->normed, &a->normed_capacity, n));
    memcpy(a->normed, x->x, n * sizeof *a->normed);
    bm_cmvn_apply(&a->d->norm, a->normed, x->n, x->dim);
    in->x = a->normed;
    return BM_OK;
}

/* Whether a share of the sequences has this one. */
static bool drawn(bm_rng *rng, double share)
{
    return bm_rng_uniform(rng) < share;
}

bm_status bm_sound_augment(bm_sound_augmenter *a, uint64_t key,
                           int64_t sequence, bm_augmented *in)
{
    babble_sequences c = {.a = a};
    bm_babble_source babble = {0};
    bm_perturb_draw draw = {.for_reverb = bm_draw_stream(key, BM_DRAW_REVERB),
                            .for_noise =
                                bm_draw_stream(key, BM_DRAW_NOISE_SOUND),
                            .babble = &babble};
    bm_problem problem = {0};

    draw.reverb = a->reverb && drawn(&draw.for_reverb, a->reverb_share);
    draw.noise = a->noise && drawn(&draw.for_noise, a->noise_share);
    if (!bm_augment_changes(a->share, key) || (!draw.reverb && !draw.noise))
        return BM_OK;
    babble = babble_of(&c, sequence);
    BM_TRY(read_sound(a, sequence, &a->sound));
    BM_TRY(take_moments(a, sequence));
    BM_TRY(bm_perturb_apply(a->perturber, &draw, &a->sound, &problem));
    if (!bm_problem_is(&problem))
        return make_features(a, sequence, in);
    warn(a, problem.text);
    return BM_OK;
}
