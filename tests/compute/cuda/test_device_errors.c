/* What errors of a device become. The emulated one makes them. */
#include "compute/cuda/device/cuda_context.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <stdlib.h>
#include <string.h>

enum { N = 1000 };

/* cudaErrorIllegalAddress, of a kernel before */
static void begin_error(void)
{
    setenv("BMUF_EMULATED_ERROR", "700", 1);
}

static void end_error(void)
{
    unsetenv("BMUF_EMULATED_ERROR");
}

static int clear(void **state)
{
    (void)state;
    end_error();
    unsetenv("BMUF_EMULATED_MEMORY");
    unsetenv("BMUF_LSTM");
    return 0;
}

static bm_backend *open_backend(void)
{
    bm_backend *be = NULL;

    assert_ok(bm_backend_open(&be, "cuda", 0));
    return be;
}

/* Nor is a vector swapped out because of it. */
static void test_an_error_of_a_kernel_is_no_lack_of_memory(void **state)
{
    bm_backend *be = open_backend();
    float *d_x = NULL, *d_y = NULL, *more = NULL;

    (void)state;
    assert_ok(bm_alloc_idle(be, N, &d_x));
    assert_ok(bm_alloc_idle(be, N, &d_y));
    bm_axpby(be, N, 0, d_x, 0, d_x); /* which is on the device now */
    assert_ok(bm_sync(be));
    begin_error();
    assert_int_equal(bm_alloc(be, N, &more), BM_ERR_DEVICE);
    assert_non_null(strstr(bm_last_error(), "cudaMalloc"));
    bm_axpby(be, N, 0, d_y, 0, d_y);
    assert_int_equal(bm_sync(be), BM_ERR_DEVICE);
    assert_false(bm_cuda_of(be)->swaps);
    end_error();
    assert_null(more);
    bm_free(be, d_x);
    bm_free(be, d_y);
    bm_backend_close(be);
}

static void test_a_full_device_is_a_lack_of_memory(void **state)
{
    bm_backend *be = open_backend();
    float *more = NULL;

    (void)state;
    setenv("BMUF_EMULATED_MEMORY", "0", 1);
    assert_int_equal(bm_alloc(be, N, &more), BM_ERR_MEMORY);
    bm_backend_close(be);
}

/* The engine is not called unable. */
static void test_an_error_of_a_kernel_is_no_limit_of_clusters(void **state)
{
    int32_t frames[] = {20, 7};
    bm_recurrent l = {.n_in = 3, .n_hidden = 16, .directions = 1};
    bm_backend *be = NULL;

    (void)state;
    setenv("BMUF_LSTM", "cluster", 1);
    be = open_backend();
    assert_ok(bm_backend_use(be, 1, BM_BF16));
    begin_error();
    (void)bm_recurrent_kept(be, &l, (bm_extent){20, 2, frames});
    end_error();
    assert_int_equal(bm_sync(be), BM_ERR_DEVICE);
    assert_true(bm_recurrent_kept(be, &l, (bm_extent){20, 2, frames}) > 0);
    assert_ok(bm_sync(be));
    bm_backend_close(be);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(
            test_an_error_of_a_kernel_is_no_lack_of_memory, clear),
        cmocka_unit_test_teardown(test_a_full_device_is_a_lack_of_memory,
                                  clear),
        cmocka_unit_test_teardown(
            test_an_error_of_a_kernel_is_no_limit_of_clusters, clear),
    };

    if (!have_backend("cuda"))
        return SKIPPED;
    return RUN_GROUP("device_errors", tests);
}
