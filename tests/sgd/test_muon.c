/* Muon against PyTorch's numbers, and where there is no matrix. */
#include "models/model.h"
#include "sgd/sgd.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A linear layer, an LSTM's gates, a convolution, and a statistic. */
static const bm_segment segments[] = {
    {.name = "w", .offset = 0, .count = 6, .rank = 2, .dim = {3, 2}},
    {.name = "b", .offset = 6, .count = 3, .rank = 1, .dim = {3}},
    {.name = "wx",
     .offset = 9,
     .count = 12,
     .rank = 2,
     .dim = {4, 3},
     .stacked = 2},
    {.name = "conv", .offset = 21, .count = 12, .rank = 4, .dim = {2, 1, 2, 3}},
    {.name = "mean", .offset = 33, .count = 1, .rank = 1, .dim = {1}},
};

enum { LEARNED = 33, N, STEPS = 4 };

typedef struct fixture {
    bm_params params;
    bm_sgd *sgd;
    float w[N];
} fixture;

static void start(fixture *f, bm_sgd_settings settings)
{
    *f =
        (fixture){.params = {.be = chosen,
                             .n = N,
                             .n_learned = LEARNED,
                             .segments = segments,
                             .n_segments = sizeof segments / sizeof *segments}};
    settings.update = "muon";
    for (int i = 0; i < N; i++)
        f->w[i] = (float)(0.1 * cos(i));
    assert_ok(bm_alloc(chosen, N, &f->params.w));
    assert_ok(bm_alloc(chosen, N, &f->params.g));
    bm_put(chosen, f->params.w, f->w, N);
    assert_ok(bm_sgd_new(&f->sgd, &settings, &f->params));
}

static void stop(fixture *f)
{
    bm_sgd_free(f->sgd);
    bm_free(chosen, f->params.w);
    bm_free(chosen, f->params.g);
}

static double gradient(int i, int t)
{
    return sin(i * i + 3 * t);
}

static void step(fixture *f, int t, float odd)
{
    float g[N];

    for (int i = 0; i < N; i++)
        g[i] = (float)gradient(i, t);
    g[3] += odd;
    bm_put(chosen, f->params.g, g, N);
    bm_sgd_step(f->sgd, 0.05F);
    bm_get(chosen, f->w, f->params.w, N);
    assert_ok(bm_sync(chosen));
}

/*
 * PyTorch 2.15: four steps of torch.optim.Muon(lr=0.05, weight_decay=0.1,
 * momentum=0.9) with these gradients, each gate and the convolution [3, 4] as a
 * parameter; in doubles, where it would take bfloat16:
 *
 *     torch.bfloat16 = torch.float64
 *     torch.set_default_dtype(torch.float64)
 */
static const double expected[2][N] = {
    {0.006553608,  -0.048754702, 0.075554477,  -0.041621404, 0.047370678,
     -0.025869941, NAN,          NAN,          NAN,          -0.051378011,
     -0.144649889, 0.009804581,  0.020740344,  0.132975715,  -0.046673891,
     -0.035270589, -0.001619099, -0.098144305, 0.112044995,  0.151919364,
     0.054491570,  -0.087676128, -0.149167301, -0.077187446, 0.078552670,
     0.111539288,  0.109727399,  -0.105547627, -0.017185993, -0.087970795,
     -0.010357231, 0.050732281,  0.078611892,  NAN},
    {0.050468592,  -0.002916927, 0.017008477,  -0.084520063, -0.035691609,
     0.012975799,  NAN,          NAN,          NAN,          -0.065132747,
     -0.096846344, 0.020041216,  0.048222501,  0.094369617,  -0.022651414,
     -0.062899494, -0.065639988, -0.049211724, 0.074821297,  0.124200995,
     0.033617268,  -0.069024242, -0.115925897, -0.061356495, 0.053443313,
     0.110069734,  0.083076145,  -0.043325350, -0.092740620, -0.081747483,
     0.009599462,  0.068424486,  0.068984496,  NAN},
};

