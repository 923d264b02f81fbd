#include "sgd/update.h"

#include "core/text/words.h"

#include <string.h>

const bm_update_ops *const bm_updates[] = {
#define X(name) &bm_update_##name,
    BM_UPDATES(X)
#undef X
        NULL};

const bm_update_ops *bm_update_of(const bm_sgd_settings *settings)
{
    for (size_t i = 0; settings->update != NULL && bm_updates[i] != NULL; i++)
        if (strcmp(bm_updates[i]->name, settings->update) == 0)
            return bm_updates[i];
    return bm_updates[0];
}

bool bm_update_uses(const bm_update_ops *ops, const char *setting)
{
    return bm_is_word_of(setting, ops->uses);
}

static bool is_name(const char *name, size_t n, const char *known)
{
    return known != NULL && strlen(known) == n && strncmp(name, known, n) == 0;
}

bool bm_update_is_state(const char *name, size_t n)
{
    for (size_t i = 0; bm_updates[i] != NULL; i++) {
        const bm_update_ops *ops = bm_updates[i];

        for (size_t k = 0; ops->states[k] != NULL; k++)
            if (is_name(name, n, ops->states[k]))
                return true;
        if (is_name(name, n, ops->count))
            return true;
    }
    return false;
}

size_t bm_update_vectors(const bm_update_ops *ops)
{
    size_t n = 0;

    while (ops->states[n] != NULL)
        n++;
    BM_ASSERT(n <= BM_SGD_VECTORS);
    return n;
}
