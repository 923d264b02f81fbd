/*
 * Single layers: derivatives by weights and inputs against differences of L,
 * the sum of dy y with dy fixed. On the backend that the first argument names.
 */
#include "models/layers/recurrent.h"
#include "models/model.h"
#include "tests/support/reference/layer_rig.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 5, B = 4, D = 3, N_X = T * B * D };

static const char *backend = "cpu";

/* Out of order, one empty, one of one frame. */
static const int32_t lengths[B] = {3, 5, 0, 1};

static rig set_up(const char *net, uint64_t seed, bool training)
{
    rig r = rig_open(net, (bm_extent){T, B, lengths}, D, 0, seed);

    r.pass.training = training;
    return r;
}

/* Numbers are at least 0.1 from the corner of relu, more than a difference
 * steps. The error, truncation and rounding together, was at most 2e-5 for
 * seeds 1 to 120; with two steps instead of three it was 5e-4, of blstm with
 * seed 22. */
static void check_layer(const char *net, bool training)
{
    static const uint64_t seeds[] = {3, 22, 69};

    FOR_EACH (i, seeds) {
        rig r;

        if (i > 0 && strcmp(backend, "cpu") != 0)
            return; /* the emulated device is slow */
        r = set_up(net, seeds[i], training);

        rig_check(&r, 1e-4);
        rig_close(&r);
    }
}

static void test_gradients_match_differences(void **state)
{
    static const char *const nets[] = {"linear:5",
                                       "relu",
                                       "tanh",
                                       "sigmoid",
                                       "lstm:4",
                                       "blstm:3",
                                       "gru:4",
                                       "bgru:3",
                                       "lstm:5,project:2",
                                       "blstm:4,project:3",
                                       "stack:1",
                                       "stack:2",
                                       "stack:3",
                                       "stack:7",
                                       "leaky_relu",
                                       "subsample:2",
                                       "subsample:3",
                                       "layernorm",
                                       "instancenorm",
                                       "splice:0",
                                       "splice:-1..1",
                                       "splice:-4,-2,0,3",
                                       "splice:2,7",
                                       "swish",
                                       "gelu",
                                       "scale:-0.5",
                                       "depthwise:3",
                                       "depthwise:4",
                                       "depthwise:9",
                                       "depthwise:2,stride:3",
                                       "attention:1",
                                       "attention:3"};

    (void)state;
    FOR_EACH (i, nets)
        check_layer(nets[i], false);
    check_layer("dropout:0.4", true);
    check_layer("dropout:0.4", false);
    check_layer("lstm:4,weight_dropout:0.4", true);
    check_layer("blstm:3,weight_dropout:0.4", true);
    check_layer("blstm:4,weight_dropout:0.5,project:3", true);
    check_layer("gru:4,weight_dropout:0.4", true);
    check_layer("bgru:3,weight_dropout:0.4", true);
}

static void test_stack_concatenates_frames(void **state)
{
    rig r = set_up("stack:2", 3, false);
    float *y = NULL;

    (void)state;
    (void)rig_outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    assert_int_equal(r.n_y, 3 * B * 2 * D);
    for (size_t t = 0; t < 6; t++)
        for (size_t b = 0; b < B; b++)
            for (size_t d = 0; d < D; d++)
                assert_true(y[(t / 2 * B + b) * 2 * D + t % 2 * D + d] ==
                            (t < T ? r.x_host[(t * B + b) * D + d] : 0));
    free(y);
    rig_close(&r);
}

static void test_subsample_keeps_the_first_of_each_group(void **state)
{
    rig r = set_up("subsample:3", 3, false);
    float *y = NULL;

    (void)state;
    (void)rig_outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    assert_int_equal(r.n_y, 2 * B * D);
    assert_memory_equal(y, r.x_host, B * D * sizeof *y);
    assert_memory_equal(y + B * D, r.x_host + 3 * B * D, B * D * sizeof *y);
    free(y);
    rig_close(&r);
}

