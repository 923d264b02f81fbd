/* Networks: the line that describes them, and gradients against differences. */
#include "models/model.h"
#include "models/transfer.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { T = 5, B = 4, D = 3, C = 4, N_X = T * B * D };

/* Out of order, one empty, one of one frame. */
static const int32_t lengths[B] = {3, 5, 0, 1};

/* Between -1.1 and 1.1, and at least 0.1 from 0, where relu has a corner. */
static float draw(bm_rng *rng)
{
    float x = (float)(2 * bm_rng_uniform(rng) - 1);
    return x + (x < 0 ? -0.1f : 0.1f);
}

/* ---- gradients and scores ---- */

static const int32_t labels[] = {1, 2, 3, 3, 1, 1, 2, 0, 3, 1};

static bm_model *build(const char *net, const char *loss)
{
    bm_model *m = NULL;
    bm_model_settings set = {net, loss, "skip"};
    bm_model_shape shape = {D, C, 2};

    assert_ok(bm_model_new(&m, &set, &shape, cpu, 7));
    return m;
}

/* Sequences 0, 1 and 3 of `lengths`; with a target for every frame, or with one
 * or two labels. `late`: frames of padding behind the
 * longest sequence. */
static bm_batch make_batch(float *x, int32_t *count, bool per_frame,
                           size_t late)
{
    bm_rng rng = bm_rng_make(11, "batch", 0);
    bm_batch b = {.extent = {T + late, B, lengths}, .targets = {labels, count}};

    memset(x, 0, 2 * N_X * sizeof *x);
    for (size_t i = 0; i < N_X; i++)
        if (inside(&b.extent, i, D))
            x[i] = draw(&rng);
    for (int i = 0; i < B; i++)
        count[i] = per_frame ? lengths[i] : lengths[i] > 2 ? 2 : 0;
    b.x =
        (bm_tensor){place(cpu, x, (T + late) * B * D), 3, {T + late, B, D, 1}};
    return b;
}

static double smoothing; /* of labels, of the networks below */

/* The mean over sequences, or over all frames, of KL(u || p) of a sequence's
 * mean frame, or of a frame: p is the softmax of the last batch's logits, u is
 * uniform. */
static double spread(bm_model *m)
{
    bm_extent e = {0};
    bm_tensor y = bm_model_output(m, &e);
    float *x = fetch(cpu, y.data, e.T * e.B * C);
    double sum = 0, all = 0, sequences = 0;

    for (size_t b = 0; b < e.B; b++) {
        double own = 0, frames = e.frames[b];

        for (size_t t = 0; t < (size_t)e.frames[b]; t++) {
            const float *row = x + (t * e.B + b) * C;
            double total = 0, mean = 0;

            for (size_t k = 0; k < C; k++) {
                total += exp((double)row[k]);
                mean += (double)row[k] / C;
            }
            own += log(total) - mean - log(C);
        }
        all += frames;
        sequences += frames > 0;
        if (frames > 0)
            sum += bm_model_loss(m)->per_frame ? own : own / frames;
    }
    free(x);
    return sum / (bm_model_loss(m)->per_frame ? all : sequences);
}

static double loss_of(bm_model *m, const bm_batch *b)
{
    bm_score s = {0};
    double loss = 0;

    bm_model_evaluate(m, b, 0);
    assert_ok(bm_model_score(m, 0, &s));
    assert_true(s.sequences > 0);
    loss = s.loss / (bm_model_loss(m)->per_frame ? s.frames : s.sequences);
    return smoothing == 0 ? loss
                          : (1 - smoothing) * loss + smoothing * spread(m);
}

/*
 * Along the gradient, where a loss falls fastest, and for single weights. The
 * loss is known to about 1e-6, so a step of 1/64 leaves 6e-5, and truncation
 * h^2 / 6 times a third derivative of about 1.
 */
