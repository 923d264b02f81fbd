/*
 * plugin.h - backends that need libraries which not every machine has. They are
 * loaded on request, so that the program starts and trains without them.
 *
 * The backend <name> is libbmuf_<name>.so, beside the program or in the folder
 * that BMUF_PLUGINS names. It exports a bm_plugin called bm_plugin_<name>, and
 * is not linked with the libraries that its table lists: the table can be read
 * on any machine, and a missing library is reported by name.
 */
#ifndef BM_COMPUTE_PLUGIN_H
#define BM_COMPUTE_PLUGIN_H

#include "compute/backend_ops.h"
#include "core/trace/span.h"

/* Contains the size of the table of operations. Increase the first number if
 * anything else between program and plugin changes, the table's order too. */
enum { BM_PLUGIN_ABI = 5 << 16 | (int)sizeof(bm_backend_ops) };

typedef struct bm_plugin {
    int abi;                      /* BM_PLUGIN_ABI; must stay the first field */
    const char *driver;           /* the device's driver library; NULL: none */
    const char *const *libraries; /* loaded in this order before the plugin;
                                     every list here ends with NULL */
    const char *const *extras;    /* optional libraries; NULL: none */
    const char *const *places;    /* where both are searched, in order */
    const bm_backend_ops *ops;
    const bm_span_watcher *watcher; /* watches all spans; NULL: none */
} bm_plugin;

/* Whether there is a file of this plugin; it may be unusable here. */
bool bm_plugin_exists(const char *name);

/* Loads the plugin of backend `name` and the libraries it needs, which stay
 * loaded until the process ends. Fails with BM_ERR_CONFIG if `name` is a path,
 * BM_ERR_UNSUPPORTED if there is no such plugin or it is of another version,
 * BM_ERR_DEVICE if the driver or a library is missing or cannot be loaded. */
BM_CHECKED bm_status bm_plugin_load(const char *name,
                                    const bm_backend_ops **out);

/*
 * Loads a library with global symbols from the first place that has it. A place
 * is a folder, as a glob pattern; or "$NAME", each folder of the ':'-separated
 * list in that variable, optionally with a suffix ("$NAME/lib"); or "", the
 * system's search path. Fails with BM_ERR_DEVICE if no place has it or it
 * cannot be loaded; the message lists the places.
 */
BM_CHECKED bm_status bm_library_load(const char *library,
                                     const char *const *places);

#endif
