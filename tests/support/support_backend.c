#include "tests/support/support_backend.h"

#include <stdlib.h>
#include <string.h>

bm_backend *cpu;
bm_backend *chosen;

int open_cpu(void **state)
{
    (void)state;
    assert_ok(bm_backend_open(&cpu, "cpu", 0));
    return 0;
}

int close_cpu(void **state)
{
    (void)state;
    bm_backend_close(cpu);
    return 0;
}

bool have_backend(const char *name)
{
    bm_backend *one = NULL;

    if (bm_backend_open(&one, name, 0) != BM_OK) {
        print_message("skipped: %s\n", bm_last_error());
        return false;
    }
    bm_backend_close(one);
    return true;
}

int run_group_on(int argc, char **argv, const char *name,
                 const struct CMUnitTest *tests, size_t n)
{
    const char *backend = argc > 1 ? argv[1] : "cpu";
    bool bf16 = argc > 2 && strcmp(argv[2], "bf16") == 0;
    int failed = 0;

    if (!have_backend(backend))
        return SKIPPED;
    if (bm_backend_open(&chosen, backend, 0) != BM_OK ||
        bm_backend_use(chosen, 1, bf16 ? BM_BF16 : BM_FP32) != BM_OK)
        return EXIT_FAILURE;
    failed = _cmocka_run_group_tests(name, tests, n, NULL, NULL);
    bm_backend_close(chosen);
    return failed;
}

static void wait_for_nothing(bm_backend *be)
{
    (void)be;
}

bool have_convolution(const char *name, bm_precision precision)
{
    static const float numbers[] = {1, 2};
    int32_t one[] = {1};
    bm_conv c = {1, 1, 1, {1, 1, 0, 0}, {1, 1, 0, 0}, {1, 1}, NULL, NULL};
    bm_extent e = {1, 1, one};
    bm_backend *be = NULL;
    float *x = NULL, *y = NULL, *work = NULL;
    bm_status status = BM_OK;

    assert_ok(bm_backend_open(&be, name, 0));
    assert_ok(bm_backend_use(be, 1, precision));
    x = place(be, numbers, 2);
    y = place(be, numbers, 1);
    assert_ok(bm_alloc(be, bm_conv_work(be, &c), &work));
    c.w = x;
    c.b = x + 1;
    bm_conv_forward(be, &c, e, e, x, y, work);
    status = bm_sync(be);
    if (status == BM_ERR_UNSUPPORTED)
        print_message("skipped: %s\n", bm_last_error());
    bm_free(be, x);
    bm_free(be, y);
    bm_free(be, work);
    bm_backend_close(be);
    return status != BM_ERR_UNSUPPORTED;
}

bm_backend bare_backend(void)
{
    static const bm_backend_ops bare = {.name = "bare",
                                        .sync = wait_for_nothing};
    return (bm_backend){.ops = &bare, .user = pthread_self()};
}

float *place(bm_backend *be, const float *host, size_t n)
{
    float *placed = NULL;

    assert_ok(bm_alloc(be, n, &placed));
    bm_put(be, placed, host, n);
    assert_ok(bm_sync(be));
    return placed;
}

float *fetch(bm_backend *be, const float *x, size_t n)
{
    float *host = malloc((n + 1) * sizeof *host);

    assert_non_null(host);
    bm_get(be, host, x, n);
    assert_ok(bm_sync(be));
    return host;
}

bool inside(const bm_extent *e, size_t i, size_t size)
{
    return i / (e->B * size) < (size_t)e->frames[i / size % e->B];
}

bm_window side_by_side(size_t size)
{
    return (bm_window){size, size, 0, size - 1};
}
