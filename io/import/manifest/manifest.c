/*
 * manifest.c - the rows of a manifest, whatever its format, and what is checked
 * of all of them. All texts share one allocation, so that millions of rows need
 * little more memory than their file.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/file_kind.h"
#include "core/log.h"
#include "core/words.h"
#include "io/place.h"
#include "io/shard/shard.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char clips[] = "clips/";

/* Sorts rows by one of their texts. */
typedef struct sort_key {
    const char *text;
    size_t row;
} sort_key;

/* ---- faults -------------------------------------------------------------- */

static void fault(bm_manifest *m, size_t line, const char *format, va_list args)
{
    char where[600];

    snprintf(where, sizeof where, "%.500s:%zu", m->file, line);
    bm_fault_add_list(&m->faults, where, format, args);
}

void bm_manifest_fault(bm_manifest *m, size_t line, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    fault(m, line, format, args);
    va_end(args);
}

void bm_manifest_fault_once(bm_manifest *m, size_t line, const char *format,
                            ...)
{
    size_t k = 0;
    va_list args;

    while (k < BM_MOST_CAUSES && m->listed[k] != NULL && m->listed[k] != format)
        k++;
    if (k < BM_MOST_CAUSES && m->listed[k] == format) {
        m->faults.n++;
        return;
    }
    if (k < BM_MOST_CAUSES)
        m->listed[k] = format;
    va_start(args, format);
    fault(m, line, format, args);
    va_end(args);
}

bm_status bm_manifest_pass(bm_manifest *m, bm_status status)
{
    if (status != BM_ERR_FORMAT && status != BM_ERR_MISSING)
        return status;
    bm_fault_add(&m->faults, NULL, "%s", bm_last_message());
    return BM_OK;
}

bm_status bm_manifest_verdict(const bm_manifest *m, bm_status status,
                              const char *one, const char *many)
{
    const bm_faults *f = &m->faults;

    if (f->n == 0)
        return BM_OK;
    return BM_FAIL(status, "%s: %zu %s:%s%s", m->source, f->n,
                   f->n == 1 ? one : many, f->text, bm_faults_more(f).text);
}

void bm_manifest_count_unknown(bm_manifest *m, const char *key)
{
    bm_manifest_unknown *u = m->unknown;

    while (u < m->unknown + m->n_unknown &&
           strncmp(u->key, key, sizeof u->key - 1) != 0)
        u++;
    if (u == m->unknown + BM_MOST_UNKNOWN)
        return;
    if (u == m->unknown + m->n_unknown) {
        m->n_unknown++;
        snprintf(u->key, sizeof u->key, "%s", key);
    }
    u->n++;
}

static void warn_of_unknown(bm_manifest *m)
{
    for (bm_manifest_unknown *u = m->unknown; u < m->unknown + m->n_unknown;
         u++) {
        char near[64] = "", list[128];

        snprintf(list, sizeof list,
                 "id %s text speaker start offset duration end", m->kind);
        bm_nearest_word(u->key, list, near, sizeof near);
        for (char *c = u->key; *c != '\0'; c++)
            *c = (unsigned char)*c < ' ' ? '?' : *c;
        bm_log(BM_WARNING,
               "%s: field \"%s\", on %s, is not understood and was "
               "ignored%s%s%s",
               m->path, u->key, bm_count_noun((long long)u->n, "line").text,
               near[0] != '\0' ? "; did you mean \"" : "", near,
               near[0] != '\0' ? "\"?" : "");
    }
}

/* ---- rows ---------------------------------------------------------------- */

/* Appends `length` bytes, and a '\0' if `ends`. *at: offset of the first. */
static bm_status keep(bm_manifest *m, const char *text, size_t length,
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
    return keep(m, text, strlen(text), true, at);
}