static void check_network(const char *net, const char *loss)
{
    bm_model *m = build(net, loss);
    bm_params *p = bm_model_params(m);
    float x[2 * N_X], *g = NULL, *w = NULL, *moved = NULL;
    int32_t count[B];
    bm_batch b = make_batch(x, count, bm_model_loss(m)->per_frame, 1);
    double norm = 0, h = 0x1p-6;

    bm_model_smooth(m, smoothing);
    bm_model_gradient(m, &b, 1, 1);
    g = fetch(cpu, p->g, p->n);
    w = fetch(cpu, p->w, p->n);
    moved = fetch(cpu, p->w, p->n);
    for (size_t i = 0; i < p->n; i++)
        norm += (double)g[i] * g[i];
    norm = sqrt(norm);
    assert_true(norm > 0.01);
    BM_ASSERT(p->n > 0);
    for (size_t k = 0; k < 60; k++) {
        double side[2], slope = k == 0 ? norm : g[(k * 37) % p->n];

        for (int s = 0; s < 2; s++) {
            double step = s == 0 ? h : -h;
            for (size_t i = 0; i < p->n; i++)
                moved[i] = k == 0 ? (float)(w[i] + step * g[i] / norm) : w[i];
            if (k > 0)
                moved[(k * 37) % p->n] += (float)step;
            bm_put(cpu, p->w, moved, p->n);
            side[s] = loss_of(m, &b);
        }
        assert_true(near((side[0] - side[1]) / (2 * h), slope, 5e-4));
    }
    free(g);
    free(w);
    free(moved);
    bm_free(cpu, b.x.data);
    bm_model_free(m);
}

static void test_gradients_match_differences(void **state)
{
    (void)state;
    check_network("linear", "cross_entropy");
    check_network("linear:6 sigmoid linear:5 tanh linear", "cross_entropy");
    check_network("blstm:4*2 linear", "cross_entropy");
    check_network("blstm:4*2 linear", "ctc");
    check_network("bgru:4 gru:3 linear", "ctc");
    check_network("blstm:4,project:2*2 linear", "ctc");
    check_network("linear:4 lstm:5 stack:2 tanh linear", "ctc");
    check_network("subsample:2 blstm:3 dropout:0 linear", "ctc");
}

static void test_gradients_are_of_smoothed_labels(void **state)
{
    (void)state;
    smoothing = 0.25;
    check_network("linear:5 tanh linear", "cross_entropy");
    check_network("linear:5 tanh linear", "ctc");
    check_network("bgru:4 stack:2 linear", "ctc");
    smoothing = 0;
}

/* Those of training neither. */
static void test_scores_have_no_smoothing(void **state)
{
    static const char *const losses[] = {"cross_entropy", "ctc"};

    (void)state;
    FOR_EACH (i, losses) {
        bm_model *m = build("linear", losses[i]);
        float x[2 * N_X];
        int32_t count[B];
        bm_batch b = make_batch(x, count, i == 0, 0);
        bm_score plain = {0}, trained = {0}, scored = {0};

        bm_model_gradient(m, &b, 1, 0);
        assert_ok(bm_model_score(m, 0, &plain));
        bm_model_smooth(m, 0.25);
        bm_model_gradient(m, &b, 1, 0);
        assert_ok(bm_model_score(m, 0, &trained));
        bm_model_evaluate(m, &b, 0);
        assert_ok(bm_model_score(m, 0, &scored));
        assert_memory_equal(&trained, &plain, sizeof plain);
        assert_memory_equal(&scored, &plain, sizeof plain);
        bm_free(cpu, b.x.data);
        bm_model_free(m);
    }
}

/* Nor do earlier batches. */
static void test_padding_does_not_change_gradients(void **state)
{
    bm_model *m = build("linear:4 sigmoid stack:2 blstm:5 linear", "ctc");
    bm_params *p = bm_model_params(m);
    float x[2 * N_X], *tight = NULL, *loose = NULL, *again = NULL;
    int32_t count[B];
    bm_batch a = make_batch(x, count, false, 0);
    bm_batch b = make_batch(x, count, false, 4);

    (void)state;
    bm_model_gradient(m, &a, 1, 0);
    tight = fetch(cpu, p->g, p->n);
    bm_model_gradient(m, &b, 1, 0); /* needs more scratch */
    loose = fetch(cpu, p->g, p->n);
    bm_model_gradient(m, &a, 1, 0);
    again = fetch(cpu, p->g, p->n);
    assert_memory_equal(again, tight, p->n * sizeof *tight);
    for (size_t i = 0; i < p->n; i++)
        assert_true(near(loose[i], tight[i], 1e-6));
    free(tight);
    free(loose);
    free(again);
    bm_free(cpu, a.x.data);
    bm_free(cpu, b.x.data);
    bm_model_free(m);
}

