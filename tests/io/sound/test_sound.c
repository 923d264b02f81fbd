/*
 * Recordings: files of libsndfile are read back, one channel, at another rate;
 * damaged ones are reported.
 */
#include "io/sound/sound.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double pi = 3.14159265358979323846;

enum { LONGEST = 16000 };

static bm_sound read_sound(const char *name, long channel, bm_problem *problem)
{
    bm_sound s = {0};

    problem->text[0] = '\0';
    assert_ok(
        bm_sound_read(&s, in_folder(name), channel, (bm_excerpt){0}, problem));
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
        for (long hz = 100; hz < rates[r] / 2; hz += 83)
            if (labs(hz - 440) > 30)
                assert_true(power_at(s.x, s.n, (double)hz, rate) < 9000 * 0.1);
        bm_sound_free(&s);
    }
}

/* From 16 to 8 kHz: 3 kHz is below half the new rate and stays; 6 kHz is above
 * it and must be removed, or it becomes 2 kHz. */
static void
test_resampling_removes_frequencies_above_half_the_rate(void **state)
{
    static const struct {
        double hz;
        bool stays;
    } tones[] = {{3000, true}, {6000, false}};
    static int x[LONGEST];

    (void)state;
    FOR_EACH (k, tones) {
        bm_problem problem;
        bm_sound s;
        double power = 0;

        make_tone(x, LONGEST, 1, tones[k].hz, 16000);
        write_sound("high.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, LONGEST, 1,
                    16000);
        s = read_sound("high.wav", 0, &problem);
        assert_ok(bm_sound_resample(&s, 8000, &problem));
        for (size_t i = 100; i < s.n - 100; i++) /* between its two clicks */
            power += (double)s.x[i] * s.x[i] / (double)(s.n - 200);
        power /= 9000.0 * 9000 / 2; /* of the sine */
        if (tones[k].stays) {
            assert_true(near(power, 1, 0.01));
            assert_true(near(power_at(s.x, s.n, tones[k].hz, 8000),
                             9000.0 * 9000 / 4, 0.01));
        } else {
            assert_true(power < 1e-8); /* -80 dB */
        }
        bm_sound_free(&s);
    }
}

static void test_invalid_recordings_are_problems(void **state)
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
    assert_non_null(
        strstr(problem.text, "nan.wav: sample 2 is NaN or infinite"));
    bm_sound_free(&s);

    write_text("text.wav", "this is a letter, not a recording");
    s = read_sound("text.wav", 0, &problem);
    assert_non_null(strstr(problem.text, "text.wav: a text, not a recording; "
                                         "give the path of a recording"));
    bm_sound_free(&s);

    write_text("none.wav", "");
    s = read_sound("none.wav", 0, &problem);
    assert_non_null(
        strstr(problem.text, "none.wav: empty; make or fetch it again"));
    bm_sound_free(&s);

    write_bytes("a.m4a",
                "\0\0\0\x1c"
                "ftypM4A \0\0\2\0",
                16);
    s = read_sound("a.m4a", 0, &problem);
    assert_non_null(strstr(problem.text,
                           "a.m4a: an MP4 or M4A file, not a recording; "
                           "make WAV of it: ffmpeg -i FILE FILE.wav"));
    bm_sound_free(&s);

    write_bytes("odd.flac", "fLaC\1\2\3\4", 8);
    s = read_sound("odd.flac", 0, &problem);
    assert_non_null(strstr(
        problem.text, "odd.flac: cannot be read as a recording (libsndfile: "));
    assert_non_null(strstr(problem.text,
                           "); make it again, or WAV of it: ffmpeg -i FILE "));
    bm_sound_free(&s);

    write_bytes("a.wav.gz", "\x1f\x8b\x08\0", 4);
    s = read_sound("a.wav.gz", 0, &problem);
    assert_non_null(strstr(problem.text, "a.wav.gz is a gzip file; only lists "
                                         "may be compressed: unpack it"));
    bm_sound_free(&s);

    write_tone("one.wav", 100, 1, 8000);
    s = read_sound("one.wav", 2, &problem);
    assert_non_null(strstr(problem.text, "no channel 2"));
    bm_sound_free(&s);
}

/* Reads a file; returns its size. */
static size_t read_file(const char *name, char *bytes, size_t room)
{
    FILE *file = fopen(in_folder(name), "rb");
    size_t n = 0;

    assert_non_null(file);
    n = fread(bytes, 1, room, file);
    assert_true(n < room);
    fclose(file);
    return n;
}

