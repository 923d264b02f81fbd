/*
 * [copies] of bmuf pack: what becomes of samples, against formulas and double
 * loops, and of the rows of a manifest.
 */
#include "core/rng.h"
#include "io/features/feature_text.h"
#include "io/import/copies/copies.h"
#include "io/import/copies/copies_settings.h"
#include "io/sound/convolution.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { RATE = 8000, N = 16000 };

static const double pi = 3.14159265358979323846;
static const char one[] = "{\"id\":\"a\",\"audio\":\"a.wav\"}\n";

/* The settings of [copies] that these make. */
static bm_copies_settings settings_of(bm_config *config)
{
    bm_copies_settings s = {0};

    assert_ok(bm_config_fill(config, "copies", bm_copies_options, &s));
    return s;
}

/* y [n] <- copy number `copy` of the row of id a, which has the samples x. Frees
 * the configuration. */
static void perturb(bm_config *config, const char *manifest, size_t copy,
                    const float *x, size_t n, float *y)
{
    bm_copies_settings s = settings_of(config);
    bm_copies_source source = {.rate = RATE};
    bm_manifest *m = NULL;
    bm_copies *p = NULL;
    bm_perturber *t = NULL;
    bm_problem problem = {0};
    bm_manifest_row row;
    bm_sound sound = {.n = n, .capacity = n, .rate = RATE, .channels = 1};

    write_text("m.jsonl", manifest);
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 100, 0));
    assert_ok(bm_manifest_copy(m, (size_t)s.count));
    source.manifest = m;
    assert_ok(bm_copies_open(&p, &s, &source));
    assert_ok(bm_perturber_new(&t, bm_copies_perturb(p)));
    row = bm_manifest_at(m, copy);
    assert_string_equal(row.of, "a");
    assert_int_equal(row.copy, copy);
    sound.x = malloc(n * sizeof *x);
    assert_non_null(sound.x);
    memcpy(sound.x, x, n * sizeof *x);
    assert_ok(bm_copies_apply(p, t, &row, &sound, &problem));
    assert_string_equal(problem.text, "");
    assert_int_equal(sound.n, n);
    memcpy(y, sound.x, n * sizeof *x);
    bm_sound_free(&sound);
    bm_perturber_free(t);
    bm_copies_close(p);
    bm_manifest_free(m);
    bm_config_free(config);
}

static double power(const float *x, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)x[i] * x[i];
    return sum / (double)n;
}

/* Gaussian samples. */
static void fill(float *x, size_t n, const char *stream)
{
    bm_rng rng = bm_rng_make(3, stream, 0);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)(1000 * bm_rng_normal(&rng));
}

static void test_convolution_equals_the_double_loop(void **state)
{
    static const struct {
        size_t taps, shift, n;
    } cases[] = {{1, 0, 1},        {3, 1, 10},     {50, 49, 7},
                 {1500, 20, 9000}, {5000, 0, 300}, {2, 0, 8193}};
    static float h[5000], x[9000], y[9000];
    bm_convolver *c = NULL;

    (void)state;
    fill(h, 5000, "h");
    fill(x, 9000, "x");
    assert_ok(bm_convolver_new(&c));
    FOR_EACH (k, cases) {
        size_t n = cases[k].n, taps = cases[k].taps;
        double scale = 1e6 * sqrt((double)(taps < n ? taps : n));

        memcpy(y, x, n * sizeof *x);
        assert_ok(bm_convolve(c, h, taps, cases[k].shift, y, n));
        for (size_t i = 0; i < n; i++) {
            size_t t = i + cases[k].shift;
            double sum = 0;

            for (size_t j = t < n ? 0 : t - n + 1; j < taps && j <= t; j++)
                sum += (double)h[j] * x[t - j];
            assert_true(fabs(y[i] - sum) < 1e-5 * scale);
        }
    }
    bm_convolver_free(c);
}

