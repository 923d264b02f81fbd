/*
 * manifest.h - a list of recordings, line images or feature files. It is one of
 *
 *   - JSON lines:
 *     {"id": "a1", "audio": "wav/a1.wav", "text": "one two", "speaker": "ann"}
 *     with "image" or "feats" in place of "audio"; NeMo's manifests and cuts of
 *     Lhotse are read, too;
 *   - a table with a header, its columns separated by tabs or commas;
 *   - a data directory of Kaldi: wav.scp or feats.scp, segments, text, utt2spk.
 *
 * Files may be compressed with gzip; "-" is standard input. Paths are relative
 * to the manifest's directory; text and speaker may be missing. Start and
 * duration, in seconds, are of an excerpt of a recording. Fields that are not
 * understood are named in a warning and ignored. docs/data/formats.md has the rest.
 */
#ifndef BM_IO_IMPORT_MANIFEST_MANIFEST_H
#define BM_IO_IMPORT_MANIFEST_MANIFEST_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

typedef struct bm_manifest bm_manifest;

/* One line. Texts are borrowed from the manifest. */
typedef struct bm_manifest_row {
    const char *id, *path;      /* path: manifest's directory included */
    const char *text, *speaker; /* "" if missing */
    const char *shape; /* of a line on a page, as bm_line_shape_read takes it;
                          "": the image is of this line alone; of a segment of
                          UNIPEN its delineation */
    bool has_text;     /* it is there, if only as "" */
    double start, duration; /* seconds; duration 0: up to the end */
    double speed;           /* at which the excerpt is played */
    long channel;           /* of the recording, from 1; 0: not said */
    size_t line;            /* in the file, from 1 */
    size_t speaker_number;  /* from 0, in byte order of the names */
    size_t copy;            /* which one of the recording, from 1; 0: itself */
    size_t recording;       /* its number, from 0; of a copy likewise */
    const char *of;         /* of a copy: the recording's id; else the id */
} bm_manifest_row;

/* What a row may have: a command that ends with '|' as its path; a speed; an id
 * with blanks. */
enum { BM_MANIFEST_PIPES = 1, BM_MANIFEST_SPEEDS = 2, BM_MANIFEST_BLANKS = 4 };

/*
 * Reads the manifest at `path`, with the files under the key `kind`: "audio",
 * "image", "feats". allowed: 0, or a sum of BM_MANIFEST_PIPES, .. Fails
 * with BM_ERR_FORMAT, for a file of another kind or with a list of all invalid
 * lines, duplicate ids among them; or else with BM_ERR_MISSING and a list of all
 * files that cannot be opened, if they are more than most_missing percent. Free
 * with bm_manifest_free; NULL is a no-op.
 */
BM_CHECKED bm_status bm_manifest_read(bm_manifest **out, const char *path,
                                      const char *kind, double most_missing,
                                      unsigned allowed);

/* The same for line images as other programs keep them, for which
 * bm_line_source_is is true. */
BM_CHECKED bm_status bm_manifest_read_lines(bm_manifest **out, const char *path,
                                            const char *image_dir,
                                            double most_missing);

/* The same for segments of a type in UNIPEN files; "": that of the first with a
 * label. */
BM_CHECKED bm_status bm_manifest_read_unipen(bm_manifest **out,
                                             const char *path, const char *type,
                                             double most_missing);
void bm_manifest_free(bm_manifest *m);

/* What the files of a line of JSON are, as `kind` of bm_manifest_read; static.
 * NULL: it names none, so it is not of a manifest. */
const char *bm_manifest_kind(const char *line);

/* Reads a manifest for its ids and texts: as bm_manifest_read, but files may be
 * missing, and fields that are not understood are ignored without a warning. */
BM_CHECKED bm_status bm_manifest_read_texts(bm_manifest **out, const char *path,
                                            const char *kind);

/* Puts `copies` rows ID-copy1, .. after each row; at most once. Fails with
 * BM_ERR_FORMAT if there are such ids already or one gets too long, or with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_copy(bm_manifest *m, size_t copies);

/* Can a manifest begin with this line: one of JSON, or the header of a table? */
bool bm_manifest_begins(const char *line);

/* Is it a command with '|' at its end, as Kaldi has them? */
bool bm_manifest_is_pipe(const char *path);

const char *bm_manifest_path(const bm_manifest *m);
size_t bm_manifest_size(const bm_manifest *m);     /* rows, at least 1 */
size_t bm_manifest_copies(const bm_manifest *m);   /* after each row */
size_t bm_manifest_speakers(const bm_manifest *m); /* "" is one of them */
/* Why no row has a text, borrowed: "data/text does not exist"; NULL: some do. */
const char *bm_manifest_why_no_texts(const bm_manifest *m);
/* The fraction of rows without a text; 0 if none has one. */
double bm_manifest_without_text(const bm_manifest *m);
/* The first of them with its place, for a message; borrowed; "": there is none. */
const char *bm_manifest_first_without_text(bm_manifest *m);

/* The type of the segments, where files are UNIPEN's; borrowed. */
const char *bm_manifest_level(const bm_manifest *m);
/* row: in [0, size). */
bm_manifest_row bm_manifest_at(const bm_manifest *m, size_t row);

/* Why the file of a row cannot be opened now, borrowed until the next call; "":
 * it can, or is the output of a command. */
const char *bm_manifest_why_missing(const bm_manifest *m, size_t row);

#endif
