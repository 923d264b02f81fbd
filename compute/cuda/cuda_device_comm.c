/*
 * cuda_device_comm.c - devices that send to each other through NCCL, which is
 * loaded when it is asked for. What is used of it has been as it is since
 * version 2.14.
 *
 * Its communicator does not block: whatever waits for other ranks is waited for
 * here, in turns with a look at NCCL's own errors and at the watch. When one of
 * them tells of a failure, ncclCommAbort ends what the stream waits for. It is
 * the end of a good one, too: ncclCommDestroy may wait for other ranks, of
 * which one may have aborted; and what was sent has come, as ranks agree on
 * that.
 */
#include "compute/cuda/cuda.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef struct nccl_comm nccl_comm;
typedef int nccl_result;
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7, NCCL_FLOAT = 7 };

/* The part of it that version 2.14 had; the rest gets its defaults. */
typedef struct nccl_config {
    size_t size;
    unsigned magic, version;
    int blocking;
} nccl_config;
static const nccl_config does_not_block = {sizeof(nccl_config), 0xcafebeef,
                                           21400, 0};

typedef struct nccl {
    nccl_result (*GetUniqueId)(bm_device_comm_id *out);
    nccl_result (*CommInitRankConfig)(nccl_comm **out, int size,
                                      bm_device_comm_id name, int rank,
                                      nccl_config *config);
    nccl_result (*CommGetAsyncError)(nccl_comm *comm, nccl_result *out);
    nccl_result (*CommAbort)(nccl_comm *comm);
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

struct bm_cuda_device_comm {
    nccl nccl;
    nccl_comm *comm; /* NULL: not open, or given up */
    bm_device_comm_watch watch;
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
    FIND(CommInitRankConfig);
    FIND(CommGetAsyncError);
    FIND(CommAbort);
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
    bm_cuda_device_comm *m = cuda->mesh;

    if (library == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "%s", dlerror());
    if (m == NULL)
        m = cuda->mesh = calloc(1, sizeof *m);
    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a mesh");
    BM_TRY(find_all(library, &m->nccl));
    return place(cuda->device, device);
}

static bm_status told(const bm_cuda_device_comm *m, nccl_result result,
                      const char *what)
{
    if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
        return BM_OK;
    return BM_FAIL(BM_ERR_DEVICE, "NCCL: %.*s: %s", (int)strcspn(what, "("),
                   what, m->nccl.GetErrorString(result));
}

static bm_status mesh_name(bm_backend *be, bm_device_comm_id *out)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->mesh;
    return told(m, m->nccl.GetUniqueId(out), "ncclGetUniqueId");
}

static void give_up(bm_cuda_device_comm *m)
{
    if (m->comm != NULL)
        (void)m->nccl.CommAbort(m->comm); /* nobody asks any more */
    m->comm = NULL;
}

/* Is all well, here and elsewhere? *working: NCCL has not yet done what it was
 * told last. */
static bm_status look(bm_cuda_device_comm *m, bool *working)
{
    nccl_result state = NCCL_SUCCESS;
    bm_status status =
        told(m, m->nccl.CommGetAsyncError(m->comm, &state), "AsyncError");

    if (status == BM_OK)
        status = told(m, state, "a rank or what is between them");
    if (status == BM_OK && m->watch.failed(m->watch.self))
        status = BM_FAIL(BM_ERR_COMM, "another rank has failed");
    *working = state == NCCL_IN_PROGRESS;
    return status;
}

static bm_status finish(bm_cuda_device_comm *m)
{
    bool working = true;
    bm_status status = BM_OK;

    while (working && status == BM_OK) {
        status = look(m, &working);
        (void)sched_yield();
    }
    if (status != BM_OK)
        give_up(m);
    return status;
}

static bm_status mesh_open(bm_backend *be, const bm_device_comm_id *name,
                           int rank, int size, bm_device_comm_watch watch)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->mesh;
    nccl_config config = does_not_block;
    bm_status status = BM_OK;

    BM_ASSERT(m->comm == NULL);
    bm_cuda_step_end(be);
    m->watch = watch;
    status = told(
        m, m->nccl.CommInitRankConfig(&m->comm, size, *name, rank, &config),
        "CommInitRankConfig");
    if (status == BM_OK)
        return finish(m);
    m->comm = NULL; /* whatever it was left as */
    return status;
}

static bool busy(cudaStream_t stream)
{
    return cudaStreamQuery(stream) == cudaErrorNotReady;
}

static bm_status mesh_wait(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_device_comm *m = cuda->mesh;
    bm_status status = BM_OK, synced = BM_OK;
    bool working = false;

    bm_cuda_step_end(be);
    status = be->failed;
    while (status == BM_OK && m->comm != NULL &&
           (busy(cuda->stream) || busy(cuda->side))) {
        status = look(m, &working);
        (void)sched_yield();
    }
    if (status != BM_OK)
        give_up(m);
    synced = bm_sync(be);
    return status != BM_OK ? status : synced;
}

static void mesh_close(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_device_comm *m = cuda->mesh;

    if (m == NULL)
        return;
    if (be->failed != BM_OK)
        give_up(m);
    cudaStreamSynchronize(cuda->stream);
    give_up(m);
    free(m);
    cuda->mesh = NULL;
}

/* A call within a group. */
#define MESH(be, m, call)                                                      \
    do {                                                                       \
        if (told((m), (m)->nccl.call, #call) != BM_OK)                         \
            bm_remember(be, BM_ERR_DEVICE);                                    \
    } while (0)

static void mesh_begin(bm_backend *be)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->mesh;

    bm_cuda_step_end(be);
    if (m->comm == NULL) {
        bm_remember(be, BM_FAIL(BM_ERR_COMM, "there is no mesh any more"));
        return;
    }
    m->begun = true;
    MESH(be, m, GroupStart());
}

/* The group is on the stream when this returns. */
static void mesh_end(bm_backend *be)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->mesh;

    if (!m->begun)
        return;
    m->begun = false;
    MESH(be, m, GroupEnd());
    if (be->failed == BM_OK)
        bm_remember(be, finish(m));
}

static void mesh_send(bm_backend *be, const float *x, size_t n, int to)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->mesh;

    x = bm_cuda_read(be, x, n);
    MESH(be, m, Send(x, n, NCCL_FLOAT, to, m->comm, bm_cuda_of(be)->stream));
}

static void mesh_receive(bm_backend *be, float *x, size_t n, int from)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->mesh;

    x = bm_cuda_write(be, x, n);
    MESH(be, m, Recv(x, n, NCCL_FLOAT, from, m->comm, bm_cuda_of(be)->stream));
}

static void mesh_broadcast(bm_backend *be, float *x, size_t n, int root)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->mesh;

    x = bm_cuda_change(be, x, n, false).x;
    MESH(be, m,
         Broadcast(x, x, n, NCCL_FLOAT, root, m->comm, bm_cuda_of(be)->stream));
}

static float *mesh_floats(bm_backend *be, float *x, size_t n)
{
    return bm_cuda_change(be, x, n, false).x;
}

const bm_device_comm_ops bm_cuda_device_comm_ops = {
    .load = mesh_load,
    .make_id = mesh_name,
    .open = mesh_open,
    .wait = mesh_wait,
    .floats = mesh_floats,
    .close = mesh_close,
    .begin = mesh_begin,
    .end = mesh_end,
    .send = mesh_send,
    .receive = mesh_receive,
    .broadcast = mesh_broadcast,
};
