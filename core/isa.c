#include "core/isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define X(isa) #isa,
    BM_ISAS(X)
#undef X
};

enum { N_SETS = sizeof names / sizeof names[0] };

/* How many of the sets this machine can run. */
static size_t runnable(void)
{
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma"))
        return 1;
    if (!__builtin_cpu_supports("avx512f") ||
        !__builtin_cpu_supports("avx512dq") ||
        !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl"))
        return 2;
#endif
    return N_SETS;
}

const char *bm_isa_best(void)
{
    return names[runnable() - 1];
}

bm_status bm_isa_choose(size_t *out)
{
    const char *wanted = getenv("BMUF_ISA");
    size_t n = runnable(), length = 0;
    char list[64] = "";

    if (wanted == NULL || wanted[0] == '\0') {
        *out = n - 1;
        return BM_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(names[i], wanted) == 0) {
            *out = i;
            return BM_OK;
        }
        length += (size_t)snprintf(list + length, sizeof list - length, " %s",
                                   names[i]);
    }
    return BM_FAIL(BM_ERR_CONFIG,
                   "BMUF_ISA=%s is invalid: this machine can run%s", wanted,
                   list);
}
