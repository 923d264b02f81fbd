/*
 * Image files in all formats, written here by the formats' libraries or byte by
 * byte.
 */
#include "io/import/images/image_cleaning.h"
#include "io/import/images/image_exif.h"
#include "io/import/images/image_file.h"
#include "io/import/images/image_frames.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tiffio.h>
#include <turbojpeg.h>
#include <zlib.h>

enum { WIDTH = 37, HEIGHT = 11, PIXELS = WIDTH * HEIGHT };

/* A picture with every grey. */
static const uint8_t *picture(void)
{
    static uint8_t grey[PIXELS];

    for (size_t i = 0; i < PIXELS; i++)
        grey[i] = (uint8_t)(i % 256);
    return grey;
}

static void write_png(const char *name)
{
    png_image png = {.version = PNG_IMAGE_VERSION,
                     .width = WIDTH,
                     .height = HEIGHT,
                     .format = PNG_FORMAT_GRAY};

    assert_true(
        png_image_write_to_file(&png, in_folder(name), 0, picture(), 0, NULL));
}

/* Two bytes a pixel, big-endian. */
static void write_deep_png(const char *name, const uint8_t *pixels)
{
    FILE *file = fopen(in_folder(name), "wb");
    png_struct *png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_info *info = png_create_info_struct(png);

    assert_non_null(file);
    png_init_io(png, file);
    png_set_IHDR(png, info, WIDTH, HEIGHT, 16, PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT,
                 PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    for (size_t y = 0; y < HEIGHT; y++)
        png_write_row(png, pixels + y * 2 * WIDTH);
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
    assert_int_equal(fclose(file), 0);
}

/* Writes the rest of a file that was begun. */
static void finish_tiff(TIFF *tiff, unsigned compression, unsigned samples,
                        unsigned bits, const uint8_t *rows, size_t bytes)
{
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, WIDTH);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, HEIGHT);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, samples);
    TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, 4);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, compression);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC,
                 samples == 3 ? PHOTOMETRIC_RGB : PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    for (unsigned y = 0; y < HEIGHT; y++)
        assert_int_equal(
            TIFFWriteScanline(tiff, (void *)(rows + y * bytes), y, 0), 1);
    TIFFClose(tiff);
}

/* Rows of `bytes` bytes each. */
static void write_tiff(const char *name, const char *mode, unsigned compression,
                       unsigned samples, unsigned bits, const uint8_t *rows,
                       size_t bytes)
{
    TIFF *tiff = TIFFOpen(in_folder(name), mode);

    assert_non_null(tiff);
    finish_tiff(tiff, compression, samples, bits, rows, bytes);
}

/* Grey and alpha. */
static void write_alpha(const char *name, uint16_t alpha, unsigned bits,
                        const uint8_t *rows, size_t bytes)
{
    TIFF *tiff = TIFFOpen(in_folder(name), "w");

    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 2);
    TIFFSetField(tiff, TIFFTAG_EXTRASAMPLES, 1, &alpha);
    finish_tiff(tiff, COMPRESSION_NONE, 2, bits, rows, bytes);
}

