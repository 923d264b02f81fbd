/*
 * nccl.c - the part of NCCL that the cuda backend calls, for emulated devices:
 * a group is work on a stream like any other, which sends through MPI when the
 * stream gets there. As NCCL does, it refuses ranks that share a device, and
 * waits for ever where not all take part.
 */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include <dlfcn.h>
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* nccl.h's, by value. */
enum {
    SUCCESS = 0,
    SYSTEM_ERROR = 2,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE = 5,
    FLOAT = 7,
};

typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;

typedef struct ncclComm {
    int rank, size;
} ncclComm;

typedef enum kind { SEND, RECEIVE, BROADCAST } kind;

typedef struct transfer {
    kind what;
    const void *from;
    void *to;
    int n, peer;
} transfer;

enum { MOST = 4096, TAG = 1234 };

typedef struct group {
    const ncclComm *comm;
    void *stream;
    int n;
    transfer of[MOST];
} group;

static int depth;
static group *open;

int ncclGetUniqueId(ncclUniqueId *out);
int ncclCommInitRank(ncclComm **out, int size, ncclUniqueId name, int rank);
int ncclCommDestroy(ncclComm *comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *x, size_t n, int type, int to, ncclComm *comm,
             void *stream);
int ncclRecv(void *x, size_t n, int type, int from, ncclComm *comm,
             void *stream);
int ncclBroadcast(const void *x, void *y, size_t n, int type, int root,
                  ncclComm *comm, void *stream);
const char *ncclGetErrorString(int result);

/* A function of the emulated runtime, which the plugin keeps to itself. */
static void *runtime(const char *name)
{
    char path[4096];
    void *plugin = NULL;

    snprintf(path, sizeof path, "%s/libbmuf_cuda.so", getenv("BMUF_PLUGINS"));
    plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return plugin != NULL ? dlsym(plugin, name) : NULL;
}

static int device(void)
{
    int (*get)(int *) = NULL;
    void *f = runtime("cudaGetDevice");
    int n = -1;

    memcpy(&get, &f, sizeof get);
    return get != NULL && get(&n) == 0 ? n : -1;
}

static int queue(void *stream, void (*f)(void *), void *self)
{
    int (*launch)(void *, void (*)(void *), void *) = NULL;
    void *symbol = runtime("cudaLaunchHostFunc");

    memcpy(&launch, &symbol, sizeof launch);
    return launch != NULL && launch(stream, f, self) == 0 ? SUCCESS
                                                          : SYSTEM_ERROR;
}

int ncclGetUniqueId(ncclUniqueId *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->internal, sizeof out->internal, "emulated %d", rand());
    return SUCCESS;
}

int ncclCommInitRank(ncclComm **out, int size, ncclUniqueId name, int rank)
{
    ncclUniqueId first = name;
    int all = 0, own = 0, mine = device(), differs = 0, used[64] = {0};

    MPI_Comm_size(MPI_COMM_WORLD, &all);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    if (size != all || rank != own || size > 64)
        return INVALID_ARGUMENT;
    MPI_Bcast(&first, (int)sizeof first, MPI_BYTE, 0, MPI_COMM_WORLD);
    differs = memcmp(&first, &name, sizeof name) != 0;
    MPI_Allreduce(MPI_IN_PLACE, &differs, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    MPI_Allgather(&mine, 1, MPI_INT, used, 1, MPI_INT, MPI_COMM_WORLD);
    for (int i = 0; i < size; i++)
        for (int j = 0; j < i; j++)
            if (used[i] == used[j])
                return INVALID_USAGE; /* duplicate GPU */
    if (differs)
        return INVALID_ARGUMENT;
    *out = calloc(1, sizeof **out);
    if (*out == NULL)
        return SYSTEM_ERROR;
    **out = (ncclComm){rank, size};
    return SUCCESS;
}

int ncclCommDestroy(ncclComm *comm)
{
    free(comm);
    return SUCCESS;
}

static void run(void *self)
{
    group *g = self;
    MPI_Request *requests = NULL;
    int n = 0;

    requests = malloc(((size_t)g->n * (size_t)g->comm->size + 1) *
                      sizeof(MPI_Request));
    if (requests == NULL)
        abort();
    for (int i = 0; i < g->n; i++) {
        const transfer *t = &g->of[i];
        bool sends = t->what == BROADCAST && t->peer == g->comm->rank;

        if (t->what == SEND)
            MPI_Isend(t->from, t->n, MPI_FLOAT, t->peer, TAG, MPI_COMM_WORLD,
                      &requests[n++]);
        for (int r = 0; sends && r < g->comm->size; r++)
            if (r != t->peer)
                MPI_Isend(t->from, t->n, MPI_FLOAT, r, TAG, MPI_COMM_WORLD,
                          &requests[n++]);
        if (t->what == RECEIVE || (t->what == BROADCAST && !sends))
            MPI_Irecv(t->to, t->n, MPI_FLOAT, t->peer, TAG, MPI_COMM_WORLD,
                      &requests[n++]);
    }
    MPI_Waitall(n, requests, MPI_STATUSES_IGNORE);
    free(requests);
    free(g);
}

int ncclGroupStart(void)
{
    depth++;
    return SUCCESS;
}

int ncclGroupEnd(void)
{
    group *g = open;

    if (depth == 0)
        return INVALID_USAGE;
    if (--depth > 0 || g == NULL)
        return SUCCESS;
    open = NULL;
    return queue(g->stream, run, g);
}

static int add(ncclComm *comm, void *stream, int type, size_t n, transfer t)
{
    if (comm == NULL || type != FLOAT || t.peer < 0 || t.peer >= comm->size ||
        (t.what != BROADCAST && t.peer == comm->rank))
        return INVALID_ARGUMENT;
    ncclGroupStart();
    if (open == NULL)
        open = calloc(1, sizeof *open);
    if (open == NULL || open->n == MOST ||
        (open->n > 0 && open->stream != stream))
        return SYSTEM_ERROR;
    t.n = (int)n;
    open->comm = comm;
    open->stream = stream;
    open->of[open->n++] = t;
    return ncclGroupEnd();
}

int ncclSend(const void *x, size_t n, int type, int to, ncclComm *comm,
             void *stream)
{
    return add(comm, stream, type, n,
               (transfer){.what = SEND, .from = x, .peer = to});
}

int ncclRecv(void *x, size_t n, int type, int from, ncclComm *comm,
             void *stream)
{
    return add(comm, stream, type, n,
               (transfer){.what = RECEIVE, .to = x, .peer = from});
}

int ncclBroadcast(const void *x, void *y, size_t n, int type, int root,
                  ncclComm *comm, void *stream)
{
    if (x != y)
        return INVALID_ARGUMENT; /* nobody here asks for it */
    return add(comm, stream, type, n,
               (transfer){.what = BROADCAST, .from = y, .to = y, .peer = root});
}

const char *ncclGetErrorString(int result)
{
    return result == INVALID_USAGE ? "invalid usage" : "an emulated error";
}
