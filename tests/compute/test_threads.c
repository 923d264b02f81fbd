/* The cpu backend on several threads and in bf16. */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include "compute/cpu/thread_pool.h"
#include "core/rng.h"
#include "models/model.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <dirent.h>
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static void fill(float *x, size_t n, uint64_t seed)
{
    bm_rng rng = bm_rng_make(seed, "threads", 0);

    for (size_t i = 0; i < n; i++)
        x[i] = (float)bm_rng_normal(&rng);
}

static float *made(size_t n, uint64_t seed)
{
    float *x = malloc((n + 1) * sizeof *x);

    assert_non_null(x);
    fill(x, n, seed);
    return x;
}

/* ---- the pool ----------------------------------------------------------- */

enum { MOST_PARTS = 100 };

static void count(void *self, size_t part)
{
    atomic_fetch_add(&((atomic_int *)self)[part], 1);
}

static void test_every_part_runs_once(void **state)
{
    static const size_t parts[] = {0, 1, 2, 3, 7, MOST_PARTS};

    (void)state;
    for (size_t threads = 1; threads <= 5; threads++) {
        bm_thread_pool *pool = NULL;

        assert_ok(bm_thread_pool_open(&pool, threads));
        assert_int_equal(bm_thread_pool_threads(pool), threads);
        for (int round = 0; round < 200; round++)
            FOR_EACH (i, parts) {
                atomic_int done[MOST_PARTS] = {0};
                bm_thread_pool_run(pool, parts[i], count, done);
                for (size_t k = 0; k < MOST_PARTS; k++)
                    assert_int_equal(done[k], k < parts[i]);
            }
        bm_thread_pool_close(pool);
    }
}

static void test_parts_start_at_grains_and_cover_everything(void **state)
{
    (void)state;
    for (size_t n = 0; n < 70; n++)
        for (size_t grain = 1; grain < 20; grain += 6)
            for (size_t parts = 1; parts < 6; parts++) {
                assert_int_equal(bm_part(n, grain, parts, 0), 0);
                assert_int_equal(bm_part(n, grain, parts, parts), n);
                for (size_t i = 0; i < parts; i++) {
                    size_t from = bm_part(n, grain, parts, i);
                    assert_true(from <= bm_part(n, grain, parts, i + 1));
                    assert_true(from % grain == 0 || from == n);
                }
            }
}

/* ---- loops on several threads ------------------------------------------- */

enum { LONG = 100003 }; /* floats, a few grains */

/* The results of elementwise operations on fixed numbers, [5, LONG], and a
 * norm. */
static float *loops_on(size_t threads)
{
    bm_backend *be = NULL;
    float *x = made(LONG, 1), *y = made(LONG, 2), *all = NULL, *got = NULL;
    float *dx = NULL, *dy = NULL, *skipped = NULL;
    bm_momentum m = {0.1f, 0.9f, 0.01f, 3, true};

    assert_ok(bm_backend_open(&be, "cpu", 0));
    assert_ok(bm_backend_use(be, threads, BM_FP32));
    assert_ok(bm_alloc(be, 5 * LONG, &all));
    assert_ok(bm_alloc(be, 2, &skipped));
    dx = place(be, x, LONG);
    dy = place(be, y, LONG);
    bm_axpby(be, LONG, 0.5f, dx, 2, dy);
    bm_axpby(be, LONG, 1, dy, 0, all);
    bm_activate(be, BM_TANH, LONG, dx, all + LONG);
    bm_activate_back(be, BM_TANH, LONG, all + LONG, dy, all + 2 * LONG);
    bm_dropout(be, LONG, 0.3f, 77, dx, all + 3 * LONG);
    bm_add_rows(be, bm_matrix(all, 1009, 99), dx);
    bm_sum_rows(be, bm_matrix(all + LONG, 1009, 99), dx);
    bm_momentum_step(be, &m, LONG, 0, dx, dy, all + 4 * LONG,
                     (double *)(void *)skipped);
    got = fetch(be, all, 5 * LONG);
    bm_free(be, all);
    bm_free(be, dx);
    bm_free(be, dy);
    bm_free(be, skipped);
    bm_backend_close(be);
    free(x);
    free(y);
    return got;
}

