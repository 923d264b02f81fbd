/*
 * manifest.c - parses JSON lines. All texts share one allocation, so that
 * millions of rows need little more memory than their file.
 */
#include "io/import/manifest.h"

#include "core/faults.h"
#include "core/file.h"
#include "core/file_kind.h"
#include "core/log.h"
#include "core/words.h"
#include "io/shard/shard.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_UNKNOWN = 32 };

/* Longer ones are taken for an error in the unit. */
static const double most_seconds = 1e6;

/* A row; texts are offsets into bm_manifest.text. */
typedef struct entry {
    size_t id, path, text, speaker;
    size_t line, speaker_number;
    double start, duration;
    bool has_text;
} entry;

/* A field that is not understood, and how many lines have it. */
typedef struct unknown {
    char key[48];
    size_t n;
} unknown;

struct bm_manifest {
    char *path;
    const char *kind; /* the key of the files */
    size_t folder;    /* length of the path's directory, with the slash */
    unknown unknown[MOST_UNKNOWN];
    size_t n_unknown;
    entry *entries;
    size_t n, room;
    char *text;
    size_t used, text_room;
    size_t speakers;
    bm_faults faults;
};

/* Sorts rows by one of their texts. */
typedef struct sort_key {
    const char *text;
    size_t row;
} sort_key;

static void fault(bm_manifest *m, size_t line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void fault(bm_manifest *m, size_t line, const char *format, ...)
{
    char where[600];
    va_list args;

    snprintf(where, sizeof where, "%.500s:%zu", m->path, line);
    va_start(args, format);
    bm_fault_add_list(&m->faults, where, format, args);
    va_end(args);
}

/* Fails if there are faults; `one` and `many`: singular and plural of the
 * noun. */
static bm_status verdict(const bm_manifest *m, bm_status status,
                         const char *one, const char *many)
{
    const bm_faults *f = &m->faults;

    if (f->n == 0)
        return BM_OK;
    return BM_FAIL(status, "%s: %zu %s:%s%s", m->path, f->n,
                   f->n == 1 ? one : many, f->text, bm_faults_more(f).text);
}

/* Appends `length` bytes, and a '\0' if `ends`. *at: offset of the first. */
static bm_status keep(bm_manifest *m, const char *text, size_t length,
                      bool ends, size_t *at)
{
    size_t needed = m->used + length + 1;

    if (needed > m->text_room) {
        size_t room = 2 * needed + 4096;
        char *grown = realloc(m->text, room);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu bytes of %s", room,
                           m->path);
        m->text = grown;
        m->text_room = room;
    }
    *at = m->used;
    memcpy(m->text + m->used, text, length);
    m->used += length;
    if (ends)
        m->text[m->used++] = '\0';
    return BM_OK;
}

