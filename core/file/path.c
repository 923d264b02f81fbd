#include "core/file/path.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

size_t bm_path_folder_length(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash != NULL ? (size_t)(slash - path) + 1 : 0;
}

static bm_status too_long(const char *path)
{
    return BM_FAIL(BM_ERR_MISSING, "%.60s..: the path is longer than %d bytes",
                   path, PATH_MAX - 1);
}

bm_status bm_path_folder(char out[PATH_MAX], const char *path)
{
    size_t n = bm_path_folder_length(path);

    if (n > 1)
        n--; /* the slash, unless it is the root */
    if (n >= PATH_MAX)
        return too_long(path);
    snprintf(out, PATH_MAX, "%.*s", n > 0 ? (int)n : 1, n > 0 ? path : ".");
    return BM_OK;
}

bm_status bm_path_join(char out[PATH_MAX], const char *folder, const char *name)
{
    size_t n = strlen(folder);
    bool ends = n > 0 && folder[n - 1] == '/';
    int length =
        snprintf(out, PATH_MAX, "%s%s%s", folder, ends ? "" : "/", name);

    return length >= 0 && length < PATH_MAX ? BM_OK : too_long(folder);
}
