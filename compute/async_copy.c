/* async_copy.c - copies that run beside queued work; queued like everything
 * else on a backend that has no others. */
#include "compute/backend_ops.h"

#include <stdlib.h>

struct bm_async_copy {
    bm_backend *be; /* borrowed */
    void *self;     /* the backend's state; NULL: copies are queued */
};

bm_status bm_async_copy_open(bm_async_copy **out, bm_backend *be)
{
    bm_async_copy *c = calloc(1, sizeof *c);
    bm_status status = BM_OK;

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for copies");
    c->be = be;
    if (be->ops->async_copy_open != NULL)
        status = be->ops->async_copy_open(be, &c->self);
    if (status == BM_OK)
        *out = c;
    else
        free(c);
    return status;
}

void bm_async_copy_close(bm_async_copy *c)
{
    if (c != NULL && c->self != NULL)
        c->be->ops->async_copy_close(c->be, c->self);
    free(c);
}

void bm_async_copy_get(bm_async_copy *c, size_t piece, float *host_dst,
                       const float *src, size_t n)
{
    if (c->self == NULL)
        bm_get(c->be, host_dst, src, n);
    else if (c->be->failed == BM_OK)
        c->be->ops->async_copy_get(c->be, c->self, piece, host_dst, src, n);
}

bm_status bm_async_copy_wait(bm_async_copy *c, size_t piece)
{
    if (c->self == NULL)
        return bm_sync(c->be);
    BM_TRY(c->be->failed); /* the copy may not have been queued */
    return c->be->ops->async_copy_wait(c->be, c->self, piece);
}

void bm_async_copy_put(bm_async_copy *c, float *dst, const float *host_src,
                       size_t n)
{
    if (c->self == NULL)
        bm_put(c->be, dst, host_src, n);
    else if (c->be->failed == BM_OK)
        c->be->ops->async_copy_put(c->be, c->self, dst, host_src, n);
}

void bm_async_copy_join(bm_async_copy *c)
{
    if (c->self != NULL && c->be->failed == BM_OK)
        c->be->ops->async_copy_join(c->be, c->self);
}
