/*
 * Steps of training as graphs: the same bits as without, whatever differs from
 * step to step, and one launch each.
 */
#define _DEFAULT_SOURCE /* RTLD_NOLOAD */
#include "core/rng.h"
#include "models/model.h"
#include "sgd/sgd.h"
#include "tests/fakes/emulated.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 5, C = 4, MOST_T = 80, MOST_B = 5, MOST_STEPS = 40 };

static const char *backend = "cuda";

/* Of the emulated device: what it was asked for. NULL: a real one. */
static unsigned long *launches, *copies, *changes;

static void find_counters(void)
{
    launches = emulated_symbol("bm_emulated_launches");
    copies = emulated_symbol("bm_emulated_copies");
    changes = emulated_symbol("bm_emulated_changes");
}

/* What to train, and how. */
typedef struct course {
    const char *net, *loss;
    bm_sgd_settings sgd;
    bm_precision precision;
    const char *engine; /* of LSTMs */
    size_t T[3], B[3];  /* shapes, which take turns, the largest first: nobody
                           needs more memory later; 0: there are fewer */
    size_t steps;
    size_t replaced; /* before this step the weights are put anew; 0: never */
} course;

/* What came of it. */
typedef struct outcome {
    float *w;
    size_t n;
    bm_score score;
    unsigned long launches[MOST_STEPS], copies[MOST_STEPS];
} outcome;

typedef struct trainee {
    bm_backend *be;
    bm_model *m;
    bm_sgd *sgd;
    bm_stage *stage;
} trainee;

static trainee start(const course *c, bool graphs)
{
    bm_model_settings set = {c->net, c->loss, "skip"};
    bm_model_shape shape = {D, C, 1};
    trainee t = {0};

    setenv("BMUF_GRAPH", graphs ? "on" : "off", 1);
    if (c->engine != NULL)
        setenv("BMUF_LSTM", c->engine, 1);
    assert_ok(bm_backend_open(&t.be, backend, 0));
    assert_ok(bm_backend_use(t.be, 1, c->precision));
    assert_ok(bm_model_new(&t.m, &set, &shape, t.be, 3));
    assert_ok(bm_sgd_new(&t.sgd, &c->sgd, bm_model_params(t.m)));
    assert_ok(bm_stage_open(&t.stage, t.be));
    return t;
}

static void stop(trainee *t)
{
    bm_stage_close(t->stage);
    bm_sgd_free(t->sgd);
    bm_model_free(t->m);
    bm_backend_close(t->be);
}

/* Sequences of other lengths and labels in every step, the first as long as
 * there is room for, and the second shorter; `full`: all of them so long, with
 * as many labels as there may be. */
static void train_step(trainee *t, size_t T, size_t B, size_t k, bool full,
                       float rate)
{
    static float x[MOST_B][MOST_T * D];
    static int32_t classes[MOST_B * MOST_T];
    int32_t frames[MOST_B], count[MOST_B];
    bool per_frame = bm_model_loss(t->m)->per_frame;
    bm_stored stored[MOST_B];
    bm_rng rng = bm_rng_make(5, "step", k);
    size_t n = 0;
    bm_batch b = {.extent = {T, B, frames},
                  .targets = {classes, count},
                  .x = {.rank = 3, .dim = {T, B, D, 1}}};

    for (size_t i = 0; i < B; i++) {
        size_t fewer = bm_rng_below(&rng, T / 2 + 1) | (i == 1);
        size_t labels = bm_rng_below(&rng, T / 4 + 1);

        frames[i] = (int32_t)(i == 0 || full ? T : T - fewer);
        count[i] = per_frame ? frames[i] : (int32_t)(full ? T / 4 : labels);
        for (size_t j = 0; j < T * D; j++)
            x[i][j] = (float)(2 * bm_rng_uniform(&rng) - 1);
        for (int32_t j = 0; j < count[i]; j++)
            classes[n++] = (int32_t)(1 + bm_rng_below(&rng, C - 1));
        stored[i] = (bm_stored){.x = x[i], .bytes = sizeof(float)};
    }
    assert_ok(bm_stage_send(t->stage, b.extent, D, stored, &b.x.data));
    if (launches != NULL)
        *launches = *copies = 0;
    bm_model_gradient(t->m, &b, 100 + k, 0);
    bm_sgd_step(t->sgd, rate);
}

