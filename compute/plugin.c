/*
 * plugin.c - a plugin is opened twice: first with lazy binding, to read which
 * libraries it needs; then, after these are loaded, with all symbols bound.
 */
#include "compute/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the plugins: BMUF_PLUGINS, or that of the program. */
static const char *folder(char *room, size_t size)
{
    const char *given = getenv("BMUF_PLUGINS");
    ssize_t n = 0;
    char *slash = NULL;

    if (given != NULL)
        return given;
    n = readlink("/proc/self/exe", room, size - 1);
    room[n > 0 ? n : 0] = '\0';
    slash = strrchr(room, '/');
    if (slash != NULL)
        *slash = '\0';
    return room;
}

static bm_status open_plugin(const char *name, const char *path, int how,
                             void **handle, const bm_plugin **out)
{
    char symbol[64];

    *handle = dlopen(path, how | RTLD_LOCAL);
    if (*handle == NULL && access(path, F_OK) != 0)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "backend %s is not available: %s does not exist", name,
                       path);
    if (*handle == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "backend %s is not available: %s",
                       name, dlerror());
    snprintf(symbol, sizeof symbol, "bm_plugin_%s", name);
    *out = dlsym(*handle, symbol);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "backend %s is not available: %s is not a plugin of "
                       "this program (no symbol %s)",
                       name, path, symbol);
    if ((*out)->abi != BM_PLUGIN_ABI)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "backend %s is not available: %s belongs to another "
                       "version of this program (%x, not %x)",
                       name, path, (unsigned)(*out)->abi,
                       (unsigned)BM_PLUGIN_ABI);
    return BM_OK;
}

static bm_status load_needed(const char *name, const bm_plugin *p)
{
    const char *const *library = p->libraries, *const *extra = p->extras;

    if (p->driver != NULL && dlopen(p->driver, RTLD_NOW | RTLD_GLOBAL) == NULL)
        return BM_FAIL(BM_ERR_DEVICE,
                       "backend %s is not available: no driver: %s", name,
                       dlerror());
    for (; library != NULL && *library != NULL; library++)
        if (bm_library_load(*library, p->places) != BM_OK)
            return BM_FAIL(BM_ERR_DEVICE, "backend %s is not available: %s",
                           name, bm_last_message());
    for (; extra != NULL && *extra != NULL; extra++)
        if (bm_library_load(*extra, p->places) != BM_OK)
            continue; /* optional */
    return BM_OK;
}

static void path_of(const char *name, char *out, size_t size)
{
    char room[1024];

    snprintf(out, size, "%s/libbmuf_%s.so", folder(room, sizeof room), name);
}

bool bm_plugin_exists(const char *name)
{
    char path[1200];

    path_of(name, path, sizeof path);
    return access(path, F_OK) == 0;
}

bm_status bm_plugin_load(const char *name, const bm_backend_ops **out)
{
    char path[1200];
    const bm_plugin *p = NULL;
    void *handle = NULL;
    bm_status status = BM_OK;

    if (strchr(name, '/') != NULL)
        return BM_FAIL(BM_ERR_CONFIG, "'%s' is not the name of a backend",
                       name);
    path_of(name, path, sizeof path);
    BM_TRY_DONE(open_plugin(name, path, RTLD_LAZY, &handle, &p));
    BM_ASSERT(p != NULL);
    BM_TRY_DONE(load_needed(name, p));
    dlclose(handle);
    BM_TRY_DONE(open_plugin(name, path, RTLD_NOW, &handle, &p));
    handle = NULL; /* stays open */
    if (p->watcher != NULL)
        bm_span_watch(p->watcher);
    *out = p->ops;
done:
    if (handle != NULL)
        dlclose(handle);
    return status;
}