/* dB of x over what y adds to it. */
static double ratio_of(const float *x, const float *y, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += pow((double)y[i] - x[i], 2);
    return 10 * log10(power(x, n) / (sum / (double)n));
}

static void test_noise_has_the_ratio_that_is_asked_for(void **state)
{
    static const char *const kinds[] = {"copies.noise=white",
                                        "copies.noise=pink"};
    static float x[N], y[N], z[N];
    double least = 100, most = -100;

    (void)state;
    fill(x, N, "x");
    FOR_EACH (k, kinds) {
        perturb(SET("copies.count=1", kinds[k], "copies.snr=7"), one, 1, x, N,
                y);
        assert_true(near(ratio_of(x, y, N), 7, 1e-3));
    }
    for (size_t copy = 1; copy <= 40; copy++) { /* uniformly from the range */
        double dB = 0;

        perturb(SET("copies.count=40", "copies.noise=white", "copies.snr=0:10"),
                one, copy, x, N, y);
        dB = ratio_of(x, y, N);
        assert_true(dB >= -1e-3 && dB <= 10 + 1e-3);
        least = fmin(least, dB);
        most = fmax(most, dB);
        if (copy > 1)
            assert_memory_not_equal(y, z, sizeof y);
        memcpy(z, y, sizeof y);
    }
    assert_true(least < 1.5 && most > 8.5);
}

/* Energy of noise in octaves: equal in pink noise, doubling in white. */
static void test_kinds_of_noise_have_their_spectra(void **state)
{
    static const struct {
        const char *kind;
        double rise; /* dB an octave */
    } cases[] = {{"copies.noise=white", 3.01}, {"copies.noise=pink", 0}};
    static float x[N], y[N];

    (void)state;
    fill(x, N, "x");
    FOR_EACH (k, cases) {
        double energy[4] = {0};

        perturb(SET("copies.count=1", cases[k].kind), one, 1, x, N, y);
        for (size_t f = 200; f < 3200; f += 4) { /* Hz, of half a second */
            for (size_t part = 0; part < N; part += 4000) {
                double re = 0, im = 0;

                for (size_t i = 0; i < 4000; i++) {
                    double d = (double)y[part + i] - x[part + i];
                    double a = 2 * pi * (double)f * (double)i / RATE;

                    re += d * cos(a);
                    im += d * sin(a);
                }
                energy[(int)log2((double)f / 200)] += re * re + im * im;
            }
        }
        for (int o = 1; o < 4; o++)
            assert_true(fabs(10 * log10(energy[o] / energy[o - 1]) -
                             cases[k].rise) < 1.2);
    }
}

static void test_a_made_room_decays_by_60_db_in_t60(void **state)
{
    enum { AT = 100, LENGTH = 9000, PART = 800 };
    static float x[LENGTH], y[LENGTH];
    double tail = 0, first = 0, later = 0;

    (void)state;
    memset(x, 0, sizeof x);
    x[AT] = 1000; /* what follows is the impulse response */
    perturb(SET("copies.count=1", "copies.reverb=made", "copies.t60=0.5",
                "copies.direct=6"),
            one, 1, x, LENGTH, y);
    assert_true(near(power(y, LENGTH), power(x, LENGTH), 1e-5));
    for (size_t i = AT + 1; i < LENGTH; i++)
        tail += (double)y[i] * y[i];
    assert_true(near(10 * log10((double)y[AT] * y[AT] / tail), 6, 1e-3));
    /* Energies of two parts, 0.3 s apart: 36 dB. */
    for (size_t i = AT + 1; i <= AT + PART; i++) {
        first += (double)y[i] * y[i];
        later += (double)y[i + 2400] * y[i + 2400];
    }
    assert_true(fabs(10 * log10(first / later) - 36) < 1);
    /* Longer than T60 there is nothing, but for rounding. */
    assert_true(fabsf(y[AT + 4100]) < 1e-3F * fabsf(y[AT]));
    assert_true(fabsf(y[AT - 1]) < 1e-3F * fabsf(y[AT]));
}

