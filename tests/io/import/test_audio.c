/*
 * bmuf pack --audio up to the shards, on recordings made here.
 */
#include "core/log.h"
#include "core/rng.h"
#include "io/features/cepstra.h"
#include "io/features/fbank.h"
#include "io/features/feature_chain.h"
#include "io/features/pitch.h"
#include "io/sound/sound.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static const char two_tones[] =
    "{\"id\":\"a\",\"audio\":\"a.wav\",\"text\":\"low\",\"speaker\":\"x\"}\n"
    "{\"id\":\"b\",\"audio\":\"b.wav\",\"text\":\"high\",\"speaker\":\"y\"}\n";

static void test_items_have_the_features_of_their_recordings(void **state)
{
    bm_fbank_settings bank = {8000, 40, 25, 10, "povey", 0.97, 20, 0, true};
    bm_importer *i = NULL;
    bm_fbank *f = NULL;
    bm_item item;
    bm_sound s = {0};
    bm_problem problem = {0};
    float *y = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    write_tone("b.wav", 4000, 1, 8000);
    assert_ok(
        bm_sound_read(&s, in_folder("a.wav"), 0, (bm_excerpt){0}, &problem));
    assert_ok(bm_fbank_new(&f, &bank));
    y = malloc(98 * 40 * sizeof *y);
    assert_non_null(y);
    bm_fbank_apply(f, s.x, s.n, y, 40);
    assert_ok(
        open_importer(&i, "audio", SET("features.normalise=none"), two_tones));
    item = next_item(i);
    assert_string_equal(item.id, "a");
    assert_string_equal(item.text, "low");
    assert_string_equal(item.speaker, "x");
    assert_null(item.problem);
    assert_int_equal(item.frames, 98);
    assert_int_equal(item.features, 40);
    assert_memory_equal(item.x, y, 98 * 40 * sizeof *y);
    assert_string_equal(next_item(i).id, "b");
    assert_null(next_item(i).id);
    assert_string_equal(next_item(i).id, "a"); /* and again */
    bm_importer_close(i);
    bm_fbank_free(f);
    bm_sound_free(&s);
    free(y);
}

static void test_texts_are_read_without_the_recordings(void **state)
{
    static const char *const texts[] = {"low", "high", NULL, "low"};
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    write_tone("b.wav", 4000, 1, 8000);
    assert_ok(open_importer(&i, "audio", NULL, two_tones));
    remove(in_folder("a.wav"));
    remove(in_folder("b.wav"));
    FOR_EACH (k, texts) {
        const char *text = NULL;

        assert_ok(i->ops->text(i, &text));
        if (texts[k] == NULL)
            assert_null(text);
        else
            assert_string_equal(text, texts[k]);
    }
    assert_non_null(next_item(i).problem);
    bm_importer_close(i);
}

static void test_settings_are_described_as_json(void **state)
{
    bm_importer *i = NULL;
    bm_shard_meta meta;
    json_t *object = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    write_tone("b.wav", 4000, 1, 8000);
    assert_ok(open_importer(
        &i, "audio",
        SET("features.stack=3", "features.subsample=3", "features.deltas=1"),
        two_tones));
    i->ops->meta(i, &meta);
    assert_int_equal(meta.features, 40 * 2 * 3);
    assert_true(near(meta.frame_shift, 0.03, 1e-12));
    assert_false(meta.per_frame);
    object = json_loads(meta.features_text, 0, NULL);
    assert_string_equal(json_string_value(json_object_get(object, "kind")),
                        "audio");
    assert_int_equal(json_integer_value(json_object_get(object, "rate")), 8000);
    assert_true(json_real_value(json_object_get(object, "high_hz")) == 4000);
    assert_true(json_real_value(json_object_get(object, "preemphasis")) ==
                0.97);
    assert_true(json_is_true(json_object_get(object, "snip_edges")));
    assert_int_equal(json_object_size(object), 19);
    assert_null(json_object_get(object, "pitch")); /* later settings */
    assert_null(json_object_get(object, "cepstra"));
    assert_null(json_object_get(object, "energy"));
    json_decref(object);
    assert_int_equal(next_item(i).frames, 33); /* of 98 */
    bm_importer_close(i);
}

/* A frame of one band, with its utterance and speaker. */
typedef struct frame {
    double x;
    char recording, speaker;
} frame;

enum { ALL_FRAMES = 98 + 48 + 27 };

