/* The configurations of experiments/presets: their settings are valid, their
 * networks have as many weights as the published ones, and that for lines can be
 * trained; test_idx.c has those for images. */
#include "core/config.h"
#include "models/net.h"
#include "tests/support/folder.h"
#include "tests/support/results.h"
#include "tests/support/speech.h"
#include "tests/support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

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

/* With features and classes of the published ones. Seide, Li and Yu count 45.1
 * million, Graves and others 3.8, kraken 4.0; Gulati and others 10.3 with the
 * decoder of a transducer. */
static void test_networks_have_the_published_size(void **state)
{
    static const struct {
        const char *name;
        size_t features, classes, weights;
    } presets[] = {
        {"eesen-blstm", 120, 73,
         BLSTM(120, 320) + 3 * BLSTM(640, 320) + LINEAR(640, 73)},
        {"timit-blstm", 123, 62,
         BLSTM(123, 250) + 2 * BLSTM(500, 250) + LINEAR(500, 62)},
        {"dnn-7x2048", 39, 9304,
         LINEAR(11 * 39, 2048) + 6 * LINEAR(2048, 2048) + LINEAR(2048, 9304)},
        {"kaldi-tdnn", 40, 5000,
         LINEAR(5 * 40, 1280) + 3 * LINEAR(2 * 1280, 1280) +
             LINEAR(1280, 1280) + 5 * 2 * 1280 + LINEAR(1280, 5000)},
        {"conformer-ctc", 80, 1024,
         CONV(1, 3, 3, 144) + CONV(144, 3, 3, 144) + LINEAR(144 * 19, 144) +
             16 * CONFORMER(144, 32) + LINEAR(144, 1024)},
        {"pylaia", 80, 90,
         CONV(1, 7, 7, 12) + CONV(12, 5, 5, 24) + CONV(24, 3, 3, 48) +
             CONV(48, 3, 3, 48) + BLSTM(48 * 10, 256) + 2 * BLSTM(512, 256) +
             LINEAR(512, 90)},
        {"kraken", 120, 90,
         CONV(1, 13, 3, 32) + CONV(32, 13, 3, 32) + CONV(32, 9, 3, 64) +
             CONV(64, 9, 3, 64) + BLSTM(64 * 15, 200) + 2 * BLSTM(400, 200) +
             LINEAR(400, 90)},
    };
    char path[1024];

    (void)state;
    FOR_EACH (i, presets) {
        program p;

        snprintf(path, sizeof path, "%s/%s.ini", BMUF_PRESETS, presets[i].name);
        assert_int_equal(
            weights_of(path, presets[i].features, presets[i].classes),
            presets[i].weights);
        RUN_PROGRAM(&p, "explain", path, "--set", "data.train=train", "--set",
                    "data.dev=dev", "--set", "model.loss=ctc");
        assert_ended(&p, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crnn_trains_a_block),
        cmocka_unit_test(test_networks_have_the_published_size),
    };
    return cmocka_run_group_tests_name("presets", tests, digits_set_up,
                                       digits_tear_down);
}
