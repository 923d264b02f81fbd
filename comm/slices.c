#include "comm/slices.h"

#include <stdbool.h>
#include <string.h>

bm_status bm_slices_cut(size_t n, int size, const char *coordinator,
                        size_t *start)
{
    size_t chunks = (n + BM_SUM_CHUNK - 1) / BM_SUM_CHUNK;
    bool root = strcmp(coordinator, "root") == 0;

    if (!root && strcmp(coordinator, "sharded") != 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "unknown coordinator '%s'; use sharded or root",
                       coordinator);
    for (int r = 0; r <= size; r++) {
        size_t c = chunks * (size_t)r / (size_t)size;
        if (root)
            c = r == 0 ? 0 : chunks;
        start[r] = c < chunks ? c * BM_SUM_CHUNK : n;
    }
    return BM_OK;
}
