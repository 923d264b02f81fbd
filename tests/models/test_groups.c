/*
 * Branches in networks: gradients against differences, outputs against sums by
 * hand, and messages. On the backend that the first argument names.
 */
#include "models/model.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 5, B = 4, MOST_D = 12 };

/* Out of order, one empty. */
static const int32_t lengths[B] = {3, 5, 0, 4};
static const int32_t labels[] = {1, 2, 1}, counts[B] = {1, 1, 0, 1};

static void check_near(double got, double expected, double tolerance)
{
    if (!near(got, expected, tolerance))
        print_error("%g, but expected %g\n", got, expected);
    assert_true(near(got, expected, tolerance));
}

static bm_model *build(const char *net, size_t features, size_t classes)
{
    bm_model *m = NULL;
    bm_model_settings set = {net, "ctc", "skip"};
    bm_model_shape shape = {features, classes, 1};

    assert_ok(bm_model_new(&m, &set, &shape, chosen, 7));
    return m;
}

/* x [T B D]: drawn, 0 in padding. */
static bm_batch make_batch(float *x, size_t D)
{
    bm_rng rng = bm_rng_make(11, "batch", 0);
    bm_batch b = {.extent = {T, B, lengths}, .targets = {labels, counts}};

    for (size_t i = 0; i < T * B * D; i++)
        x[i] = inside(&b.extent, i, D) ? (float)bm_rng_normal(&rng) : 0;
    b.x = (bm_tensor){place(chosen, x, T * B * D), 3, {T, B, D, 1}};
    return b;
}

static double loss_of(bm_model *m, const bm_batch *b)
{
    bm_score s = {0};

    bm_model_evaluate(m, b, 0);
    assert_ok(bm_model_score(m, 0, &s));
    assert_int_equal(s.sequences, B - 1); /* one has no frames */
    return s.loss / s.sequences;
}

/* The loss at w + step towards `to`, which is NULL for weight k alone. */
static double loss_at(bm_model *m, const bm_batch *b, const float *w,
                      const float *to, size_t k, double step)
{
    bm_params *p = bm_model_params(m);
    float *moved = zeros(p->n, sizeof *moved);
    double loss = 0;

    for (size_t i = 0; i < p->n; i++)
        moved[i] = (float)(w[i] + step * (to != NULL ? to[i] : i == k));
    bm_put(chosen, p->w, moved, p->n);
    loss = loss_of(m, b);
    free(moved);
    return loss;
}

/* For a few weights of each array, and for all along the gradient. With a step
 * of 1/64 the rounding of the loss leaves 6e-5, and truncation h^2 / 6 times a
 * third derivative of a few units. */