static outcome train(const course *c, bool graphs)
{
    trainee t = start(c, graphs);
    bm_params *p = bm_model_params(t.m);
    outcome out = {.n = p->n};
    size_t shapes = c->T[2] > 0 ? 3 : c->T[1] > 0 ? 2 : 1;

    for (size_t k = 0; k < c->steps; k++) {
        if (c->replaced > 0 && k == c->replaced) {
            float *w = fetch(t.be, p->w, p->n);
            bm_put(t.be, p->w, w, p->n);
            free(w);
        }
        train_step(&t, c->T[k % shapes], c->B[k % shapes], k, k < shapes,
                   k < 9 ? 0.05f : 0.05f / (float)k);
        if (launches != NULL) {
            out.launches[k] = *launches;
            out.copies[k] = *copies;
        }
    }
    out.w = fetch(t.be, p->w, p->n);
    assert_ok(bm_model_score(t.m, 0, &out.score));
    assert_true(out.score.sequences > 0);
    stop(&t);
    return out;
}

static void assert_same(const course *c)
{
    outcome with = train(c, true), without = train(c, false);
    size_t shapes = c->T[2] > 0 ? 3 : c->T[1] > 0 ? 2 : 1;

    assert_memory_equal(with.w, without.w, with.n * sizeof *with.w);
    assert_memory_equal(&with.score, &without.score, sizeof with.score);
    for (size_t k = 0; launches != NULL && k < c->steps; k++) {
        bool told = k < shapes || (c->replaced > 0 && k == c->replaced);

        assert_true(without.launches[k] > 3);
        assert_true(told ? with.launches[k] > 3 : with.launches[k] == 1);
        assert_true(told || with.copies[k] == 1);
    }
    free(with.w);
    free(without.w);
}

static const bm_sgd_settings momentum = {.momentum = 0.9,
                                         .clip = 1,
                                         .weight_decay = 1e-4,
                                         .nesterov = true,
                                         .local_state = "keep"};
static const bm_sgd_settings adamw = {.update = "adamw",
                                      .beta1 = 0.9,
                                      .beta2 = 0.99,
                                      .epsilon = 1e-8,
                                      .weight_decay = 0.01,
                                      .local_state = "keep"};

#define ON_BOTH(...)                                                           \
    do {                                                                       \
        static const bm_precision all[] = {BM_FP32, BM_BF16};                  \
        FOR_EACH (p, all) {                                                    \
            course c = {.precision = all[p], __VA_ARGS__};                     \
            assert_same(&c);                                                   \
        }                                                                      \
    } while (0)

static void test_dropout_and_rates_change_from_step_to_step(void **state)
{
    (void)state;
    ON_BOTH(.net = "linear:6 tanh dropout:0.3 linear:6 relu linear",
            .loss = "cross_entropy", .sgd = momentum, .T = {12, 12, 7},
            .B = {4, 3, 3}, .steps = 21);
}

static void test_adam_counts_its_steps(void **state)
{
    (void)state;
    ON_BOTH(.net = "linear:6 sigmoid dropout:0.5 linear", .loss = "ctc",
            .sgd = adamw, .T = {9, 16}, .B = {5, 2}, .steps = 14);
}

static void test_step_by_step_an_lstm_is_graphs_in_a_graph(void **state)
{
    (void)state;
    ON_BOTH(.net = "blstm:8 dropout:0.2 blstm:8 linear", .loss = "ctc",
            .sgd = momentum, .engine = "steps", .T = {18, 7}, .B = {3, 5},
            .steps = 8);
}

static void test_clusters_are_kernels_like_others(void **state)
{
    course c = {.net = "blstm:16 lstm:16 linear",
                .loss = "ctc",
                .sgd = adamw,
                .precision = BM_BF16,
                .engine = "cluster",
                .T = {11, 6},
                .B = {3, 2},
                .steps = 8};

    (void)state;
    assert_same(&c);
}

/* With other weights than the step before has left, some conversions more. */
static void test_a_step_that_does_not_fit_is_queued_as_it_is_told(void **state)
{
    course c = {.net = "linear:8 relu linear",
                .loss = "ctc",
                .sgd = momentum,
                .precision = BM_BF16,
                .T = {10},
                .B = {4},
                .steps = 12,
                .replaced = 7};

    (void)state;
    assert_same(&c);
}

/* Which products there are depends on lengths here. */
static void test_images_that_need_other_kernels_are_right_as_well(void **state)
{
    static const bm_precision all[] = {BM_FP32, BM_BF16};

    (void)state;
    FOR_EACH (p, all) {
        course c = {.net = "conv:3,3x3 batchnorm relu pool:2x1 linear",
                    .loss = "ctc",
                    .sgd = momentum,
                    .precision = all[p],
                    .T = {12, 8},
                    .B = {2, 3},
                    .steps = 16};
        outcome with = train(&c, true), without = train(&c, false);

        assert_memory_equal(with.w, without.w, with.n * sizeof *with.w);
        assert_memory_equal(&with.score, &without.score, sizeof with.score);
        free(with.w);
        free(without.w);
    }
}