/* Those of a, b and c, which last 8000, 4000 and 2345 samples. */
static void read_frames(const char *normalise, frame out[ALL_FRAMES])
{
    static const char manifest[] =
        "{\"id\":\"a\",\"audio\":\"a.wav\",\"speaker\":\"x\"}\n"
        "{\"id\":\"bad\",\"audio\":\"bad.wav\",\"speaker\":\"z\"}\n"
        "{\"id\":\"b\",\"audio\":\"b.wav\",\"speaker\":\"y\"}\n"
        "{\"id\":\"c\",\"audio\":\"c.wav\",\"speaker\":\"x\"}\n";
    bm_importer *i = NULL;
    size_t n = 0;

    assert_ok(open_importer(&i, "audio", SET(normalise, "features.mels=1"),
                            manifest));
    for (bm_item item = next_item(i); item.id != NULL; item = next_item(i)) {
        assert_int_equal(item.problem != NULL, item.id[1] == 'a');
        assert_true(n + item.frames <= ALL_FRAMES);
        for (size_t t = 0; t < item.frames; t++)
            out[n++] = (frame){item.x[t], item.id[0], item.speaker[0]};
    }
    assert_int_equal(n, ALL_FRAMES);
    bm_importer_close(i);
}

typedef bool together(const frame *a, const frame *b);

static bool same_recording(const frame *a, const frame *b)
{
    return a->recording == b->recording;
}

static bool same_speaker(const frame *a, const frame *b)
{
    return a->speaker == b->speaker;
}

static bool any(const frame *a, const frame *b)
{
    (void)a;
    (void)b;
    return true;
}

/* The mean of (x - center)^power over the frames in the group of `of`. */
static double moment(const frame *all, const frame *of, together *with,
                     double center, double power)
{
    double sum = 0, n = 0;

    for (size_t t = 0; t < ALL_FRAMES; t++)
        if (with(&all[t], of)) {
            sum += pow(all[t].x - center, power);
            n++;
        }
    return sum / n;
}

/* Descriptions with means have 17 digits, others 12. */
static void test_the_same_numbers_of_other_digits_are_equal(void **state)
{
    static const char model[] = "{\"window_ms\": 23.219954648526078}";
    char text[200];
    bool raw = false;

    (void)state;
    assert_int_equal(bm_features_differ(model, "{\"window_ms\": 23.2199546485}",
                                        text, sizeof text, &raw),
                     0);
    assert_int_equal(bm_features_differ(model, "{\"window_ms\": 23.22}", text,
                                        sizeof text, &raw),
                     1);
    assert_non_null(strstr(text, "is 23.22, should be 23.2199546485: --set "
                                 "features.window_ms=23.2199546485"));
}

static void test_frames_are_normalised_by_their_group(void **state)
{
    static const struct {
        const char *by;
        together *with, *narrower;
    } cases[] = {
        {"features.normalise=utterance", same_recording, NULL},
        {"features.normalise=speaker", same_speaker, same_recording},
        {"features.normalise=global", any, same_speaker},
    };
    frame raw[ALL_FRAMES] = {{0}}, y[ALL_FRAMES] = {{0}};

    (void)state;
    write_noise("a.wav", 8000, 1000);
    write_noise("b.wav", 4000, 3000);
    write_noise("c.wav", 2345, 9000);
    write_text("bad.wav", "no sound");
    read_frames("features.normalise=none", raw);
    FOR_EACH (k, cases) {
        read_frames(cases[k].by, y);
        for (size_t t = 0; t < ALL_FRAMES; t++) {
            double mean = moment(raw, &raw[t], cases[k].with, 0, 1);
            double variance = moment(raw, &raw[t], cases[k].with, mean, 2);

            assert_true(near(y[t].x, (raw[t].x - mean) / sqrt(variance), 1e-5));
        }
        if (cases[k].narrower != NULL) /* the first frame is of a, of x */
            assert_true(fabs(moment(y, y, cases[k].narrower, 0, 1)) > 0.1);
    }
}

/* Expected settings, as the functions take them. */
typedef struct recipe {
    const char *set[2];
    bm_fbank_settings bank;
    bm_chain_settings chain;
    long channel;
    double dither;
    uint64_t seed;
    long cepstra;
    bool energy, pitch;
} recipe;