static void check_masks(const char *net)
{
    bm_model *m = build(net, "cross_entropy");
    bm_params *p = bm_model_params(m);
    float x[2 * N_X], *g[3];
    int32_t count[B];
    bm_batch b = make_batch(x, count, true, 0);
    double before = loss_of(m, &b);
    bm_score of_passes;

    for (int i = 0; i < 3; i++) {
        bm_model_gradient(m, &b, i == 2 ? 43 : 42, 0);
        g[i] = fetch(cpu, p->g, p->n);
    }
    assert_memory_equal(g[0], g[1], p->n * sizeof **g);
    assert_memory_not_equal(g[0], g[2], p->n * sizeof **g);
    assert_ok(bm_model_score(m, 0, &of_passes));
    assert_true(loss_of(m, &b) == before);
    for (int i = 0; i < 3; i++)
        free(g[i]);
    bm_free(cpu, b.x.data);
    bm_model_free(m);
}

static void test_the_key_selects_the_dropout_masks(void **state)
{
    (void)state;
    check_masks("linear:8 dropout:0.5 tanh linear");
    check_masks("gru:8,weight_dropout:0.5 linear");
}

static void test_scores_add_up_until_they_are_read(void **state)
{
    bm_model *m = build("lstm:4 linear", "cross_entropy");
    float x[2 * N_X];
    int32_t count[B];
    bm_batch b = make_batch(x, count, true, 0);
    bm_score one, two, none;

    (void)state;
    bm_model_evaluate(m, &b, 0);
    bm_model_evaluate(m, &b, 1);
    bm_model_gradient(m, &b, 1, 1);
    assert_ok(bm_model_score(m, 0, &one));
    assert_ok(bm_model_score(m, 1, &two));
    assert_ok(bm_model_score(m, 1, &none));
    assert_true(one.frames == 3 + 5 + 1 && two.frames == 18);
    assert_true(one.loss > 0 && near(two.loss, 2 * one.loss, 1e-12));
    assert_true(none.loss == 0 && none.frames == 0);
    bm_free(cpu, b.x.data);
    bm_model_free(m);
}

static void test_descent_lowers_the_loss(void **state)
{
    bm_model *m = build("blstm:8 linear", "ctc");
    bm_params *p = bm_model_params(m);
    float x[2 * N_X];
    int32_t count[B];
    bm_batch b = make_batch(x, count, false, 0);
    double first = loss_of(m, &b);

    (void)state;
    for (int i = 0; i < 200; i++) {
        bm_model_gradient(m, &b, 0, 1);
        bm_axpby(cpu, p->n, -0.225f, p->g, 1, p->w);
    }
    assert_true(loss_of(m, &b) < first / 4);
    bm_free(cpu, b.x.data);
    bm_model_free(m);
}

static void test_bm_model_output_is_of_the_last_batch(void **state)
{
    bm_model *m = build("stack:2 linear", "ctc");
    bm_params *p = bm_model_params(m);
    float x[2 * N_X], *w = NULL, *y = NULL;
    int32_t count[B];
    bm_batch b = make_batch(x, count, false, 0);
    bm_extent e;
    bm_tensor out;

    (void)state;
    bm_model_evaluate(m, &b, 0);
    out = bm_model_output(m, &e);
    assert_true(e.T == 3 && e.B == B && e.frames[0] == 2 && e.frames[1] == 3);
    assert_true(e.frames[2] == 0 && e.frames[3] == 1);
    assert_true(out.dim[0] == 3 && out.dim[1] == B && out.dim[2] == C);
    w = fetch(cpu, p->w, p->n);
    y = fetch(cpu, out.data, 3 * B * C);
    for (size_t c = 0; c < C; c++) { /* frames 0 and 1 of sequence 1 */
        double sum = w[C * 2 * D + c];
        for (size_t d = 0; d < 2 * D; d++)
            sum += (double)w[c * 2 * D + d] * x[(d / D * B + 1) * D + d % D];
        assert_true(near(y[1 * C + c], sum, 1e-5));
    }
    free(w);
    free(y);
    bm_free(cpu, b.x.data);
    bm_model_free(m);
}

/* ---- the description ---- */

