/*
 * Pictures of bmuf show, pixel by pixel, beside the features in the shards and
 * what bm_augment makes of them.
 */
#include "io/augment/augment.h"
#include "io/shard/dataset.h"
#include "tests/support/command.h"
#include "tests/support/folder.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GAP = 4 }; /* pixels between sequences */

typedef struct picture {
    size_t width, height;
    uint8_t *rgb;
} picture;

static picture load(const char *name)
{
    png_image png = {.version = PNG_IMAGE_VERSION};
    picture p;

    assert_true(png_image_begin_read_from_file(&png, in_folder(name)));
    png.format = PNG_FORMAT_RGB;
    p = (picture){png.width, png.height, zeros(PNG_IMAGE_SIZE(png), 1)};
    assert_true(png_image_finish_read(&png, NULL, p.rgb, 0, NULL));
    return p;
}

static const uint8_t *at(const picture *p, size_t x, size_t y)
{
    assert_true(x < p->width && y < p->height);
    return p->rgb + 3 * (y * p->width + x);
}

/* The only sequence of a set, with its labels. */
typedef struct stored {
    bm_dataset *d;
    bm_sequences all;
    bm_augmented one;
    bm_layout layout;
} stored;

static stored open_set(const char *name)
{
    stored s = {0};

    assert_ok(bm_dataset_open(&s.d, in_folder(name)));
    assert_ok(bm_dataset_read(s.d, 0, &s.all));
    s.one = (bm_augmented){s.all.x, (size_t)s.all.frames[0], s.all.targets,
                           (size_t)s.all.labels[0]};
    s.layout =
        bm_layout_of(bm_shard_features_text(s.d->shards[0]), s.d->features);
    return s;
}

static void close_set(stored *s)
{
    bm_sequences_free(&s->all);
    bm_dataset_close(s->d);
}

/* A line of 24 pixels in height with a shade for each pixel. */
static void pack_line(void)
{
    enum { HEIGHT = 24, WIDTH = 50 };
    uint8_t grey[HEIGHT * WIDTH];
    png_image image = {.version = PNG_IMAGE_VERSION,
                       .width = WIDTH,
                       .height = HEIGHT,
                       .format = PNG_FORMAT_GRAY};

    for (size_t i = 0; i < sizeof grey; i++)
        grey[i] = (uint8_t)(128 + i * 37 % 128);
    assert_true(png_image_write_to_file(&image, in_folder("line.png"), 0, grey,
                                        0, NULL));
    write_text("line.jsonl", "{\"id\": \"p/7\", \"image\": \"line.png\", "
                             "\"text\": \"abc\"}\n");
    assert_code(BMUF("pack", "--images", "line.jsonl", "--out", "line",
                     "--force", "--set", "features.height=24", "--set",
                     "features.columns=4"),
                0);
}

/* Fails unless x [steps, 24] is drawn from row `top` on, 4 pixels for each. */
static void assert_ink(const picture *p, size_t top, const float *x,
                       size_t steps)
{
    for (size_t i = 0; i < p->width / 4; i++)
        for (size_t j = 0; j < 24; j++) {
            double want = i < steps ? 255 - 255 * (double)x[i * 24 + j] : 255;

            for (size_t k = 0; k < 4; k++) {
                const uint8_t *rgb = at(p, 4 * i + k, top + 4 * j + k);

                assert_true(fabs(rgb[0] - want) < 0.51);
                assert_true(rgb[1] == rgb[0] && rgb[2] == rgb[0]);
            }
        }
}

static void test_a_line_is_shown_as_ink_on_paper(void **_)
{
    outcome o;
    picture p;
    stored s;

    (void)_;
    pack_line();
    o = BMUF("show", "line", "p/7", "--set", "augment.shift=1");
    assert_code(o, 0);
    assert_says(o.out, "stored     13 frames of 96 features, 3 labels\n");
    assert_says(o.out, "wrote      p-7.show.png, 208 x 96 pixels\n");
    assert_null(strstr(o.out, "augmented"));
    p = load("p-7.show.png");
    s = open_set("line");
    assert_true(p.width == 4 * 4 * s.one.frames && p.height == 4 * 24);
    assert_ink(&p, 0, s.one.x, 4 * s.one.frames);
    free(p.rgb);
    close_set(&s);
}

