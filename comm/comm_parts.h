/* comm_parts.h - the struct behind bm_comm, for comm.c and messages.c. */
#ifndef BM_COMM_COMM_PARTS_H
#define BM_COMM_COMM_PARTS_H

#include "comm/comm.h"

#include <mpi.h>
#include <stdatomic.h>

struct bm_comm {
    MPI_Comm mpi; /* a duplicate: its messages never match the caller's */
    int rank, size;
    int *host; /* [size]: the lowest rank on the host of each */
    bool owns_mpi;
    size_t limit;       /* elements in one message */
    int agreed;         /* the rank whose failure was agreed, or -1 */
    int64_t agreements; /* so far: the same on all ranks */
    int64_t alarm;      /* that this rank sends */
    int64_t heard;      /* received last */
    bool takes_devices;
    _Atomic uint64_t sent, shared; /* bytes, with those of twins */
    bm_comm *twin_of;              /* borrowed; NULL: not a twin */
    double *table;                 /* [size, 2]: of all ranks */

    MPI_Request *queue;
    size_t n_queued, room;
    bm_status failed; /* first failure since the last wait */
    int polls;        /* of a wait before it sleeps between polls */
    bool patient;     /* its traffic is not added to that of twin_of */
};

/* For tests. Collective over all processes. Opens a job of the first `ranks` of
 * them; each of the others gets a job of one. */
BM_CHECKED bm_status bm_comm_open_first(bm_comm **out, int ranks);

/* BM_OK, or BM_ERR_COMM with the text of an MPI error code. */
bm_status bm_mpi_status(int code, const char *what);

#endif
