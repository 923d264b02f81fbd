/*
 * sound_folder.h - the recordings of a folder and of folders within it: noise,
 * or impulse responses.
 */
#ifndef BM_IO_SOUND_SOUND_FOLDER_H
#define BM_IO_SOUND_SOUND_FOLDER_H

#include "core/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bm_sound_file {
    char *path;
    double seconds;
    long rate; /* Hz */
} bm_sound_file;

/* Starts as {0}; free with bm_sound_folder_free. */
typedef struct bm_sound_folder {
    bm_sound_file *files; /* [n >= 1], in the byte order of their paths */
    size_t n, capacity;
    uint64_t digest; /* of their paths within the folder, lengths and rates */
} bm_sound_folder;

/* Lists what libsndfile can read; other files, and names that begin with a dot,
 * are left out. Logs how many there are, and how many have another rate than
 * `rate`. `setting`: the name of
 * the setting, for messages: "copies.noise". Fails with BM_ERR_MISSING if
 * there is no such folder, BM_ERR_FORMAT if it has no recording, or with
 * BM_ERR_IO or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_sound_folder_list(bm_sound_folder *f, const char *path,
                                          const char *setting, long rate);
void bm_sound_folder_free(bm_sound_folder *f);

#endif
