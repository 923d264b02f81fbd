#include "tools/speech/corpus.h"

#include "core/file/file.h"
#include "core/file/path.h"
#include "core/text/words.h"
#include "io/shard/shard.h"
#include "tools/speech/grammar.h"
#include "tools/speech/synthesis.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Counts up whenever the same settings begin to make other speech. */
enum { GENERATION = 1 };
enum { DEFAULT_RATE = 8000, SPEAKERS_PER_HOUR = 60, FEWEST_SPEAKERS = 20 };

static const char about_name[] = "speech.json";

/* A row of the option table. */
#define ROW(key, type) #key, type, offsetof(bm_corpus_settings, key)

const bm_option bm_corpus_options[] = {
    {ROW(out, BM_TEXT), NULL, 0, 0, "DIR",
     "folder for the sets train, dev and test"},
    {ROW(hours, BM_FLOAT), "10", 0.001, 100000, "hours",
     "length of the training set"},
    {ROW(dev_hours, BM_AUTO), "auto", 0.001, 100000, "hours",
     "length of the development set; auto: a twentieth of the training set, 1 "
     "hour at most"},
    {ROW(test_hours, BM_AUTO), "auto", 0.001, 100000, "hours",
     "length of the test set; auto: a tenth of the training set, 3 hours at "
     "most"},
    {ROW(seed, BM_INT), "1", 0, 1e15, NULL,
     "the same seed makes the same bytes"},
    {ROW(language, BM_CHOICE), "everything", 0, 0, BM_LANGUAGES,
     "what is said"},
    {ROW(units, BM_CHOICE), "words", 0, 0, "words characters",
     "what the labels are"},
    {ROW(snr, BM_TEXT), "10..30", 0, 0, "LOW..HIGH",
     "power of the speech over that of the noise, in dB, equally likely "
     "between "
     "the two"},
    {ROW(reverb, BM_TEXT), "0..0.3", 0, 0, "LOW..HIGH",
     "reverberation: seconds until it has fallen by 60 dB; 0: none"},
    {ROW(store, BM_CHOICE), "f16", 0, 0, "f16 f32", "how features are stored"},
    {ROW(shard_minutes, BM_FLOAT), "30", 0.1, 600, "minutes",
     "length of a shard at most; a process makes a shard at a time"},
    {ROW(unit_frames, BM_INT), "2000", 1, 1e9, "frames",
     "a unit, which is dealt to a worker as a whole, ends once it has this "
     "many; "
     "1: with each recording"},
    {ROW(listen, BM_INT), "0", 0, 1000, "recordings",
     "keep the sound of the first ones of each set, in DIR/listen: speech on "
     "the left, noise on the right"},
    {ROW(jobs, BM_INT), "0", 0, 1024, "processes",
     "how many work at a time; 0: one a processor"},
    {0},
};

/* Parses "LOW..HIGH" or a single number. */
static bool parse_range(const char *text, bm_speech_range *out)
{
    const char *dots = strstr(text, "..");
    char low[32], *end = NULL;

    if (dots != NULL && (size_t)(dots - text) >= sizeof low)
        return false;
    snprintf(low, sizeof low, "%.*s",
             (int)(dots != NULL ? (size_t)(dots - text) : strlen(text)), text);
    out->from = out->to = strtod(low, &end);
    if (end == low || *end != '\0')
        return false;
    if (dots != NULL) {
        out->to = strtod(dots + 2, &end);
        if (end == dots + 2 || *end != '\0')
            return false;
    }
    return isfinite(out->from) && isfinite(out->to) && out->from <= out->to;
}

static bm_status read_ranges(bm_corpus *c)
{
    if (!parse_range(c->s.snr, &c->snr) || c->snr.from < -60 || c->snr.to > 200)
        return BM_FAIL(BM_ERR_CONFIG,
                       "--snr %s is not LOW..HIGH in -60..200 dB", c->s.snr);
    if (!parse_range(c->s.reverb, &c->reverb) || c->reverb.from < 0 ||
        c->reverb.to > 5)
        return BM_FAIL(BM_ERR_CONFIG,
                       "--reverb %s is not LOW..HIGH in 0..5 seconds",
                       c->s.reverb);
    return BM_OK;
}

