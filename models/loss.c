#include "models/loss.h"

#include <string.h>

static const bm_loss_ops *const losses[] = {
#define X(name) &bm_loss_##name,
    BM_LOSSES(X)
#undef X
};

const bm_loss_ops *bm_loss_find(const char *name)
{
    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        if (strcmp(losses[i]->name, name) == 0)
            return losses[i];
    return NULL;
}
