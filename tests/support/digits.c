#include "tests/support/digits.h"

#include "tests/support/folder.h"
#include "tests/support/importing.h"
#include "tests/support/program.h"
#include "tests/support/support.h"

#include <sndfile.h>
#include <stdio.h>
#include <string.h>

enum {
    TRAIN = 60,
    DEV = 20,
    RATE = 8000,
    LETTER = 800,
    LONGEST = 8,
    UNIT = 60
};

typedef struct recording {
    char id[32], audio[64], text[16];
} recording;

static recording recordings[TRAIN + DEV];

static const char *const digit[] = {"zero", "one", "two",   "three", "four",
                                    "five", "six", "seven", "eight", "nine"};

/* Every so-many-th of a split, so that all digits and speakers are there. */
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

/* Whether the real data are there. */
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

/* A recording in which every letter is a tone of its own. */
static void sing(const recording *r, int pitch)
{
    static int x[LONGEST * LETTER];
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
    bool first = strcmp(name, "train") == 0; /* its symbols are everybody's */
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