static void test_weights_have_names_and_shapes(void **state)
{
    static const struct {
        const char *name;
        size_t offset, count, rank, dim[3];
    } expected[] = {
        {"1.blstm.wx", 0, 2 * 4 * 5 * 6, 2, {40, 6, 1}},
        {"1.blstm.wh", 240, 2 * 4 * 5 * 5, 3, {2, 20, 5}},
        {"1.blstm.b", 440, 40, 1, {40, 1, 1}},
        {"2.blstm.wx", 480, 400, 2, {40, 10, 1}},
        {"2.blstm.wh", 880, 200, 3, {2, 20, 5}},
        {"2.blstm.b", 1080, 40, 1, {40, 1, 1}},
        {"3.linear.w", 1120, 40, 2, {4, 10, 1}},
        {"3.linear.b", 1160, 4, 1, {4, 1, 1}},
    };
    bm_model *m = build(" stack:2\n blstm:5*2   linear ", "ctc");
    bm_params *p = bm_model_params(m);

    (void)state;
    assert_int_equal(p->n, 1164);
    assert_int_equal(p->n_segments, 8);
    FOR_EACH (i, expected) {
        const bm_segment *s = &p->segments[i];
        assert_string_equal(s->name, expected[i].name);
        assert_int_equal(s->offset, expected[i].offset);
        assert_int_equal(s->count, expected[i].count);
        assert_int_equal(s->rank, expected[i].rank);
        for (int d = 0; d < 3; d++)
            assert_int_equal(s->dim[d], expected[i].dim[d]);
    }
    bm_model_free(m);
}

static void test_frame_rates_multiply(void **state)
{
    bm_model *m = build("stack:2 subsample:3 linear", "ctc");

    (void)state;
    assert_int_equal(bm_model_stride(m), 6);
    for (size_t n = 0; n < 30; n++)
        assert_int_equal(bm_model_frames(m, n), ((n + 1) / 2 + 2) / 3);
    bm_model_free(m);
}

static void test_windows_without_padding_need_their_frames(void **state)
{
    bm_model *m = build("conv:4,7x1,stride:3x1,pad:0x0 linear", "ctc");

    (void)state;
    for (size_t n = 0; n < 20; n++)
        assert_int_equal(bm_model_frames(m, n), n < 7 ? 0 : (n - 7) / 3 + 1);
    bm_model_free(m);
}

/* 50 cells in each direction, and a linear layer. */
static void check_first_weights(const char *net, int directions)
{
    bm_model *m = build(net, "ctc");
    bm_params *p = bm_model_params(m);
    float *w = fetch(cpu, p->w, p->n);
    bool forgets = strstr(net, "lstm") != NULL;
    const double limit[] = {sqrt(6.0 / (D + 50)), sqrt(6.0 / 100), 0,
                            sqrt(6.0 / (directions * 50 + C)), 0};

    for (size_t k = 0; k < p->n_segments; k++) {
        const bm_segment *s = &p->segments[k];
        double squares = 0, largest = 0;
        if (k == 2)
            assert_int_equal(s->count, directions * 4 * 50);
        for (size_t i = 0; i < s->count; i++) {
            double x = w[s->offset + i];
            squares += x * x;
            largest = fmax(largest, fabs(x));
            if (k == 2) /* b: i, f, g, o (r, z, n, q) of each direction */
                assert_true(x == (forgets && i / 50 % 4 == 1 ? 1 : 0));
        }
        if (limit[k] > 0) {
            assert_true(largest <= limit[k] * 1.000001);
            /* variance limit^2 / 3, here of 200 numbers or more */
            assert_true(
                fabs(squares / (double)s->count / (limit[k] * limit[k] / 3) -
                     1) < 0.3);
        } else if (k == 4) {
            assert_true(largest == 0);
        }
    }
    free(w);
    bm_model_free(m);
}

static void test_initial_weights_are_as_documented(void **state)
{
    (void)state;
    check_first_weights("lstm:50 linear", 1);
    check_first_weights("blstm:50 linear", 2);
    check_first_weights("gru:50 linear", 1);
    check_first_weights("bgru:50 linear", 2);
}

