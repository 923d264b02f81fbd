/*
 * Switches of the cuda backend: which engine computes, CUDA graphs, a second
 * stream. With "cudnn" as second argument there is cuDNN to choose.
 */
#define _DEFAULT_SOURCE /* RTLD_NOLOAD */
#include "core/rng.h"
#include "models/model.h"
#include "sgd/sgd.h"
#include "tests/fakes/emulated.h"
#include "tests/support/folder.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { D = 5, C = 4, MOST_T = 40, MOST_B = 5, STEPS = 6 };

static const char *backend = "cuda";
static bool with_cudnn;

/* Launches that the emulated device has counted; NULL on a real one. */
static unsigned long *launches;

static const char *const variables[] = {"BMUF_LSTM", "BMUF_CONV", "BMUF_GRAPH",
                                        "BMUF_SIDE_STREAM"};

static void find_counter(void)
{
    launches = emulated_symbol("bm_emulated_launches");
}

static int clear_switches(void **state)
{
    (void)state;
    FOR_EACH (i, variables)
        unsetenv(variables[i]);
    return 0;
}

/* ---- values ---- */

static void ask_lstm(size_t H, bm_status expected)
{
    int32_t frames[] = {20, 7};
    bm_recurrent l = {.n_in = 3, .n_hidden = H, .directions = 2};
    bm_extent e = {20, 2, frames};
    bm_backend *be = NULL;

    assert_ok(bm_backend_open(&be, backend, 0));
    assert_true((bm_recurrent_kept(be, &l, e) > 0) == (expected == BM_OK));
    assert_int_equal(bm_sync(be), expected);
    bm_backend_close(be);
}

static void test_invalid_values_are_reported(void **state)
{
    (void)state;
    FOR_EACH (i, variables) {
        char expected[64];
        bm_backend *be = NULL;

        snprintf(expected, sizeof expected, "%s: invalid value 'stairs'",
                 variables[i]);
        setenv(variables[i], "stairs", 1);
        assert_int_equal(bm_backend_open(&be, backend, 0), BM_ERR_CONFIG);
        assert_non_null(strstr(bm_last_error(), expected));
        setenv(variables[i], "", 1); /* as if it were unset */
        assert_ok(bm_backend_open(&be, backend, 0));
        bm_backend_close(be);
        unsetenv(variables[i]);
    }
}

/* The start line and the journal get the description. */
static void test_the_description_names_what_is_not_the_default(void **state)
{
    static const char *const values[][2] = {{"steps", "cluster"},
                                            {"im2col", "cudnn"},
                                            {"off", "on"},
                                            {"off", "on"}};

    (void)state;
    FOR_EACH (i, variables)
        for (int other = 0; other < 2; other++) {
            bm_backend *be = NULL;
            char expected[64];

            snprintf(expected, sizeof expected, ", %s=%s", variables[i],
                     values[i][other]);
            setenv(variables[i], values[i][other], 1);
            assert_ok(bm_backend_open(&be, backend, 0));
            assert_true((strstr(bm_backend_about(be), expected) != NULL) ==
                        (other == 1));
            if (other == 0)
                assert_null(strstr(bm_backend_about(be), "BMUF_"));
            bm_backend_close(be);
            unsetenv(variables[i]);
        }
}

static void test_an_engine_that_cannot_compute_is_reported(void **state)
{
    (void)state;
    setenv("BMUF_LSTM", "cluster", 1); /* in bf16 only */
    ask_lstm(8, BM_ERR_UNSUPPORTED);
    assert_non_null(strstr(bm_last_error(), "BMUF_LSTM=cluster: "));
    unsetenv("BMUF_LSTM");
    ask_lstm(8, BM_OK);
}

static void test_nothing_is_kept_in_the_cache_directory(void **state)
{
    scratch s = scratch_open();

    (void)state;
    setenv("XDG_CACHE_HOME", s.path, 1);
    setenv("HOME", s.path, 1);
    ask_lstm(4, BM_OK);
    assert_int_equal(scratch_count(&s, false), 0);
    unsetenv("XDG_CACHE_HOME");
    scratch_close(&s);
}

