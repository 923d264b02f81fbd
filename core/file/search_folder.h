/*
 * search_folder.h - recognises the folder of a search by bmuf tune where a run is
 * expected, and folders of both where other files are to be written.
 */
#ifndef BM_CORE_FILE_SEARCH_FOLDER_H
#define BM_CORE_FILE_SEARCH_FOLDER_H

#include "core/status.h"

#include <stdbool.h>

/* Fails with BM_ERR_ARG, and what to give in place of the folder, if it is that of
 * a search. */
BM_CHECKED bm_status bm_search_folder_refuse(const char *folder);

/* Is the folder that of a run or of a search? */
bool bm_run_folder_is(const char *folder);

/* Fails with BM_ERR_CREATE if the folder is that of a run or of a search, which no
 * other files are written to. */
BM_CHECKED bm_status bm_run_folder_refuse(const char *folder);

#endif
