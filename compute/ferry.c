/* ferry.c - copies beside what is queued; in line with it, for a backend that
 * knows nothing else. */
#include "compute/backend_ops.h"

#include <stdlib.h>

struct bm_ferry {
    bm_backend *be; /* borrowed */
    void *self;     /* the backend's; NULL: copies are queued like all else */
};

bm_status bm_ferry_open(bm_ferry **out, bm_backend *be)
{
    bm_ferry *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies");
    f->be = be;
    if (be->ops->ferry_open != NULL)
        status = be->ops->ferry_open(be, &f->self);
    if (status == BM_OK)
        *out = f;
    else
        free(f);
    return status;
}

void bm_ferry_close(bm_ferry *f)
{
    if (f != NULL && f->self != NULL)
        f->be->ops->ferry_close(f->be, f->self);
    free(f);
}

void bm_ferry_get(bm_ferry *f, size_t piece, float *host_dst, const float *src,
                  size_t n)
{
    if (f->self == NULL)
        bm_get(f->be, host_dst, src, n);
    else if (f->be->failed == BM_OK)
        f->be->ops->ferry_get(f->be, f->self, piece, host_dst, src, n);
}

bm_status bm_ferry_wait(bm_ferry *f, size_t piece)
{
    if (f->self == NULL)
        return bm_sync(f->be);
    BM_TRY(f->be->failed); /* nothing was queued then */
    return f->be->ops->ferry_wait(f->be, f->self, piece);
}

void bm_ferry_put(bm_ferry *f, float *dst, const float *host_src, size_t n)
{
    if (f->self == NULL)
        bm_put(f->be, dst, host_src, n);
    else if (f->be->failed == BM_OK)
        f->be->ops->ferry_put(f->be, f->self, dst, host_src, n);
}

void bm_ferry_join(bm_ferry *f)
{
    if (f->self != NULL && f->be->failed == BM_OK)
        f->be->ops->ferry_join(f->be, f->self);
}
