/*
 * Batch normalisation of columns of pixels against sums over all places in
 * double; with an activation and windows against separate operations. For every
 * instruction set, or on the backend that the first argument names, in fp32, or
 * in bf16 if that is the second.
 */
#include "tests/support/reference/frames.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* w: gamma, beta, mean and var, end to end. */
static bm_norm norm_of(size_t H, size_t C, const float *w)
{
    return (bm_norm){H,           C,         w,           w + C,
                     w + 2 * C,   w + 3 * C, BM_IDENTITY, {1, 1, 0, 0},
                     {1, 1, 0, 0}};
}

/* The moments of one channel. */
typedef struct moments {
    double n, mean, var, slope, slope_x; /* sums of dy, and of dy (x - mean) */
} moments;

static moments measure(const bm_norm *n, const frames *x, const frames *dy,
                       size_t c)
{
    moments m = {0};

    for (size_t i = c; i < frames_count(x); i += n->channels)
        if (inside(&x->e, i, x->n)) {
            m.n++;
            m.mean += x->x[i];
        }
    m.mean /= m.n > 0 ? m.n : 1;
    for (size_t i = c; i < frames_count(x); i += n->channels)
        if (inside(&x->e, i, x->n)) {
            double d = x->x[i] - m.mean;
            m.var += d * d / m.n;
            m.slope += dy->x[i];
            m.slope_x += dy->x[i] * d;
        }
    return m;
}

static void check_norm(bm_backend *be, const bm_norm *n, const frames *x,
                       const frames *dy)
{
    size_t C = n->channels;
    double *y = doubles(frames_count(x)), *seen = doubles(frames_count(x)),
           *dx = doubles(frames_count(x));
    double *dw = doubles(4 * C); /* of gamma, beta, mean, var */
    float *x_there = place(be, x->x, frames_count(x)), *kept = NULL, *w = NULL;
    float *dy_there = place(be, dy->x, frames_count(x)), *g = NULL;
    float *out = place(be, x->x, frames_count(x));
    bm_norm there = *n;

    for (size_t c = 0; c < C; c++) {
        moments m = measure(n, x, dy, c);
        double r = 1 / sqrt(m.var + 1e-5), eval = 1 / sqrt(n->var[c] + 1e-5);

        for (size_t i = c; i < frames_count(x); i += C) {
            double d = x->x[i] - m.mean;

            y[i] = n->gamma[c] * d * r + n->beta[c];
            seen[i] = n->gamma[c] * (x->x[i] - n->mean[c]) * eval + n->beta[c];
            dx[i] = n->gamma[c] * r *
                    (dy->x[i] - m.slope / m.n - d * r * r * m.slope_x / m.n);
        }
        dw[c] = m.slope_x * r;
        dw[C + c] = m.slope;
        dw[2 * C + c] = m.n > 0 ? n->mean[c] - m.mean : 0;
        dw[3 * C + c] = m.n > 0 ? n->var[c] - m.var : 0;
    }
    w = place(be, n->gamma, 4 * C); /* the others lie behind it */
    g = place(be, n->gamma, 4 * C);
    there.gamma = w;
    there.beta = w + C;
    there.mean = w + 2 * C;
    there.var = w + 3 * C;
    assert_ok(bm_alloc(be, bm_norm_kept(be, n, x->e), &kept));
    bm_norm_forward(be, &there, x->e, x->e, false, x_there, out, kept);
    check_frames(be, x, out, seen, stored(1e-5));
    bm_norm_forward(be, &there, x->e, x->e, true, x_there, out, kept);
    check_frames(be, x, out, y, stored(1e-5));
    bm_norm_backward(be, &there, x->e, x->e, x_there, NULL, dy_there, kept, out,
                     g, g + C, g + 2 * C, g + 3 * C);
    check_frames(be, x, out, dx, stored(1e-5));
    check_numbers(be, 4 * C, g, dw, rounding(16 * n->height));
    free(y);
    free(seen);
    free(dx);
    free(dw);
    bm_free(be, x_there);
    bm_free(be, dy_there);
    bm_free(be, kept);
    bm_free(be, out);
    bm_free(be, w);
    bm_free(be, g);
}

/* With an offset means are far from zero, where E[x^2] - E[x]^2 would have no
 * correct digits. */