static void size_sets(bm_corpus *c)
{
    const bm_corpus_settings *s = &c->s;

    c->hours[BM_SPEECH_train] = s->hours;
    c->hours[BM_SPEECH_dev] =
        isnan(s->dev_hours) ? fmin(s->hours / 20, 1) : s->dev_hours;
    c->hours[BM_SPEECH_test] =
        isnan(s->test_hours) ? fmin(s->hours / 10, 3) : s->test_hours;
    for (int i = 0; i < BM_SPEECH_N_SETS; i++) {
        double speakers = SPEAKERS_PER_HOUR * c->hours[i];

        c->shards[i] =
            (size_t)fmax(1, ceil(c->hours[i] * 60 / s->shard_minutes - 1e-6));
        c->speakers[i] = (size_t)fmax(FEWEST_SPEAKERS, speakers);
    }
}

/* Normalisation over several recordings would need all of them twice. */
static bm_status describe_features(bm_corpus *c)
{
    bm_recording_settings *f = &c->features;
    bm_recording_bank *bank = NULL;

    if (f->rate == 0)
        f->rate = DEFAULT_RATE;
    if (strcmp(f->chain.normalise, "none") != 0 &&
        strcmp(f->chain.normalise, "utterance") != 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.normalise = %s is not possible here; take "
                       "utterance or none",
                       f->chain.normalise);
    if (f->channel > 1)
        return BM_FAIL(BM_ERR_CONFIG,
                       "features.channel = %ld: made speech has one channel",
                       f->channel);
    BM_TRY(bm_recording_bank_new(&bank, f));
    bm_recording_bank_free(bank);
    return bm_features_describe(&c->features_text, "audio",
                                bm_recording_options, f, NULL);
}

struct learning {
    bm_vocab *vocab;
    bm_status status;
};

static void learn(void *self, const char *word)
{
    struct learning *l = self;

    if (l->status == BM_OK)
        l->status = bm_vocab_learn(l->vocab, word);
}

/* All words of the language, whether they occur or not. */
static bm_status make_vocab(bm_corpus *c)
{
    struct learning l = {0};

    BM_TRY(bm_vocab_new(&c->vocab, strcmp(c->s.units, "words") == 0));
    l.vocab = c->vocab;
    bm_grammar_words(c->s.language, learn, &l);
    BM_TRY(l.status);
    if (!bm_vocab_words(c->vocab))
        BM_TRY(bm_vocab_learn(c->vocab, "a a")); /* the blank between words */
    bm_vocab_sort(c->vocab);
    return BM_OK;
}

