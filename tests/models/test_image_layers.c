/*
 * Layers of columns of pixels: derivatives by weights and inputs against
 * differences of L, the sum of dy y with dy fixed; the shapes of outputs; and
 * messages for invalid arguments. On the backend that the first argument names,
 * in fp32, or in bf16 if that is the second argument.
 */
#include "models/model.h"
#include "models/net.h"
#include "tests/support/reference/layer_rig.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 7, B = 4 };

static const char *backend = "cpu";

/* Out of order, one empty, one of one frame. */
static const int32_t lengths[B] = {4, 7, 0, 1};

/* Spreads the numbers of x, keeping their order, by more than a difference
 * steps, so that the maximum of a window stays the same number. */
static void spread(rig *r)
{
    float *copy = zeros(r->n_x, sizeof *copy);

    memcpy(copy, r->x_host, r->n_x * sizeof *copy);
    for (size_t i = 0; i < r->n_x; i++) {
        size_t rank = 0;
        for (size_t k = 0; k < r->n_x; k++)
            rank += copy[k] < copy[i];
        if (inside(&r->pass.in, i, r->l->n_in))
            r->x_host[i] = 0.15f * (float)rank;
    }
    free(copy);
}

static rig set_up(const char *net, size_t height, size_t channels)
{
    rig r = rig_open(net, (bm_extent){T, B, lengths},
                     height * (channels > 0 ? channels : 1), channels, 3);

    if (r.l[r.l->fused].ops == &bm_layer_pool && !r.l->mean)
        spread(&r);
    return r;
}

/* The error of a difference is the rounding of about 60 outputs, each by half
 * of 2^-22, divided by the step: at most 6e-5 for seeds 1 to 40. With pool it
 * is half of 2^-19, of one output; of several, where windows overlap. */
static void check_layer(const char *net, size_t height, size_t channels)
{
    rig r = set_up(net, height, channels);
    bool overlap = r.l->ops == &bm_layer_pool && !r.l->mean &&
                   r.l->time.stride < r.l->time.size;

    rig_check(&r, overlap ? 1e-3 : 1e-4);
    rig_close(&r);
}

static void test_fused_layers_match_differences(void **state)
{
    (void)state;
    check_layer("batchnorm tanh", 5, 0);
    check_layer("batchnorm tanh", 5, 2);
    check_layer("batchnorm pool:3x1", 4, 1);
    check_layer("batchnorm sigmoid pool:2x2", 5, 2);
    check_layer("instancenorm tanh", 5, 0);
    check_layer("instancenorm sigmoid pool:2x2", 5, 2);
}

static void test_gradients_match_differences(void **state)
{
    static const char *const nets[] = {
        "conv:3,3x3",
        "conv:2,1x1",
        "conv:2,5x3,stride:2x1",
        "conv:3,2x4,stride:1x2",
        "conv:2,3x3,pad:0x0",
        "conv:2,4x2,stride:3x2,pad:3x1",
        "conv:2,3x3,pad:2x1,stride:2x2",
        "conv:2,3x3,dilation:2x2",
        "conv:2,2x3,dilation:3x1,pad:2x0,stride:2x1",
        "pool:2x2",
        "pool:3x1",
        "pool:1x4",
        "pool:3x3,stride:2x2",
        "pool:3x2,stride:1x1,pad:1x0",
        "pool:2x3,mean",
        "pool:3x3,mean,stride:1x2",
        "pool:all",
        "pool:all,mean",
        "batchnorm",
        "layernorm",
        "instancenorm",
        "leaky_relu",
        "swish",
        "gelu",
        "scale:0.5",
        "dropout:0.3",
        "blstm:3,weight_dropout:0.4",
        "gru:4,weight_dropout:0.4",
    };

    (void)state;
    FOR_EACH (i, nets) {
        check_layer(nets[i], 5, 2);
        check_layer(nets[i], 4, 1);
        check_layer(nets[i], 5, 0);
    }
    check_layer("attention:2", 1, 2);
    check_layer("glu", 3, 4);
    check_layer("glu", 6, 0);
    check_layer("depthwise:3", 3, 2);
}

