/* Every operation on every backend of this build, against double precision. */
#include "core/rng.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *backend = "cpu";
static bm_precision precision = BM_FP32;

static bm_backend *open_backend(void)
{
    bm_backend *be = NULL;
    assert_ok(bm_backend_open(&be, backend, 0));
    assert_ok(bm_backend_use(be, 1, precision));
    return be;
}

/* To bf16, as products have it: each time by at most 2^-8 of what it is. */
static double rounded(int times)
{
    return precision == BM_BF16 ? times * 0x1p-8 : 0;
}

static void fill(float *x, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525u + 1013904223u;
        x[i] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
}

static void test_axpby(void **state)
{
    enum { n = 1000 };
    bm_backend *be = open_backend();
    float x[n], y[n], got[n], *dx = NULL, *dy = NULL;

    (void)state;
    fill(x, n, 1);
    fill(y, n, 2);
    assert_ok(bm_alloc(be, n, &dx));
    assert_ok(bm_alloc(be, n, &dy));
    bm_put(be, dx, x, n);
    bm_put(be, dy, y, n);
    bm_axpby(be, n, 0.5f, dx, -2.0f, dy);
    bm_get(be, got, dy, n);
    assert_ok(bm_sync(be));
    for (int i = 0; i < n; i++)
        assert_true(near(got[i], 0.5 * x[i] - 2.0 * y[i], 1e-6));
    bm_free(be, dx);
    bm_free(be, dy);
    bm_backend_close(be);
}

static void test_factor_zero_is_not_read(void **state)
{
    float x[] = {1, -2, NAN, 4}, y[] = {NAN, INFINITY, 3, 4}, got[4];
    bm_backend *be = open_backend();
    float *dx = NULL, *dy = NULL;

    (void)state;
    assert_ok(bm_alloc(be, 4, &dx));
    assert_ok(bm_alloc(be, 4, &dy));
    bm_put(be, dx, x, 4);
    bm_put(be, dy, y, 4);
    bm_axpby(be, 2, 1, dx, 0, dy); /* copies */
    bm_get(be, got, dy, 4);
    assert_ok(bm_sync(be));
    assert_true(got[0] == 1 && got[1] == -2 && got[2] == 3 && got[3] == 4);
    bm_axpby(be, 4, 0, dx, 2, dy); /* scales */
    bm_get(be, got, dy, 4);
    assert_ok(bm_sync(be));
    assert_true(got[0] == 2 && got[1] == -4 && got[2] == 6 && got[3] == 8);
    bm_put(be, dy, y, 4);
    bm_axpby(be, 4, 0, dx, 0, dy); /* clears */
    bm_get(be, got, dy, 4);
    assert_ok(bm_sync(be));
    for (int i = 0; i < 4; i++)
        assert_true(got[i] == 0);
    bm_free(be, dx);
    bm_free(be, dy);
    bm_backend_close(be);
}

static void check_gemm(bool ta, bool tb)
{
    enum { m = 7, n = 5, k = 11 };
    bm_backend *be = open_backend();
    float a[m * k], b[k * n], c[m * n], got[m * n];
    float *da = NULL, *db = NULL, *dc = NULL;

    fill(a, m * k, 3);
    fill(b, k * n, 4);
    fill(c, m * n, 5);
    assert_ok(bm_alloc(be, m * k, &da));
    assert_ok(bm_alloc(be, k * n, &db));
    assert_ok(bm_alloc(be, m * n, &dc));
    bm_put(be, da, a, m * k);
    bm_put(be, db, b, k * n);
    bm_put(be, dc, c, m * n);
    bm_gemm(be, ta, tb, 1.5f, ta ? bm_matrix(da, k, m) : bm_matrix(da, m, k),
            tb ? bm_matrix(db, n, k) : bm_matrix(db, k, n), 0.5f,
            bm_matrix(dc, m, n));
    bm_get(be, got, dc, m * n);
    assert_ok(bm_sync(be));
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0, size = 0;
            for (int l = 0; l < k; l++) {
                double one = (double)(ta ? a[l * m + i] : a[i * k + l]) *
                             (tb ? b[j * k + l] : b[l * n + j]);
                sum += one;
                size += fabs(one);
            }
            assert_true(near(got[i * n + j], 1.5 * sum + 0.5 * c[i * n + j],
                             1e-5 + 1.5 * size * rounded(2)));
        }
    bm_free(be, da);
    bm_free(be, db);
    bm_free(be, dc);
    bm_backend_close(be);
}

static void test_gemm_in_all_four_transpositions(void **state)
{
    (void)state;
    for (int t = 0; t < 4; t++)
        check_gemm(t & 1, t & 2);
}