static void write_map(const char *name, const char *head, const uint8_t *bytes,
                      size_t n)
{
    FILE *file = fopen(in_folder(name), "wb");

    assert_non_null(file);
    assert_true(fputs(head, file) >= 0);
    if (n > 0)
        assert_int_equal(fwrite(bytes, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

/* The same numbers as text. */
static void write_text_map(const char *name)
{
    FILE *file = fopen(in_folder(name), "w");

    assert_non_null(file);
    fprintf(file, "P2 # a comment\n%d\n#another\n%d 255", WIDTH, HEIGHT);
    for (size_t i = 0; i < PIXELS; i++)
        fprintf(file, "%c%d", i % 9 == 0 ? '\n' : ' ', picture()[i]);
    assert_int_equal(fclose(file), 0);
}

static bm_line_image read_image(const char *name)
{
    bm_line_image image = {0};
    bm_problem problem = {0};

    assert_ok(bm_image_file_read(&image, in_folder(name), BM_MOST_LINE_PIXELS,
                                 &problem));
    if (bm_problem_is(&problem))
        fail_msg("%s", problem.text);
    return image;
}

/* The problem with a file. */
static const char *problem_of(const char *name, size_t most)
{
    static bm_problem problem;
    bm_line_image image = {0};

    problem.text[0] = '\0';
    assert_ok(bm_image_file_read(&image, in_folder(name), most, &problem));
    bm_line_image_free(&image);
    return problem.text;
}

static void test_all_formats_have_the_same_pixels(void **_)
{
    static const char *const names[] = {"a.png",      "a.pgm",    "text.pgm",
                                        "little.tif", "big.tif",  "lzw.tif",
                                        "deep.tif",   "deep.pgm", "deep.png"};
    uint8_t deep[HEIGHT][WIDTH][2];

    (void)_;
    for (size_t i = 0; i < PIXELS; i++) /* x 257 in big-endian, as in PGM */
        deep[i / WIDTH][i % WIDTH][0] = deep[i / WIDTH][i % WIDTH][1] =
            picture()[i];
    write_png("a.png");
    write_deep_png("deep.png", deep[0][0]);
    write_map("a.pgm", "P5 37 11 255\n", picture(), PIXELS);
    write_text_map("text.pgm");
    write_map("deep.pgm", "P5\n37 11\n65535\n", deep[0][0], 2 * PIXELS);
    write_tiff("little.tif", "wl", COMPRESSION_NONE, 1, 8, picture(), WIDTH);
    write_tiff("big.tif", "wb8", COMPRESSION_NONE, 1, 8, picture(), WIDTH);
    write_tiff("lzw.tif", "wl", COMPRESSION_LZW, 1, 8, picture(), WIDTH);
    write_tiff("deep.tif", "wl", COMPRESSION_ADOBE_DEFLATE, 1, 16, deep[0][0],
               sizeof deep[0]);
    FOR_EACH (k, names) {
        bm_line_image image = read_image(names[k]);

        assert_int_equal(image.width, WIDTH);
        assert_int_equal(image.height, HEIGHT);
        for (size_t i = 0; i < PIXELS; i++)
            if (image.grey[i] != picture()[i])
                fail_msg("%s: pixel %zu is %u, not %u", names[k], i,
                         image.grey[i], picture()[i]);
        bm_line_image_free(&image);
    }
}

static void test_bits_are_black_and_white(void **_)
{
    /* 10 columns take two bytes; 1 is black */
    static const uint8_t bits[] = {0x80, 0x40, 0x01, 0x80};
    uint8_t fax[HEIGHT * 5] = {0};
    bm_line_image image;

    (void)_;
    write_map("bits.pbm", "P4\n10 2\n", bits, sizeof bits);
    write_text("text.pbm", "P1\n10 2\n1000000001 00000 00110");
    for (size_t k = 0; k < 2; k++) {
        image = read_image(k == 0 ? "bits.pbm" : "text.pbm");
        assert_int_equal(image.width, 10);
        for (size_t i = 0; i < 20; i++) {
            bool black = i == 0 || i == 9 || i == 17 || i == 18;
            assert_int_equal(image.grey[i], black ? 0 : 255);
        }
        bm_line_image_free(&image);
    }
    fax[5 * 3 + 2] = 0x10; /* row 3, column 19 is white */
    write_tiff("fax.tif", "w", COMPRESSION_CCITTFAX4, 1, 1, fax, 5);
    image = read_image("fax.tif");
    for (size_t i = 0; i < PIXELS; i++)
        assert_int_equal(image.grey[i], i == 3 * WIDTH + 19 ? 255 : 0);
    bm_line_image_free(&image);
}

static void test_colours_become_brightness(void **_)
{
    /* 0.299 R + 0.587 G + 0.114 B */
    static const uint8_t colours[5][3] = {
        {255, 0, 0}, {0, 255, 0}, {0, 0, 255}, {10, 20, 30}, {255, 255, 255}};
    static const uint8_t grey[5] = {76, 150, 29, 18, 255};
    uint8_t rows[PIXELS][3];
    bm_line_image image;

    (void)_;
    for (size_t i = 0; i < PIXELS; i++)
        memcpy(rows[i], colours[i % 5], 3);
    write_map("a.ppm", "P6 37 11 255\n", rows[0], 3 * (size_t)PIXELS);
    write_tiff("a.tif", "w", COMPRESSION_LZW, 3, 8, rows[0], 3 * (size_t)WIDTH);
    for (size_t k = 0; k < 2; k++) {
        image = read_image(k == 0 ? "a.ppm" : "a.tif");
        for (size_t i = 0; i < PIXELS; i++)
            assert_int_equal(image.grey[i], grey[i % 5]);
        bm_line_image_free(&image);
    }
}

/* Writes a JPEG of the picture, smooth as photographs are, in grey or colour. */
static size_t write_jpeg(const char *name, uint8_t *smooth, int sampling)
{
    tjhandle jpeg = tjInitCompress();
    unsigned char *bytes = NULL;
    unsigned long n = 0;
    uint8_t colours[PIXELS][3];

    assert_non_null(jpeg);
    for (size_t i = 0; i < PIXELS; i++)
        smooth[i] = (uint8_t)(60 + 3 * (i % WIDTH) + 5 * (i / WIDTH));
    for (size_t i = 0; i < PIXELS; i++)
        memset(colours[i], smooth[i], 3);
    assert_int_equal(tjCompress2(jpeg, colours[0], WIDTH, 0, HEIGHT, TJPF_RGB,
                                 &bytes, &n, sampling, 100, 0),
                     0);
    write_bytes(name, bytes, n);
    tjFree(bytes);
    tjDestroy(jpeg);
    return n;
}

static void test_photographs_are_read(void **_)
{
    uint8_t smooth[PIXELS];

    (void)_;
    for (size_t k = 0; k < 2; k++) {
        bm_line_image image;

        write_jpeg("a.jpg", smooth, k == 0 ? TJSAMP_GRAY : TJSAMP_420);
        image = read_image("a.jpg");
        assert_int_equal(image.width, WIDTH);
        assert_int_equal(image.height, HEIGHT);
        for (size_t i = 0; i < PIXELS; i++)
            assert_in_range(image.grey[i] + 2, smooth[i], smooth[i] + 4);
        bm_line_image_free(&image);
    }
}

/* Bytes before the end (ff d9) that are no pixels, more than the decoder fetches in
 * advance; and pixels that are missing, with and without other bytes there. */
static void test_surplus_bytes_of_a_photograph_are_skipped(void **_)
{
    enum { SURPLUS = 40 };
    static const uint8_t end[] = {1, 2, 3, 0xff, 0xd9};
    uint8_t smooth[PIXELS];
    size_t n = write_jpeg("a.jpg", smooth, TJSAMP_GRAY);
    char *jpeg = slurp(in_folder("a.jpg"), &n);
    char *whole = malloc(n + SURPLUS);
    bm_line_image image = {0};

    (void)_;
    assert_non_null(whole);
    memcpy(whole, jpeg, n - 2);
    memset(whole + n - 2, 1, SURPLUS);
    memcpy(whole + n + SURPLUS - 2, end + 3, 2);
    write_bytes("b.jpg", whole, n + SURPLUS);
    image = read_image("b.jpg");
    for (size_t i = 0; i < PIXELS; i++)
        assert_in_range(image.grey[i] + 2, smooth[i], smooth[i] + 4);
    bm_line_image_free(&image);
    memcpy(whole + n - 40, end + 3, 2);
    write_bytes("b.jpg", whole, n - 38);
    assert_non_null(strstr(problem_of("b.jpg", BM_MOST_LINE_PIXELS),
                           "b.jpg: damaged, or cut off"));
    memcpy(whole + n - 40, end, sizeof end);
    write_bytes("b.jpg", whole, n - 35);
    assert_non_null(strstr(problem_of("b.jpg", BM_MOST_LINE_PIXELS),
                           "b.jpg: damaged, or cut off"));
    free(whole);
    free(jpeg);
}

/* Puts an Exif segment behind the first two bytes of a.jpg, to b.jpg: an entry
 * of another tag, and the orientation. `little`: the order of its bytes. */
static void add_exif(int orientation, bool little)
{
    static const uint8_t forms[2][44] = {
        {0xff, 0xe1, 0, 42, 'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42,
         0,    0,    0, 8,  0,   2,   1,   0,   0, 3, 0,   0,   0, 1,
         0,    9,    0, 0,  1,   18,  0,   3,   0, 0, 0,   1},
        {0xff, 0xe1, 0, 42, 'E', 'x', 'i', 'f', 0, 0, 'I', 'I', 42, 0,
         8,    0,    0, 0,  2,   0,   0,   1,   3, 0, 1,   0,   0,  0,
         9,    0,    0, 0,  18,  1,   3,   0,   1, 0, 0,   0}};
    size_t n = 0;
    char *jpeg = slurp(in_folder("a.jpg"), &n);
    char *whole = malloc(n + sizeof *forms);

    assert_non_null(whole);
    memcpy(whole, jpeg, 2);
    memcpy(whole + 2, forms[little], sizeof *forms);
    whole[2 + (little ? 40 : 41)] = (char)orientation;
    memcpy(whole + 2 + sizeof *forms, jpeg + 2, n - 2);
    write_bytes("b.jpg", whole, n + sizeof *forms);
    free(whole);
    free(jpeg);
}

/* What Exif and TIFF say of orientations 1 to 8: the sides of what was seen at
 * which row 0 and column 0 of the pixels are. Each pixel differs by `most`. */
static void check_upright(const char *name, const uint8_t *pixels,
                          int orientation, unsigned most)
{
    static const char *const sides[8] = {"tl", "tr", "br", "bl",
                                         "lt", "rt", "rb", "lb"};
    const char *side = sides[orientation - 1];
    bool turned = side[0] == 'l' || side[0] == 'r';
    bm_line_image image = read_image(name);

    assert_int_equal(image.width, turned ? HEIGHT : WIDTH);
    assert_int_equal(image.height, turned ? WIDTH : HEIGHT);
    for (size_t row = 0; row < HEIGHT; row++)
        for (size_t column = 0; column < WIDTH; column++) {
            /* How far from the top and from the left it was seen. */
            size_t from_row =
                side[0] == 'b' || side[0] == 'r' ? HEIGHT - 1 - row : row;
            size_t from_column =
                side[1] == 'b' || side[1] == 'r' ? WIDTH - 1 - column : column;
            size_t y = turned ? from_column : from_row;
            size_t x = turned ? from_row : from_column;

            assert_in_range(image.grey[y * image.width + x] + most,
                            pixels[row * WIDTH + column],
                            pixels[row * WIDTH + column] + 2 * most);
        }
    bm_line_image_free(&image);
}

static void test_photographs_are_turned_upright(void **_)
{
    uint8_t smooth[PIXELS];

    (void)_;
    write_jpeg("a.jpg", smooth, TJSAMP_GRAY);
    for (int k = 0; k < 16; k++) {
        add_exif(k % 8 + 1, k >= 8);
        check_upright("b.jpg", smooth, k % 8 + 1, 2);
    }
}

static void test_scans_are_turned_upright(void **_)
{
    (void)_;
    for (int k = 1; k <= 8; k++) {
        TIFF *tiff = NULL;

        write_tiff("turned.tif", "w", COMPRESSION_LZW, 1, 8, picture(), WIDTH);
        tiff = TIFFOpen(in_folder("turned.tif"), "r+");
        assert_non_null(tiff);
        TIFFSetField(tiff, TIFFTAG_ORIENTATION, k);
        assert_int_equal(TIFFRewriteDirectory(tiff), 1);
        TIFFClose(tiff);
        check_upright("turned.tif", picture(), k, 0);
    }
}

/* Numbers of 32 bits are neither damaged nor read. */
static void test_a_tiff_of_another_kind_is_called_so(void **_)
{
    static const uint8_t floats[HEIGHT][4 * WIDTH];
    const char *problem = NULL;

    (void)_;
    write_tiff("float.tif", "w", COMPRESSION_NONE, 1, 32, floats[0],
               sizeof floats[0]);
    problem = problem_of("float.tif", BM_MOST_LINE_PIXELS);
    if (strstr(problem, "float.tif: a TIFF that libtiff cannot show (") ==
            NULL ||
        strstr(problem, "32-bit samples); convert it to grey or RGB") == NULL)
        fail_msg("\"%s\"", problem);
}

/* A grey with alpha after it, on white: grey alpha + 255 (1 - alpha / 255). */
static void test_grey_with_alpha_is_on_white(void **_)
{
    static const uint8_t pairs[5][2] = {
        {0, 0}, {0, 255}, {200, 255}, {100, 51}, {50, 102}};
    static const uint16_t kinds[] = {EXTRASAMPLE_UNASSALPHA,
                                     EXTRASAMPLE_ASSOCALPHA};
    /* 100 x 0.2 + 204 and 50 x 0.4 + 153; multiplied before, 20 + 204 .. */
    static const uint8_t grey[5] = {255, 0, 200, 224, 173};
    uint8_t rows[PIXELS][2], deep[PIXELS][2][2] = {{{0}}};

    (void)_;
    for (size_t k = 0; k < 2; k++) {
        bm_line_image image = {0};

        for (size_t i = 0; i < PIXELS; i++) {
            memcpy(rows[i], pairs[i % 5], 2);
            if (k == 1)
                rows[i][0] = (uint8_t)(rows[i][0] * rows[i][1] / 255);
        }
        write_alpha("alpha.tif", kinds[k], 8, rows[0], sizeof rows[0] * WIDTH);
        image = read_image("alpha.tif");
        for (size_t i = 0; i < PIXELS; i++)
            assert_int_equal(image.grey[i], grey[i % 5]);
        bm_line_image_free(&image);
        write_alpha("alpha.tif", kinds[k], 16, deep[0][0],
                    sizeof deep[0] * WIDTH);
        assert_non_null(
            strstr(problem_of("alpha.tif", BM_MOST_LINE_PIXELS),
                   "alpha.tif: a TIFF of grey and alpha of other than 8 bits; "
                   "convert it to grey or RGB with 8 bits and without alpha"));
    }
}

static void test_samples_with_a_sign_are_not_read(void **_)
{
    TIFF *tiff = NULL;

    (void)_;
    write_tiff("signed.tif", "w", COMPRESSION_LZW, 1, 8, picture(), WIDTH);
    tiff = TIFFOpen(in_folder("signed.tif"), "r+");
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_SAMPLEFORMAT, SAMPLEFORMAT_INT);
    assert_int_equal(TIFFRewriteDirectory(tiff), 1);
    TIFFClose(tiff);
    assert_non_null(strstr(problem_of("signed.tif", BM_MOST_LINE_PIXELS),
                           "signed.tif: a TIFF of numbers with a sign; convert "
                           "it to grey"));
}

/* A tile of 16 x 16 has 256 bytes. */
static void test_small_tiles_are_read(void **_)
{
    enum { SIDE = 16, ACROSS = (WIDTH + SIDE - 1) / SIDE };
    TIFF *tiff = TIFFOpen(in_folder("tiles.tif"), "w");
    bm_line_image image = {0};

    (void)_;
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, WIDTH);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, HEIGHT);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, 1);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, COMPRESSION_NONE);
    TIFFSetField(tiff, TIFFTAG_TILEWIDTH, SIDE);
    TIFFSetField(tiff, TIFFTAG_TILELENGTH, SIDE);
    for (unsigned t = 0; t < ACROSS; t++) {
        uint8_t tile[SIDE][SIDE] = {{0}};

        for (unsigned y = 0; y < HEIGHT; y++)
            for (unsigned x = 0; x < SIDE && t * SIDE + x < WIDTH; x++)
                tile[y][x] = picture()[y * WIDTH + t * SIDE + x];
        assert_int_equal(TIFFWriteEncodedTile(tiff, t, tile, sizeof tile),
                         sizeof tile);
    }
    TIFFClose(tiff);
    image = read_image("tiles.tif");
    assert_memory_equal(image.grey, picture(), PIXELS);
    bm_line_image_free(&image);
}