static bm_status add(bm_manifest *m, bm_manifest_entry e)
{
    if (m->n == m->room) {
        size_t room = m->room > 0 ? 2 * m->room : 256;
        bm_manifest_entry *grown = realloc(m->entries, room * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu rows of %s", room,
                           m->path);
        m->entries = grown;
        m->room = room;
    }
    m->entries[m->n++] = e;
    return BM_OK;
}

bool bm_manifest_is_pipe(const char *path)
{
    size_t n = strlen(path);

    while (n > 0 && (path[n - 1] == ' ' || path[n - 1] == '\t'))
        n--;
    return n > 0 && path[n - 1] == '|';
}

/* A file, or a place in one. */
static bool is_there(const char *path)
{
    bm_place place;

    return access(path, F_OK) == 0 ||
           (bm_place_parse(&place, path) && access(place.file, F_OK) == 0);
}

static bool is_in(const bm_manifest *m, const char *folder, const char *name)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%.*s%s%s", (int)m->folder, m->path,
                     folder, name);

    return n > 0 && (size_t)n < sizeof path && is_there(path);
}

/* Is a path of a table a name in clips/, where Common Voice has its files? The
 * first file that is there decides. */
static bool is_clip(bm_manifest *m, const char *path)
{
    if (m->table.n == 0 || strchr(path, '/') != NULL)
        return false;
    if (!m->beside && !m->clips) {
        m->beside = is_in(m, "", path);
        m->clips = !m->beside && is_in(m, clips, path);
    }
    return m->clips;
}

/* Is a path one of the working directory? */
static bool is_here(bm_manifest *m, const bm_manifest_fields *f)
{
    if (!f->where_run)
        return false;
    m->folders = "a relative path is looked for in the working directory and "
                 "then in the folder of the list";
    return is_there(f->path);
}