/* How many calls the emulated cuDNN has got that only ask it; NULL on a real
 * one. */
static const unsigned long *asked(void)
{
    void *library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_NOLOAD);
    return library != NULL ? dlsym(library, "bm_fake_cudnn_asked") : NULL;
}

enum { FRAMES = 20, SEQUENCES = 2, ROWS = 5, OUT = 2, TAPS = 9 };

typedef struct convolution {
    float w[TAPS * OUT + OUT]; /* then b */
    float x[FRAMES * SEQUENCES * ROWS];
} convolution;

static void fill(convolution *v)
{
    bm_rng rng = bm_rng_make(7, "convolution", 0);

    FOR_EACH (i, v->w)
        v->w[i] = (float)(2 * bm_rng_uniform(&rng) - 1);
    FOR_EACH (i, v->x)
        v->x[i] = (float)(2 * bm_rng_uniform(&rng) - 1);
}

/* y, from a backend that has done it twice; free() it. `asks`: cuDNN is asked
 * the first time, and its answers are kept. */
static float *convolve(const char *name, const convolution *v, bool asks)
{
    int32_t frames[] = {FRAMES, 7};
    bm_conv c = {ROWS, 1, OUT, {3, 1, 1, 1}, {3, 1, 1, 1}, {1, 1}, NULL, NULL};
    bm_extent e = {FRAMES, SEQUENCES, frames};
    size_t n = FRAMES * SEQUENCES * ROWS * OUT;
    bm_backend *be = NULL;
    float *w = NULL, *x = NULL, *y = NULL, *work = NULL, *out = NULL;

    assert_ok(bm_backend_open(&be, name, 0));
    w = place(be, v->w, sizeof v->w / sizeof v->w[0]);
    x = place(be, v->x, sizeof v->x / sizeof v->x[0]);
    c.w = w;
    c.b = w + TAPS * OUT;
    assert_ok(bm_alloc(be, n, &y));
    assert_ok(bm_alloc(be, bm_conv_work(be, &c), &work));
    for (int i = 0; i < 2; i++) {
        unsigned long before = asked() != NULL ? *asked() : 0;

        bm_conv_forward(be, &c, e, e, x, y, work);
        assert_ok(bm_sync(be));
        if (asked() != NULL)
            assert_true((*asked() > before) == (asks && i == 0));
    }
    out = fetch(be, y, n);
    bm_free(be, w);
    bm_free(be, x);
    bm_free(be, y);
    bm_free(be, work);
    bm_backend_close(be);
    return out;
}

/* Each engine has the numbers of the CPU, and cuDNN computes only if it is
 * chosen. */
static void test_convolutions_have_engines(void **state)
{
    static const char *const engines[] = {"im2col", "cudnn"};
    int32_t frames[] = {FRAMES, 7};
    bm_extent e = {FRAMES, SEQUENCES, frames};
    convolution v;
    float *expected = NULL;

    (void)state;
    fill(&v);
    expected = convolve("cpu", &v, false);
    for (int k = 0; k < (with_cudnn ? 2 : 1); k++) {
        float *y = NULL;

        setenv("BMUF_CONV", engines[k], 1);
        y = convolve(backend, &v, k == 1);
        for (size_t i = 0; i < (size_t)FRAMES * SEQUENCES * ROWS * OUT; i++)
            if (inside(&e, i, ROWS * OUT))
                assert_float_equal(y[i], expected[i], 1e-5);
        free(y);
        unsetenv("BMUF_CONV");
    }
    free(expected);
}

/* ---- training ---- */

typedef struct course {
    const char *net, *loss;
    bm_precision precision;
    const char *engine; /* of LSTMs; may be NULL */
    size_t T[2], B[2];  /* of mini-batches, in turn */
} course;

typedef struct trainee {
    bm_backend *be;
    bm_model *m;
    bm_sgd *sgd;
    bm_stage *stage;
} trainee;