static void make_folder(const char *name)
{
    (void)mkdir(in_folder(name), 0755);
}

static void test_an_impulse_response_is_aligned_at_its_peak(void **state)
{
    static const int h[] = {100, -900, 20000, -7000, 3000, 0, 1500, -800};
    enum { TAPS = sizeof h / sizeof *h, PEAK = 2, SHORT = 3000 };
    static float x[SHORT], y[SHORT];
    static double z[SHORT];
    double sum = 0, gain;

    (void)state;
    make_folder("rooms");
    write_sound("rooms/r.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, h, TAPS, 1,
                RATE);
    write_text("rooms/README", "no recording");
    fill(x, SHORT, "x");
    for (size_t t = 0; t < SHORT; t++) {
        z[t] = 0;
        for (size_t k = 0; k < TAPS; k++)
            if (t + PEAK >= k && t + PEAK - k < SHORT)
                z[t] += (double)h[k] * x[t + PEAK - k];
        sum += z[t] * z[t] / SHORT;
    }
    gain = sqrt(power(x, SHORT) / sum);
    {
        char folder[300];

        snprintf(folder, sizeof folder, "copies.reverb=%s", in_folder("rooms"));
        perturb(SET("copies.count=1", folder), one, 1, x, SHORT, y);
    }
    for (size_t t = 0; t < SHORT; t++)
        assert_true(fabs(y[t] - gain * z[t]) < 0.05);
}

/* The noise that a folder adds to x, as "copies.noise=FOLDER". */
static const char *noise_folder(const char *name)
{
    static char text[300];

    snprintf(text, sizeof text, "copies.noise=%s", in_folder(name));
    return text;
}

/* A file whose sample i is i + 1: its place can be read off. */
static void test_a_part_of_a_long_noise_or_all_of_a_short_one(void **state)
{
    enum { LONG = 12000, SHORT = 500, NEED = 3000 };
    static int ramp[LONG];
    static float x[NEED], y[NEED];
    double firsts[8];

    (void)state;
    for (int i = 0; i < LONG; i++)
        ramp[i] = i + 1;
    make_folder("long");
    make_folder("short");
    make_folder("short/deeper");
    write_sound("long/n.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, ramp, LONG, 1,
                RATE);
    write_sound("short/deeper/n.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, ramp,
                SHORT, 1, RATE);
    fill(x, NEED, "x");
    for (size_t copy = 1; copy <= 8; copy++) {
        double step, first;

        perturb(SET("copies.count=8", noise_folder("long"), "copies.snr=0"),
                one, copy, x, NEED, y);
        step = ((double)y[NEED - 1] - x[NEED - 1] - (y[0] - (double)x[0])) /
               (NEED - 1);
        first = ((double)y[0] - x[0]) / step;
        assert_true(first > 0.5 && first < LONG - NEED + 1.5);
        for (int i = 0; i < NEED; i++)
            assert_true(near(((double)y[i] - x[i]) / step, first + i, 1e-2));
        firsts[copy - 1] = first;
        if (copy > 1)
            assert_true(fabs(firsts[copy - 1] - firsts[copy - 2]) > 0.5);
    }
    perturb(SET("copies.count=1", noise_folder("short"), "copies.snr=0"), one,
            1, x, NEED, y);
    for (int i = SHORT; i < NEED; i++) /* repeated */
        assert_true(fabs((double)y[i] - x[i] -
                         ((double)y[i - SHORT] - x[i - SHORT])) < 0.01);
    assert_true(fabs((double)y[1] - x[1] - ((double)y[0] - x[0])) > 0.01);
}

