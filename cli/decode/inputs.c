#include "cli/decode/inputs.h"

#include "cli/decode/folder_walk.h"
#include "cli/decode/line_source.h"
#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/file/path.h"
#include "core/file/temporary.h"
#include "core/finite.h"
#include "core/text/printable.h"
#include "core/text/words.h"
#include "io/import/manifest/manifest_parts.h"
#include "io/place.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Where inputs come from while an argument has several. */
typedef enum place { NOWHERE, A_FOLDER, A_LIST, A_MANIFEST, A_SET } place;

struct bm_inputs {
    const char *const *names; /* [n] */
    size_t n, next_name;
    bool pipes;         /* lists may have commands */
    const char *needed; /* unit of positions; NULL: any */
    const bm_transcriber *t;
    bm_transcriber_about about;
    place place;
    const char *name; /* the argument that `place` is */
    size_t next;      /* row, path or sequence there */
    bm_paths paths;
    bm_line_source lines;
    bm_manifest *manifest;
    bm_dataset *set;
    bm_sequences unit; /* of the set: those from first_of_unit on */
    size_t next_unit, first_of_unit, frames_before;
    int stored; /* a recording from stdin; -1: none */
};

void bm_input_free(bm_input *input)
{
    free(input->id);
    free(input->path);
    free(input->speaker);
    free(input->fault);
    free(input->x);
    *input = (bm_input){0};
}