static trainee start(const course *c)
{
    static const bm_sgd_settings sgd = {.momentum = 0.9,
                                        .clip = 1,
                                        .weight_decay = 1e-4,
                                        .nesterov = true,
                                        .local_state = "keep"};
    bm_model_settings set = {c->net, c->loss, "skip"};
    bm_model_shape shape = {D, C, 1};
    trainee t = {0};

    if (c->engine != NULL)
        setenv("BMUF_LSTM", c->engine, 1);
    assert_ok(bm_backend_open(&t.be, backend, 0));
    assert_ok(bm_backend_use(t.be, 1, c->precision));
    assert_ok(bm_model_new(&t.m, &set, &shape, t.be, 3));
    assert_ok(bm_sgd_new(&t.sgd, &sgd, bm_model_params(t.m)));
    assert_ok(bm_stage_open(&t.stage, t.be));
    return t;
}

static void stop(trainee *t)
{
    bm_stage_close(t->stage);
    bm_sgd_free(t->sgd);
    bm_model_free(t->m);
    bm_backend_close(t->be);
    unsetenv("BMUF_LSTM");
}

/* Step k: lengths and labels differ from step to step. The first sequence has
 * T frames. */
static void train_step(trainee *t, size_t T, size_t B, size_t k)
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
        size_t fewer = bm_rng_below(&rng, T / 2 + 1);

        frames[i] = (int32_t)(i == 0 ? T : T - fewer);
        count[i] =
            per_frame ? frames[i] : (int32_t)bm_rng_below(&rng, T / 4 + 1);
        for (size_t j = 0; j < T * D; j++)
            x[i][j] = (float)(2 * bm_rng_uniform(&rng) - 1);
        for (int32_t j = 0; j < count[i]; j++)
            classes[n++] = (int32_t)(1 + bm_rng_below(&rng, C - 1));
        stored[i] = (bm_stored){.x = x[i], .bytes = sizeof(float)};
    }
    assert_ok(bm_stage_send(t->stage, b.extent, D, stored, &b.x.data));
    if (launches != NULL)
        *launches = 0;
    bm_model_gradient(t->m, &b, 100 + k, 0);
    bm_sgd_step(t->sgd, 0.05f);
}

typedef struct outcome {
    float *w;
    size_t n;
    bm_score score;
    unsigned long launches; /* of the last step */
} outcome;

static outcome train(const course *c)
{
    trainee t = start(c);
    bm_params *p = bm_model_params(t.m);
    outcome out = {.n = p->n};

    for (size_t k = 0; k < STEPS; k++)
        train_step(&t, c->T[k % 2], c->B[k % 2], k);
    out.launches = launches != NULL ? *launches : 0;
    out.w = fetch(t.be, p->w, p->n);
    assert_ok(bm_model_score(t.m, 0, &out.score));
    assert_true(out.score.sequences > 0);
    stop(&t);
    return out;
}

/* Trains with the switch off and on. Returns how many fewer launches the last
 * step takes with it on. */
static long assert_same_bits(const char *variable, const course *c)
{
    outcome on, off = train(c);
    long fewer = 0;

    setenv(variable, "on", 1);
    on = train(c);
    unsetenv(variable);
    assert_memory_equal(on.w, off.w, on.n * sizeof *on.w);
    assert_memory_equal(&on.score, &off.score, sizeof on.score);
    fewer = (long)off.launches - (long)on.launches;
    free(on.w);
    free(off.w);
    return fewer;
}

static const bm_precision precisions[] = {BM_FP32, BM_BF16};

/* 18 frames are two graphs for each layer and pass, and 72 products and 72
 * kernels without; 40 are three. */
static void test_graphs_do_not_change_bits(void **state)
{
    (void)state;
    FOR_EACH (p, precisions) {
        course c = {.net = "blstm:8 dropout:0.2 blstm:8 linear",
                    .loss = "ctc",
                    .precision = precisions[p],
                    .T = {40, 18},
                    .B = {3, 5}};
        long fewer = assert_same_bits("BMUF_GRAPH", &c);

        if (launches != NULL)
            assert_int_equal(fewer, 4 * (2 * 2 * 18 - 2));
    }
}