static bm_status keep_path(bm_manifest *m, const bm_manifest_fields *f,
                           size_t *at)
{
    const char *path = f->path;
    size_t rest = 0;
    bool as_is = path[0] == '/' || bm_manifest_is_pipe(path) || is_here(m, f);
    bool clip = !as_is && is_clip(m, path);

    BM_TRY(keep(m, m->path, as_is ? 0 : m->folder, false, at));
    BM_TRY(keep(m, clips, clip ? strlen(clips) : 0, false, &rest));
    return keep(m, path, strlen(path), true, &rest);
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
    if (f->end <= 0)
        return;
    if (f->duration > 0)
        bm_manifest_fault(m, e->line,
                          "both \"duration\" and \"end\"; give only one");
    else if (f->end - f->start < BM_LEAST_SECONDS)
        bm_manifest_fault(m, e->line, "\"end\" %g is not behind \"start\" %g",
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
            "and list that, or let pack run the commands with --allow-pipes",
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
        check_name(m, line, "id", f->id, false);
    if (f->path == NULL)
        bm_manifest_fault(m, line, "\"%s\" is missing", m->kind);
    else
        check_name(m, line, m->kind, f->path, true);
    check_excerpt(m, f, &e);
    if (f->id != NULL && strlen(f->id) > BM_LONGEST_TAG)
        bm_manifest_fault(m, line, "the id is longer than %d bytes",
                          BM_LONGEST_TAG);
    if (f->path != NULL)
        check_pipe(m, line, f->path);
    if (m->faults.n > before || f->path == NULL)
        return BM_OK;
    e.has_text = f->text != NULL;
    m->texts += e.has_text;
    BM_TRY(keep(m, f->id != NULL ? f->id : none,
                f->id != NULL ? strlen(f->id) : 0, true, &e.id));
    BM_TRY(keep_path(m, f, &e.path));
    BM_TRY(keep(m, text, strlen(text), true, &e.text));
    BM_TRY(keep(m, speaker, strlen(speaker), true, &e.speaker));
    BM_TRY(keep(m, shape, strlen(shape), true, &e.shape));
    BM_TRY(keep_file(m, &e.file));
    return add(m, e);
}

/* Notes a fault of a row. */
static void fault_of(bm_manifest *m, const bm_manifest_entry *e,
                     const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fault_of(bm_manifest *m, const bm_manifest_entry *e,
                     const char *format, ...)
{
    va_list args;

    m->file = m->text + e->file;
    va_start(args, format);
    fault(m, e->line, format, args);
    va_end(args);
    m->file = m->path;
}

/* ---- ids that are made --------------------------------------------------- */

/* *at: an id without slashes and blanks. */
static bm_status keep_id(bm_manifest *m, char *id, size_t *at)
{
    for (char *c = id; *c != '\0'; c++)
        if (*c == '/' || *c == ' ')
            *c = '-';
    return bm_manifest_keep(m, id, at);
}

static bool is_excerpt(const bm_manifest_entry *e)
{
    return e->start > 0 || e->duration > 0;
}

/* The id of a row without one: the name of its file without the ending, of an
 * excerpt with its start in milliseconds; `whole`: the path in place of the
 * name. */
static bm_status make_id(bm_manifest *m, bm_manifest_entry *e, bool whole)
{
    char id[BM_LONGEST_TAG + 1], start[32] = "";
    const char *path = m->text + e->path, *name = strrchr(path, '/');
    const char *dot = NULL;
    int n = 0;

    if (whole)
        path += strncmp(path, m->path, m->folder) == 0 ? m->folder : 0;
    else if (name != NULL)
        path = name + 1;
    dot = strrchr(path, '.');
    if (dot == NULL || dot == path || strchr(dot, '/') != NULL)
        dot = path + strlen(path);
    if (is_excerpt(e))
        snprintf(start, sizeof start, "-%07.0f", 1000 * e->start);
    n = snprintf(id, sizeof id, "%.*s%s", (int)(dot - path), path, start);
    if (n < 0 || (size_t)n >= sizeof id) {
        fault_of(m, e,
                 "there is no \"id\", and the name of the file is longer than "
                 "%d bytes",
                 BM_LONGEST_TAG);
        return BM_OK;
    }
    return keep_id(m, id, &e->id);
}

/* Puts the folder of its file before the id of a row. */
static bm_status add_folder(bm_manifest *m, bm_manifest_entry *e)
{
    char id[BM_LONGEST_TAG + 1];
    const char *file = m->text + e->file, *slash = strrchr(file, '/');
    const char *list = strrchr(m->path, '/');
    size_t skipped = list != NULL ? (size_t)(list - m->path) + 1 : 0;
    int n = 0;

    if (strncmp(file, m->path, skipped) != 0)
        skipped = strspn(file, "/.");
    if (slash == NULL || slash < file + skipped)
        return BM_OK;
    n = snprintf(id, sizeof id, "%.*s%s", (int)(slash + 1 - file - skipped),
                 file + skipped, m->text + e->id);
    if (n >= 0 && (size_t)n < sizeof id)
        return keep_id(m, id, &e->id);
    fault_of(m, e, "the id with its folder is longer than %d bytes",
             BM_LONGEST_TAG);
    return BM_OK;
}

/* The id of a row of another file, as a page is, which has one. */
static bool is_of_page(const bm_manifest *m, const bm_manifest_entry *e)
{
    return !e->made && strcmp(m->text + e->file, m->path) != 0;
}

/* *any: there are rows without an id, or of pages. */
static bm_status make_ids(bm_manifest *m, bool whole, bool *any)
{
    *any = false;
    for (size_t i = 0; i < m->n; i++) {
        bm_manifest_entry *e = &m->entries[i];
        bool page = is_of_page(m, e);

        *any |= e->made || page;
        if (e->made)
            BM_TRY(make_id(m, e, whole));
        else if (page && whole)
            BM_TRY(add_folder(m, e));
    }
    return BM_OK;
}

/* ---- checks of all rows -------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const sort_key *x = a, *y = b;
    int order = strcmp(x->text, y->text);

    return order != 0 ? order : (x->row > y->row) - (x->row < y->row);
}

/* *out: the rows, sorted by the text at offset `place` of an entry;
 * free(*out). */
static bm_status sort(const bm_manifest *m, size_t place, sort_key **out)
{
    sort_key *keys = malloc((m->n + 1) * sizeof *keys);

    if (keys == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to sort %zu rows of %s", m->n,
                       m->path);
    for (size_t i = 0; i < m->n; i++) {
        size_t at = 0;
        memcpy(&at, (const char *)&m->entries[i] + place, sizeof at);
        keys[i] = (sort_key){m->text + at, i};
    }
    qsort(keys, m->n, sizeof *keys, compare);
    *out = keys;
    return BM_OK;
}

static void report_duplicate(bm_manifest *m, const bm_manifest_entry *first,
                             const bm_manifest_entry *second)
{
    const char *id = m->text + second->id, *file = m->text + first->file;

    if (strcmp(file, m->text + second->file) == 0)
        fault_of(m, second, "duplicate id \"%.100s\", also on line %zu", id,
                 first->line);
    else
        fault_of(m, second, "duplicate id \"%.100s\", also in %.300s:%zu", id,
                 file, first->line);
}

bm_status bm_manifest_check_ids(bm_manifest *m)
{
    sort_key *keys = NULL;

    BM_TRY(sort(m, offsetof(bm_manifest_entry, id), &keys));
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(keys[i].text, keys[i - 1].text) == 0)
            report_duplicate(m, &m->entries[keys[i - 1].row],
                             &m->entries[keys[i].row]);
    free(keys);
    return BM_OK;
}

/* Excerpts without an id that begin together. */
static bool begin_together(const bm_manifest *m, const bm_manifest_entry *a,
                           const bm_manifest_entry *b)
{
    return a->made && b->made && is_excerpt(a) && is_excerpt(b) &&
           strcmp(m->text + a->path, m->text + b->path) == 0;
}

/* *twice: two rows have one id, and not because they begin together. */
static bm_status find_duplicates(bm_manifest *m, bool *twice)
{
    sort_key *keys = NULL;

    *twice = false;
    BM_TRY(sort(m, offsetof(bm_manifest_entry, id), &keys));
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(keys[i].text, keys[i - 1].text) == 0 &&
            !begin_together(m, &m->entries[keys[i - 1].row],
                            &m->entries[keys[i].row]))
            *twice = true;
    free(keys);
    return BM_OK;
}

