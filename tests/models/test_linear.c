/*
 * bm_linear with its activation against sums in double precision: on the CPU,
 * or on the backend that the first argument names, in the precision that the
 * second names.
 */
#include "core/rng.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *backend = "cpu";
static bm_backend *be;
static bm_precision precision = BM_FP32;

/* n numbers in [-1, 1) that bf16 represents exactly. */
static float *draw(size_t n, uint64_t seed)
{
    bm_rng rng = bm_rng_make(seed, "linear", 0);
    float *x = zeros(n, sizeof *x);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)bm_rng_below(&rng, 255) / 128 - 1;
    return x;
}

static double function(bm_activation f, double x)
{
    return f == BM_RELU         ? fmax(x, 0)
           : f == BM_LEAKY_RELU ? (x < 0 ? BM_LEAK * x : x)
           : f == BM_TANH       ? tanh(x)
           : f == BM_SIGMOID    ? 1 / (1 + exp(-x))
                                : x;
}

/* f'(x) as a function of y. */
static double slope(bm_activation f, double y)
{
    return f == BM_RELU         ? y > 0
           : f == BM_LEAKY_RELU ? (y < 0 ? BM_LEAK : 1)
           : f == BM_TANH       ? 1 - y * y
           : f == BM_SIGMOID    ? y * (1 - y)
                                : 1;
}

typedef struct layer {
    size_t rows, K, N;
    bm_activation f;
    float *x, *w, *b, *dy;
    double *y, *dx, *dw, *db;
} layer;

static void expect(layer *l)
{
    for (size_t r = 0; r < l->rows; r++)
        for (size_t n = 0; n < l->N; n++) {
            double sum = l->b[n], d = 0;

            for (size_t k = 0; k < l->K; k++)
                sum += (double)l->x[r * l->K + k] * l->w[n * l->K + k];
            l->y[r * l->N + n] = function(l->f, sum);
            d = l->dy[r * l->N + n] * slope(l->f, l->y[r * l->N + n]);
            l->db[n] += d;
            for (size_t k = 0; k < l->K; k++) {
                l->dw[n * l->K + k] += d * l->x[r * l->K + k];
                l->dx[r * l->K + k] += d * l->w[n * l->K + k];
            }
        }
}

/* Compares numbers of magnitude `scale`; in bf16 factors and results are
 * rounded to 8 bits. */
static void check(const float *x, size_t n, const double *expected,
                  double scale)
{
    float *got = fetch(be, x, n);
    double most = scale * (precision == BM_BF16 ? 0x1p-7 : 3e-6);

    for (size_t i = 0; i < n; i++)
        assert_true(fabs(got[i] - expected[i]) <= most);
    free(got);
}

/* b directly follows the weights, as in models. `above`: dy is in the form in
 * which a layer above leaves it. */
static void run(layer *l, bool first, bool above)
{
    size_t rows = l->rows, K = l->K, N = l->N;
    float *x = NULL, *w = NULL, *y = NULL, *dy = NULL, *dx = NULL;
    float *dw = NULL, *db = NULL;
    bm_linear there = {.n_in = K, .n_out = N, .f = l->f};

    w = place(be, l->w, N * K + N);
    bm_put(be, w + N * K, l->b, N);
    there.w = w;
    there.b = w + N * K;
    x = place(be, l->x, rows * K);
    dy = place(be, l->dy, rows * N);
    if (above)
        bm_activate(be, BM_IDENTITY, rows * N, dy, dy);
    dx = place(be, l->x, rows * K); /* to be overwritten */
    y = place(be, l->dy, rows * N);
    dw = place(be, l->w, N * K);
    db = place(be, l->b, N);
    bm_linear_forward(be, &there, rows, x, y);
    check(y, rows * N, l->y, sqrt((double)K) + 1);
    bm_linear_backward(be, &there, rows, x, y, dy, first ? NULL : dx, dw, db);
    if (!first)
        check(dx, rows * K, l->dx, sqrt((double)N) + 1);
    check(dw, N * K, l->dw, sqrt((double)rows) + 1);
    check(db, N, l->db, sqrt((double)rows) + 1);
    bm_free(be, x);
    bm_free(be, w);
    bm_free(be, y);
    bm_free(be, dy);
    bm_free(be, dx);
    bm_free(be, dw);
    bm_free(be, db);
}

static void test_linear_follows_its_equations(void **state)
{
    static const size_t shapes[][3] = {{1, 1, 1},    {7, 5, 3},   {33, 24, 40},
                                       {0, 4, 5},    {64, 16, 8}, {200, 2, 132},
                                       {151, 3, 130}};
    static const bm_activation functions[] = {
        BM_IDENTITY, BM_RELU, BM_LEAKY_RELU, BM_TANH, BM_SIGMOID};

    (void)state;
    FOR_EACH (s, shapes)
        FOR_EACH (f, functions) {
            size_t rows = shapes[s][0], K = shapes[s][1], N = shapes[s][2];
            layer l = {.rows = rows, .K = K, .N = N, .f = functions[f]};

            l.x = draw(rows * K, 1);
            l.w = draw(N * K + N, 2);
            l.b = draw(N, 3);
            l.dy = draw(rows * N, 4);
            l.y = zeros(rows * N, sizeof *l.y);
            l.dx = zeros(rows * K, sizeof *l.dx);
            l.dw = zeros(N * K, sizeof *l.dw);
            l.db = zeros(N, sizeof *l.db);
            expect(&l);
            run(&l, false, false);
            run(&l, true, true);
            free(l.x);
            free(l.w);
            free(l.b);
            free(l.dy);
            free(l.y);
            free(l.dx);
            free(l.dw);
            free(l.db);
        }
}

static int open_backend(void **state)
{
    (void)state;
    assert_ok(bm_backend_open(&be, backend, 0));
    assert_ok(bm_backend_use(be, 1, precision));
    return 0;
}

static int close_backend(void **state)
{
    (void)state;
    bm_backend_close(be);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_follows_its_equations),
    };

    if (argc > 1)
        backend = argv[1];
    if (argc > 2 && strcmp(argv[2], "bf16") == 0)
        precision = BM_BF16;
    if (!have_backend(backend))
        return SKIPPED;
    return cmocka_run_group_tests_name("linear", tests, open_backend,
                                       close_backend);
}
