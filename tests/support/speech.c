#include "tests/support/speech.h"

#include "core/rng.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/program.h"
#include "tests/support/support.h"

#include <math.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- recordings and importers -------------------------------------------- */

static const double pi = 3.14159265358979323846;

enum { SAMPLES = 16000 };

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
    status = bm_importer_open(
        i, name, config, &(bm_import_source){.path = in_folder("m.jsonl")});
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

void write_tone(const char *name, size_t n, int channels, int rate)
{
    static int x[2 * SAMPLES];

    make_tone(x, n, channels, 440, rate);
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n, channels, rate);
}

void write_noise(const char *name, size_t n, double size)
{
    static int x[SAMPLES];
    bm_rng rng = bm_rng_make(1, name, 0);

    for (size_t i = 0; i < n; i++)
        x[i] = (int)(size * bm_rng_uniform(&rng));
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n, 1, 8000);
}

size_t read_samples(const char *name, float *x, size_t room)
{
    SF_INFO info = {0};
    SNDFILE *file = sf_open(in_folder(name), SFM_READ, &info);
    sf_count_t n = 0;

    assert_non_null(file);
    n = sf_readf_float(file, x, (sf_count_t)room);
    sf_close(file);
    return (size_t)n;
}

void write_samples(const char *name, int rate, const float *x, size_t n)
{
    SF_INFO info = {.samplerate = rate,
                    .channels = 1,
                    .format = SF_FORMAT_WAV | SF_FORMAT_PCM_16};
    SNDFILE *file = sf_open(in_folder(name), SFM_WRITE, &info);

    assert_non_null(file);
    assert_int_equal(sf_writef_float(file, x, (sf_count_t)n), n);
    sf_close(file);
}

/* ---- a corpus of tones --------------------------------------------------- */

void write_speech(const char *name, const char *symbols)
{
    enum { PIECE = 800, SYMBOLS = 20 };
    static int x[SYMBOLS * PIECE];
    size_t n = strlen(symbols);

    assert_true(n <= SYMBOLS);
    for (size_t i = 0; i < n; i++) {
        int *piece = x + i * PIECE;

        memset(piece, 0, PIECE * sizeof *piece);
        if (symbols[i] != ' ')
            make_tone(piece, PIECE - 100, 1, 400 + 700 * (symbols[i] - 'a'),
                      8000);
        for (size_t k = 0; k < PIECE; k++) /* low noise */
            piece[k] += (int)(7 * k % 13) - 6;
    }
    write_sound(name, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n * PIECE, 1, 8000);
}

const char *speech_text(size_t i)
{
    static const char *const all[] = {
        "a b",  "ab c", "b",    "ca b", "abc",    "c a",   "bc",
        "b ac", "a",    "cb",   "acb",  "c b a",  "ba",    "a cab",
        "cc a", "c",    "bb c", "ab a", "a b cb", "bca b", "aa"};

    return all[i % (sizeof all / sizeof all[0])];
}

size_t speech_frames(size_t i)
{
    return 1 + (800 * strlen(speech_text(i)) - 200) / 80;
}

size_t speech_total(size_t n, size_t (*of)(size_t i))
{
    size_t sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += of(i);
    return sum;
}

void make_speech(const char *name, size_t n)
{
    char file[64], *text = calloc(n, 128);
    size_t used = 0;

    assert_non_null(text);
    for (size_t i = 0; i < n; i++) {
        snprintf(file, sizeof file, "%s-%zu.wav", name, i);
        write_speech(file, speech_text(i));
        used += (size_t)sprintf(text + used,
                                "{\"id\": \"%s-%zu\", \"audio\": \"%s\", "
                                "\"text\": \"%s\", \"speaker\": \"s%zu\"}\n",
                                name, i, file, speech_text(i), i % 3);
    }
    snprintf(file, sizeof file, "%s.jsonl", name);
    write_text(file, text);
    free(text);
}

int make_corpus(void **state)
{
    if (folder_make(state) != 0)
        return 1;
    make_speech("train", 42);
    make_speech("test", 21);
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "train",
                     "--set", "features.mels=8", "--set",
                     "shard.unit_frames=100"),
                0);
    assert_code(BMUF("pack", "--audio", "test.jsonl", "--out", "test",
                     "--vocab", "train", "--set", "features.mels=8", "--set",
                     "shard.unit_frames=100"),
                0);
    write_text("tiny.ini", "[data]\n"
                           "train = train\n"
                           "dev = test\n"
                           "[model]\n"
                           "net = stack:2 blstm:16 linear\n"
                           "[train]\n"
                           "epochs = 3\n"
                           "rate = 0.05\n"
                           "[job]\n"
                           "workers = 2\n"
                           "[sgd]\n"
                           "momentum = 0.5\n"
                           "clip = 5\n"
                           "[batch]\n"
                           "sequences = 3\n"
                           "[block]\n"
                           "frames_total = 500\n");
    return 0;
}