/* *out [n] <- the place of each row among those with its id, from 1; 0: it is
 * the only one. free(*out). */
static bm_status count_ids(const bm_manifest *m, size_t **out)
{
    size_t *place = calloc(m->n + 1, sizeof *place);
    sort_key *keys = NULL;

    if (place == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for the ids of %s", m->path);
    *out = place;
    BM_TRY(sort(m, offsetof(bm_manifest_entry, id), &keys));
    for (size_t i = 1; i < m->n; i++) {
        size_t *before = &place[keys[i - 1].row];

        if (strcmp(keys[i].text, keys[i - 1].text) != 0)
            continue;
        *before = *before > 0 ? *before : 1;
        place[keys[i].row] = *before + 1;
    }
    free(keys);
    return BM_OK;
}

/* Appends a number to the id of a row, if there is room: else it stays one that
 * occurs twice. */
static bm_status append_number(bm_manifest *m, bm_manifest_entry *e,
                               const char *format, double number)
{
    char id[BM_LONGEST_TAG + 1], text[32];
    int n = 0;

    snprintf(text, sizeof text, format, number);
    n = snprintf(id, sizeof id, "%s%s", m->text + e->id, text);
    return n > 0 && (size_t)n < sizeof id ? keep_id(m, id, &e->id) : BM_OK;
}

/* Appends to ids that were made of excerpts and occur twice the end in
 * milliseconds or, `count`, from the second on a number. */
static bm_status tell_apart(bm_manifest *m, bool count)
{
    size_t *place = NULL;
    bm_status status = count_ids(m, &place);

    for (size_t i = 0; i < m->n && status == BM_OK; i++) {
        bm_manifest_entry *e = &m->entries[i];

        if (place[i] == 0 || !e->made || !is_excerpt(e))
            continue;
        if (count && place[i] > 1)
            status = append_number(m, e, "-%.0f", (double)place[i]);
        else if (!count && e->duration > 0)
            status =
                append_number(m, e, "-%07.0f", 1000 * (e->start + e->duration));
    }
    free(place);
    return status;
}

/* Makes the ids that are missing: of names or, if two files have one name, of
 * paths. Lines of pages get the folder then. Excerpts that begin together get
 * their ends. */
static bm_status complete_ids(bm_manifest *m)
{
    bool made = false, twice = false;

    BM_TRY(make_ids(m, false, &made));
    if (!made)
        return bm_manifest_check_ids(m);
    BM_TRY(find_duplicates(m, &twice));
    if (twice)
        BM_TRY(make_ids(m, true, &made));
    BM_TRY(tell_apart(m, false));
    BM_TRY(tell_apart(m, true));
    return bm_manifest_check_ids(m);
}

static bm_status number_speakers(bm_manifest *m)
{
    sort_key *keys = NULL;

    BM_TRY(sort(m, offsetof(bm_manifest_entry, speaker), &keys));
    for (size_t i = 0; i < m->n; i++) {
        if (i == 0 || strcmp(keys[i].text, keys[i - 1].text) != 0)
            m->speakers++;
        m->entries[keys[i].row].speaker_number = m->speakers - 1;
    }
    free(keys);
    return BM_OK;
}

/* The status of a file that cannot be used, "": it can. */
static const char *why_missing(const char *path)
{
    struct stat info;

    if (access(path, R_OK) != 0 || stat(path, &info) != 0)
        return strerror(errno);
    return S_ISREG(info.st_mode) ? "" : "not a regular file";
}

/* The same for the file of a row. */
static const char *why_unusable(const bm_manifest *m, const char *path)
{
    bool audio = bm_manifest_is_audio(m);
    bm_place place;

    if (bm_manifest_is_pipe(path))
        return "";
    if ((!audio && strcmp(m->kind, "feats") != 0) || access(path, F_OK) == 0)
        return why_missing(path);
    if (!bm_place_parse(&place, path) || (audio && place.cut))
        return audio ? "not a place such as wav.ark:1234"
                     : "not a place such as raw.ark:1234[0:99]";
    return why_missing(place.file);
}

/* One cause, and so one line. */
static bm_status refuse_all(const bm_manifest *m)
{
    const char *path = m->text + m->entries[0].path;

    return BM_FAIL(BM_ERR_MISSING,
                   "none of the %zu files of %s can be opened; line %zu: %s: "
                   "%s%s%s",
                   m->n, m->path, m->entries[0].line, path,
                   why_unusable(m, path), m->folders[0] != '\0' ? "; " : "",
                   m->folders);
}

static bm_status find_missing(bm_manifest *m, double most_missing)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->text + m->entries[i].path;
        const char *why = why_unusable(m, path);

        if (why[0] != '\0')
            fault_of(m, &m->entries[i], "%.300s: %s", path, why);
    }
    if ((double)m->faults.n * 100 <= most_missing * (double)m->n) {
        m->faults = (bm_faults){0}; /* the rows are left out later */
        return BM_OK;
    }
    if (m->faults.n == m->n && m->n > 1)
        return refuse_all(m);
    if (m->faults.n == m->n)
        return bm_manifest_verdict(m, BM_ERR_MISSING, "file cannot be opened",
                                   "");
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: %zu of %zu files cannot be opened:%s%s\nThis is more "
                   "than %g %%, and nothing was packed; mend the files or the "
                   "manifest, or let them pass with --max-left-out %.0f",
                   m->path, m->faults.n, m->n, m->faults.text,
                   bm_faults_more(&m->faults).text, most_missing,
                   ceil((double)m->faults.n * 100 / (double)m->n));
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

    return kind == NULL || strcmp(kind, "a gzip file") == 0 ? BM_OK
                                                            : refuse(m, kind);
}