/* By the list of layers; those with arguments have a row here or in
 * test_layer.c. */
static void test_every_layer_without_arguments_has_its_gradient(void **state)
{
    static const bm_layer_ops *const all[] = {
#define X(name) &bm_layer_##name,
        BM_LAYERS(X)
#undef X
    };

    (void)state;
    FOR_EACH (i, all) {
        size_t n = strlen(all[i]->name);

        if (all[i]->role != BM_ALONE || strncmp(all[i]->help + n, "  ", 2) != 0)
            continue;
        print_message("%s\n", all[i]->name);
        check_layer(all[i]->name, 6, 0);
        check_layer(all[i]->name, 3, 4);
    }
}

/* y, dx and g, concatenated. */
static float *everything(const char *net, size_t threads,
                         bm_precision precision, size_t *n)
{
    rig r = {0};
    float *all = NULL, *y = NULL, *dx = NULL, *g = NULL;

    assert_ok(bm_backend_use(cpu, threads, precision));
    r = set_up(net, 9, 4);
    (void)rig_outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    dx = fetch(cpu, r.dx.data, r.n_x);
    g = fetch(cpu, r.l->g, r.n_w);
    *n = r.n_y + r.n_x + r.n_w;
    all = zeros(*n, sizeof *all);
    memcpy(all, y, r.n_y * sizeof *all);
    memcpy(all + r.n_y, dx, r.n_x * sizeof *all);
    memcpy(all + r.n_y + r.n_x, g, r.n_w * sizeof *all);
    free(y);
    free(dx);
    free(g);
    rig_close(&r);
    assert_ok(bm_backend_use(cpu, 1, BM_FP32));
    return all;
}

static const char *const image_nets[] = {"conv:19,3x5",
                                         "conv:33,4x3,stride:3x2",
                                         "conv:18,3x3,dilation:2x2",
                                         "pool:2x2",
                                         "pool:3x3,mean,stride:2x1",
                                         "pool:3x3,stride:2x1",
                                         "batchnorm",
                                         "batchnorm leaky_relu pool:2x2",
                                         "layernorm",
                                         "instancenorm sigmoid pool:2x2",
                                         "depthwise:5",
                                         "depthwise:4,stride:3"};

static void check_threads(const char *net)
{
    size_t n = 0;
    float *alone = everything(net, 1, BM_FP32, &n);

    for (size_t threads = 2; threads <= 5; threads += 3) {
        float *shared = everything(net, threads, BM_FP32, &n);
        assert_memory_equal(shared, alone, n * sizeof *alone);
        free(shared);
    }
    free(alone);
}

static void test_threads_change_no_bit(void **state)
{
    (void)state;
    FOR_EACH (i, image_nets)
        check_threads(image_nets[i]);
    check_threads("attention:4");
    check_threads("blstm:9,weight_dropout:0.3");
    check_threads("gru:8,weight_dropout:0.3");
}

/* rounds: some number must differ. */
static void check_bf16(const char *net, double tolerance, bool rounds)
{
    size_t n = 0;
    float *whole = everything(net, 1, BM_FP32, &n);
    float *half = everything(net, 1, BM_BF16, &n);
    double off = 0, norm = 0;

    for (size_t k = 0; k < n; k++) {
        off += pow((double)half[k] - whole[k], 2);
        norm += pow(whole[k], 2);
    }
    if ((rounds && off == 0) || !(sqrt(off) < tolerance * sqrt(norm)))
        fail_msg("%s: %g of the norm", net, sqrt(off / norm));
    free(whole);
    free(half);
}

/* Both factors of a product and the stored result are rounded, by 2^-9 at most
 * and about as often up as down; in recurrent layers in each frame. The softmax
 * of attention multiplies the rounding of its scores by their size. */
