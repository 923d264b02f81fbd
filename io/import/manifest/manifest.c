/*
 * manifest.c - the rows of a manifest, whatever its format, and what is checked
 * of all of them. All texts share one allocation, so that millions of rows need
 * little more memory than their file.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/file/file.h"
#include "core/file/file_kind.h"
#include "core/file/path.h"
#include "core/grow.h"
#include "core/text/shell_word.h"
#include "core/text/words.h"
#include "io/import/lines/image_names.h"
#include "io/shard/shard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- rows ---------------------------------------------------------------- */

bm_status bm_manifest_append(bm_manifest *m, const char *text, size_t length,
                             bool ends, size_t *at)
{
    BM_TRY(bm_lines_reserve(m->path, &m->text, &m->text_room,
                            m->used + length + 1));
    *at = m->used;
    memcpy(m->text + m->used, text, length);
    m->used += length;
    if (ends)
        m->text[m->used++] = '\0';
    return BM_OK;
}

bm_status bm_manifest_keep(bm_manifest *m, const char *text, size_t *at)
{
    return bm_manifest_append(m, text, strlen(text), true, at);
}

static bm_status add(bm_manifest *m, bm_manifest_entry e)
{
    BM_TRY(bm_grow(&m->entries, m->n, &m->room, sizeof *m->entries));
    m->entries[m->n++] = e;
    return BM_OK;
}

/* Not empty, no control characters; `blanks` may be in it. */
static bool is_name(const char *text, bool blanks)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ' || (*text == ' ' && !blanks))
            return false;
    return true;
}

static void check_name(bm_manifest *m, size_t line, const char *key,
                       const char *text, bool blanks)
{
    if (!is_name(text, true))
        bm_manifest_fault(m, line, "\"%s\" is empty or has control characters",
                          key);
    else if (!is_name(text, blanks))
        bm_manifest_fault(m, line,
                          "\"%s\" has a blank: \"%.60s\"; trn and ctm files "
                          "are split at blanks",
                          key, text);
}

/* Sets e's excerpt. */
static void check_excerpt(bm_manifest *m, const bm_manifest_fields *f,
                          bm_manifest_entry *e)
{
    e->start = f->start;
    e->duration = f->duration;
    e->speed = f->speed > 0 ? f->speed : 1;
    if (f->end <= 0)
        return;
    if (f->duration > 0)
        bm_manifest_fault(m, e->line,
                          "both \"duration\" and \"end\"; give only one");
    else if (f->end - f->start < BM_LEAST_SECONDS)
        bm_manifest_fault(m, e->line, "\"end\" %g is not after \"start\" %g",
                          f->end, f->start);
    else
        e->duration = f->end - f->start;
}

static void check_pipe(bm_manifest *m, size_t line, const char *path)
{
    if (bm_manifest_is_pipe(path) && !m->pipes)
        bm_manifest_fault_once(
            m, line,
            "a command, which is not run: %.100s; write its output to a file "
            "and list that, or let pack or decode run the commands with "
            "--allow-pipes",
            path);
}

/* *at: the name of the file that is being read, which rows share. */
static bm_status keep_file(bm_manifest *m, size_t *at)
{
    *at = m->n > 0 ? m->entries[m->n - 1].file : 0;
    if (m->n > 0 && strcmp(m->text + *at, m->file) == 0)
        return BM_OK;
    return bm_manifest_keep(m, m->file, at);
}