/* Fails with BM_ERR_MEMORY; the input is to be freed, also then. */
static bm_status name_input(bm_input *out, const char *id, const char *path,
                            const char *speaker)
{
    out->id = strdup(id);
    out->path = strdup(path);
    out->speaker = strdup(speaker);
    if (out->id == NULL || out->path == NULL || out->speaker == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the name of an input");
    out->shown = path[0] != '\0' ? out->path : out->id;
    return BM_OK;
}

/* The last failure is this input's fault, unless there is no memory. */
static bm_status blame(bm_status status, bm_input *out)
{
    if (status == BM_OK || status == BM_ERR_MEMORY)
        return status;
    free(out->fault);
    out->fault = strdup(bm_last_message());
    out->status = status;
    return out->fault != NULL ? BM_OK
                              : BM_FAIL(BM_ERR_MEMORY, "no memory for a text");
}

/* A path without its ending, from `from` on: "wav/a.1" of "data/wav/a.1.flac".
 */
static bm_status name_file(bm_input *out, const char *path, size_t from)
{
    char *id = strdup(path + from);
    char *dot = id != NULL ? strrchr(id, '.') : NULL;
    bm_status status = BM_OK;

    if (id == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the name of an input");
    if (dot != NULL && dot != id && dot[-1] != '/' && strchr(dot, '/') == NULL)
        *dot = '\0';
    status = name_input(out, id, path, "");
    free(id);
    return status;
}

const char *bm_inputs_unit(const bm_transcriber *t)
{
    bm_transcriber_about about = bm_transcriber_describe(t);

    return about.kind == BM_IMAGES ? "pixels"
           : about.frame_shift > 0 ? "s"
                                   : "frames";
}

/* ---- several inputs of one argument -------------------------------------- */

static void leave(bm_inputs *s)
{
    if (s->place == A_LIST)
        bm_line_source_close(&s->lines);
    bm_paths_free(&s->paths);
    bm_manifest_free(s->manifest);
    bm_dataset_close(s->set);
    s->manifest = NULL;
    s->set = NULL;
    s->place = NOWHERE;
}

static void enter(bm_inputs *s, place where)
{
    s->place = where;
    s->next = 0;
}

static bm_status next_of_folder(bm_inputs *s, bm_input *out, bool *there)
{
    size_t n = strlen(s->name);

    *there = s->next < s->paths.n;
    if (!*there)
        return BM_OK;
    while (n > 0 && s->name[n - 1] == '/')
        n--;
    return name_file(out, s->paths.path[s->next++], n + 1);
}

/* A file, or a place in an archive of Kaldi's. */
static bool is_there(const char *path)
{
    bm_place at;

    return access(path, F_OK) == 0 ||
           (bm_place_parse(&at, path) && access(at.file, F_OK) == 0);
}

/* Where the path begins in "ID PATH", as Kaldi's wav.scp has it. */
static size_t behind_id(const char *line)
{
    size_t id = strcspn(line, " \t"), gap = strspn(line + id, " \t");

    return id > 0 && gap > 0 ? id + gap : 0;
}

/* Is it a command that is to be run? */
static bool is_command(const bm_inputs *s, const char *path)
{
    return s->pipes && bm_manifest_is_pipe(path);
}

/* The command of a line "ID COMMAND |"; NULL: it has none. */
static const char *find_command(const bm_inputs *s, const char *line)
{
    size_t at = behind_id(line);

    return at > 0 && is_command(s, line + at) ? line + at : NULL;
}

/* The path of a line "PATH" or "ID PATH" if it is there, as it is or else in the
 * folder of the list: in line or `out`. *id: there is one. NULL: no such file. */
static const char *find_file(const bm_inputs *s, const char *line, bool *id,
                             char out[PATH_MAX])
{
    char folder[PATH_MAX];
    bool beside = bm_path_folder_length(s->name) > 0 &&
                  bm_path_folder(folder, s->name) == BM_OK;

    for (int k = 0; k < 2; k++) {
        size_t at = k == 0 ? 0 : behind_id(line);
        const char *path = line + at;

        if (k == 1 && at == 0)
            break;
        if (beside)
            path = bm_kaldi_resolve(folder, path, out);
        *id = k == 1;
        if (is_there(path))
            return path;
    }
    return NULL;
}

static bm_status name_line(const bm_inputs *s, bm_input *out, char *line)
{
    char resolved[PATH_MAX];
    const char *path = find_command(s, line);
    bool id = path != NULL;

    out->command = id;
    if (!out->command)
        path = find_file(s, line, &id, resolved);
    if (path == NULL)
        path = line;
    else if (id)
        line[strcspn(line, " \t")] = '\0';
    return id && path != line
               ? name_input(out, line, path, "")
               : name_file(out, path, bm_path_folder_length(path));
}

/* Has the line of a list no path? '#' begins a comment. */
static bool is_empty(const char *line)
{
    return line[strspn(line, " \t")] == '\0' || line[0] == '#';
}

static bm_status next_of_list(bm_inputs *s, const atomic_bool *stop,
                              bm_input *out, bool *there)
{
    char *line = NULL;
    bm_status status = BM_OK;

    do {
        status = bm_line_source_next(&s->lines, stop, &line);
    } while (status == BM_OK && line != NULL && is_empty(line));
    *there = status != BM_OK || line != NULL;
    if (status == BM_OK)
        return line != NULL ? name_line(s, out, line) : BM_OK;
    leave(s);
    BM_TRY(blame(status, out));
    return name_input(out, s->name, s->name, "");
}

static bm_status next_of_manifest(bm_inputs *s, bm_input *out, bool *there)
{
    bm_manifest_row row;

    *there = s->next < bm_manifest_size(s->manifest);
    if (!*there)
        return BM_OK;
    row = bm_manifest_at(s->manifest, s->next++);
    out->part = (bm_excerpt){row.start, row.duration, row.channel};
    out->command = is_command(s, row.path);
    return name_input(out, row.id, row.path, row.speaker);
}

/* ---- packed sets --------------------------------------------------------- */

/* Reads the unit of sequence s->next, or sets the fault of that sequence. */
static bm_status read_unit(bm_inputs *s, bm_input *out)
{
    const bm_unit_at *u = &s->set->units[s->next_unit];
    bm_status status = BM_OK;

    if (s->next_unit > 0 && s->next < s->first_of_unit + s->unit.n)
        return BM_OK;
    s->first_of_unit = s->next;
    s->frames_before = 0;
    s->next_unit++;
    status = bm_dataset_read(s->set, s->next_unit - 1, &s->unit);
    if (status == BM_OK)
        return BM_OK;
    s->unit.n = 0; /* all of its sequences are left out */
    s->next = (size_t)u->first + (size_t)u->sequences;
    return blame(status, out);
}

static const char *unit_of_set(const bm_inputs *s)
{
    return bm_shard_frame_shift(s->set->shards[0]) > 0 ? "s" : "frames";
}

/* Seconds from a frame to the next, 0: unknown. Sets store whole microseconds; the
 * model has the same setting exactly. */
static double shift_of_set(const bm_inputs *s)
{
    double shift = bm_shard_frame_shift(s->set->shards[0]);

    return shift > 0 && s->about.frame_shift > 0 ? s->about.frame_shift : shift;
}

/* Copies the frames of the next sequence of the unit. */
static bm_status copy_frames(bm_inputs *s, bm_input *out)
{
    double shift = shift_of_set(s);
    size_t dim = s->unit.features, n = 0;

    n = (size_t)s->unit.frames[s->next - s->first_of_unit];
    out->x = malloc((n * dim + 1) * sizeof *out->x);
    if (out->x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu frames", n);
    memcpy(out->x, s->unit.x + s->frames_before * dim,
           n * dim * sizeof *out->x);
    s->frames_before += n;
    out->unit = unit_of_set(s);
    if (shift <= 0)
        shift = 1;
    out->frames = (bm_input_frames){.x = out->x,
                                    .n = n,
                                    .dim = dim,
                                    .step = shift,
                                    .length = (double)n * shift};
    if (!bm_all_finite(out->x, n * dim))
        return blame(
            BM_FAIL(BM_ERR_FORMAT, "%s: a feature is NaN or infinite", out->id),
            out);
    return BM_OK;
}

static bm_status next_of_set(bm_inputs *s, bm_input *out, bool *there)
{
    const char *tag = "", *speaker = "";
    size_t sequence = s->next;

    *there = s->next < s->set->n;
    if (!*there)
        return BM_OK;
    BM_TRY(read_unit(s, out));
    if (out->fault != NULL)
        return name_input(out, s->name, "", "");
    BM_TRY(bm_dataset_tag(s->set, (int64_t)sequence, &tag));
    BM_TRY(bm_dataset_speaker(s->set, (int64_t)sequence, &speaker));
    BM_TRY(name_input(out, tag, "", speaker));
    BM_TRY(copy_frames(s, out));
    s->next++;
    return BM_OK;
}

static bm_status open_set(bm_inputs *s)
{
    BM_TRY(bm_dataset_open(&s->set, s->name));
    enter(s, A_SET);
    s->next_unit = 0;
    s->unit.n = 0;
    if (s->needed != NULL && strcmp(s->needed, unit_of_set(s)) != 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: this --format needs positions in %s, but a packed "
                       "set of this kind has them in %s; decode the files that "
                       "it was made of, or choose another --format",
                       s->name, s->needed, unit_of_set(s));
    return bm_transcriber_reads(s->t, s->set);
}

/* ---- arguments ----------------------------------------------------------- */

static bm_status open_manifest(bm_inputs *s)
{
    const char *key = s->about.kind == BM_IMAGES          ? "image"
                      : s->about.kind == BM_FEATURE_FILES ? "feats"
                                                          : "audio";

    BM_TRY(bm_manifest_read(&s->manifest, s->name, key, 100,
                            BM_MANIFEST_BLANKS |
                                (s->pipes ? BM_MANIFEST_PIPES : 0)));
    enter(s, A_MANIFEST);
    return BM_OK;
}

/* What was tried, for a list whose first line is this; "": it has none. */
static bm_status refuse_list(const bm_inputs *s, const char *line)
{
    const char *kind = bm_text_kind(s->name);
    bool scp = kind == bm_kind_scp;
    const char *path = line + (scp ? behind_id(line) : 0);
    size_t folder = bm_path_folder_length(s->name);
    const char *hint = s->about.kind == BM_IMAGES
                           ? "; pack a list of PyLaia first: bmuf pack "
                             "--images LIST --image-dir DIR --vocab MODEL"
                           : "";

    if (line[0] == '\0')
        return BM_FAIL(BM_ERR_FORMAT,
                       s->lines.begun ? "%s is a list without a path: its "
                                        "lines are empty or comments"
                                      : "%s is empty",
                       s->name);
    if (bm_manifest_is_pipe(path))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:1: a command, which is not run: %.100s; write its "
                       "output to a file and list that, or run the commands "
                       "with --allow-pipes",
                       s->name, path);
    if (folder > 0 && path[0] != '/')
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is a text, but none of its first lines is the path "
                       "of a file; there is no %.300s, and no %.*s%.300s%s",
                       s->name, path, (int)folder, s->name, path, hint);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s is a text, but none of its first lines is the path of a "
                   "file; there is no %.300s%s",
                   s->name, path, hint);
}

