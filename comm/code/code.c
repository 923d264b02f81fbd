#include "comm/code/code.h"

#include <string.h>

static const bm_code_ops *const *const sets[] = {
#define X(isa) bm_codes_##isa,
    BM_ISAS(X)
#undef X
};

bm_code bm_code_find(const char *name, double share)
{
    const bm_code_ops *const *ops = sets[0];
    size_t isa = 0;

    if (bm_isa_choose(&isa) ==
        BM_OK) /* the backend reports an invalid BMUF_ISA */
        ops = sets[isa];
    for (; *ops != NULL; ops++)
        if (strcmp((*ops)->name, name) == 0)
            return (bm_code){*ops, share};
    return (bm_code){0};
}
