/*
 * nccl.c - the functions of NCCL that the cuda backend calls, for emulated
 * devices. A group is queued on a stream and sends through MPI when the stream
 * reaches it. As NCCL does, it rejects ranks that share a device, and blocks
 * forever if a rank does not take part, until it is aborted. Communicators are
 * non-blocking: that all ranks have joined, and that a group is on the stream,
 * is known only by polling.
 */
#define _GNU_SOURCE /* RTLD_NOLOAD */
#include "tests/fakes/emulated.h"

#include <mpi.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values of nccl.h. */
enum {
    SUCCESS = 0,
    SYSTEM_ERROR = 2,
    INVALID_ARGUMENT = 4,
    INVALID_USAGE = 5,
    IN_PROGRESS = 7,
    FLOAT = 7,
    MAGIC = (int)0xcafebeef,
};

typedef struct ncclUniqueId {
    char internal[128];
} ncclUniqueId;

typedef struct ncclConfig {
    size_t size;
    unsigned magic, version;
    int blocking;
} ncclConfig;

enum { RANKS = 64 };

typedef struct ncclComm {
    int rank, size;
    int state;              /* a result */
    int device[RANKS], tag; /* of each rank; of this communicator */
    MPI_Request *request;
    int n_requests;
    struct group *late;  /* not yet on its stream */
    atomic_bool aborted; /* read by the thread that runs the stream */
} ncclComm;

typedef enum kind { SEND, RECEIVE, BROADCAST } kind;

typedef struct transfer {
    kind what;
    const void *from;
    void *to;
    int n, peer;
    float *staged; /* what MPI sends or receives, at any time: owned */
} transfer;

enum { MOST = 4096, FIRST_NAME = 2000, NAMES = 10000 };

typedef struct group {
    ncclComm *comm;
    void *stream;
    int n, n_requests;
    transfer of[MOST];
    MPI_Request *request; /* NULL: nothing has been sent */
} group;

static _Thread_local int depth;
static _Thread_local group *open;

int ncclGetUniqueId(ncclUniqueId *out);
int ncclCommInitRankConfig(ncclComm **out, int size, ncclUniqueId name,
                           int rank, ncclConfig *config);
int ncclCommGetAsyncError(ncclComm *comm, int *result);
int ncclCommAbort(ncclComm *comm);
int ncclGroupStart(void);
int ncclGroupEnd(void);
int ncclSend(const void *x, size_t n, int type, int to, ncclComm *comm,
             void *stream);
int ncclRecv(void *x, size_t n, int type, int from, ncclComm *comm,
             void *stream);
int ncclBroadcast(const void *x, void *y, size_t n, int type, int root,
                  ncclComm *comm, void *stream);
const char *ncclGetErrorString(int result);

static int device(void)
{
    int (*get)(int *) = NULL;
    void *f = emulated_symbol("cudaGetDevice");
    int n = -1;

    memcpy(&get, &f, sizeof get);
    return get != NULL && get(&n) == 0 ? n : -1;
}

static int queue(void *stream, bool (*f)(void *), void *self)
{
    int (*until)(void *, bool (*)(void *), void *) = NULL;
    void *symbol = emulated_symbol("bm_emulate_until");

    memcpy(&until, &symbol, sizeof until);
    return until != NULL && until(stream, f, self) == 0 ? SUCCESS
                                                        : SYSTEM_ERROR;
}

int ncclGetUniqueId(ncclUniqueId *out)
{
    static int made;

    memset(out, 0, sizeof *out);
    snprintf(out->internal, sizeof out->internal, "emulated %d", ++made);
    return SUCCESS;
}

static MPI_Request *requests_for(int n)
{
    MPI_Request *all = malloc(((size_t)n + 1) * sizeof(MPI_Request));

    if (all == NULL)
        abort();
    return all;
}

static MPI_Request *next(ncclComm *comm)
{
    return &comm->request[comm->n_requests++];
}

/* Exchanges the device of every rank. The unique id becomes a tag, so that
 * messages of two communicators do not mix. */
int ncclCommInitRankConfig(ncclComm **out, int size, ncclUniqueId name,
                           int rank, ncclConfig *config)
{
    int all = 0, own = 0;
    ncclComm *comm = NULL;

    MPI_Comm_size(MPI_COMM_WORLD, &all);
    MPI_Comm_rank(MPI_COMM_WORLD, &own);
    if (size != all || rank != own || size > RANKS)
        return INVALID_ARGUMENT;
    if (config->magic != (unsigned)MAGIC || config->size < sizeof *config ||
        config->version < 21400 || config->blocking != 0)
        return INVALID_ARGUMENT; /* blocking ones are unused */
    comm = calloc(1, sizeof *comm);
    if (comm == NULL)
        return SYSTEM_ERROR;
    *comm = (ncclComm){.rank = rank, .size = size, .state = IN_PROGRESS};
    comm->request = requests_for(2 * size);
    comm->tag = FIRST_NAME + atoi(name.internal + strlen("emulated ")) % NAMES;
    comm->device[rank] = device();
    for (int r = 0; r < size; r++) {
        if (r == rank)
            continue;
        MPI_Isend(&comm->device[rank], 1, MPI_INT, r, comm->tag, MPI_COMM_WORLD,
                  next(comm));
        MPI_Irecv(&comm->device[r], 1, MPI_INT, r, comm->tag, MPI_COMM_WORLD,
                  next(comm));
    }
    *out = comm;
    return IN_PROGRESS;
}