/* Whether a manifest begins with the first line with text. Or else fails unless
 * one of the first lines names a file: any text can be given. */
static bm_status look_at_list(bm_inputs *s, bool *manifest)
{
    enum { LOOKED_AT = 10 };
    atomic_bool stop = false;
    char *line = NULL, first[PATH_MAX] = "", path[PATH_MAX];
    bool id = false;

    for (int i = 0; i < LOOKED_AT; i++) {
        do {
            BM_TRY(bm_line_source_next(&s->lines, &stop, &line));
        } while (line != NULL && is_empty(line));
        if (line == NULL)
            break;
        if (find_command(s, line) != NULL ||
            find_file(s, line, &id, path) != NULL)
            return BM_OK;
        if (first[0] == '\0' && bm_manifest_begins(line)) {
            *manifest = true;
            return BM_OK;
        }
        if (first[0] == '\0')
            snprintf(first, sizeof first, "%s", line);
    }
    return refuse_list(s, first);
}

/* A list of paths, or a manifest. */
static bm_status open_list(bm_inputs *s)
{
    bool manifest = false;

    BM_TRY(bm_line_source_open(&s->lines, s->name));
    enter(s, A_LIST);
    BM_TRY(look_at_list(s, &manifest));
    if (!manifest)
        return bm_line_source_rewind(&s->lines);
    leave(s);
    return open_manifest(s);
}

