/*
 * Layers of columns of pixels: derivatives by weights and inputs against
 * differences of L, the sum of dy y with dy fixed; what shapes come out; and
 * what is said of wrong ones.
 */
#include "models/model.h"
#include "models/net.h"
#include "tests/support.h"
#include "tests/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 7, B = 4 };

/* Out of order, one empty, one of one frame. */
static const int32_t lengths[B] = {4, 7, 0, 1};

typedef struct rig {
    bm_layer *l; /* one */
    bm_pass pass;
    int32_t out_frames[B];
    size_t n_x, n_y, n_w, n_s;
    bm_tensor x, y, dy, dx;
    float *x_host, *w_host, *slope; /* slope: dy */
} rig;

static float *numbers(size_t n)
{
    float *x = calloc(n + 1, sizeof *x);

    assert_non_null(x);
    return x;
}

/* Numbers between -1 and 1, but not near 0, where leaky_relu has a corner. */
static void draw(float *x, size_t n, const char *what)
{
    bm_rng rng = bm_rng_make(3, what, 0);

    for (size_t i = 0; i < n; i++) {
        x[i] = (float)(2 * bm_rng_uniform(&rng) - 1);
        x[i] += x[i] < 0 ? -0.1f : 0.1f;
    }
}

/* Further from each other than a difference steps, in the order that they have,
 * so that the largest stays the largest. */
static void part(float *x, size_t n)
{
    float *copy = numbers(n);

    memcpy(copy, x, n * sizeof *x);
    for (size_t i = 0; i < n; i++) {
        size_t rank = 0;
        for (size_t k = 0; k < n; k++)
            rank += copy[k] < copy[i];
        x[i] = 0.15f * (float)rank;
    }
    free(copy);
}

static void clear_padding(const bm_extent *e, float *x, size_t n, size_t size)
{
    for (size_t i = 0; i < n; i++)
        x[i] = inside(e, i, size) ? x[i] : 0;
}

static void set_up(rig *r, const char *net, size_t height, size_t channels)
{
    size_t n = 0, D = height * (channels > 0 ? channels : 1);

    *r = (rig){0};
    assert_ok(bm_net_parse(net, &r->l, &n));
    assert_int_equal(n, 1);
    r->l->be = cpu;
    r->l->n_in = D;
    r->l->channels_in = channels;
    assert_ok(r->l->ops->plan(r->l));
    for (int b = 0; b < B; b++)
        r->out_frames[b] = (int32_t)bm_windows(r->l->time, (size_t)lengths[b]);
    r->pass = (bm_pass){{T, B, lengths},
                        {bm_windows(r->l->time, T), B, r->out_frames},
                        true,
                        5};
    r->n_x = T * B * D;
    r->n_y = r->pass.out.T * B * r->l->n_out;
    for (int i = 0; i < r->l->n_weights; i++) {
        const bm_weight *w = &r->l->weights[i];
        *(w->statistic ? &r->n_s : &r->n_w) +=
            w->dim[0] * w->dim[1] * w->dim[2] * w->dim[3];
    }
    r->x_host = numbers(r->n_x);
    r->w_host = numbers(r->n_w);
    r->slope = numbers(r->n_y);
    draw(r->x_host, r->n_x, "x");
    if (r->l->ops == &bm_layer_pool)
        part(r->x_host, r->n_x);
    clear_padding(&r->pass.in, r->x_host, r->n_x, D);
    draw(r->slope, r->n_y, "slope");
    clear_padding(&r->pass.out, r->slope, r->n_y, r->l->n_out);
    draw(r->w_host, r->n_w, "w");
    r->l->w = place(cpu, r->w_host, r->n_w);
    r->l->g = place(cpu, r->w_host, r->n_w); /* to be overwritten */
    r->l->s = place(cpu, r->x_host, r->n_s);
    r->l->gs = place(cpu, r->x_host, r->n_s);
    n = r->l->ops->kept != NULL ? r->l->ops->kept(r->l, &r->pass) : 0;
    assert_ok(bm_alloc(cpu, n, &r->l->kept));
    r->x = (bm_tensor){place(cpu, r->x_host, r->n_x), 3, {T, B, D, 1}};
    r->dx = (bm_tensor){place(cpu, r->x_host, r->n_x), 3, {T, B, D, 1}};
    r->y = (bm_tensor){NULL, 3, {r->pass.out.T, B, r->l->n_out, 1}};
    r->dy = r->y;
    r->y.data = place(cpu, r->slope, r->n_y);
    r->dy.data = place(cpu, r->slope, r->n_y);
}

static void tear_down(rig *r)
{
    float *all[] = {r->l->w,   r->l->g,   r->l->s,    r->l->gs,  r->l->kept,
                    r->x.data, r->y.data, r->dy.data, r->dx.data};

    FOR_EACH (i, all)
        bm_free(cpu, all[i]);
    free(r->l);
    free(r->x_host);
    free(r->w_host);
    free(r->slope);
}