/* The chunk of Exif behind the header of a.png, of 8 + 25 bytes, to b.png. */
static void test_png_is_turned_upright(void **_)
{
    enum { HEADER = 33, NOTES = 26 };
    size_t n = 0;
    char *png = NULL, *whole = NULL;

    (void)_;
    write_png("a.png");
    png = slurp(in_folder("a.png"), &n);
    whole = malloc(n + NOTES + 12);
    assert_non_null(whole);
    for (int k = 1; k <= 8; k++) {
        unsigned char chunk[8 + NOTES + 4] = {
            0,   0,   0,   NOTES, 'e', 'X', 'I',
            'f', 'M', 'M', 0,     42,  0,   0,
            0,   8,   0,   1,     1,   18,  0,
            3,   0,   0,   0,     1,   0,   (unsigned char)k};
        unsigned long sum = crc32(0, chunk + 4, 4 + NOTES);

        for (int i = 0; i < 4; i++)
            chunk[8 + NOTES + i] = (unsigned char)(sum >> (24 - 8 * i));
        memcpy(whole, png, HEADER);
        memcpy(whole + HEADER, chunk, sizeof chunk);
        memcpy(whole + HEADER + sizeof chunk, png + HEADER, n - HEADER);
        write_bytes("b.png", whole, n + sizeof chunk);
        check_upright("b.png", picture(), k, 0);
    }
    free(whole);
    free(png);
}

