/* The configurations of experiments/presets: their settings are valid, their
 * networks have as many weights as the layers of their sources, and as published
 * where a number is; and that for lines can be trained, test_idx.c has those for
 * images. */
#include "core/config/config.h"
#include "models/net.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void test_crnn_trains_a_block(void **state)
{
    static const char crnn[] = BMUF_PRESETS "/crnn.ini";
    program p;
    json_t *block = NULL;

    (void)state;
    RUN_PROGRAM(&p, "train", crnn, "--out", "crnn", "--set", "data.train=train",
                "--set", "data.dev=dev", "--set", "train.epochs=1", "--set",
                "train.strategy=local", "--set", "job.workers=1");
    assert_ended(&p, 0);
    assert_int_equal(events("crnn", "block"), 1);
    block = last_event("crnn", "block");
    assert_true(isfinite(number(block, "loss")) && number(block, "loss") > 0);
    assert_true(number(block, "bad_steps") == 0);
    assert_true(number(block, "left_out") == 0);
    json_decref(block);
}

static size_t learned(const bm_layer *l)
{
    size_t sum = 0;

    for (int i = 0; i < l->n_weights; i++)
        if (!l->weights[i].statistic)
            sum += l->weights[i].dim[0] * l->weights[i].dim[1] *
                   l->weights[i].dim[2] * l->weights[i].dim[3];
    return sum;
}

/* Of the network of a preset. */
static size_t weights_of(const char *path, size_t features, size_t classes)
{
    bm_config *config = NULL;
    bm_layer *l = NULL;
    size_t n = 0, sum = 0;

    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_read(config, path));
    assert_ok(bm_net_parse(bm_config_text(config, "model", "net"), &l, &n));
    for (size_t k = 0; k < n; k++) {
        l[k].n_in = k > 0 ? l[k - 1].n_out : features;
        l[k].channels_in = k > 0 ? l[k - 1].channels : 0;
        l[k].n_out = k + 1 == n ? classes : 0;
        assert_ok(l[k].ops->plan(&l[k]));
        sum += learned(&l[k]);
    }
    free(l);
    bm_config_free(config);
    return sum;
}

/* By the formulas of a textbook. */
#define BLSTM(in, cells)  (2 * 4 * (cells) * ((in) + (cells) + 1))
#define LINEAR(in, out)   (((in) + 1) * (out))
#define CONV(in, w, h, n) LINEAR((in) * (w) * (h), n)
#define NORM(d)           (2 * (d))
#define FEED(d)           (NORM(d) + LINEAR(d, 4 * (d)) + LINEAR(4 * (d), d))
#define ATTENTION(d)      (NORM(d) + 4 * LINEAR(d, d) + (d) * (d) + 2 * (d))
#define MIX(d, frames)                                                         \
    (NORM(d) + LINEAR(d, 2 * (d)) + ((frames) + 1) * (d) + NORM(d) +           \
     LINEAR(d, d))
#define CONFORMER(d, frames)                                                   \
    (2 * FEED(d) + ATTENTION(d) + MIX(d, frames) + NORM(d))

/* Of the image networks, each with batch normalisation: a convolution; a block of
 * ResNet with its two, and one that doubles the channels; and an inception module
 * of GoogLeNet's table: 1x1; 3x3 and its reduction; 5x5 and its; behind the
 * pool. */
#define STEP(in, w, h, n) (CONV(in, w, h, n) + NORM(n))
#define BLOCK(n)          (2 * STEP(n, 3, 3, n))
#define TWICE(n)                                                               \
    (STEP(n, 3, 3, 2 * (n)) + STEP(2 * (n), 3, 3, 2 * (n)) +                   \
     CONV(n, 1, 1, 2 * (n)))
#define INCEPTION(in, one, three3, three, five5, five, pooled)                 \
    (STEP(in, 1, 1, one) + STEP(in, 1, 1, three3) +                            \
     STEP(three3, 3, 3, three) + STEP(in, 1, 1, five5) +                       \
     STEP(five5, 5, 5, five) + STEP(in, 1, 1, pooled))

/* Features and classes are those of the sources, else those that README.md says;
 * `millions` is what the source prints: Miao and others, Graves and others, Seide,
 * Li and Yu, kraken's program, He and others. */