static void skip_uncounted(void)
{
    if (launches == NULL) {
        print_message("only the emulated device counts launches\n");
        skip();
    }
}

/* Products forward, with what follows them, and backward; one kernel for what
 * goes back through a function and for the sums of it, that is all biases';
 * four of the loss; the norm and the update. Nothing is cleared, nothing
 * converted, and no kernel that is as it was is given its arguments again. */
static void test_a_step_has_nothing_superfluous(void **state)
{
    enum { LAYERS = 3 };
    static const bm_precision all[] = {BM_FP32, BM_BF16};

    (void)state;
    skip_uncounted();
    FOR_EACH (p, all)
        for (int graphs = 0; graphs < 2; graphs++) {
            course c = {.net = "linear:8 relu linear:8 tanh linear",
                        .loss = "cross_entropy",
                        .sgd = momentum,
                        .precision = all[p]};
            trainee t = start(&c, graphs == 1);
            unsigned long functions = 1; /* no product has tanh */
            unsigned long products = LAYERS + LAYERS + (LAYERS - 1);

            for (size_t k = 0; k < 6; k++) {
                *changes = 0;
                train_step(&t, 1, 5, 0, true, 0.1f);
                if (graphs == 0 && k > 0)
                    assert_int_equal(*launches,
                                     products + functions + LAYERS + 4 + 2);
                if (graphs == 1 && k > 1)
                    assert_true(*launches == 1 && *changes == 0);
            }
            assert_ok(bm_sync(t.be));
            stop(&t);
        }
}

/* The one that nobody has asked for the longest goes. */
static void test_only_so_many_shapes_are_kept(void **state)
{
    static const course c = {.net = "linear",
                             .loss = "cross_entropy",
                             .sgd = {.local_state = "keep"}};
    trainee t = {0};

    (void)state;
    skip_uncounted();
    t = start(&c, true);
    for (size_t T = 66; T >= 1; T--) /* 64 are */
        for (size_t k = 0; k < 3; k++) {
            train_step(&t, T, 1, k, true, 0.1f);
            assert_true(k == 0 ? *launches > 1 : *launches == 1);
        }
    train_step(&t, 64, 1, 0, true, 0.1f);
    assert_int_equal(*launches, 1);
    train_step(&t, 66, 1, 0, true, 0.1f);
    assert_true(*launches > 1);
    assert_ok(bm_sync(t.be));
    stop(&t);
}

/* As strategies that exchange gradients do; and as a test that looks. */
static void test_a_step_ends_where_somebody_looks(void **state)
{
    static const course c = {.net = "linear:6 relu linear",
                             .loss = "cross_entropy",
                             .sgd = {.local_state = "keep"}};
    float *seen[2][6] = {{NULL}};
    size_t n = 0;

    (void)state;
    for (int graphs = 0; graphs < 2; graphs++) {
        trainee t = start(&c, graphs == 1);
        bm_params *p = bm_model_params(t.m);

        n = p->n;
        for (size_t k = 0; k < 6; k++) {
            float x[MOST_T * D] = {(float)k};
            int32_t frames = 6, classes[6] = {0, 1, 2, 3, 0, 1};
            bm_stored s = {.x = x, .bytes = sizeof *x};
            bm_batch b = {.extent = {6, 1, &frames},
                          .targets = {classes, &frames},
                          .x = {.rank = 3, .dim = {6, 1, D, 1}}};

            assert_ok(bm_stage_send(t.stage, b.extent, D, &s, &b.x.data));
            bm_model_gradient(t.m, &b, k, 0);
            seen[graphs][k] = fetch(t.be, p->g, n);
            bm_axpby(t.be, n, -0.1f, p->g, 1, p->w);
        }
        stop(&t);
    }
    for (size_t k = 0; k < 6; k++) {
        assert_memory_equal(seen[0][k], seen[1][k], n * sizeof(float));
        free(seen[0][k]);
        free(seen[1][k]);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dropout_and_rates_change_from_step_to_step),
        cmocka_unit_test(test_adam_counts_its_steps),
        cmocka_unit_test(test_step_by_step_an_lstm_is_graphs_in_a_graph),
        cmocka_unit_test(test_clusters_are_kernels_like_others),
        cmocka_unit_test(test_a_step_that_does_not_fit_is_queued_as_it_is_told),
        cmocka_unit_test(test_images_that_need_other_kernels_are_right_as_well),
        cmocka_unit_test(test_a_step_has_nothing_superfluous),
        cmocka_unit_test(test_only_so_many_shapes_are_kept),
        cmocka_unit_test(test_a_step_ends_where_somebody_looks),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    find_counters();
    return cmocka_run_group_tests_name("step", tests, NULL, NULL);
}