/* All others have one tone each, so that babble is a sum of these. */
static void test_babble_is_of_other_recordings(void **state)
{
    enum { LENGTH = 8000 };
    static const double hz[] = {500, 700, 1100};
    static const char list[] = "{\"id\":\"a\",\"audio\":\"a.wav\"}\n"
                               "{\"id\":\"b\",\"audio\":\"b.wav\"}\n"
                               "{\"id\":\"c\",\"audio\":\"c.wav\"}\n";
    static int tone[LENGTH];
    static float x[LENGTH], y[LENGTH];
    double share[3] = {0}, all = 0;

    (void)state;
    for (size_t k = 0; k < 3; k++) {
        static const char *const names[] = {"a.wav", "b.wav", "c.wav"};

        make_tone(tone, LENGTH, 1, hz[k], RATE);
        write_sound(names[k], SF_FORMAT_WAV | SF_FORMAT_PCM_16, tone, LENGTH, 1,
                    RATE);
    }
    fill(x, LENGTH, "x");
    for (size_t copy = 1; copy <= 6; copy++) {
        perturb(SET("copies.count=6", "copies.noise=babble", "copies.snr=3"),
                list, copy, x, LENGTH, y);
        assert_true(near(ratio_of(x, y, LENGTH), 3, 1e-3));
        for (size_t k = 0; k < 3; k++) {
            double re = 0, im = 0;

            for (size_t i = 0; i < LENGTH; i++) {
                double d = (double)y[i] - x[i];
                double a = 2 * pi * hz[k] * (double)i / RATE;

                re += d * cos(a);
                im += d * sin(a);
            }
            share[k] += 2 * (re * re + im * im) / LENGTH;
        }
        for (size_t i = 0; i < LENGTH; i++)
            all += pow((double)y[i] - x[i], 2);
    }
    assert_true(share[0] < 1e-6 * all); /* itself */
    assert_true(share[1] > 0.1 * all && share[2] > 0.1 * all);
    assert_true(near(share[1] + share[2], all, 1e-3));
}

static void test_speeds_go_in_turn_and_move_the_pitch(void **state)
{
    static const double speeds[] = {1, 0.8, 1.25, 0.8};
    bm_importer *i = NULL;
    size_t loudest[4], frames[4];

    (void)state;
    write_tone("a.wav", 8000, 1, RATE); /* 440 Hz */
    assert_ok(open_importer(&i, "audio",
                            SET("copies.count=3", "copies.speed=0.8 1.25",
                                "features.mels=60", "features.window_ms=64",
                                "features.normalise=none"),
                            one));
    FOR_EACH (k, speeds) {
        bm_item item = next_item(i);
        const float *x = item.x + item.frames / 2 * item.features;

        assert_null(item.problem);
        loudest[k] = 0;
        for (size_t d = 1; d < item.features; d++)
            loudest[k] = x[d] > x[loudest[k]] ? d : loudest[k];
        frames[k] = item.frames;
        /* 1 + (n - W) / S for n samples */
        assert_true(fabs((double)item.frames -
                         (1 + (8000 / speeds[k] - 512) / 80)) < 1.1);
    }
    assert_null(next_item(i).id);
    assert_true(loudest[1] < loudest[0] && loudest[0] < loudest[2]);
    assert_int_equal(loudest[1], loudest[3]);
    assert_int_equal(frames[1], frames[3]);
    bm_importer_close(i);
}

/* Seconds 0.125 to 0.875 of the recording at 0.8 times the speed are 0.1 to 0.7
 * of it, played so. */
static void test_a_speed_of_lhotse_is_that_of_a_copy(void **state)
{
    static const char cut[] =
        "{\"id\":\"a\",\"start\":0.125,\"duration\":0.75,\"channel\":0,"
        "\"supervisions\":[],\"recording\":{\"sources\":[{\"type\":"
        "\"file\",\"source\":\"a.wav\"}],\"transforms\":[{\"name\":"
        "\"Speed\",\"kwargs\":{\"factor\":0.8}}]}}\n";
    static const char excerpt[] = "{\"id\":\"a\",\"audio\":\"a.wav\","
                                  "\"start\":0.1,\"duration\":0.6}\n";
    bm_importer *i = NULL, *copied = NULL;
    bm_item item, copy;

    (void)state;
    write_tone("a.wav", 8000, 1, RATE);
    assert_ok(open_importer(&i, "audio", NULL, cut));
    item = next_item(i);
    assert_null(item.problem);
    assert_int_equal(item.frames, 1 + (.75 * RATE - 200) / 80);
    assert_ok(open_importer(
        &copied, "audio", SET("copies.count=1", "copies.speed=0.8"), excerpt));
    (void)next_item(copied);
    copy = next_item(copied);
    assert_int_equal(item.frames, copy.frames);
    assert_memory_equal(item.x, copy.x,
                        item.frames * item.features * sizeof *item.x);
    bm_importer_close(copied);
    bm_importer_close(i);
}