static const struct {
    const char *name;
    size_t features, classes, weights;
    double millions, digit; /* 0: nothing is published; the last digit's unit */
} presets[] = {
    {"eesen-blstm", 120, 73,
     BLSTM(120, 320) + 3 * BLSTM(640, 320) + LINEAR(640, 73), 8.5, 0.1},
    {"timit-blstm", 123, 62,
     BLSTM(123, 250) + 2 * BLSTM(500, 250) + LINEAR(500, 62), 3.8, 0.1},
    {"dnn-7x2048", 39, 9304,
     LINEAR(11 * 39, 2048) + 6 * LINEAR(2048, 2048) + LINEAR(2048, 9304), 45.1,
     0.1},
    {"kaldi-tdnn", 40, 5000,
     LINEAR(5 * 40, 1280) + 3 * LINEAR(2 * 1280, 1280) + LINEAR(1280, 1280) +
         5 * 2 * 1280 + LINEAR(1280, 5000),
     0, 0},
    /* 10.3 million are with the decoder of a transducer */
    {"conformer-ctc", 80, 1024,
     CONV(1, 3, 3, 144) + CONV(144, 3, 3, 144) + LINEAR(144 * 19, 144) +
         16 * CONFORMER(144, 32) + LINEAR(144, 1024),
     0, 0},
    {"pylaia", 80, 90,
     CONV(1, 7, 7, 12) + CONV(12, 5, 5, 24) + CONV(24, 3, 3, 48) +
         CONV(48, 3, 3, 48) + BLSTM(48 * 10, 256) + 2 * BLSTM(512, 256) +
         LINEAR(512, 90),
     0, 0},
    {"kraken", 120, 90,
     CONV(1, 13, 3, 32) + CONV(32, 13, 3, 32) + CONV(32, 9, 3, 64) +
         CONV(64, 9, 3, 64) + BLSTM(64 * 15, 200) + 2 * BLSTM(400, 200) +
         LINEAR(400, 90),
     4.0, 0.1},
    {"crnn", 48, 90,
     STEP(1, 3, 3, 16) + STEP(16, 3, 3, 32) + STEP(32, 3, 3, 48) +
         STEP(48, 3, 3, 64) + STEP(64, 3, 3, 80) + BLSTM(80 * 6, 256) +
         2 * BLSTM(512, 256) + LINEAR(512, 90),
     0, 0},
    {"resnet-small", 32, 10,
     STEP(1, 3, 3, 16) + 3 * BLOCK(16) + TWICE(16) + 2 * BLOCK(32) + TWICE(32) +
         2 * BLOCK(64) + LINEAR(64, 10),
     0.27, 0.01},
    {"googlenet-small", 32, 10,
     STEP(1, 3, 3, 64 / 4) + STEP(64 / 4, 3, 3, 192 / 4) +
         INCEPTION(192 / 4, 64 / 4, 96 / 4, 128 / 4, 16 / 4, 32 / 4, 32 / 4) +
         INCEPTION(256 / 4, 128 / 4, 128 / 4, 192 / 4, 32 / 4, 96 / 4, 64 / 4) +
         INCEPTION(480 / 4, 192 / 4, 96 / 4, 208 / 4, 16 / 4, 48 / 4, 64 / 4) +
         LINEAR(512 / 4, 10),
     0, 0},
    {"alexnet-small", 32, 10,
     STEP(1, 5, 5, 96 / 4) + STEP(96 / 4, 5, 5, 256 / 4) +
         STEP(256 / 4, 3, 3, 384 / 4) + STEP(384 / 4, 3, 3, 384 / 4) +
         STEP(384 / 4, 3, 3, 256 / 4) + STEP(256 / 4, 4, 4, 4096 / 8) +
         LINEAR(4096 / 8, 4096 / 8) + NORM(4096 / 8) + LINEAR(4096 / 8, 10),
     0, 0},
};

static void test_networks_have_the_weights_of_their_sources(void **state)
{
    char path[1024];

    (void)state;
    FOR_EACH (i, presets) {
        snprintf(path, sizeof path, "%s/%s.ini", BMUF_PRESETS, presets[i].name);
        assert_int_equal(
            weights_of(path, presets[i].features, presets[i].classes),
            presets[i].weights);
    }
}

static void test_networks_have_the_published_size(void **state)
{
    size_t published = 0;

    (void)state;
    FOR_EACH (i, presets) {
        double millions = (double)presets[i].weights / 1e6;

        if (presets[i].digit == 0)
            continue;
        if (fabs(millions - presets[i].millions) >= presets[i].digit)
            fail_msg("%s: %.3f million weights, but %g are published",
                     presets[i].name, millions, presets[i].millions);
        published++;
    }
    assert_int_equal(published, 5);
}

/* Those for images, "-small", do not fit the recordings here: test_idx.c. */
static void test_settings_are_valid(void **state)
{
    char path[1024];

    (void)state;
    FOR_EACH (i, presets) {
        program p;

        if (strstr(presets[i].name, "-small") != NULL)
            continue;
        snprintf(path, sizeof path, "%s/%s.ini", BMUF_PRESETS, presets[i].name);
        RUN_PROGRAM(&p, "explain", path, "--set", "data.train=train", "--set",
                    "data.dev=dev", "--set", "model.loss=ctc");
        assert_ended(&p, 0);
    }
}

static void test_every_preset_is_in_the_table(void **state)
{
    DIR *folder = opendir(BMUF_PRESETS);
    size_t files = 0;

    (void)state;
    assert_non_null(folder);
    for (struct dirent *e = readdir(folder); e != NULL; e = readdir(folder)) {
        size_t n = strlen(e->d_name);
        bool found = false;

        if (n < 4 || strcmp(e->d_name + n - 4, ".ini") != 0)
            continue;
        FOR_EACH (i, presets)
            found = found || (strlen(presets[i].name) == n - 4 &&
                              strncmp(presets[i].name, e->d_name, n - 4) == 0);
        if (!found)
            fail_msg("%s is not tested", e->d_name);
        files++;
    }
    closedir(folder);
    assert_int_equal(files, sizeof presets / sizeof presets[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crnn_trains_a_block),
        cmocka_unit_test(test_networks_have_the_weights_of_their_sources),
        cmocka_unit_test(test_networks_have_the_published_size),
        cmocka_unit_test(test_settings_are_valid),
        cmocka_unit_test(test_every_preset_is_in_the_table),
    };
    return cmocka_run_group_tests_name("presets", tests, digits_set_up,
                                       digits_tear_down);
}
