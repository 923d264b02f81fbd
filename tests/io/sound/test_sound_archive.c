/*
 * Recordings in archives: WAV files behind keys, as wav-copy of Kaldi writes
 * them, FLAC files, and "AUDIO" with a length, as kaldiio writes for ESPnet.
 */
#include "io/sound/sound.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { LENGTH = 4000, RATE = 8000, FIRST_HZ = 440 };

static struct {
    char bytes[200000];
    size_t n;
} archive;

static void append(const void *bytes, size_t n)
{
    assert_true(archive.n + n <= sizeof archive.bytes);
    memcpy(archive.bytes + archive.n, bytes, n);
    archive.n += n;
}

/* Appends a key and a recording of a tone, with a length of two bytes in front
 * or none. Returns the byte of the recording. */
static size_t add_recording(int format, double hz, bool with_length)
{
    static int x[LENGTH];
    size_t size = 0, at = 0;
    char *file = NULL;

    make_tone(x, LENGTH, 1, hz, RATE);
    write_sound("one", format, x, LENGTH, 1, RATE);
    file = slurp(in_folder("one"), &size);
    append("u ", 2);
    at = archive.n;
    if (with_length)
        append((char[]){'A', 'U', 'D', 'I', 'O', 2, (char)(size & 255),
                        (char)(size >> 8)},
               8);
    append(file, size);
    free(file);
    return at;
}

static bm_sound read_at(size_t at, bm_excerpt part, const char *kind)
{
    bm_problem problem = {0};
    bm_sound s = {0};
    char place[32];

    snprintf(place, sizeof place, "wav.ark:%zu", at);
    assert_ok(bm_sound_read(&s, in_folder(place), 0, part, &problem));
    assert_string_equal(bm_problem_is(&problem) ? problem.kind : "", kind);
    if (bm_problem_is(&problem))
        assert_non_null(strstr(problem.text, place));
    return s;
}

static void assert_problem(size_t at, const char *kind)
{
    bm_sound s = read_at(at, (bm_excerpt){0}, kind);

    bm_sound_free(&s);
}

/* Samples [first, end) of a tone. */
static void assert_tone(size_t at, bm_excerpt part, double hz, size_t first,
                        size_t end)
{
    static int x[LENGTH];
    bm_sound s = read_at(at, part, "");

    make_tone(x, LENGTH, 1, hz, RATE);
    assert_int_equal(s.rate, RATE);
    assert_int_equal(s.n, end - first);
    for (size_t i = 0; i < s.n; i++)
        assert_true(s.x[i] == (float)x[first + i]);
    bm_sound_free(&s);
}

static const struct {
    int format;
    bool with_length;
} forms[] = {
    {SF_FORMAT_WAV | SF_FORMAT_PCM_16, false},
    {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, false},
    {SF_FORMAT_WAV | SF_FORMAT_PCM_16, true},
    {SF_FORMAT_FLAC | SF_FORMAT_PCM_16, true},
};

static void test_each_recording_is_read_at_its_byte(void **state)
{
    size_t at[4];

    (void)state;
    archive.n = 0;
    FOR_EACH (f, forms)
        at[f] = add_recording(forms[f].format, FIRST_HZ + 100.0 * (double)f,
                              forms[f].with_length);
    write_bytes("wav.ark", archive.bytes, archive.n);
    FOR_EACH (f, forms) {
        double hz = FIRST_HZ + 100.0 * (double)f;

        assert_tone(at[f], (bm_excerpt){0}, hz, 0, LENGTH);
        assert_tone(at[f], (bm_excerpt){0.125, 0.25, 0}, hz, 1000, 3000);
        assert_tone(at[f], (bm_excerpt){0.375, 0, 0}, hz, 3000, LENGTH);
    }
}

