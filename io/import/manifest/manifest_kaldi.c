/*
 * manifest_kaldi.c - a data directory of Kaldi. Each of its files has lines of a
 * key, a blank and a value:
 *
 *     wav.scp   recording path, or a command that ends with '|'
 *     segments  sequence recording start end
 *     feats.scp sequence path, path:byte or path:byte[first:last]
 *     text      sequence words
 *     utt2spk   sequence speaker
 *
 * Each may be compressed, wav.scp.gz. Rows are those of segments or else of
 * wav.scp, or those of feats.scp, in the order of the file.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/file/path.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "core/text/words.h"
#include "io/place.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A line of a file, and, of sorted ones, whether a row asked for its key. */
typedef struct pair {
    const char *key, *value;
    size_t line;
    bool used;
} pair;

/* A file of pairs. */
typedef struct pairs {
    char path[PATH_MAX];
    const char *name;
    bool there;
    char *text;
    size_t size, room;
    pair *all, *sorted; /* sorted: by key */
    size_t n, room_n;
} pairs;

typedef struct directory {
    bm_manifest *m;
    const char *path;
    pairs list, segments, texts, speakers; /* list: wav.scp or feats.scp */
} directory;

static bm_status append(pairs *p, const char *line, size_t length)
{
    BM_TRY(bm_lines_reserve(p->path, &p->text, &p->room, p->size + length + 1));
    memcpy(p->text + p->size, line, length);
    p->size += length;
    p->text[p->size++] = '\0';
    return BM_OK;
}