/* Frames outside of the sequence are zeros, also in padding. */
static void test_splice_takes_frames_at_distances(void **state)
{
    static const int distances[] = {-3, -1, 0, 2};
    rig r = set_up("splice:-3,-1..0,2", 3, false);
    float *y = NULL;

    (void)state;
    (void)rig_outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    assert_int_equal(r.n_y, T * B * 4 * D);
    for (int t = 0; t < T; t++)
        for (int b = 0; b < B; b++)
            for (int k = 0; k < 4; k++)
                for (int d = 0; d < D; d++) {
                    int at = t + distances[k];
                    bool there = t < lengths[b] && at >= 0 && at < lengths[b];
                    float x = there ? r.x_host[(at * B + b) * D + d] : 0;

                    assert_true(y[((t * B + b) * 4 + k) * D + d] == x);
                }
    free(y);
    rig_close(&r);
}

static void test_splice_refuses_what_are_no_distances(void **state)
{
    static const char *const nets[][2] = {
        {"splice linear", "word 1 'splice': the distances are missing"},
        {"relu splice:-2,x linear", "word 2 'splice:-2,x': 'x' is not a"},
        {"splice:1025 linear", "'1025' is not a distance of -1024 to 1024"},
        {"splice:0.. linear", "'0..' is not"},
        {"splice:-2..2..3 linear", "'-2..2..3' is not"},
        {"splice:3,-3 linear", "distances must rise"},
        {"splice:2..1 linear", "distances must rise"},
        {"splice:1,1 linear", "distances must rise"},
        {"splice:0, linear", "'' is not a distance"},
        {"splice:-200..200 linear", "more than 256 frames"},
    };

    (void)state;
    FOR_EACH (i, nets) {
        bm_model_settings set = {nets[i][0], "ctc", "skip"};
        bm_model_shape shape = {6, 4, 1};
        bm_model *m = NULL;

        assert_int_equal(bm_model_new(&m, &set, &shape, cpu, 1), BM_ERR_CONFIG);
        if (strstr(bm_last_error(), nets[i][1]) == NULL)
            fail_msg("%s", bm_last_error());
    }
}

/* Its memory grows with the square of the frames. */
static void test_attention_refuses_sequences_that_are_too_long(void **state)
{
    enum { LONG = BM_LAYER_ATTENDED + 1 };
    static const int32_t frames[1] = {LONG};
    bm_model_settings set = {"attention:1 linear", "ctc", "skip"};
    bm_model_shape shape = {1, 4, 1};
    float *x = zeros(LONG, sizeof *x);
    bm_backend *be = NULL;
    bm_model *m = NULL;
    bm_batch b = {.extent = {LONG, 1, frames}};

    (void)state;
    assert_ok(bm_backend_open(&be, backend, 0));
    assert_ok(bm_model_new(&m, &set, &shape, be, 1));
    b.x = (bm_tensor){place(be, x, LONG), 3, {LONG, 1, 1, 1}};
    bm_model_forward(m, &b);
    assert_int_equal(bm_sync(be), BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(),
                           "layer 0.attention: a sequence of 4097 frames, at "
                           "most 4096 are possible"));
    bm_free(be, b.x.data);
    bm_model_free(m);
    bm_backend_close(be);
    free(x);
}

/* A mini-batch without frames: gradients are zero. */
static void test_attention_of_nothing_is_nothing(void **state)
{
    static const int32_t none[2] = {0, 0};
    rig r = rig_open("attention:2", (bm_extent){0, 2, none}, 4, 0, 3);
    float *g = NULL;

    (void)state;
    (void)rig_outcome(&r);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    g = fetch(cpu, r.l->g, r.n_w);
    assert_int_equal(r.n_w, 5 * 4 * 4 + 6 * 4);
    for (size_t i = 0; i < r.n_w; i++)
        assert_true(g[i] == 0);
    free(g);
    rig_close(&r);
}

static void test_dropout_is_active_in_training_only(void **state)
{
    rig r = set_up("dropout:0.5", 3, false);
    float *y = NULL;
    int zeros = 0;

    (void)state;
    (void)rig_outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    assert_memory_equal(y, r.x_host, N_X * sizeof *y);
    free(y);
    r.pass.training = true;
    (void)rig_outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    for (size_t i = 0; i < N_X; i++) {
        assert_true(y[i] == 0 || near(y[i], 2 * r.x_host[i], 1e-6));
        zeros += y[i] == 0 && r.x_host[i] != 0;
    }
    assert_true(zeros > 0);
    free(y);
    rig_close(&r);
}

