/* whole.c - a valid plugin that needs a driver and a library. */
#include "compute/plugin.h"

int fake_two(void); /* of libfake_arithmetic.so.1 */

static bm_status start(bm_backend *be, int index)
{
    (void)be;
    return fake_two() + index == 2
               ? BM_OK
               : BM_FAIL(BM_ERR_DEVICE, "fake_two() does not return 2");
}

static void stop(bm_backend *be)
{
    (void)be;
}

static const bm_backend_ops ops = {
    .name = "whole", .open = start, .close = stop};

static const char *const libraries[] = {"libfake_arithmetic.so.1", NULL};
static const char *const extras[] = {"libfake_comfort.so.1", NULL};
static const char *const places[] = {"$FAKE_LIB", "", "$FAKE_PREFIX/l*b", NULL};

const bm_plugin bm_plugin_whole = {
    .abi = BM_PLUGIN_ABI,
    .driver = "libfake_driver.so.1",
    .libraries = libraries,
    .extras = extras,
    .places = places,
    .ops = &ops,
};
