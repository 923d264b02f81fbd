/*
 * Rooms and noise in training: features of unchanged samples are those that were
 * packed, bit for bit; noise is what its formula says, at the ratio that is asked
 * for; the reader gives the same on any rank; what cannot be done is refused.
 */
#include "core/log.h"
#include "io/augment/draw.h"
#include "io/batch/reader.h"
#include "io/batch/sound_augment.h"
#include "io/features/recording_features.h"
#include "tests/support/datasets.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { N = 6, RATE = 8000, SEED = 3, MOST_FRAMES = 400, MOST_D = 200 };

static const double pi = 3.14159265358979323846;

static void make_folder(const char *name)
{
    assert_int_equal(mkdir(in_folder(name), 0700), 0);
}

/* ---- data sets ----------------------------------------------------------- */

static bool without_frames; /* the moments of speakers are said to be of none */

/* Packs what a manifest lists, with its samples. */
static void pack(const char *name, const char *manifest, bm_config *config,
                 long unit_frames, double shard_mb)
{
    const int32_t label = 1;
    bm_import_source source = {.path = in_folder("m.jsonl"), .samples = true};
    bm_shard_settings set = {
        .unit_frames = unit_frames, .shard_mb = shard_mb, .store = "f32"};
    bm_importer *i = NULL;
    bm_shard_writer *w = NULL;
    bm_shard_meta meta;
    bm_vocab *vocab = corpus_vocab(5);
    bm_item item;
    size_t shards = 0;

    write_text("m.jsonl", manifest);
    assert_ok(bm_importer_open(&i, "audio", config, &source));
    i->ops->meta(i, &meta);
    meta.vocab = vocab;
    assert_ok(bm_shard_writer_open(&w, in_folder(name), "set", &set, &meta));
    for (item = next_item(i); item.id != NULL; item = next_item(i)) {
        double moments[1 + 2 * MOST_D];
        bm_waveform wave = *item.recording;

        assert_null(item.problem);
        if (without_frames) {
            memcpy(moments, wave.moments, wave.n_moments * sizeof *moments);
            moments[0] = 0;
            wave.moments = moments;
        }
        assert_ok(bm_shard_writer_add_recording(
            w, item.id, item.speaker, item.x, item.frames, &label, 1, &wave));
    }
    assert_ok(bm_shard_writer_finish(w, &shards));
    bm_shard_writer_close(w);
    bm_importer_close(i);
    bm_config_free(config);
    bm_vocab_free(vocab);
}

/* The recordings 0.wav, .. of noise, and their manifest. */
static const char *recordings(void)
{
    static char manifest[N * 100];

    manifest[0] = '\0';
    for (int i = 0; i < N; i++) {
        char name[32];

        snprintf(name, sizeof name, "%d.wav", i);
        write_noise(name, 4000 + 700 * (size_t)i, 6000);
        snprintf(manifest + strlen(manifest),
                 sizeof manifest - strlen(manifest),
                 "{\"id\": \"a%d\", \"audio\": \"%s\", \"speaker\": "
                 "\"s%d\"}\n",
                 i, name, i / 2);
    }
    return manifest;
}

/* Kaldi's statistics of the speakers of recordings(), 8 features. */
static void write_statistics(void)
{
    enum { D = 8, SPEAKERS = 3, SIZE = 15 + 2 * (D + 1) * sizeof(double) };
    static const char begin[6] = {'\0', 'B', 'D', 'M', ' ', 4};
    static const int32_t rows = 2, columns = D + 1;
    char ark[SPEAKERS * (SIZE + 3)], list[200] = "";

    for (int s = 0; s < SPEAKERS; s++) {
        char *at = ark + (size_t)s * (SIZE + 3);
        double x[2][D + 1] = {0};

        x[0][D] = 10;
        for (int d = 0; d < D; d++) {
            x[0][d] = 10 * (d + s + 0.25); /* mean d + s + 1/4 */
            x[1][d] = x[0][d] * x[0][d] / 10 + 10.0 * (s + 2);
        }
        memcpy(at, (char[]){'s', (char)('0' + s), ' '}, 3);
        memcpy(at + 3, begin, 6);
        memcpy(at + 9, &rows, 4);
        at[13] = 4;
        memcpy(at + 14, &columns, 4);
        memcpy(at + 18, x, sizeof x);
        snprintf(list + strlen(list), sizeof list - strlen(list),
                 "s%d cmvn.ark:%zu\n", s, (size_t)(at + 3 - ark));
    }
    write_bytes("cmvn.ark", ark, sizeof ark);
    write_text("cmvn.scp", list);
}