bm_status bm_manifest_add(bm_manifest *m, size_t line,
                          const bm_manifest_fields *f)
{
    static const char none[] = "";
    size_t before = m->faults.n;
    bm_manifest_entry e = {
        .line = line, .made = f->id == NULL, .channel = f->channel};
    const char *text = f->text != NULL ? f->text : none;
    const char *speaker = f->speaker != NULL ? f->speaker : none;
    const char *shape = f->shape != NULL ? f->shape : none;

    if (f->id != NULL)
        check_name(m, line, "id", f->id, m->blanks);
    if (f->path == NULL)
        bm_manifest_fault(m, line, "\"%s\" is missing", m->kind);
    else
        check_name(m, line, m->kind, f->path, true);
    check_excerpt(m, f, &e);
    if (f->id != NULL && strlen(f->id) > BM_LONGEST_TAG)
        bm_manifest_fault(m, line, "the id is longer than %d bytes",
                          BM_LONGEST_TAG);
    if (strlen(speaker) > BM_LONGEST_TAG)
        bm_manifest_fault(m, line, "the speaker is longer than %d bytes",
                          BM_LONGEST_TAG);
    if (f->path != NULL)
        check_pipe(m, line, f->path);
    if (m->faults.n > before || f->path == NULL)
        return BM_OK;
    e.has_text = f->text != NULL;
    m->texts += e.has_text;
    BM_TRY(bm_manifest_append(m, f->id != NULL ? f->id : none,
                              f->id != NULL ? strlen(f->id) : 0, true, &e.id));
    BM_TRY(bm_manifest_keep_path(m, f, &e.path));
    BM_TRY(bm_manifest_append(m, text, strlen(text), true, &e.text));
    BM_TRY(bm_manifest_append(m, speaker, strlen(speaker), true, &e.speaker));
    BM_TRY(bm_manifest_append(m, shape, strlen(shape), true, &e.shape));
    BM_TRY(keep_file(m, &e.file));
    return add(m, e);
}

/* ---- reading ------------------------------------------------------------- */

static bm_status refuse(const bm_manifest *m, const char *kind)
{
    return BM_FAIL(BM_ERR_FORMAT, "%s is %s, not a manifest; %s", m->path, kind,
                   bm_file_kind_use(kind));
}

/* A file of another kind would give an error for each of its lines. */
static bm_status check_kind(const bm_manifest *m)
{
    const char *kind = strcmp(m->path, "-") == 0 ? NULL : bm_file_kind(m->path);
    struct stat info;

    if (stat(m->path, &info) == 0 && S_ISFIFO(info.st_mode))
        return BM_FAIL(BM_ERR_MISSING,
                       "%s is a pipe, not a regular file; give - to read the "
                       "manifest from standard input",
                       m->path);
    return kind == NULL || kind == bm_kind_gzip ? BM_OK : refuse(m, kind);
}

/* For a first line that is of pages, or of a list of paths, where a manifest is
 * read: what bmuf pack cannot read twice, or what another verb was given. */
static bm_status refuse_lines_of_images(const bm_manifest *m, const char *line)
{
    const char *kind = line[0] == '<' ? "a page in XML" : "a list of paths";

    if (strcmp(m->path, "-") == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s: %s that comes from standard input; write it to a "
                       "file",
                       m->path, kind);
    if (bm_file_kind(m->path) != NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s: %s that is compressed; unpack it",
                       m->path, kind);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s is %s, not a manifest; pack it and give the packed set: "
                   "bmuf pack --images %s --out DIR --vocab MODEL",
                   m->path, kind, bm_shell_word(m->path).text);
}

/* Of images it may be a list "id text" of PyLaia, with any text. */
static bool has_columns(const char *line, bool image)
{
    const char *end = strchr(line, bm_manifest_delimiter(line));

    return end != NULL &&
           !(image && memchr(line, ' ', (size_t)(end - line)) != NULL);
}

/* For a first line that is neither JSON nor the header of a table. */
static bm_status refuse_line(const bm_manifest *m, const char *line)
{
    const char *kind = strcmp(m->path, "-") == 0 ? NULL : bm_text_kind(m->path);
    bool image = strcmp(m->kind, "image") == 0;

    kind = kind != NULL ? kind : bm_kind_text;
    if (strncmp(line, "sep=", 4) == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s:1: \"%.20s\" is for Excel alone; delete this line",
                       m->path, line);
    if (image && (line[0] == '<' || bm_ends_with(line, ".xml") ||
                  bm_is_image_name(line)))
        return refuse_lines_of_images(m, line);
    if (kind == bm_kind_text && has_columns(line, image))
        return bm_manifest_refuse_header(m, line);
    if (image)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is %s, not a manifest; a list \"id text\" of PyLaia "
                       "is for bmuf pack --images LIST --image-dir DIR, and a "
                       "manifest is JSON lines "
                       "such as {\"id\": \"l1\", \"image\": \"l1.png\", "
                       "\"text\": \"one\"}",
                       m->path, kind);
    return refuse(m, kind);
}