static void test_copies_keep_text_and_speaker(void **state)
{
    static const char list[] =
        "{\"id\":\"a\",\"audio\":\"a.wav\",\"text\":\"low\",\"speaker\":"
        "\"x\"}\n"
        "{\"id\":\"b\",\"audio\":\"b.wav\",\"text\":\"high\",\"speaker\":"
        "\"y\"}\n";
    static const char *const ids[] = {"a", "a-copy1", "a-copy2",
                                      "b", "b-copy1", "b-copy2"};
    bm_importer *i = NULL, *plain = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, RATE);
    write_tone("b.wav", 4000, 1, RATE);
    assert_ok(open_importer(&plain, "audio", NULL, list));
    assert_ok(open_importer(
        &i, "audio", SET("copies.count=2", "copies.noise=white babble"), list));
    assert_int_equal(i->ops->size(i), 6);
    FOR_EACH (k, ids) {
        bm_item item = next_item(i);

        assert_string_equal(item.id, ids[k]);
        assert_string_equal(item.text, k < 3 ? "low" : "high");
        assert_string_equal(item.speaker, k < 3 ? "x" : "y");
        assert_null(item.problem);
        if (k % 3 == 0) { /* the recording is as it is without copies */
            bm_item same = next_item(plain);

            assert_int_equal(item.frames, same.frames);
            assert_memory_equal(item.x, same.x,
                                same.frames * same.features * sizeof *same.x);
        }
    }
    bm_importer_close(i);
    bm_importer_close(plain);
}

static bm_status note(void *self, const bm_item *item)
{
    bm_rng *sum = self;

    for (size_t i = 0; i < item->frames * item->features; i++) {
        uint32_t bits = 0;

        memcpy(&bits, &item->x[i], sizeof bits);
        sum->key = bm_rng_at(sum->key, bits);
    }
    sum->next++;
    return BM_OK;
}

static void test_threads_do_not_change_a_bit(void **state)
{
    bm_rng sums[3] = {{0}};

    (void)state;
    make_speech("set", 9);
    make_folder("long");
    write_noise("long/n.wav", 12000, 3000);
    for (size_t k = 0; k < 3; k++) {
        bm_config *config = SET("copies.count=2", "copies.noise=pink babble",
                                "copies.reverb=made", "copies.speed=0.9:1.1",
                                k == 2 ? "copies.seed=2" : "copies.seed=1");
        bm_importer *i = NULL;

        assert_ok(
            bm_importer_open(&i, "audio", config,
                             &(bm_import_source){.path = in_folder("set.jsonl"),
                                                 .threads = k == 1 ? 4 : 1}));
        bm_config_free(config);
        assert_ok(bm_importer_each(i, note, &sums[k]));
        assert_int_equal(sums[k].next, 27);
        bm_importer_close(i);
    }
    assert_true(sums[0].key == sums[1].key);
    assert_true(sums[0].key != sums[2].key);
}