/* n floats from the backend. */
static void read_back(bm_backend *be, float *host, const float *x, size_t n)
{
    bm_get(be, host, x, n);
    assert_ok(bm_sync(be));
}

static void test_rows_are_added_to_and_summed(void **state)
{
    enum { rows = 37, cols = 19, n = rows * cols };
    bm_backend *be = open_backend();
    float y[n], b[cols], got[n], sums[cols];
    float *dy = NULL, *db = NULL;

    (void)state;
    fill(y, n, 6);
    fill(b, cols, 7);
    dy = place(be, y, n);
    db = place(be, b, cols);
    bm_add_rows(be, bm_matrix(dy, rows, cols), db);
    read_back(be, got, dy, n);
    for (int i = 0; i < n; i++)
        assert_true(near(got[i], (double)y[i] + b[i % cols], 1e-6));
    bm_sum_rows(be, bm_matrix(dy, rows, cols), db);
    read_back(be, sums, db, cols);
    for (int j = 0; j < cols; j++) {
        double sum = 0;
        for (int i = 0; i < rows; i++)
            sum += got[i * cols + j];
        assert_true(near(sums[j], sum, 1e-5));
    }
    bm_free(be, dy);
    bm_free(be, db);
    bm_backend_close(be);
}

/* Sums of floats by floats, in any order: of each, by a last place or two. */
static void check_sums(bm_backend *be, size_t rows, size_t cols, size_t off)
{
    size_t n = rows * cols;
    float *y = zeros(n + off, sizeof *y), *sums = zeros(cols, sizeof *sums);
    float *again = zeros(cols, sizeof *again);
    float *d_y = NULL, *d_b = place(be, sums, cols);

    fill(y, n + off, (unsigned)(rows + cols));
    d_y = place(be, y, n + off);
    bm_sum_rows(be, bm_matrix(d_y + off, rows, cols), d_b);
    read_back(be, sums, d_b, cols);
    bm_sum_rows(be, bm_matrix(d_y + off, rows, cols), d_b);
    read_back(be, again, d_b, cols);
    assert_memory_equal(again, sums, cols * sizeof *sums);
    for (size_t j = 0; j < cols; j++) {
        double sum = 0, size = 0;
        for (size_t i = 0; i < rows; i++) {
            sum += y[off + i * cols + j];
            size += fabs((double)y[off + i * cols + j]);
        }
        assert_true(fabs(sums[j] - sum) <= 1e-6 * (1 + size));
    }
    bm_free(be, d_y);
    bm_free(be, d_b);
    free(again);
    free(sums);
    free(y);
}

static void test_rows_of_any_shape_are_summed(void **state)
{
    static const size_t shapes[][2] = {{0, 7},     {3, 5},     {1, 1},
                                       {5, 130},   {2000, 1},  {700, 6},
                                       {700, 132}, {65, 2050}, {300, 64}};
    bm_backend *be = open_backend();

    (void)state;
    FOR_EACH (i, shapes)
        for (size_t off = 0; off < 2; off++)
            check_sums(be, shapes[i][0], shapes[i][1], off);
    bm_backend_close(be);
}

static double apply(bm_activation f, double x)
{
    return f == BM_IDENTITY     ? x
           : f == BM_RELU       ? fmax(x, 0)
           : f == BM_LEAKY_RELU ? (x < 0 ? 0.01 * x : x)
           : f == BM_TANH       ? tanh(x)
                                : 1 / (1 + exp(-x));
}

/* f'(x) from y = f(x). */
static double derive(bm_activation f, double y)
{
    return f == BM_IDENTITY     ? 1
           : f == BM_RELU       ? y > 0
           : f == BM_LEAKY_RELU ? (y > 0 ? 1 : 0.01)
           : f == BM_TANH       ? 1 - y * y
                                : y * (1 - y);
}

static void test_activations_and_their_derivatives(void **state)
{
    enum { n = 1003 };
    bm_backend *be = open_backend();
    float x[n], dy[n], y[n], dx[n];
    float *d_x = NULL, *d_y = NULL, *d_dy = NULL;

    (void)state;
    fill(x, n, 8);
    fill(dy, n, 9);
    for (int i = 0; i < n; i++)
        x[i] *= 6;
    for (int f = BM_IDENTITY; f <= BM_SIGMOID; f++) {
        d_x = place(be, x, n);
        d_y = place(be, x, n);
        d_dy = place(be, dy, n);
        bm_activate(be, (bm_activation)f, n, d_x, d_y);
        bm_activate(be, (bm_activation)f, n, d_x, d_x); /* in place */
        read_back(be, y, d_x, n);
        bm_activate_back(be, (bm_activation)f, n, d_y, d_dy, d_dy);
        read_back(be, dx, d_dy, n);
        for (int i = 0; i < n; i++) {
            double exact = apply((bm_activation)f, x[i]);
            double slope = derive((bm_activation)f, exact);
            assert_true(near(y[i], exact, 1e-6 + rounded(1)));
            /* y may be there twice, as y y */
            assert_true(near(dx[i], dy[i] * slope, 2e-6 + rounded(3)));
        }
        bm_free(be, d_x);
        bm_free(be, d_y);
        bm_free(be, d_dy);
    }
    bm_backend_close(be);
}

