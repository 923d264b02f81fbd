/*
 * plugin.c - a plugin is opened twice: first with its functions left open, to
 * read what it needs; then, with that loaded, with all of them in place.
 */
#include "compute/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder that plugins are in, and why it is that one. */
static const char *folder(char *room, size_t size)
{
    const char *told = getenv("BMUF_PLUGINS");
    ssize_t n = 0;
    char *slash = NULL;

    if (told != NULL)
        return told;
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
        return BM_FAIL(BM_ERR_UNSUPPORTED, "no %s here: there is no %s", name,
                       path);
    if (*handle == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED, "no %s here: %s", name, dlerror());
    snprintf(symbol, sizeof symbol, "bm_plugin_%s", name);
    *out = dlsym(*handle, symbol);
    if (*out == NULL)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "no %s here: %s is no plugin of this program; it has "
                       "no %s",
                       name, path, symbol);
    if ((*out)->abi != BM_PLUGIN_ABI)
        return BM_FAIL(BM_ERR_UNSUPPORTED,
                       "no %s here: %s is of another version of this program "
                       "(%x, not %x)",
                       name, path, (unsigned)(*out)->abi,
                       (unsigned)BM_PLUGIN_ABI);
    return BM_OK;
}

static bm_status load_needed(const char *name, const bm_plugin *p)
{
    const char *const *library = p->libraries, *const *extra = p->extras;

    if (p->driver != NULL && dlopen(p->driver, RTLD_NOW | RTLD_GLOBAL) == NULL)
        return BM_FAIL(BM_ERR_DEVICE, "no %s here: no driver: %s", name,
                       dlerror());
    for (; library != NULL && *library != NULL; library++)
        if (bm_library_load(*library, p->places) != BM_OK)
            return BM_FAIL(BM_ERR_DEVICE, "no %s here: %s", name,
                           bm_last_message());
    for (; extra != NULL && *extra != NULL; extra++)
        if (bm_library_load(*extra, p->places) != BM_OK)
            continue; /* it does without */
    return BM_OK;
}

bm_status bm_plugin_load(const char *name, const bm_backend_ops **out)
{
    char room[1024], path[1200];
    const bm_plugin *p = NULL;
    void *handle = NULL;
    bm_status status = BM_OK;

    if (strchr(name, '/') != NULL)
        return BM_FAIL(BM_ERR_CONFIG, "'%s' names no backend", name);
    snprintf(path, sizeof path, "%s/libbmuf_%s.so", folder(room, sizeof room),
             name);
    BM_TRY_DONE(open_plugin(name, path, RTLD_LAZY, &handle, &p));
    BM_ASSERT(p != NULL);
    BM_TRY_DONE(load_needed(name, p));
    dlclose(handle);
    BM_TRY_DONE(open_plugin(name, path, RTLD_NOW, &handle, &p));
    handle = NULL; /* for good */
    if (p->watcher != NULL)
        bm_span_watch(p->watcher);
    *out = p->ops;
done:
    if (handle != NULL)
        dlclose(handle);
    return status;
}