/* What is no matrix takes the step of momentum SGD; a statistic w - g. */
static double other(int i, bool nesterov)
{
    double w = 0.1 * cos(i), v = 0;

    for (int t = 0; t < STEPS; t++) {
        double by = 0.05 * gradient(i, t);

        v = 0.9 * v - by;
        if (i >= LEARNED)
            w -= gradient(i, t);
        else
            w = (1 - 0.05 * 0.1) * w + (nesterov ? 0.9 * v - by : v);
    }
    return w;
}

static void test_steps_match_pytorch(void **state)
{
    (void)state;
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        fixture f;

        start(&f, (bm_sgd_settings){.momentum = 0.9,
                                    .weight_decay = 0.1,
                                    .nesterov = nesterov});
        for (int t = 0; t < STEPS; t++)
            step(&f, t, 0);
        for (int i = 0; i < N; i++) {
            double wanted = expected[nesterov][i];

            if (isnan(wanted))
                wanted = other(i, nesterov);
            assert_true(near(f.w[i], wanted, 2e-5));
        }
        stop(&f);
    }
}

/* Biases of attention, u and v among them, and kernels of a depthwise convolution,
 * one for each feature, are vectors: without momentum w - rate g. */
static void test_vectors_of_layers_take_the_step_itself(void **state)
{
    static const char *const matrices[] = {"0.attention.w", "0.attention.wr",
                                           "0.attention.wo", "2.linear.w"};
    bm_sgd_settings settings = {.update = "muon"};
    bm_model_settings set = {"attention:1 depthwise:3 linear", "ctc", "skip"};
    bm_model_shape shape = {4, 5, 1};
    bm_model *m = NULL;
    bm_params *p = NULL;
    bm_sgd *sgd = NULL;
    float *w = NULL, *g = NULL, *after = NULL;

    (void)state;
    assert_ok(bm_model_new(&m, &set, &shape, chosen, 1));
    p = bm_model_params(m);
    assert_int_equal(p->n_segments, 10);
    assert_ok(bm_sgd_new(&sgd, &settings, p));
    w = fetch(chosen, p->w, p->n);
    g = zeros(p->n, sizeof *g);
    for (size_t i = 0; i < p->n; i++)
        g[i] = (float)gradient((int)i, 1);
    bm_put(chosen, p->g, g, p->n);
    bm_sgd_step(sgd, 0.05F);
    after = fetch(chosen, p->w, p->n);
    for (size_t k = 0; k < p->n_segments; k++) {
        const bm_segment *s = &p->segments[k];
        bool matrix = false, same = true;

        FOR_EACH (j, matrices)
            matrix = matrix || strcmp(s->name, matrices[j]) == 0;
        for (size_t i = s->offset; i < s->offset + s->count; i++)
            same = same && near(after[i], w[i] - 0.05 * g[i], 1e-6);
        if (same == matrix)
            fail_msg("%s is %s matrix", s->name, same ? "no" : "a");
    }
    free(w);
    free(g);
    free(after);
    bm_sgd_free(sgd);
    bm_model_free(m);
}

static void test_a_gradient_that_is_not_finite_is_skipped(void **state)
{
    fixture f;
    float before[N];
    double skipped = 0;

    (void)state;
    start(&f, (bm_sgd_settings){.momentum = 0.9});
    step(&f, 0, 0);
    memcpy(before, f.w, sizeof before);
    step(&f, 1, NAN);
    assert_memory_equal(f.w, before, sizeof before);
    assert_ok(bm_sgd_skipped(f.sgd, &skipped));
    assert_true(skipped == 1);
    step(&f, 2, 0);
    assert_memory_not_equal(f.w, before, sizeof before);
    stop(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_match_pytorch),
        cmocka_unit_test(test_vectors_of_layers_take_the_step_itself),
        cmocka_unit_test(test_a_gradient_that_is_not_finite_is_skipped),
    };

    return RUN_GROUP_ON(argc, argv, "muon", tests);
}
