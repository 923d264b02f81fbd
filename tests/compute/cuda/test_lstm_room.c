/* Which LSTMs a device's clusters have room for: lstm_kernels.h. */
#include "compute/cuda/device/cuda_context.h"
#include "compute/cuda/lstm/lstm_kernels.h"
#include "tests/support/support.h"
#include "tests/support/support_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bm_backend *be;
static cudaError_t (*ask)(int, size_t, bool *);
static int (*tiles)(const int *, int, size_t, size_t);

static bool fits(int major, size_t H)
{
    bool able = false;

    assert_int_equal(ask(major, H, &able), cudaSuccess);
    return able;
}

/* A slice of a device may have no room for a cluster. */
static void test_nothing_fits_without_room(void **state)
{
    (void)state;
    if (strstr(bm_cuda_of(be)->name, "emulation") == NULL)
        skip();
    setenv("BMUF_EMULATED_CLUSTERS", "0", 1);
    for (size_t H = 8; H <= 512; H += 8)
        assert_false(fits(9, H));
    unsetenv("BMUF_EMULATED_CLUSTERS");
}

/* What an earlier kernel did is no limit of the device. */
static void test_an_error_of_a_kernel_is_reported(void **state)
{
    bool able = true;

    (void)state;
    if (strstr(bm_cuda_of(be)->name, "emulation") == NULL)
        skip();
    setenv("BMUF_EMULATED_ERROR", "700", 1);
    assert_int_equal(ask(9, 64, &able), cudaErrorIllegalAddress);
    assert_false(able);
    unsetenv("BMUF_EMULATED_ERROR");
}

static void test_sizes_that_fit(void **state)
{
    (void)state;
    for (size_t H = 8; H <= 512; H += 8)
        assert_true(fits(9, H));
    assert_false(fits(9, 0));
    assert_false(fits(9, 12));
    assert_false(fits(9, 520));
    assert_false(fits(8, 64));
    assert_false(fits(7, 64));
}

/* An H100 runs 7 or 8 clusters of 16 blocks at once, and 15 or 16 of 8: which,
 * depends on where its 132 multiprocessors are. */
static void test_all_clusters_run_at_once_if_they_can(void **state)
{
    const struct {
        int at_once, tiles;
        size_t B, R;
    } known[] = {{7, 3, 64, 2}, {8, 2, 64, 2}, {15, 2, 64, 2}, {16, 1, 64, 2},
                 {7, 2, 64, 1}, {8, 1, 64, 1}, {2, 2, 9, 2},   {2, 5, 40, 2},
                 {4, 1, 1, 2},  {1, 8, 64, 1}, {6, 3, 64, 2},  {4, 4, 64, 2}};

    (void)state;
    FOR_EACH (i, known) {
        int at_once[8];

        for (size_t k = 0; k < 8; k++)
            at_once[k] = known[i].at_once;
        assert_int_equal(tiles(at_once, 8, known[i].B, known[i].R),
                         known[i].tiles);
        at_once[1] = 0; /* no room for more than one */
        assert_int_equal(tiles(at_once, 8, known[i].B, known[i].R), 1);
    }
}

static void *symbol(void *plugin, const char *name)
{
    void *x = dlsym(plugin, name);
    assert_non_null(x);
    return x;
}

static int load(void **state)
{
    char path[4096];
    void *plugin = NULL;

    (void)state;
    (void)snprintf(path, sizeof path, "%s/libbmuf_cuda.so",
                   getenv("BMUF_PLUGINS"));
    plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(plugin);
    *(void **)&ask = symbol(plugin, "bm_kernel_lstm_cluster_fits");
    *(void **)&tiles = symbol(plugin, "bm_lstm_cluster_tiles");
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_fits_without_room), /* asked once */
        cmocka_unit_test(test_an_error_of_a_kernel_is_reported),
        cmocka_unit_test(test_sizes_that_fit),
        cmocka_unit_test(test_all_clusters_run_at_once_if_they_can),
    };
    int failed = SKIPPED;

    if (!have_backend("cuda"))
        return SKIPPED;
    assert_ok(bm_backend_open(&be, "cuda", 0));
    if (bm_cuda_of(be)->major < 9)
        printf("skipped: this device has no clusters\n");
    else
        failed = cmocka_run_group_tests_name("lstm_room", tests, load, NULL);
    bm_backend_close(be);
    return failed;
}