/* One or two settings, and the resulting difference from the defaults. */
#define RECIPES(X)                                                             \
    X("features.normalise=utterance", NULL, (void)0)                           \
    X("features.rate=6000", NULL, r.bank.rate = 6000)                          \
    X("features.mels=17", NULL, r.bank.mels = 17)                              \
    X("features.window_ms=30", NULL, r.bank.window_ms = 30)                    \
    X("features.shift_ms=8", NULL, r.bank.shift_ms = 8)                        \
    X("features.window=hanning", NULL, r.bank.window = "hanning")              \
    X("features.window=hamming", NULL, r.bank.window = "hamming")              \
    X("features.window=blackman", NULL, r.bank.window = "blackman")            \
    X("features.window=rectangular", NULL, r.bank.window = "rectangular")      \
    X("features.preemphasis=0.5", NULL, r.bank.preemphasis = 0.5)              \
    X("features.low_hz=120", NULL, r.bank.low_hz = 120)                        \
    X("features.high_hz=3500", NULL, r.bank.high_hz = 3500)                    \
    X("features.high_hz=-200", NULL, r.bank.high_hz = 3800)                    \
    X("features.snip_edges=no", NULL, r.bank.snip_edges = false)               \
    X("features.channel=1", NULL, r.channel = 1)                               \
    X("features.channel=2", NULL, r.channel = 2)                               \
    X("features.dither=2", NULL, r.dither = 2)                                 \
    X("features.dither=2", "features.seed=5", (r.dither = 2, r.seed = 5))      \
    X("features.cepstra=13", NULL, r.cepstra = 13)                             \
    X("features.cepstra=40", "features.dither=2",                              \
      (r.cepstra = 40, r.dither = 2))                                          \
    X("features.cepstra=13", "features.energy=yes",                            \
      (r.cepstra = 13, r.energy = true))                                       \
    X("features.cepstra=13", "features.pitch=yes",                             \
      (r.cepstra = 13, r.pitch = true))                                        \
    X("features.pitch=yes", NULL, r.pitch = true)                              \
    X("features.pitch=yes", "features.dither=2",                               \
      (r.pitch = true, r.dither = 2))                                          \
    X("features.pitch=yes", "features.snip_edges=no",                          \
      (r.pitch = true, r.bank.snip_edges = false))                             \
    X("features.deltas=1", NULL, r.chain.deltas = 1)                           \
    X("features.deltas=2", NULL, r.chain.deltas = 2)                           \
    X("features.deltas=1", "features.delta_window=3",                          \
      (r.chain.deltas = 1, r.chain.delta_window = 3))                          \
    X("features.stack=3", NULL, r.chain.stack = 3)                             \
    X("features.subsample=3", NULL, r.chain.subsample = 3)                     \
    X("features.variance=no", NULL, r.chain.variance = false)                  \
    X("features.normalise=none", NULL, r.chain.normalise = "none")             \
    X("features.normalise=sliding", "features.sliding=20",                     \
      (r.chain.normalise = "sliding", r.chain.sliding = 20))                   \
    X("features.normalise=sliding", "features.sliding=9",                      \
      (r.chain.normalise = "sliding", r.chain.sliding = 9))

#define X(...) +1
enum { N_RECIPES = 0 RECIPES(X) };
#undef X

static recipe recipe_of(size_t k)
{
    recipe r = {{NULL},
                {8000, 40, 25, 10, "povey", 0.97, 20, 0, true},
                {0, 2, 1, 1, "utterance", true, 600},
                0,
                0,
                1,
                0,
                false,
                false};
    size_t n = 0;

#define X(one, other, change)                                                  \
    if (n++ == k) {                                                            \
        r.set[0] = one;                                                        \
        r.set[1] = other;                                                      \
        change;                                                                \
    }
    RECIPES(X)
#undef X
    return r;
}

/* Replaces the bands in x, of so many samples. */
static void take_cepstra(const recipe *r, bm_fbank *bank, const float *samples,
                         size_t n, bm_frames *x)
{
    bm_frames y = {0};
    bm_cepstra *c = NULL;

    assert_ok(bm_cepstra_new(&c, x->dim, (size_t)r->cepstra));
    assert_ok(bm_frames_shape(&y, x->n, (size_t)r->cepstra));
    bm_cepstra_apply(c, x->x, x->n, y.x, y.dim);
    if (r->energy)
        bm_fbank_energies(bank, samples, n, y.x, y.dim);
    bm_frames_free(x);
    bm_cepstra_free(c);
    *x = y;
}

