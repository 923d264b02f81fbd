/*
 * temporary.h - files and folders in TMPDIR.
 */
#ifndef BM_CORE_FILE_TEMPORARY_H
#define BM_CORE_FILE_TEMPORARY_H

#include "core/status.h"

#include <limits.h>

/* The folder that TMPDIR names, else /tmp. Valid until the environment changes. */
const char *bm_temporary_folder(void);

/* out <- a new folder in it, "bmuf-NAME-" and six more characters; "" if that
 * fails, with BM_ERR_CREATE. */
BM_CHECKED bm_status bm_temporary_folder_make(char out[PATH_MAX],
                                              const char *name);

/* *out <- a new, empty file in it, without a name, that commands do not get;
 * close(*out). Fails with BM_ERR_CREATE. */
BM_CHECKED bm_status bm_temporary_file(int *out);

#endif
