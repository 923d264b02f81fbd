/* device_comm.c - calls the backend's communication between devices. */
#include "compute/device_comm.h"

#include "compute/backend_ops.h"

bm_status bm_device_comm_load(bm_backend *be, int64_t *device)
{
    if (be->ops->device_comm == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "backend %s has no communication between devices",
                       be->ops->name);
    return be->ops->device_comm->load(be, device);
}

bm_status bm_device_comm_make_id(bm_backend *be, bm_device_comm_id *out)
{
    return be->ops->device_comm->make_id(be, out);
}

bm_status bm_device_comm_open(bm_backend *be, const bm_device_comm_id *id,
                              int rank, int size, bm_device_comm_watch watch)
{
    return be->ops->device_comm->open(be, id, rank, size, watch);
}

bm_status bm_device_comm_wait(bm_backend *be)
{
    BM_ASSERT(bm_used_here(be));
    return be->ops->device_comm->wait(be);
}

float *bm_device_comm_floats(bm_backend *be, float *x, size_t n)
{
    return be->ops->device_comm->floats(be, x, n);
}

void bm_device_comm_close(bm_backend *be)
{
    be->ops->device_comm->close(be);
}

void bm_device_comm_begin(bm_backend *be)
{
    BM_ASSERT(bm_used_here(be));
    if (be->failed == BM_OK)
        be->ops->device_comm->begin(be);
}

void bm_device_comm_end(bm_backend *be)
{
    be->ops->device_comm->end(be);
}

void bm_device_comm_send(bm_backend *be, const float *x, size_t n, int to)
{
    if (be->failed == BM_OK)
        be->ops->device_comm->send(be, x, n, to);
}

void bm_device_comm_receive(bm_backend *be, float *x, size_t n, int from)
{
    if (be->failed == BM_OK)
        be->ops->device_comm->receive(be, x, n, from);
}

void bm_device_comm_broadcast(bm_backend *be, float *x, size_t n, int root)
{
    if (be->failed == BM_OK)
        be->ops->device_comm->broadcast(be, x, n, root);
}
