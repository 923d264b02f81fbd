/*
 * A class for each image: IDX files are packed, broken ones refused, and a
 * residual network learns to tell images apart.
 */
#include "io/import/importer.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum { ROWS = 7, COLUMNS = 6, PIXELS = ROWS * COLUMNS, CLASSES = 12 };

/* A header of IDX: bytes, in `rank` dimensions. */
static size_t write_head(unsigned char *out, size_t rank, const size_t *dim)
{
    memcpy(out, (unsigned char[]){0, 0, 8, (unsigned char)rank}, 4);
    for (size_t i = 0; i < rank; i++)
        for (size_t k = 0; k < 4; k++)
            out[4 + 4 * i + k] = (unsigned char)(dim[i] >> (24 - 8 * k));
    return 4 + 4 * rank;
}

/* A pixel of image i: class c has c % 4 bright rows and c / 4 bright columns;
 * other pixels are dark noise. */
static unsigned char pixel(size_t i, size_t h, size_t t)
{
    size_t c = i * 5 % CLASSES;
    bool bright =
        (h % 2 == 1 && h / 2 < c % 4) || (t % 3 == 1 && t / 3 < c / 4);

    return (unsigned char)((bright ? 180 : 0) +
                           mix(i * PIXELS + h * 9 + t) % 70);
}

/* Writes n images and classes, NAME-images-idx3-ubyte and so on; the classes
 * with gzip. */
static void write_set(const char *name, size_t n)
{
    size_t size = 16 + n * PIXELS, at = 0;
    unsigned char *x = zeros(size, 1);
    char path[100];
    gzFile file = NULL;
    FILE *plain = NULL;

    at = write_head(x, 3, (size_t[]){n, ROWS, COLUMNS});
    for (size_t k = 0; k < n * PIXELS; k++)
        x[at + k] = pixel(k / PIXELS, k % PIXELS / COLUMNS, k % COLUMNS);
    snprintf(path, sizeof path, "%s-images-idx3-ubyte.gz", name);
    plain = fopen(in_folder(path), "wb"); /* plain in spite of its name */
    assert_non_null(plain);
    assert_int_equal(fwrite(x, 1, size, plain), size);
    assert_int_equal(fclose(plain), 0);
    at = write_head(x, 1, (size_t[]){n});
    for (size_t i = 0; i < n; i++)
        x[at + i] = (unsigned char)(i * 5 % CLASSES);
    snprintf(path, sizeof path, "%s-labels-idx1-ubyte.gz", name);
    file = gzopen(in_folder(path), "wb");
    assert_int_equal(gzwrite(file, x, (unsigned)(at + n)), at + n);
    assert_int_equal(gzclose(file), Z_OK);
    free(x);
}

static int make_sets(void **state)
{
    if (folder_make(state) != 0)
        return 1;
    write_set("train", 480);
    write_set("test", 240);
    write_set("few", 16);
    return 0;
}

static void test_a_frame_is_a_column_and_a_label_the_class(void **_)
{
    bm_importer *from = NULL;
    bm_config *config = NULL;
    bm_item item = {0};
    outcome o = BMUF("pack", "--idx", "train-images-idx3-ubyte.gz", "--out",
                     "padded", "--set", "features.pad=2");

    (void)_;
    assert_code(o, 0);
    assert_non_null(strstr(o.out, "480 sequences, 4800 frames, 480 labels, 13 "
                                  "classes"));
    assert_code(
        BMUF("pack", "--idx", "train-images-idx3-ubyte.gz", "--out", "train"),
        0);
    assert_code(BMUF("pack", "--idx", "test-images-idx3-ubyte.gz", "--labels",
                     "test-labels-idx1-ubyte.gz", "--out", "test", "--vocab",
                     "train"),
                0);
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "features.pad=2"));
    assert_ok(bm_importer_open(
        &from, "idx", config,
        &(bm_import_source){.path = in_folder("train-images-idx3-ubyte.gz")}));
    for (size_t i = 0; i < 3; i++)
        assert_ok(from->ops->next(from, &item));
    assert_string_equal(item.id, "000002");
    assert_string_equal(item.text, "10");
    assert_true(item.frames == COLUMNS + 4 && item.features == ROWS + 4);
    for (size_t k = 0; k < item.frames * item.features; k++) {
        size_t t = k / (ROWS + 4) - 2, h = k % (ROWS + 4) - 2;
        bool inside = t < COLUMNS && h < ROWS; /* -1 is a large number */

        assert_true(item.x[k] ==
                    (inside ? (float)(pixel(2, h, t) * (1.0 / 255)) : 0));
    }
    bm_importer_close(from);
    bm_config_free(config);
}

/* 12 classes: guessing leaves 92 % of errors. Words are classes here, so word
 * errors are the same. */
static void test_a_residual_network_learns_a_class_for_each_image(void **_)
{
    json_t *result = NULL;
    outcome o;

    (void)_;
    write_text("net.ini",
               "[data]\n"
               "train = train\n"
               "[model]\n"
               "net = conv:8,3x3 batchnorm relu\n"
               "  residual( conv:8,3x3 batchnorm relu conv:8,3x3 batchnorm )\n"
               "  relu residual( conv:16,3x3,stride:2x2 batchnorm |\n"
               "                 conv:16,1x1,stride:2x2 ) relu\n"
               "  branches( pool:all | pool:all,mean ) linear\n"
               "[train]\n"
               "epochs = 4\n"
               "rate = 0.1\n"
               "[schedule]\n"
               "kind = constant\n"
               "[batch]\n"
               "sequences = 16\n"
               "[job]\n"
               "workers = 2\n"
               "threads = 1\n"
               "[block]\n"
               "steps = 5\n");
    assert_code(BMUF("train", "net.ini", "--out", "run"), 0);
    o = BMUF("eval", "run/model.safetensors", "test", "--json");
    assert_code(o, 0);
    result = parse_json(o.out);
    assert_int_equal(json_integer_value(json_object_get(result, "sequences")),
                     240);
    assert_true(json_real_value(json_object_get(result, "ler")) < 0.1);
    json_decref(result);
    o = BMUF("explain", "net.ini");
    assert_code(o, 0);
    assert_non_null(strstr(o.out, "residual("));
    assert_non_null(strstr(o.out, "3.conv"));
}