/* In epochs 3 and 4 of a run with seed 8; a network that joins two frames. */
static void test_augmented_versions_are_those_of_epochs(void **_)
{
    bm_config *config = SET("augment.speed=0.8 0.9", "augment.slant=0.5",
                            "augment.elastic=0.03", "augment.cutouts=2");
    bm_augment_settings set;
    bm_augmenter *a = NULL;
    bm_fit any = {0};
    stored line;
    picture p;
    outcome o;

    (void)_;
    pack_line();
    write_text("show.ini", "[data]\ntrain = elsewhere\n[model]\nnet = stack:2 "
                           "linear\n[augment]\nspeed = 0.8 0.9\nslant = 0.5\n"
                           "elastic = 0.03\n[job]\nseed = 8\n");
    o = BMUF("show", "line", "p/7", "--config", "show.ini", "--set",
             "augment.cutouts=2", "--augmented", "2", "--epoch", "3", "--out",
             "two.png");
    assert_code(o, 0);
    assert_says(o.out, "augmented  speed 0.8 0.9, slant up to 0.5, elastic");
    p = load("two.png");
    line = open_set("line");
    assert_ok(bm_config_fill(config, "augment", bm_augment_options, &set));
    assert_ok(bm_augmenter_new(&a, &set, &line.layout, false));
    assert_int_equal(p.height, 3 * (96 + GAP) - GAP);
    assert_ink(&p, 0, line.one.x, 4 * line.one.frames);
    for (size_t k = 1; k <= 2; k++) {
        uint64_t key = bm_augment_key(8, (int64_t)k + 1, 0);
        size_t frames = bm_augment_frames(a, key, &line.one, &any);
        float *x = zeros(frames * 96, sizeof *x);
        char text[40];

        assert_ok(bm_augment(a, key, &line.one, frames, x, NULL));
        assert_ink(&p, k * (96 + GAP), x, 4 * frames);
        snprintf(text, sizeof text, "epoch %zu    %zu frames\n", k + 2, frames);
        assert_says(o.out, text);
        free(x);
    }
    bm_augmenter_free(a);
    bm_config_free(config);
    free(p.rgb);
    close_set(&line);
}

/* At four times the speed 13 frames are 3: enough for 3 labels, but not once a
 * network joins two frames. */
static void test_a_speed_that_does_not_fit_the_network_is_not_used(void **_)
{
    outcome o;

    (void)_;
    pack_line();
    write_text("joins.ini", "[data]\ntrain = elsewhere\n[model]\nnet = stack:2 "
                            "linear\n[augment]\nspeed = 4\n");
    o = BMUF("show", "line", "p/7", "--augmented", "1", "--set",
             "augment.speed=4");
    assert_code(o, 0);
    assert_says(o.out, "epoch 1    3 frames\n");
    o = BMUF("show", "line", "p/7", "--augmented", "1", "--config",
             "joins.ini");
    assert_code(o, 0);
    assert_says(o.out, "epoch 1    13 frames\n");
}

/* The lowest value of all is violet, the highest yellow, band 0 at the bottom. */
static void test_a_recording_is_shown_as_a_spectrogram(void **_)
{
    size_t low = 0, high = 0, D = 8;
    picture p;
    stored s;

    (void)_;
    assert_code(BMUF("show", "train", "train-0", "-o", "sound.png"), 0);
    p = load("sound.png");
    s = open_set("train");
    assert_int_equal(s.d->features, D);
    assert_int_equal(p.width, 13 * s.one.frames); /* of 8 bands: 104 pixels */
    assert_int_equal(p.height, 13 * D);
    for (size_t i = 0; i < s.one.frames * D; i++) {
        low = s.one.x[i] < s.one.x[low] ? i : low;
        high = s.one.x[i] > s.one.x[high] ? i : high;
    }
    assert_memory_equal(at(&p, low / D * 13, (D - 1 - low % D) * 13),
                        ((const uint8_t[]){68, 1, 84}), 3);
    assert_memory_equal(
        at(&p, high / D * 13 + 12, (D - 1 - high % D) * 13 + 12),
        ((const uint8_t[]){253, 231, 37}), 3);
    free(p.rgb);
    close_set(&s);
}