static void test_bf16_is_near_fp32(void **state)
{
    (void)state;
    FOR_EACH (i, image_nets)
        check_bf16(image_nets[i], 0x1p-8, true);
    check_bf16("blstm:9,weight_dropout:0.3", 0x1p-6, true);
    check_bf16("gru:8,weight_dropout:0.3", 0x1p-6, true);
    check_bf16("blstm:9,project:4", 0x1p-6, true);
}

/* By the list of layers: a layer is its name, unless it needs arguments. Some round
 * nothing. */
static void test_every_layer_in_bf16_is_near_fp32(void **state)
{
    static const bm_layer_ops *const all[] = {
#define X(name) &bm_layer_##name,
        BM_LAYERS(X)
#undef X
    };
    static const struct {
        const char *net;
        double tolerance;
    } others[] = {
        {"linear:9", 0x1p-8},    {"conv:9,3x3", 0x1p-8},
        {"depthwise:3", 0x1p-8}, {"pool:2x2", 0x1p-8},
        {"scale:0.3", 0x1p-8},   {"lstm:9", 0x1p-6},
        {"blstm:9", 0x1p-6},     {"gru:9", 0x1p-6},
        {"bgru:9", 0x1p-6},      {"attention:4", 0x1p-4},
        {"dropout:0.3", 0x1p-8}, {"stack:2", 0x1p-8},
        {"subsample:2", 0x1p-8}, {"splice:-1,0,2", 0x1p-8},
    };

    (void)state;
    FOR_EACH (i, all) {
        const char *net = all[i]->name;
        double tolerance = 0x1p-8;

        if (all[i]->role != BM_ALONE)
            continue; /* groups have a test of their own */
        FOR_EACH (k, others) {
            size_t n = strlen(all[i]->name);

            if (strncmp(others[k].net, all[i]->name, n) == 0 &&
                others[k].net[n] == ':') {
                net = others[k].net;
                tolerance = others[k].tolerance;
            }
        }
        check_bf16(net, tolerance, false);
    }
}

/* Bit for bit, without products of matrices. */
static void test_instruction_sets_agree(void **state)
{
    static const char *const sets[] = {"baseline", "avx2", "avx512"};
    static const struct {
        const char *net;
        double tolerance;
    } nets[] = {{"conv:19,3x5", 2e-5},
                {"pool:2x2", 0},
                {"batchnorm", 0},
                {"batchnorm leaky_relu pool:2x2", 0},
                {"leaky_relu", 0}};
    bm_backend *mine = cpu;

    (void)state;
    if (strcmp(backend, "cpu") != 0)
        skip();
    FOR_EACH (i, nets) {
        float *plain = NULL;

        FOR_EACH (k, sets) {
            float *all = NULL;
            size_t n = 0;

            setenv("BMUF_ISA", sets[k], 1);
            if (bm_backend_open(&cpu, "cpu", 0) != BM_OK)
                continue; /* not on this machine */
            all = everything(nets[i].net, 1, BM_FP32, &n);
            plain = plain != NULL ? plain : all;
            for (size_t j = 0; j < n; j++)
                assert_true(near(all[j], plain[j], nets[i].tolerance));
            if (all != plain)
                free(all);
            bm_backend_close(cpu);
        }
        free(plain);
    }
    unsetenv("BMUF_ISA");
    cpu = mine;
}

/* By a tenth of the distance to those of the batch, from 0 and 1 as in
 * PyTorch. */
static void test_statistics_follow_the_data(void **state)
{
    rig r = set_up("batchnorm", 6, 1);
    float *gs = NULL;
    double mean = 0, square = 0, n = 0;

    (void)state;
    assert_int_equal(r.n_s, 2);
    assert_true(r.l->weights[2].start == 0 && r.l->weights[3].start == 1);
    (void)rig_outcome(&r);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    gs = fetch(cpu, r.l->gs, 2);
    for (size_t i = 0; i < r.n_x; i++)
        if (inside(&r.pass.in, i, 6)) {
            mean += r.x_host[i];
            square += (double)r.x_host[i] * r.x_host[i];
            n++;
        }
    mean /= n;
    assert_true(near(gs[0], 0.1 * (r.s_host[0] - mean), 1e-5));
    assert_true(
        near(gs[1], 0.1 * (r.s_host[1] - (square / n - mean * mean)), 1e-5));
    free(gs);
    rig_close(&r);
}