static bm_status open_folder(bm_inputs *s)
{
    if (bm_folder_has_shards(s->name))
        return open_set(s);
    if (bm_folder_is_kaldi(s->name, s->about.kind))
        return open_manifest(s);
    BM_TRY(bm_folder_walk(&s->paths, s->name, s->about.kind));
    if (s->paths.n == 0)
        return BM_FAIL(BM_ERR_MISSING, "%s: no %s in this folder", s->name,
                       bm_input_noun(s->about.kind));
    enter(s, A_FOLDER);
    return BM_OK;
}

/* *out <- a recording or image on stdin, stored in a file without a name. */
static bm_status store_stdin(bm_inputs *s, const atomic_bool *stop,
                             bm_input *out)
{
    char path[64];

    BM_TRY(bm_temporary_file(&s->stored));
    BM_TRY(bm_line_source_store(&s->lines, stop, s->stored));
    snprintf(path, sizeof path, "/proc/self/fd/%d", s->stored);
    BM_TRY(name_input(out, "stdin", path, ""));
    out->shown = "stdin";
    return BM_OK;
}

static bool begins_with_json(const bm_line_source *l)
{
    size_t mark = l->end > 3 ? bm_utf8_mark(l->bytes) : 0;

    return l->end > mark && l->bytes[mark] == '{';
}

static bm_status open_stdin(bm_inputs *s, const atomic_bool *stop,
                            bm_input *out, bool *there)
{
    bool binary = false;

    bm_line_source_open_stdin(&s->lines);
    BM_TRY(bm_line_source_is_binary(&s->lines, stop, &binary));
    *there = binary;
    if (binary)
        return store_stdin(s, stop, out);
    if (begins_with_json(&s->lines))
        return BM_FAIL(BM_ERR_FORMAT,
                       "stdin has JSON; give the manifest as a file, so that "
                       "its paths are relative to something");
    s->name = "stdin";
    enter(s, A_LIST);
    return BM_OK;
}

/* A file without text in its beginning: a list that begins with comments, or what
 * cannot be read as a list, a pipe. */
