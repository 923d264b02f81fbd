#include "tests/support_backend.h"

#include "tests/support.h"

#include <stdlib.h>

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
