/*
 * path.h - the folder and the name in a path.
 *
 *     name = path + bm_path_folder_length(path);
 *     printf("%.*s", (int)bm_path_folder_length(path), path); // "dir/", or ""
 */
#ifndef BM_CORE_FILE_PATH_H
#define BM_CORE_FILE_PATH_H

#include "core/status.h"

#include <limits.h>
#include <stddef.h>

/* The bytes of the folder of a path, with its slash: 4 of "dir/name" and of
 * "dir/", 1 of "/name", 0 of "name". */
size_t bm_path_folder_length(const char *path);

/* out <- the folder of a path, to be opened: "dir" of "dir/name", "/" of "/name",
 * "." of "name". Fails with BM_ERR_MISSING if it is too long. */
BM_CHECKED bm_status bm_path_folder(char out[PATH_MAX], const char *path);

/* out <- "folder/name", also of "folder/". Fails with BM_ERR_MISSING if it is too
 * long. */
BM_CHECKED bm_status bm_path_join(char out[PATH_MAX], const char *folder,
                                  const char *name);

#endif