static void test_weights_depend_on_the_seed_only(void **state)
{
    const uint64_t seeds[] = {7, 7, 8};
    float *w[3];
    size_t n = 0;

    (void)state;
    for (int i = 0; i < 3; i++) {
        bm_model *m = NULL;
        bm_model_settings set = {"blstm:4*2 linear", "ctc", "skip"};
        bm_model_shape shape = {8, C, 1};

        assert_ok(bm_model_new(&m, &set, &shape, cpu, seeds[i]));
        n = bm_model_params(m)->n;
        w[i] = fetch(cpu, bm_model_params(m)->w, n);
        bm_model_free(m);
    }
    assert_memory_equal(w[0], w[1], n * sizeof **w);
    assert_memory_not_equal(w[0], w[2], n * sizeof **w);
    /* two layers of the same shape differ */
    assert_memory_not_equal(w[0], w[0] + 32 * 8 + 2 * 16 * 4 + 32,
                            32 * 8 * sizeof **w);
    for (int i = 0; i < 3; i++)
        free(w[i]);
}

static void test_infeasible_sequences_are_found(void **state)
{
    const int32_t classes[] = {1, 2, 1, 1, 1, 2, 3};
    const int32_t frames[] = {2, 4, 5, 6, 0}, count[] = {2, 2, 0, 3, 0};
    bm_model *m = build("subsample:2 linear", "ctc");
    bm_batch b = {.extent = {6, 5, frames}, .targets = {classes, count}};
    bool bad[5];

    (void)state;
    /* 1 frame for 2 labels; 2 for a repeat, which needs 3; 3 for 3; none */
    bm_model_find_infeasible(m, &b, bad);
    assert_true(bad[0] && bad[1] && !bad[2] && !bad[3] && bad[4]);
    bm_model_free(m);
}