static void test_threads_change_no_bit_of_a_loop(void **state)
{
    float *one = loops_on(1);

    (void)state;
    for (size_t threads = 2; threads <= 4; threads++) {
        float *more = loops_on(threads);
        assert_memory_equal(one, more, 5 * LONG * sizeof *one);
        free(more);
    }
    free(one);
}

/* ---- a network ---------------------------------------------------------- */

typedef struct result {
    float *g; /* [n] */
    size_t n;
    bm_score score;
} result;

/* One gradient. Products are large enough to be divided among threads. */
static result gradient_on(const char *net, const char *loss, size_t threads,
                          bm_precision precision)
{
    enum { T = 30, B = 9, D = 24, C = 11, LABELS = 4 };
    static const int32_t lengths[B] = {30, 12, 30, 0, 29, 5, 1, 22, 30};
    static int32_t classes[B * T], counts[B];
    bm_model_settings settings = {net, loss, "skip"};
    bm_model_shape shape = {D, C, 1};
    bool ctc = strcmp(loss, "ctc") == 0;
    bm_rng rng = bm_rng_make(4, "labels", 0);
    bm_extent e = {T, B, lengths};
    bm_backend *be = NULL;
    bm_model *m = NULL;
    bm_batch batch = {.extent = e, .targets = {classes, counts}};
    float *x = made((size_t)T * B * D, 3);
    result r = {0};

    for (int b = 0; b < B; b++)
        counts[b] = ctc ? lengths[b] < 9 ? 0 : LABELS : lengths[b];
    for (int i = 0; i < B * T; i++)
        classes[i] = 1 + (int32_t)bm_rng_below(&rng, C - 1);
    for (size_t i = 0; i < (size_t)T * B * D; i++)
        if (!inside(&e, i, D))
            x[i] = 0;
    assert_ok(bm_backend_open(&be, "cpu", 0));
    assert_ok(bm_backend_use(be, threads, precision));
    assert_ok(bm_model_new(&m, &settings, &shape, be, 1));
    batch.x = (bm_tensor){place(be, x, (size_t)T * B * D), 3, {T, B, D, 1}};
    bm_model_gradient(m, &batch, 5, 0);
    assert_ok(bm_sync(be));
    assert_ok(bm_model_score(m, 0, &r.score));
    r.n = bm_model_params(m)->n;
    r.g = fetch(be, bm_model_params(m)->g, r.n);
    bm_model_free(m);
    bm_free(be, batch.x.data);
    bm_backend_close(be);
    free(x);
    return r;
}

/* |a - b| / |b| */
static double distance(const result *a, const result *b)
{
    double apart = 0, size = 0;

    for (size_t i = 0; i < a->n; i++) {
        apart += ((double)a->g[i] - b->g[i]) * ((double)a->g[i] - b->g[i]);
        size += (double)b->g[i] * b->g[i];
    }
    return sqrt(apart / size);
}

static const char *const nets[][2] = {
    {"blstm:72*2 dropout:0.1 linear", "ctc"},
    {"lstm:80 linear:96 relu linear", "ctc"},
    {"bgru:72 gru:80 linear", "ctc"},
    {"linear:400 sigmoid linear:300 tanh linear", "cross_entropy"},
};

static void test_gradients_of_a_network_are_reproducible(void **state)
{
    (void)state;
    FOR_EACH (k, nets) {
        result one = gradient_on(nets[k][0], nets[k][1], 1, BM_FP32);

        for (size_t threads = 1; threads <= 5; threads++) {
            result r = gradient_on(nets[k][0], nets[k][1], threads, BM_FP32);
            result again =
                gradient_on(nets[k][0], nets[k][1], threads, BM_FP32);

            assert_memory_equal(r.g, again.g, r.n * sizeof *r.g);
            assert_memory_equal(&r.score, &again.score, sizeof r.score);
            assert_true(distance(&r, &one) < 1e-5);
            assert_true(near(r.score.loss, one.score.loss, 1e-5));
            assert_true(r.score.errors == one.score.errors);
            free(r.g);
            free(again.g);
        }
        free(one.g);
    }
}

/* ---- bf16 --------------------------------------------------------------- */

static const char *const units[] = {"fp32", "onednn"};

