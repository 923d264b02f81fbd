/* comm_parts.h - what comm.c and messages.c know of a comm; for these files
 * alone. */
#ifndef BM_COMM_COMM_PARTS_H
#define BM_COMM_COMM_PARTS_H

#include "comm/comm.h"

#include <mpi.h>
#include <stdatomic.h>

struct bm_comm {
    MPI_Comm mpi; /* a duplicate: our traffic never meets the caller's */
    int rank, size;
    int *host; /* [size]: the lowest rank on the host of each */
    bool owns_mpi;
    size_t limit;       /* elements in one piece */
    int agreed;         /* the rank whose failure all know, or -1 */
    int64_t agreements; /* so far: the same on all ranks */
    int64_t alarm;      /* that this rank has told, or is telling */
    int64_t heard;      /* of another rank */
    bool takes_devices;
    _Atomic uint64_t sent, shared; /* bytes, with those of twins */
    bm_comm *twin_of;              /* borrowed; NULL: it is none */
    double *table;                 /* [size, 2]: everybody's */

    MPI_Request *queue;
    size_t n_queued, room;
    bm_status failed; /* first failure since the last wait */
};

/* What a function of MPI has returned. */
bm_status bm_mpi_status(int code, const char *what);

#endif
