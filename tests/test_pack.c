/*
 * What bmuf pack leaves in shards: the pixels of line images, byte by byte.
 */
#include "io/shard.h"
#include "tests/command.h"
#include "tests/folder.h"
#include "tests/support.h"

#include <hdf5.h>
#include <png.h>
#include <stdio.h>
#include <string.h>

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

static void test_pixels_are_stored_as_bytes_of_ink(void **_)
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels_are_stored_as_bytes_of_ink),
    };

    return cmocka_run_group_tests_name("pack", tests, folder_make,
                                       folder_remove);
}
