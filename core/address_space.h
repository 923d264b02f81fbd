/* address_space.h - room in the address space of a process, which a limit
 * (ulimit -v) may leave too small for libraries that do not check. */
#ifndef BM_CORE_ADDRESS_SPACE_H
#define BM_CORE_ADDRESS_SPACE_H

#include "core/status.h"

/* Fails with BM_ERR_MEMORY and a message unless `who` could have `mb` MB now. */
BM_CHECKED bm_status bm_address_space_check(const char *who, int mb);

#endif
