#include "compute/mesh.h"

#include "compute/backend_ops.h"

bm_status bm_mesh_load(bm_backend *be, int64_t *device)
{
    if (be->ops->mesh == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "backend %s sends through the host",
                       be->ops->name);
    return be->ops->mesh->load(be, device);
}

bm_status bm_mesh_make_name(bm_backend *be, bm_mesh_name *out)
{
    return be->ops->mesh->name(be, out);
}

bm_status bm_mesh_open(bm_backend *be, const bm_mesh_name *name, int rank,
                       int size, bm_mesh_watch watch)
{
    return be->ops->mesh->open(be, name, rank, size, watch);
}

bm_status bm_mesh_wait(bm_backend *be)
{
    return be->ops->mesh->wait(be);
}

float *bm_mesh_floats(bm_backend *be, float *x, size_t n)
{
    return be->ops->mesh->floats(be, x, n);
}

void bm_mesh_close(bm_backend *be)
{
    be->ops->mesh->close(be);
}

void bm_mesh_begin(bm_backend *be)
{
    if (be->failed == BM_OK)
        be->ops->mesh->begin(be);
}

void bm_mesh_end(bm_backend *be)
{
    be->ops->mesh->end(be);
}

void bm_mesh_send(bm_backend *be, const float *x, size_t n, int to)
{
    if (be->failed == BM_OK)
        be->ops->mesh->send(be, x, n, to);
}

void bm_mesh_receive(bm_backend *be, float *x, size_t n, int from)
{
    if (be->failed == BM_OK)
        be->ops->mesh->receive(be, x, n, from);
}

void bm_mesh_broadcast(bm_backend *be, float *x, size_t n, int root)
{
    if (be->failed == BM_OK)
        be->ops->mesh->broadcast(be, x, n, root);
}