bool bm_manifest_begins(const char *line)
{
    return line[0] == '{' || bm_manifest_is_header(line);
}

/* The format is known by the first line that is not blank. */
static bm_status read_line(bm_manifest *m, bool first, size_t number,
                           char *line, size_t length)
{
    if (first && !bm_manifest_begins(line))
        return refuse_line(m, line);
    if (first ? line[0] != '{' : m->table.n > 0)
        return bm_manifest_row_of_table(m, number, line, length);
    return bm_manifest_json(m, number, line, length);
}

static bm_status read_lines(bm_manifest *m)
{
    bm_lines *lines = NULL;
    char *line = NULL;
    bool first = true;
    size_t length = 0;
    bm_status status = BM_OK;

    BM_TRY(check_kind(m));
    BM_TRY(bm_lines_open(&lines, m->path));
    for (;;) {
        size_t number = bm_lines_number(lines) + 1;

        BM_TRY_DONE(bm_lines_next(lines, &line, &length));
        if (line == NULL)
            break;
        if (strspn(line, " \t\r\n") == length)
            continue;
        if (first && length == 1 && line[0] == '{') {
            BM_TRY_DONE(bm_lines_next(lines, &line, &length));
            BM_TRY_DONE(bm_manifest_json_begins(m, line));
        }
        BM_TRY_DONE(read_line(m, first, number, line, length));
        first = false;
    }
done:
    bm_lines_close(lines);
    return status;
}