/* A data set, the features of its sequences as stored, and what changes them. */
typedef struct fixture {
    bm_dataset *d;
    bm_sequences all;
    float *x[N];
    bm_sound_augmenter *a;
} fixture;

static bm_augment_settings settings_of(bm_config *config)
{
    bm_augment_settings s;

    assert_ok(bm_config_fill(config, "augment", bm_augment_options, &s));
    return s;
}

static bm_status open_augmenter(bm_sound_augmenter **a, bm_dataset *d,
                                bm_config *config)
{
    bm_augment_settings s = settings_of(config);
    bm_status status = bm_sound_augmenter_open(a, d, NULL, &s);

    bm_config_free(config);
    return status;
}

/* All sequences are in one unit. */
static void open_set(fixture *f, const char *name, bm_config *augment)
{
    float *x = NULL;

    *f = (fixture){0};
    assert_ok(bm_dataset_open(&f->d, in_folder(name)));
    assert_int_equal(f->d->n_units, 1);
    assert_ok(bm_dataset_read(f->d, 0, &f->all));
    x = f->all.x;
    for (size_t i = 0; i < f->all.n; i++) {
        f->x[i] = x;
        x += (size_t)f->all.frames[i] * f->d->features;
    }
    assert_ok(open_augmenter(&f->a, f->d, augment));
}

static void close_set(fixture *f)
{
    bm_sound_augmenter_close(f->a);
    bm_sequences_free(&f->all);
    bm_dataset_close(f->d);
}

/* The features of a sequence in an epoch; those that are stored if its recording
 * is not changed. Borrowed until the next call. */
static const float *changed(fixture *f, size_t i, int64_t epoch)
{
    bm_augmented in = {.x = f->x[i], .frames = (size_t)f->all.frames[i]};

    assert_ok(bm_sound_augment(f->a, bm_augment_key(SEED, epoch, (int64_t)i),
                               (int64_t)i, &in));
    assert_int_equal(in.frames, f->all.frames[i]);
    return in.x;
}

static size_t size_of(const fixture *f, size_t i)
{
    return (size_t)f->all.frames[i] * f->d->features;
}

/* The largest difference to what is stored, of all sequences, all of which are
 * changed. */
static double largest_change(fixture *f)
{
    double most = 0;

    for (size_t i = 0; i < f->all.n; i++) {
        const float *x = changed(f, i, 0);

        assert_ptr_not_equal(x, f->x[i]);
        for (size_t k = 0; k < size_of(f, i); k++)
            most = fmax(most, fabs((double)x[k] - f->x[i][k]));
    }
    return most;
}

/* A folder with one recording; "augment.KEY=FOLDER". */
static const char *folder_of(const char *key, const char *name, const int *x,
                             size_t n)
{
    static char text[2][300];
    static int turn;
    char file[64];

    make_folder(name);
    snprintf(file, sizeof file, "%s/n.wav", name);
    write_sound(file, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n, 1, RATE);
    turn = !turn;
    snprintf(text[turn], sizeof text[turn], "augment.%s=%s", key,
             in_folder(name));
    return text[turn];
}

#define ALWAYS "augment.noise_sound_share=1", "augment.reverb_share=1"

/* ---- features ------------------------------------------------------------ */