/* For a first line that is neither JSON nor the header of a table. */
static bm_status refuse_line(const bm_manifest *m)
{
    const char *kind = strcmp(m->path, "-") == 0 ? NULL : bm_text_kind(m->path);

    kind = kind != NULL ? kind : bm_kind_text;
    if (strcmp(m->kind, "image") == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is %s, not a manifest; a list \"id text\" of PyLaia "
                       "needs --image-dir DIR, and a manifest is JSON lines "
                       "such as {\"id\": \"l1\", \"image\": \"l1.png\", "
                       "\"text\": \"one\"}",
                       m->path, kind);
    return refuse(m, kind);
}

/* The format is known by the first line that is not blank. */
static bm_status read_line(bm_manifest *m, bool first, size_t number,
                           char *line, size_t length)
{
    if (first && line[0] != '{' && !bm_manifest_is_header(line))
        return refuse_line(m);
    if (first ? line[0] != '{' : m->table.n > 0)
        return bm_manifest_row_of_table(m, number, line, length);
    return bm_manifest_json(m, number, line, length);
}

static bm_status read_lines(bm_manifest *m)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of some editors */
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
        if (number == 1 && strncmp(line, mark, 3) == 0) {
            line += 3;
            length -= 3;
        }
        if (strspn(line, " \t\r\n") == length)
            continue;
        BM_TRY_DONE(read_line(m, first, number, line, length));
        first = false;
    }
