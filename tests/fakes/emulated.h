/* emulated.h - symbols of the plugin for emulated devices, libbmuf_cuda.so. */
#ifndef BM_TESTS_FAKES_EMULATED_H
#define BM_TESTS_FAKES_EMULATED_H

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

/* A symbol of the plugin in the directory BMUF_PLUGINS, which must be loaded
 * already. NULL: it is not loaded, or has no such symbol. */
static inline void *emulated_symbol(const char *name)
{
    const char *directory = getenv("BMUF_PLUGINS");
    char path[4096];
    void *plugin = NULL;

    if (directory == NULL)
        return NULL;
    (void)snprintf(path, sizeof path, "%s/libbmuf_cuda.so", directory);
    plugin = dlopen(path, RTLD_NOW | RTLD_NOLOAD);
    return plugin != NULL ? dlsym(plugin, name) : NULL;
}

#endif