/* Noise that is 0 adds nothing, and all else is done. */
static void test_features_are_made_as_they_were_packed(void **_)
{
    static const char *const sets[][3] = {
        {"features.mels=12"},
        {"features.normalise=sliding", "features.sliding=20",
         "features.deltas=2"},
        {"features.normalise=global", "features.deltas=1"},
        {"features.normalise=none", "features.stack=3", "features.subsample=3"},
        {"features.cepstra=5", "features.energy=yes"},
        {"features.pitch=yes", "features.mels=8"},
        {"features.dither=1", "features.snip_edges=no", "features.seed=4"},
        {"features.low_hz=100", "features.high_hz=-400",
         "features.variance=no"},
        {"features.normalise=speaker", "features.deltas=1"},
        {"features.normalise=kaldi", "features.mels=8", "features.deltas=2"},
    };
    static const int zeros[2000];
    const char *noise = folder_of("noise_sound", "zeros", zeros, 2000);
    const char *manifest = recordings();

    (void)_;
    (void)symlink(".", in_folder("zeros/a")); /* folders without an end */
    (void)symlink(".", in_folder("zeros/b"));
    write_statistics();
    FOR_EACH (k, sets) {
        char name[16];
        fixture f;

        snprintf(name, sizeof name, "set%zu", k);
        pack(name, manifest, SET(sets[k][0], sets[k][1], sets[k][2]), 100000,
             256);
        open_set(&f, name, SET(noise, ALWAYS));
        assert_int_equal(f.all.n, N);
        for (size_t i = 0; i < N; i++) {
            const float *x = changed(&f, i, 0);

            assert_ptr_not_equal(x, f.x[i]); /* it was made again */
            assert_memory_equal(x, f.x[i], size_of(&f, i) * sizeof *x);
        }
        close_set(&f);
    }
}

/* Samples that are no whole numbers are rounded: features hardly change. */
static void test_resampled_recordings_are_rounded_to_16_bits(void **_)
{
    static const int zeros[2000];
    fixture f;

    (void)_;
    pack("rounded", recordings(), SET("features.rate=6000", "features.mels=12"),
         100000, 256);
    open_set(&f, "rounded",
             SET(folder_of("noise_sound", "silent", zeros, 2000), ALWAYS));
    assert_int_equal(bm_shard_sample_rate(f.d->shards[0]), 6000);
    assert_true(largest_change(&f) < 0.01);
    close_set(&f);
}

/* A square wave of 32000 overshoots when it is resampled. Features are made of
 * that; what is kept is clipped, with a remark. */
static void test_samples_beyond_16_bits_are_clipped(void **_)
{
    static int x[8000];
    const char *remarks[] = {NULL, "clipped"};

    (void)_;
    for (int i = 0; i < 8000; i++)
        x[i] = i / 40 % 2 == 0 ? 32000 : -32000;
    write_sound("square.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, 8000, 1,
                RATE);
    write_text("m.jsonl", "{\"id\": \"a\", \"audio\": \"square.wav\"}\n");
    FOR_EACH (k, remarks) {
        bm_import_source source = {.path = in_folder("m.jsonl"),
                                   .samples = k > 0};
        bm_config *config = SET("features.rate=6000");
        bm_importer *i = NULL;
        bm_item item;
        size_t full = 0;

        assert_ok(bm_importer_open(&i, "audio", config, &source));
        item = next_item(i);
        assert_null(item.problem);
        assert_int_equal(item.recording != NULL, k > 0);
        if (remarks[k] != NULL)
            assert_string_equal(item.remark, remarks[k]);
        else
            assert_null(item.remark);
        for (size_t s = 0; k > 0 && s < item.recording->n; s++)
            full += abs(item.recording->x[s]) >= 32767;
        assert_true(k == 0 || full > item.recording->n / 1000);
        bm_importer_close(i);
        bm_config_free(config);
    }
}

