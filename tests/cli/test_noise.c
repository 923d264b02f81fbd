/*
 * tools/add_noise.c on tones: the noise has the given level, is white or pink,
 * and depends on the seed and the file's name.
 */
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <sndfile.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { N = 16000, FILES = 40 }; /* a second; recordings */

static int tone[N];

/* The tone with noise added: bmuf_noise SEED LEAST MOST FILE. */
static const char *noisy(const char *name, const char *seed, const char *least,
                         const char *most)
{
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, tone, N, 1, N);
    run_tool((char *[]){BMUF_NOISE, (char *)seed, (char *)least, (char *)most,
                        (char *)in_folder(name), NULL});
    return name;
}

static void read_file(const char *name, short *x)
{
    SF_INFO info = {0};
    SNDFILE *file = sf_open(in_folder(name), SFM_READ, &info);

    assert_non_null(file);
    assert_int_equal(info.format, SF_FORMAT_WAV | SF_FORMAT_PCM_16);
    assert_int_equal(info.samplerate, N);
    assert_int_equal(sf_read_short(file, x, N + 1), N);
    sf_close(file);
}

static double product(const double *x, const double *y)
{
    double sum = 0;

    for (size_t i = 0; i < N; i++)
        sum += x[i] * y[i];
    return sum;
}

typedef struct mixture {
    double decibels; /* of tone over noise */
    double scale;    /* of the tone; 1: unchanged */
    double change;   /* power of the noise's differences over its power */
    int peak;
} mixture;

/* Splits a file into scale * tone and noise. The scale is 1, or, if the peak is
 * the largest sample value, that of the projection. */
static mixture unmix(const char *name)
{
    static double x[N], noise[N], steps[N];
    static short y[N + 1];
    mixture m = {.scale = 1};

    read_file(name, y);
    for (size_t i = 0; i < N; i++) {
        x[i] = tone[i];
        noise[i] = y[i];
        m.peak = abs(y[i]) > m.peak ? abs(y[i]) : m.peak;
    }
    if (m.peak >= 32766)
        m.scale = product(x, noise) / product(x, x);
    for (size_t i = 0; i < N; i++) {
        noise[i] -= m.scale * x[i];
        steps[i] = i > 0 ? noise[i] - noise[i - 1] : 0;
    }
    m.decibels =
        10 * log10(m.scale * m.scale * product(x, x) / product(noise, noise));
    m.change = product(steps, steps) / product(noise, noise);
    return m;
}

/* Power of white noise's differences is twice its power. Pink noise, with as
 * much power in every octave up from 1 Hz, has little of it where differences
 * are large. */
static bool is_white(const mixture *m)
{
    return near(m->change, 2, 0.05);
}

static bool is_pink(const mixture *m)
{
    return m->change < 0.5;
}

static void test_levels_are_drawn_from_the_range(void **state)
{
    double lowest = INFINITY, highest = -INFINITY;
    double decibels[FILES];
    int white = 0;

    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        char name[32];
        mixture m;

        snprintf(name, sizeof name, "%zu.wav", i);
        m = unmix(noisy(name, "1", "5", "30"));
        /* Rounding adds 1/12 to a power of 40,000 at least: 1e-5 dB. */
        assert_true(m.decibels > 5 - 1e-3 && m.decibels < 30 + 1e-3);
        assert_true(is_white(&m) || is_pink(&m));
        white += is_white(&m);
        for (size_t k = 0; k < i; k++)
            assert_true(decibels[k] != m.decibels);
        decibels[i] = m.decibels;
        lowest = fmin(lowest, m.decibels);
        highest = fmax(highest, m.decibels);
    }
    /* Of 40 drawn evenly, none in a given quarter: 1 in 10^5. */
    assert_true(lowest < 5 + 25 / 4.0 && highest > 30 - 25 / 4.0);
    /* Of 40 tossed coins, fewer than 8 heads: 1 in 10^4. */
    assert_in_range(white, 8, FILES - 8);
}

static void test_the_noise_has_the_drawn_level(void **state)
{
    static const char *const levels[] = {"5", "12.5", "30"};

    (void)state;
    FOR_EACH (l, levels) {
        mixture m = unmix(noisy("level.wav", "1", levels[l], levels[l]));

        assert_true(fabs(m.decibels - strtod(levels[l], NULL)) < 1e-3);
    }
}

/* The noise's part along the tone counts as tone here. For white noise 5 dB
 * below it, that is a share of sqrt(0.3 / 16000) of the tone, or 0.04 dB; for
 * pink, with twice the power at 440 Hz, 0.06 dB. */
static void test_a_loud_mixture_is_scaled_not_clipped(void **state)
{
    mixture m;

    (void)state;
    for (size_t i = 0; i < N; i++)
        tone[i] *= 3;
    m = unmix(noisy("loud.wav", "1", "5", "5"));
    make_tone(tone, N, 1, 440, N);
    assert_true(m.scale < 0.9);
    assert_in_range(m.peak, 32766, 32767);
    assert_true(fabs(m.decibels - 5) < 0.2);
}

static void test_noise_depends_on_seed_and_file_name_only(void **state)
{
    static short a[N + 1], b[N + 1];
    char *data[2];
    size_t size[2];

    (void)state;
    assert_int_equal(mkdir(in_folder("other"), 0700), 0);
    noisy("same.wav", "1", "5", "30");
    noisy("other/same.wav", "1", "5", "30");
    data[0] = slurp(in_folder("same.wav"), &size[0]);
    data[1] = slurp(in_folder("other/same.wav"), &size[1]);
    assert_int_equal(size[0], size[1]);
    assert_memory_equal(data[0], data[1], size[0]);
    free(data[0]);
    free(data[1]);

    read_file("same.wav", a);
    read_file(noisy("other/same.wav", "2", "5", "30"), b);
    assert_memory_not_equal(a, b, N * sizeof *a);
    read_file(noisy("name.wav", "1", "5", "30"), b);
    assert_memory_not_equal(a, b, N * sizeof *a);
}

static int setup(void **state)
{
    make_tone(tone, N, 1, 440, N);
    return folder_make(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_levels_are_drawn_from_the_range),
        cmocka_unit_test(test_the_noise_has_the_drawn_level),
        cmocka_unit_test(test_a_loud_mixture_is_scaled_not_clipped),
        cmocka_unit_test(test_noise_depends_on_seed_and_file_name_only),
    };

    return cmocka_run_group_tests_name("noise", tests, setup, folder_remove);
}