static void test_batch_normalisation_matches_its_definition(void **state)
{
    static const size_t shapes[][2] = {{1, 1},  {5, 3},   {12, 16},
                                       {7, 37}, {1, 300}, {600, 20}};
    static const float offsets[] = {0, 50};

    (void)state;
    FOR_EACH (s, shapes)
        FOR_EACH (o, offsets) {
            size_t P = shapes[s][0], C = shapes[s][1];
            float *w = draw_weights(4 * C);
            bm_norm n = norm_of(P, C, w);
            frames *x = frames_draw((bm_window){1, 1, 0, 0}, P * C, s);
            frames *dy = frames_draw((bm_window){1, 1, 0, 0}, P * C, s + 100);

            for (size_t i = 0; i < frames_count(x); i++)
                x->x[i] += offsets[o];
            for (size_t c = 0; c < C; c++) {
                w[2 * C + c] += offsets[o];
                w[3 * C + c] = fabsf(w[3 * C + c]);
            }
            FOR_EACH_SET(be)
            check_norm(be, &n, x, dy);
            free(w);
            frames_free(x);
            frames_free(dy);
        }
}

/* Of 1000 and 1000.02, each in a half of the frames: the mean is not a float, and
 * half of a float's last place is 0.3 % of the deviation. */
static void test_a_mean_of_many_deviations_is_not_rounded(void **state)
{
    float w[] = {1.5F, 0.25F, 1000, 1e-4F};
    bm_norm n = norm_of(1, 1, w);
    frames *x = NULL, *dy = NULL;

    (void)state;
    if (strcmp(frames_backend, "cpu") != 0)
        skip();
    x = frames_draw((bm_window){1, 1, 0, 0}, 1, 1);
    dy = frames_draw((bm_window){1, 1, 0, 0}, 1, 2);
    for (size_t i = 0; i < T * B; i++)
        if (inside(&x->e, i, 1))
            x->x[i] = i < T * B / 2 ? 1000 : 1000.0201F;
    FOR_EACH_SET(be)
    check_norm(be, &n, x, dy);
    frames_free(x);
    frames_free(dy);
}

/* The results of a forward and a backward pass, on the backend. */
typedef struct passed {
    float *y, *dx, *g;
} passed;

static passed room_for(bm_backend *be, const frames *x, const frames *dy,
                       size_t C)
{
    passed p;

    assert_ok(bm_alloc(be, frames_count(dy), &p.y));
    assert_ok(bm_alloc(be, frames_count(x), &p.dx));
    assert_ok(bm_alloc(be, 4 * C, &p.g));
    return p;
}

static void norm_back(bm_backend *be, const bm_norm *n, const frames *x,
                      const frames *out, const float *x_there, const float *y,
                      const float *dy, float *kept, const passed *p)
{
    size_t C = n->channels;

    bm_norm_backward(be, n, x->e, out->e, x_there, y, dy, kept, p->dx, p->g,
                     p->g + C, p->g + 2 * C, p->g + 3 * C);
}

static passed in_one(bm_backend *be, const bm_norm *n, const frames *x,
                     const frames *dy)
{
    float *x_there = place(be, x->x, frames_count(x)), *kept = NULL;
    float *dy_there = place(be, dy->x, frames_count(dy));
    passed p = room_for(be, x, dy, n->channels);

    assert_ok(bm_alloc(be, bm_norm_kept(be, n, dy->e), &kept));
    bm_norm_forward(be, n, x->e, dy->e, true, x_there, p.y, kept);
    norm_back(be, n, x, dy, x_there, p.y, dy_there, kept, &p);
    bm_free(be, x_there);
    bm_free(be, dy_there);
    bm_free(be, kept);
    return p;
}

static passed one_by_one(bm_backend *be, const bm_norm *n, const frames *x,
                         const frames *dy)
{
    float *x_there = place(be, x->x, frames_count(x)), *kept = NULL;
    float *dy_there = place(be, dy->x, frames_count(dy)), *z = NULL, *dz = NULL;
    bm_norm alone = norm_of(n->height, n->channels, n->gamma);
    bm_pooling windows = {n->height, n->channels, n->time, n->rows, false};
    passed p = room_for(be, x, dy, n->channels);

    assert_ok(bm_alloc(be, frames_count(x), &z));
    assert_ok(bm_alloc(be, frames_count(x), &dz));
    assert_ok(bm_alloc(be, bm_norm_kept(be, &alone, x->e), &kept));
    bm_norm_forward(be, &alone, x->e, x->e, true, x_there, z, kept);
    bm_activate(be, n->f, frames_count(x), z, z);
    bm_pooling_forward(be, &windows, x->e, dy->e, z, p.y);
    bm_pooling_backward(be, &windows, x->e, dy->e, z, p.y, dy_there, dz);
    bm_activate_back(be, n->f, frames_count(x), z, dz, dz);
    norm_back(be, &alone, x, x, x_there, NULL, dz, kept, &p);
    bm_free(be, x_there);
    bm_free(be, dy_there);
    bm_free(be, z);
    bm_free(be, dz);
    bm_free(be, kept);
    return p;
}