/* As the reader does for features that the model normalises. */
static void test_the_means_of_a_model_are_applied(void **_)
{
    static const int zeros[2000];
    double mean[12], scale[12];
    bm_cmvn norm = {.dim = 12, .mean = mean, .scale = scale};
    fixture f;

    (void)_;
    for (size_t d = 0; d < 12; d++) {
        mean[d] = (double)d;
        scale[d] = 0.5 + (double)d;
    }
    pack("raw", recordings(),
         SET("features.normalise=none", "features.mels=12"), 100000, 256);
    open_set(&f, "raw",
             SET(folder_of("noise_sound", "still", zeros, 2000), ALWAYS));
    assert_ok(bm_dataset_normalise(f.d, &norm));
    for (size_t i = 0; i < N; i++) {
        const float *x = changed(&f, i, 0);

        for (size_t k = 0; k < size_of(&f, i); k++)
            assert_true(x[k] ==
                        (float)((f.x[i][k] - mean[k % 12]) * scale[k % 12]));
    }
    close_set(&f);
}

/* ---- reverb and noise -----------------------------------------------------
 * */

/* Wherever the tap is, and whatever its size. */
static void test_a_room_of_one_tap_changes_nothing(void **_)
{
    const int tap[8] = {0, 0, 0, -20000};
    fixture f;

    (void)_;
    pack("tap", recordings(), SET("features.mels=12"), 100000, 256);
    open_set(&f, "tap", SET(folder_of("reverb", "taps", tap, 8), ALWAYS));
    assert_true(largest_change(&f) < 1e-3); /* what an FFT rounds */
    close_set(&f);
}

/* The direct sound 60 dB over the room, then equally loud. */
static void test_a_made_room_keeps_the_direct_sound_in_place(void **_)
{
    fixture f;
    double faint = 0, loud = 0;

    (void)_;
    pack("made", recordings(), SET("features.mels=12"), 100000, 256);
    open_set(&f, "made",
             SET("augment.reverb=made", "augment.direct=60", ALWAYS));
    faint = largest_change(&f);
    close_set(&f);
    open_set(&f, "made",
             SET("augment.reverb=made", "augment.direct=0", ALWAYS));
    loud = largest_change(&f);
    close_set(&f);
    assert_true(faint < 0.1);
    assert_true(loud > 1);
}

static double power(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum / (double)n;
}

/* y [n] <- the samples with white noise, by the numbers of the page: the stream
 * of the noise gives the share, the ratio, the kind, then the noise. Returns the
 * ratio. */
static double add_white(uint64_t key, const int16_t *x, size_t n, float *y)
{
    static float noise[MOST_FRAMES * 100], clean[MOST_FRAMES * 100];
    bm_rng rng = bm_draw_stream(key, BM_DRAW_NOISE_SOUND);
    double snr = 0, gain = 0;

    (void)bm_rng_uniform(&rng);
    snr = 5 + 10 * bm_rng_uniform(&rng);
    (void)bm_rng_below(&rng, 1);
    for (size_t i = 0; i < n; i++) {
        noise[i] = bm_draw_gauss(bm_rng_bits(&rng));
        clean[i] = x[i];
    }
    gain = sqrt(power(clean, n) / pow(10, snr / 10) / power(noise, n));
    for (size_t i = 0; i < n; i++) {
        y[i] = clean[i] + (float)(gain * noise[i]);
        noise[i] = y[i] - clean[i];
    }
    assert_true(fabs(10 * log10(power(clean, n) / power(noise, n)) - snr) <
                1e-3);
    return snr;
}

