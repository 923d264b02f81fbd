/* folder_walk.h - the recordings, images or feature files of a folder. */
#ifndef BM_CLI_DECODE_FOLDER_WALK_H
#define BM_CLI_DECODE_FOLDER_WALK_H

#include "recognise/front_end.h"

#include <stdbool.h>

/* Starts as {0}; free with bm_paths_free. */
typedef struct bm_paths {
    char **path; /* [n] */
    size_t n, room;
} bm_paths;

void bm_paths_free(bm_paths *p);

bool bm_folder_has_shards(const char *folder);

/* Is it a data directory of Kaldi with files of this kind? */
bool bm_folder_is_kaldi(const char *folder, bm_input_kind kind);

/* The files of this kind in a folder and the folders in it, by their ending or
 * their first bytes, in byte order of their paths; hidden ones are left out.
 * Links are followed, but not into a folder that they are in. Of links without a
 * target those with a usual ending count. Fails with BM_ERR_MISSING if a folder
 * cannot be read, with BM_ERR_FORMAT if an image is that of a page whose PAGE XML or
 * ALTO is there, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_folder_walk(bm_paths *out, const char *folder,
                                    bm_input_kind kind);

#endif