/* Opens a backend in bf16; false if this machine lacks the units. */
static bool open_bf16(const char *unit, size_t threads, bm_backend **out)
{
    bm_status status = BM_OK;

    setenv("BMUF_BF16", unit, 1);
    assert_ok(bm_backend_open(out, "cpu", 0));
    status = bm_backend_use(*out, threads, BM_BF16);
    unsetenv("BMUF_BF16");
    if (status == BM_OK)
        return true;
    assert_int_equal(status, BM_ERR_UNSUPPORTED);
    print_message("[  note    ] %s\n", bm_last_error());
    bm_backend_close(*out);
    return false;
}

/* C [m, n] of a product that cpu_matrix.c computes. */
static float *product_on(size_t threads, bool weights, size_t m, size_t n,
                         size_t k)
{
    bm_backend *be = NULL;
    float *a = made(m * k, 8), *b = made(k * n, 9), *c = NULL, *got = NULL;
    float *da = NULL, *db = NULL;

    assert_ok(bm_backend_open(&be, "cpu", 0));
    assert_ok(bm_backend_use(be, threads, BM_FP32));
    assert_ok(bm_alloc(be, m * n, &c));
    da = place(be, a, m * k);
    db = place(be, b, k * n);
    bm_gemm(be, weights, !weights, 1,
            weights ? bm_matrix(da, k, m) : bm_matrix(da, m, k),
            weights ? bm_matrix(db, k, n) : bm_matrix(db, n, k), 0,
            bm_matrix(c, m, n));
    got = fetch(be, c, m * n);
    bm_free(be, c);
    bm_free(be, da);
    bm_free(be, db);
    bm_backend_close(be);
    free(a);
    free(b);
    return got;
}

/* Forward, and gradients of weights over many frames. */
static void test_threads_change_no_bit_of_a_product(void **state)
{
    enum { K = 1050 };
    static const size_t sizes[][2] = {{131, 301}, {301, 131}, {500, 64}};

    (void)state;
    FOR_EACH (i, sizes)
        for (int weights = 0; weights < 2; weights++) {
            size_t m = sizes[i][0], n = sizes[i][1];
            float *one = product_on(1, weights, m, n, K);

            for (size_t threads = 2; threads <= 5; threads++) {
                float *more = product_on(threads, weights, m, n, K);
                assert_memory_equal(one, more, m * n * sizeof *one);
                free(more);
            }
            free(one);
        }
}

static size_t threads_of_this_process(void)
{
    DIR *tasks = opendir("/proc/self/task");
    size_t n = 0;

    assert_non_null(tasks);
    for (const struct dirent *e = readdir(tasks); e != NULL; e = readdir(tasks))
        n += e->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* A product that is oneDNN's, on a thread that OpenMP gives four others. */
static void *multiply_elsewhere(void *self)
{
    enum { M = 512, K = 64 };
    bm_backend *be = self;
    float *a = made((size_t)M * K, 8), *c = made((size_t)M * M, 9);
    void (*set)(int) = NULL;
    size_t before = threads_of_this_process();

    *(void **)&set = dlsym(RTLD_DEFAULT, "omp_set_num_threads");
    if (set != NULL)
        set(5);
    bm_gemm(be, false, true, 1, bm_matrix(a, M, K), bm_matrix(a, M, K), 0,
            bm_matrix(c, M, M));
    free(a);
    free(c);
    return threads_of_this_process() == before ? be : NULL;
}

static void test_a_product_on_another_thread_starts_no_threads(void **state)
{
    bm_backend *be = NULL;
    pthread_t thread;
    void *ended = NULL;

    (void)state;
    assert_ok(bm_backend_open(&be, "cpu", 0));
    assert_int_equal(pthread_create(&thread, NULL, multiply_elsewhere, be), 0);
    assert_int_equal(pthread_join(thread, &ended), 0);
    assert_non_null(ended);
    bm_backend_close(be);
}

/* x rounded to 8 bits, ties to even, by arithmetic on doubles. */
static double rounded(float x)
{
    int e = 0;
    double m = frexp((double)x, &e);

    return ldexp(nearbyint(ldexp(m, 8)), e - 8);
}

static void check_product(bm_backend *be, bool ta, bool tb, float beta)
{
    enum { M = 67, N = 130, K = 151 };
    float *a = made((size_t)M * K, 5), *b = made((size_t)K * N, 6);
    float *c = made((size_t)M * N, 7), *got = NULL;
    float *da = place(be, a, (size_t)M * K), *db = place(be, b, (size_t)K * N);
    float *dc = place(be, c, (size_t)M * N);

    bm_gemm(be, ta, tb, 1, ta ? bm_matrix(da, K, M) : bm_matrix(da, M, K),
            tb ? bm_matrix(db, N, K) : bm_matrix(db, K, N), beta,
            bm_matrix(dc, M, N));
    got = fetch(be, dc, (size_t)M * N);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = (double)beta * c[i * N + j], size = 1;
            for (size_t l = 0; l < K; l++) {
                double term = rounded(ta ? a[l * M + i] : a[i * K + l]) *
                              rounded(tb ? b[j * K + l] : b[l * N + j]);
                sum += term;
                size += fabs(term);
            }
            /* K roundings of partial sums, at most `size` large */
            assert_true(fabs(got[i * N + j] - sum) < 1e-6 * size);
        }
    bm_free(be, da);
    bm_free(be, db);
    bm_free(be, dc);
    free(a);
    free(b);
    free(c);
    free(got);
}

