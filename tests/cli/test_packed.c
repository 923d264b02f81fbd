/*
 * The contents of shards that bmuf pack writes: the pixels of line images, byte
 * by byte, and labels with a given vocabulary.
 */
#include "io/shard/shard.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <hdf5.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- pixels ------------------------------------------------------------- */

enum { HIGH = 4, WIDEST = 8, SCALED = 2, COLUMNS = 2, PAD = 1 };
enum { D = COLUMNS * SCALED };

/* 0 is the ground; a stroke is dark, what is around it less so. Multiples of 4:
 * the mean of four of them is a whole number. */
static int ink(size_t row, size_t column)
{
    if (column < 2)
        return 0;
    return column == 4 ? 252 : (int)((row * 37 + column * 11) % 28) * 4;
}

static void draw(const char *name, unsigned width)
{
    unsigned char grey[HIGH * WIDEST];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = width,
                       .height = HIGH,
                       .format = PNG_FORMAT_GRAY};

    for (size_t i = 0; i < (size_t)HIGH * width; i++)
        grey[i] = (unsigned char)(255 - ink(i / width, i % width));
    assert_true(
        png_image_write_to_file(&image, in_folder(name), 0, grey, 0, NULL));
}

/* Pixel k of the frames of an image of this width at half its size: columns
 * from left to right between those of the padding, each from top to bottom. */
static int pixel(size_t width, size_t k)
{
    size_t column = k / SCALED, row = k % SCALED, sum = 0;

    if (column < PAD || column >= PAD + width / 2)
        return 0;
    column -= PAD;
    for (size_t i = 0; i < 4; i++)
        sum += (size_t)ink(2 * row + i / 2, 2 * column + i % 2);
    return (int)(sum / 4);
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

/* ---- vocabularies ------------------------------------------------------- */

/* The only shard of a data set must have these symbols and these labels, end to
 * end. */
static void assert_shard(const char *path, bool words, const char *symbols,
                         const int32_t *labels, size_t n)
{
    bm_shard *s = NULL;
    bm_sequences q = {0};
    char *text = NULL;
    size_t sum = 0;

    assert_ok(bm_shard_open(&s, in_folder(path)));
    assert_int_equal(bm_vocab_words(bm_shard_vocab(s)), words);
    assert_ok(bm_vocab_print(bm_shard_vocab(s), &text));
    assert_string_equal(text, symbols);
    assert_ok(bm_shard_read(s, 0, &q));
    for (size_t i = 0; i < q.n; i++)
        sum += (size_t)q.labels[i];
    assert_int_equal(sum, n);
    assert_memory_equal(q.targets, labels, n * sizeof *labels);
    free(text);
    bm_sequences_free(&q);
    bm_shard_close(s);
}

/* Shards w/ of words and c/ of characters. The words have one letter, so only
 * the shards tell them from characters. */
static int make_shards(void **state)
{
    if (folder_make(state) != 0)
        return 1;
    write_text("texts.jsonl",
               "{\"id\": \"1\", \"audio\": \"1.wav\", \"text\": \"a b\"}\n"
               "{\"id\": \"2\", \"audio\": \"2.wav\", \"text\": \"b a\"}\n");
    write_speech("1.wav", "a b");
    write_speech("2.wav", "b a");
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "w", "--units",
                     "words"),
                0);
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "c"), 0);
    return 0;
}

static void test_vocabulary_of_shards_keeps_its_units(void **_)
{
    static const int32_t words[] = {1, 2, 2, 1};         /* a b b a */
    static const int32_t letters[] = {2, 1, 3, 3, 1, 2}; /* "a b", "b a" */
    static const char *const given[] = {"w", "w/data-00000.bmuf.h5"};

    (void)_;
    assert_shard("w/data-00000.bmuf.h5", true, "<blank>\na\nb\n", words, 4);
    assert_shard("c/data-00000.bmuf.h5", false, "<blank>\n<space>\na\nb\n",
                 letters, 6);
    FOR_EACH (k, given) {
        assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "w2",
                         "--force", "--vocab", given[k]),
                    0);
        assert_shard("w2/data-00000.bmuf.h5", true, "<blank>\na\nb\n", words,
                     4);
    }
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "w3", "--vocab",
                     "w", "--units", "words"),
                0);
    assert_shard("w3/data-00000.bmuf.h5", true, "<blank>\na\nb\n", words, 4);
    assert_code(
        BMUF("pack", "--audio", "texts.jsonl", "--out", "c2", "--vocab", "c"),
        0);
    assert_shard("c2/data-00000.bmuf.h5", false, "<blank>\n<space>\na\nb\n",
                 letters, 6);
}

static void test_units_that_contradict_the_shards_are_rejected(void **_)
{
    (void)_;
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "w", "--units", "characters"),
                 64, "--units characters", "--vocab w are words");
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "c", "--units", "words"),
                 64, "--units words", "--vocab c are characters");
}

/* A text file has characters unless --units is given. */
static void test_vocabulary_of_a_text_has_the_given_units(void **_)
{
    static const int32_t labels[] = {1, 2, 2, 1};
    outcome o;

    (void)_;
    o = BMUF("pack", "--audio", "texts.jsonl", "--out", "t1", "--vocab",
             "w/vocab.txt", "--units", "words");
    assert_code(o, 0);
    assert_says(o.out, " 0 unknown symbols");
    assert_shard("t1/data-00000.bmuf.h5", true, "<blank>\na\nb\n", labels, 4);
    o = BMUF("pack", "--audio", "texts.jsonl", "--out", "t2", "--vocab",
             "w/vocab.txt");
    assert_code(o, 0);
    assert_says(o.out, " 2 unknown symbols"); /* the spaces */
    assert_shard("t2/data-00000.bmuf.h5", false, "<blank>\na\nb\n", labels, 4);
    /* also in a directory without shards */
    assert_int_equal(mkdir(in_folder("alone"), 0777), 0);
    write_text("alone/vocab.txt", "<blank>\nb\na\n");
    assert_code(BMUF("pack", "--audio", "texts.jsonl", "--out", "t3", "--vocab",
                     "alone", "--units", "words"),
                0);
    assert_shard("t3/data-00000.bmuf.h5", true, "<blank>\nb\na\n",
                 (const int32_t[]){2, 1, 1, 2}, 4);
    assert_fails(BMUF("pack", "--audio", "texts.jsonl", "--out", "no",
                      "--vocab", "nowhere"),
                 66, "nowhere");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_are_stored_as_bytes),
        cmocka_unit_test(test_vocabulary_of_shards_keeps_its_units),
        cmocka_unit_test(test_units_that_contradict_the_shards_are_rejected),
        cmocka_unit_test(test_vocabulary_of_a_text_has_the_given_units),
    };

    return cmocka_run_group_tests_name("packed", tests, make_shards,
                                       folder_remove);
}
