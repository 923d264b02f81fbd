/*
 * Every layer alone: its derivatives by weights and inputs against differences
 * of L, the sum of dy y with dy fixed.
 */
#include "models/net.h"
#include "tests/support.h"
#include "tests/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { T = 5, B = 4, D = 3, N_X = T * B * D };

/* Out of order, one empty, one of one frame. */
static const int32_t lengths[B] = {3, 5, 0, 1};

/* Between -1 and 1, and not near 0, where relu has a corner. */
static float draw(bm_rng *rng)
{
    float x = (float)(2 * bm_rng_uniform(rng) - 1);
    return x + (x < 0 ? -0.1f : 0.1f);
}

typedef struct rig {
    bm_layer *l; /* one */
    bm_pass pass;
    int32_t out_frames[B];
    size_t n_y, n_w;
    bm_tensor x, y, dy, dx;
    float *w;        /* on the host */
    float host[N_X]; /* x */
    float *slope;    /* dy on the host */
} rig;

static void set_up(rig *r, const char *net, bool training)
{
    bm_rng rng = bm_rng_make(3, net, 0);
    size_t n = 0, kept = 0;

    *r = (rig){0};
    assert_ok(bm_net_parse(net, &r->l, &n));
    assert_int_equal(n, 1);
    r->l->be = cpu;
    r->l->n_in = D;
    assert_ok(r->l->ops->plan(r->l));
    for (int b = 0; b < B; b++)
        r->out_frames[b] = (int32_t)bm_windows(r->l->time, (size_t)lengths[b]);
    r->pass = (bm_pass){{T, B, lengths},
                        {bm_windows(r->l->time, T), B, r->out_frames},
                        training,
                        5};
    r->n_y = r->pass.out.T * B * r->l->n_out;
    for (int i = 0; i < r->l->n_weights; i++)
        r->n_w += r->l->weights[i].dim[0] * r->l->weights[i].dim[1] *
                  r->l->weights[i].dim[2];
    r->w = calloc(r->n_w + 1, sizeof *r->w);
    r->slope = calloc(r->n_y, sizeof *r->slope);
    assert_true(r->w != NULL && r->slope != NULL);
    for (size_t i = 0; i < N_X; i++)
        r->host[i] = inside(&r->pass.in, i, D) ? draw(&rng) : 0;
    for (size_t i = 0; i < r->n_y; i++)
        r->slope[i] = inside(&r->pass.out, i, r->l->n_out) ? draw(&rng) : 0;
    for (size_t i = 0; i < r->n_w; i++)
        r->w[i] = draw(&rng);
    r->l->w = place(cpu, r->w, r->n_w);
    assert_ok(bm_alloc(cpu, r->n_w, &r->l->g));
    kept = r->l->ops->kept != NULL ? r->l->ops->kept(r->l, &r->pass) : 0;
    assert_ok(bm_alloc(cpu, kept, &r->l->kept));
    r->x = (bm_tensor){place(cpu, r->host, N_X), 3, {T, B, D, 1}};
    r->dx = (bm_tensor){place(cpu, r->host, N_X), 3, {T, B, D, 1}};
    r->y = (bm_tensor){NULL, 3, {r->pass.out.T, B, r->l->n_out, 1}};
    r->dy = r->y;
    r->y.data = place(cpu, r->slope, r->n_y);
    r->dy.data = place(cpu, r->slope, r->n_y);
}

static void tear_down(rig *r)
{
    float *all[] = {r->l->w,   r->l->g,    r->l->kept, r->x.data,
                    r->y.data, r->dy.data, r->dx.data};

    FOR_EACH (i, all)
        bm_free(cpu, all[i]);
    free(r->l);
    free(r->w);
    free(r->slope);
}