static double outcome(rig *r)
{
    double sum = 0;
    float *y = NULL;

    bm_put(cpu, r->x.data, r->x_host, r->n_x);
    bm_put(cpu, r->l->w, r->w_host, r->n_w);
    r->l->ops->forward(r->l, &r->pass, r->x, r->y);
    y = fetch(cpu, r->y.data, r->n_y);
    for (size_t i = 0; i < r->n_y; i++) {
        assert_true(isfinite(y[i]));
        if (inside(&r->pass.out, i, r->l->n_out))
            sum += (double)r->slope[i] * y[i];
        else
            assert_true(y[i] == 0);
    }
    free(y);
    return sum;
}

/* The derivative by *value, a number of x or w, extrapolated from differences
 * with two steps, so that the error of truncation falls as h^4. */
static double difference(rig *r, float *value)
{
    const float h = 0x1p-4f, was = *value;
    double d[2];

    for (int k = 0; k < 2; k++) {
        float step = k == 0 ? h : h / 2;
        double up = 0, down = 0;
        *value = was + step;
        up = outcome(r);
        *value = was - step;
        down = outcome(r);
        d[k] = (up - down) / (2.0 * step);
    }
    *value = was;
    return (4 * d[1] - d[0]) / 3;
}

/* Rounding adds half units of 2^-22 of about 60 outputs, over h: 5e-5; and of
 * 2^-19 where pool's numbers are large, of one output. */
static void check_layer(const char *net, size_t height, size_t channels)
{
    rig r;
    float *g = NULL, *dx = NULL;

    set_up(&r, net, height, channels);
    (void)outcome(&r);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    g = fetch(cpu, r.l->g, r.n_w);
    dx = fetch(cpu, r.dx.data, r.n_x);
    for (size_t i = 0; i < r.n_w; i++)
        assert_true(near(g[i], difference(&r, &r.w_host[i]), 1e-4));
    for (size_t i = 0; i < r.n_x; i++)
        assert_true(inside(&r.pass.in, i, r.l->n_in)
                        ? near(dx[i], difference(&r, &r.x_host[i]), 1e-4)
                        : dx[i] == 0);
    free(g);
    free(dx);
    tear_down(&r);
}

static void test_every_layer_differentiates_itself(void **state)
{
    static const char *const nets[] = {
        "conv:3,3x3",
        "conv:2,1x1",
        "conv:2,5x3,stride:2x1",
        "conv:3,2x4,stride:1x2",
        "conv:2,3x3,pad:0x0",
        "conv:2,4x2,stride:3x2,pad:3x1",
        "conv:2,3x3,pad:2x1,stride:2x2",
        "pool:2x2",
        "pool:3x1",
        "pool:1x4",
        "batchnorm",
        "leaky_relu",
        "dropout:0.3",
    };

    (void)state;
    FOR_EACH (i, nets) {
        check_layer(nets[i], 5, 2);
        check_layer(nets[i], 4, 1);
        check_layer(nets[i], 5, 0);
    }
}

/* y, dx and g end to end. */
static float *everything(const char *net, size_t threads, size_t *n)
{
    rig r;
    float *all = NULL, *y = NULL, *dx = NULL, *g = NULL;

    assert_ok(bm_backend_use(cpu, threads, BM_FP32));
    set_up(&r, net, 9, 5);
    (void)outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    dx = fetch(cpu, r.dx.data, r.n_x);
    g = fetch(cpu, r.l->g, r.n_w);
    *n = r.n_y + r.n_x + r.n_w;
    all = numbers(*n);
    memcpy(all, y, r.n_y * sizeof *all);
    memcpy(all + r.n_y, dx, r.n_x * sizeof *all);
    memcpy(all + r.n_y + r.n_x, g, r.n_w * sizeof *all);
    free(y);
    free(dx);
    free(g);
    tear_down(&r);
    assert_ok(bm_backend_use(cpu, 1, BM_FP32));
    return all;
}

static void test_threads_change_no_bit(void **state)
{
    static const char *const nets[] = {"conv:19,3x5", "conv:33,4x3,stride:3x2",
                                       "pool:2x2", "batchnorm"};

    (void)state;
    FOR_EACH (i, nets) {
        size_t n = 0;
        float *alone = everything(nets[i], 1, &n);

        for (size_t threads = 2; threads <= 5; threads += 3) {
            float *shared = everything(nets[i], threads, &n);
            assert_memory_equal(shared, alone, n * sizeof *alone);
            free(shared);
        }
        free(alone);
    }
}