/* Appends the columns of the pitch to the bands in x. */
static void append_pitch(const bm_fbank_settings *bank, const bm_sound *s,
                         bm_frames *x)
{
    const bm_pitch_settings settings = {
        bank->rate, bank->window_ms, bank->shift_ms * 1e-3 * (double)bank->rate,
        bank->snip_edges};
    size_t bands = x->dim, dim = bands + BM_PITCH_COLUMNS;
    const bm_pitch_point *track = NULL;
    bm_frames y = {0};
    bm_pitch *p = NULL;

    assert_ok(bm_pitch_new(&p, &settings));
    assert_ok(bm_pitch_track(p, s->x, s->n, x->n, &track));
    assert_ok(bm_frames_shape(&y, x->n, dim));
    bm_pitch_columns(track, x->n, y.x + bands, dim);
    for (size_t t = 0; t < x->n; t++)
        memcpy(y.x + t * dim, x->x + t * bands, bands * sizeof *y.x);
    bm_frames_free(x);
    bm_pitch_free(p);
    *x = y;
}

/* The frames of a.wav, step by step; borrowed from the chain. */
static const bm_frames *prepare(const recipe *r, bm_chain **chain)
{
    bm_rng noise = bm_rng_make(r->seed, "dither", XXH3_64bits("a", 1));
    bm_sound s = {0};
    bm_problem problem = {0};
    bm_fbank *bank = NULL;
    bm_frames x = {0};
    const bm_frames *y = NULL;
    float *heard = NULL;

    assert_ok(bm_sound_read(&s, in_folder("a.wav"), r->channel, (bm_excerpt){0},
                            &problem));
    assert_ok(bm_sound_resample(&s, r->bank.rate, &problem));
    assert_false(bm_problem_is(&problem));
    assert_ok(bm_fbank_new(&bank, &r->bank));
    assert_ok(
        bm_frames_shape(&x, bm_fbank_frames(bank, s.n), (size_t)r->bank.mels));
    heard = zeros(s.n, sizeof *heard);
    memcpy(heard, s.x, s.n * sizeof *heard);
    bm_dither(heard, s.n, r->dither, noise.key);
    bm_fbank_apply(bank, heard, s.n, x.x, x.dim);
    if (r->cepstra > 0)
        take_cepstra(r, bank, heard, s.n, &x);
    if (r->pitch) /* has no dither */
        append_pitch(&r->bank, &s, &x);
    assert_ok(bm_chain_new(chain, &r->chain, "features", x.dim, 1));
    assert_ok(bm_chain_apply(*chain, 0, &x, &y));
    bm_frames_free(&x);
    bm_fbank_free(bank);
    bm_sound_free(&s);
    free(heard);
    return y;
}

static void test_every_setting_has_its_effect(void **state)
{
    uint64_t seen[N_RECIPES];

    (void)state;
    write_tone("a.wav", 4000, 2, 8000);
    for (size_t k = 0; k < N_RECIPES; k++) {
        recipe r = recipe_of(k);
        bm_chain *chain = NULL;
        const bm_frames *y = prepare(&r, &chain);
        size_t bytes = y->n * y->dim * sizeof *y->x;
        bm_importer *i = NULL;
        bm_item item;

        assert_ok(open_importer(&i, "audio", SET(r.set[0], r.set[1]),
                                "{\"id\":\"a\",\"audio\":\"a.wav\"}\n"));
        item = next_item(i);
        assert_null(item.problem);
        assert_int_equal(item.frames, y->n);
        assert_int_equal(item.features, y->dim);
        assert_memory_equal(item.x, y->x, bytes);
        seen[k] = XXH3_64bits(item.x, bytes);
        for (size_t other = 0; other < k; other++)
            assert_true(seen[k] != seen[other]);
        bm_importer_close(i);
        bm_chain_free(chain);
    }
}

/* The first frame of "a" under these settings. */
static void first_frame(bm_config *config, float out[40])
{
    bm_importer *i = NULL;
    bm_item item;

    assert_ok(open_importer(&i, "audio", config, two_tones));
    item = next_item(i);
    assert_int_equal(item.features, 40);
    memcpy(out, item.x, 40 * sizeof *out);
    bm_importer_close(i);
}

static void test_dither_depends_on_the_seed_alone(void **state)
{
    float none[40], one[40], again[40], two[40];

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    write_tone("b.wav", 4000, 1, 8000);
    first_frame(SET("features.seed=1"), none);
    first_frame(SET("features.dither=1"), one);
    first_frame(SET("features.dither=1", "features.seed=1"), again);
    first_frame(SET("features.dither=1", "features.seed=2"), two);
    assert_memory_equal(one, again, sizeof one);
    assert_memory_not_equal(one, none, sizeof one);
    assert_memory_not_equal(one, two, sizeof one);
}

