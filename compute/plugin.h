/*
 * plugin.h - backends that need libraries which not every machine has: loaded
 * when they are asked for, so that the program starts and trains without.
 *
 * The backend <name> is libbmuf_<name>.so, beside the program or in the folder
 * that BMUF_PLUGINS names. It exports a bm_plugin called bm_plugin_<name>, and
 * is linked with none of the libraries that stand there: so the table can be
 * read anywhere, and what is missing be told by name.
 */
#ifndef BM_COMPUTE_PLUGIN_H
#define BM_COMPUTE_PLUGIN_H

#include "compute/backend_ops.h"
#include "core/span.h"

/* Grows with the list of operations by itself; to be counted up if anything
 * else between program and plugin changes. */
enum { BM_PLUGIN_ABI = 3 << 16 | (int)sizeof(bm_backend_ops) };

typedef struct bm_plugin {
    int abi;            /* BM_PLUGIN_ABI, for ever the first field */
    const char *driver; /* the library that a device comes with; NULL: none */
    const char *const *libraries; /* loaded in this order before the plugin;
                                     every list here ends with NULL */
    const char *const *extras;    /* those it can do without; NULL: none */
    const char *const *places;    /* where both are looked for */
    const bm_backend_ops *ops;
    const bm_span_watcher *watcher; /* watches all spans; NULL: none does */
} bm_plugin;

/* Both stay loaded until the process ends. BM_ERR_UNSUPPORTED: there is no such
 * plugin, or it is of another version; BM_ERR_DEVICE: it lacks something. */
BM_CHECKED bm_status bm_plugin_load(const char *name,
                                    const bm_backend_ops **out);

/*
 * Loads a library for all to see, from the first place that has it. A place is
 * a folder, in which * stands for anything; or "$NAME" for each folder that the
 * variable lists, parted by ':', also with more behind it ("$NAME/lib"); or ""
 * for where the system looks. BM_ERR_DEVICE: it is in none, or cannot be used.
 */
BM_CHECKED bm_status bm_library_load(const char *library,
                                     const char *const *places);

#endif