static bm_status describe(bm_corpus *c)
{
    const bm_corpus_settings *s = &c->s;
    json_t *features = json_loads(c->features_text, 0, NULL);
    json_t *all = json_pack(
        "{s:s, s:i, s:s, s:f, s:f, s:f, s:I, s:s, s:s, s:s, s:s, s:s, s:f, "
        "s:I, s:o}",
        "made by", "bmuf_speech", "generation", GENERATION, "espeak-ng",
        bm_synthesis_version(), "hours", c->hours[BM_SPEECH_train], "dev_hours",
        c->hours[BM_SPEECH_dev], "test_hours", c->hours[BM_SPEECH_test], "seed",
        (json_int_t)s->seed, "language", s->language, "units", s->units, "snr",
        s->snr, "reverb", s->reverb, "store", s->store, "shard_minutes",
        s->shard_minutes, "unit_frames", (json_int_t)s->unit_frames, "features",
        features);

    if (all != NULL)
        c->description =
            json_dumps(all, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
    json_decref(all);
    if (c->description == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to describe the corpus");
    return BM_OK;
}

bm_status bm_corpus_open(bm_corpus *c, const bm_config *config)
{
    bm_status status = BM_OK;

    *c = (bm_corpus){0};
    BM_TRY(bm_config_fill(config, "speech", bm_corpus_options, &c->s));
    BM_TRY(
        bm_config_fill(config, "features", bm_recording_options, &c->features));
    if (c->s.jobs == 0)
        c->s.jobs = (long)fmax(1, (double)sysconf(_SC_NPROCESSORS_ONLN));
    BM_TRY(read_ranges(c));
    size_sets(c);
    BM_TRY_DONE(describe_features(c));
    BM_TRY_DONE(make_vocab(c));
    BM_TRY_DONE(describe(c));
done:
    if (status != BM_OK)
        bm_corpus_free(c);
    return status;
}

void bm_corpus_free(bm_corpus *c)
{
    free(c->features_text);
    free(c->description);
    bm_vocab_free(c->vocab);
    *c = (bm_corpus){0};
}

bm_status bm_corpus_path(const bm_corpus *c, bm_speech_set set,
                         char path[PATH_MAX])
{
    int n =
        snprintf(path, PATH_MAX, "%s/%s", c->s.out, bm_speech_set_name(set));

    if (n < 0 || n >= PATH_MAX - 64)
        return BM_FAIL(BM_ERR_CREATE, "%.60s..: path too long", c->s.out);
    return BM_OK;
}

/* ---- one corpus to a folder ---------------------------------------------- */

/* Names the first setting that differs. */
static bm_status refuse(const bm_corpus *c, const char *path, const char *text)
{
    const size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(6); /* %g */
    json_t *old = json_loads(text, 0, NULL);
    json_t *new = json_loads(c->description, 0, NULL), *value = NULL;
    const char *key = NULL;
    char *was = NULL, *is = NULL;
    bm_status status;

    json_object_foreach(new, key, value)
    {
        if (json_equal(value, json_object_get(old, key)))
            continue;
        was = json_dumps(json_object_get(old, key), flags);
        is = json_dumps(value, flags);
        break;
    }
    status =
        BM_FAIL(BM_ERR_CREATE,
                "%s: this folder has other speech: %s is %.200s, not "
                "%.200s; give another --out, or the same settings to go on",
                path, key != NULL ? key : "its contents",
                was != NULL ? was : "not known", is != NULL ? is : "this");
    free(was);
    free(is);
    json_decref(old);
    json_decref(new);
    return status;
}

static bm_status compare_or_write(const bm_corpus *c)
{
    char path[PATH_MAX], *text = NULL;
    size_t size = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_path_join(path, c->s.out, about_name));
    if (access(path, F_OK) != 0)
        return bm_file_write(path, c->description, strlen(c->description));
    BM_TRY(bm_file_read(path, 1 << 20, &text, &size));
    if (strcmp(text, c->description) != 0)
        status = refuse(c, path, text);
    free(text);
    return status;
}

bm_status bm_corpus_prepare(const bm_corpus *c)
{
    char path[PATH_MAX], vocab[PATH_MAX + 16];

    BM_TRY(compare_or_write(c));
    for (bm_speech_set set = 0; set < BM_SPEECH_N_SETS; set++) {
        BM_TRY(bm_corpus_path(c, set, path));
        BM_TRY(bm_file_make_directory(path));
        snprintf(vocab, sizeof vocab, "%s/vocab.txt", path);
        BM_TRY(bm_vocab_write(c->vocab, vocab));
    }
    return BM_OK;
}

/* ---- what is there ------------------------------------------------------- */

/* Moves on to the place after a shard that is there. */
static bm_status pass(const bm_corpus *c, bm_speech_set set, const char *path,
                      bm_shard_place *place)
{
    bm_shard *shard = NULL;
    bm_shard_place found;
    bool last = place->index + 1 == (int64_t)c->shards[set];
    bm_status status = BM_OK;

    BM_TRY(bm_shard_open(&shard, path));
    found = bm_shard_place_of(shard);
    if (found.index != place->index || found.first != place->first ||
        found.before != place->before ||
        found.count != (last ? place->index + 1 : 0))
        status = BM_FAIL(BM_ERR_FORMAT,
                         "%s does not follow the shards before it; remove it, "
                         "and it is made again",
                         path);
    else
        *place = bm_shard_place_after(shard);
    bm_shard_close(shard);
    return status;
}

bm_status bm_corpus_find(const bm_corpus *c, bm_speech_set set,
                         bm_shard_place *place)
{
    char directory[PATH_MAX], path[PATH_MAX];

    *place = (bm_shard_place){0};
    BM_TRY(bm_corpus_path(c, set, directory));
    BM_TRY(bm_file_remove_temporaries(directory, "", ""));
    while (place->index < (int64_t)c->shards[set]) {
        BM_TRY(bm_shard_path(path, directory, "data", place->index));
        if (access(path, F_OK) != 0)
            break;
        BM_TRY(pass(c, set, path, place));
    }
    return BM_OK;
}
