/*
 * manifest.c - parses JSON lines. All texts share one allocation, so that
 * millions of rows need little more memory than their file.
 */
#include "io/import/manifest.h"

#include "core/faults.h"
#include "io/shard/shard.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A row; texts are offsets into bm_manifest.text. */
typedef struct entry {
    size_t id, path, text, speaker;
    size_t line, speaker_number;
} entry;

struct bm_manifest {
    char *path;
    size_t folder; /* length of the path's directory, with the slash */
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

/* A name for messages and tables: not empty, no control characters. */
static bool is_name(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            return false;
    return true;
}

/* The text under a key; NULL if it is missing or invalid. Adds a fault if it is
 * invalid, or missing although it `must` be there. */
static const char *text_of(bm_manifest *m, size_t line, const json_t *object,
                           const char *key, bool must)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL && must)
        fault(m, line, "\"%s\" is missing", key);
    else if (value != NULL && !json_is_string(value))
        fault(m, line, "\"%s\" is not a text", key);
    else if (must && !is_name(json_string_value(value)))
        fault(m, line, "\"%s\" is empty or has control characters", key);
    else if (value != NULL)
        return json_string_value(value);
    return NULL;
}

static bm_status keep_path(bm_manifest *m, const char *path, size_t *at)
{
    size_t rest = 0;

    BM_TRY(keep(m, m->path, path[0] == '/' ? 0 : m->folder, false, at));
    return keep(m, path, strlen(path), true, &rest);
}

static bm_status read_object(bm_manifest *m, size_t line, const json_t *object,
                             const char *kind)
{
    size_t before = m->faults.n;
    const char *id = NULL, *path = NULL, *text = NULL, *speaker = NULL;
    entry e = {.line = line};

    if (!json_is_object(object)) {
        fault(m, line, "not a JSON object { .. }");
        return BM_OK;
    }
    id = text_of(m, line, object, "id", true);
    path = text_of(m, line, object, kind, true);
    text = text_of(m, line, object, "text", false);
    speaker = text_of(m, line, object, "speaker", false);
    if (id != NULL && strlen(id) > BM_LONGEST_TAG)
        fault(m, line, "the id is longer than %d bytes", BM_LONGEST_TAG);
    if (m->faults.n > before || id == NULL || path == NULL)
        return BM_OK;
    text = text != NULL ? text : "";
    speaker = speaker != NULL ? speaker : "";
    BM_TRY(keep(m, id, strlen(id), true, &e.id));
    BM_TRY(keep_path(m, path, &e.path));
    BM_TRY(keep(m, text, strlen(text), true, &e.text));
    BM_TRY(keep(m, speaker, strlen(speaker), true, &e.speaker));
    return add(m, e);
}

static bm_status read_line(bm_manifest *m, size_t number, const char *line,
                           size_t length, const char *kind)
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
        status = read_object(m, number, object, kind);
    json_decref(object);
    return status;
}

static bm_status read_lines(bm_manifest *m, const char *kind)
{
    FILE *file = fopen(m->path, "r");
    char *line = NULL;
    size_t room = 0, number = 0;
    ssize_t length = 0;
    bm_status status = BM_OK;

    if (file == NULL)
        return BM_FAIL(errno == ENOENT ? BM_ERR_MISSING : BM_ERR_IO, "%s: %s",
                       m->path, strerror(errno));
    while ((length = getline(&line, &room, file)) >= 0)
        BM_TRY_DONE(read_line(m, ++number, line, (size_t)length, kind));
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

static bm_status find_missing(bm_manifest *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *path = m->text + m->entries[i].path;
        if (access(path, R_OK) != 0)
            fault(m, m->entries[i].line, "%.300s: %s", path, strerror(errno));
    }
    return verdict(m, BM_ERR_MISSING, "file cannot be opened",
                   "files cannot be opened");
}

static bm_status read_all(bm_manifest *m, const char *path, const char *kind)
{
    const char *slash = strrchr(path, '/');

    m->path = strdup(path);
    if (m->path == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    m->folder = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    BM_TRY(read_lines(m, kind));
    BM_TRY(find_duplicates(m));
    BM_TRY(verdict(m, BM_ERR_FORMAT, "problem", "problems"));
    if (m->n == 0)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s is empty; a manifest has one JSON object per line",
                       path);
    BM_TRY(find_missing(m));
    return number_speakers(m);
}

bm_status bm_manifest_read(bm_manifest **out, const char *path,
                           const char *kind)
{
    bm_manifest *m = calloc(1, sizeof *m);
    bm_status status = BM_OK;

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a manifest");
    BM_TRY_DONE(read_all(m, path, kind));
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
        .speaker = m->text + e->speaker,
        .line = e->line,
        .speaker_number = e->speaker_number,
    };
}