static void test_mixed_rates_are_reported_with_the_remedy(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 16000, 1, 16000);
    write_tone("b.wav", 8000, 1, 8000);
    assert_int_equal(open_importer(&i, "audio", NULL, two_tones),
                     BM_ERR_FORMAT);
    assert_null(i);
    assert_non_null(
        strstr(bm_last_error(), "recording a has 16000 Hz, but b has 8000 Hz"));
    assert_non_null(strstr(bm_last_error(), "--set features.rate=8000"));
    assert_ok(open_importer(&i, "audio", SET("features.rate=8000"), two_tones));
    assert_int_equal(next_item(i).frames, 98);
    assert_int_equal(next_item(i).frames, 98);
    bm_importer_close(i);
}

/* A header may say anything, and windows are as long as the rate is high. */
static void test_a_rate_that_is_too_high_is_no_default(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 400, 1, 2000000000);
    write_tone("b.wav", 400, 1, 384001);
    assert_int_equal(open_importer(&i, "audio", NULL, two_tones),
                     BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "2000000000 Hz; at most 384000 are possible"));
}

/* A Lhotse cut of channel 0 is the first one, not the mean. */
static void test_a_cut_has_its_channel(void **state)
{
    static const char whole[] = "{\"id\":\"a\",\"audio\":\"a.wav\"}\n";
    static const char cut[] =
        "{\"id\":\"a\",\"start\":0,\"duration\":1,\"channel\":0,"
        "\"supervisions\":[],\"recording\":{\"sources\":[{\"type\":"
        "\"file\",\"source\":\"a.wav\"}]}}\n";
    bm_importer *i[3] = {NULL};
    bm_item item[3];
    size_t bytes = 0;

    (void)state;
    write_tone("a.wav", 8000, 2, 8000);
    assert_ok(open_importer(&i[0], "audio", NULL, cut));
    assert_ok(open_importer(&i[1], "audio", SET("features.channel=1"), whole));
    assert_ok(open_importer(&i[2], "audio", SET("features.channel=2"), cut));
    FOR_EACH (k, i)
        item[k] = next_item(i[k]);
    bytes = item[0].frames * item[0].features * sizeof *item[0].x;
    assert_int_equal(item[0].frames, 98);
    assert_memory_equal(item[0].x, item[1].x, bytes);
    assert_memory_not_equal(item[0].x, item[2].x, bytes);
    FOR_EACH (k, i)
        bm_importer_close(i[k]);
}

static void test_a_missing_channel_is_reported(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 8000, 2, 8000);
    write_tone("b.wav", 8000, 1, 8000);
    assert_int_equal(
        open_importer(&i, "audio", SET("features.channel=2"), two_tones),
        BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "b.wav has 1 channel; features.channel = "));
}

static void test_invalid_recordings_are_problems_of_their_items(void **state)
{
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    write_text("a.wav", "no sound");
    write_tone("b.wav", 96, 1, 8000);
    assert_ok(open_importer(&i, "audio", NULL, two_tones));
    item = next_item(i);
    assert_string_equal(item.id, "a");
    assert_non_null(strstr(item.problem->text, "a.wav: a text, not a "));
    assert_non_null(strstr(next_item(i).problem->text,
                           "b.wav: 0.012 s: shorter than one window of 25 ms"));
    assert_null(next_item(i).id);
    bm_importer_close(i);
    write_text("b.wav", "neither");
    assert_int_equal(open_importer(&i, "audio", NULL, two_tones),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "none of the 2 recordings"));
}

/* Whatever libsndfile says of it. */
static void test_a_truncated_mp3_says_so(void **state)
{
    SF_INFO info = {.samplerate = 16000,
                    .channels = 1,
                    .format = SF_FORMAT_MPEG | SF_FORMAT_MPEG_LAYER_III};
    static const size_t parts[] = {3, 10, 50}; /* percent */
    bm_rng rng = bm_rng_make(1, "mp3", 0);
    float x[16000];
    SNDFILE *file = NULL;
    char *bytes = NULL;
    size_t n = 0;

    (void)state;
    write_tone("b.wav", 4000, 1, 16000);
    if (!sf_format_check(&info))
        skip();
    for (size_t i = 0; i < 16000; i++)
        x[i] = .1F * (float)bm_rng_uniform(&rng);
    file = sf_open(in_folder("a.mp3"), SFM_WRITE, &info);
    assert_non_null(file);
    assert_int_equal(sf_write_float(file, x, 16000), 16000);
    assert_int_equal(sf_close(file), 0);
    bytes = slurp(in_folder("a.mp3"), &n);
    FOR_EACH (k, parts) {
        bm_importer *i = NULL;
        const bm_problem *problem = NULL;

        write_bytes("a.mp3", bytes, n * parts[k] / 100);
        assert_ok(open_importer(&i, "audio", NULL,
                                "{\"id\":\"a\",\"audio\":\"a.mp3\"}\n"
                                "{\"id\":\"b\",\"audio\":\"b.wav\"}\n"));
        problem = next_item(i).problem;
        assert_non_null(problem);
        if (strstr(problem->text, "a.mp3: damaged or truncated ") == NULL ||
            strstr(problem->text, "; copy it again, or leave it out") == NULL)
            fail_msg("%zu %%: %s", parts[k], problem->text);
        bm_importer_close(i);
    }
    free(bytes);
}