static void test_truncated_recordings_are_problems(void **state)
{
    static const struct {
        const char *name;
        int format;
        bool compressed;
    } files[] = {
        {"d.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, false},
        {"d.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, true},
        {"d.sph", SF_FORMAT_NIST | SF_FORMAT_PCM_16, false},
        {"u.sph", SF_FORMAT_NIST | SF_FORMAT_ULAW, false},
        {"d.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, false},
        {"u.aifc", SF_FORMAT_AIFF | SF_FORMAT_ULAW, false},
        {"d.au", SF_FORMAT_AU | SF_FORMAT_PCM_16, false},
        {"little.au", SF_FORMAT_AU | SF_FORMAT_PCM_16 | SF_ENDIAN_LITTLE,
         false},
        {"d.rf64", SF_FORMAT_RF64 | SF_FORMAT_PCM_16, false},
        {"d.w64", SF_FORMAT_W64 | SF_FORMAT_PCM_16, false},
    };
    static int x[LONGEST];
    static char bytes[80000];

    (void)state;
    make_tone(x, LONGEST / 2, 2, 440, 8000);
    FOR_EACH (f, files) {
        bm_problem problem;
        bm_sound s;
        size_t n = 0;

        write_sound(files[f].name, files[f].format, x, LONGEST / 2, 2, 8000);
        n = read_file(files[f].name, bytes, sizeof bytes);
        s = read_sound(files[f].name, 0, &problem);
        assert_string_equal(problem.text, "");
        assert_int_equal(s.n, LONGEST / 2);
        for (size_t k = 0; k < 2; k++) {
            write_bytes(files[f].name, bytes,
                        k == 0 || files[f].compressed ? n * 3 / 4 : n - 4);
            bm_sound_free(&s);
            s = read_sound(files[f].name, 0, &problem);
            if (strstr(problem.text, "truncated") == NULL)
                fail_msg("%s: \"%s\"", files[f].name, problem.text);
            problem.text[0] = '\0'; /* from 0.1 s to the end */
            assert_ok(bm_sound_read(&s, in_folder(files[f].name), 0,
                                    (bm_excerpt){.start = 0.1}, &problem));
            if (strstr(problem.text, "truncated") == NULL)
                fail_msg("%s from 0.1 s: \"%s\"", files[f].name, problem.text);
        }
        bm_sound_free(&s);
    }
}

/* AU: all bits are 1. AIFF: what SoX writes. */
static void test_sizes_that_a_pipe_left_unknown_are_no_sizes(void **state)
{
    enum { SAMPLES = 4000, AU_SIZE = 8 };
    static const unsigned char unknown[] = {0xff, 0xff, 0xff, 0xff},
                               sox[] = {0x7f, 0, 0, 8};
    static int x[SAMPLES];
    static char bytes[10000];
    size_t n = 0, at = 0;
    bm_problem problem;
    bm_sound s;

    (void)state;
    write_sound("p.au", SF_FORMAT_AU | SF_FORMAT_PCM_16, x, SAMPLES, 1, 8000);
    n = read_file("p.au", bytes, sizeof bytes);
    memcpy(bytes + AU_SIZE, unknown, 4);
    write_bytes("p.au", bytes, n);
    s = read_sound("p.au", 0, &problem);
    assert_string_equal(problem.text, "");
    assert_int_equal(s.n, SAMPLES);
    bm_sound_free(&s);
    write_sound("p.aiff", SF_FORMAT_AIFF | SF_FORMAT_PCM_16, x, SAMPLES, 1,
                8000);
    n = read_file("p.aiff", bytes, sizeof bytes);
    while (memcmp(bytes + at, "SSND", 4) != 0)
        at++;
    memcpy(bytes + at + 4, sox, 4);
    write_bytes("p.aiff", bytes, n);
    s = read_sound("p.aiff", 0, &problem);
    assert_string_equal(problem.text, "");
    assert_int_equal(s.n, SAMPLES);
    bm_sound_free(&s);
}

/* As the recordings of LDC are. */
static void test_a_recording_compressed_with_shorten_is_told(void **state)
{
    static char bytes[1200] =
        "NIST_1A\n   1024\nchannel_count -i 1\nsample_count -i 9\n"
        "sample_rate -i 8000\nsample_n_bytes -i 2\n"
        "sample_byte_format -s2 01\nsample_sig_bits -i 16\n"
        "sample_coding -s26 pcm,embedded-shorten-v2.00\nend_head\n";
    static const char mark[] = {'a', 'j', 'k', 'g'};
    bm_problem problem;
    bm_sound s;

    (void)state;
    memcpy(bytes + 1024, mark, sizeof mark);
    write_bytes("c.sph", bytes, sizeof bytes);
    s = read_sound("c.sph", 0, &problem);
    assert_string_equal(problem.kind, "compressed");
    assert_non_null(strstr(problem.text, "c.sph is compressed with shorten"));
    assert_non_null(strstr(problem.text, "sph2pipe -f wav "));
    bm_sound_free(&s);
}

static void put_size(char *to, size_t size)
{
    for (size_t k = 0; k < 4; k++)
        to[k] = (char)(size >> 8 * k);
}

/* A program that writes to a pipe cannot go back and fill in the sizes: of the
 * file, of the samples. Others count wrongly in the first. */
static void test_sizes_of_a_wav_file_may_be_wrong(void **state)
{
    enum {
        SAMPLES = 4000,
        DATA = 2 * SAMPLES,
        HEAD = 44,
        FILE_SIZE = 36 + DATA
    };
    static const size_t sizes[][2] = {
        {0x7fffefff + 36, 0x7fffefff}, /* of SoX: blocks of 3 bytes, .. */
        {0x7fffeffc + 36, 0x7fffeffc}, /* .. of 12 */
        {0xffffffff, 0xffffffff},      {0, 0},
        {FILE_SIZE - DATA, 0},         {0x7ffff024, 0x7ffff000},
        {FILE_SIZE + 8, DATA},         {FILE_SIZE + 1, DATA},
    };
    static char bytes[HEAD + DATA + 1];
    bm_sound all;
    bm_problem problem;

    (void)state;
    write_tone("pipe.wav", SAMPLES, 1, 8000);
    all = read_sound("pipe.wav", 0, &problem);
    assert_int_equal(read_file("pipe.wav", bytes, sizeof bytes), HEAD + DATA);
    assert_memory_equal(bytes + 36, "data", 4);
    FOR_EACH (i, sizes) {
        bm_sound s;

        put_size(bytes + 4, sizes[i][0]);
        put_size(bytes + 40, sizes[i][1]);
        write_bytes("pipe.wav", bytes, HEAD + DATA);
        s = read_sound("pipe.wav", 0, &problem);
        assert_string_equal(problem.text, "");
        assert_int_equal(s.n, SAMPLES);
        assert_memory_equal(s.x, all.x, SAMPLES * sizeof *s.x);
        bm_sound_free(&s);
    }
    bm_sound_free(&all);
}

/* Chunks behind no samples are not samples. */
static void test_a_wav_file_without_samples_is_empty(void **state)
{
    enum { WHOLE = 60 };
    static const char list[] = {'L', 'I', 'S', 'T', 8,   0,   0,   0,
                                'I', 'N', 'F', 'O', 'a', 'b', 'c', 'd'};
    static char bytes[80] = {0};
    bm_problem problem;
    bm_sound s;

    (void)state;
    write_tone("none.wav", 10, 1, 8000);
    assert_int_equal(read_file("none.wav", bytes, sizeof bytes), 64);
    put_size(bytes + 4, WHOLE - 8);
    put_size(bytes + 40, 0);
    memcpy(bytes + 44, list, sizeof list);
    write_bytes("none.wav", bytes, WHOLE);
    s = read_sound("none.wav", 0, &problem);
    assert_int_equal(s.n, 0);
    bm_sound_free(&s);
}

/* The channel of an excerpt counts unless another is asked for. */
static void test_an_excerpt_has_a_channel(void **state)
{
    static const struct {
        long wanted, of_part;
        float value; /* of the first sample, of 100 and 300 */
    } reads[] = {
        {0, 0, 200}, {0, 1, 100}, {0, 2, 300}, {2, 1, 300}, {1, 2, 100}};
    static const int x[4] = {100, 300, 100, 300};

    (void)state;
    write_sound("two.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, 2, 2, 8000);
    FOR_EACH (i, reads) {
        bm_problem problem = {0};
        bm_sound s = {0};

        assert_ok(bm_sound_read(&s, in_folder("two.wav"), reads[i].wanted,
                                (bm_excerpt){0, 0, reads[i].of_part},
                                &problem));
        assert_string_equal(problem.text, "");
        assert_float_equal(s.x[0], reads[i].value, 0);
        bm_sound_free(&s);
    }
}

/* A file that is shorter or longer than its header says must not crash. */
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
        size_t n = 0;

        write_sound(names[f], formats[f], x, 5000, 1, 8000);
        n = read_file(names[f], bytes, sizeof bytes);
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

/* ---- excerpts ------------------------------------------------------------ */

/* Samples [first, end) of all of `all` must be those of the excerpt. */
static void assert_excerpt(const char *name, const bm_sound *all,
                           bm_excerpt part, size_t first, size_t end)
{
    bm_problem problem = {0};
    bm_sound s = {0};

    assert_ok(bm_sound_read(&s, in_folder(name), 0, part, &problem));
    assert_string_equal(problem.text, "");
    assert_int_equal(s.n, end - first);
    assert_memory_equal(s.x, all->x + first, s.n * sizeof *s.x);
    bm_sound_free(&s);
}

static void test_excerpts_are_cut_at_the_nearest_sample(void **state)
{
    static const struct {
        const char *name;
        int format;
    } files[] = {
        {"e.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16},
        {"e.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16},
        {"e.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS},
        {"e.sph", SF_FORMAT_NIST | SF_FORMAT_PCM_16},
        {"e.aifc", SF_FORMAT_AIFF | SF_FORMAT_DWVW_16}, /* its seek fails */
    };
    static int x[LONGEST];

    (void)state;
    make_tone(x, LONGEST, 1, 441, 8000);
    FOR_EACH (f, files) {
        bm_problem problem;
        bm_sound all;

        write_sound(files[f].name, files[f].format, x, LONGEST, 1, 8000);
        all = read_sound(files[f].name, 0, &problem);
        assert_int_equal(all.n, LONGEST);
        assert_excerpt(files[f].name, &all, (bm_excerpt){0.5, 0, 0}, 4000,
                       16000);
        assert_excerpt(files[f].name, &all, (bm_excerpt){0, 0.25, 0}, 0, 2000);
        /* 5000.4 and 5000.4 + 800.4 samples */
        assert_excerpt(files[f].name, &all, (bm_excerpt){0.62505, 0.10005, 0},
                       5000, 5801);
        /* 80 samples, 10 ms, may be missing at the end */
        assert_excerpt(files[f].name, &all, (bm_excerpt){1.5, 0.51, 0}, 12000,
                       16000);
        bm_sound_free(&all);
    }
}

/* As Kaldi's extract-segments does; a file that ends early itself is damaged. */
static void test_excerpts_are_cut_at_the_end_of_the_recording(void **state)
{
    static int x[LONGEST];
    bm_problem problem = {0};
    bm_sound s = {0};
    char *bytes = NULL;
    size_t n = 0;

    (void)state;
    make_tone(x, LONGEST, 1, 441, 8000);
    write_sound("e.flac", SF_FORMAT_FLAC | SF_FORMAT_PCM_16, x, LONGEST, 1,
                8000);
    assert_ok(bm_sound_read(&s, in_folder("e.flac"), 0, (bm_excerpt){1.5, 1, 0},
                            &problem));
    assert_string_equal(problem.text, "");
    assert_int_equal(s.n, 4000);
    assert_string_equal(bm_sound_remark(&s), "cut at the end of the recording");
    assert_ok(bm_sound_read(&s, in_folder("e.flac"), 0,
                            (bm_excerpt){1.5, 0.51, 0}, &problem));
    assert_null(bm_sound_remark(&s)); /* 10 ms are rounding */
    bytes = slurp(in_folder("e.flac"), &n);
    write_bytes("e.flac", bytes, n * 9 / 10);
    free(bytes);
    assert_ok(bm_sound_read(&s, in_folder("e.flac"), 0,
                            (bm_excerpt){1.5, 0.5, 0}, &problem));
    assert_string_equal(problem.kind, "damaged or truncated");
    problem.text[0] = '\0';
    assert_ok(bm_sound_read(&s, in_folder("e.flac"), 0,
                            (bm_excerpt){1.95, 0.05, 0}, &problem));
    assert_non_null(strstr(problem.text, "e.flac: damaged or truncated before "
                                         "the excerpt from 1.95 s"));
    problem.text[0] = '\0';
    assert_ok(bm_sound_read(&s, in_folder("e.flac"), 0,
                            (bm_excerpt){2.5, 0.05, 0}, &problem));
    assert_non_null(strstr(problem.text, "outside the recording of 2 s"));
    bm_sound_free(&s);
}

static void test_excerpts_outside_a_recording_are_problems(void **state)
{
    static const bm_excerpt parts[] = {
        {2, 0, 0}, {3, 0.5, 0}, {1.5, 1.01, 0}, {0, 9, 0}};
    static int x[LONGEST];

    (void)state;
    make_tone(x, LONGEST, 1, 441, 8000);
    write_sound("e.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, LONGEST, 1, 8000);
    write_sound("e.ogg", SF_FORMAT_OGG | SF_FORMAT_VORBIS, x, LONGEST, 1, 8000);
    FOR_EACH (k, parts)
        for (int f = 0; f < 2; f++) {
            bm_problem problem = {0};
            bm_sound s = {0};

            assert_ok(bm_sound_read(&s, in_folder(f ? "e.ogg" : "e.wav"), 0,
                                    parts[k], &problem));
            assert_string_equal(problem.kind, "excerpt outside the recording");
            assert_non_null(strstr(problem.text, "the recording of 2 s"));
            bm_sound_free(&s);
        }
}

static void test_a_disk_that_fails_is_not_a_damaged_recording(void **state)
{
    bm_problem problem = {0};
    bm_sound s = {0};

    (void)state; /* the first page of memory: read(2) fails with EIO */
    assert_int_equal(
        bm_sound_read(&s, "/proc/self/mem", 0, (bm_excerpt){0}, &problem),
        BM_ERR_IO);
    assert_int_equal(bm_sound_probe(&s, "/proc/self/mem", &problem), BM_ERR_IO);
    assert_false(bm_problem_is(&problem));
    assert_ok(
        bm_sound_read(&s, in_folder("gone.wav"), 0, (bm_excerpt){0}, &problem));
    assert_string_equal(problem.kind, "file not found");
    assert_ok(bm_sound_read(&s, "/dev/zero", 0, (bm_excerpt){0}, &problem));
    assert_string_equal(problem.kind, "file cannot be opened");
    bm_sound_free(&s);
}

static void test_silent_constant_and_clipped_recordings_are_told(void **state)
{
    static float x[4000];
    bm_sound s = {.x = x, .n = 4000};

    (void)state;
    assert_string_equal(bm_sound_remark(&s), "digital silence");
    for (size_t i = 0; i < s.n; i++)
        x[i] = 7;
    assert_string_equal(bm_sound_remark(&s), "constant");
    for (size_t i = 0; i < s.n; i++)
        x[i] = (float)(i % 100);
    assert_null(bm_sound_remark(&s));
    x[5] = x[6] = 32767;
    x[7] = -32768;
    assert_null(bm_sound_remark(&s)); /* 3 of 4000 */
    x[8] = 32767;
    assert_string_equal(bm_sound_remark(&s), "clipped");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_format_gives_the_same_samples),
        cmocka_unit_test(test_one_channel_or_the_mean_of_all),
        cmocka_unit_test(test_resampling_keeps_the_tone),
        cmocka_unit_test(
            test_resampling_removes_frequencies_above_half_the_rate),
        cmocka_unit_test(test_invalid_recordings_are_problems),
        cmocka_unit_test(test_truncated_recordings_are_problems),
        cmocka_unit_test(test_sizes_that_a_pipe_left_unknown_are_no_sizes),
        cmocka_unit_test(test_a_recording_compressed_with_shorten_is_told),
        cmocka_unit_test(test_sizes_of_a_wav_file_may_be_wrong),
        cmocka_unit_test(test_a_wav_file_without_samples_is_empty),
        cmocka_unit_test(test_an_excerpt_has_a_channel),
        cmocka_unit_test(test_damaged_recordings_never_crash),
        cmocka_unit_test(test_excerpts_are_cut_at_the_nearest_sample),
        cmocka_unit_test(test_excerpts_are_cut_at_the_end_of_the_recording),
        cmocka_unit_test(test_excerpts_outside_a_recording_are_problems),
        cmocka_unit_test(test_a_disk_that_fails_is_not_a_damaged_recording),
        cmocka_unit_test(test_silent_constant_and_clipped_recordings_are_told),
    };

    return cmocka_run_group_tests_name("sound", tests, folder_make,
                                       folder_remove);
}
