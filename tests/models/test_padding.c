/*
 * Neither padding nor the other sequences of a mini-batch influence a sequence:
 * logits and gradients of networks for one sequence alone, with others, and in
 * longer batches; and zeros in the padding of collated batches.
 *
 * In batches of the same lengths a frame's logits have the same bits, because
 * each row of a product is summed in the same order. In another shape a BLAS
 * may sum in another order: 1e-6. On the backend that the first argument names.
 */
#include "io/batch/collate.h"
#include "models/model.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { D = 3, C = 4, SEQUENCES = 5, LONGEST = 9, MOST = 14 };

static const int32_t lengths[SEQUENCES] = {7, 4, 9, 1, 5};
static const int32_t labels[SEQUENCES] = {3, 2, 3, 0, 1};

static const char *backend = "cpu";

static const char *const set_names[] = {"baseline", "avx2", "avx512"};

/* Layers that mix frames, behind layers with a bias. */
static const struct {
    const char *net, *loss;
    bool mixes; /* batchnorm: sequences interact in training */
} networks[] = {
    {"linear:6 sigmoid stack:2 blstm:5 linear", "ctc", false},
    {"blstm:17*2 tanh subsample:2 linear:9 relu linear", "ctc", false},
    {"linear:5 stack:3 lstm:8 linear", "ctc", false},
    {"linear:6 sigmoid blstm:8,project:5 linear", "ctc", false},
    {"linear:6 sigmoid bgru:5 stack:2 gru:17 linear", "ctc", false},
    {"linear:7 sigmoid lstm:33 linear", "cross_entropy", false},
    {"splice:-1..1 linear:6 sigmoid splice:-2,3 linear", "cross_entropy",
     false},
    {"linear:16 layernorm tanh blstm:5 linear", "ctc", false},
    {"conv:4,3x3 instancenorm relu pool:2x2 blstm:5 linear", "ctc", false},
    {"linear:8 swish glu gelu depthwise:4 scale:0.5 depthwise:3,stride:2 "
     "linear",
     "ctc", false},
    {"linear:6 attention:3 subsample:2 attention:2 linear", "ctc", false},
    {"conv:4,3x3 leaky_relu pool:2x2 conv:5,3x2,stride:1x2 lstm:6 linear",
     "ctc", false},
    {"conv:4,3x3,dilation:2x2 sigmoid conv:3,2x3,dilation:3x1 linear", "ctc",
     false},
    {"linear:6 sigmoid conv:4,3x3 pool:3x2,mean conv:3,3x2 sigmoid "
     "pool:3x2,mean,stride:1x1 linear",
     "ctc", false},
    {"conv:4,3x3 sigmoid residual( conv:4,3x3 sigmoid conv:4,3x3 ) "
     "branches( conv:2,1x1 | pool:3x1,stride:1x1 sigmoid | ) linear:6 "
     "residual( linear:6 sigmoid blstm:3 | linear:6 ) linear",
     "ctc", false},
    /* one frame, so that CTC aligns sequences of at most one label */
    {"conv:4,3x3 sigmoid pool:all linear", "ctc", false},
    {"conv:4,3x3,dilation:2x1 sigmoid pool:all,mean linear", "ctc", false},
    {"sigmoid conv:4,4x3 batchnorm relu pool:2x1 blstm:6 batchnorm linear",
     "ctc", true},
};

/* The sequences of a batch, and `late` additional frames of padding. */
typedef struct group {
    size_t n;
    int who[SEQUENCES];
    size_t late;
    uint64_t key; /* for the features of all but sequence 0 */
    bool mute;    /* all but sequence 0 have more labels than CTC can align */
} group;

/* A batch, its memory and its network. */
typedef struct run {
    bm_model *m;
    bm_backend *be;
    bm_batch b;
    int32_t frames[SEQUENCES], count[SEQUENCES];
    int32_t classes[SEQUENCES * 2 * LONGEST];
} run;

static void draw(const group *c, int who, float *x)
{
    bm_rng rng = bm_rng_make(who == 0 ? 0 : c->key, "x", (uint64_t)who);

    for (size_t i = 0; i < (size_t)lengths[who] * D; i++)
        x[i] = (float)bm_rng_normal(&rng);
}

