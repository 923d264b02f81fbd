/*
 * cuda_device_comm.c - devices send to each other through NCCL, which is loaded
 * by the first call. It needs version 2.14 or later.
 *
 * The communicator is non-blocking. Where other ranks must be waited for, the
 * host polls NCCL's errors and the watch; if either reports a failure,
 * ncclCommAbort ends what the stream waits for. A good communicator is closed
 * by ncclCommAbort too: ncclCommDestroy may wait for a rank that has aborted,
 * and ranks agree before that that everything has arrived.
 */
#include "compute/cuda/libraries/cuda_device_comm.h"
#include "compute/cuda/memory/cuda_forms.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

typedef struct nccl_comm nccl_comm;
typedef int nccl_result;
enum { NCCL_SUCCESS = 0, NCCL_IN_PROGRESS = 7, NCCL_FLOAT = 7 };

/* The fields of version 2.14; later ones get their defaults. */
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
    nccl_comm *comm; /* NULL: not open, or aborted */
    int users;       /* open calls without their close */
    bm_device_comm_watch watch;
    bool begun;
};
typedef struct bm_cuda_device_comm bm_cuda_device_comm;

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

/* A number for the device's place on the PCI bus. */
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

static bm_status comm_load(bm_backend *be, int64_t *device)
{
    bm_cuda *cuda = bm_cuda_of(be);
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    bm_cuda_device_comm *m = cuda->device_comm;

    if (library == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "%s", dlerror());
    if (m == NULL)
        m = cuda->device_comm = calloc(1, sizeof *m);
    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a communicator");
    BM_TRY(find_all(library, &m->nccl));
    return place(cuda->device, device);
}

static bm_status check(const bm_cuda_device_comm *m, nccl_result result,
                       const char *what)
{
    if (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS)
        return BM_OK;
    return BM_FAIL(BM_ERR_DEVICE, "NCCL: %.*s: %s", (int)strcspn(what, "("),
                   what, m->nccl.GetErrorString(result));
}

static bm_status comm_make_id(bm_backend *be, bm_device_comm_id *out)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->device_comm;
    return check(m, m->nccl.GetUniqueId(out), "ncclGetUniqueId");
}

static void abort_comm(bm_cuda_device_comm *m)
{
    if (m->comm != NULL)
        (void)m->nccl.CommAbort(m->comm); /* the failure is reported already */
    m->comm = NULL;
}

/* Fails if NCCL or the watch reports a failure. *working: NCCL has not yet
 * finished the last call. */
static bm_status look(bm_cuda_device_comm *m, bool *working)
{
    nccl_result state = NCCL_SUCCESS;
    bm_status status =
        check(m, m->nccl.CommGetAsyncError(m->comm, &state), "AsyncError");

    if (status == BM_OK)
        status = check(m, state, "another rank or the connection to it");
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
        abort_comm(m);
    return status;
}

static bm_status comm_open(bm_backend *be, const bm_device_comm_id *name,
                           int rank, int size, bm_device_comm_watch watch)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->device_comm;
    nccl_config config = does_not_block;
    bm_status status = BM_OK;

    m->users++;
    if (m->comm != NULL) /* another user has opened it */
        return BM_OK;
    m->watch = watch;
    status = check(
        m, m->nccl.CommInitRankConfig(&m->comm, size, *name, rank, &config),
        "CommInitRankConfig");
    if (status == BM_OK)
        return finish(m);
    m->comm = NULL; /* undefined after a failure */
    return status;
}

static bool busy(cudaStream_t stream)
{
    return cudaStreamQuery(stream) == cudaErrorNotReady;
}

static bm_status comm_wait(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_device_comm *m = cuda->device_comm;
    bm_status status = be->failed, synced = BM_OK;
    bool working = false;

    while (status == BM_OK && m->comm != NULL &&
           (busy(cuda->stream) || busy(cuda->side))) {
        status = look(m, &working);
        (void)sched_yield();
    }
    if (status != BM_OK)
        abort_comm(m);
    synced = bm_sync(be);
    return status != BM_OK ? status : synced;
}

static void comm_close(bm_backend *be)
{
    bm_cuda *cuda = bm_cuda_of(be);
    bm_cuda_device_comm *m = cuda->device_comm;

    if (m == NULL || --m->users > 0)
        return;
    if (be->failed != BM_OK)
        abort_comm(m);
    cudaStreamSynchronize(cuda->stream);
    abort_comm(m);
    free(m);
    cuda->device_comm = NULL;
}

/* A call within a group. */
#define CALL(be, m, call)                                                      \
    do {                                                                       \
        if (check((m), (m)->nccl.call, #call) != BM_OK)                        \
            bm_remember(be, BM_ERR_DEVICE);                                    \
    } while (0)

static void comm_begin(bm_backend *be)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->device_comm;

    if (m->comm == NULL) {
        bm_remember(be,
                    BM_FAIL(BM_ERR_COMM, "the NCCL communicator is closed"));
        return;
    }
    m->begun = true;
    CALL(be, m, GroupStart());
}

/* Returns when the group is on the stream. */
static void comm_end(bm_backend *be)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->device_comm;

    if (!m->begun)
        return;
    m->begun = false;
    CALL(be, m, GroupEnd());
    if (be->failed == BM_OK)
        bm_remember(be, finish(m));
}

static void comm_send(bm_backend *be, const float *x, size_t n, int to)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->device_comm;

    x = bm_cuda_read(be, x, n);
    CALL(be, m, Send(x, n, NCCL_FLOAT, to, m->comm, bm_cuda_of(be)->stream));
}

static void comm_receive(bm_backend *be, float *x, size_t n, int from)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->device_comm;

    x = bm_cuda_write(be, x, n);
    CALL(be, m, Recv(x, n, NCCL_FLOAT, from, m->comm, bm_cuda_of(be)->stream));
}

static void comm_broadcast(bm_backend *be, float *x, size_t n, int root)
{
    bm_cuda_device_comm *m = bm_cuda_of(be)->device_comm;

    x = bm_cuda_change(be, x, n, false).x;
    CALL(be, m,
         Broadcast(x, x, n, NCCL_FLOAT, root, m->comm, bm_cuda_of(be)->stream));
}

static float *comm_floats(bm_backend *be, float *x, size_t n)
{
    return bm_cuda_change(be, x, n, false).x;
}

const bm_device_comm_ops bm_cuda_device_comm_ops = {
    .load = comm_load,
    .make_id = comm_make_id,
    .open = comm_open,
    .wait = comm_wait,
    .floats = comm_floats,
    .close = comm_close,
    .begin = comm_begin,
    .end = comm_end,
    .send = comm_send,
    .receive = comm_receive,
    .broadcast = comm_broadcast,
};