static void test_places_without_a_recording_are_problems(void **state)
{
    size_t at = 0;

    (void)state;
    archive.n = 0;
    at = add_recording(forms[0].format, FIRST_HZ, false);
    write_bytes("wav.ark", archive.bytes, archive.n);
    assert_problem(0, "not a recording");
    assert_problem(at + 1, "not a recording");
    assert_problem(archive.n, "not a recording");
    assert_problem(archive.n + 999999, "not a recording");
    memset(archive.bytes + at + 4, 0xff, 4); /* of unknown length */
    write_bytes("wav.ark", archive.bytes, archive.n);
    assert_problem(at, "not a recording");
    FOR_EACH (f, forms) {
        archive.n = 0;
        at = add_recording(forms[f].format, FIRST_HZ, forms[f].with_length);
        write_bytes("wav.ark", archive.bytes, archive.n / 2);
        assert_problem(at, "damaged or truncated");
    }
}

/* A file whose name looks like a place is a file. */
static void test_a_file_with_a_colon_in_its_name_is_read(void **state)
{
    bm_problem problem = {0};
    bm_sound s = {0};

    (void)state;
    write_tone("a.wav:12", 100, 1, RATE);
    assert_ok(
        bm_sound_read(&s, in_folder("a.wav:12"), 0, (bm_excerpt){0}, &problem));
    assert_string_equal(problem.text, "");
    assert_int_equal(s.n, 100);
    bm_sound_free(&s);
}

/* ---- data directories ---------------------------------------------------- */

static bm_importer *open_directory(const char *list)
{
    bm_config *config = SET("features.mels=8");
    bm_importer *i = NULL;

    write_text("data/wav.scp", list);
    assert_ok(bm_importer_open(&i, "audio", config,
                               &(bm_import_source){.path = in_folder("data")}));
    bm_config_free(config);
    return i;
}

/* The frames are those of the same recordings in files. */
static void test_segments_of_recordings_in_an_archive_are_packed(void **state)
{
    static int x[LENGTH];
    char list[64];
    bm_importer *i = NULL, *of_files = NULL;
    size_t at[2];

    (void)state;
    archive.n = 0;
    for (size_t k = 0; k < 2; k++) {
        at[k] =
            add_recording(forms[3].format, FIRST_HZ + 100.0 * (double)k, true);
        make_tone(x, LENGTH, 1, FIRST_HZ + 100.0 * (double)k, RATE);
        assert_true(mkdir(in_folder("data"), 0700) == 0 || k == 1);
        write_sound(k == 0 ? "data/r0.wav" : "data/r1.wav",
                    SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, LENGTH, 1, RATE);
    }
    write_bytes("data/wav.ark", archive.bytes, archive.n);
    write_text("data/segments", "s0 r0 0 0.2\ns1 r1 0.1 0.3\ns2 r0 0.2 -1\n");
    write_text("data/text", "s0 a\ns1 b\ns2 a b\n");
    snprintf(list, sizeof list, "r0 wav.ark:%zu\nr1 wav.ark:%zu\n", at[0],
             at[1]);
    i = open_directory(list);
    of_files = open_directory("r0 r0.wav\nr1 r1.wav\n");
    for (size_t k = 0; k < 3; k++) {
        bm_item item = next_item(i), expected = next_item(of_files);

        assert_null(item.problem);
        assert_string_equal(item.id, expected.id);
        assert_int_equal(item.frames, expected.frames);
        assert_memory_equal(item.x, expected.x,
                            item.frames * item.features * sizeof *item.x);
    }
    assert_null(next_item(i).id);
    bm_importer_close(i);
    bm_importer_close(of_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_recording_is_read_at_its_byte),
        cmocka_unit_test(test_places_without_a_recording_are_problems),
        cmocka_unit_test(test_a_file_with_a_colon_in_its_name_is_read),
        cmocka_unit_test(test_segments_of_recordings_in_an_archive_are_packed),
    };

    return cmocka_run_group_tests_name("recordings in archives", tests,
                                       folder_make, folder_remove);
}