static void fill(run *r, const group *c)
{
    bool per_frame = bm_model_loss(r->m)->per_frame;
    float x[MOST * SEQUENCES * D] = {0}, one[LONGEST * D];
    size_t T = 0, n = 0;

    for (size_t b = 0; b < c->n; b++) {
        int who = c->who[b];
        int32_t many = 2 * lengths[who];

        draw(c, who, one);
        for (size_t t = 0; t < (size_t)lengths[who]; t++)
            memcpy(x + (t * c->n + b) * D, one + t * D, D * sizeof *x);
        r->frames[b] = lengths[who];
        r->count[b] = per_frame             ? lengths[who]
                      : c->mute && who != 0 ? many
                                            : labels[who];
        for (int32_t i = 0; i < r->count[b]; i++)
            r->classes[n++] = (who + i) % (C - 1) + 1;
        T = T > (size_t)lengths[who] ? T : (size_t)lengths[who];
    }
    T += c->late;
    bm_free(r->be, r->b.x.data);
    BM_ASSERT(T <= MOST);
    r->b = (bm_batch){
        .extent = {T, c->n, r->frames},
        .x = {place(r->be, x, T * c->n * D), 3, {T, c->n, D, 1}},
        .targets = {r->classes, r->count},
    };
}

/* Moves all weights, so that no bias is 0. */
static void disturb(run *r)
{
    const bm_params *p = bm_model_params(r->m);
    float *w = fetch(r->be, p->w, p->n);
    bm_rng rng = bm_rng_make(5, "w", 0);

    for (size_t i = 0; i < p->n; i++)
        w[i] += (float)(0.1 * bm_rng_normal(&rng));
    bm_put(r->be, p->w, w, p->n);
    free(w);
}

/* Runs the largest batch first, whose numbers stay in the scratch. */
static void open_run(run *r, bm_backend *be, size_t network)
{
    static const group all = {
        .n = 5, .who = {2, 3, 0, 4, 1}, .late = 5, .key = 9};
    bm_model_settings set = {networks[network].net, networks[network].loss,
                             "skip"};
    bm_model_shape shape = {D, C, 2};

    *r = (run){.be = be};
    assert_ok(bm_model_new(&r->m, &set, &shape, be, 7));
    disturb(r);
    fill(r, &all);
    bm_model_gradient(r->m, &r->b, 1, 1);
}

static void close_run(run *r)
{
    bm_free(r->be, r->b.x.data);
    bm_model_free(r->m);
}

/* Logits [frames, C] of column b; free(). */
static float *logits(run *r, size_t b, size_t *n)
{
    bm_extent e;
    float *all = NULL, *out = NULL;
    bm_tensor y;

    bm_model_evaluate(r->m, &r->b, 0);
    y = bm_model_output(r->m, &e);
    all = fetch(r->be, y.data, bm_count(y));
    *n = (size_t)e.frames[b] * C;
    out = malloc(*n * sizeof *out);
    assert_non_null(out);
    for (size_t i = 0; i < *n; i++)
        out[i] = all[(i / C * e.B + b) * C + i % C];
    for (size_t i = 0; i < bm_count(y); i++)
        assert_true(inside(&e, i, C) || all[i] == 0);
    free(all);
    return out;
}

/* Adds the gradient of the batch's summed loss to sum [n]. */
static void add_gradient(run *r, double *sum)
{
    const bm_params *p = bm_model_params(r->m);
    float *g = NULL;
    bm_score s;
    double n = 0; /* the loss is a mean over so many */

    bm_model_gradient(r->m, &r->b, 1, 0);
    g = fetch(r->be, p->g, p->n);
    assert_ok(bm_model_score(r->m, 0, &s));
    n = bm_model_loss(r->m)->per_frame ? s.frames : s.sequences;
    for (size_t i = 0; i < p->n; i++)
        sum[i] += n * g[i];
    free(g);
}

/* Sequence 0 alone, and at some column of every batch. */
static void check_logits(bm_backend *be, size_t network)
{
    static const struct {
        group c;
        size_t column;
    } cases[] = {
        {{.n = 1, .who = {0}, .late = 4}, 0},
        {{.n = 2, .who = {0, 4}, .late = 1}, 0},
        {{.n = 3, .who = {2, 0, 1}}, 1},
        {{.n = 3, .who = {1, 3, 0}, .late = 5}, 2},
        {{.n = 5, .who = {4, 0, 3, 1, 2}}, 1},
    };
    static const group alone = {.n = 1, .who = {0}};
    run r;
    size_t n = 0, same = 0;
    float *expected = NULL;

    open_run(&r, be, network);
    fill(&r, &alone);
    expected = logits(&r, 0, &n);
    FOR_EACH (k, cases) {
        float *y = NULL;

        fill(&r, &cases[k].c);
        y = logits(&r, cases[k].column, &same);
        assert_int_equal(same, n);
        for (size_t i = 0; i < n; i++)
            assert_true(near(y[i], expected[i], 1e-6));
        free(y);
    }
    free(expected);
    close_run(&r);
}

