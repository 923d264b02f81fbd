/*
 * cuda_mesh.c - devices that send to each other through NCCL, which is loaded
 * when it is asked for. What is used of it has been as it is since version 2.7.
 */
#include "compute/cuda/cuda.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

typedef struct nccl_comm nccl_comm;
typedef int nccl_result; /* 0: success */
enum { NCCL_FLOAT = 7 };

typedef struct nccl {
    nccl_result (*GetUniqueId)(bm_mesh_name *out);
    nccl_result (*CommInitRank)(nccl_comm **out, int size, bm_mesh_name name,
                                int rank);
    nccl_result (*CommDestroy)(nccl_comm *comm);
    nccl_result (*GroupStart)(void);
    nccl_result (*GroupEnd)(void);
    nccl_result (*Send)(const void *x, size_t n, int type, int to,
                        nccl_comm *comm, cudaStream_t stream);
    nccl_result (*Recv)(void *x, size_t n, int type, int from, nccl_comm *comm,
                        cudaStream_t stream);
    nccl_result (*Broadcast)(const void *x, void *y, size_t n, int type,
                             int root, nccl_comm *comm, cudaStream_t stream);
    const char *(*GetErrorString)(nccl_result result);
} nccl;

struct bm_cuda_mesh {
    nccl nccl;
    nccl_comm *comm;
    bool begun;
};

/* One function of the library. */
static bm_status find(void *library, const char *name, void *out)
{
    void *f = dlsym(library, name);

    if (f == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "libnccl.so.2 has no %s", name);
    memcpy(out, &f, sizeof f);
    return BM_OK;
}

static bm_status find_all(void *library, nccl *out)
{
#define FIND(name) BM_TRY(find(library, "nccl" #name, &out->name))
    FIND(GetUniqueId);
    FIND(CommInitRank);
    FIND(CommDestroy);
    FIND(GroupStart);
    FIND(GroupEnd);
    FIND(Send);
    FIND(Recv);
    FIND(Broadcast);
    FIND(GetErrorString);
#undef FIND
    return BM_OK;
}

/* Where it is plugged in. */
static bm_status place(int device, int64_t *out)
{
    static const enum cudaDeviceAttr parts[] = {
        cudaDevAttrPciDomainId, cudaDevAttrPciBusId, cudaDevAttrPciDeviceId};
    int64_t place = 0;

    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        int part = 0;
        BM_TRY(bm_cuda_status(cudaDeviceGetAttribute(&part, parts[i], device),
                              "the device's place"));
        place = place << 16 | part;
    }
    *out = place;
    return BM_OK;
}

static bm_status mesh_load(bm_backend *be, int64_t *device)
{
    bm_cuda *cuda = bm_cuda_of(be);
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    bm_cuda_mesh *m = cuda->mesh;

    if (library == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "%s", dlerror());
    if (m == NULL)
        m = cuda->mesh = calloc(1, sizeof *m);
    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a mesh");
    BM_TRY(find_all(library, &m->nccl));
    return place(cuda->device, device);
}

static bm_status told(const bm_cuda_mesh *m, nccl_result result,
                      const char *what)
{
    if (result == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_DEVICE, "NCCL: %s: %s", what,
                   m->nccl.GetErrorString(result));
}

static bm_status mesh_name(bm_backend *be, bm_mesh_name *out)
{
    bm_cuda_mesh *m = bm_cuda_of(be)->mesh;
    return told(m, m->nccl.GetUniqueId(out), "ncclGetUniqueId");
}

static bm_status mesh_open(bm_backend *be, const bm_mesh_name *name, int rank,
                           int size)
{
    bm_cuda_mesh *m = bm_cuda_of(be)->mesh;

    BM_ASSERT(m->comm == NULL);
    bm_cuda_step_end(be);
    return told(m, m->nccl.CommInitRank(&m->comm, size, *name, rank),
                "ncclCommInitRank");
}

static void mesh_close(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_mesh *m = cuda->mesh;

    if (m == NULL)
        return;
    if (m->comm != NULL) {
        cudaStreamSynchronize(cuda->stream);
        m->nccl.CommDestroy(m->comm);
    }
    free(m);
    cuda->mesh = NULL;
}

/* A call within a group. */
#define MESH(be, call)                                                         \
    do {                                                                       \
        bm_cuda_mesh *m = bm_cuda_of(be)->mesh;                                \
        if (told(m, m->nccl.call, #call) != BM_OK)                             \
            bm_remember(be, BM_ERR_DEVICE);                                    \
    } while (0)

static void mesh_begin(bm_backend *be)
{
    bm_cuda_step_end(be);
    bm_cuda_of(be)->mesh->begun = true;
    MESH(be, GroupStart());
}

static void mesh_end(bm_backend *be)
{
    if (bm_cuda_of(be)->mesh->begun)
        MESH(be, GroupEnd());
    bm_cuda_of(be)->mesh->begun = false;
}

static void mesh_send(bm_backend *be, const float *x, size_t n, int to)
{
    x = bm_cuda_read(be, x, n);
    MESH(be, Send(x, n, NCCL_FLOAT, to, m->comm, bm_cuda_of(be)->stream));
}

static void mesh_receive(bm_backend *be, float *x, size_t n, int from)
{
    x = bm_cuda_write(be, x, n);
    MESH(be, Recv(x, n, NCCL_FLOAT, from, m->comm, bm_cuda_of(be)->stream));
}

static void mesh_broadcast(bm_backend *be, float *x, size_t n, int root)
{
    x = bm_cuda_change(be, x, n, false).x;
    MESH(be,
         Broadcast(x, x, n, NCCL_FLOAT, root, m->comm, bm_cuda_of(be)->stream));
}

const bm_mesh_ops bm_cuda_mesh_ops = {
    .load = mesh_load,
    .name = mesh_name,
    .open = mesh_open,
    .close = mesh_close,
    .begin = mesh_begin,
    .end = mesh_end,
    .send = mesh_send,
    .receive = mesh_receive,
    .broadcast = mesh_broadcast,
};
