/* comms.h - communicators that pretend: short messages, several hosts, an MPI
 * library that accepts device memory. */
#ifndef BM_TESTS_SUPPORT_COMMS_H
#define BM_TESTS_SUPPORT_COMMS_H

#include "comm/comm_parts.h"

/* Cuts transfers into messages of at most n elements. */
static inline void limit_messages(bm_comm *comm, size_t n)
{
    comm->limit = n;
}

/* The first `ranks` ranks are on one host, the next ones on another, .. */
static inline void pretend_hosts(bm_comm *comm, int ranks)
{
    for (int r = 0; r < comm->size; r++)
        comm->host[r] = r / ranks * ranks;
}

/* For devices whose memory is the host's. */
static inline void pretend_cuda_aware(bm_comm *comm, bool aware)
{
    comm->takes_devices = aware;
}

#endif