static void test_normalising_by_speaker_needs_speakers(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    assert_int_equal(open_importer(&i, "audio",
                                   SET("features.normalise=speaker"),
                                   "{\"id\":\"a\",\"audio\":\"a.wav\"}\n"
                                   "{\"id\":\"b\",\"audio\":\"a.wav\","
                                   "\"speaker\":\"x\"}\n"
                                   "{\"id\":\"c\",\"audio\":\"a.wav\"}\n"),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "m.jsonl:1: a has no \"speaker\""));
    assert_null(strstr(bm_last_error(), "m.jsonl:2"));
    assert_non_null(strstr(bm_last_error(), "m.jsonl:3: c has no \"speaker\""));
    assert_int_equal(open_importer(&i, "audio",
                                   SET("features.normalise=speaker"),
                                   "{\"id\":\"a\",\"audio\":\"a.wav\"}\n"
                                   "{\"id\":\"b\",\"audio\":\"a.wav\"}\n"),
                     BM_ERR_FORMAT);
    assert_non_null(
        strstr(bm_last_error(), "m.jsonl has one; add \"speaker\""));
    assert_null(strstr(bm_last_error(), "m.jsonl:"));
}

static void test_real_recordings_are_usable(void **state)
{
    const char *archive = real_data("speech/fsdd/fsdd-wav.tar.xz");
    bm_importer *i = NULL;
    size_t items = 0;
    bm_shard_meta meta;

    (void)state;
    if (archive == NULL)
        skip();
    unpack(archive);
    assert_ok(
        open_importer(&i, "audio", NULL,
                      "{\"id\":\"a\",\"audio\":\"recordings/0_george_0.wav\","
                      "\"text\":\"zero\"}\n"
                      "{\"id\":\"b\",\"audio\":\"recordings/7_jackson_32.wav\","
                      "\"text\":\"seven\"}\n"));
    i->ops->meta(i, &meta);
    assert_non_null(strstr(meta.features_text, "\"rate\": 8000"));
    for (bm_item item = next_item(i); item.id != NULL; item = next_item(i)) {
        assert_null(item.problem);
        assert_int_equal(item.features, 40);
        assert_in_range(item.frames, 12, 230); /* 0.14 .. 2.28 s */
        for (size_t k = 0; k < item.frames * 40; k++)
            assert_true(fabsf(item.x[k]) < 20);
        items++;
    }
    assert_int_equal(items, 2);
    bm_importer_close(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_items_have_the_features_of_their_recordings),
        cmocka_unit_test(test_texts_are_read_without_the_recordings),
        cmocka_unit_test(test_settings_are_described_as_json),
        cmocka_unit_test(test_the_same_numbers_of_other_digits_are_equal),
        cmocka_unit_test(test_frames_are_normalised_by_their_group),
        cmocka_unit_test(test_every_setting_has_its_effect),
        cmocka_unit_test(test_dither_depends_on_the_seed_alone),
        cmocka_unit_test(test_mixed_rates_are_reported_with_the_remedy),
        cmocka_unit_test(test_a_rate_that_is_too_high_is_no_default),
        cmocka_unit_test(test_a_cut_has_its_channel),
        cmocka_unit_test(test_a_missing_channel_is_reported),
        cmocka_unit_test(test_invalid_recordings_are_problems_of_their_items),
        cmocka_unit_test(test_a_truncated_mp3_says_so),
        cmocka_unit_test(test_normalising_by_speaker_needs_speakers),
        cmocka_unit_test(test_real_recordings_are_usable),
    };

    return cmocka_run_group_tests_name("audio", tests, folder_make,
                                       folder_remove);
}