done:
    bm_lines_close(lines);
    return status;
}

static bool is_directory(const char *path)
{
    struct stat info;

    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

static bm_status read_rows(bm_manifest *m, const char *path)
{
    const char *slash = strrchr(path, '/');

    if (is_directory(path) && strcmp(m->kind, "image") != 0)
        return bm_manifest_kaldi(m, path);
    m->path = strdup(path);
    if (m->path == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    m->folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    m->file = m->path;
    return read_lines(m);
}

/* What all rows must be. */
static bm_status check_rows(bm_manifest *m, double most_missing)
{
    m->file = m->path;
    BM_TRY(complete_ids(m));
    BM_TRY(bm_manifest_verdict(m, BM_ERR_FORMAT, "problem", "problems"));
    if (m->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is empty; a manifest has one JSON object per line, "
                       "or a header and one row per line",
                       m->path);
    warn_of_unknown(m);
    BM_TRY(find_missing(m, most_missing));
    m->source = m->path;
    return number_speakers(m);
}

static bm_status read_all(bm_manifest *m, const char *path, double most_missing)
{
    BM_TRY(read_rows(m, path));
    return check_rows(m, most_missing);
}

bm_status bm_manifest_read(bm_manifest **out, const char *path,
                           const char *kind, double most_missing, bool pipes)
{
    bm_manifest *m = calloc(1, sizeof *m);
    bm_status status = BM_OK;

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a manifest");
    m->kind = kind;
    m->source = path;
    m->folders = "paths are relative to the folder of the manifest";
    m->pipes = pipes;
    BM_TRY_DONE(read_all(m, path, most_missing));
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
        .channel = e->channel,
        .line = e->line,
        .speaker_number = e->speaker_number,
        .copy = e->copy,
        .recording = row / (m->copies + 1),
        .of = m->text + m->entries[row - e->copy].id,
    };
}

const char *bm_manifest_why_missing(const bm_manifest *m, size_t row)
{
    return why_unusable(m, m->text + m->entries[row].path);
}