/* The mean difference of the colours of a row, of this height, to the first. */
static double distance(const picture *p, size_t row, size_t high)
{
    double sum = 0;

    for (size_t y = 0; y < high; y++)
        for (size_t x = 0; x < p->width; x++)
            for (size_t c = 0; c < 3; c++)
                sum +=
                    abs(at(p, x, y)[c] - at(p, x, row * (high + GAP) + y)[c]);
    return sum / (double)(3 * high * p->width);
}

/* Noise 80 dB below the recording cannot be seen; equally loud, it can. */
static void test_noise_is_shown(void **_)
{
    static const char *const snr[] = {"augment.snr=80", "augment.snr=0"};

    (void)_;
    assert_code(BMUF("pack", "--audio", "train.jsonl", "--out", "kept", "--set",
                     "features.mels=8", "--set", "shard.samples=yes"),
                0);
    FOR_EACH (k, snr) {
        outcome o =
            BMUF("show", "kept", "train-0", "-o", "noise.png", "--augmented",
                 "2", "--set", snr[k], "--set", "augment.noise_sound=white",
                 "--set", "augment.noise_sound_share=1");
        picture p = {0};
        size_t high = 13 * 8;

        assert_code(o, 0);
        assert_says(o.out, k == 0
                               ? "augmented  100 % with noise (white, 80 dB)"
                               : "augmented  100 % with noise (white, 0 dB)");
        p = load("noise.png");
        assert_int_equal(p.height, 3 * high + 2 * GAP);
        for (size_t row = 1; row < 3; row++)
            assert_true(k == 0 ? distance(&p, row, high) < 2
                               : distance(&p, row, high) > 10);
        free(p.rgb);
    }
    assert_fails(BMUF("show", "train", "train-0", "--augmented", "1", "--set",
                      "augment.reverb=made"),
                 78, "has only features", "shard.samples=yes");
}

static void test_what_cannot_be_shown_is_refused(void **_)
{
    (void)_;
    assert_fails(BMUF("show", "train", "nobody"), 66,
                 "train has no sequence 'nobody'; its first one is 'train-0'");
    assert_fails(BMUF("show", "nowhere", "a"), 66, "nowhere");
    assert_fails(BMUF("show", "train", "train-0", "--epoch", "2"), 64,
                 "--epoch is the first of the epochs of --augmented");
    assert_fails(BMUF("show", "train", "train-0", "--augmented", "2"), 64,
                 "--augmented needs settings of [augment]");
    assert_fails(BMUF("show", "train", "train-0", "--augmented", "2", "--set",
                      "augment.wrap=3"),
                 78, "augment.wrap is unknown; the nearest is augment.warp");
    assert_fails(BMUF("show", "train", "train-0", "--augmented", "999"), 64,
                 "--augmented");
    assert_int_equal(access(in_folder("train-0.show.png"), F_OK), -1);
    assert_fails(BMUF("show", "train", "train-0", "--out", "no/where.png"), 73,
                 "no/where.png");
    assert_fails(BMUF("show", "train", "train-0", "--out", "x.jpg"), 64,
                 "show: --out x.jpg: the picture is a PNG");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line_is_shown_as_ink_on_paper),
        cmocka_unit_test(test_augmented_versions_are_those_of_epochs),
        cmocka_unit_test(
            test_a_speed_that_does_not_fit_the_network_is_not_used),
        cmocka_unit_test(test_a_recording_is_shown_as_a_spectrogram),
        cmocka_unit_test(test_noise_is_shown),
        cmocka_unit_test(test_what_cannot_be_shown_is_refused),
    };

    return cmocka_run_group_tests_name("show", tests, make_corpus,
                                       folder_remove);
}
