/*
 * Recordings: what libsndfile wrote is read back, one channel of it, at another
 * rate; and bmuf pack --audio as a whole, on recordings made here.
 */
#include "core/log.h"
#include "core/rng.h"
#include "io/fbank.h"
#include "io/importer.h"
#include "io/sound.h"
#include "tests/folder.h"
#include "tests/support.h"

#include <jansson.h>
#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

enum { LONGEST = 16000 };

/* A tone of 16-bit numbers, one channel beside another, each an octave above
 * the one before. */
static void make_tone(int *x, size_t n, int channels, double hz, int rate)
{
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < channels; c++)
            x[i * (size_t)channels + (size_t)c] =
                (int)lrint(9000 * sin(2 * pi * hz * ldexp(1, c) * (double)i /
                                      (double)rate));
}

/* x [n, channels] of 16-bit numbers; a double of 1 means 32768 of them. */
static void write_sound(const char *name, int format, const int *x, size_t n,
                        int channels, int rate)
{
    SF_INFO info = {.samplerate = rate, .channels = channels, .format = format};
    SNDFILE *file = sf_open(in_folder(name), SFM_WRITE, &info);

    assert_non_null(file);
    for (size_t i = 0; i < n * (size_t)channels; i += (size_t)channels) {
        int wide[2] = {0};
        double real[2] = {0};

        for (size_t c = 0; c < (size_t)channels; c++) {
            wide[c] = x[i + c] * 65536;
            real[c] = x[i + c] / 32768.0;
        }
        if ((format & SF_FORMAT_SUBMASK) == SF_FORMAT_FLOAT)
            assert_int_equal(sf_writef_double(file, real, 1), 1);
        else
            assert_int_equal(sf_writef_int(file, wide, 1), 1);
    }
    sf_close(file);
}

/* A tone in a 16-bit WAV file. */
static void write_tone(const char *name, size_t n, int channels, int rate)
{
    static int x[2 * LONGEST];

    make_tone(x, n, channels, 440, rate);
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n, channels, rate);
}

static void write_noise(const char *name, size_t n, double size)
{
    static int x[LONGEST];
    bm_rng rng = bm_rng_make(1, name, 0);

    for (size_t i = 0; i < n; i++)
        x[i] = (int)(size * bm_rng_uniform(&rng));
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n, 1, 8000);
}

static bm_sound read_sound(const char *name, long channel, bm_problem *problem)
{
    bm_sound s = {0};

    problem->text[0] = '\0';
    assert_ok(bm_sound_read(&s, in_folder(name), channel, problem));
    return s;
}

