#include "compute/cpu_isa.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bm_isa sets[] = {
#define X(isa)                                                                 \
    {#isa,                                                                     \
     &bm_loops_##isa,                                                          \
     &bm_product_##isa,                                                        \
     &bm_loss_loops_##isa,                                                     \
     &bm_conv_loops_##isa,                                                     \
     &bm_image_loops_##isa},
    BM_ISAS(X)
#undef X
};

enum { N_SETS = sizeof sets / sizeof sets[0] };

/* How many of them this machine runs: each needs all those before it. */
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
    return sets[runnable() - 1].name;
}

bm_status bm_isa_find(const bm_isa **out)
{
    const char *told = getenv("BMUF_ISA");
    size_t n = runnable(), length = 0;
    char names[64] = "";

    if (told == NULL || told[0] == '\0') {
        *out = &sets[n - 1];
        return BM_OK;
    }
    for (size_t i = 0; i < n; i++) {
        if (strcmp(sets[i].name, told) == 0) {
            *out = &sets[i];
            return BM_OK;
        }
        length += (size_t)snprintf(names + length, sizeof names - length, " %s",
                                   sets[i].name);
    }
    return BM_FAIL(BM_ERR_CONFIG, "BMUF_ISA=%s: this machine runs%s", told,
                   names);
}