static double outcome(rig *r)
{
    double sum = 0;
    float *y = NULL;

    bm_put(cpu, r->x.data, r->host, N_X);
    bm_put(cpu, r->l->w, r->w, r->n_w);
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

/*
 * The derivative by *value, a number of x or w, extrapolated from differences
 * with two steps so that the error of truncation falls as h^4: 1e-6 for these
 * functions. Rounding adds about 60 outputs' half units of 2^-24 over h: 5e-5.
 */
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

static void check_layer(const char *net, bool training)
{
    rig r;
    float *g = NULL, *dx = NULL;

    set_up(&r, net, training);
    bm_put(cpu, r.l->g, r.w, r.n_w); /* to be overwritten */
    (void)outcome(&r);
    r.l->ops->backward(r.l, &r.pass, r.x, r.y, r.dy, r.dx);
    g = fetch(cpu, r.l->g, r.n_w);
    dx = fetch(cpu, r.dx.data, N_X);
    for (size_t i = 0; i < r.n_w; i++)
        assert_true(near(g[i], difference(&r, &r.w[i]), 1e-4));
    for (size_t i = 0; i < N_X; i++)
        assert_true(inside(&r.pass.in, i, D)
                        ? near(dx[i], difference(&r, &r.host[i]), 1e-4)
                        : dx[i] == 0);
    free(g);
    free(dx);
    tear_down(&r);
}

static void test_every_layer_differentiates_itself(void **state)
{
    static const char *const nets[] = {
        "linear:5",   "relu",        "tanh",       "sigmoid", "lstm:4",
        "blstm:3",    "stack:1",     "stack:2",    "stack:3", "stack:7",
        "leaky_relu", "subsample:2", "subsample:3"};

    (void)state;
    FOR_EACH (i, nets)
        check_layer(nets[i], false);
    check_layer("dropout:0.4", true);
    check_layer("dropout:0.4", false);
}

static void test_stack_lays_frames_side_by_side(void **state)
{
    rig r;
    float *y = NULL;

    (void)state;
    set_up(&r, "stack:2", false);
    (void)outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    assert_int_equal(r.n_y, 3 * B * 2 * D);
    for (size_t t = 0; t < 6; t++)
        for (size_t b = 0; b < B; b++)
            for (size_t d = 0; d < D; d++)
                assert_true(y[(t / 2 * B + b) * 2 * D + t % 2 * D + d] ==
                            (t < T ? r.host[(t * B + b) * D + d] : 0));
    free(y);
    tear_down(&r);
}

static void test_subsample_keeps_the_first_of_each_group(void **state)
{
    rig r;
    float *y = NULL;

    (void)state;
    set_up(&r, "subsample:3", false);
    (void)outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    assert_int_equal(r.n_y, 2 * B * D);
    assert_memory_equal(y, r.host, B * D * sizeof *y);
    assert_memory_equal(y + B * D, r.host + 3 * B * D, B * D * sizeof *y);
    free(y);
    tear_down(&r);
}

static void test_dropout_drops_in_training_only(void **state)
{
    rig r;
    float *y = NULL;
    int zeros = 0;

    (void)state;
    set_up(&r, "dropout:0.5", false);
    (void)outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    assert_memory_equal(y, r.host, sizeof r.host);
    free(y);
    r.pass.training = true;
    (void)outcome(&r);
    y = fetch(cpu, r.y.data, r.n_y);
    for (size_t i = 0; i < N_X; i++) {
        assert_true(y[i] == 0 || near(y[i], 2 * r.host[i], 1e-6));
        zeros += y[i] == 0 && r.host[i] != 0;
    }
    assert_true(zeros > 0);
    free(y);
    tear_down(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_layer_differentiates_itself),
        cmocka_unit_test(test_stack_lays_frames_side_by_side),
        cmocka_unit_test(test_subsample_keeps_the_first_of_each_group),
        cmocka_unit_test(test_dropout_drops_in_training_only),
    };
    return cmocka_run_group_tests_name("layer", tests, open_cpu, close_cpu);
}