static void test_white_noise_has_the_ratio_that_is_asked_for(void **_)
{
    static float y[MOST_FRAMES * 100];
    bm_recording_settings s = {0};
    bm_config *config = NULL;
    bm_recording_bank *bank = NULL;
    bm_waveform wave = {0};
    bm_frames frames = {0};
    double least = 100, most = 0;
    fixture f;

    (void)_;
    pack("white", recordings(),
         SET("features.normalise=none", "features.mels=12"), 100000, 256);
    open_set(&f, "white",
             SET("augment.noise_sound=white", "augment.snr=5:15", ALWAYS));
    assert_ok(bm_features_settings(bm_shard_features_text(f.d->shards[0]),
                                   bm_recording_options, &config, &s));
    assert_ok(bm_recording_bank_new(&bank, &s));
    for (int64_t epoch = 0; epoch < 10; epoch++)
        for (size_t i = 0; i < N; i++) {
            uint64_t key = bm_augment_key(SEED, epoch, (int64_t)i);
            const float *x = changed(&f, i, epoch);
            double snr = 0;

            assert_ok(bm_dataset_read_waveform(f.d, (int64_t)i, &wave));
            snr = add_white(key, wave.x, wave.n, y);
            assert_ok(bm_recording_frames(bank, &s, "", y, wave.n, &frames));
            assert_memory_equal(x, frames.x, size_of(&f, i) * sizeof *x);
            least = fmin(least, snr);
            most = fmax(most, snr);
        }
    assert_true(least > 5 && least < 6 && most > 14 && most < 15);
    bm_frames_free(&frames);
    bm_recording_bank_free(bank);
    bm_config_free(config);
    bm_waveform_free(&wave);
    close_set(&f);
}

/* Of two recordings one is silent: babble over the other adds nothing, so a
 * recording is no part of its own babble. */
static void test_babble_is_of_other_sequences(void **_)
{
    static int tone[6000];
    fixture f;

    (void)_;
    write_sound("silence.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, tone, 6000, 1,
                RATE);
    for (int i = 0; i < 6000; i++)
        tone[i] = (int)(9000 * sin(2 * pi * 500 * i / RATE));
    write_sound("tone.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, tone, 6000, 1,
                RATE);
    pack("two",
         "{\"id\": \"a\", \"audio\": \"tone.wav\"}\n"
         "{\"id\": \"b\", \"audio\": \"silence.wav\"}\n",
         SET("features.mels=12", "features.normalise=none"), 100000, 256);
    open_set(&f, "two", SET("augment.noise_sound=babble", ALWAYS));
    assert_true(largest_change(&f) == 0);
    close_set(&f);
    pack("all", recordings(),
         SET("features.mels=12", "features.normalise=none"), 100000, 256);
    open_set(&f, "all", SET("augment.noise_sound=babble", ALWAYS));
    assert_true(largest_change(&f) > 0.1);
    close_set(&f);
}

/* A shard of one sequence has no other: those of all shards are taken. */
static void test_babble_crosses_shards_of_one_sequence(void **_)
{
    bm_dataset *d = NULL;
    bm_sound_augmenter *a = NULL;
    bm_sequences s = {0};

    (void)_;
    pack("many", recordings(), SET("features.mels=12"), 1, 0.001);
    assert_ok(bm_dataset_open(&d, in_folder("many")));
    assert_int_equal(d->n_shards, N);
    assert_ok(open_augmenter(&a, d, SET("augment.noise_sound=babble", ALWAYS)));
    for (int64_t i = 0; i < N; i++) {
        bm_augmented in = {0};

        assert_ok(bm_dataset_read(d, (size_t)i, &s));
        in = (bm_augmented){.x = s.x, .frames = (size_t)s.frames[0]};
        assert_ok(bm_sound_augment(a, bm_augment_key(SEED, 0, i), i, &in));
        assert_memory_not_equal(in.x, s.x,
                                in.frames * d->features * sizeof *in.x);
    }
    bm_sound_augmenter_close(a);
    bm_sequences_free(&s);
    bm_dataset_close(d);
}

/* ---- what is drawn ------------------------------------------------------- */

