#include "compute/device_comm.h"

#include "compute/backend_ops.h"

bm_status bm_device_comm_load(bm_backend *be, int64_t *device)
{
    if (be->ops->mesh == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "backend %s sends through the host",
                       be->ops->name);
    return be->ops->mesh->load(be, device);
}

bm_status bm_device_comm_make_id(bm_backend *be, bm_device_comm_id *out)
{
    return be->ops->mesh->name(be, out);
}

bm_status bm_device_comm_open(bm_backend *be, const bm_device_comm_id *name,
                              int rank, int size, bm_device_comm_watch watch)
{
    return be->ops->mesh->open(be, name, rank, size, watch);
}

bm_status bm_device_comm_wait(bm_backend *be)
{
    return be->ops->mesh->wait(be);
}

float *bm_device_comm_floats(bm_backend *be, float *x, size_t n)
{
    return be->ops->mesh->floats(be, x, n);
}

void bm_device_comm_close(bm_backend *be)
{
    be->ops->mesh->close(be);
}

void bm_device_comm_begin(bm_backend *be)
{
    if (be->failed == BM_OK)
        be->ops->mesh->begin(be);
}

void bm_device_comm_end(bm_backend *be)
{
    be->ops->mesh->end(be);
}

void bm_device_comm_send(bm_backend *be, const float *x, size_t n, int to)
{
    if (be->failed == BM_OK)
        be->ops->mesh->send(be, x, n, to);
}

void bm_device_comm_receive(bm_backend *be, float *x, size_t n, int from)
{
    if (be->failed == BM_OK)
        be->ops->mesh->receive(be, x, n, from);
}

void bm_device_comm_broadcast(bm_backend *be, float *x, size_t n, int root)
{
    if (be->failed == BM_OK)
        be->ops->mesh->broadcast(be, x, n, root);
}