static void test_a_set_with_copies_fits_a_model_without(void **state)
{
    bm_importer *with = NULL, *without = NULL;
    bm_shard_meta a, b;
    char text[200];
    bool raw = true;

    (void)state;
    write_tone("a.wav", 8000, 1, RATE);
    assert_ok(open_importer(&without, "audio", NULL, one));
    assert_ok(open_importer(&with, "audio",
                            SET("copies.count=1", "copies.noise=white"), one));
    with->ops->meta(with, &a);
    without->ops->meta(without, &b);
    assert_non_null(strstr(a.features_text, "\"copies\""));
    assert_non_null(strstr(a.features_text, "\"white\""));
    assert_null(strstr(b.features_text, "\"copies\""));
    assert_int_equal(bm_features_differ(a.features_text, b.features_text, text,
                                        sizeof text, &raw),
                     0);
    assert_int_equal(bm_features_differ(b.features_text, a.features_text, text,
                                        sizeof text, &raw),
                     0);
    bm_importer_close(with);
    bm_importer_close(without);
}

/* A copy has the classes of its recording's frames, unless its speed differs. */
static void test_copies_have_their_recordings_classes(void **state)
{
    char classes[400] = "a";
    bm_config *slow = SET("copies.count=1", "copies.speed=0.9");
    bm_config *noisy = SET("copies.count=1", "copies.noise=white");
    bm_import_source source = {.path = in_folder("m.jsonl")};
    bm_importer *i = NULL;

    (void)state;
    for (int t = 0; t < 98; t++)
        snprintf(classes + strlen(classes), sizeof classes - strlen(classes),
                 " %d", t % 7);
    write_text("ali.txt", classes);
    write_text("m.jsonl", one);
    source.targets = in_folder("ali.txt");
    assert_int_equal(bm_importer_open(&i, "audio", slow, &source),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_message(), "--targets"));
    assert_ok(bm_importer_open(&i, "audio", noisy, &source));
    for (int copy = 0; copy < 2; copy++) {
        bm_item item = next_item(i);

        assert_null(item.problem);
        assert_int_equal(item.n_labels, 98);
        for (int t = 0; t < 98; t++)
            assert_int_equal(item.labels[t], t % 7);
    }
    bm_importer_close(i);
    bm_config_free(slow);
    bm_config_free(noisy);
}

static void test_what_cannot_be_copied_is_refused(void **state)
{
    static const char twice[] = "{\"id\":\"a\",\"audio\":\"a.wav\"}\n"
                                "{\"id\":\"a-copy1\",\"audio\":\"a.wav\"}\n";
    bm_importer *i = NULL;
    char empty[300];

    (void)state;
    write_tone("a.wav", 8000, 1, RATE);
    assert_int_equal(open_importer(&i, "audio",
                                   SET("copies.count=1", "copies.noise=white"),
                                   twice),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_message(), "duplicate id \"a-copy1\""));
    assert_int_equal(open_importer(&i, "audio",
                                   SET("copies.count=1", "copies.noise=babble"),
                                   one),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_message(), "only one"));
    make_folder("empty");
    snprintf(empty, sizeof empty, "copies.noise=%s", in_folder("empty"));
    assert_int_equal(
        open_importer(&i, "audio", SET("copies.count=1", empty), one),
        BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_message(), "no recording"));
    assert_int_equal(
        open_importer(&i, "audio",
                      SET("copies.count=1", "copies.reverb=nowhere"), one),
        BM_ERR_MISSING);
    make_folder("slow");
    {
        static int x[8000];

        write_sound("slow/s.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, 8000, 1,
                    700); /* 11.4 s */
    }
    snprintf(empty, sizeof empty, "copies.reverb=%s", in_folder("slow"));
    assert_int_equal(
        open_importer(&i, "audio", SET("copies.count=1", empty), one),
        BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_message(), "impulse response"));
}

static void test_copies_of_a_file_that_may_be_missing_are_left_out(void **state)
{
    bm_manifest *m = NULL;

    (void)state;
    write_text("a.wav", "");
    write_text("m.jsonl", "{\"id\":\"a\",\"audio\":\"a.wav\"}\n"
                          "{\"id\":\"b\",\"audio\":\"missing.wav\"}\n");
    assert_ok(bm_manifest_read(&m, in_folder("m.jsonl"), "audio", 50, 0));
    assert_ok(bm_manifest_copy(m, 1));
    assert_int_equal(bm_manifest_size(m), 4);
    bm_manifest_free(m);
}

