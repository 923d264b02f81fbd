/* memory.h - how much memory the machine has, and whether it is enough. */
#ifndef BM_CORE_MEMORY_H
#define BM_CORE_MEMORY_H

#include "core/status.h"

/* In bytes; 0: unknown or none. */
typedef struct bm_memory {
    double total, available, swap; /* available: without swap; swap: free */
    double limit;                  /* of the container */
} bm_memory;

bm_memory bm_memory_read(void);

/* Bytes that programs can still have on this machine; 0: unknown. */
double bm_memory_room(void);

/* Fails with BM_ERR_MEMORY if `what`, in the plural, need more bytes than there
 * are: the system would end the process while it writes to them. */
BM_CHECKED bm_status bm_memory_check(double bytes, const char *what,
                                     const char *remedy);

/* Fails with BM_ERR_MEMORY and a message unless `who` could have `mb` MB of
 * address space now, which a limit (ulimit -v) may leave too small for libraries
 * that do not check. */
BM_CHECKED bm_status bm_address_space_check(const char *who, int mb);

#endif