static void test_bm_model_print_writes_a_line_per_layer(void **state)
{
    bm_model *m = build("stack:2 linear", "ctc");
    FILE *file = tmpfile();
    char line[200];
    size_t in = 0, out = 0, n = 0;
    char name[40];

    (void)state;
    assert_non_null(file);
    bm_model_print(m, file);
    rewind(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_non_null(fgets(line, sizeof line, file));
    assert_int_equal(
        sscanf(line, "%39s %zu -> %zu %zu weights", name, &in, &out, &n), 4);
    assert_string_equal(name, "1.linear");
    assert_true(in == 6 && out == 4 && n == 28);
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
    bm_model_free(m);
}

static void test_messages_mark_the_invalid_word(void **state)
{
    static const struct {
        const char *net, *loss, *message;
    } faults[] = {
        {"stack:2 relu blsmt:320 linear", "ctc",
         "model.net: word 3 'blsmt:320': no such layer; the nearest is blstm\n"
         "    stack:2 relu blsmt:320 linear\n"
         "                 ^~~~~~~~~"},
        {"linear:4 LayerNorm linear", "ctc",
         "word 2 'LayerNorm': no such layer; here it is layernorm\n"},
        {"Conv2d:4,3x3 linear", "ctc",
         "word 1 'Conv2d:4,3x3': no such layer; here it is conv\n"},
        {"self_attention:4 linear", "ctc", "here it is attention\n"},
        {"dense:4 linear", "ctc", "here it is linear\n"},
        {"linear log_softmax", "ctc", "here it is left out, because the loss"},
        {"", "ctc", "model.net is empty"},
        {" \n ", "ctc", "model.net is empty"},
        {"blstm linear", "ctc", "word 1 'blstm': the number of cells"},
        {"blstm:0 linear", "ctc", "'0' is not a number of cells"},
        {"blstm:-3 linear", "ctc", "'-3' is not a number of cells"},
        {"blstm:3x linear", "ctc", "'3x' is not a number of cells"},
        {"blstm:99999999999999999999 linear", "ctc",
         "is not a number of cells"},
        {"stack:2 bgru linear", "ctc", "word 2 'bgru': the number of cells"},
        {"gru:0 linear", "ctc", "'0' is not a number of cells"},
        {"gru:4,project:2 linear", "ctc",
         "word 1 'gru:4,project:2': 'project:2': a GRU has no projection"},
        {"lstm:4,projects:2 linear", "ctc",
         "'projects:2' is neither project:SIZE nor weight_dropout:P"},
        {"lstm:4,project:2,3 linear", "ctc", "'3' is neither project:SIZE"},
        {"gru:4,dropout:0.5 linear", "ctc",
         "'dropout:0.5' is not weight_dropout:P"},
        {"lstm:4,weight_dropout:1 linear", "ctc",
         "'1' is not a probability in [0, 1)"},
        {"linear:3 bgru:4,weight_dropout: linear", "ctc",
         "word 2 'bgru:4,weight_dropout:': the probability is missing"},
        {"lstm:4,project: linear", "ctc",
         "the number of projected outputs is missing"},
        {"linear:3 blstm:4,project:4 linear", "ctc",
         "word 2 'blstm:4,project:4': a projection to 4 is not below 4 cells"},
        {"blstm:3* linear", "ctc", "'' is not a number of layers"},
        {"blstm:3*0 linear", "ctc", "'0' is not a number of layers"},
        {"blstm:3*600 blstm:4*600 linear", "ctc",
         "word 2 'blstm:4*600': more than 1024 layers"},
        {"blstm: linear", "ctc", "arguments are missing"},
        {"linear relu", "ctc", "word 1 'linear': the size is missing"},
        {"blstm:3", "ctc",
         "word 1 'blstm:3': the last layer has 6 outputs, "
         "but there are 4 classes"},
        {"linear:5", "ctc", "has 5 outputs"},
        {"relu:2 linear", "ctc", "relu takes no arguments"},
        {"dropout linear", "ctc", "the probability is missing"},
        {"dropout:1 linear", "ctc", "'1' is not a probability in [0, 1)"},
        {"dropout:nan linear", "ctc", "'nan' is not a probability"},
        {"dropout:0.1.2 linear", "ctc", "is not a probability"},
        {"stack:0 linear", "ctc", "'0' is not a number of frames"},
        {"stack:2 linear", "cross_entropy",
         "word 1 'stack:2': cross_entropy needs an output for every frame"},
        {"linear:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
         "aaaaaaaaa",
         "ctc", "longer than the limit of 63"},
        {"linear", "sum_of_squares", "model.loss: 'sum_of_squares' is unknown"},
    };

    (void)state;
    FOR_EACH (i, faults) {
        bm_model *m = NULL;
        bm_model_settings set = {faults[i].net, faults[i].loss, "skip"};
        bm_model_shape shape = {D, C, 1};

        assert_int_equal(bm_model_new(&m, &set, &shape, cpu, 1), BM_ERR_CONFIG);
        assert_null(m);
        if (strstr(bm_last_error(), faults[i].message) == NULL)
            print_error("%s\nbut expected\n%s\n", bm_last_error(),
                        faults[i].message);
        assert_non_null(strstr(bm_last_error(), faults[i].message));
    }
}

/* The mark is under its word although the line is shortened. */
static void test_long_lines_are_shortened(void **state)
{
    char net[2000] = "";
    size_t length = 0;
    const char *line = NULL, *mark = NULL;
    bm_model *m = NULL;
    bm_model_settings set = {net, "ctc", "skip"};
    bm_model_shape shape = {D, C, 1};

    (void)state;
    for (int i = 0; i < 100; i++)
        length += (size_t)snprintf(net + length, sizeof net - length, "%s:%d ",
                                   i == 60 ? "liner" : "linear", i + 10);
    assert_int_equal(bm_model_new(&m, &set, &shape, cpu, 1), BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "word 61 'liner:70'"));
    line = strchr(bm_last_error(), '\n') + 1;
    mark = strchr(line, '\n') + 1;
    assert_true(mark - line <= 80);
    assert_int_equal(strstr(line, "liner:70") - line, strchr(mark, '^') - mark);
}

