/*
 * The contents of shards that bmuf pack writes: the pixels of line images, byte
 * by byte, and excerpts; the same on any number of threads. Data sets of which
 * shards are missing.
 */
#include "core/file/file_lock.h"
#include "io/shard/shard.h"
#include "tests/cli/packed/recordings.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <hdf5.h>
#include <sndfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- pixels ------------------------------------------------------------- */

enum { SCALED = 2, COLUMNS = 2, PAD = 1, D = COLUMNS * SCALED };

/* The ink of an image at half its size. */
static int scaled(size_t row, size_t column)
{
    int sum = 0;

    for (size_t i = 0; i < 4; i++)
        sum += ink(2 * row + i / 2, 2 * column + i % 2);
    return sum / 4;
}

static int by_ink(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* The median ink of an image of this width, of two in the middle the larger. */
static int paper(size_t width)
{
    int all[SCALED * 8];
    size_t n = 0;

    for (size_t column = 0; column < width / 2; column++)
        for (size_t row = 0; row < SCALED; row++)
            all[n++] = scaled(row, column);
    qsort(all, n, sizeof *all, by_ink);
    return all[n / 2];
}

/* Pixel k of the frames of an image of this width at half its size: columns
 * from left to right between those of the padding, each from top to bottom. */
static int pixel(size_t width, size_t k)
{
    size_t column = k / SCALED, row = k % SCALED;

    if (column < PAD || column >= PAD + width / 2)
        return paper(width);
    return scaled(row, column - PAD);
}

/* All of /inputs, which must be bytes. */
static void read_bytes(const char *path, uint8_t *x, size_t rows)
{
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t set = H5Dopen2(file, "/inputs", H5P_DEFAULT);
    hid_t type = H5Dget_type(set), space = H5Dget_space(set);
    hsize_t size[2] = {0};

    assert_true(H5Tequal(type, H5T_STD_U8LE) > 0);
    assert_int_equal(H5Sget_simple_extent_ndims(space), 2);
    H5Sget_simple_extent_dims(space, size, NULL);
    assert_true(size[0] == rows && size[1] == D);
    assert_true(
        H5Dread(set, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
    H5Sclose(space);
    H5Tclose(type);
    H5Dclose(set);
    H5Fclose(file);
}

static void test_pixels_are_stored_as_bytes(void **_)
{
    static const size_t widths[] = {6, 8};
    /* 3 and 4 columns of half the size, one of padding on both sides: 5, and
     * one more to fill the last frame, and 6 */
    static const int32_t frames[] = {3, 3};
    uint8_t bytes[6 * D];
    bm_shard *s = NULL;
    bm_sequences q = {0};
    size_t at = 0;

    (void)_;
    draw("a.png", 6);
    draw("b.png", 8);
    write_text("lines.jsonl",
               "{\"id\": \"a\", \"image\": \"a.png\", \"text\": \"x\"}\n"
               "{\"id\": \"b\", \"image\": \"b.png\", \"text\": \"y\"}\n");
    assert_code(BMUF("pack", "--images", "lines.jsonl", "--out", "lines",
                     "--set", "features.height=2", "--set",
                     "features.columns=2", "--set", "features.pad=1"),
                0);
    read_bytes(in_folder("lines/data-00000.bmuf.h5"), bytes, 6);
    assert_ok(bm_shard_open(&s, in_folder("lines/data-00000.bmuf.h5")));
    assert_ok(bm_shard_read(s, 0, &q));
    assert_int_equal(q.n, 2);
    assert_int_equal(q.features, D);
    FOR_EACH (i, widths) {
        assert_int_equal(q.frames[i], frames[i]);
        for (size_t k = 0; k < (size_t)frames[i] * D; k++, at++) {
            assert_int_equal(bytes[at], pixel(widths[i], k));
            assert_true(near(q.x[at], pixel(widths[i], k) / 255., 1e-7));
        }
    }
    bm_sequences_free(&q);
    bm_shard_close(s);
}

/* ---- excerpts ------------------------------------------------------------ */

static char *file_of(const char *path, size_t *size)
{
    return slurp(in_folder(path), size);
}

static void test_an_excerpt_is_the_recording_that_was_cut_there(void **_)
{
    enum { N = 16000, FIRST = 3999, END = 12345 };
    static int x[N];
    char *cut = NULL, *excerpt = NULL;
    size_t n = 0, k = 0;

    (void)_;
    make_tone(x, N, 1, 440, 8000);
    for (size_t i = 0; i < N; i++)
        x[i] = x[i] / 2 + (int)(i * i % 977);
    write_sound("long.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x, N, 1, 8000);
    write_sound("cut.wav", SF_FORMAT_WAV | SF_FORMAT_PCM_16, x + FIRST,
                END - FIRST, 1, 8000);
    write_text("long.jsonl",
               "{\"id\": \"u\", \"audio\": \"long.wav\", \"text\": \"a\", "
               "\"start\": 0.499875, \"duration\": 1.04325}\n");
    write_text("cut.jsonl",
               "{\"id\": \"u\", \"audio\": \"cut.wav\", \"text\": \"a\"}\n");
    assert_code(BMUF("pack", "--audio", "long.jsonl", "--out", "excerpt",
                     "--set", "features.rate=11025", "--set",
                     "features.dither=1"),
                0);
    assert_code(BMUF("pack", "--audio", "cut.jsonl", "--out", "cut", "--set",
                     "features.rate=11025", "--set", "features.dither=1"),
                0);
    excerpt = file_of("excerpt/data-00000.bmuf.h5", &n);
    cut = file_of("cut/data-00000.bmuf.h5", &k);
    assert_int_equal(n, k);
    assert_memory_equal(excerpt, cut, n);
    free(excerpt);
    free(cut);
    write_text("long.jsonl", "{\"id\": \"u\", \"audio\": \"long.wav\", "
                             "\"start\": 1.5, \"duration\": 1.01}\n");
    assert_fails(BMUF("pack", "--audio", "long.jsonl", "--out", "no"), 65,
                 "1 excerpt outside the recording");
    write_text("long.jsonl",
               "{\"id\": \"u\", \"audio\": \"long.wav\", \"text\": \"a\", "
               "\"start\": 1.5, \"duration\": 0.9}\n");
    assert_says(BMUF("pack", "--audio", "long.jsonl", "--out", "no").err,
                "1 of 1 sequence is cut at the end of the recording: u");
}

/* ---- whole data sets ----------------------------------------------------- */

/* Packs `n` copies of a recording, in shards of one. */
static void pack_many(const char *out, size_t n)
{
    list_recordings("many.jsonl", n, 0);
    assert_code(BMUF("pack", "--audio", "many.jsonl", "--out", out, "--force",
                     "--set", "shard.unit_frames=1", "--set",
                     "shard.shard_mb=0.001"),
                0);
}

static void drop(const char *name)
{
    assert_int_equal(remove(in_folder(name)), 0);
}

/* Every verb that opens a data set names what is missing. */
static void assert_incomplete(const char *directory, const char *text)
{
    char setting[64];
    outcome o = BMUF("check", directory);

    assert_code(o, 65);
    assert_says(o.out, text);
    assert_fails(BMUF("info", directory), 65, text);
    snprintf(setting, sizeof setting, "data.train=%s", directory);
    assert_fails(BMUF("train", "many.ini", "--out", "no", "--set", setting), 65,
                 text);
}

static void test_missing_shards_are_named(void **_)
{
    (void)_;
    write_text("many.ini", "[model]\nnet = linear\n");
    pack_many("many", 6);
    assert_code(BMUF("check", "many"), 0);
    drop("many/data-00004.bmuf.h5");
    drop("many/data-00001.bmuf.h5");
    assert_incomplete("many", "many/data-00001.bmuf.h5 is missing");
    assert_incomplete("many", "many/data-00004.bmuf.h5 is missing");
    assert_code(BMUF("info", "many/data-00003.bmuf.h5"), 0); /* by itself */
    pack_many("many", 6);
    drop("many/data-00005.bmuf.h5");
    assert_incomplete("many", "many/data-00005.bmuf.h5, or the last shards "
                              "from there on, are missing");
}

static void test_shards_of_another_packing_are_noticed(void **_)
{
    size_t n = 0;
    char *bytes = NULL;

    (void)_;
    pack_many("many", 4);
    assert_code(BMUF("pack", "--audio", "many.jsonl", "--out", "more", "--set",
                     "shard.unit_frames=1", "--set", "shard.shard_mb=0.001",
                     "--set", "features.seed=2"),
                0);
    bytes = file_of("more/data-00003.bmuf.h5", &n);
    write_bytes("many/data-00003.bmuf.h5", bytes, n);
    free(bytes);
    assert_incomplete("many",
                      "many/data-00003.bmuf.h5 is of another bmuf pack");
    pack_many("many", 4); /* a shard in the place of the next one */
    bytes = file_of("many/data-00001.bmuf.h5", &n);
    write_bytes("many/data-00002.bmuf.h5", bytes, n);
    free(bytes);
    assert_incomplete("many",
                      "many/data-00002.bmuf.h5 is of another bmuf pack");
    assert_null(strstr(BMUF("check", "many").out, "is missing"));
    pack_many("many", 2); /* --force leaves none of the others */
    assert_false(access(in_folder("many/data-00002.bmuf.h5"), F_OK) == 0);
    assert_code(BMUF("check", "many"), 0);
}

static void test_a_directory_is_packed_into_by_one_at_a_time(void **_)
{
    int lock = -1;
    char who[64];

    (void)_;
    pack_many("many", 2);
    snprintf(who, sizeof who, "process %ld)", (long)getpid());
    assert_ok(bm_file_lock(&lock, in_folder("many"), ".pack.lock"));
    assert_fails(
        BMUF("pack", "--audio", "many.jsonl", "--out", "many", "--force"), 73,
        "many is in use by another job (host ", who);
    assert_code(BMUF("check", "many"), 0); /* and nothing was removed */
    bm_file_unlock(lock, in_folder("many"), ".pack.lock");
    pack_many("many", 3);
    assert_false(access(in_folder("many/.pack.lock"), F_OK) == 0);
}

/* ---- threads ------------------------------------------------------------- */

/* A file of a set, as bytes; free(). */
static char *shard_of(const char *set, size_t *size)
{
    char path[64];

    snprintf(path, sizeof path, "%s/data-00000.bmuf.h5", set);
    return slurp(in_folder(path), size);
}

/* With one recording that cannot be read, so that order shows in messages. */
static void test_threads_do_not_change_a_byte(void **_)
{
    static const char *const over[] = {"utterance", "speaker", "global"};

    (void)_;
    make_speech("team", 20);
    write_text("team-7.wav", "no sound");
    FOR_EACH (k, over) {
        char norm[64];
        size_t one = 0, many = 0;
        char *a = NULL, *b = NULL;

        snprintf(norm, sizeof norm, "features.normalise=%s", over[k]);
        assert_code(BMUF("pack", "--audio", "team.jsonl", "--out", "one",
                         "--threads", "1", "--set", norm, "--set",
                         "features.dither=1", "--set", "features.deltas=1",
                         "--max-left-out", "5", "--force"),
                    0);
        assert_code(BMUF("pack", "--audio", "team.jsonl", "--out", "three",
                         "--threads", "3", "--set", norm, "--set",
                         "features.dither=1", "--set", "features.deltas=1",
                         "--max-left-out", "5", "--force"),
                    0);
        a = shard_of("one", &one);
        b = shard_of("three", &many);
        assert_int_equal(one, many);
        assert_memory_equal(a, b, one);
        free(a);
        free(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_are_stored_as_bytes),
        cmocka_unit_test(test_an_excerpt_is_the_recording_that_was_cut_there),
        cmocka_unit_test(test_missing_shards_are_named),
        cmocka_unit_test(test_shards_of_another_packing_are_noticed),
        cmocka_unit_test(test_a_directory_is_packed_into_by_one_at_a_time),
        cmocka_unit_test(test_threads_do_not_change_a_byte),
    };

    return cmocka_run_group_tests_name("packed", tests, make_shards,
                                       folder_remove);
}
