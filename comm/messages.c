/*
 * messages.c - what goes from rank to rank: transfers that are queued, sums,
 * letters, and alarms.
 */
#include "comm/comm_parts.h"

#include <stdlib.h>
#include <time.h>

enum { VECTORS, ALARM, LETTERS }; /* tags; the last one is of box 0 */

/* Room for one more request, while nothing has failed. */
static bool ready(bm_comm *comm)
{
    size_t room = comm->room ? 2 * comm->room : 64;
    MPI_Request *grown = NULL;

    if (comm->failed != BM_OK || comm->n_queued < comm->room)
        return comm->failed == BM_OK;
    grown = realloc(comm->queue, room * sizeof(MPI_Request));
    if (grown == NULL) {
        comm->failed = BM_FAIL(BM_ERR_MEMORY, "no memory to queue a transfer");
        return false;
    }
    comm->queue = grown;
    comm->room = room;
    return true;
}

static MPI_Request *next(bm_comm *comm)
{
    return &comm->queue[comm->n_queued++];
}

static void note(bm_comm *comm, int code, const char *what)
{
    if (code != MPI_SUCCESS)
        comm->failed = bm_mpi_status(code, what);
}

/* How many of n elements go in the next piece. */
static int piece(const bm_comm *comm, size_t n)
{
    return (int)(n < comm->limit ? n : comm->limit);
}

static void send(bm_comm *comm, const char *x, size_t n, MPI_Datatype type,
                 size_t width, int to)
{
    bm_comm_count(comm, (bm_traffic){.sent = n * width});
    for (int k = 0; n > 0 && ready(comm);
         x += (size_t)k * width, n -= (size_t)k) {
        k = piece(comm, n);
        note(comm, MPI_Isend(x, k, type, to, VECTORS, comm->mpi, next(comm)),
             "MPI_Isend");
    }
}

static void receive(bm_comm *comm, char *x, size_t n, MPI_Datatype type,
                    size_t width, int from)
{
    for (int k = 0; n > 0 && ready(comm);
         x += (size_t)k * width, n -= (size_t)k) {
        k = piece(comm, n);
        note(comm, MPI_Irecv(x, k, type, from, VECTORS, comm->mpi, next(comm)),
             "MPI_Irecv");
    }
}

void bm_comm_send(bm_comm *comm, const float *x, size_t n, int to)
{
    send(comm, (const char *)x, n, MPI_FLOAT, sizeof *x, to);
}

void bm_comm_receive(bm_comm *comm, float *x, size_t n, int from)
{
    receive(comm, (char *)x, n, MPI_FLOAT, sizeof *x, from);
}

void bm_comm_send_ints(bm_comm *comm, const int64_t *x, size_t n, int to)
{
    send(comm, (const char *)x, n, MPI_INT64_T, sizeof *x, to);
}

void bm_comm_receive_ints(bm_comm *comm, int64_t *x, size_t n, int from)
{
    receive(comm, (char *)x, n, MPI_INT64_T, sizeof *x, from);
}

void bm_comm_send_bytes(bm_comm *comm, const void *x, size_t n, int to)
{
    send(comm, x, n, MPI_BYTE, 1, to);
}

void bm_comm_receive_bytes(bm_comm *comm, void *x, size_t n, int from)
{
    receive(comm, x, n, MPI_BYTE, 1, from);
}

void bm_comm_broadcast(bm_comm *comm, float *x, size_t n, int root)
{
    size_t others = (size_t)(comm->size - 1);

    if (comm->rank == root)
        bm_comm_count(comm, (bm_traffic){.sent = others * n * sizeof *x});
    for (int k = 0; n > 0 && ready(comm); x += k, n -= (size_t)k) {
        k = piece(comm, n);
        note(comm, MPI_Ibcast(x, k, MPI_FLOAT, root, comm->mpi, next(comm)),
             "MPI_Ibcast");
    }
}

bm_status bm_comm_wait(bm_comm *comm)
{
    bm_status failed = comm->failed;
    size_t n = comm->n_queued;

    comm->failed = BM_OK;
    comm->n_queued = 0;
    if (failed != BM_OK)
        return failed; /* the other ranks will never be met: do not wait */
    return bm_mpi_status(MPI_Waitall((int)n, comm->queue, MPI_STATUSES_IGNORE),
                         "MPI_Waitall");
}

bm_status bm_comm_meet(bm_comm *comm)
{
    bm_status status = BM_OK;

    atomic_thread_fence(memory_order_seq_cst);
    status = bm_mpi_status(MPI_Barrier(comm->mpi), "MPI_Barrier");
    atomic_thread_fence(memory_order_seq_cst);
    return status;
}