/* A second layer with the same input, weights and slopes of outputs. */
static rig set_up_like(const char *net, const rig *r)
{
    rig s = set_up(net, 3, r->pass.training);

    assert_int_equal(s.n_w, r->n_w);
    assert_int_equal(s.n_y, r->n_y);
    memcpy(s.x_host, r->x_host, r->n_x * sizeof *s.x_host);
    memcpy(s.w_host, r->w_host, r->n_w * sizeof *s.w_host);
    memcpy(s.slope, r->slope, r->n_y * sizeof *s.slope);
    bm_put(cpu, s.dy.data, s.slope, s.n_y);
    return s;
}

static void check_same(const float *a, const float *b, size_t n)
{
    float *x = fetch(cpu, a, n), *y = fetch(cpu, b, n);

    assert_memory_equal(x, y, n * sizeof *x);
    free(x);
    free(y);
}

/* Three of four weights are zero, the others four times as large; so are the
 * slopes. 1 / (1 - 3/4) = 4 is exact. */
static void check_weight_dropout(const char *plain)
{
    char net[64];
    rig r, s;
    bm_recurrent v;
    size_t from = 0, n = 0, dropped = 0;
    float *g = NULL, *h = NULL;

    snprintf(net, sizeof net, "%s,weight_dropout:0.75", plain);
    r = set_up(net, 3, true);
    s = set_up_like(plain, &r);
    v = bm_layer_recurrent(r.l);
    from = (size_t)(v.wh - v.wx);
    n = (size_t)(v.b - v.wh);
    for (size_t i = 0; i < n; i++)
        s.w_host[from + i] *= bm_rng_at(r.pass.key, i) >> 62 < 3 ? 0 : 4;
    assert_true(rig_outcome(&r) == rig_outcome(&s));
    check_same(r.y.data, s.y.data, r.n_y);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    s.l->ops->backward(s.l, &s.pass, s.x, s.y, s.dy, s.dx);
    check_same(r.dx.data, s.dx.data, r.n_x);
    g = fetch(cpu, r.l->g, r.n_w);
    h = fetch(cpu, s.l->g, s.n_w);
    for (size_t i = 0; i < r.n_w; i++) {
        bool zero = i >= from && i < from + n && s.w_host[i] == 0;

        assert_true(zero ? g[i] == 0
                         : g[i] == (i >= from && i < from + n ? 4 : 1) * h[i]);
        dropped += zero;
    }
    assert_true(fabs((double)dropped - 0.75 * (double)n) <
                4 * sqrt(0.1875 * (double)n));
    free(g);
    free(h);
    rig_close(&r);
    rig_close(&s);
}

static void test_weight_dropout_masks_the_recurrent_weights(void **state)
{
    static const char *const nets[] = {"lstm:20", "blstm:16", "gru:20",
                                       "bgru:16", "blstm:16,project:5"};

    (void)state;
    FOR_EACH (i, nets)
        check_weight_dropout(nets[i]);
}

static void test_weight_dropout_is_active_in_training_only(void **state)
{
    rig r = set_up("bgru:7,weight_dropout:0.5", 3, false);
    rig s = set_up_like("bgru:7", &r);
    double without = rig_outcome(&s);

    (void)state;
    assert_true(rig_outcome(&r) == without);
    check_same(r.y.data, s.y.data, r.n_y);
    r.pass.training = true;
    assert_true(rig_outcome(&r) != without);
    rig_close(&r);
    rig_close(&s);
}

static int open_backend(void **state)
{
    (void)state;
    assert_ok(bm_backend_open(&cpu, backend, 0));
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_match_differences),
        cmocka_unit_test(test_stack_concatenates_frames),
        cmocka_unit_test(test_subsample_keeps_the_first_of_each_group),
        cmocka_unit_test(test_splice_takes_frames_at_distances),
        cmocka_unit_test(test_splice_refuses_what_are_no_distances),
        cmocka_unit_test(test_attention_refuses_sequences_that_are_too_long),
        cmocka_unit_test(test_attention_of_nothing_is_nothing),
        cmocka_unit_test(test_dropout_is_active_in_training_only),
        cmocka_unit_test(test_weight_dropout_masks_the_recurrent_weights),
        cmocka_unit_test(test_weight_dropout_is_active_in_training_only),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return cmocka_run_group_tests_name("layer", tests, open_backend, close_cpu);
}