/* Within three standard deviations. */
static void test_shares_are_fractions_of_the_sequences(void **_)
{
    enum { EPOCHS = 200 };
    static const int zeros[2000];
    const double n = EPOCHS * N;
    const char *noise = folder_of("noise_sound", "none", zeros, 2000);
    const struct {
        const char *share, *reverb_share, *noise_share;
        double expected;
    } cases[] = {
        {"augment.share=1", "augment.reverb_share=0",
         "augment.noise_sound_share=0.3", 0.3},
        {"augment.share=0.5", "augment.reverb_share=0",
         "augment.noise_sound_share=0.5", 0.25},
        {"augment.share=1", "augment.reverb_share=0.5",
         "augment.noise_sound_share=0.5", 0.75},
    };
    fixture f;

    (void)_;
    pack("shares", recordings(), SET("features.mels=4"), 100000, 256);
    FOR_EACH (k, cases) {
        double seen = 0, p = cases[k].expected;

        open_set(&f, "shares",
                 SET(noise, "augment.reverb=made", "augment.t60=0.05",
                     cases[k].share, cases[k].reverb_share,
                     cases[k].noise_share));
        for (int64_t epoch = 0; epoch < EPOCHS; epoch++)
            for (size_t i = 0; i < N; i++)
                seen += changed(&f, i, epoch) != f.x[i];
        assert_true(fabs(seen - n * p) < 3 * sqrt(n * p * (1 - p)));
        close_set(&f);
    }
}

#define EVERYTHING                                                             \
    SET("augment.reverb=made", "augment.noise_sound=white pink babble",        \
        "augment.reverb_share=0.6", "augment.noise_sound_share=0.7",           \
        "augment.speed=0.9:1.1", "augment.time_masks=1")

/* Another augmenter, another order, after other epochs. */
static void test_a_sequence_depends_on_its_key_alone(void **_)
{
    fixture f, g;

    (void)_;
    pack("keys", recordings(), SET("features.mels=12"), 100000, 256);
    open_set(&f, "keys", EVERYTHING);
    open_set(&g, "keys", EVERYTHING);
    for (int64_t epoch = 0; epoch < 3; epoch++)
        for (size_t i = 0; i < N; i++) {
            size_t n = size_of(&f, i) * sizeof(float);
            float *kept = malloc(n);

            assert_non_null(kept);
            memcpy(kept, changed(&f, i, epoch), n);
            (void)changed(&g, N - 1 - i, 7 - epoch);
            assert_memory_equal(changed(&g, i, epoch), kept, n);
            free(kept);
        }
    close_set(&f);
    close_set(&g);
}

/* ---- the reader ---------------------------------------------------------- */

enum { WORKERS = 3 };

/* What a sequence should be in an epoch: y, and its frames. */
static size_t expect(fixture *f, bm_augmenter *own, int64_t sequence,
                     int64_t epoch, float *y)
{
    uint64_t key = bm_augment_key(SEED, epoch, sequence);
    bm_augmented in = {.frames = (size_t)f->all.frames[sequence]};
    const bm_fit any = {0};
    size_t frames = 0;

    in.x = changed(f, (size_t)sequence, epoch);
    frames = bm_augment_frames(own, key, &in, &any);
    assert_true(frames < MOST_FRAMES);
    assert_ok(bm_augment(own, key, &in, frames, y, NULL));
    return frames;
}

static void check_batch(fixture *f, bm_augmenter *own, const bm_batch *b,
                        int64_t epoch)
{
    static float y[MOST_FRAMES * MOST_D];
    bm_extent e = b->extent;
    size_t D = f->d->features;

    for (size_t k = 0; k < e.B; k++) {
        size_t T = expect(f, own, b->id[k], epoch, y);

        assert_int_equal(e.frames[k], T);
        for (size_t t = 0; t < T; t++)
            for (size_t d = 0; d < D; d++)
                assert_true(b->x.data[(t * e.B + k) * D + d] == y[t * D + d]);
    }
}

/* The shares of workers [first, last) in three epochs from `from` on. Returns the
 * number of mini-batches. */
