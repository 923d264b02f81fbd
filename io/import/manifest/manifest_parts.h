/*
 * manifest_parts.h - a manifest while it is read. A format has a function that
 * takes the lines of a file and calls bm_manifest_add for each row.
 */
#ifndef BM_IO_IMPORT_MANIFEST_MANIFEST_PARTS_H
#define BM_IO_IMPORT_MANIFEST_MANIFEST_PARTS_H

#include "core/config/faults.h"
#include "io/import/manifest/lines.h"
#include "io/import/manifest/manifest.h"

#include <limits.h>

enum { BM_MOST_UNKNOWN = 32, BM_MOST_COLUMNS = 64, BM_MOST_CAUSES = 8 };

/* Longer ones are taken for an error in the unit. */
#define BM_MOST_SECONDS  1e6
#define BM_LEAST_SECONDS 1e-6 /* of an excerpt */
#define BM_MOST_CHANNELS 1024
#define BM_LEAST_SPEED   0.25
#define BM_MOST_SPEED    4.0

/* A row; texts are offsets into bm_manifest.text. */
typedef struct bm_manifest_entry {
    size_t id, path, text, speaker, shape;
    size_t file, line; /* that has it */
    size_t speaker_number;
    double start, duration, speed;
    long channel; /* from 1; 0: not said */
    bool has_text;
    bool made;   /* the id, from the name of the file */
    size_t copy; /* number of the copy, from 1; 0: the recording itself */
} bm_manifest_entry;

/* A field that is not understood, and how many lines have it. */
typedef struct bm_manifest_unknown {
    char key[48];
    size_t n;
} bm_manifest_unknown;

/* The fields of a row; NULL: missing. */
typedef struct bm_manifest_fields {
    const char *id, *path, *text, *speaker;
    const char *shape;      /* of a line on a page */
    double start, duration; /* seconds; duration 0: up to the end */
    double end;             /* in place of a duration; 0: none */
    double speed;           /* of the excerpt; 0: as recorded */
    long channel;           /* of the recording, from 1; 0: not said */
    bool where_run; /* the path is relative to the working directory or, if
                       there is no such file, to the folder of the list */
} bm_manifest_fields;

/* What a column of a table or a key of JSON may be called. */
typedef struct bm_manifest_name {
    const char *name; /* in any case */
    size_t field;     /* an offset into bm_manifest_fields */
    const char *kind; /* of the files of the manifest; "wenet": it has "wav";
                         NULL: any */
    bool number;      /* of seconds; else a text */
    bool weak;        /* it counts if no other name gives the field */
} bm_manifest_name;

enum { BM_MANIFEST_NAMES = 29 };
extern const bm_manifest_name bm_manifest_names[BM_MANIFEST_NAMES];

/* The columns of a table: which name each of them has; -1: none that counts. */
typedef struct bm_manifest_table {
    size_t n;
    char delimiter; /* '\t', ',', ';'; 0: there is no header yet */
    int name[BM_MOST_COLUMNS];
} bm_manifest_table;

struct bm_manifest {
    char *path;         /* of the file with the rows, for messages */
    const char *file;   /* that is being read, for messages; borrowed */
    const char *source; /* what was asked for: `path`, or the directory that has
                            it, borrowed while it is read */
    const char
        *folders;       /* what to do if no file is where its path says; static,
                            "": nothing is known */
    const char *kind;   /* the key of the files */
    bool pipes, speeds; /* commands and speeds are allowed */
    bool blanks;        /* ids may have blanks */
    bool resampled;     /* such a cut of Lhotse was there */
    size_t folder;      /* length of the path's directory, with the slash */
    bool beside, clips; /* where the first file of a table that was found is: in
                           that directory, in its clips/ */
    bm_manifest_unknown unknown[BM_MOST_UNKNOWN];
    size_t n_unknown;
    bm_manifest_entry *entries;
    size_t n, room;
    size_t copies; /* after each recording */
    char *text;
    size_t used, text_room;
    size_t speakers;
    size_t texts;                 /* rows with a text */
    char no_texts[PATH_MAX + 64]; /* where a text would be; "": on its line */
    char texts_path[PATH_MAX];    /* the file with them; "": that of the rows */
    char first_without[PATH_MAX + 512]; /* text: for a message */
    char level[64];                     /* type of UNIPEN's segments */
    bm_manifest_table table;
    bm_faults faults;
    const char *listed[BM_MOST_CAUSES]; /* formats of bm_manifest_fault_once */
};

static inline bool bm_manifest_is_audio(const bm_manifest *m)
{
    return m->kind[0] == 'a'; /* audio */
}