static bm_status allreduce(bm_comm *comm, char *x, size_t n, MPI_Datatype type,
                           size_t width, MPI_Op op)
{
    atomic_thread_fence(memory_order_seq_cst); /* as in bm_comm_meet */
    for (int k = 0; n > 0; x += (size_t)k * width, n -= (size_t)k) {
        k = piece(comm, n);
        BM_TRY(bm_mpi_status(
            MPI_Allreduce(MPI_IN_PLACE, x, k, type, op, comm->mpi),
            "MPI_Allreduce"));
    }
    atomic_thread_fence(memory_order_seq_cst);
    return BM_OK;
}

bm_status bm_comm_sum(bm_comm *comm, double *x, size_t n)
{
    return allreduce(comm, (char *)x, n, MPI_DOUBLE, sizeof *x, MPI_SUM);
}

bm_status bm_comm_sum_floats(bm_comm *comm, float *x, size_t n)
{
    size_t size = (size_t)comm->size;

    bm_comm_count(comm,
                  (bm_traffic){.sent = 2 * (size - 1) * n * sizeof *x / size});
    return allreduce(comm, (char *)x, n, MPI_FLOAT, sizeof *x, MPI_SUM);
}

bm_status bm_comm_sum_ints(bm_comm *comm, int64_t *x, size_t n)
{
    return allreduce(comm, (char *)x, n, MPI_INT64_T, sizeof *x, MPI_SUM);
}

bm_status bm_comm_max(bm_comm *comm, int *x, size_t n)
{
    return allreduce(comm, (char *)x, n, MPI_INT, sizeof *x, MPI_MAX);
}

bm_status bm_comm_broadcast_bytes(bm_comm *comm, void *x, size_t size, int root)
{
    char *at = x;

    for (int k = 0; size > 0; at += k, size -= (size_t)k) {
        k = piece(comm, size);
        BM_TRY(bm_mpi_status(MPI_Bcast(at, k, MPI_BYTE, root, comm->mpi),
                             "MPI_Bcast"));
    }
    return BM_OK;
}

enum { WORDS = 4 }; /* of a letter */

bm_status bm_comm_send_message(bm_comm *comm, int to, int box,
                               const bm_message *letter, const float *x,
                               size_t n)
{
    if (to != comm->rank)
        bm_comm_count(comm, (bm_traffic){.sent = n * sizeof *x});
    BM_TRY(bm_mpi_status(
        MPI_Send(letter->word, WORDS, MPI_DOUBLE, to, LETTERS + box, comm->mpi),
        "MPI_Send"));
    for (int k = 0; n > 0; x += k, n -= (size_t)k) {
        k = piece(comm, n);
        BM_TRY(bm_mpi_status(
            MPI_Send(x, k, MPI_FLOAT, to, LETTERS + box, comm->mpi),
            "MPI_Send"));
    }
    return BM_OK;
}

bm_status bm_comm_receive_message(bm_comm *comm, int box, bm_message *letter)
{
    static const struct timespec a_moment = {0, 50000};
    MPI_Status from;

    for (int there = 0; !there; nanosleep(&a_moment, NULL))
        BM_TRY(bm_mpi_status(
            MPI_Iprobe(MPI_ANY_SOURCE, LETTERS + box, comm->mpi, &there, &from),
            "MPI_Iprobe"));
    letter->from = from.MPI_SOURCE;
    return bm_mpi_status(MPI_Recv(letter->word, WORDS, MPI_DOUBLE, letter->from,
                                  LETTERS + box, comm->mpi, MPI_STATUS_IGNORE),
                         "MPI_Recv");
}

bm_status bm_comm_receive_message_floats(bm_comm *comm, int from, int box,
                                         float *x, size_t n)
{
    for (int k = 0; n > 0; x += k, n -= (size_t)k) {
        k = piece(comm, n);
        BM_TRY(bm_mpi_status(MPI_Recv(x, k, MPI_FLOAT, from, LETTERS + box,
                                      comm->mpi, MPI_STATUS_IGNORE),
                             "MPI_Recv"));
    }
    return BM_OK;
}

/* An alarm is about an agreement, by its number: one that comes late is about
 * none any more. */
void bm_comm_alarm(bm_comm *comm)
{
    comm->alarm = comm->agreements;
    for (int r = 0; r < comm->size; r++)
        if (r != comm->rank && ready(comm))
            note(comm,
                 MPI_Isend(&comm->alarm, 1, MPI_INT64_T, r, ALARM, comm->mpi,
                           next(comm)),
                 "MPI_Isend");
}

bool bm_comm_alarmed(bm_comm *comm)
{
    int waits = 0;
    MPI_Status from;

    while (MPI_Iprobe(MPI_ANY_SOURCE, ALARM, comm->mpi, &waits, &from) ==
               MPI_SUCCESS &&
           waits) {
        int64_t number = -1;

        if (MPI_Recv(&number, 1, MPI_INT64_T, from.MPI_SOURCE, ALARM, comm->mpi,
                     MPI_STATUS_IGNORE) != MPI_SUCCESS)
            break;
        comm->heard = number > comm->heard ? number : comm->heard;
    }
    return comm->heard == comm->agreements;
}
