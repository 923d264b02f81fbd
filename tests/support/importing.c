#include "tests/support/importing.h"

#include "core/rng.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <math.h>
#include <sndfile.h>

static const double pi = 3.14159265358979323846;

enum { LONGEST = 16000 };

bm_config *set_all(const char *const *assignments)
{
    bm_config *config = NULL;

    assert_ok(bm_config_new(&config));
    for (; *assignments != NULL; assignments++)
        assert_ok(bm_config_set(config, *assignments));
    return config;
}

bm_status open_importer(bm_importer **i, const char *name, bm_config *config,
                        const char *manifest)
{
    bm_status status = BM_OK;

    write_text("m.jsonl", manifest);
    status = bm_importer_open(i, name, config, in_folder("m.jsonl"));
    bm_config_free(config);
    return status;
}

bm_item next_item(bm_importer *i)
{
    bm_item item;

    assert_ok(i->ops->next(i, &item));
    return item;
}

void make_tone(int *x, size_t n, int channels, double hz, int rate)
{
    for (size_t i = 0; i < n; i++)
        for (int c = 0; c < channels; c++)
            x[i * (size_t)channels + (size_t)c] =
                (int)lrint(9000 * sin(2 * pi * hz * ldexp(1, c) * (double)i /
                                      (double)rate));
}

/* x [n, channels] of 16-bit numbers; a double of 1 means 32768 of them. */
void write_sound(const char *name, int format, const int *x, size_t n,
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
void write_tone(const char *name, size_t n, int channels, int rate)
{
    static int x[2 * LONGEST];

    make_tone(x, n, channels, 440, rate);
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n, channels, rate);
}

void write_noise(const char *name, size_t n, double size)
{
    static int x[LONGEST];
    bm_rng rng = bm_rng_make(1, name, 0);

    for (size_t i = 0; i < n; i++)
        x[i] = (int)(size * bm_rng_uniform(&rng));
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n, 1, 8000);
}