static void check_gradient(const char *net)
{
    bm_model *m = build(net, MOST_D, 3);
    bm_params *p = bm_model_params(m);
    float x[T * B * MOST_D], *g = NULL, *w = NULL, *along = NULL;
    bm_batch b = make_batch(x, MOST_D);
    bm_score ignored;
    double norm = 0, h = 0x1p-6;

    bm_model_gradient(m, &b, 1, 0);
    assert_ok(bm_model_score(m, 0, &ignored));
    g = fetch(chosen, p->g, p->n);
    w = fetch(chosen, p->w, p->n);
    along = zeros(p->n, sizeof *along);
    for (size_t i = 0; i < p->n; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    assert_true(norm > 0.01);
    for (size_t i = 0; i < p->n; i++)
        along[i] = (float)(g[i] / norm);
    check_near(
        (loss_at(m, &b, w, along, 0, h) - loss_at(m, &b, w, along, 0, -h)) /
            (2 * h),
        norm, 1e-3);
    for (size_t s = 0; s < p->n_segments; s++)
        for (size_t i = 0; i < 4; i++) {
            size_t k = p->segments[s].offset + i * 7 % p->segments[s].count;

            check_near((loss_at(m, &b, w, NULL, k, h) -
                        loss_at(m, &b, w, NULL, k, -h)) /
                           (2 * h),
                       g[k], 1e-3);
        }
    free(g);
    free(w);
    free(along);
    bm_free(chosen, b.x.data);
    bm_model_free(m);
}

static void test_gradients_match_differences(void **state)
{
    static const char *const nets[] = {
        "residual( linear:12 tanh ) linear",
        "conv:2,3x3 residual( conv:2,3x3 tanh conv:2,3x3 )*2 sigmoid linear",
        "residual(conv:3,3x3,stride:2x2 tanh|conv:3,1x1,stride:2x2) linear",
        "branches( conv:2,1x1 | conv:3,1x1 tanh conv:2,3x3 | ) tanh linear",
        "branches( lstm:3 | blstm:2 | linear:4 ) linear",
        "branches( | tanh ) linear",
        "linear:6 splice:0..1 residual(layernorm linear:12) splice:-2,3 linear",
        "linear:4 residual(layernorm attention:2 scale:0.5) linear",
        "linear:6 residual(glu depthwise:3 swish linear:6) linear",
        "linear:6 residual(branches(linear:2|residual(tanh) linear:4)) linear",
    };

    (void)state;
    FOR_EACH (i, nets)
        check_gradient(nets[i]);
}

/* y of the net, against the sums that `expect` makes of x and the weights. */
static void check_output(const char *net, size_t D, size_t C,
                         double (*expect)(const float *x, const float *w,
                                          size_t c))
{
    bm_model *m = build(net, D, C);
    bm_params *p = bm_model_params(m);
    float x[T * B * MOST_D], *w = NULL, *y = NULL;
    bm_batch b = make_batch(x, D);
    bm_extent e;

    bm_model_forward(m, &b);
    w = fetch(chosen, p->w, p->n);
    y = fetch(chosen, bm_model_output(m, &e).data, T * B * C);
    assert_int_equal(e.T, T);
    for (size_t i = 0; i < T * B * C; i++)
        check_near(y[i], inside(&e, i, C) ? expect(x + i / C * D, w, i % C) : 0,
                   1e-5);
    free(w);
    free(y);
    bm_free(chosen, b.x.data);
    bm_model_free(m);
}

/* Output c of linear:2 on 3 numbers, whose bias is 0. */
static double linear(const float *x, const float *w, size_t c)
{
    return (double)w[3 * c] * x[0] + (double)w[3 * c + 1] * x[1] +
           (double)w[3 * c + 2] * x[2];
}

static double linear_and_x(const float *x, const float *w, size_t c)
{
    return linear(x, w, c) + x[c];
}

static double two_linears(const float *x, const float *w, size_t c)
{
    return linear(x, w, c) + linear(x, w + 12, c);
}

static double linear_beside_x(const float *x, const float *w, size_t c)
{
    return c < 2 ? linear(x, w, c) : x[c - 2];
}

/* Rows of two channels: x, and x times the kernel's only weight. */
static double rows_beside_x(const float *x, const float *w, size_t c)
{
    return c % 2 == 0 ? x[c / 2] : (double)w[0] * x[c / 2];
}

static void test_branches_are_added_or_lie_side_by_side(void **state)
{
    (void)state;
    check_output("residual( linear:3 )", 3, 3, linear_and_x);
    check_output("residual( linear:3 | linear:3 )", 3, 3, two_linears);
    check_output("branches( linear:2 | )", 3, 5, linear_beside_x);
    check_output("branches( | conv:1,1x1 )", 3, 6, rows_beside_x);
}

static void test_a_repeated_group_is_its_layers_written_out(void **state)
{
    bm_model *a = build("( linear:3 tanh )*2 (linear:4)*1 linear", 3, 3);
    bm_model *b = build("linear:3 tanh linear:3 tanh linear:4 linear", 3, 3);
    bm_params *p = bm_model_params(a), *q = bm_model_params(b);
    float *v = fetch(chosen, p->w, p->n), *w = fetch(chosen, q->w, q->n);

    (void)state;
    assert_int_equal(p->n_segments, q->n_segments);
    for (size_t i = 0; i < p->n_segments; i++)
        assert_string_equal(p->segments[i].name, q->segments[i].name);
    assert_memory_equal(v, w, p->n * sizeof *v);
    free(v);
    free(w);
    bm_model_free(a);
    bm_model_free(b);
}

/* Layers are counted without the words of groups; frames are not those of all
 * branches one after the other. */
static void test_groups_have_frames_and_names(void **state)
{
    bm_model *m = build("stack:2 residual( linear:6 relu )*2 "
                        "branches( subsample:2 | stack:2 linear:3 ) linear",
                        3, 3);
    static const char *const names[] = {
        "1.linear.w", "1.linear.b", "3.linear.w", "3.linear.b",
        "7.linear.w", "7.linear.b", "8.linear.w", "8.linear.b"};
    bm_params *p = bm_model_params(m);

    (void)state;
    assert_int_equal(bm_model_stride(m), 4);
    for (size_t n = 0; n < 20; n++)
        assert_int_equal(bm_model_frames(m, n), ((n + 1) / 2 + 1) / 2);
    assert_int_equal(p->n_segments, 8);
    FOR_EACH (i, names)
        assert_string_equal(p->segments[i].name, names[i]);
    assert_int_equal(p->segments[6].dim[1], 9);
    bm_model_free(m);
}

static void test_messages_mark_the_invalid_word(void **state)
{
    static const struct {
        const char *net, *message;
    } faults[] = {
        {"residual( relu linear:3", "word 1 'residual(': the ')' is missing\n"
                                    "    residual( relu linear:3\n"
                                    "    ^~~~~~~~~"},
        {"relu ) linear", "word 2 ')': it closes no group"},
        {"relu | linear", "word 2 '|': branches are separated inside"},
        {"( relu | tanh ) linear", "word 3 '|': branches are separated inside"},
        {"residual( ) linear", "word 1 'residual(': the group is empty"},
        {"( ) linear", "word 1 '(': the group is empty"},
        {"branches( relu ) linear", "word 1 'branches(': give two branches"},
        {"residual linear", "word 1 'residual': the '(' is missing: residual("},
        {"linear( relu ) linear", "word 1 'linear(': only '(', "},
        {"residul( relu ) linear", "no such layer; the nearest is residual"},
        {"residual:2( relu ) linear", "open a group"},
        {"residual( relu )3 linear", "word 3 ')3': only '*' and a number"},
        {"residual( relu )*0 linear", "'0' is not a number of layers"},
        {"residual( relu )*500 linear",
         "word 3 ')*500': more than 1024 layers"},
        {"residual( linear:5 ) linear",
         "word 3 ')': branches of 5 x 1 and 3 x 1 numbers a frame"},
        {"residual( stack:2 ) linear",
         "branches of 6 x 1 and 3 x 1 numbers a frame (rows x channels); they "
         "must be equal: give the input the same size after a |, as in "
         "residual( stack:2 linear:80 | subsample:2 linear:80 )"},
        {"residual( conv:2,3x3 ) linear",
         "word 3 ')': branches of 3 x 2 and 3 x 1 numbers a frame (rows x "
         "channels); they must be equal: give the input the same shape"},
        {"branches( conv:2,3x3 | conv:2,3x3,stride:1x2 ) linear",
         "word 5 ')': branches of 3 x 2 and 2 x 2 numbers a frame (rows x "
         "channels); rows must be equal"},
        {"branches( linear:2 | subsample:2 ) linear",
         "word 5 ')': branches with different numbers of frames"},
        {"branches( conv:2,3x3,pad:0x1 | conv:2,1x1 ) linear",
         "branches with different numbers of frames"},
        {"residual( relu linear )", "word 3 'linear': the size is missing"},
        {"linear:3 residual( linear:3 ) branches( relu | relu )",
         "word 9 ')': the last layer has 6 outputs, but there are 3 classes"},
        {"( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( ( relu", "more than 16 groups"},
    };

    (void)state;
    FOR_EACH (i, faults) {
        bm_model *m = NULL;
        bm_model_settings set = {faults[i].net, "ctc", "skip"};
        bm_model_shape shape = {3, 3, 1};

        assert_int_equal(bm_model_new(&m, &set, &shape, chosen, 1),
                         BM_ERR_CONFIG);
        if (strstr(bm_last_error(), faults[i].message) == NULL)
            print_error("%s\nbut expected\n%s\n", bm_last_error(),
                        faults[i].message);
        assert_non_null(strstr(bm_last_error(), faults[i].message));
    }
}

/* Before the data are known: 48 features, for which it fits. */
static void test_settings_with_branches_that_may_fit_are_no_fault(void **state)
{
    static const bm_section sections[] = {
        {.name = "model", .options = bm_model_options, .check = bm_model_check},
        {0}};
    bm_config *config = NULL;

    (void)state;
    assert_ok(bm_config_new(&config));
    assert_ok(bm_config_set(config, "model.net=residual( linear:48 ) linear"));
    assert_ok(bm_config_check(config, sections));
    assert_ok(bm_config_set(config, "model.net=residual( liner:48 ) linear"));
    assert_int_equal(bm_config_check(config, sections), BM_ERR_CONFIG);
    bm_config_free(config);
}

/* Sizes that come from the data are not judged before these are known; those
 * behind a layer with a size of its own are. */
static void test_settings_with_sizes_of_the_data_are_no_fault(void **state)
{
    static const bm_section sections[] = {
        {.name = "model", .options = bm_model_options, .check = bm_model_check},
        {0}};
    static const struct {
        const char *net;
        bm_status status;
    } cases[] = {
        {"model.net=attention:9 splice:-1..1 glu linear", BM_OK},
        {"model.net=branches( attention:7 | linear:3 ) glu linear", BM_OK},
        {"model.net=conv:32,3x3 pool:1x4 attention:4 linear", BM_OK},
        {"model.net=conv:64,3x3 ( residual( layernorm attention:4 ) )*6 linear",
         BM_OK},
        {"model.net=linear:1048576*3 linear", BM_ERR_CONFIG},
        {"model.net=linear:10 attention:4 linear", BM_ERR_CONFIG},
        {"model.net=linear:8 residual( attention:3 ) linear", BM_ERR_CONFIG},
        {"model.net=blstm:4 branches( relu | linear:3 ) glu linear",
         BM_ERR_CONFIG},
        {"model.net=conv:3,3x3 glu linear", BM_ERR_CONFIG},
    };
    bm_config *config = NULL;

    (void)state;
    assert_ok(bm_config_new(&config));
    FOR_EACH (i, cases) {
        assert_ok(bm_config_set(config, cases[i].net));
        assert_int_equal(bm_config_check(config, sections), cases[i].status);
    }
    bm_config_free(config);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_match_differences),
        cmocka_unit_test(test_branches_are_added_or_lie_side_by_side),
        cmocka_unit_test(test_a_repeated_group_is_its_layers_written_out),
        cmocka_unit_test(test_groups_have_frames_and_names),
        cmocka_unit_test(test_messages_mark_the_invalid_word),
        cmocka_unit_test(test_settings_with_branches_that_may_fit_are_no_fault),
        cmocka_unit_test(test_settings_with_sizes_of_the_data_are_no_fault),
    };

    return RUN_GROUP_ON(argc, argv, "groups", tests);
}
