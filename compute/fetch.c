/* fetch.c - calls the backend's own, unless something has failed before. */
#include "compute/fetch.h"

#include "compute/backend_ops.h"

#include <stdlib.h>

struct bm_fetch {
    bm_backend *be; /* borrowed */
    void *self;     /* the backend's state */
};

bm_status bm_fetch_open(bm_fetch **out, bm_backend *be, size_t n, size_t copies)
{
    bm_fetch *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    BM_ASSERT(!be->ops->on_host);
    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies");
    f->be = be;
    status = be->ops->fetch_open(be, n, copies, &f->self);
    if (status == BM_OK)
        *out = f;
    else
        free(f);
    return status;
}

void bm_fetch_close(bm_fetch *f)
{
    if (f == NULL)
        return;
    f->be->ops->fetch_close(f->be, f->self);
    free(f);
}

void bm_fetch_start(bm_fetch *f, size_t copy, const float *x, size_t at,
                    size_t n)
{
    f->be->turn++;
    if (f->be->failed == BM_OK)
        f->be->ops->fetch_start(f->be, f->self, copy, x, at, n);
}

const float *bm_fetch_wait(bm_fetch *f, size_t copy)
{
    if (f->be->failed != BM_OK)
        return NULL;
    return f->be->ops->fetch_wait(f->be, f->self, copy);
}