static bm_status read_rows(bm_manifest *m, const char *path)
{
    if (bm_is_folder(path) && strcmp(m->kind, "image") != 0)
        return bm_manifest_kaldi(m, path);
    m->path = strdup(path);
    if (m->path == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    m->folder = bm_path_folder_length(path);
    m->file = m->path;
    return read_lines(m);
}

/* All rows have an id that no other has. */
static bm_status check_ids(bm_manifest *m)
{
    m->file = m->path;
    BM_TRY(bm_manifest_complete_ids(m));
    BM_TRY(bm_manifest_verdict(m, BM_ERR_FORMAT, "problem", "problems"));
    if (m->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is empty; a manifest has one JSON object per line, "
                       "or a header and one row per line",
                       m->path);
    return BM_OK;
}

/* What all rows must be. */
static bm_status check_rows(bm_manifest *m, double most_missing)
{
    BM_TRY(check_ids(m));
    bm_manifest_warn_unknown(m);
    BM_TRY(bm_manifest_find_missing(m, most_missing));
    m->source = m->path;
    return bm_manifest_number_speakers(m);
}

static bm_status read_all(bm_manifest *m, const char *path, double most_missing)
{
    BM_TRY(read_rows(m, path));
    return check_rows(m, most_missing);
}

static bm_status new_manifest(bm_manifest **out, const char *path,
                              const char *kind, unsigned allowed)
{
    bm_manifest *m = calloc(1, sizeof *m);

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a manifest");
    m->kind = kind;
    m->source = path;
    m->folders = "paths are relative to the folder of the manifest";
    m->pipes = (allowed & BM_MANIFEST_PIPES) != 0;
    m->speeds = (allowed & BM_MANIFEST_SPEEDS) != 0;
    m->blanks = (allowed & BM_MANIFEST_BLANKS) != 0;
    *out = m;
    return BM_OK;
}

bm_status bm_manifest_read(bm_manifest **out, const char *path,
                           const char *kind, double most_missing,
                           unsigned allowed)
{
    bm_manifest *m = NULL;
    bm_status status = BM_OK;

    BM_TRY(new_manifest(&m, path, kind, allowed));
    BM_TRY_DONE(read_all(m, path, most_missing));
    *out = m;
    m = NULL;
done:
    bm_manifest_free(m);
    return status;
}

bm_status bm_manifest_read_texts(bm_manifest **out, const char *path,
                                 const char *kind)
{
    bm_manifest *m = NULL;
    bm_status status = BM_OK;

    BM_TRY(
        new_manifest(&m, path, kind, BM_MANIFEST_PIPES | BM_MANIFEST_SPEEDS));
    m->resampled = true; /* no note of it: recordings are not read */
    BM_TRY_DONE(read_rows(m, path));
    BM_TRY_DONE(check_ids(m));
    *out = m;
    m = NULL;
done:
    bm_manifest_free(m);
    return status;
}

/* Rows that `fill` makes of what is at the path. */
static bm_status read_with(bm_manifest **out, const char *kind,
                           const char *path, double most_missing,
                           bm_status (*fill)(bm_manifest *m, const char *with),
                           const char *with)
{
    bm_manifest *m = calloc(1, sizeof *m);
    bm_status status = BM_OK;

    if (m != NULL)
        m->path = strdup(path);
    if (m == NULL || m->path == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %s", path);
    for (size_t n = strlen(path); n > 1 && m->path[n - 1] == '/'; n--)
        m->path[n - 1] = '\0'; /* a folder as "lines/" */
    m->kind = kind;
    m->source = path;
    m->folders = "";
    BM_TRY_DONE(fill(m, with));
    BM_TRY_DONE(check_rows(m, most_missing));
    *out = m;
    m = NULL;
done:
    bm_manifest_free(m);
    return status;
}

bm_status bm_manifest_read_lines(bm_manifest **out, const char *path,
                                 const char *image_dir, double most_missing)
{
    return read_with(out, "image", path, most_missing, bm_manifest_lines,
                     image_dir);
}

bm_status bm_manifest_read_unipen(bm_manifest **out, const char *path,
                                  const char *type, double most_missing)
{
    return read_with(out, "unipen", path, most_missing, bm_manifest_unipen,
                     type);
}

void bm_manifest_free(bm_manifest *m)
{
    if (m == NULL)
        return;
    free(m->path);
    free(m->entries);
    free(m->text);
    free(m);
}

const char *bm_manifest_path(const bm_manifest *m)
{
    return m->path;
}

size_t bm_manifest_size(const bm_manifest *m)
{
    return m->n;
}

size_t bm_manifest_speakers(const bm_manifest *m)
{
    return m->speakers;
}

size_t bm_manifest_copies(const bm_manifest *m)
{
    return m->copies;
}

const char *bm_manifest_why_no_texts(const bm_manifest *m)
{
    if (m->texts > 0)
        return NULL;
    return m->no_texts[0] != '\0' ? m->no_texts : "no line has a text";
}

double bm_manifest_without_text(const bm_manifest *m)
{
    size_t lines = m->n / (m->copies + 1);

    return m->texts > 0 ? (double)(lines - m->texts) / (double)lines : 0;
}

const char *bm_manifest_first_without_text(bm_manifest *m)
{
    const bm_manifest_entry *e = m->entries;
    char *out = m->first_without;

    while (e < m->entries + m->n && e->has_text)
        e++;
    if (e == m->entries + m->n)
        return "";
    if (m->texts_path[0] != '\0')
        snprintf(out, sizeof m->first_without,
                 "%.400s, of which %s has no line", m->text + e->id,
                 m->texts_path);
    else
        snprintf(out, sizeof m->first_without, "%.400s (%s:%zu)",
                 m->text + e->id, m->text + e->file, e->line);
    return out;
}

const char *bm_manifest_level(const bm_manifest *m)
{
    return m->level;
}

bm_manifest_row bm_manifest_at(const bm_manifest *m, size_t row)
{
    const bm_manifest_entry *e = &m->entries[row];

    return (bm_manifest_row){
        .id = m->text + e->id,
        .path = m->text + e->path,
        .text = m->text + e->text,
        .shape = m->text + e->shape,
        .has_text = e->has_text,
        .speaker = m->text + e->speaker,
        .start = e->start,
        .duration = e->duration,
        .speed = e->speed,
        .channel = e->channel,
        .line = e->line,
        .speaker_number = e->speaker_number,
        .copy = e->copy,
        .recording = row / (m->copies + 1),
        .of = m->text + m->entries[row - e->copy].id,
    };
}