static bm_layer *plan_all(const char *net, size_t features, size_t *n)
{
    bm_layer *l = NULL;
    size_t size = features, channels = 0;

    assert_ok(bm_net_parse(net, &l, n));
    for (size_t k = 0; k < *n; k++) {
        l[k].n_in = size;
        l[k].channels_in = channels;
        assert_ok(l[k].ops->plan(&l[k]));
        size = l[k].n_out;
        channels = l[k].channels;
    }
    return l;
}

static void test_columns_stay_columns_until_a_flat_layer(void **state)
{
    static const size_t out[][2] = {/* numbers, channels */
                                    {160, 16}, {160, 16}, {80, 16}, {80, 16},
                                    {80, 16},  {96, 32},  {14, 0},  {14, 0},
                                    {42, 3},   {21, 3}};
    size_t n = 0;
    bm_layer *l = plan_all("conv:16,3x3 leaky_relu pool:2x2 dropout:0.5 "
                           "batchnorm conv:32,3x5,stride:1x2 blstm:7 tanh "
                           "conv:3,1x1 pool:2x2",
                           10, &n);

    (void)state;
    assert_int_equal(n, 10);
    FOR_EACH (k, out) {
        assert_int_equal(l[k].n_out, out[k][0]);
        assert_int_equal(l[k].channels, out[k][1]);
    }
    assert_int_equal(l[4].weights[0].dim[0], 16);
    free(l);
    l = plan_all("linear:9 batchnorm", 4, &n);
    assert_int_equal(l[1].weights[0].dim[0], 9);
    free(l);
}

static void test_frames_follow_kernel_stride_and_padding(void **state)
{
    static const struct {
        const char *net;
        size_t frames[6]; /* for 0, 1, 2, 5, 8 and 9 */
    } cases[] = {
        {"conv:2,3x3", {0, 1, 2, 5, 8, 9}},
        {"conv:2,4x4", {0, 1, 2, 5, 8, 9}},
        {"conv:2,3x3,stride:2x1", {0, 1, 1, 3, 4, 5}},
        {"conv:2,4x1,stride:3x1", {0, 1, 1, 2, 3, 3}},
        {"conv:2,3x1,pad:0x0", {0, 0, 0, 3, 6, 7}},
        {"conv:2,3x1,pad:2x0", {0, 3, 4, 7, 10, 11}},
        {"conv:2,3x3,dilation:2x2", {0, 1, 2, 5, 8, 9}},
        {"conv:2,4x1,dilation:3x1,stride:2x1", {0, 1, 1, 3, 4, 5}},
        {"conv:2,3x1,dilation:2x1,pad:0x0", {0, 0, 0, 1, 4, 5}},
        {"conv:2,3x2,dilation:3x4,pad:3x2,stride:2x1", {0, 1, 1, 3, 4, 5}},
        {"pool:2x2", {0, 1, 1, 3, 4, 5}},
        {"pool:3x2", {0, 1, 1, 2, 3, 3}},
        {"pool:3x3,stride:2x1", {0, 1, 1, 3, 4, 5}},
        {"pool:3x3,stride:1x1", {0, 1, 2, 5, 8, 9}},
        {"pool:3x3,pad:0x0,stride:2x2", {0, 0, 0, 2, 3, 4}},
        {"pool:2x2,pad:0x0", {0, 0, 1, 2, 4, 4}},
        {"pool:all", {0, 1, 1, 1, 1, 1}},
        {"stack:3", {0, 1, 1, 2, 3, 3}},
        {"subsample:4", {0, 1, 1, 2, 2, 3}},
        {"splice:-2,3", {0, 1, 2, 5, 8, 9}},
        {"batchnorm", {0, 1, 2, 5, 8, 9}},
    };
    static const size_t frames[] = {0, 1, 2, 5, 8, 9};

    (void)state;
    FOR_EACH (i, cases) {
        size_t n = 0;
        bm_layer *l = plan_all(cases[i].net, 6, &n);

        FOR_EACH (k, frames)
            assert_int_equal(bm_windows(l->time, frames[k]),
                             cases[i].frames[k]);
        free(l);
    }
}