static void test_vectors_may_be_longer_than_a_device_is_wide(void **state)
{
    enum { n = (4 << 20) + (1 << 17) + 5 };
    bm_backend *be = open_backend();
    float *x = zeros(n, sizeof *x), *y = NULL, *d_x = NULL;

    (void)state;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)(i % 201) - 100;
    d_x = place(be, x, n);
    bm_activate(be, BM_RELU, n, d_x, d_x);
    y = fetch(be, d_x, n);
    for (size_t i = 0; i < n; i++)
        assert_true(y[i] == fmaxf(x[i], 0));
    bm_free(be, d_x);
    bm_backend_close(be);
    free(x);
    free(y);
}

/* Whatever memory of the host they lie in; it may change when bm_put returns.
 */
static void test_vectors_are_copied_in_pieces(void **state)
{
    size_t sizes[] = {1, 300000, (size_t)1 << 20, 2500003};
    bm_backend *be = open_backend();

    (void)state;
    FOR_EACH (k, sizes)
        for (int pin = 0; pin < 2; pin++) {
            size_t n = sizes[k];
            float *x = zeros(n, sizeof *x), *dx = NULL;

            assert_ok(bm_alloc(be, n, &dx));
            if (pin)
                bm_pin(be, x, n * sizeof *x);
            for (size_t i = 0; i < n; i++)
                x[i] = (float)(i % 65537);
            bm_put(be, dx, x, n);
            memset(x, 0, n * sizeof *x);
            bm_get(be, x, dx, n);
            assert_ok(bm_sync(be));
            for (size_t i = 0; i < n; i++)
                assert_true(x[i] == (float)(i % 65537));
            if (pin)
                bm_unpin(be, x);
            bm_free(be, dx);
            free(x);
        }
    bm_backend_close(be);
}

static void test_dropout_is_a_function_of_its_key(void **state)
{
    enum { n = 1003 };
    bm_backend *be = open_backend();
    float x[n], y[n], p = 0.25f, *d_x = NULL, *d_y = NULL;

    (void)state;
    fill(x, n, 10);
    d_x = place(be, x, n);
    d_y = place(be, x, n);
    for (uint64_t key = 1; key < 4; key++) {
        bm_dropout(be, n, p, key, d_x, d_y);
        read_back(be, y, d_y, n);
        for (uint64_t i = 0; i < n; i++) {
            double u = (double)(bm_rng_at(key, i) >> 40) / 16777216;
            double exact = u < p ? 0 : x[i] / 0.75;
            assert_true(near(y[i], exact, 1e-6 + rounded(1)));
        }
    }
    bm_free(be, d_x);
    bm_free(be, d_y);
    bm_backend_close(be);
}

static void test_padding_is_cleared(void **state)
{
    enum { T = 4, B = 3, D = 2, n = T * B * D };
    const int32_t frames[B] = {2, 0, 4};
    bm_backend *be = open_backend();
    float x[n], got[n], *d_x = NULL;

    (void)state;
    for (int i = 0; i < n; i++)
        x[i] = i / (B * D) < frames[i / D % B] ? (float)(i + 1) : NAN;
    d_x = place(be, x, n);
    bm_clear_padding(be, (bm_extent){T, B, frames},
                     (bm_tensor){d_x, 3, {T, B, D, 1}});
    read_back(be, got, d_x, n);
    for (int i = 0; i < n; i++)
        assert_true(got[i] == (isnan(x[i]) ? 0 : x[i]));
    bm_free(be, d_x);
    bm_backend_close(be);
}

