/* agreed_alloc.h - the first allocation of something that ranks open together:
 * a rank that fails alone must not leave the others in a collective. */
#ifndef BM_COMM_AGREED_ALLOC_H
#define BM_COMM_AGREED_ALLOC_H

#include "comm/comm.h"

#include <stdlib.h>

/* Collective. *out <- n zeroed bytes; free(). If there is no memory on one rank,
 * all fail with BM_ERR_MEMORY. */
static inline BM_CHECKED bm_status bm_agreed_alloc(bm_comm *comm, size_t n,
                                                   void **out)
{
    void *memory = calloc(1, n);
    bm_status status = BM_OK;

    if (memory == NULL)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes", n);
    status = bm_comm_agree(comm, status);
    if (status == BM_OK)
        *out = memory;
    else
        free(memory);
    return status;
}

#endif