/* When all ranks have joined. */
static int compare(const ncclComm *comm)
{
    for (int i = 0; i < comm->size; i++)
        for (int j = 0; j < i; j++)
            if (comm->device[i] == comm->device[j])
                return INVALID_USAGE; /* duplicate GPU */
    return SUCCESS;
}

static bool run(void *self);

int ncclCommGetAsyncError(ncclComm *comm, int *result)
{
    int here = 0;
    group *g = comm->late;

    if (comm->state == IN_PROGRESS && g == NULL) {
        MPI_Testall(comm->n_requests, comm->request, &here,
                    MPI_STATUSES_IGNORE);
        if (here)
            comm->state = compare(comm);
    } else if (g != NULL) {
        comm->late = NULL;
        comm->state = queue(g->stream, run, g);
    }
    *result = comm->state;
    return SUCCESS;
}

/* Keeps its memory, which the stream may still read. */
int ncclCommAbort(ncclComm *comm)
{
    for (int i = 0; i < comm->n_requests; i++)
        if (comm->request[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&comm->request[i]);
            MPI_Request_free(&comm->request[i]);
        }
    comm->aborted = true;
    return SUCCESS;
}

static size_t bytes_of(const transfer *t)
{
    return (size_t)t->n * sizeof(float);
}

/* Room in the host's memory, with what is sent: the device's can be touched only
 * while it works. */
static void stage(transfer *t, bool sends)
{
    t->staged = malloc(bytes_of(t) + 1);
    if (t->staged == NULL)
        abort();
    if (sends)
        memcpy(t->staged, t->from, bytes_of(t));
}

static void send_all(group *g)
{
    int n = 0;

    g->request = requests_for(g->n * g->comm->size);
    for (int i = 0; i < g->n; i++) {
        transfer *t = &g->of[i];
        bool sends = t->what == BROADCAST && t->peer == g->comm->rank;

        stage(t, sends || t->what == SEND);
        if (t->what == SEND)
            MPI_Isend(t->staged, t->n, MPI_FLOAT, t->peer, g->comm->tag + NAMES,
                      MPI_COMM_WORLD, &g->request[n++]);
        for (int r = 0; sends && r < g->comm->size; r++)
            if (r != t->peer)
                MPI_Isend(t->staged, t->n, MPI_FLOAT, r, g->comm->tag + NAMES,
                          MPI_COMM_WORLD, &g->request[n++]);
        if (t->what == RECEIVE || (t->what == BROADCAST && !sends))
            MPI_Irecv(t->staged, t->n, MPI_FLOAT, t->peer, g->comm->tag + NAMES,
                      MPI_COMM_WORLD, &g->request[n++]);
    }
    g->n_requests = n;
}

/* Copies what was received, and frees the group. */
static void finish(group *g)
{
    for (int i = 0; i < g->n; i++) {
        transfer *t = &g->of[i];
        bool received = t->what == RECEIVE ||
                        (t->what == BROADCAST && t->peer != g->comm->rank);

        if (received && t->staged != NULL && !g->comm->aborted)
            memcpy(t->to, t->staged, bytes_of(t));
        if (!g->comm->aborted)
            free(t->staged); /* else MPI may still use it */
    }
    free(g->request);
    free(g);
}

/* Called when the stream reaches the group: is it complete? */
static bool run(void *self)
{
    group *g = self;
    int done = 0;

    if (g->request == NULL && !g->comm->aborted)
        send_all(g);
    if (!g->comm->aborted)
        MPI_Testall(g->n_requests, g->request, &done, MPI_STATUSES_IGNORE);
    for (int i = 0; g->request != NULL && g->comm->aborted && i < g->n_requests;
         i++)
        if (g->request[i] != MPI_REQUEST_NULL) {
            MPI_Cancel(&g->request[i]);
            MPI_Request_free(&g->request[i]);
        }
    if (!done && !g->comm->aborted)
        return false;
    finish(g);
    return true;
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
    g->comm->late = g;
    return g->comm->state = IN_PROGRESS;
}

static int add(ncclComm *comm, void *stream, int type, size_t n, transfer t)
{
    if (comm == NULL || comm->state != SUCCESS || type != FLOAT || t.peer < 0 ||
        t.peer >= comm->size || (t.what != BROADCAST && t.peer == comm->rank))
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
        return INVALID_ARGUMENT; /* unused by the backend */
    return add(comm, stream, type, n,
               (transfer){.what = BROADCAST, .from = y, .to = y, .peer = root});
}

const char *ncclGetErrorString(int result)
{
    return result == INVALID_USAGE ? "invalid usage" : "an emulated error";
}