static void test_sizes_that_overflow_are_refused(void **state)
{
    static const struct {
        const char *net, *message;
    } faults[] = {
        {"stack:1048576*3 stack:16 linear", "word 1 'stack:1048576*3': "},
        {"stack:1048576 stack:1048576 linear", "outputs per frame; the limit"},
        {"conv:1048576,1x1*3 linear", "weights in total"},
        {"linear:1048576*3 linear", "more than 1099511627776 weights"},
        {"stack:1048576*2 batchnorm linear", "outputs per frame"},
    };
    bm_model_settings set = {"stack:1048576 linear", "ctc", "skip"};
    bm_model_shape shape = {3, C, 1};
    int32_t frames[2] = {7, 1 << 30}, count[2] = {0};
    bm_model *m = NULL;
    bm_batch b = {.extent = {1 << 30, 2, frames},
                  .x = {NULL, 3, {1 << 30, 2, 3, 1}},
                  .targets = {NULL, count}};

    (void)state;
    FOR_EACH (i, faults) {
        set.net = faults[i].net;
        assert_int_equal(bm_model_new(&m, &set, &shape, cpu, 1), BM_ERR_CONFIG);
        if (strstr(bm_last_error(), faults[i].message) == NULL)
            fail_msg("%s", bm_last_error());
    }
    set.net = "linear:1000000 linear:1000000 linear"; /* 12 TB */
    assert_int_equal(bm_model_new(&m, &set, &shape, cpu, 1), BM_ERR_MEMORY);
    assert_non_null(strstr(bm_last_error(),
                           "1000009000004 weights and their gradient need "
                           "1.2e+04 GB of memory, and "));
    set.net = "stack:4096 subsample:4096 linear";
    assert_ok(bm_model_plan(&m, &set, &shape, cpu));
    assert_int_equal(bm_model_params(m)->n, (3 * 4096 + 1) * C);
    assert_null(bm_model_params(m)->w);
    assert_ok(bm_model_draw(m, 1));
    assert_non_null(bm_model_params(m)->w);
    bm_model_evaluate(m, &b, 0);
    assert_int_equal(bm_sync(cpu), BM_ERR_MEMORY);
    assert_non_null(strstr(bm_last_error(), "2 sequences, 1073741824 frames"));
    bm_model_free(m);
}

static void test_options_fill_the_settings(void **state)
{
    bm_config *config = NULL;
    bm_model_settings set = {0};

    (void)state;
    assert_ok(bm_config_new(&config));
    assert_int_equal(bm_config_fill(config, "model", bm_model_options, &set),
                     BM_ERR_CONFIG); /* a network is needed */
    assert_ok(bm_config_set(config, "model.net=lstm:3 linear"));
    assert_ok(bm_config_fill(config, "model", bm_model_options, &set));
    assert_string_equal(set.net, "lstm:3 linear");
    assert_string_equal(set.loss, "ctc");
    assert_string_equal(set.infeasible, "skip");
    for (const bm_option *o = bm_model_options; o->key != NULL; o++)
        if (strcmp(o->key, "loss") == 0) {
#define X(name) assert_non_null(strstr(o->unit, #name));
            BM_LOSSES(X)
#undef X
        }
    bm_config_free(config);
}

/* ---- transfer ---- */

/* A network on D features for the symbols of a vocabulary, all weights equal to
 * `fill` plus their index. */
static bm_model *filled(const char *net, const bm_vocab *v, float fill)
{
    bm_model *m = NULL;
    bm_model_settings set = {net, "ctc", "skip"};
    bm_model_shape shape = {D, bm_vocab_size(v), 1};
    bm_params *p = NULL;
    float *w = NULL;

    assert_ok(bm_model_new(&m, &set, &shape, cpu, 1));
    p = bm_model_params(m);
    w = zeros(p->n, sizeof *w);
    for (size_t i = 0; i < p->n; i++)
        w[i] = fill + (float)i;
    bm_put(cpu, p->w, w, p->n);
    assert_ok(bm_sync(cpu));
    free(w);
    return m;
}

static bm_vocab *symbols(const char *text)
{
    bm_vocab *v = NULL;

    assert_ok(bm_vocab_parse(&v, text, false));
    return v;
}

/* Weight i of a segment. */
static float weight_at(bm_model *m, const char *name, size_t i)
{
    const bm_params *p = bm_model_params(m);
    float x = 0;

    for (size_t k = 0; k < p->n_segments; k++)
        if (strcmp(p->segments[k].name, name) == 0) {
            bm_get(cpu, &x, p->w + p->segments[k].offset + i, 1);
            assert_ok(bm_sync(cpu));
            return x;
        }
    fail_msg("no segment %s", name);
    return 0;
}

static bm_transfer transfer(bm_model *from, const bm_vocab *old, bm_model *to,
                            const bm_vocab *new)
{
    bm_transfer x = {0};

    assert_ok(bm_transfer_layers((bm_trained){bm_model_params(from), old},
                                 (bm_trained){bm_model_params(to), new}, &x));
    return x;
}

