/* async_copy.c - copies beside what is queued; in line with it, for a backend
 * that knows nothing else. */
#include "compute/backend_ops.h"

#include <stdlib.h>

struct bm_async_copy {
    bm_backend *be; /* borrowed */
    void *self;     /* the backend's; NULL: copies are queued like all else */
};

bm_status bm_async_copy_open(bm_async_copy **out, bm_backend *be)
{
    bm_async_copy *f = calloc(1, sizeof *f);
    bm_status status = BM_OK;

    if (f == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies");
    f->be = be;
    if (be->ops->async_copy_open != NULL)
        status = be->ops->async_copy_open(be, &f->self);
    if (status == BM_OK)
        *out = f;
    else
        free(f);
    return status;
}

void bm_async_copy_close(bm_async_copy *f)
{
    if (f != NULL && f->self != NULL)
        f->be->ops->async_copy_close(f->be, f->self);
    free(f);
}

void bm_async_copy_get(bm_async_copy *f, size_t piece, float *host_dst,
                       const float *src, size_t n)
{
    if (f->self == NULL)
        bm_get(f->be, host_dst, src, n);
    else if (f->be->failed == BM_OK)
        f->be->ops->async_copy_get(f->be, f->self, piece, host_dst, src, n);
}

bm_status bm_async_copy_wait(bm_async_copy *f, size_t piece)
{
    if (f->self == NULL)
        return bm_sync(f->be);
    BM_TRY(f->be->failed); /* nothing was queued then */
    return f->be->ops->async_copy_wait(f->be, f->self, piece);
}

void bm_async_copy_put(bm_async_copy *f, float *dst, const float *host_src,
                       size_t n)
{
    if (f->self == NULL)
        bm_put(f->be, dst, host_src, n);
    else if (f->be->failed == BM_OK)
        f->be->ops->async_copy_put(f->be, f->self, dst, host_src, n);
}

void bm_async_copy_join(bm_async_copy *f)
{
    if (f->self != NULL && f->be->failed == BM_OK)
        f->be->ops->async_copy_join(f->be, f->self);
}
