/* registry.c - opens backends by name: those of this program, then plugins. */
#include "compute/backend_ops.h"
#include "compute/plugin.h"

#include <stdlib.h>
#include <string.h>

#define BM_BACKENDS(X) X(cpu)

#define X(name) extern const bm_backend_ops bm_backend_##name;
BM_BACKENDS(X)
#undef X

static const bm_backend_ops *const backends[] = {
#define X(name) &bm_backend_##name,
    BM_BACKENDS(X)
#undef X
};

static const bm_backend_ops *find(const char *name)
{
    for (size_t i = 0; i < sizeof backends / sizeof backends[0]; i++)
        if (strcmp(backends[i]->name, name) == 0)
            return backends[i];
    return NULL;
}

bool bm_backend_exists(const char *name)
{
    return find(name) != NULL || bm_plugin_exists(name);
}

bm_status bm_backend_open(bm_backend **out, const char *name, int index)
{
    bm_backend *be = calloc(1, sizeof *be);
    bm_status status = BM_OK;

    if (be == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for backend %s", name);
    be->ops = find(name);
    if (be->ops == NULL)
        BM_TRY_DONE(bm_plugin_load(name, &be->ops));
    BM_ASSERT(be->ops != NULL);
    be->user = pthread_self();
    BM_TRY_DONE(be->ops->open(be, index));
    *out = be;
    be = NULL;
done:
    free(be);
    return status;
}

bm_status bm_backend_open_beside(bm_backend **out, bm_backend *of)
{
    bm_backend *be = calloc(1, sizeof *be);
    bm_status status = BM_OK;

    BM_ASSERT(!of->ops->on_host && bm_used_here(of));
    if (be == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for backend %s",
                       of->ops->name);
    be->ops = of->ops;
    be->user = of->user;
    status = be->ops->open_beside(be, of);
    if (status == BM_OK)
        *out = be;
    else
        free(be);
    return status;
}