/* Notes a fault of a line of the file that is being read. Cannot fail. */
void bm_manifest_fault(bm_manifest *m, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for what most lines may share: the first is listed, with what to do,
 * and the others are counted. */
void bm_manifest_fault_once(bm_manifest *m, size_t line, const char *format,
                            ...) __attribute__((format(printf, 3, 4)));

/* Notes that a byte of a line, counted from 1, is not UTF-8. */
void bm_manifest_fault_utf8(bm_manifest *m, size_t line, size_t byte);

/* The same for a row. */
void bm_manifest_fault_row(bm_manifest *m, const bm_manifest_entry *e,
                           const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Of reading one of several files: notes the last failure and returns BM_OK if it
 * is BM_ERR_FORMAT or BM_ERR_MISSING, and returns any other status. */
BM_CHECKED bm_status bm_manifest_pass(bm_manifest *m, bm_status status);

/* Counts a field that is not understood. */
void bm_manifest_count_unknown(bm_manifest *m, const char *key);

/* Warns of the fields that are not understood. */
void bm_manifest_warn_unknown(bm_manifest *m);

/* Adds a row, or notes faults. A path is as the file has it; without an id one
 * is made. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_add(bm_manifest *m, size_t line,
                                     const bm_manifest_fields *f);

/* Keeps a text; *at: its offset in m->text. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_keep(bm_manifest *m, const char *text,
                                      size_t *at);

/* Appends `length` bytes to m->text, and a '\0' if `ends`; *at: the offset of the
 * first. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_append(bm_manifest *m, const char *text,
                                        size_t length, bool ends, size_t *at);

/* Keeps the path of a row, as from the working directory; *at as above. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_keep_path(bm_manifest *m,
                                           const bm_manifest_fields *f,
                                           size_t *at);

/* Fails with BM_ERR_MISSING or BM_ERR_FORMAT and a list if more than most_missing
 * percent of the files cannot be opened. */
BM_CHECKED bm_status bm_manifest_find_missing(bm_manifest *m,
                                              double most_missing);

/* Makes the ids that are missing: of names or, if two files have one name, of
 * paths. Lines of pages get the folder then. Excerpts that begin together get
 * their ends. Notes a fault for each id that two rows have. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_complete_ids(bm_manifest *m);

/* Sets speaker_number of all rows. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_number_speakers(bm_manifest *m);

/* Notes a fault for each id that two rows have. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_manifest_check_ids(bm_manifest *m);

/* The number of a name; -1: it is not known. */
int bm_manifest_find_name(const char *name);

/* Fails with BM_ERR_FORMAT: the first line, which is not JSON, names no column
 * that is known; lists those that are. */
BM_CHECKED bm_status bm_manifest_refuse_header(const bm_manifest *m,
                                               const char *header);

/* chosen[k] <- name k is where its field is taken from. spelled[k]: as the line
 * has it; NULL: it has not. Others are counted as not understood; it is a fault if
 * two names have the same right to a field. */
void bm_manifest_choose(bm_manifest *m, size_t line,
                        const char *const spelled[BM_MANIFEST_NAMES],
                        bool chosen[BM_MANIFEST_NAMES]);

/* Formats: a line of JSON; a line of a table, of which the first is the header.
 * Fail with BM_ERR_MEMORY, or with BM_ERR_FORMAT if a header names no file. */
BM_CHECKED bm_status bm_manifest_json(bm_manifest *m, size_t line,
                                      const char *text, size_t length);
/* Fails with BM_ERR_FORMAT: the first line is "{", the second as given, NULL:
 * there is none. */
BM_CHECKED bm_status bm_manifest_json_begins(const bm_manifest *m,
                                             const char *second);
BM_CHECKED bm_status bm_manifest_row_of_table(bm_manifest *m, size_t line,
                                              char *text, size_t length);

/* What separates the columns of a table with this header. */
char bm_manifest_delimiter(const char *header);

/* Is it the header of a table, by the names of its columns? */
bool bm_manifest_is_header(const char *line);

/* A data directory of Kaldi. Fails as bm_manifest_read. */
BM_CHECKED bm_status bm_manifest_kaldi(bm_manifest *m, const char *directory);

/* A path in a file of a data directory: relative to where Kaldi ran or, if there
 * is no such file, to the directory. Returns `path` or `out`. */
const char *bm_kaldi_resolve(const char *folder, const char *path,
                             char out[PATH_MAX]);

/* Line images at m->path as other programs keep them. Fails as
 * bm_line_source_read. */
BM_CHECKED bm_status bm_manifest_lines(bm_manifest *m, const char *image_dir);

/* Segments of UNIPEN files at m->path, of this type; "": that of the first with a
 * label. Fails as bm_unipen_read, or with BM_ERR_FORMAT if there are none. */
BM_CHECKED bm_status bm_manifest_unipen(bm_manifest *m, const char *type);

/* Fails with the faults, if there are any; `one` and `many`: singular and
 * plural of their noun. */
BM_CHECKED bm_status bm_manifest_verdict(const bm_manifest *m, bm_status status,
                                         const char *one, const char *many);

#endif