/* torch.nn.MaxPool2d((2, 1)) makes of 5, 6 and 7 rows 2, 3 and 3. */
static void test_rows_are_pooled_as_in_pytorch_without_padding(void **state)
{
    static const size_t rows[][3] = {{5, 2, 3}, {6, 3, 3}, {7, 3, 4}};

    (void)state;
    FOR_EACH (i, rows) {
        size_t n = 0;
        bm_layer *l = plan_all("pool:1x2,pad:0x0", rows[i][0], &n);

        assert_int_equal(l->n_out, rows[i][1]);
        assert_int_equal(bm_windows(l->time, 9), 9);
        free(l);
        l = plan_all("pool:1x2", rows[i][0], &n);
        assert_int_equal(l->n_out, rows[i][2]);
        free(l);
    }
}

/* A time-delay layer in both ways: frames side by side times the kernel, as a
 * matrix, is the convolution. */
static void
test_a_dilated_convolution_is_a_product_with_spliced_frames(void **_)
{
    enum { D = 6, K = 3 * D, N = 5 };
    rig r = set_up("conv:5,3x6,dilation:2x1,pad:2x0", D, 1);
    rig s = set_up("splice:-2,0,2", D, 0);
    float *y = NULL, *joined = NULL;

    (void)_;
    memcpy(s.x_host, r.x_host, r.n_x * sizeof *s.x_host);
    (void)rig_outcome(&r);
    (void)rig_outcome(&s);
    assert_int_equal(r.n_y, T * B * N);
    assert_int_equal(r.n_w, K * N + N);
    y = fetch(cpu, r.y.data, r.n_y);
    joined = fetch(cpu, s.y.data, s.n_y);
    for (size_t i = 0; i < r.n_y; i++) {
        double sum = r.w_host[K * N + i % N];

        for (size_t k = 0; k < K; k++)
            sum += (double)joined[i / N * K + k] * r.w_host[k * N + i % N];
        assert_true(near(y[i], inside(&r.pass.out, i, N) ? sum : 0, 1e-5));
    }
    free(y);
    free(joined);
    rig_close(&r);
    rig_close(&s);
}