static void test_damaged_notes_of_a_camera_are_ignored(void **_)
{
    uint8_t smooth[PIXELS];
    size_t n = 0;
    char *jpeg = NULL;

    (void)_;
    write_jpeg("a.jpg", smooth, TJSAMP_GRAY);
    add_exif(6, true);
    jpeg = slurp(in_folder("b.jpg"), &n);
    assert_int_equal(bm_exif_orientation((uint8_t *)jpeg, n), 6);
    for (size_t end = 0; end < 44;
         end++) /* cut short, nothing is read behind */
        (void)bm_exif_orientation((uint8_t *)jpeg, end);
    for (size_t k = 2; k < 44;
         k++) { /* any byte changed: a number from 1 to 8 */
        char before = jpeg[k];

        jpeg[k] = (char)0xff;
        assert_in_range(bm_exif_orientation((uint8_t *)jpeg, n), 1, 8);
        jpeg[k] = before;
    }
    jpeg[2 + 40] = 9; /* no orientation */
    assert_int_equal(bm_exif_orientation((uint8_t *)jpeg, n), 1);
    free(jpeg);
}

/* Beginnings of a file, without more than `end` bytes, are problems. */
static void check_cuts(const char *name, size_t end, const char *noun)
{
    size_t n = 0, step = 0;
    char *whole = slurp(in_folder(name), &n);

    step = n / 40 + 1;
    for (size_t k = 0; k + end < n; k += step) {
        const char *problem = NULL;

        write_bytes("cut", whole, k);
        problem = problem_of("cut", BM_MOST_LINE_PIXELS);
        if (strstr(problem, "/cut: ") == NULL ||
            (k > 8 && strstr(problem, noun) == NULL &&
             strstr(problem, "or leave it out") == NULL) ||
            strstr(problem, "4294967295") != NULL)
            fail_msg("%zu bytes of %s: \"%s\"", k, name, problem);
    }
    free(whole);
}

