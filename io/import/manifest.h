/*
 * manifest.h - a list of recordings, line images or feature files: JSON lines
 *
 *     {"id": "a1", "audio": "wav/a1.wav", "text": "one two", "speaker": "ann"}
 *
 * with "image" or "feats" in place of "audio". Paths are relative to the
 * manifest's directory; "text" and "speaker" may be missing. "start" and
 * "duration", or "end", in seconds, are of an excerpt of a recording. NeMo's
 * names "audio_filepath" and "offset" are read as "audio" and "start". Other
 * fields are named in a warning and ignored.
 */
#ifndef BM_IO_IMPORT_MANIFEST_H
#define BM_IO_IMPORT_MANIFEST_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_manifest bm_manifest;

/* One line. Texts are borrowed from the manifest. */
typedef struct bm_manifest_row {
    const char *id, *path;      /* path: manifest's directory included */
    const char *text, *speaker; /* "" if missing */
    bool has_text;              /* it is there, if only as "" */
    double start, duration;     /* seconds; duration 0: up to the end */
    size_t line;                /* in the file, from 1 */
    size_t speaker_number;      /* from 0, in byte order of the names */
} bm_manifest_row;

/*
 * Reads the manifest at `path`, with the files under the key `kind`: "audio",
 * "image", "feats". Fails with BM_ERR_FORMAT, for a file of another kind or
 * with a list of all invalid lines, duplicate ids among them; or else with
 * BM_ERR_MISSING and a list of all files that cannot be opened, if they are
 * more than most_missing percent. Free with bm_manifest_free; NULL is a no-op.
 */
BM_CHECKED bm_status bm_manifest_read(bm_manifest **out, const char *path,
                                      const char *kind, double most_missing);
void bm_manifest_free(bm_manifest *m);

const char *bm_manifest_path(const bm_manifest *m);
size_t bm_manifest_size(const bm_manifest *m);     /* rows, at least 1 */
size_t bm_manifest_speakers(const bm_manifest *m); /* "" is one of them */
/* row: in [0, size). */
bm_manifest_row bm_manifest_at(const bm_manifest *m, size_t row);

#endif
