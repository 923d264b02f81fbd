/*
 * manifest.h - a list of recordings, line images or feature files: JSON lines
 *
 *     {"id": "a1", "audio": "wav/a1.wav", "text": "one two", "speaker": "ann"}
 *
 * with "image" or "feats" in place of "audio". Paths are relative to the
 * manifest's folder; "text" and "speaker" may be missing; other keys are
 * ignored.
 */
#ifndef BM_IO_IMPORT_MANIFEST_H
#define BM_IO_IMPORT_MANIFEST_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_manifest bm_manifest;

/* One line. All text is borrowed from the manifest. */
typedef struct bm_manifest_row {
    const char *id, *path;
    const char *text, *speaker; /* "" if missing */
    size_t line;                /* in the file, from 1 */
    size_t speaker_number;      /* from 0, in byte order of the names */
} bm_manifest_row;

/*
 * Reads the manifest at `path`, whose files are under the key `kind`: "audio",
 * "image", "feats". Tells all lines that are wrong at once, with file:line
 * (BM_ERR_FORMAT; an id that comes twice is one), or else all files that are
 * not there (BM_ERR_MISSING). Free with bm_manifest_free (NULL is fine).
 */
BM_CHECKED bm_status bm_manifest_read(bm_manifest **out, const char *path,
                                      const char *kind);
void bm_manifest_free(bm_manifest *m);

const char *bm_manifest_path(const bm_manifest *m);
size_t bm_manifest_size(const bm_manifest *m);     /* rows, at least 1 */
size_t bm_manifest_speakers(const bm_manifest *m); /* "" counts as one */
bm_manifest_row bm_manifest_at(const bm_manifest *m, size_t row);

#endif