static void test_messages_mark_the_invalid_word(void **state)
{
    static const struct {
        const char *net, *loss, *message;
    } faults[] = {
        {"conv linear", "ctc",
         "word 1 'conv': the number of channels is missing: "
         "conv:CHANNELS,TIMExHEIGHT"},
        {"conv:8 linear", "ctc", "the kernel is missing: conv:CHANNELS"},
        {"conv:8, linear", "ctc", "the kernel is missing"},
        {"conv:x,3x3 linear", "ctc", "'x' is not a number of channels"},
        {"conv:8,3 linear", "ctc",
         "'3' is not a valid kernel; give FRAMESxROWS"},
        {"conv:8,3x linear", "ctc", "'3x' is not a valid kernel"},
        {"conv:8,x3 linear", "ctc", "'x3' is not a valid kernel"},
        {"conv:8,3x3x3 linear", "ctc", "'3x3x3' is not a valid kernel"},
        {"conv:8,0x3 linear", "ctc", "'0x3' is not a valid kernel"},
        {"conv:8,3x2000 linear", "ctc", "'3x2000' is not a valid kernel"},
        {"conv:8,3x3,stride:2 linear", "ctc", "'2' is not a valid stride"},
        {"conv:8,3x3,stride:0x1 linear", "ctc", "'0x1' is not a valid stride"},
        {"conv:8,3x3,pad:-1x1 linear", "ctc", "'-1x1' is not a valid padding"},
        {"conv:8,3x3,pad: linear", "ctc", "the padding is missing"},
        {"conv:8,3x3,same linear", "ctc",
         "'same' is neither dilation:TIMExHEIGHT nor stride:TIMExHEIGHT nor "
         "pad:TIMExHEIGHT"},
        {"conv:8,3x3,dilation:2 linear", "ctc", "'2' is not a valid dilation"},
        {"conv:8,3x3,dilation:0x1 linear", "ctc",
         "'0x1' is not a valid dilation; give FRAMESxROWS, as in 3x3, each "
         "from 1 to 1024"},
        {"conv:8,3x3,dilation: linear", "ctc", "the dilation is missing"},
        {"conv:8,3x3,dilation:512x1 linear", "ctc",
         "with this dilation a kernel spans 1025 frames; the limit is 1024"},
        {"conv:8,3x300,dilation:1x4 linear", "ctc", "spans 1197 rows"},
        {"conv:8,3x3,dilation:2x1,pad:5x0 linear", "ctc",
         "the padding must be smaller than the kernel"},
        {"conv:8,1x3,dilation:1x3,pad:0x0 linear", "ctc",
         "the kernel is higher than its input of 6 rows"},
        {"pool:2x2,dilation:2x2 linear", "ctc",
         "'dilation:2x2' is neither mean nor stride:TIMExHEIGHT nor "
         "pad:TIMExHEIGHT"},
        {"conv:8,3x3, linear", "ctc", "'' is neither"},
        {"conv:8,3x3,pad:1x1,pad:2x2 linear", "ctc",
         "word 1 'conv:8,3x3,pad:1x1,pad:2x2': 'pad' is given twice"},
        {"conv:8,3x3,stride:2x2,stride:1x1 linear", "ctc",
         "'stride' is given twice"},
        {"conv:8,3x3,dilation:2x2,pad:0x0,dilation:2x2 linear", "ctc",
         "'dilation' is given twice"},
        {"pool:2x2,mean,mean linear", "ctc", "'mean' is given twice"},
        {"pool:2x2,pad:0x0,pad:0x0 linear", "ctc", "'pad' is given twice"},
        {"depthwise:3,stride:2,stride:3 linear", "ctc",
         "'stride' is given twice"},
        {"lstm:4,project:2,project:3 linear", "ctc",
         "'project' is given twice"},
        {"bgru:4,weight_dropout:0,weight_dropout:0.3 linear", "ctc",
         "word 1 'bgru:4,weight_dropout:0,weight_dropout:0.3': "
         "'weight_dropout' is given twice"},
        {"conv:8,3x3,pad:3x1 linear", "ctc",
         "the padding must be smaller than the kernel"},
        {"relu conv:8,3x7,pad:1x0 linear", "ctc",
         "word 2 'conv:8,3x7,pad:1x0': the kernel is higher than its input of "
         "6"},
        {"conv:8,3x3,stride:2x1 linear", "cross_entropy",
         "word 1 'conv:8,3x3,stride:2x1': cross_entropy needs an output for "
         "every frame"},
        {"conv:8,3x3,pad:0x1 linear", "cross_entropy", "an output for every"},
        {"pool linear", "ctc", "the window is missing: pool:TIMExHEIGHT"},
        {"pool:2 linear", "ctc", "'2' is not a valid window; give FRAMESxROWS"},
        {"pool:2x2 linear", "cross_entropy", "an output for every frame"},
        {"pool:all linear", "cross_entropy",
         "set model.loss = ctc and end in 'pool:all linear' behind conv, in "
         "'pool:1024x1 linear' behind flat frames"},
        {"pool:2x2,max linear", "ctc",
         "'max' is neither mean nor stride:TIMExHEIGHT nor pad:TIMExHEIGHT"},
        {"pool:2x2,pad:2x0 linear", "ctc",
         "the padding must be smaller than the window"},
        {"pool:3x9,pad:0x0 linear", "ctc",
         "the window is higher than its input of 6 rows"},
        {"pool:all,stride:2x2 linear", "ctc", "takes no stride and no padding"},
        {"batchnorm:3 linear", "ctc", "batchnorm takes no arguments"},
        {"layernorm:3 linear", "ctc",
         "word 1 'layernorm:3': layernorm takes no arguments"},
        {"linear:1 layernorm linear", "ctc",
         "layernorm of a single number makes it 0"},
        {"leaky_relu:3 linear", "ctc", "leaky_relu takes no arguments"},
        {"instancenorm:3 linear", "ctc",
         "word 1 'instancenorm:3': instancenorm takes no arguments"},
        {"swish:3 linear", "ctc", "swish takes no arguments"},
        {"gelu:3 linear", "ctc", "gelu takes no arguments"},
        {"linear:4 glu:3 linear", "ctc", "word 2 'glu:3': glu takes no arg"},
        {"linear:5 glu linear", "ctc",
         "word 2 'glu': glu halves the features of its input, which has 5"},
        {"conv:3,1x1 glu linear", "ctc", "halves the channels of its input"},
        {"scale linear", "ctc", "the factor is missing, as in scale:0.5"},
        {"scale:x linear", "ctc", "'x' is not a factor"},
        {"scale:0 linear", "ctc", "'0' is not a factor"},
        {"scale:inf linear", "ctc", "'inf' is not a factor"},
        {"attention linear", "ctc", "the number of heads is missing"},
        {"linear:10 attention:4 linear", "ctc",
         "word 2 'attention:4': 10 features are not divisible by 4 heads"},
        {"depthwise linear", "ctc", "the number of frames is missing"},
        {"depthwise:0 linear", "ctc",
         "'0' is not a number of frames from 1 to 1024"},
        {"depthwise:3,pad:1 linear", "ctc", "'pad:1' is not stride:FRAMES"},
        {"depthwise:3,stride:0 linear", "ctc", "'0' is not a number of frames"},
        {"depthwise:2000 linear", "ctc",
         "'2000' is not a number of frames from 1 to 1024"},
        {"depthwise:3,stride:2 linear", "cross_entropy",
         "an output for every frame"},
    };

    (void)state;
    FOR_EACH (i, faults) {
        bm_model *m = NULL;
        bm_model_settings set = {faults[i].net, faults[i].loss, "skip"};
        bm_model_shape shape = {6, 4, 1};

        assert_int_equal(bm_model_new(&m, &set, &shape, cpu, 1), BM_ERR_CONFIG);
        if (strstr(bm_last_error(), faults[i].message) == NULL)
            print_error("%s\nbut expected\n%s\n", bm_last_error(),
                        faults[i].message);
        assert_non_null(strstr(bm_last_error(), faults[i].message));
    }
}