/* Pixels are padded to about 28 x 28. The loss of one step is the first weights',
 * and is not judged. */
static void test_presets_for_images_train_a_block(void **_)
{
    static const char *const presets[] = {BMUF_PRESETS "/alexnet-small.ini",
                                          BMUF_PRESETS "/googlenet-small.ini",
                                          BMUF_PRESETS "/resnet-small.ini"};

    (void)_;
    assert_code(BMUF("pack", "--idx", "few-images-idx3-ubyte.gz", "--out",
                     "few", "--set", "features.pad=10"),
                0);
    FOR_EACH (i, presets) {
        char run[20];
        json_t *block = NULL;

        snprintf(run, sizeof run, "preset-%zu", i);
        assert_code(BMUF("train", presets[i], "--out", run, "--set",
                         "data.train=few", "--set", "train.epochs=1", "--set",
                         "train.strategy=local", "--set", "job.workers=1",
                         "--set", "job.threads=1", "--set", "train.diverged=0"),
                    0);
        assert_int_equal(events(run, "block"), 1);
        block = last_event(run, "block");
        assert_true(isfinite(number(block, "loss")));
        assert_true(number(block, "left_out") == 0);
        json_decref(block);
    }
}

static void test_broken_files_are_refused_in_one_line(void **_)
{
    static const unsigned char
        short_head[] = {0, 0, 8, 3, 0, 0},
        other[] = {0, 0, 13, 3, 0, 0, 0, 1},
        huge[] = {0,    0,    8,    3,    0xff, 0xff, 0xff, 0xff,
                  0xff, 0xff, 0xff, 0xff, 0,    0,    0,    2},
        two[] = {0, 0, 8, 1, 0, 0, 0, 2, 1, 2},
        cut[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2, 9, 9, 9},
        more[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9, 9},
        good[] = {0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1, 9, 9},
        few[] = {0, 0, 8, 1, 0, 0, 0, 2, 1},
        zero[] = {0, 0, 8, 3, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1},
        many[] = {0, 0, 8, 1, 0xff, 0xff, 0xff, 0xff, 1};
    static const struct {
        const unsigned char *images;
        size_t size;
        const unsigned char *labels;
        size_t labels_size;
        int code;
        const char *message;
    } cases[] = {
        {short_head, sizeof short_head, two, sizeof two, 65,
         "x-images: ends in its header"},
        {other, sizeof other, two, sizeof two, 65,
         "x-images is no IDX file of bytes in 3 dimensions"},
        {two, sizeof two, two, sizeof two, 65, "x-images is no IDX file"},
        {cut, sizeof cut, cut, sizeof cut, 65,
         "x-labels is no IDX file of bytes in 1 dimension"},
        {huge, sizeof huge, many, sizeof many, 65,
         "x-images: images of 4294967295 x 2 pixels; 1 to 4096"},
        {huge, sizeof huge, two, sizeof two, 65,
         "has 4294967295 images, but x-labels has 2 classes"},
        {cut, sizeof cut, two, sizeof two, 65, "x-images ends in image 2 of 2"},
        {good, sizeof good, few, sizeof few, 65,
         "x-labels ends in class 2 of 2"},
        {more, sizeof more, two, sizeof two, 65,
         "x-images has more bytes than the 2 images"},
        {zero, sizeof zero, two, sizeof two, 65, "x-images: it has no images"},
    };

    (void)_;
    FOR_EACH (i, cases) {
        FILE *x = fopen(in_folder("x-images"), "wb"),
             *y = fopen(in_folder("x-labels"), "wb");

        assert_true(x != NULL && y != NULL);
        fwrite(cases[i].images, 1, cases[i].size, x);
        fwrite(cases[i].labels, 1, cases[i].labels_size, y);
        assert_int_equal(fclose(x) + fclose(y), 0);
        assert_fails(BMUF("pack", "--idx", "x-images", "--out", "broken"),
                     cases[i].code, cases[i].message);
    }
    assert_fails(BMUF("pack", "--idx", "none-images", "--out", "b"), 66,
                 "cannot open none-images");
    assert_fails(BMUF("pack", "--idx", "net.ini", "--out", "b"), 65,
                 "net.ini is no IDX file of bytes in 3 dimensions");
    write_bytes("x", more, sizeof more);
    assert_fails(BMUF("pack", "--idx", "x", "--out", "b"), 64, "--labels FILE");
    assert_fails(
        BMUF("pack", "--audio", "a.jsonl", "--labels", "l", "--out", "b"), 64,
        "--labels requires --idx");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_frame_is_a_column_and_a_label_the_class),
        cmocka_unit_test(test_a_residual_network_learns_a_class_for_each_image),
        cmocka_unit_test(test_presets_for_images_train_a_block),
        cmocka_unit_test(test_broken_files_are_refused_in_one_line),
    };

    return cmocka_run_group_tests_name("idx", tests, make_sets, folder_remove);
}