static void test_damaged_files_are_problems(void **_)
{
    uint8_t smooth[PIXELS];

    (void)_;
    write_png("a.png");
    write_map("a.pgm", "P5 37 11 255\n", picture(), PIXELS);
    write_text_map("text.pgm");
    write_tiff("a.tif", "w", COMPRESSION_LZW, 1, 8, picture(), WIDTH);
    write_jpeg("a.jpg", smooth, TJSAMP_GRAY);
    check_cuts("a.png", 16, " bytes (");
    check_cuts("a.pgm", 0, "not a PNG");
    check_cuts("text.pgm", 4, "not a PNG");
    check_cuts("a.tif", 0, "copy it again, or leave it out");
    check_cuts("a.jpg", 8, "copy it again, or leave it out");
    write_text("white.pgm", "P2 2 1 65536 9 10");
    write_text("more.pgm", "P2 2 1 9 9 10");
    assert_non_null(
        strstr(problem_of("more.pgm", 9), "is not a number up to 9"));
    assert_non_null(strstr(problem_of("white.pgm", 9), "its header should be"));
    write_text("list.pgm", "P1 first\nP2 second\n");
    assert_non_null(strstr(problem_of("list.pgm", 9),
                           "list.pgm: not a PNG, JPEG, TIFF, PBM, PGM"));
    write_text("word.png", "words");
    assert_non_null(strstr(problem_of("word.png", 9),
                           "word.png: not a PNG, JPEG, TIFF, PBM, PGM"));
}

