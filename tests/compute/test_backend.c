/* A backend besides its operations: memory, copies, failures. The operations
 * are in test_operations.c. */
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *backend = "cpu";
static bm_precision precision = BM_FP32;

static bm_backend *open_backend(void)
{
    bm_backend *be = NULL;
    assert_ok(bm_backend_open(&be, backend, 0));
    assert_ok(bm_backend_use(be, 1, precision));
    return be;
}

/* n floats from the backend. */
static void read_back(bm_backend *be, float *host, const float *x, size_t n)
{
    bm_get(be, host, x, n);
    assert_ok(bm_sync(be));
}

static void test_vectors_longer_than_a_grid_of_a_device(void **state)
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

/* From pinned and other memory, which may change when bm_put returns. */
static void test_vectors_of_all_sizes_are_copied(void **state)
{
    size_t sizes[] = {1, 1000, 300000, (size_t)1 << 20, 2500003};
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

static void test_operations_after_a_failure_are_no_ops_until_sync(void **state)
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
    bm_backend be = {.ops = &ops, .self = &waits, .user = pthread_self()};

    (void)state;
    bm_remember(&be, BM_ERR_IO);
    assert_int_equal(bm_sync(&be), BM_ERR_IO);
    assert_int_equal(waits, 1);
    assert_int_equal(bm_sync(&be), BM_ERR_DEVICE);
    assert_int_equal(waits, 2);
}

static void test_alloc_of_impossible_sizes_fails(void **state)
{
    bm_backend *be = open_backend();
    float *x = NULL;

    (void)state; /* in bytes, a size_t would count 4 of the second */
    assert_int_equal(bm_alloc(be, SIZE_MAX, &x), BM_ERR_MEMORY);
    assert_int_equal(bm_alloc(be, SIZE_MAX / sizeof *x + 2, &x), BM_ERR_MEMORY);
    assert_null(x);
    bm_backend_close(be);
}

static void test_missing_operation_is_reported_by_name(void **state)
{
    bm_backend be = bare_backend();
    bm_conv c = {0};
    float x = 1;

    (void)state;
    bm_add_rows(&be, bm_matrix(&x, 1, 1), &x);
    assert_int_equal(bm_sync(&be), BM_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(bm_last_error(), "add_rows is not available on backend bare"));
    assert_true(x == 1);
    assert_int_equal(bm_conv_work(&be, &c), 0);
    assert_int_equal(bm_sync(&be), BM_ERR_UNSUPPORTED);
    assert_non_null(
        strstr(bm_last_error(), "conv_work is not available on backend bare"));
}

static void test_missing_backend_is_reported_by_name(void **state)
{
    bm_backend *be = NULL;

    (void)state;
    assert_int_equal(bm_backend_open(&be, "abacus", 0), BM_ERR_UNSUPPORTED);
    assert_non_null(strstr(bm_last_error(), "abacus"));
    assert_int_equal(bm_backend_open(&be, "../cpu", 0), BM_ERR_CONFIG);
    assert_null(be);
}

/* ---- threads ------------------------------------------------------------- */

enum { SOME = 1000 };

typedef struct guest {
    bm_backend *be;
    float *x;
    bool takes;
    bm_status status;
} guest;

static void *double_it(void *self)
{
    guest *g = self;

    if (g->takes)
        bm_backend_take(g->be);
    bm_axpby(g->be, SOME, 2, g->x, 0, g->x);
    g->status = bm_sync(g->be);
    return NULL;
}

static void run_guest(guest *g)
{
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, double_it, g), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* On the last device: a thread begins with the first one. */
static void test_another_thread_takes_a_backend(void **state)
{
    float ones[SOME], *got = NULL;
    guest g = {.takes = true};

    (void)state;
    setenv("BMUF_EMULATED_DEVICES", "2", 1);
    assert_ok(bm_backend_open(&g.be, backend, 1));
    for (int i = 0; i < SOME; i++)
        ones[i] = 1;
    g.x = place(g.be, ones, SOME);
    run_guest(&g);
    assert_ok(g.status);
    bm_backend_take(g.be);
    got = fetch(g.be, g.x, SOME);
    assert_true(got[0] == 2 && got[SOME - 1] == 2);
    free(got);
    bm_free(g.be, g.x);
    bm_backend_close(g.be);
    unsetenv("BMUF_EMULATED_DEVICES");
}

/* A device that another thread uses all the same is a bug, which ends the
 * program. */
static void test_a_device_is_used_by_one_thread(void **state)
{
    guest g = {.be = open_backend()};
    pid_t child = -1;
    int ended = 0;

    (void)state;
    assert_ok(bm_alloc(g.be, SOME, &g.x));
    assert_ok(bm_sync(g.be));
    child = fork();
    if (child == 0) {
        run_guest(&g);
        _exit(0);
    }
    assert_true(child > 0 && waitpid(child, &ended, 0) == child);
    if (bm_on_host(g.be))
        assert_true(WIFEXITED(ended) && WEXITSTATUS(ended) == 0);
    else
        assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
    bm_free(g.be, g.x);
    bm_backend_close(g.be);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vectors_longer_than_a_grid_of_a_device),
        cmocka_unit_test(test_vectors_of_all_sizes_are_copied),
        cmocka_unit_test(test_operations_after_a_failure_are_no_ops_until_sync),
        cmocka_unit_test(test_sync_waits_after_a_failure_too),
        cmocka_unit_test(test_alloc_of_impossible_sizes_fails),
        cmocka_unit_test(test_missing_operation_is_reported_by_name),
        cmocka_unit_test(test_missing_backend_is_reported_by_name),
        cmocka_unit_test(test_another_thread_takes_a_backend),
        cmocka_unit_test(test_a_device_is_used_by_one_thread),
    };

    if (argc > 1)
        backend = argv[1];
    if (argc > 2 && strcmp(argv[2], "bf16") == 0)
        precision = BM_BF16;
    if (!have_backend(backend))
        return SKIPPED;
    return RUN_GROUP(backend, tests);
}