static void test_bf16_products_equal_those_of_rounded_factors(void **state)
{
    (void)state;
    FOR_EACH (k, units)
        for (size_t threads = 1; threads <= 2; threads++) {
            bm_backend *be = NULL;

            if (!open_bf16(units[k], threads, &be))
                continue;
            for (int way = 0; way < 8; way++)
                check_product(be, way & 1, way & 2, way & 4 ? 1 : 0);
            check_product(be, false, true, 0.5f);
            bm_backend_close(be);
        }
}

/* A rounding to 8 bits changes a factor by at most 1 part in 512, 1 in 900 on
 * the mean square; a gradient passes through about ten products. */
static void test_bf16_gradients_are_near_those_of_fp32(void **state)
{
    (void)state;
    FOR_EACH (k, nets) {
        result exact = gradient_on(nets[k][0], nets[k][1], 1, BM_FP32);

        FOR_EACH (u, units) {
            bm_backend *be = NULL;
            result r, again;

            if (!open_bf16(units[u], 1, &be))
                continue;
            bm_backend_close(be);
            setenv("BMUF_BF16", units[u], 1);
            r = gradient_on(nets[k][0], nets[k][1], 2, BM_BF16);
            again = gradient_on(nets[k][0], nets[k][1], 2, BM_BF16);
            unsetenv("BMUF_BF16");
            assert_memory_equal(r.g, again.g, r.n * sizeof *r.g);
            assert_true(distance(&r, &exact) < 0.02);
            assert_true(distance(&r, &exact) > 1e-5); /* but not equal */
            free(r.g);
            free(again.g);
        }
        free(exact.g);
    }
}

static void test_invalid_units_are_reported(void **state)
{
    bm_backend *be = NULL;

    (void)state;
    setenv("BMUF_BF16", "abacus", 1);
    assert_ok(bm_backend_open(&be, "cpu", 0));
    assert_int_equal(bm_backend_use(be, 1, BM_BF16), BM_ERR_CONFIG);
    assert_non_null(strstr(bm_last_error(), "abacus"));
    assert_ok(bm_backend_use(be, 2, BM_FP32)); /* still usable */
    unsetenv("BMUF_BF16");
    bm_backend_close(be);
}

static void test_backend_without_bf16_fails(void **state)
{
    bm_backend be = bare_backend();

    (void)state;
    assert_ok(bm_backend_use(&be, 4, BM_FP32));
    assert_int_equal(bm_backend_use(&be, 1, BM_BF16), BM_ERR_UNSUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_part_runs_once),
        cmocka_unit_test(test_parts_start_at_grains_and_cover_everything),
        cmocka_unit_test(test_threads_change_no_bit_of_a_loop),
        cmocka_unit_test(test_threads_change_no_bit_of_a_product),
        cmocka_unit_test(test_a_product_on_another_thread_starts_no_threads),
        cmocka_unit_test(test_gradients_of_a_network_are_reproducible),
        cmocka_unit_test(test_bf16_products_equal_those_of_rounded_factors),
        cmocka_unit_test(test_bf16_gradients_are_near_those_of_fp32),
        cmocka_unit_test(test_invalid_units_are_reported),
        cmocka_unit_test(test_backend_without_bf16_fails),
    };
    return RUN_GROUP("threads", tests);
}