/* b and c change places, d is new: 2 rows and the blank's are taken. */
static void test_rows_follow_their_symbols(void **state)
{
    bm_vocab *old = symbols("<blank>\na\nb\nc\n");
    bm_vocab *new = symbols("<blank>\nc\nd\nb\n");
    const char *net = "linear:2 linear";
    bm_model *from = filled(net, old, 1000), *to = filled(net, new, 0);
    static const int was[] = {0, 3, -1, 2};
    float before = weight_at(to, "1.linear.w", 2 * 2);
    bm_transfer x = transfer(from, old, to, new);

    (void)state;
    assert_string_equal(x.taken, "0.linear");
    assert_string_equal(x.output, "1.linear");
    assert_int_equal(x.symbols, 4);
    assert_int_equal(x.symbols_common, 3);
    assert_int_equal(x.symbols_dropped, 1); /* a */
    assert_false(x.whole);
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 2 && was[i] >= 0; k++) {
            size_t row = (size_t)was[i];

            assert_true(weight_at(to, "1.linear.w", 2 * i + k) ==
                        weight_at(from, "1.linear.w", 2 * row + k));
            assert_true(weight_at(to, "1.linear.b", i) ==
                        weight_at(from, "1.linear.b", row));
        }
    assert_true(weight_at(to, "1.linear.w", 2 * 2) == before);
    bm_model_free(from);
    bm_model_free(to);
    bm_vocab_free(old);
    bm_vocab_free(new);
}

/* Statistics belong to their layer; one of another shape is initialised again. */
static void test_layers_are_taken_by_name_and_shape(void **state)
{
    bm_vocab *v = symbols("<blank>\na\nb\n");
    bm_model *from = filled("batchnorm linear:2 linear:4 linear", v, 1000);
    bm_model *to = filled("batchnorm linear:2 linear:5 linear", v, 0);
    bm_model *same = filled("batchnorm linear:2 linear:4 linear", v, 0);
    bm_transfer x = transfer(from, v, to, v);

    (void)state;
    assert_string_equal(x.taken, "0.batchnorm 1.linear");
    assert_string_equal(x.anew, "2.linear 3.linear");
    assert_false(x.whole);
    assert_true(weight_at(to, "0.batchnorm.var", 1) ==
                weight_at(from, "0.batchnorm.var", 1));
    assert_true(weight_at(to, "2.linear.b", 0) < 1000);
    x = transfer(from, v, same, v);
    assert_true(x.whole && x.n_taken == 4);
    assert_true(weight_at(same, "3.linear.b", 2) ==
                weight_at(from, "3.linear.b", 2));
    bm_model_free(from);
    bm_model_free(to);
    bm_model_free(same);
    bm_vocab_free(v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_match_differences),
        cmocka_unit_test(test_gradients_are_of_smoothed_labels),
        cmocka_unit_test(test_scores_have_no_smoothing),
        cmocka_unit_test(test_padding_does_not_change_gradients),
        cmocka_unit_test(test_the_key_selects_the_dropout_masks),
        cmocka_unit_test(test_scores_add_up_until_they_are_read),
        cmocka_unit_test(test_descent_lowers_the_loss),
        cmocka_unit_test(test_bm_model_output_is_of_the_last_batch),
        cmocka_unit_test(test_weights_have_names_and_shapes),
        cmocka_unit_test(test_frame_rates_multiply),
        cmocka_unit_test(test_windows_without_padding_need_their_frames),
        cmocka_unit_test(test_initial_weights_are_as_documented),
        cmocka_unit_test(test_weights_depend_on_the_seed_only),
        cmocka_unit_test(test_infeasible_sequences_are_found),
        cmocka_unit_test(test_bm_model_print_writes_a_line_per_layer),
        cmocka_unit_test(test_messages_mark_the_invalid_word),
        cmocka_unit_test(test_long_lines_are_shortened),
        cmocka_unit_test(test_sizes_that_overflow_are_refused),
        cmocka_unit_test(test_options_fill_the_settings),
        cmocka_unit_test(test_rows_follow_their_symbols),
        cmocka_unit_test(test_layers_are_taken_by_name_and_shape),
    };
    return cmocka_run_group_tests_name("model", tests, open_cpu, close_cpu);
}