/* Another backend sums in another order, and may store bf16. */
static void check_same(bm_backend *be, bm_backend *plain, size_t n, float *a,
                       float *b)
{
    float *x = fetch(be, a, n), *y = fetch(plain, b, n);

    if (be == plain)
        assert_memory_equal(x, y, n * sizeof *x);
    for (size_t i = 0; i < n; i++)
        assert_true(near(x[i], y[i], stored(1e-5)));
    free(x);
    free(y);
    bm_free(be, a);
    bm_free(plain, b);
}

static bm_norm with_weights(const bm_norm *n, const float *w)
{
    bm_norm there = *n;

    there.gamma = w;
    there.beta = w + n->channels;
    there.mean = w + 2 * n->channels;
    there.var = w + 3 * n->channels;
    return there;
}

/* Fused on three threads or on a device, separate on the CPU with one thread.
 */
static void check_joined(bm_backend *be, const bm_norm *n, const frames *x,
                         const frames *dy)
{
    size_t C = n->channels;
    bm_backend *plain = bm_on_host(be) ? be : cpu;
    float *w = place(be, n->gamma, 4 * C), *v = place(plain, n->gamma, 4 * C);
    bm_norm there = with_weights(n, w), here = with_weights(n, v);
    passed one = {0}, all = one_by_one(plain, &here, x, dy);

    assert_ok(bm_backend_use(be, 3, frames_precision));
    one = in_one(be, &there, x, dy);
    check_same(be, plain, frames_count(dy), one.y, all.y);
    check_same(be, plain, frames_count(x), one.dx, all.dx);
    check_same(be, plain, 4 * C, one.g, all.g);
    bm_free(be, w);
    bm_free(plain, v);
}

/* On the CPU the bits of y and of gradients are equal, whatever padding holds.
 */
static void
test_fused_activation_and_windows_match_separate_operations(void **state)
{
    static const bm_activation functions[] = {
        BM_IDENTITY, BM_RELU, BM_LEAKY_RELU, BM_TANH, BM_SIGMOID};
    static const size_t shapes[][2] = {
        {1, 1}, {5, 3}, {12, 16}, {7, 37}, {90, 100}};
    static const size_t windows[][2] = {{1, 1}, {2, 2}, {1, 2},
                                        {2, 1}, {3, 4}, {16, 16}};

    (void)state;
    FOR_EACH (f, functions)
        FOR_EACH (s, shapes)
            FOR_EACH (k, windows) {
                size_t H = shapes[s][0], C = shapes[s][1];
                float *w = draw_weights(4 * C);
                bm_norm n = norm_of(H, C, w);
                frames *x = frames_draw(n.time, H * C, s), *dy = NULL;
                bool slow = strcmp(frames_backend, "cpu") != 0 && C == 100;

                n.f = functions[f];
                n.time = side_by_side(windows[k][0]);
                n.rows = side_by_side(windows[k][1]);
                dy = frames_draw(n.time, bm_windows(n.rows, H) * C, s + 100);
                if (!slow || k == 1) /* where a device is emulated */
                    FOR_EACH_SET(be)
                check_joined(be, &n, x, dy);
                free(w);
                frames_free(x);
                frames_free(dy);
            }
}

static void test_batch_without_frames_has_zero_gradients(void **state)
{
    static const int32_t none[B] = {0};
    const float w[] = {2, 3, 4, 5}, x[2 * B] = {NAN}, g[] = {1, 1, 1, 1};
    bm_extent e = {2, B, none};

    (void)state;
    FOR_EACH_SET(be)
    {
        float *there = place(be, w, 4), *in = place(be, x, 2 * B), *kept = NULL;
        float *out = place(be, x, 2 * B), *gradient = place(be, g, 4);
        bm_norm n = norm_of(1, 1, there);
        const double zero[2 * B] = {0};

        assert_ok(bm_alloc(be, bm_norm_kept(be, &n, e), &kept));
        bm_norm_forward(be, &n, e, e, true, in, out, kept);
        check_numbers(be, 2 * B, out, zero, 0);
        bm_norm_backward(be, &n, e, e, in, NULL, in, kept, out, gradient,
                         gradient + 1, gradient + 2, gradient + 3);
        check_numbers(be, 2 * B, out, zero, 0);
        check_numbers(be, 4, gradient, zero, 0);
        bm_free(be, there);
        bm_free(be, in);
        bm_free(be, out);
        bm_free(be, kept);
        bm_free(be, gradient);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_normalisation_matches_its_definition),
        cmocka_unit_test(test_a_mean_of_many_deviations_is_not_rounded),
        cmocka_unit_test(
            test_fused_activation_and_windows_match_separate_operations),
        cmocka_unit_test(test_batch_without_frames_has_zero_gradients),
    };

    frames_choose(argc, argv);
    if (!have_backend(frames_backend))
        return SKIPPED;
    return cmocka_run_group_tests_name("norm", tests, open_cpu, close_cpu);
}
