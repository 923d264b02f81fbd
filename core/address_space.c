#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "core/address_space.h"

#include <stddef.h>
#include <sys/mman.h>

bm_status bm_address_space_check(const char *who, int mb)
{
    size_t size = (size_t)mb << 20;
    void *room = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (room == MAP_FAILED)
        return BM_FAIL(BM_ERR_MEMORY,
                       "%s needs %d MB of address space; raise the limit "
                       "(ulimit -v)",
                       who, mb);
    munmap(room, size);
    return BM_OK;
}
