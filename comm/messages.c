/*
 * messages.c - queued transfers, reductions, messages and alarms.
 */
#include "comm/comm_parts.h"

#include "core/grow.h"
#include "core/trace/span.h"

#include <time.h>

enum { VECTORS, ALARM, MESSAGES }; /* tags; the last one: of channel 0 */

/* Makes room for one more request. False after a failure. */
static bool ready(bm_comm *comm)
{
    if (comm->failed == BM_OK)
        comm->failed = bm_grow(&comm->queue, comm->n_queued, &comm->room,
                               sizeof(MPI_Request));
    return comm->failed == BM_OK;
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

/* How many of n elements the next message holds. */
static int fitting(const bm_comm *comm, size_t n)
{
    return (int)(n < comm->limit ? n : comm->limit);
}

static void send(bm_comm *comm, const char *x, size_t n, MPI_Datatype type,
                 size_t width, int to)
{
    bm_comm_count(comm, (bm_traffic){.sent = n * width});
    for (int k = 0; n > 0 && ready(comm);
         x += (size_t)k * width, n -= (size_t)k) {
        k = fitting(comm, n);
        note(comm, MPI_Isend(x, k, type, to, VECTORS, comm->mpi, next(comm)),
             "MPI_Isend");
    }
}

static void receive(bm_comm *comm, char *x, size_t n, MPI_Datatype type,
                    size_t width, int from)
{
    for (int k = 0; n > 0 && ready(comm);
         x += (size_t)k * width, n -= (size_t)k) {
        k = fitting(comm, n);
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

void bm_comm_signal(bm_comm *comm, int to)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (ready(comm))
        note(comm,
             MPI_Isend(NULL, 0, MPI_BYTE, to, VECTORS, comm->mpi, next(comm)),
             "MPI_Isend");
}

void bm_comm_await(bm_comm *comm, int from)
{
    if (ready(comm))
        note(comm,
             MPI_Irecv(NULL, 0, MPI_BYTE, from, VECTORS, comm->mpi, next(comm)),
             "MPI_Irecv");
}

void bm_comm_broadcast(bm_comm *comm, float *x, size_t n, int root)
{
    size_t others = (size_t)(comm->size - 1);

    if (comm->rank == root)
        bm_comm_count(comm, (bm_traffic){.sent = others * n * sizeof *x});
    for (int k = 0; n > 0 && ready(comm); x += k, n -= (size_t)k) {
        k = fitting(comm, n);
        note(comm, MPI_Ibcast(x, k, MPI_FLOAT, root, comm->mpi, next(comm)),
             "MPI_Ibcast");
    }
}

enum { FEW = 20 }; /* polls between two moments of sleep */

/* *done <- whether n requests that were started have completed. */
static bm_status try_often(MPI_Request *requests, int n, int polls,
                           const char *what, int *done)
{
    *done = 0;
    for (int i = 0; i < polls && !*done; i++)
        BM_TRY(bm_mpi_status(
            MPI_Testall(n, requests, done, MPI_STATUSES_IGNORE), what));
    return BM_OK;
}

static bm_status sleep_until_done(MPI_Request *requests, int n,
                                  const char *what)
{
    static const struct timespec a_moment = {0, 50000};
    int done = 0;

    while (!done) {
        nanosleep(&a_moment, NULL);
        BM_TRY(try_often(requests, n, FEW, what, &done));
    }
    return BM_OK;
}

/*
 * Completes n requests that were started. A rank that has polled for long sleeps
 * for a moment after every few polls, so that the rank that it waits for finds a
 * core. MPI's own waits yield instead: docs/decisions/19-waits.md. From then on
 * it is in the span "wait", so that the watchdog does not take it for stuck. On a
 * twin that would look like progress of a computing thread that makes none.
 */
static bm_status complete(const bm_comm *comm, MPI_Request *requests, int n,
                          const char *what)
{
    int done = 0;
    bm_span span;
    bm_status status = BM_OK;

    BM_TRY(try_often(requests, n, comm->polls > FEW ? comm->polls : FEW, what,
                     &done));
    if (done)
        return BM_OK;
    if (comm->twin_of != NULL)
        return sleep_until_done(requests, n, what);
    span = bm_span_begin("wait");
    status = sleep_until_done(requests, n, what);
    (void)bm_span_end(span);
    return status;
}

/* The analyzer does not know that MPI_Testall completes requests. */
/* NOLINTBEGIN(clang-analyzer-optin.mpi.MPI-Checker) */

/* The same for one request of a call that may have failed. */
static bm_status complete_one(const bm_comm *comm, int code,
                              MPI_Request request, const char *what)
{
    BM_TRY(bm_mpi_status(code, what));
    return complete(comm, &request, 1, what);
}

bm_status bm_comm_wait(bm_comm *comm)
{
    bm_status failed = comm->failed, status = BM_OK;
    size_t n = comm->n_queued;

    comm->failed = BM_OK;
    comm->n_queued = 0;
    if (failed != BM_OK)
        return failed; /* other ranks would wait for ever */
    status = complete(comm, comm->queue, (int)n, "MPI_Testall");
    atomic_thread_fence(memory_order_seq_cst); /* see bm_comm_signal */
    return status;
}

bm_status bm_comm_barrier(bm_comm *comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    bm_status status = BM_OK;

    atomic_thread_fence(memory_order_seq_cst);
    code = MPI_Ibarrier(comm->mpi, &request);
    status = complete_one(comm, code, request, "MPI_Ibarrier");
    atomic_thread_fence(memory_order_seq_cst);
    return status;
}

/* One message of a reduction. */
static bm_status reduce_part(bm_comm *comm, char *x, int n, MPI_Datatype type,
                             MPI_Op op)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code =
        MPI_Iallreduce(MPI_IN_PLACE, x, n, type, op, comm->mpi, &request);

    return complete_one(comm, code, request, "MPI_Iallreduce");
}

static bm_status allreduce(bm_comm *comm, char *x, size_t n, MPI_Datatype type,
                           size_t width, MPI_Op op)
{
    atomic_thread_fence(memory_order_seq_cst); /* as in bm_comm_barrier */
    for (int k = 0; n > 0; x += (size_t)k * width, n -= (size_t)k) {
        k = fitting(comm, n);
        BM_TRY(reduce_part(comm, x, k, type, op));
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

static bm_status broadcast_part(const bm_comm *comm, char *x, int n, int root)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_Ibcast(x, n, MPI_BYTE, root, comm->mpi, &request);

    return complete_one(comm, code, request, "MPI_Ibcast");
}

bm_status bm_comm_broadcast_bytes(bm_comm *comm, void *x, size_t size, int root)
{
    char *at = x;

    for (int k = 0; size > 0; at += k, size -= (size_t)k) {
        k = fitting(comm, size);
        BM_TRY(broadcast_part(comm, at, k, root));
    }
    return BM_OK;
}

enum { WORDS = 4 }; /* of a message */

static bm_status send_part(const bm_comm *comm, const void *x, int n,
                           MPI_Datatype type, int to, int channel)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code =
        MPI_Isend(x, n, type, to, MESSAGES + channel, comm->mpi, &request);

    return complete_one(comm, code, request, "MPI_Isend");
}

static bm_status receive_part(const bm_comm *comm, void *x, int n,
                              MPI_Datatype type, int from, int channel)
{
    MPI_Request request = MPI_REQUEST_NULL;
    int code =
        MPI_Irecv(x, n, type, from, MESSAGES + channel, comm->mpi, &request);

    return complete_one(comm, code, request, "MPI_Irecv");
}

bm_status bm_comm_send_message(bm_comm *comm, int to, int channel,
                               const bm_message *message, const float *x,
                               size_t n)
{
    if (to != comm->rank)
        bm_comm_count(comm, (bm_traffic){.sent = n * sizeof *x});
    BM_TRY(send_part(comm, message->word, WORDS, MPI_DOUBLE, to, channel));
    for (int k = 0; n > 0; x += k, n -= (size_t)k) {
        k = fitting(comm, n);
        BM_TRY(send_part(comm, x, k, MPI_FLOAT, to, channel));
    }
    return BM_OK;
}

bm_status bm_comm_receive_message(bm_comm *comm, int channel,
                                  bm_message *message)
{
    static const struct timespec a_moment = {0, 50000};
    MPI_Status from;
    int there = 0;

    for (;;) {
        BM_TRY(bm_mpi_status(MPI_Iprobe(MPI_ANY_SOURCE, MESSAGES + channel,
                                        comm->mpi, &there, &from),
                             "MPI_Iprobe"));
        if (there)
            break;
        nanosleep(&a_moment, NULL);
    }
    message->from = from.MPI_SOURCE;
    return receive_part(comm, message->word, WORDS, MPI_DOUBLE, message->from,
                        channel);
}

bm_status bm_comm_receive_message_floats(bm_comm *comm, int from, int channel,
                                         float *x, size_t n)
{
    for (int k = 0; n > 0; x += k, n -= (size_t)k) {
        k = fitting(comm, n);
        BM_TRY(receive_part(comm, x, k, MPI_FLOAT, from, channel));
    }
    return BM_OK;
}

/* NOLINTEND(clang-analyzer-optin.mpi.MPI-Checker) */

/* An alarm names an agreement by its number, so that a late one is ignored. */
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