static void test_a_noise_file_that_is_damaged_leaves_the_copy_out(void **state)
{
    /* A header that promises 4096 bytes, of which 20 are there. */
    static const char wav[64] = "RIFF\x24\x10\0\0WAVEfmt \x10\0\0\0\1\0\1\0"
                                "\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0"
                                "data\0\x10\0\0";
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    write_tone("a.wav", 8000, 1, RATE);
    make_folder("cut");
    write_bytes("cut/n.wav", wav, sizeof wav);
    assert_ok(open_importer(&i, "audio",
                            SET("copies.count=1", noise_folder("cut")), one));
    assert_null(next_item(i).problem);
    item = next_item(i);
    assert_non_null(item.problem);
    assert_non_null(strstr(item.problem->text, "cut/n.wav"));
    bm_importer_close(i);
}

static void test_invalid_settings_are_listed(void **state)
{
    static const bm_section sections[] = {
        {"copies", bm_copies_options, bm_copies_check, NULL}, {0}};
    static const struct {
        const char *set[2], *message; /* NULL: valid */
    } cases[] = {
        {{"copies.count=1", "copies.noise=white"}, NULL},
        {{"copies.count=1", "copies.speed=0.9:1.1"}, NULL},
        {{"copies.count=2", NULL}, "makes copies that equal"},
        {{"copies.noise=white", NULL}, "applies only with copies.count > 0"},
        {{"copies.count=1", "copies.speed=9"}, "copies.speed = 9 is invalid"},
        {{"copies.noise=pink", "copies.snr=20:5"}, "copies.snr = 20:5"},
        {{"copies.noise=pink", "copies.snr=x"}, "copies.snr = x"},
        {{"copies.reverb=made", "copies.t60=0.01"}, "copies.t60 = 0.01"},
        {{"copies.reverb=rooms", "copies.t60=0.3"},
         "applies only with copies.reverb = made"},
    };

    (void)state;
    FOR_EACH (k, cases) {
        bm_config *config = SET(cases[k].set[0], cases[k].set[1]);
        bm_status status = bm_config_check(config, sections);

        assert_int_equal(status, cases[k].message ? BM_ERR_CONFIG : BM_OK);
        if (cases[k].message != NULL)
            assert_non_null(strstr(bm_last_message(), cases[k].message));
        bm_config_free(config);
    }
}

static int set_up(void **state)
{
    int failed = folder_make(state);

    write_tone("a.wav", 8000, 1, RATE);
    return failed;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_convolution_equals_the_double_loop),
        cmocka_unit_test(test_noise_has_the_ratio_that_is_asked_for),
        cmocka_unit_test(test_kinds_of_noise_have_their_spectra),
        cmocka_unit_test(test_a_made_room_decays_by_60_db_in_t60),
        cmocka_unit_test(test_an_impulse_response_is_aligned_at_its_peak),
        cmocka_unit_test(test_a_part_of_a_long_noise_or_all_of_a_short_one),
        cmocka_unit_test(test_babble_is_of_other_recordings),
        cmocka_unit_test(test_speeds_go_in_turn_and_move_the_pitch),
        cmocka_unit_test(test_a_speed_of_lhotse_is_that_of_a_copy),
        cmocka_unit_test(test_copies_keep_text_and_speaker),
        cmocka_unit_test(test_threads_do_not_change_a_bit),
        cmocka_unit_test(test_a_set_with_copies_fits_a_model_without),
        cmocka_unit_test(test_copies_have_their_recordings_classes),
        cmocka_unit_test(test_what_cannot_be_copied_is_refused),
        cmocka_unit_test(
            test_copies_of_a_file_that_may_be_missing_are_left_out),
        cmocka_unit_test(test_a_noise_file_that_is_damaged_leaves_the_copy_out),
        cmocka_unit_test(test_invalid_settings_are_listed),
    };

    return cmocka_run_group_tests_name("copies", tests, set_up, folder_remove);
}