static void test_layers_that_keep_frames_suit_per_frame_losses(void **state)
{
    bm_model *m = NULL;
    bm_model_settings set = {"conv:8,3x3 batchnorm pool:1x2 linear",
                             "cross_entropy", "skip"};
    bm_model_shape shape = {6, 4, 1};

    (void)state;
    assert_ok(bm_model_new(&m, &set, &shape, cpu, 1));
    bm_model_free(m);
}

/* Loss and gradient of a network after one step, with the weights of `w` if
 * there are any, else those become its own. */
static float *learn(const char *net, float **w, size_t *n)
{
    enum { D = 12 };
    bm_model *m = NULL;
    bm_model_settings set = {net, "cross_entropy", "skip"};
    bm_model_shape shape = {D, 4, 1};
    bm_rng rng = bm_rng_make(1, "x", 0);
    float x[T * B * D] = {0}, *g = NULL;
    int32_t classes[12];
    bm_batch b = {.extent = {T, B, lengths}, .targets = {classes, lengths}};
    bm_score score = {0};
    bm_params *p = NULL;

    for (size_t i = 0; i < T * B * D; i++)
        x[i] = inside(&b.extent, i, D) ? (float)bm_rng_normal(&rng) : 0;
    FOR_EACH (i, classes)
        classes[i] = (int32_t)(i % 4);
    b.x = (bm_tensor){place(cpu, x, T * B * D), 3, {T, B, D, 1}};
    assert_ok(bm_model_new(&m, &set, &shape, cpu, 1));
    p = bm_model_params(m);
    *n = p->n + 1;
    if (*w == NULL)
        *w = fetch(cpu, p->w, p->n);
    bm_put(cpu, p->w, *w, p->n);
    bm_model_gradient(m, &b, 7, 0);
    assert_ok(bm_model_score(m, 0, &score));
    assert_true(score.loss > 0);
    g = zeros(*n, sizeof *g);
    bm_get(cpu, g, p->g, p->n);
    assert_ok(bm_sync(cpu));
    g[p->n] = (float)score.loss;
    bm_model_free(m);
    bm_free(cpu, b.x.data);
    return g;
}