/* A header of a huge image with nothing behind it. */
static void test_sizes_are_checked_before_memory_is_taken(void **_)
{
    static const uint8_t png[] = {
        0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 0,    0, 0,    13,
        'I',  'H', 'D', 'R', 0,    1,    0x86, 0xa0, 0,    1, 0x86, 0xa0,
        8,    0,   0,   0,   0,    0x8d, 0x39, 0x54, 0x14, 0, 0,    0,
        0,    'I', 'D', 'A', 'T',  0x35, 0xaf, 0x06, 0x1e};
    /* width, height, where the first strip begins and its length */
    static const uint8_t tiff[] = {
        'I',  'I', 42, 0, 8, 0, 0, 0, 4,    0,          /* four fields */
        0,    1,   4,  0, 1, 0, 0, 0, 0xa0, 0x86, 1, 0, /* */
        1,    1,   4,  0, 1, 0, 0, 0, 0xa0, 0x86, 1, 0, /* */
        0x11, 1,   4,  0, 1, 0, 0, 0, 8,    0,    0, 0, /* */
        0x17, 1,   4,  0, 1, 0, 0, 0, 8,    0,    0, 0, /* */
        0,    0,   0,  0};
    uint8_t smooth[PIXELS];
    size_t n = 0;
    char *jpeg = NULL, *frame = NULL;

    (void)_;
    write_map("huge.pgm", "P5 100000 100000 255\n", NULL, 0);
    write_bytes("huge.png", png, sizeof png);
    write_bytes("huge.tif", tiff, sizeof tiff);
    write_jpeg("a.jpg", smooth, TJSAMP_GRAY);
    jpeg = slurp(in_folder("a.jpg"), &n);
    for (size_t i = 0; i + 9 < n && frame == NULL; i++)
        if (memcmp(jpeg + i, "\xff\xc0", 2) == 0)
            frame = jpeg + i;
    assert_non_null(frame);
    for (size_t i = 5; frame != NULL && i < 9; i++) /* 65280 x 65280 */
        frame[i] = i % 2 == 1 ? '\xff' : 0;
    write_bytes("huge.jpg", jpeg, n);
    free(jpeg);
    assert_non_null(strstr(problem_of("huge.pgm", BM_MOST_PAGE_PIXELS),
                           "100000 x 100000 pixels: too small or too large "
                           "for a page"));
    assert_non_null(strstr(problem_of("huge.png", BM_MOST_PAGE_PIXELS),
                           "huge.png: 100000 x 100000 pixels"));
    assert_non_null(strstr(problem_of("huge.tif", BM_MOST_LINE_PIXELS),
                           "100000 x 100000 pixels: too small or too large "
                           "for a line"));
    assert_non_null(strstr(problem_of("huge.jpg", BM_MOST_PAGE_PIXELS),
                           "65280 x 65280 pixels"));
    write_png("a.png");
    assert_non_null(strstr(problem_of("a.png", PIXELS - 1), "37 x 11 pixels"));
}

/* ---- cleaning ------------------------------------------------------------- */

static void test_contrast_is_stretched(void **_)
{
    uint8_t grey[200];
    bm_line_image image = {grey, 20, 10};

    (void)_;
    /* 1 % are outside of 50 .. 150 at both ends; 100 is in the middle */
    memset(grey, 100, sizeof grey);
    memset(grey, 50, 20);
    memset(grey + 180, 150, 20);
    grey[60] = grey[61] = 3;
    grey[70] = 240;
    bm_image_stretch(&image);
    for (size_t i = 0; i < sizeof grey; i++)
        assert_int_equal(grey[i], i < 20 || i == 60 || i == 61 ? 0
                                  : i >= 180 || i == 70        ? 255
                                                               : 128);
    memset(grey, 77, sizeof grey);
    bm_image_stretch(&image);
    assert_int_equal(grey[9], 77);
}