static void test_runs_are_copied_and_nothing_else(void **state)
{
    enum { n = 60 };
    const bm_runs r = {.outer = 3,
                       .inner = 2,
                       .n = 4,
                       .outer_x = 9,
                       .inner_x = 4,
                       .outer_y = 20,
                       .inner_y = 5};
    bm_backend *be = open_backend();
    float x[n], y[n], got[n], expected[n], *d_x = NULL, *d_y = NULL;

    (void)state;
    fill(x, n, 11);
    fill(y, n, 12);
    memcpy(expected, y, sizeof y);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 2; j++)
            for (size_t k = 0; k < 4; k++)
                expected[i * 20 + j * 5 + k] = x[i * 9 + j * 4 + k];
    d_x = place(be, x, n);
    d_y = place(be, y, n);
    bm_copy_runs(be, &r, d_x, d_y);
    read_back(be, got, d_y, n);
    assert_memory_equal(got, expected, sizeof got);
    bm_free(be, d_x);
    bm_free(be, d_y);
    bm_backend_close(be);
}

static void test_remembered_failure_stops_arithmetic_until_sync(void **state)
{
    bm_backend *be = open_backend();
    float x[] = {1, 2}, got[2], *d_x = place(be, x, 2);

    (void)state;
    bm_remember(be, BM_ERR_MEMORY);
    bm_remember(be, BM_ERR_IO); /* the first counts */
    bm_axpby(be, 2, 0, d_x, 0, d_x);
    assert_int_equal(bm_sync(be), BM_ERR_MEMORY);
    read_back(be, got, d_x, 2);
    assert_memory_equal(got, x, sizeof x);
    bm_free(be, d_x);
    bm_backend_close(be);
}

static void wait_and_fail(bm_backend *be)
{
    *(int *)be->self += 1;
    bm_remember(be, BM_ERR_DEVICE);
}

static void test_sync_waits_after_a_failure_too(void **state)
{
    const bm_backend_ops ops = {.sync = wait_and_fail};
    int waits = 0;
    bm_backend be = {.ops = &ops, .self = &waits};

    (void)state;
    bm_remember(&be, BM_ERR_IO);
    assert_int_equal(bm_sync(&be), BM_ERR_IO);
    assert_int_equal(waits, 1);
    assert_int_equal(bm_sync(&be), BM_ERR_DEVICE);
    assert_int_equal(waits, 2);
}

static void test_more_than_there_can_be_is_no_memory(void **state)
{
    bm_backend *be = open_backend();
    float *x = NULL;

    (void)state; /* in bytes, a size_t would count 4 of the second */
    assert_int_equal(bm_alloc(be, SIZE_MAX, &x), BM_ERR_MEMORY);
    assert_int_equal(bm_alloc(be, SIZE_MAX / sizeof *x + 2, &x), BM_ERR_MEMORY);
    assert_null(x);
    bm_backend_close(be);
}

static void test_operation_that_a_backend_lacks_is_named(void **state)
{
    bm_backend be = bare_backend();
    float x = 1;

    (void)state;
    bm_add_rows(&be, bm_matrix(&x, 1, 1), &x);
    assert_int_equal(bm_sync(&be), BM_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(bm_last_error(), "add_rows is not available on backend bare"));
    assert_true(x == 1);
}

static void test_backend_that_is_not_there_is_named(void **state)
{
    bm_backend *be = NULL;

    (void)state;
    assert_int_equal(bm_backend_open(&be, "abacus", 0), BM_ERR_UNSUPPORTED);
    assert_non_null(strstr(bm_last_error(), "abacus"));
    assert_int_equal(bm_backend_open(&be, "../cpu", 0), BM_ERR_CONFIG);
    assert_null(be);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axpby),
        cmocka_unit_test(test_factor_zero_is_not_read),
        cmocka_unit_test(test_gemm_in_all_four_transpositions),
        cmocka_unit_test(test_rows_are_added_to_and_summed),
        cmocka_unit_test(test_rows_of_any_shape_are_summed),
        cmocka_unit_test(test_activations_and_their_derivatives),
        cmocka_unit_test(test_vectors_may_be_longer_than_a_device_is_wide),
        cmocka_unit_test(test_vectors_are_copied_in_pieces),
        cmocka_unit_test(test_dropout_is_a_function_of_its_key),
        cmocka_unit_test(test_padding_is_cleared),
        cmocka_unit_test(test_runs_are_copied_and_nothing_else),
        cmocka_unit_test(test_remembered_failure_stops_arithmetic_until_sync),
        cmocka_unit_test(test_sync_waits_after_a_failure_too),
        cmocka_unit_test(test_more_than_there_can_be_is_no_memory),
        cmocka_unit_test(test_operation_that_a_backend_lacks_is_named),
        cmocka_unit_test(test_backend_that_is_not_there_is_named),
    };

    if (argc > 1)
        backend = argv[1];
    if (argc > 2 && strcmp(argv[2], "bf16") == 0)
        precision = BM_BF16;
    if (!have_backend(backend))
        return SKIPPED;
    return RUN_GROUP(backend, tests);
}