/* To the last bit, where nothing is a product of matrices. */
static void test_instruction_sets_agree(void **state)
{
    static const char *const sets[] = {"baseline", "avx2", "avx512"};
    static const struct {
        const char *net;
        double tolerance;
    } nets[] = {{"conv:19,3x5", 2e-5},
                {"pool:2x2", 0},
                {"batchnorm", 0},
                {"leaky_relu", 0}};
    bm_backend *mine = cpu;

    (void)state;
    FOR_EACH (i, nets) {
        float *plain = NULL;

        FOR_EACH (k, sets) {
            float *all = NULL;
            size_t n = 0;

            setenv("BMUF_ISA", sets[k], 1);
            if (bm_backend_open(&cpu, "cpu", 0) != BM_OK)
                continue; /* not on this machine */
            all = everything(nets[i].net, 1, &n);
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

/* By a tenth of the way to those of the batch; both begin as PyTorch's. */
static void test_statistics_follow_the_data(void **state)
{
    rig r;
    float *gs = NULL;
    double mean = 0, square = 0, n = 0;

    (void)state;
    set_up(&r, "batchnorm", 6, 1);
    assert_int_equal(r.n_s, 2);
    assert_true(r.l->weights[2].start == 0 && r.l->weights[3].start == 1);
    (void)outcome(&r);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    gs = fetch(cpu, r.l->gs, 2);
    for (size_t i = 0; i < r.n_x; i++)
        if (inside(&r.pass.in, i, 6)) {
            mean += r.x_host[i];
            square += (double)r.x_host[i] * r.x_host[i];
            n++;
        }
    mean /= n;
    assert_true(near(gs[0], 0.1 * (r.x_host[0] - mean), 1e-5));
    assert_true(
        near(gs[1], 0.1 * (r.x_host[1] - (square / n - mean * mean)), 1e-5));
    free(gs);
    tear_down(&r);
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

static void test_columns_pass_through_and_end_flat(void **state)
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
        {"pool:2x2", {0, 1, 1, 3, 4, 5}},
        {"pool:3x2", {0, 1, 1, 2, 3, 3}},
        {"stack:3", {0, 1, 1, 2, 3, 3}},
        {"subsample:4", {0, 1, 1, 2, 2, 3}},
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

static void test_faults_point_at_their_word(void **state)
{
    static const struct {
        const char *net, *loss, *message;
    } faults[] = {
        {"conv linear", "ctc",
         "word 1 'conv': the number of channels is missing: "
         "conv:CHANNELS,TIMExHEIGHT"},
        {"conv:8 linear", "ctc", "the kernel is missing: conv:CHANNELS"},
        {"conv:8, linear", "ctc", "the kernel is missing"},
        {"conv:x,3x3 linear", "ctc", "'x' is no number of channels"},
        {"conv:8,3 linear", "ctc", "'3' is no kernel, as in 3x3"},
        {"conv:8,3x linear", "ctc", "'3x' is no kernel"},
        {"conv:8,x3 linear", "ctc", "'x3' is no kernel"},
        {"conv:8,3x3x3 linear", "ctc", "'3x3x3' is no kernel"},
        {"conv:8,0x3 linear", "ctc", "'0x3' is no kernel"},
        {"conv:8,3x2000 linear", "ctc", "'3x2000' is no kernel"},
        {"conv:8,3x3,stride:2 linear", "ctc", "'2' is no stride"},
        {"conv:8,3x3,stride:0x1 linear", "ctc", "'0x1' is no stride"},
        {"conv:8,3x3,pad:-1x1 linear", "ctc", "'-1x1' is no padding"},
        {"conv:8,3x3,pad: linear", "ctc", "the padding is missing"},
        {"conv:8,3x3,same linear", "ctc",
         "'same' is neither stride:TIMExHEIGHT nor pad:TIMExHEIGHT"},
        {"conv:8,3x3, linear", "ctc", "'' is neither"},
        {"conv:8,3x3,pad:3x1 linear", "ctc",
         "the kernel is not larger than its padding"},
        {"relu conv:8,3x7,pad:1x0 linear", "ctc",
         "word 2 'conv:8,3x7,pad:1x0': the kernel is higher than the 6 rows"},
        {"conv:8,3x3,stride:2x1 linear", "cross_entropy",
         "word 1 'conv:8,3x3,stride:2x1': cross_entropy has a target for "
         "every frame"},
        {"conv:8,3x3,pad:0x1 linear", "cross_entropy", "a target for every"},
        {"pool linear", "ctc", "the window is missing: pool:TIMExHEIGHT"},
        {"pool:2 linear", "ctc", "'2' is no window, as in 3x3"},
        {"pool:2x2 linear", "cross_entropy", "a target for every frame"},
        {"batchnorm:3 linear", "ctc", "batchnorm takes no arguments"},
        {"leaky_relu:3 linear", "ctc", "leaky_relu takes no arguments"},
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

static void test_what_fits_per_frame_losses_is_taken(void **state)
{
    bm_model *m = NULL;
    bm_model_settings set = {"conv:8,3x3 batchnorm pool:1x2 linear",
                             "cross_entropy", "skip"};
    bm_model_shape shape = {6, 4, 1};

    (void)state;
    assert_ok(bm_model_new(&m, &set, &shape, cpu, 1));
    bm_model_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layer_differentiates_itself),
        cmocka_unit_test(test_threads_change_no_bit),
        cmocka_unit_test(test_instruction_sets_agree),
        cmocka_unit_test(test_statistics_follow_the_data),
        cmocka_unit_test(test_columns_pass_through_and_end_flat),
        cmocka_unit_test(test_frames_follow_kernel_stride_and_padding),
        cmocka_unit_test(test_faults_point_at_their_word),
        cmocka_unit_test(test_what_fits_per_frame_losses_is_taken),
    };
    return cmocka_run_group_tests_name("image_layers", tests, open_cpu,
                                       close_cpu);
}