static void test_every_format_gives_the_same_samples(void **state)
{
    static const struct {
        const char *name;
        int format;
    } files[] = {
        {"16.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
        {"24.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_24},
        {"32.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_32},
        {"float.wav", SF_FORMAT_WAV | SF_FORMAT_FLOAT},
        {"big.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16 | SF_ENDIAN_BIG},
        {"wavex.wav", SF_FORMAT_WAVEX | SF_FORMAT_PCM_16},
        {"a.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
        {"sphere.wav", SF_FORMAT_NIST | SF_FORMAT_PCM_16},
    };
    static int x[5000];

    (void)state;
    make_tone(x, 5000, 1, 440, 8000);
    x[0] = -32768;
    x[1] = 32767;
    FOR_EACH (f, files) {
        bm_problem problem;
        bm_sound s;

        write_sound(files[f].name, files[f].format, x, 5000, 1, 8000);
        s = read_sound(files[f].name, 0, &problem);
        assert_string_equal(problem.text, "");
        assert_int_equal(s.rate, 8000);
        assert_int_equal(s.n, 5000);
        for (size_t i = 0; i < s.n; i++)
            assert_true(s.x[i] == (float)x[i]);
        bm_sound_free(&s);
    }
}

static void test_one_channel_or_the_mean_of_all(void **state)
{
    static int x[2 * 1000];

    (void)state;
    make_tone(x, 1000, 2, 440, 8000);
    write_tone("two.wav", 1000, 2, 8000);
    for (long channel = 0; channel <= 2; channel++) {
        bm_problem problem;
        bm_sound s = read_sound("two.wav", channel, &problem);

        assert_int_equal(s.n, 1000);
        assert_int_equal(s.channels, 2);
        for (size_t i = 0; i < 1000; i++) {
            double expected = channel == 0 ? (x[2 * i] + x[2 * i + 1]) / 2.0
                                           : x[2 * i + (size_t)channel - 1];
            assert_true(s.x[i] == (float)expected);
        }
        bm_sound_free(&s);
    }
}

/* Power of a signal at some frequency. */
static double power_at(const float *x, size_t n, double hz, double rate)
{
    double re = 0, im = 0;

    for (size_t i = 0; i < n; i++) {
        re += x[i] * cos(2 * pi * hz * (double)i / rate);
        im += x[i] * sin(2 * pi * hz * (double)i / rate);
    }
    return (re * re + im * im) / ((double)n * (double)n);
}

static void test_resampling_keeps_the_tone(void **state)
{
    static const long rates[] = {8000, 11025, 16000, 48000};

    (void)state;
    write_tone("tone.wav", LONGEST, 1, 16000);
    FOR_EACH (r, rates) {
        double rate = (double)rates[r];
        bm_problem problem;
        bm_sound s = read_sound("tone.wav", 0, &problem);

        assert_ok(bm_sound_resample(&s, rates[r], &problem));
        assert_string_equal(problem.text, "");
        assert_int_equal(s.rate, rates[r]);
        assert_true(fabs((double)s.n - rate) <= 2); /* one second */
        assert_true(
            near(power_at(s.x, s.n, 440, rate), 9000.0 * 9000 / 4, 0.01));
        for (double hz = 100; hz < rate / 2; hz += 83)
            if (fabs(hz - 440) > 30)
                assert_true(power_at(s.x, s.n, hz, rate) < 9000 * 0.1);
        bm_sound_free(&s);
    }
}

static void test_what_is_no_recording_is_a_problem(void **state)
{
    bm_problem problem;
    bm_sound s;
    float bad[4] = {0, 1, NAN, 0};
    SF_INFO info = {.samplerate = 8000,
                    .channels = 1,
                    .format = SF_FORMAT_WAV | SF_FORMAT_FLOAT};
    SNDFILE *file = sf_open(in_folder("nan.wav"), SFM_WRITE, &info);

    (void)state;
    assert_non_null(file);
    assert_int_equal(sf_writef_float(file, bad, 4), 4);
    sf_close(file);
    s = read_sound("nan.wav", 0, &problem);
    assert_non_null(strstr(problem.text, "nan.wav: sample 2 is not a finite"));
    bm_sound_free(&s);

    write_text("text.wav", "this is a letter, not a recording");
    s = read_sound("text.wav", 0, &problem);
    assert_non_null(strstr(problem.text, "text.wav: "));
    bm_sound_free(&s);

    write_tone("one.wav", 100, 1, 8000);
    s = read_sound("one.wav", 2, &problem);
    assert_non_null(strstr(problem.text, "no channel 2"));
    bm_sound_free(&s);
}

/* Neither a shorter file nor a longer one than its head says may crash. */
static void test_damaged_recordings_never_crash(void **state)
{
    static const char *const names[] = {"d.wav", "d.flac"};
    static const int formats[] = {SF_FORMAT_WAV | SF_FORMAT_PCM_16,
                                  SF_FORMAT_FLAC | SF_FORMAT_PCM_16};
    static int x[5000];
    static char bytes[20000];
    size_t problems = 0;

    (void)state;
    make_tone(x, 5000, 1, 440, 8000);
    FOR_EACH (f, names) {
        FILE *file = NULL;
        size_t n = 0;

        write_sound(names[f], formats[f], x, 5000, 1, 8000);
        file = fopen(in_folder(names[f]), "rb");
        assert_non_null(file);
        n = fread(bytes, 1, sizeof bytes, file);
        fclose(file);
        for (size_t i = 0; i < n; i += i < 100 ? 1 : 97) {
            bm_problem problem;
            bm_sound s;

            bytes[i] = (char)~bytes[i];
            write_bytes("damaged", bytes, n - i);
            s = read_sound("damaged", 0, &problem);
            problems += bm_problem_is(&problem);
            bm_sound_free(&s);
            bytes[i] = (char)~bytes[i];
        }
    }
    assert_true(problems > 20); /* magic numbers and checksums at least */
}

/* ---- the importer ------------------------------------------------------ */

static bm_config *set_all(const char *const *assignments)
{
    bm_config *config = NULL;

    assert_ok(bm_config_new(&config));
    for (; *assignments != NULL; assignments++)
        assert_ok(bm_config_set(config, *assignments));
    return config;
}

#define SET(...) set_all((const char *const[]){__VA_ARGS__, NULL})

static bm_status open_audio(bm_importer **i, bm_config *config,
                            const char *manifest)
{
    bm_status status = BM_OK;

    write_text("m.jsonl", manifest);
    status = bm_importer_open(i, "audio", config, in_folder("m.jsonl"));
    bm_config_free(config);
    return status;
}

static bm_item next(bm_importer *i)
{
    bm_item item;

    assert_ok(i->ops->next(i, &item));
    return item;
}

static const char two_tones[] =
    "{\"id\":\"a\",\"audio\":\"a.wav\",\"text\":\"low\",\"speaker\":\"x\"}\n"
    "{\"id\":\"b\",\"audio\":\"b.wav\",\"text\":\"high\",\"speaker\":\"y\"}\n";

static void test_items_are_the_filter_bank_of_their_recordings(void **state)
{
    bm_fbank_settings bank = {8000, 40, 25, 10, "povey", 0.97, 20, 0, true};
    bm_importer *i = NULL;
    bm_fbank *f = NULL;
    bm_item item;
    bm_sound s;
    bm_problem problem;
    float *y = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    write_tone("b.wav", 4000, 1, 8000);
    s = read_sound("a.wav", 0, &problem);
    assert_ok(bm_fbank_new(&f, &bank));
    y = malloc(98 * 40 * sizeof *y);
    assert_non_null(y);
    bm_fbank_apply(f, s.x, s.n, y);
    assert_ok(open_audio(&i, SET("features.normalise=none"), two_tones));
    item = next(i);
    assert_string_equal(item.id, "a");
    assert_string_equal(item.text, "low");
    assert_string_equal(item.speaker, "x");
    assert_null(item.problem);
    assert_int_equal(item.frames, 98);
    assert_int_equal(item.features, 40);
    assert_memory_equal(item.x, y, 98 * 40 * sizeof *y);
    assert_string_equal(next(i).id, "b");
    assert_null(next(i).id);
    assert_string_equal(next(i).id, "a"); /* and again */
    bm_importer_close(i);
    bm_fbank_free(f);
    bm_sound_free(&s);
    free(y);
}

static void test_texts_are_there_without_the_recordings(void **state)
{
    static const char *const texts[] = {"low", "high", NULL, "low"};
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    write_tone("b.wav", 4000, 1, 8000);
    assert_ok(open_audio(&i, NULL, two_tones));
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
    assert_non_null(next(i).problem);
    bm_importer_close(i);
}

static void test_settings_are_told_as_json(void **state)
{
    bm_importer *i = NULL;
    bm_shard_meta meta;
    json_t *object = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    write_tone("b.wav", 4000, 1, 8000);
    assert_ok(open_audio(
        &i,
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
    json_decref(object);
    assert_int_equal(next(i).frames, 33); /* of 98 */
    bm_importer_close(i);
}

static void test_speakers_and_all_are_normalised_as_a_whole(void **state)
{
    static const char *const by[] = {"features.normalise=speaker",
                                     "features.normalise=global"};
    static const char manifest[] =
        "{\"id\":\"a\",\"audio\":\"a.wav\",\"speaker\":\"x\"}\n"
        "{\"id\":\"bad\",\"audio\":\"bad.wav\",\"speaker\":\"z\"}\n"
        "{\"id\":\"b\",\"audio\":\"b.wav\",\"speaker\":\"y\"}\n"
        "{\"id\":\"c\",\"audio\":\"c.wav\",\"speaker\":\"x\"}\n";

    (void)state;
    write_noise("a.wav", 8000, 1000);
    write_noise("b.wav", 4000, 3000);
    write_noise("c.wav", 2345, 9000);
    write_text("bad.wav", "no sound");
    FOR_EACH (k, by) {
        bm_importer *i = NULL;
        double sum[2] = {0}, squares[2] = {0}, n[2] = {0};

        assert_ok(open_audio(&i, SET(by[k], "features.mels=1"), manifest));
        for (bm_item item = next(i); item.id != NULL; item = next(i)) {
            size_t group = k == 0 && item.speaker[0] == 'y';

            assert_int_equal(item.problem != NULL, item.id[1] == 'a');
            n[group] += (double)item.frames;
            for (size_t t = 0; t < item.frames; t++) {
                sum[group] += item.x[t];
                squares[group] += (double)item.x[t] * item.x[t];
            }
        }
        for (size_t g = 0; g < 2 - k; g++) {
            assert_true(fabs(sum[g] / n[g]) < 1e-4);
            assert_true(near(squares[g] / n[g], 1, 1e-3));
        }
        bm_importer_close(i);
    }
}

/* The first frame of "a" under these settings. */
static void first_frame(bm_config *config, float out[40])
{
    bm_importer *i = NULL;
    bm_item item;

    assert_ok(open_audio(&i, config, two_tones));
    item = next(i);
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

static void test_mixed_rates_are_told_with_the_remedy(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 16000, 1, 16000);
    write_tone("b.wav", 8000, 1, 8000);
    assert_int_equal(open_audio(&i, NULL, two_tones), BM_ERR_FORMAT);
    assert_null(i);
    assert_non_null(strstr(bm_last_error(), "a.wav has 16000 Hz"));
    assert_non_null(strstr(bm_last_error(), "b.wav has 8000 Hz"));
    assert_non_null(strstr(bm_last_error(), "--set features.rate=8000"));
    assert_ok(open_audio(&i, SET("features.rate=8000"), two_tones));
    assert_int_equal(next(i).frames, 98);
    assert_int_equal(next(i).frames, 98);
    bm_importer_close(i);
}

static void test_a_missing_channel_is_told(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 8000, 2, 8000);
    write_tone("b.wav", 8000, 1, 8000);
    assert_int_equal(open_audio(&i, SET("features.channel=2"), two_tones),
                     BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "b.wav has 1 channel, no"));
}

static void test_odd_recordings_are_problems_of_their_items(void **state)
{
    bm_importer *i = NULL;
    bm_item item;

    (void)state;
    write_text("a.wav", "no sound");
    write_tone("b.wav", 96, 1, 8000);
    assert_ok(open_audio(&i, NULL, two_tones));
    item = next(i);
    assert_string_equal(item.id, "a");
    assert_non_null(strstr(item.problem, "a.wav: "));
    assert_string_equal(next(i).problem,
                        "0.012 s is shorter than one window of 25 ms");
    assert_null(next(i).id);
    bm_importer_close(i);
    write_text("b.wav", "neither");
    assert_int_equal(open_audio(&i, NULL, two_tones), BM_ERR_FORMAT);
    assert_non_null(strstr(bm_last_error(), "none of the 2 recordings"));
}

static void test_speakers_must_be_named_to_normalise_by_them(void **state)
{
    bm_importer *i = NULL;

    (void)state;
    write_tone("a.wav", 8000, 1, 8000);
    assert_int_equal(open_audio(&i, SET("features.normalise=speaker"),
                                "{\"id\":\"a\",\"audio\":\"a.wav\"}\n"),
                     BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "m.jsonl:1 names no \"speaker\""));
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
        open_audio(&i, NULL,
                   "{\"id\":\"a\",\"audio\":\"recordings/0_george_0.wav\","
                   "\"text\":\"zero\"}\n"
                   "{\"id\":\"b\",\"audio\":\"recordings/7_jackson_32.wav\","
                   "\"text\":\"seven\"}\n"));
    i->ops->meta(i, &meta);
    assert_non_null(strstr(meta.features_text, "\"rate\": 8000"));
    for (bm_item item = next(i); item.id != NULL; item = next(i)) {
        assert_null(item.problem);
        assert_int_equal(item.features, 40);
        assert_in_range(item.frames, 12, 230); /* 0.14 .. 2.28 s */
        for (size_t k = 0; k < item.frames * 40; k++)
            assert_true(fabs(item.x[k]) < 20);
        items++;
    }
    assert_int_equal(items, 2);
    bm_importer_close(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format_gives_the_same_samples),
        cmocka_unit_test(test_one_channel_or_the_mean_of_all),
        cmocka_unit_test(test_resampling_keeps_the_tone),
        cmocka_unit_test(test_what_is_no_recording_is_a_problem),
        cmocka_unit_test(test_damaged_recordings_never_crash),
        cmocka_unit_test(test_items_are_the_filter_bank_of_their_recordings),
        cmocka_unit_test(test_texts_are_there_without_the_recordings),
        cmocka_unit_test(test_settings_are_told_as_json),
        cmocka_unit_test(test_speakers_and_all_are_normalised_as_a_whole),
        cmocka_unit_test(test_dither_depends_on_the_seed_alone),
        cmocka_unit_test(test_mixed_rates_are_told_with_the_remedy),
        cmocka_unit_test(test_a_missing_channel_is_told),
        cmocka_unit_test(test_odd_recordings_are_problems_of_their_items),
        cmocka_unit_test(test_speakers_must_be_named_to_normalise_by_them),
        cmocka_unit_test(test_real_recordings_are_usable),
    };

    bm_log_setup(0, BM_ERROR);
    return cmocka_run_group_tests_name("sound", tests, folder_make,
                                       folder_remove);
}