static bm_status add(bm_manifest *m, entry e)
{
    if (m->n == m->room) {
        size_t room = m->room > 0 ? 2 * m->room : 256;
        entry *grown = realloc(m->entries, room * sizeof *grown);
        if (grown == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu rows of %s", room,
                           m->path);
        m->entries = grown;
        m->room = room;
    }
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

/* The value of a field, which has one of two names; NULL if it is missing. */
static const json_t *value_of(bm_manifest *m, size_t line, const json_t *object,
                              const char *key, const char *other)
{
    const json_t *value = json_object_get(object, key);
    const json_t *second =
        other != NULL ? json_object_get(object, other) : NULL;

    if (value != NULL && second != NULL)
        fault(m, line, "both \"%s\" and \"%s\"; give only one", key, other);
    return value != NULL ? value : second;
}

static bool is_audio(const bm_manifest *m)
{
    return strcmp(m->kind, "audio") == 0;
}

/* The text of a field; NULL if it is missing or invalid. Adds a fault if it is
 * not a text. */
static const char *text_of(bm_manifest *m, size_t line, const json_t *value,
                           const char *key)
{
    if (value != NULL && !json_is_string(value))
        fault(m, line, "\"%s\" is not a text", key);
    return json_string_value(value);
}

/* The same for a field that must be there. */
static const char *name_of(bm_manifest *m, size_t line, const json_t *value,
                           const char *key, bool blanks)
{
    const char *text = text_of(m, line, value, key);

    if (value == NULL)
        fault(m, line, "\"%s\" is missing", key);
    else if (text != NULL && !is_name(text, true))
        fault(m, line, "\"%s\" is empty or has control characters", key);
    else if (text != NULL && !is_name(text, blanks))
        fault(m, line,
              "\"%s\" has a blank: \"%.60s\"; trn and ctm files are "
              "split at blanks",
              key, text);
    else
        return text;
    return NULL;
}

/* Seconds; 0 if the field is missing. */
static double seconds_of(bm_manifest *m, size_t line, const json_t *object,
                         const char *key, const char *other, double least)
{
    const json_t *value = value_of(m, line, object, key, other);
    double x = json_number_value(value);

    if (value == NULL)
        return 0;
    if (!is_audio(m))
        fault(m, line, "\"%s\" is for recordings; cut \"%s\" before packing",
              json_object_get(object, key) != NULL ? key : other, m->kind);
    else if (!json_is_number(value) || !(x >= least && x <= most_seconds))
        fault(m, line, "\"%s\" is not a number of seconds from %g to %g",
              json_object_get(object, key) != NULL ? key : other, least,
              most_seconds);
    return x;
}

static void read_excerpt(bm_manifest *m, size_t line, const json_t *object,
                         entry *e)
{
    static const double shortest = 1e-6;
    double end = 0;

    e->start = seconds_of(m, line, object, "start", "offset", 0);
    e->duration = seconds_of(m, line, object, "duration", NULL, shortest);
    end = seconds_of(m, line, object, "end", NULL, shortest);
    if (end > 0 && e->duration > 0)
        fault(m, line, "both \"duration\" and \"end\"; give only one");
    else if (end > 0 && end - e->start < shortest)
        fault(m, line, "\"end\" %g is not behind \"start\" %g", end, e->start);
    else if (end > 0)
        e->duration = end - e->start;
}

/* Counts the fields that are not understood. */
static void find_unknown(bm_manifest *m, json_t *object)
{
    const char *key = NULL;
    json_t *value = NULL;

    json_object_foreach(object, key, value)
    {
        unknown *u = m->unknown;

        if (bm_is_word_of(key, "id text speaker start offset duration end") ||
            strcmp(key, m->kind) == 0 ||
            (is_audio(m) && strcmp(key, "audio_filepath") == 0))
            continue;
        while (u < m->unknown + m->n_unknown &&
               strncmp(u->key, key, sizeof u->key - 1) != 0)
            u++;
        if (u == m->unknown + MOST_UNKNOWN)
            continue;
        if (u == m->unknown + m->n_unknown) {
            m->n_unknown++;
            snprintf(u->key, sizeof u->key, "%s", key);
        }
        u->n++;
    }
}

static void warn_of_unknown(bm_manifest *m)
{
    for (unknown *u = m->unknown; u < m->unknown + m->n_unknown; u++) {
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

static bm_status keep_path(bm_manifest *m, const char *path, size_t *at)
{
    size_t rest = 0;

    BM_TRY(keep(m, m->path, path[0] == '/' ? 0 : m->folder, false, at));
    return keep(m, path, strlen(path), true, &rest);
}

static bm_status read_object(bm_manifest *m, size_t line, json_t *object)
{
    size_t before = m->faults.n;
    const char *id = NULL, *path = NULL, *text = NULL, *speaker = NULL;
    entry e = {.line = line};

    if (!json_is_object(object)) {
        fault(m, line, "not a JSON object { .. }");
        return BM_OK;
    }
    id = name_of(m, line, json_object_get(object, "id"), "id", false);
    path = name_of(m, line,
                   value_of(m, line, object, m->kind,
                            is_audio(m) ? "audio_filepath" : NULL),
                   m->kind, true);
    text = text_of(m, line, json_object_get(object, "text"), "text");
    speaker = text_of(m, line, json_object_get(object, "speaker"), "speaker");
    read_excerpt(m, line, object, &e);
    find_unknown(m, object);
    if (id != NULL && strlen(id) > BM_LONGEST_TAG)
        fault(m, line, "the id is longer than %d bytes", BM_LONGEST_TAG);
    if (m->faults.n > before || id == NULL || path == NULL)
        return BM_OK;
    e.has_text = text != NULL;
    text = text != NULL ? text : "";
    speaker = speaker != NULL ? speaker : "";
    BM_TRY(keep(m, id, strlen(id), true, &e.id));
    BM_TRY(keep_path(m, path, &e.path));
    BM_TRY(keep(m, text, strlen(text), true, &e.text));
    BM_TRY(keep(m, speaker, strlen(speaker), true, &e.speaker));
    return add(m, e);
}

static bm_status read_line(bm_manifest *m, size_t number, const char *line,
                           size_t length)
{
    static const char mark[] = "\xef\xbb\xbf"; /* of some editors */
    json_error_t error;
    json_t *object = NULL;
    bm_status status = BM_OK;

    if (number == 1 && strncmp(line, mark, 3) == 0) {
        line += 3;
        length -= 3;
    }
    if (strspn(line, " \t\r\n") == length)
        return BM_OK;
    object = json_loadb(line, length, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL)
        fault(m, number, "not JSON: %s", error.text);
    else
        status = read_object(m, number, object);
    json_decref(object);
    return status;
}

static bm_status read_lines(bm_manifest *m)
{
    FILE *file = NULL;
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t length = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_file_open_stream(&file, m->path));
    while ((length = getline(&line, &room, file)) >= 0)
        BM_TRY_DONE(read_line(m, ++number, line, (size_t)length));
    if (ferror(file))
        BM_FAIL_DONE(BM_ERR_IO, "%s: cannot be read: %s", m->path,
                     strerror(errno));
done:
    free(line);
    fclose(file);
    return status;
}

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

static bm_status find_duplicates(bm_manifest *m)
{
    sort_key *keys = NULL;

    BM_TRY(sort(m, offsetof(entry, id), &keys));
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(keys[i].text, keys[i - 1].text) == 0)
            fault(m, m->entries[keys[i].row].line,
                  "duplicate id \"%.100s\", also on line %zu", keys[i].text,
                  m->entries[keys[i - 1].row].line);
    free(keys);
    return BM_OK;
}

static bm_status number_speakers(bm_manifest *m)
{
    sort_key *keys = NULL;

    BM_TRY(sort(m, offsetof(entry, speaker), &keys));
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

static bm_status find_missing(bm_manifest *m, double most_missing)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->text + m->entries[i].path;
        const char *why = why_missing(path);

        if (why[0] != '\0')
            fault(m, m->entries[i].line, "%.300s: %s", path, why);
    }
    if ((double)m->faults.n * 100 <= most_missing * (double)m->n)
        return BM_OK;
    if (m->faults.n == m->n)
        return verdict(m, BM_ERR_MISSING, "file cannot be opened",
                       "files cannot be opened");
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: %zu of %zu files cannot be opened:%s%s\nThis is more "
                   "than %g %%, and nothing was packed; mend the files or the "
                   "manifest, or let them pass with --max-left-out %.0f",
                   m->path, m->faults.n, m->n, m->faults.text,
                   bm_faults_more(&m->faults).text, most_missing,
                   ceil((double)m->faults.n * 100 / (double)m->n));
}