static bm_status read_lines(bm_manifest *m, pairs *p)
{
    bm_lines *lines = NULL;
    char *line = NULL;
    size_t length = 0;
    bm_status status = BM_OK;

    BM_TRY(bm_lines_open(&lines, p->path));
    for (;;) {
        BM_TRY_DONE(bm_lines_next(lines, &line, &length));
        if (line == NULL)
            break;
        if (bm_utf8_length(line) != length) {
            bm_manifest_fault(m, bm_lines_number(lines),
                              "byte %zu is not UTF-8; Kaldi's files are in "
                              "UTF-8",
                              bm_utf8_length(line) + 1);
            length = 0;
        }
        BM_TRY_DONE(append(p, line, length));
        p->n++;
    }
done:
    bm_lines_close(lines);
    return status;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* Cuts each line into key and value. Empty lines stay, with the key "". */
static bm_status cut_lines(pairs *p)
{
    char *at = p->text;

    p->all = calloc(p->n + 1, sizeof *p->all);
    p->sorted = calloc(p->n + 1, sizeof *p->sorted);
    if (p->all == NULL || p->sorted == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", p->path);
    for (size_t i = 0; i < p->n; i++) {
        char *next = at + strlen(at) + 1, *end = next - 1;

        while (end > at && is_blank(end[-1]))
            *--end = '\0';
        at += strspn(at, " \t");
        p->all[i] = (pair){.key = at, .line = i + 1};
        at += strcspn(at, " \t");
        while (is_blank(*at))
            *at++ = '\0';
        p->all[i].value = at;
        p->sorted[i] = p->all[i];
        at = next;
    }
    return BM_OK;
}

static int by_key(const void *left, const void *right)
{
    const pair *a = left, *b = right;
    int order = strcmp(a->key, b->key);

    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

/* p->path <- NAME in the directory, or NAME.gz if only that is there; if none is,
 * NAME. */
static bm_status find_file(const directory *d, pairs *p, const char *name)
{
    static const char *const endings[] = {"", ".gz", ""};

    for (size_t k = 0; k < 3 && !p->there; k++) {
        int n = snprintf(p->path, sizeof p->path, "%s/%s%s", d->path, name,
                         endings[k]);

        if (n < 0 || (size_t)n >= sizeof p->path)
            return BM_FAIL(BM_ERR_MISSING, "%.60s..: path too long", d->path);
        p->there = access(p->path, F_OK) == 0;
    }
    p->name = name;
    return BM_OK;
}

static bm_status read_pairs(directory *d, pairs *p, const char *name)
{
    bm_manifest *m = d->m;

    BM_TRY(find_file(d, p, name));
    if (!p->there)
        return BM_OK;
    m->file = p->path;
    BM_TRY(read_lines(m, p));
    BM_TRY(cut_lines(p));
    qsort(p->sorted, p->n, sizeof *p->sorted, by_key);
    for (size_t i = 1; i < p->n; i++)
        if (p->sorted[i].key[0] != '\0' &&
            strcmp(p->sorted[i].key, p->sorted[i - 1].key) == 0)
            bm_manifest_fault(m, p->sorted[i].line,
                              "duplicate key \"%.100s\", also on line %zu",
                              p->sorted[i].key, p->sorted[i - 1].line);
    return BM_OK;
}

static void free_pairs(pairs *p)
{
    free(p->text);
    free(p->all);
    free(p->sorted);
}

/* The line with this key; NULL: there is none. */
static pair *find(pairs *p, const char *key)
{
    size_t low = 0, high = p->n;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (strcmp(p->sorted[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == p->n || strcmp(p->sorted[low].key, key) != 0)
        return NULL;
    p->sorted[low].used = true;
    return &p->sorted[low];
}

/* ---- rows ---------------------------------------------------------------- */

const char *bm_kaldi_resolve(const char *folder, const char *path,
                             char out[PATH_MAX])
{
    bm_place place;
    char inner[PATH_MAX];

    if (path[0] == '/' || bm_manifest_is_pipe(path) ||
        access(path, F_OK) == 0 || !bm_place_parse(&place, path) ||
        access(place.file, F_OK) == 0 ||
        bm_path_join(inner, folder, place.file) != BM_OK ||
        bm_path_join(out, folder, path) != BM_OK)
        return path;
    return access(inner, F_OK) == 0 || access(out, F_OK) == 0 ? out : path;
}

/* Adds a sequence with its text and speaker. */
static bm_status add(directory *d, size_t line, const char *id,
                     const char *path, bm_manifest_fields f)
{
    char resolved[PATH_MAX];
    const pair *text = find(&d->texts, id), *speaker = find(&d->speakers, id);

    f.id = id;
    f.path = bm_kaldi_resolve(d->path, path, resolved);
    f.text = text != NULL ? text->value : NULL;
    f.speaker = speaker != NULL ? speaker->value : NULL;
    if (path[0] == '\0') {
        bm_manifest_fault(d->m, line, "\"%.60s\" has no file", id);
        return BM_OK;
    }
    return bm_manifest_add(d->m, line, &f);
}

/* Seconds, and what follows them; NAN: none. */
static double seconds(const char **at)
{
    char *end = NULL;
    double x = strtod(*at, &end);

    if (end == *at || (*end != '\0' && !is_blank(*end)))
        return (double)NAN;
    *at = end + strspn(end, " \t");
    return x;
}

/* *out, from 1 <- a channel, which Kaldi counts from 0. */
static bool channel(const char *at, long *out)
{
    char *end = NULL;
    long x = strtol(at, &end, 10);

    if (end == at || end[strspn(end, " \t")] != '\0' || x < 0 ||
        x >= BM_MOST_CHANNELS)
        return false;
    *out = x + 1;
    return true;
}

static bm_status add_segment(directory *d, const pair *s)
{
    size_t n = strcspn(s->value, " \t");
    const char *at = s->value + n + strspn(s->value + n, " \t");
    char name[256];
    const pair *recording = NULL;
    bm_manifest_fields f = {0};

    if (n >= sizeof name) {
        bm_manifest_fault(d->m, s->line, "the recording's name is too long");
        return BM_OK;
    }
    snprintf(name, sizeof name, "%.*s", (int)n, s->value);
    f.start = seconds(&at);
    f.end = seconds(&at);
    if (!(f.start >= 0 && f.start <= BM_MOST_SECONDS) ||
        !(f.end <= BM_MOST_SECONDS)) {
        bm_manifest_fault(d->m, s->line,
                          "not \"SEQUENCE RECORDING START END\" in seconds");
        return BM_OK;
    }
    if (f.end <= f.start && f.end != -1) { /* -1: up to the end */
        bm_manifest_fault_once(d->m, s->line, "END %g is not after START %g",
                               f.end, f.start);
        return BM_OK;
    }
    if (*at != '\0' && !channel(at, &f.channel)) {
        bm_manifest_fault(d->m, s->line,
                          "%.20s is not a channel; Kaldi counts them from 0",
                          at);
        return BM_OK;
    }
    if (f.end == -1)
        f.end = 0;
    recording = find(&d->list, name);
    if (recording == NULL) {
        bm_manifest_fault(d->m, s->line, "recording \"%s\" is not in %s", name,
                          d->list.path);
        return BM_OK;
    }
    return add(d, s->line, s->key, recording->value, f);
}

static bm_status add_rows(directory *d, const pairs *rows)
{
    bm_manifest *m = d->m;

    m->file = m->path;
    for (size_t i = 0; i < rows->n; i++) {
        const pair *p = &rows->all[i];

        if (p->key[0] == '\0')
            continue;
        BM_TRY(rows == &d->segments ? add_segment(d, p)
                                    : add(d, p->line, p->key, p->value,
                                          (bm_manifest_fields){0}));
    }
    return BM_OK;
}

/* Names that only one of two files has are a sign of a damaged directory. */
static void warn_of_unused(const pairs *p, const pairs *rows)
{
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++)
        if (!p->sorted[i].used && p->sorted[i].key[0] != '\0')
            first = n++ == 0 ? p->sorted[i].key : first;
    if (n > 0)
        bm_log(BM_WARNING, "%s: %s %s not in %s, e.g. %s", p->path,
               bm_count_noun((long long)n, "id").text, n == 1 ? "is" : "are",
               rows->name, first);
}

static void warn_of_missing_speakers(directory *d)
{
    const bm_manifest *m = d->m;
    pairs *p = &d->speakers;
    const char *first = NULL;
    size_t n = 0;

    for (size_t i = 0; p->there && i < m->n; i++)
        if (find(p, m->text + m->entries[i].id) == NULL)
            first = n++ == 0 ? m->text + m->entries[i].id : first;
    if (n > 0)
        bm_log(BM_WARNING, "%s: no speaker for %s, e.g. %s", p->path,
               bm_count_noun((long long)n, "sequence").text, first);
}

/* For a set of which no sequence has a text. */
static void say_where_texts_are(const directory *d)
{
    bm_manifest *m = d->m;

    snprintf(m->no_texts, sizeof m->no_texts, "%s %s", d->texts.path,
             d->texts.there ? "has none of their ids" : "does not exist");
    snprintf(m->texts_path, sizeof m->texts_path, "%s", d->texts.path);
}

static bm_status read_directory(directory *d)
{
    bm_manifest *m = d->m;
    bool audio = bm_manifest_is_audio(m);
    const char *scp = audio ? "wav.scp" : "feats.scp";
    const pairs *rows = &d->list;

    BM_TRY(read_pairs(d, &d->list, scp));
    if (audio)
        BM_TRY(read_pairs(d, &d->segments, "segments"));
    BM_TRY(read_pairs(d, &d->texts, "text"));
    BM_TRY(read_pairs(d, &d->speakers, "utt2spk"));
    if (!d->list.there)
        return BM_FAIL(BM_ERR_MISSING,
                       "%s has no %s; give a data directory of Kaldi, or a "
                       "manifest",
                       d->path, scp);
    if (d->segments.there)
        rows = &d->segments;
    m->path = strdup(rows->path);
    if (m->path == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", d->path);
    BM_TRY(add_rows(d, rows));
    if (m->n == 0 && m->faults.n == 0)
        return BM_FAIL(BM_ERR_FORMAT, "%s is empty", rows->path);
    say_where_texts_are(d);
    if (m->faults.n > 0) /* of rows, which then are not all there */
        return BM_OK;
    warn_of_unused(&d->texts, rows);
    warn_of_missing_speakers(d);
    return BM_OK;
}

bm_status bm_manifest_kaldi(bm_manifest *m, const char *path)
{
    directory *d = calloc(1, sizeof *d);
    bm_status status = BM_OK;

    if (d == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %s", path);
    d->m = m;
    d->path = path;
    m->folders =
        "a relative path is looked for in the working directory, where "
        "Kaldi ran, and then in the data directory";
    status = read_directory(d);
    m->file = m->path; /* the paths of d end here */
    free_pairs(&d->list);
    free_pairs(&d->segments);
    free_pairs(&d->texts);
    free_pairs(&d->speakers);
    free(d);
    return status;
}
