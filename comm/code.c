#include "comm/code.h"

#include <string.h>

static const bm_code_ops *const codes[] = {
#define X(name) &bm_code_##name,
    BM_CODES(X)
#undef X
};

bm_code bm_code_find(const char *name, double share)
{
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (strcmp(codes[i]->name, name) == 0)
            return (bm_code){codes[i], share};
    return (bm_code){0};
}