/* The gradient of a batch is the sum of those of its sequences alone. */
static void check_gradients(bm_backend *be, size_t network)
{
    static const group batches[] = {
        {.n = 5, .who = {4, 0, 3, 1, 2}},
        {.n = 5, .who = {4, 0, 3, 1, 2}, .late = 3},
        {.n = 5, .who = {2, 0, 4, 1, 3}},
    };
    run r;
    size_t n = 0;
    double *alone = NULL;

    open_run(&r, be, network);
    n = bm_model_params(r.m)->n;
    alone = calloc(n, sizeof *alone);
    assert_non_null(alone);
    for (int who = 0; who < SEQUENCES; who++) {
        group c = {.n = 1, .who = {who}};

        fill(&r, &c);
        add_gradient(&r, alone);
    }
    FOR_EACH (k, batches) {
        double *sum = calloc(n, sizeof *sum);

        assert_non_null(sum);
        fill(&r, &batches[k]);
        add_gradient(&r, sum);
        for (size_t i = 0; i < n; i++)
            assert_true(near(sum[i], alone[i], 1e-6));
        free(sum);
    }
    free(alone);
    close_run(&r);
}

/* Logits of sequence 0, and its gradient if the others are infeasible. */
static void check_bits(bm_backend *be, size_t network)
{
    group c = {.n = 4, .who = {2, 0, 4, 1}, .late = 1, .mute = true};
    float *y[2], *g[2];
    size_t n[2], weights = 0;
    run r;

    open_run(&r, be, network);
    weights = bm_model_params(r.m)->n;
    for (size_t k = 0; k < 2; k++) {
        c.key = k;
        fill(&r, &c);
        y[k] = logits(&r, 1, &n[k]);
        bm_model_gradient(r.m, &r.b, 1, 1);
        g[k] = fetch(be, bm_model_params(r.m)->g, weights);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(y[0], y[1], n[0] * sizeof **y);
    if (!bm_model_loss(r.m)->per_frame && !networks[network].mixes)
        assert_memory_equal(g[0], g[1], weights * sizeof **g);
    for (size_t k = 0; k < 2; k++) {
        free(y[k]);
        free(g[k]);
    }
    close_run(&r);
}

static void on_every_network(void (*check)(bm_backend *be, size_t network),
                             bm_backend *be)
{
    FOR_EACH (k, networks)
        if (check != check_gradients || !networks[k].mixes)
            check(be, k);
}

/* Of instructions; a device has one. */
static void on_every_set(void (*check)(bm_backend *be, size_t network))
{
    if (strcmp(backend, "cpu") != 0) {
        on_every_network(check, cpu);
        return;
    }
    FOR_EACH (i, set_names) {
        bm_backend *be = NULL;

        setenv("BMUF_ISA", set_names[i], 1);
        if (bm_backend_open(&be, "cpu", 0) == BM_OK)
            on_every_network(check, be);
        bm_backend_close(be);
    }
    unsetenv("BMUF_ISA");
}

static void test_logits_equal_those_of_the_sequence_alone(void **state)
{
    (void)state;
    on_every_set(check_logits);
}

static void test_gradients_are_sums_over_single_sequences(void **state)
{
    (void)state;
    on_every_set(check_gradients);
}

static void test_bits_do_not_depend_on_other_sequences(void **state)
{
    (void)state;
    on_every_set(check_bits);
}

/* Attention takes 4096 frames, here of 2 frames of the batch. */
static void test_sequences_that_are_too_long_change_no_other(void **state)
{
    enum { FAR = 2 * 4097 };
    static const int32_t frames[] = {FAR, 5}, counts[] = {0, 0};
    bm_model_settings set = {"stack:2 linear:4 attention:2 linear", "ctc",
                             "error"};
    bm_model_shape shape = {D, C, 1};
    bm_rng rng = bm_rng_make(3, "x", 0);
    float one[5 * D], *x = zeros((size_t)FAR * 2 * D, sizeof *x);
    bm_backend *be = NULL;
    run r = {0};
    size_t n = 0, m = 0;
    float *alone = NULL, *beside = NULL;

    (void)state;
    for (size_t i = 0; i < 5 * D; i++)
        one[i] = (float)bm_rng_normal(&rng);
    for (size_t i = 0; i < (size_t)FAR * 2 * D; i++)
        x[i] = (float)bm_rng_normal(&rng);
    for (size_t t = 0; t < FAR; t++)
        for (size_t d = 0; d < D; d++)
            x[(2 * t + 1) * D + d] = t < 5 ? one[t * D + d] : 0;
    assert_ok(bm_backend_open(&be, backend, 0));
    r.be = be;
    assert_ok(bm_model_new(&r.m, &set, &shape, be, 7));
    assert_false(bm_model_takes(r.m, FAR));
    assert_true(bm_model_takes(r.m, 2 * 4096));
    r.b = (bm_batch){.extent = {5, 1, frames + 1},
                     .x = {place(be, one, 5 * D), 3, {5, 1, D, 1}},
                     .targets = {NULL, counts}};
    alone = logits(&r, 0, &n);
    bm_free(be, r.b.x.data);
    r.b =
        (bm_batch){.extent = {FAR, 2, frames},
                   .x = {place(be, x, (size_t)FAR * 2 * D), 3, {FAR, 2, D, 1}},
                   .targets = {NULL, counts}};
    bm_model_evaluate(r.m, &r.b, 0);
    assert_int_equal(bm_sync(be), BM_ERR_CONFIG);
    bm_model_skip_infeasible(r.m);
    beside = logits(&r, 1, &m);
    assert_ok(bm_sync(be));
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++)
        assert_true(near(beside[i], alone[i], 1e-6));
    free(logits(&r, 0, &m));
    assert_int_equal(m, 0);
    free(alone);
    free(beside);
    free(x);
    close_run(&r);
    bm_backend_close(be);
}