static void test_otsu_separates_two_groups(void **_)
{
    uint8_t grey[200];
    bm_line_image image = {grey, 20, 10};

    (void)_;
    for (size_t i = 0; i < sizeof grey; i++)
        grey[i] = (uint8_t)(i < 30 ? 40 + i : 180 + i % 30);
    bm_image_otsu(&image);
    for (size_t i = 0; i < sizeof grey; i++)
        assert_int_equal(grey[i], i < 30 ? 0 : 255);
    memset(grey, 77, sizeof grey);
    bm_image_otsu(&image);
    assert_int_equal(grey[9], 77);
}

/* The threshold of every pixel by its definition, over a square of 15. */
static void test_sauvola_follows_its_formula(void **_)
{
    uint8_t before[PIXELS], grey[PIXELS];
    bm_line_image image = {grey, WIDTH, HEIGHT};

    (void)_;
    for (size_t i = 0; i < PIXELS; i++)
        before[i] = grey[i] = (uint8_t)(mix(i) % 256);
    assert_ok(bm_image_sauvola(&image));
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++) {
            double n = 0, sum = 0, squares = 0, mean = 0, deviation = 0;

            for (int v = y - 7; v <= y + 7; v++)
                for (int u = x - 7; u <= x + 7; u++)
                    if (u >= 0 && v >= 0 && u < WIDTH && v < HEIGHT) {
                        double g = before[v * WIDTH + u];

                        n++;
                        sum += g;
                        squares += g * g;
                    }
            mean = sum / n;
            deviation = sqrt(squares / n - mean * mean);
            assert_int_equal(grey[y * WIDTH + x],
                             before[y * WIDTH + x] <=
                                     mean * (1 + 0.2 * (deviation / 128 - 1))
                                 ? 0
                                 : 255);
        }
}

/* Bars of 4 pixels, 40 high, that lean by this tangent to the right. */
static void draw_bars(uint8_t *grey, size_t width, double tangent)
{
    for (size_t y = 0; y < 40; y++)
        for (size_t x = 0; x < width; x++) {
            double at = (double)x - 60 - (39.5 - (double)y) * tangent;
            double ink = 0;

            for (int bar = 0; bar < 3; bar++) {
                double left = fmax(at, 25 * bar), right = 25 * bar + 4;
                ink += fmax(fmin(at + 1, right) - left, 0);
            }
            grey[y * width + x] = (uint8_t)lround(255 - 255 * ink);
        }
}

/* The mean column of the ink. */
static double middle_of(const bm_line_image *image)
{
    double sum = 0, ink = 0;

    for (size_t i = 0; i < image->width * image->height; i++) {
        sum += (255.0 - image->grey[i]) * (double)(i % image->width);
        ink += 255.0 - image->grey[i];
    }
    return sum / ink;
}

static void test_slanted_strokes_become_upright(void **_)
{
    static const int slants[] = {30, -20, 0, 12};

    (void)_;
    FOR_EACH (k, slants) {
        bm_line_image image = {zeros(40 * 200, 1), 200, 40};
        double first = 0, last = 0, tangent = tan(slants[k] * 3.14159265 / 180);
        double middle = 0, moved = NAN;

        draw_bars(image.grey, 200, tangent);
        middle = middle_of(&image);
        assert_ok(bm_image_upright(&image, &moved));
        assert_int_equal(image.width, 200 + (size_t)ceil(fabs(tangent) * 40));
        assert_int_equal(image.height, 40);
        for (size_t x = 0; x < image.width; x++) { /* middles of ink */
            first += (255 - image.grey[x]) / 255.0 / 12 * (double)x;
            last += (255 - image.grey[39 * image.width + x]) / 255.0 / 12 *
                    (double)x;
        }
        if (fabs(first - last) > 0.5)
            fail_msg("%d degrees: %g above, %g below", slants[k], first, last);
        assert_true(fabs(middle_of(&image) - middle - moved) < 0.05);
        free(image.grey);
    }
}

/* What a shear adds is no lighter and no darker than the page was. */
static void test_corners_of_sheared_lines_are_paper(void **_)
{
    enum { PAPER = 200 };
    bm_line_image image = {zeros(40 * 200, 1), 200, 40};
    double moved = 0;

    (void)_;
    draw_bars(image.grey, 200, tan(0.4));
    for (size_t i = 0; i < 40 * 200; i++)
        image.grey[i] = (uint8_t)(image.grey[i] * PAPER / 255);
    assert_ok(bm_image_upright(&image, &moved));
    assert_true(image.width > 200);
    for (size_t y = 0; y < 40; y++) {
        assert_int_equal(image.grey[y * image.width], PAPER);
        assert_int_equal(image.grey[(y + 1) * image.width - 1], PAPER);
    }
    free(image.grey);
}