/* A file of another kind would give an error for each of its lines. */
static bm_status check_kind(const bm_manifest *m)
{
    const char *kind = bm_file_kind(m->path);

    if (kind == NULL)
        kind = bm_text_kind(m->path);
    if (kind == NULL || strcmp(kind, "JSON") == 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT, "%s is %s, not a manifest; %s", m->path, kind,
                   bm_file_kind_use(kind));
}

static bm_status read_all(bm_manifest *m, const char *path, double most_missing)
{
    const char *slash = strrchr(path, '/');

    m->path = strdup(path);
    if (m->path == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    m->folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    BM_TRY(check_kind(m));
    BM_TRY(read_lines(m));
    BM_TRY(find_duplicates(m));
    BM_TRY(verdict(m, BM_ERR_FORMAT, "problem", "problems"));
    if (m->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is empty; a manifest has one JSON object per line",
                       path);
    warn_of_unknown(m);
    BM_TRY(find_missing(m, most_missing));
    return number_speakers(m);
}

bm_status bm_manifest_read(bm_manifest **out, const char *path,
                           const char *kind, double most_missing)
{
    bm_manifest *m = calloc(1, sizeof *m);
    bm_status status = BM_OK;

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a manifest");
    m->kind = kind;
    BM_TRY_DONE(read_all(m, path, most_missing));
    *out = m;
    m = NULL;
done:
    bm_manifest_free(m);
    return status;
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

bm_manifest_row bm_manifest_at(const bm_manifest *m, size_t row)
{
    const entry *e = &m->entries[row];

    return (bm_manifest_row){
        .id = m->text + e->id,
        .path = m->text + e->path,
        .text = m->text + e->text,
        .has_text = e->has_text,
        .speaker = m->text + e->speaker,
        .start = e->start,
        .duration = e->duration,
        .line = e->line,
        .speaker_number = e->speaker_number,
    };
}