static int check_reader(fixture *f, bm_augmenter *own, int first, int last,
                        int64_t from)
{
    bm_config *config = EVERYTHING;
    bm_augment_settings augment = settings_of(config);
    bm_reader_settings s = {.plan = {.frames = 60,
                                     .order = BM_ORDER_RANDOM,
                                     .buckets = 1,
                                     .frames_per_worker = 60},
                            .workers = WORKERS,
                            .first = first,
                            .last = last,
                            .seed = SEED,
                            .augment = &augment};
    bm_dataset *d = NULL;
    bm_backend *be = NULL;
    bm_reader *r = NULL;
    int batches = 0;

    assert_ok(bm_backend_open(&be, "cpu", 0));
    assert_ok(bm_dataset_open(&d, in_folder("read")));
    assert_ok(bm_reader_open(&r, d, be, &s, (bm_position){from, 0}));
    for (bm_position at = {from, 0}; at.epoch < 3;
         at = (bm_position){at.epoch + 1, 0})
        for (; at.block < bm_reader_blocks(r); at.block++) {
            int64_t steps = 0;

            assert_ok(bm_reader_block(r, at, &steps));
            for (int k = first; k < last; k++)
                for (int64_t m = 0; m < bm_reader_steps(r, k); m++) {
                    const bm_batch *b = NULL;

                    assert_ok(bm_reader_batch(r, k, m, &b));
                    check_batch(f, own, b, at.epoch);
                    batches++;
                }
        }
    bm_reader_close(r);
    bm_dataset_close(d);
    bm_backend_close(be);
    bm_config_free(config);
    return batches;
}

static void test_the_reader_gives_the_same_on_any_rank(void **_)
{
    bm_config *config = EVERYTHING;
    bm_augment_settings augment = settings_of(config);
    bm_augmenter *own = NULL;
    bm_layout layout;
    fixture f;
    int all = 0, some = 0;

    (void)_;
    pack("read", recordings(), SET("features.mels=12"), 100000, 256);
    open_set(&f, "read", EVERYTHING);
    layout = bm_layout_of(bm_shard_features_text(f.d->shards[0]), 12);
    assert_ok(bm_augmenter_new(&own, &augment, &layout, false));
    all = check_reader(&f, own, 0, WORKERS, 0);
    for (int k = 0; k < WORKERS; k++)
        some += check_reader(&f, own, k, k + 1, 0);
    assert_true(all > 6);
    assert_int_equal(all, some);
    assert_true(check_reader(&f, own, 0, WORKERS, 1) < all); /* a restart */
    bm_augmenter_free(own);
    bm_config_free(config);
    close_set(&f);
}

/* ---- what goes wrong ----------------------------------------------------- */

/* A file that is cut off when it is read. */
static void test_a_broken_noise_leaves_the_sequence_clean(void **_)
{
    /* A header that promises 4096 bytes, of which 20 are there. */
    static const char wav[64] = "RIFF\x24\x10\0\0WAVEfmt \x10\0\0\0\1\0\1\0"
                                "\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
                                "data\0\x10\0\0";
    bm_journal *j = NULL;
    char noise[300], *text = NULL;
    size_t size = 0;
    fixture f;

    (void)_;
    make_folder("cut");
    write_bytes("cut/n.wav", wav, sizeof wav);
    snprintf(noise, sizeof noise, "augment.noise_sound=%s", in_folder("cut"));
    pack("clean", recordings(), SET("features.mels=12"), 100000, 256);
    open_set(&f, "clean", SET(noise, "augment.reverb=made", ALWAYS));
    assert_ok(bm_journal_open(&j, in_folder("journal.jsonl")));
    bm_log_journal(j);
    for (size_t i = 0; i < N; i++)
        assert_ptr_equal(changed(&f, i, 0), f.x[i]);
    bm_log_journal(NULL);
    bm_journal_close(j);
    close_set(&f);
    text = slurp(in_folder("journal.jsonl"), &size);
    assert_non_null(strstr(text, "cut/n.wav"));
    assert_non_null(strstr(text, "without room and noise"));
    assert_ptr_equal(strchr(text, '\n'), text + size - 1); /* once */
    free(text);
}

/* Asserts how opening fails, and what it says. */
static void assert_refused(const char *name, bm_config *config, int status,
                           const char *first, const char *second)
{
    bm_sound_augmenter *a = NULL;
    bm_dataset *d = NULL;

    assert_ok(bm_dataset_open(&d, in_folder(name)));
    assert_int_equal(open_augmenter(&a, d, config), status);
    assert_null(a);
    assert_non_null(strstr(bm_last_message(), first));
    assert_non_null(strstr(bm_last_message(), second));
    bm_dataset_close(d);
}