/* ---- digits -------------------------------------------------------------- */

enum {
    TRAIN = 60,
    DEV = 20,
    RATE = 8000,
    LETTER = 800,
    LETTERS = 8,
    UNIT = 60
};

typedef struct recording {
    char id[32], audio[64], text[16];
} recording;

static recording recordings[TRAIN + DEV];

static const char *const digit[] = {"zero", "one", "two",   "three", "four",
                                    "five", "six", "seven", "eight", "nine"};

/* Every `every`-th recording of a split, so that all digits and speakers
 * occur. */
static void choose(const char *table, const char *split, int every,
                   recording *out, int n)
{
    FILE *file = fopen(table, "r");
    char line[256], kind[16];
    recording r;
    int seen = 0, taken = 0;

    assert_non_null(file);
    while (taken < n && fgets(line, sizeof line, file) != NULL)
        if (sscanf(line, "%31s %63s %*s %15s %*s %15s", r.id, r.audio, kind,
                   r.text) == 4 &&
            strcmp(kind, split) == 0 && seen++ % every == 0)
            out[taken++] = r;
    fclose(file);
    assert_int_equal(taken, n);
}

/* Unpacks the real data; false if they are missing. */
static bool find_digits(void)
{
    const char *table = real_data("speech/fsdd/manifest.tsv");

    if (table == NULL)
        return false;
    choose(table, "train", 40, recordings, TRAIN);
    choose(table, "dev", 15, recordings + TRAIN, DEV);
    unpack(real_data("speech/fsdd/fsdd-wav.tar.xz"));
    return true;
}

/* Writes a recording with a tone for each letter. */
static void sing(const recording *r, int pitch)
{
    static int x[LETTERS * LETTER];
    size_t n = strlen(r->text);

    for (size_t i = 0; i < n; i++)
        make_tone(x + i * LETTER, LETTER, 1,
                  300 + 100.0 * (r->text[i] - 'a') + pitch, RATE);
    write_sound(r->audio, SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, n * LETTER, 1,
                RATE);
}

static void make_digits(void)
{
    for (int i = 0; i < TRAIN + DEV; i++) {
        recording *r = &recordings[i];
        snprintf(r->id, sizeof r->id, "digit-%d", i);
        snprintf(r->audio, sizeof r->audio, "digit-%d.wav", i);
        snprintf(r->text, sizeof r->text, "%s", digit[i % 10]);
        sing(r, 7 * (i / 10));
    }
}

static void pack(const char *name, const recording *r, int n, int unit,
                 const char *first_text)
{
    bool first =
        strcmp(name, "train") == 0; /* its vocabulary is for all sets */
    char manifest[64], frames[64];
    FILE *file = NULL;
    program p;

    snprintf(manifest, sizeof manifest, "%s.jsonl", name);
    snprintf(frames, sizeof frames, "shard.unit_frames=%d", unit);
    file = fopen(in_folder(manifest), "w");
    assert_non_null(file);
    for (int i = 0; i < n; i++)
        fprintf(file, "{\"id\":\"%s\",\"audio\":\"%s\",\"text\":\"%s\"}\n",
                r[i].id, r[i].audio,
                i == 0 && first_text != NULL ? first_text : r[i].text);
    assert_int_equal(fclose(file), 0);
    RUN_PROGRAM(&p, "pack", "--audio", manifest, "--out", name, "--set", frames,
                "--set", "features.mels=12", first ? NULL : "--vocab", "train");
    assert_ended(&p, 0);
}

void digits_make(void)
{
    if (!find_digits())
        make_digits();
    pack("train", recordings, TRAIN, UNIT, NULL);
    pack("dev", recordings + TRAIN, DEV, UNIT, NULL);
}

void digits_pack(const char *name, int unit_frames, const char *first_text)
{
    pack(name, recordings, TRAIN, unit_frames, first_text);
}

const char *digits_file(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/data-00000.bmuf.h5", name);
    return in_folder(path);
}

int digits_set_up(void **state)
{
    if (folder_make(state) != 0)
        return 1;
    digits_make();
    return 0;
}

int digits_tear_down(void **state)
{
    return programs_end(state) + folder_remove(state);
}