/* dropout:0 between the layers prevents that they are fused. */
static void test_fusing_layers_changes_no_bit(void **state)
{
    static const char *const nets[][2] = {
        {"conv:5,3x3 batchnorm leaky_relu pool:1x2 batchnorm sigmoid linear",
         "conv:5,3x3 batchnorm dropout:0 leaky_relu dropout:0 pool:1x2 "
         "batchnorm dropout:0 sigmoid linear"},
        {"batchnorm relu linear:4 tanh batchnorm tanh batchnorm",
         "batchnorm dropout:0 relu linear:4 tanh batchnorm dropout:0 tanh "
         "batchnorm"},
        {"linear:6 batchnorm relu pool:1x2 linear",
         "linear:6 batchnorm dropout:0 relu dropout:0 pool:1x2 linear"},
        {"conv:3,3x3 batchnorm pool:1x300 linear",
         "conv:3,3x3 batchnorm dropout:0 pool:1x300 linear"},
    };

    (void)state;
    if (strcmp(backend, "cpu") != 0) /* sums have another order there */
        skip();
    FOR_EACH (i, nets) {
        size_t n = 0;
        float *w = NULL;
        float *one = learn(nets[i][0], &w, &n),
              *all = learn(nets[i][1], &w, &n);

        assert_memory_equal(one, all, n * sizeof *one);
        free(one);
        free(all);
        free(w);
    }
}

static int open_backend(void **state)
{
    (void)state;
    assert_ok(bm_backend_open(&cpu, backend, 0));
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest whole[] = {
        cmocka_unit_test(test_gradients_match_differences),
        cmocka_unit_test(test_every_layer_without_arguments_has_its_gradient),
        cmocka_unit_test(test_fused_layers_match_differences),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_instruction_sets_agree),
        cmocka_unit_test(test_statistics_follow_the_data),
        cmocka_unit_test(test_fusing_layers_changes_no_bit),
        cmocka_unit_test(test_columns_stay_columns_until_a_flat_layer),
        cmocka_unit_test(test_frames_follow_kernel_stride_and_padding),
        cmocka_unit_test(test_rows_are_pooled_as_in_pytorch_without_padding),
        cmocka_unit_test(
            test_a_dilated_convolution_is_a_product_with_spliced_frames),
        cmocka_unit_test(test_messages_mark_the_invalid_word),
        cmocka_unit_test(test_layers_that_keep_frames_suit_per_frame_losses),
    };
    const struct CMUnitTest half[] = {
        cmocka_unit_test(test_bf16_is_near_fp32),
        cmocka_unit_test(test_every_layer_in_bf16_is_near_fp32),
        cmocka_unit_test(test_statistics_follow_the_data),
    };

    if (argc > 1)
        backend = argv[1];
    if (!have_backend(backend))
        return SKIPPED;
    return argc > 2 ? cmocka_run_group_tests_name("image_layers.bf16", half,
                                                  open_backend, close_cpu)
                    : cmocka_run_group_tests_name("image_layers", whole,
                                                  open_backend, close_cpu);
}