static void test_what_cannot_be_done_is_refused(void **_)
{
    corpus c;
    char empty[300];

    (void)_;
    make_folder("plain");
    make_folder("empty");
    snprintf(empty, sizeof empty, "augment.reverb=%s", in_folder("empty"));
    c = corpus_make(in_folder("plain"), "set", 3);
    corpus_write(&c);
    bm_vocab_free((bm_vocab *)c.meta.vocab);
    pack("one", "{\"id\": \"a\", \"audio\": \"0.wav\"}\n",
         SET("features.mels=12"), 100000, 256);
    assert_refused("plain", SET("augment.reverb=made"), BM_ERR_CONFIG,
                   "augment.reverb = made changes recordings, but ",
                   "plain/set-00000.bmuf.h5 has only features; pack data.train "
                   "again from recordings, with --set shard.samples=yes");
    assert_refused("plain", SET("augment.noise_sound=pink"), BM_ERR_CONFIG,
                   "augment.noise_sound = pink", "shard.samples=yes");
    assert_refused("one", SET("augment.noise_sound=babble"), BM_ERR_CONFIG,
                   "babble is of other recordings", "has only one");
    assert_refused("one", SET("augment.noise_sound=/no/such"), BM_ERR_MISSING,
                   "/no/such", "there is no such folder");
    assert_refused("one", SET(empty), BM_ERR_FORMAT,
                   "augment.reverb = ", "there is no recording in this folder");
}

static void test_moments_of_no_frame_are_refused(void **_)
{
    bm_augmented in = {0};
    fixture f;

    (void)_;
    without_frames = true;
    pack("forged", recordings(),
         SET("features.normalise=speaker", "features.mels=12"), 100000, 256);
    without_frames = false;
    open_set(&f, "forged", SET("augment.noise_sound=white", ALWAYS));
    in.x = f.x[2];
    in.frames = (size_t)f.all.frames[2];
    assert_int_equal(bm_sound_augment(f.a, bm_augment_key(SEED, 0, 2), 2, &in),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_message(),
                           "the moments of sequence number 2 are invalid"));
    close_set(&f);
}

static void test_features_have_no_samples(void **_)
{
    bm_import_source source = {.samples = true};
    bm_importer *i = NULL;

    (void)_;
    write_text("m.jsonl", "{\"id\": \"a\", \"feats\": \"0.npy\"}\n");
    source.path = in_folder("m.jsonl");
    assert_int_equal(bm_importer_open(&i, "features", NULL, &source),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_message(), "shard.samples = yes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features_are_made_as_they_were_packed),
        cmocka_unit_test(test_resampled_recordings_are_rounded_to_16_bits),
        cmocka_unit_test(test_samples_beyond_16_bits_are_clipped),
        cmocka_unit_test(test_the_means_of_a_model_are_applied),
        cmocka_unit_test(test_a_room_of_one_tap_changes_nothing),
        cmocka_unit_test(test_a_made_room_keeps_the_direct_sound_in_place),
        cmocka_unit_test(test_white_noise_has_the_ratio_that_is_asked_for),
        cmocka_unit_test(test_babble_is_of_other_sequences),
        cmocka_unit_test(test_babble_crosses_shards_of_one_sequence),
        cmocka_unit_test(test_shares_are_fractions_of_the_sequences),
        cmocka_unit_test(test_a_sequence_depends_on_its_key_alone),
        cmocka_unit_test(test_the_reader_gives_the_same_on_any_rank),
        cmocka_unit_test(test_a_broken_noise_leaves_the_sequence_clean),
        cmocka_unit_test(test_what_cannot_be_done_is_refused),
        cmocka_unit_test(test_moments_of_no_frame_are_refused),
        cmocka_unit_test(test_features_have_no_samples),
    };

    return cmocka_run_group_tests_name("sound_augment", tests, folder_make,
                                       folder_remove);
}
