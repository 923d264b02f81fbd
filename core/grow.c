#include "core/grow.h"

#include "core/size.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST = 16 };

bm_status bm_grow(void *list, size_t n, size_t *capacity, size_t size)
{
    size_t more = bm_size_add(bm_size_mul(2, *capacity), FIRST), bytes = 0;
    void *grown = NULL;

    if (n < *capacity)
        return BM_OK;
    if (more <= n)
        more = bm_size_add(n, 1);
    bytes = bm_size_mul(more, size);
    memcpy(&grown, list, sizeof grown);
    grown = bytes <= PTRDIFF_MAX ? realloc(grown, bytes) : NULL;
    if (grown == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a list of %zu", more);
    memcpy(list, &grown, sizeof grown);
    *capacity = more;
    return BM_OK;
}