static bm_status open_blank(bm_inputs *s, bool *single)
{
    int fd = -1;

    *single = bm_file_open_regular(&fd, s->name) != BM_OK;
    if (*single)
        return BM_OK;
    close(fd);
    return open_list(s);
}

/* Whether the argument is one input: a file that is no list of others. */
static bm_status open_file(bm_inputs *s, bool *single)
{
    const char *kind = bm_file_kind(s->name);

    *single = false;
    if (bm_ends_with(s->name, BM_SHARD_SUFFIX))
        return open_set(s);
    *single = s->about.kind == BM_PACKED_ONLY; /* which is refused */
    if (*single)
        return BM_OK;
    if (kind == bm_kind_gzip)
        return open_manifest(s);
    *single = kind != NULL;
    if (*single)
        return BM_OK;
    kind = bm_text_kind(s->name);
    if (kind == NULL)
        return open_blank(s, single);
    if (kind == bm_kind_xml && s->about.kind == BM_IMAGES)
        return open_manifest(s); /* which says what to do with pages */
    return kind == bm_kind_json ? open_manifest(s) : open_list(s);
}

static bm_status open_argument(bm_inputs *s, const atomic_bool *stop,
                               bm_input *out, bool *there)
{
    struct stat info;
    bool single = false;
    bm_status status = BM_OK;

    s->name = s->names[s->next_name++];
    *there = false;
    if (strcmp(s->name, "-") == 0)
        status = open_stdin(s, stop, out, there);
    else if (stat(s->name, &info) != 0)
        status = BM_FAIL(BM_ERR_MISSING, "%s: %s", s->name, strerror(errno));
    else if (S_ISFIFO(info.st_mode))
        status = BM_FAIL(BM_ERR_MISSING,
                         "%s is a pipe, not a regular file; give - to read "
                         "stdin: COMMAND | bmuf decode MODEL -",
                         s->name);
    else if (S_ISDIR(info.st_mode))
        status = open_folder(s);
    else
        status = open_file(s, &single);
    out->whole = true;
    if (single) {
        *there = true;
        return name_file(out, s->name, bm_path_folder_length(s->name));
    }
    if (status == BM_OK)
        return BM_OK;
    leave(s);
    *there = true;
    BM_TRY(blame(status, out));
    return out->id == NULL
               ? name_file(out, s->name, bm_path_folder_length(s->name))
               : BM_OK;
}

static bm_status next_there(bm_inputs *s, const atomic_bool *stop,
                            bm_input *out, bool *there)
{
    switch (s->place) {
    case A_FOLDER:
        return next_of_folder(s, out, there);
    case A_LIST:
        return next_of_list(s, stop, out, there);
    case A_MANIFEST:
        return next_of_manifest(s, out, there);
    case A_SET:
        return next_of_set(s, out, there);
    case NOWHERE:
        break;
    }
    *there = false;
    return BM_OK;
}

bm_status bm_inputs_next(bm_inputs *s, const atomic_bool *stop, bm_input *out,
                         bool *there)
{
    bm_status status = BM_OK;

    for (;;) {
        *out = (bm_input){.unit = bm_inputs_unit(s->t)};
        status = next_there(s, stop, out, there);
        if (status != BM_OK || *there)
            break;
        leave(s);
        if (s->next_name == s->n || atomic_load(stop))
            break;
        status = open_argument(s, stop, out, there);
        if (status != BM_OK || *there)
            break;
    }
    if (status != BM_OK)
        bm_input_free(out);
    return status;
}

bm_status bm_inputs_open(bm_inputs **out, const char *const *names, size_t n,
                         bool pipes, const char *needed,
                         const bm_transcriber *t)
{
    bm_inputs *s = calloc(1, sizeof *s);

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the inputs");
    s->names = names;
    s->n = n;
    s->pipes = pipes;
    s->needed = needed;
    s->t = t;
    s->about = bm_transcriber_describe(t);
    s->stored = -1;
    *out = s;
    return BM_OK;
}

void bm_inputs_close(bm_inputs *s)
{
    if (s == NULL)
        return;
    leave(s);
    bm_sequences_free(&s->unit);
    if (s->stored >= 0)
        close(s->stored);
    free(s);
}