/* ---- frames --------------------------------------------------------------- */

/* Paper with a stroke at the third of seven columns. */
static void check_pad(int paper, int ink, bool right_to_left)
{
    enum { HIGH = 5, WIDE = 7, PAD = 2, ALL = 12 };
    uint8_t grey[HIGH * WIDE];
    bm_line_image line = {grey, WIDE, HIGH};
    bm_image_plan plan = {.height = HIGH,
                          .columns = 4, /* one column more than the 11 */
                          .pad = PAD,
                          .right_to_left = right_to_left,
                          .invert = BM_INVERT_AUTO};
    size_t stroke = PAD + (right_to_left ? WIDE - 1 - 2 : 2);
    bm_problem problem = {0};
    bm_frames x = {0};

    for (size_t i = 0; i < sizeof grey; i++)
        grey[i] = (uint8_t)(i % WIDE == 2 ? ink : paper);
    assert_ok(bm_image_frames(&plan, &line, &x, NULL, &problem));
    assert_int_equal(x.n * x.dim, ALL * HIGH);
    for (size_t i = 0; i < ALL * HIGH; i++) {
        int level = i / HIGH == stroke ? ink : paper;

        if (paper > ink)
            level = 255 - level;
        assert_true(near((double)x.x[i], level / 255.0, 1e-6));
    }
    bm_frames_free(&x);
}

static void test_columns_that_are_added_are_paper(void **_)
{
    (void)_;
    for (int turned = 0; turned < 2; turned++) {
        check_pad(255, 0, turned);
        check_pad(235, 20, turned);
        check_pad(30, 240, turned);
        check_pad(0, 255, turned);
    }
}

/* ---- packing -------------------------------------------------------------- */

/* The bytes of the shard of one line. */
static char *packed(const char *image, size_t *n)
{
    char manifest[100];

    snprintf(manifest, sizeof manifest,
             "{\"id\": \"a\", \"image\": \"%s\", \"text\": \"b\"}\n", image);
    write_text("one.jsonl", manifest);
    assert_code(
        BMUF("pack", "--images", "one.jsonl", "--out", "one", "--force"), 0);
    return slurp(in_folder("one/data-00000.bmuf.h5"), n);
}

static void test_all_formats_are_packed_to_the_same_bytes(void **_)
{
    static const char *const others[] = {"a.tif", "a.pgm"};
    size_t n = 0, m = 0;
    char *expected = NULL;

    (void)_;
    write_png("a.png");
    write_tiff("a.tif", "w", COMPRESSION_LZW, 1, 8, picture(), WIDTH);
    write_map("a.pgm", "P5 37 11 255\n", picture(), PIXELS);
    expected = packed("a.png", &n);
    FOR_EACH (k, others) {
        char *bytes = packed(others[k], &m);

        assert_int_equal(m, n);
        assert_memory_equal(bytes, expected, n);
        free(bytes);
    }
    free(expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_formats_have_the_same_pixels),
        cmocka_unit_test(test_bits_are_black_and_white),
        cmocka_unit_test(test_colours_become_brightness),
        cmocka_unit_test(test_photographs_are_read),
        cmocka_unit_test(test_surplus_bytes_of_a_photograph_are_skipped),
        cmocka_unit_test(test_photographs_are_turned_upright),
        cmocka_unit_test(test_scans_are_turned_upright),
        cmocka_unit_test(test_a_tiff_of_another_kind_is_called_so),
        cmocka_unit_test(test_grey_with_alpha_is_on_white),
        cmocka_unit_test(test_samples_with_a_sign_are_not_read),
        cmocka_unit_test(test_small_tiles_are_read),
        cmocka_unit_test(test_png_is_turned_upright),
        cmocka_unit_test(test_damaged_notes_of_a_camera_are_ignored),
        cmocka_unit_test(test_damaged_files_are_problems),
        cmocka_unit_test(test_sizes_are_checked_before_memory_is_taken),
        cmocka_unit_test(test_contrast_is_stretched),
        cmocka_unit_test(test_otsu_separates_two_groups),
        cmocka_unit_test(test_sauvola_follows_its_formula),
        cmocka_unit_test(test_slanted_strokes_become_upright),
        cmocka_unit_test(test_corners_of_sheared_lines_are_paper),
        cmocka_unit_test(test_columns_that_are_added_are_paper),
        cmocka_unit_test(test_all_formats_are_packed_to_the_same_bytes),
    };

    return cmocka_run_group_tests_name("images", tests, folder_make,
                                       folder_remove);
}