/* Whatever the memory held before, and whatever follows a sequence where it was
 * read. 0 frames: a sequence that the reader dropped as not finite. */
static void test_collating_clears_the_padding(void **state)
{
    static int64_t order[] = {0, 1, 2, 3, 4, 3, 0, 1};
    static size_t ends[] = {5, 8}, zero[] = {0};
    static bm_share_offsets begin[] = {{0}, {.sequences = SEQUENCES}};
    static const group c = {0};
    float x[SEQUENCES][LONGEST * D];
    bm_sample samples[SEQUENCES];
    bm_unit_at unit = {0};
    bm_dataset d = {.features = D, .units = &unit, .n_units = 1};
    bm_share share = {
        .cut = {.n_batches = 2, .sequences = order, .ends = ends},
        .n_units = 1,
        .units = zero,
        .begin = begin,
        .samples = samples,
    };
    bm_collator collator = {.be = cpu, .d = &d};
    const bm_batch *b = NULL;
    size_t room = 0;

    (void)state;
    if (strcmp(backend, "cpu") != 0) /* the host writes to its memory */
        skip();
    for (int who = 0; who < SEQUENCES; who++) {
        for (size_t i = 0; i < LONGEST * D; i++)
            x[who][i] = NAN;
        if (who != 4)
            draw(&c, who, x[who]);
        samples[who] = (bm_sample){{.x = x[who], .bytes = sizeof(float)},
                                   NULL,
                                   who != 4 ? lengths[who] : 0,
                                   0};
    }
    assert_ok(bm_collate(&collator, &share, 0, &b)); /* takes the memory */
    room = bm_count(b->x);
    for (int64_t step = 0; step < 2; step++) {
        float *got = NULL;

        for (size_t i = 0; i < room; i++)
            collator.batch.x.data[i] = NAN;
        assert_ok(bm_collate(&collator, &share, step, &b));
        got = fetch(cpu, b->x.data, bm_count(b->x));
        for (size_t i = 0; i < bm_count(b->x); i++) {
            size_t t = i / D / b->extent.B, column = i / D % b->extent.B;
            int64_t who = order[(step == 0 ? 0 : ends[0]) + column];

            assert_true(got[i] ==
                        (inside(&b->extent, i, D) ? x[who][t * D + i % D] : 0));
        }
        free(got);
    }
    bm_collator_free(&collator);
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
        cmocka_unit_test(test_logits_equal_those_of_the_sequence_alone),
        cmocka_unit_test(test_gradients_are_sums_over_single_sequences),
        cmocka_unit_test(test_bits_do_not_depend_on_other_sequences),
        cmocka_unit_test(test_sequences_that_are_too_long_change_no_other),
        cmocka_unit_test(test_collating_clears_the_padding),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return cmocka_run_group_tests_name("padding", tests, open_backend,
                                       close_cpu);
}