/* A graph belongs to a matrix wh: those of several kinds stay apart. */
static void test_switches_do_not_change_the_bits_of_other_cells(void **state)
{
    (void)state;
    FOR_EACH (p, precisions) {
        course c = {.net = "bgru:8 lstm:8,weight_dropout:0.3 "
                           "blstm:8,project:4 gru:8,weight_dropout:0.3 linear",
                    .loss = "ctc",
                    .precision = precisions[p],
                    .T = {40, 18},
                    .B = {3, 5}};

        (void)assert_same_bits("BMUF_GRAPH", &c);
        (void)assert_same_bits("BMUF_SIDE_STREAM", &c);
    }
}

static void test_a_second_stream_does_not_change_bits(void **state)
{
    (void)state;
    FOR_EACH (p, precisions) {
        course c = {.net = "blstm:8 dropout:0.2 blstm:8 linear",
                    .loss = "ctc",
                    .precision = precisions[p],
                    .T = {12, 7},
                    .B = {3, 5}};
        (void)assert_same_bits("BMUF_SIDE_STREAM", &c);
    }
}

static void test_a_second_stream_does_not_change_bits_of_clusters(void **state)
{
    course c = {.net = "blstm:16,weight_dropout:0.3 lstm:16 linear",
                .loss = "ctc",
                .precision = BM_BF16,
                .engine = "cluster",
                .T = {11, 6},
                .B = {3, 2}};

    (void)state;
    (void)assert_same_bits("BMUF_SIDE_STREAM", &c);
}

/* Launches of a step: the products forward and backward; one kernel for tanh,
 * as no product has it; one for each layer that goes back through the
 * activation and sums the gradients of biases; four of the loss; the norm and
 * the update. Nothing is cleared, nothing is converted. */
static void test_a_step_launches_nothing_superfluous(void **state)
{
    enum { LAYERS = 3 };

    (void)state;
    if (launches == NULL) {
        print_message("only the emulated device counts launches\n");
        skip();
    }
    FOR_EACH (p, precisions) {
        course c = {.net = "linear:8 relu linear:8 tanh linear",
                    .loss = "cross_entropy",
                    .precision = precisions[p]};
        trainee t = start(&c);
        unsigned long products = LAYERS + LAYERS + (LAYERS - 1);

        for (size_t k = 0; k < 3; k++) {
            train_step(&t, 1, 5, 0);
            if (k > 0) /* the first step converts the weights */
                assert_int_equal(*launches, products + 1 + LAYERS + 4 + 2);
        }
        assert_ok(bm_sync(t.be));
        stop(&t);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invalid_values_are_reported),
        cmocka_unit_test(test_the_description_names_what_is_not_the_default),
        cmocka_unit_test(test_an_engine_that_cannot_compute_is_reported),
        cmocka_unit_test(test_nothing_is_kept_in_the_cache_directory),
        cmocka_unit_test(test_convolutions_have_engines),
        cmocka_unit_test(test_graphs_do_not_change_bits),
        cmocka_unit_test(test_switches_do_not_change_the_bits_of_other_cells),
        cmocka_unit_test(test_a_second_stream_does_not_change_bits),
        cmocka_unit_test(test_a_second_stream_does_not_change_bits_of_clusters),
        cmocka_unit_test(test_a_step_launches_nothing_superfluous),
    };

    if (argc > 1)
        backend = argv[1];
    with_cudnn = argc > 2 && strcmp(argv[2], "cudnn") == 0;
    (void)clear_switches(NULL);
    if (!have_backend(backend))
        return SKIPPED;
    if (with_cudnn) {
        setenv("BMUF_CONV", "cudnn", 1);
        if (!have_convolution(backend, BM_FP32))
            return SKIPPED;
        unsetenv("BMUF_CONV");
    }
    find_counter();
    return cmocka_run_group_tests_name("switches", tests, clear_switches, NULL);
}
