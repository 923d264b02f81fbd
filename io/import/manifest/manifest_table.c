/*
 * manifest_table.c - tables with a header, with the names that other programs
 * give their columns: Common Voice (path, sentence, client_id), DeepSpeech
 * (wav_filename, transcript). In tables with commas a value may be in double
 * quotes, in which "" is a quote.
 */
#include "io/import/manifest/manifest_parts.h"

#include "io/vocab.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1 };

/* Names of columns. `number`: the field is of seconds. */
static const struct {
    const char *name;
    size_t field;
    bool number;
} columns[] = {
#define TEXT(name, field)                                                      \
    {                                                                          \
        name, offsetof(bm_manifest_fields, field), false                       \
    }
#define NUMBER(name, field)                                                    \
    {                                                                          \
        name, offsetof(bm_manifest_fields, field), true                        \
    }
    TEXT("id", id),
    TEXT("utt_id", id),
    TEXT("audio", path),
    TEXT("image", path),
    TEXT("feats", path),
    TEXT("path", path),
    TEXT("audio_filepath", path),
    TEXT("wav_filename", path),
    TEXT("text", text),
    TEXT("sentence", text),
    TEXT("transcript", text),
    TEXT("speaker", speaker),
    TEXT("client_id", speaker),
    NUMBER("start", start),
    NUMBER("offset", start),
    NUMBER("duration", duration),
    NUMBER("end", end),
};

enum { COLUMNS = sizeof columns / sizeof columns[0] };

/* Cuts the value at *at off, without its quotes, and ends it with '\0'. *at
 * becomes NULL behind the last one. Returns NULL if a quote is not closed. */
static char *next_value(char **at, char delimiter)
{
    char *from = *at, *to = from, *c = from;

    if (delimiter == ',' && *c == '"') {
        for (c++; *c != '\0' && (*c != '"' || c[1] == '"'); c++) {
            c += *c == '"';
            *to++ = *c;
        }
        if (*c == '\0')
            return NULL;
        c++;
        while (*c != '\0' && *c != delimiter)
            *to++ = *c++;
    } else {
        while (*c != '\0' && *c != delimiter)
            c++;
        to = c;
    }
    *at = *c != '\0' ? c + 1 : NULL;
    *to = '\0';
    return from;
}

static int find_column(const char *name)
{
    for (int i = 0; i < COLUMNS; i++)
        if (strcmp(columns[i].name, name) == 0)
            return i;
    return UNKNOWN;
}

/* Is there a column for files among the words? */
bool bm_manifest_is_header(const char *line)
{
    char delimiter = strchr(line, '\t') != NULL ? '\t' : ',';
    char name[64];

    for (const char *at = line; at != NULL;) {
        const char *end = strchr(at, delimiter);
        size_t n = end != NULL ? (size_t)(end - at) : strlen(at);
        int column = UNKNOWN;

        while (n > 0 && (at[n - 1] == '"' || at[n - 1] == ' '))
            n--;
        while (n > 0 && (*at == '"' || *at == ' '))
            at++, n--;
        if (n < sizeof name) {
            memcpy(name, at, n);
            name[n] = '\0';
            column = find_column(name);
        }
        if (column != UNKNOWN &&
            columns[column].field == offsetof(bm_manifest_fields, path))
            return true;
        at = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static void read_header(bm_manifest *m, size_t line, char *text)
{
    bm_manifest_table *t = &m->table;
    bool seen[COLUMNS] = {false};

    t->delimiter = strchr(text, '\t') != NULL ? '\t' : ',';
    while (text != NULL && t->n < BM_MOST_COLUMNS) {
        char *name = next_value(&text, t->delimiter);
        int column = name != NULL ? find_column(name) : UNKNOWN;

        for (int i = 0; i < COLUMNS && column != UNKNOWN; i++)
            if (seen[i] && columns[i].field == columns[column].field)
                bm_manifest_fault(m, line,
                                  "columns \"%s\" and \"%s\"; give only one",
                                  columns[i].name, name);
        if (column != UNKNOWN)
            seen[column] = true;
        else if (name != NULL)
            bm_manifest_count_unknown(m, name);
        else
            text = NULL;
        t->field[t->n++] = column;
    }
}

/* Seconds, of a value that is not empty. */
static double seconds(bm_manifest *m, size_t line, const char *name,
                      const char *value)
{
    char *end = NULL;
    double x = strtod(value, &end);

    if (!bm_manifest_is_audio(m))
        bm_manifest_fault(m, line,
                          "\"%s\" is for recordings; cut \"%s\" before packing",
                          name, m->kind);
    else if (end == value || *end != '\0' || !(x >= 0 && x <= BM_MOST_SECONDS))
        bm_manifest_fault(m, line,
                          "\"%s\" is not a number of seconds from 0 to %g: "
                          "%.40s",
                          name, BM_MOST_SECONDS, value);
    return x;
}

static void set_field(bm_manifest *m, size_t line, int column,
                      const char *value, bm_manifest_fields *f)
{
    char *field = (char *)f + columns[column].field;
    double x = 0;

    if (!columns[column].number) {
        memcpy(field, &value, sizeof value);
        return;
    }
    if (value[0] != '\0')
        x = seconds(m, line, columns[column].name, value);
    memcpy(field, &x, sizeof x);
}

static bm_status read_row(bm_manifest *m, size_t line, char *text)
{
    const bm_manifest_table *t = &m->table;
    size_t before = m->faults.n, n = 0;
    bm_manifest_fields f = {0};

    for (; text != NULL && n < t->n; n++) {
        const char *value = next_value(&text, t->delimiter);

        if (value == NULL) {
            bm_manifest_fault(m, line,
                              "a quote is not closed; a value cannot go on in "
                              "the next line");
            return BM_OK;
        }
        if (t->field[n] != UNKNOWN)
            set_field(m, line, t->field[n], value, &f);
    }
    if (n < t->n || text != NULL)
        bm_manifest_fault(m, line, "%s than the %zu columns of the header",
                          n < t->n ? "fewer values" : "more values", t->n);
    return m->faults.n > before ? BM_OK : bm_manifest_add(m, line, &f);
}

bm_status bm_manifest_row_of_table(bm_manifest *m, size_t line, char *text,
                                   size_t length)
{
    if (strlen(text) != length) {
        bm_manifest_fault(m, line, "byte %zu is zero; not a text",
                          strlen(text) + 1);
        return BM_OK;
    }
    if (bm_text_utf8(text) != length) {
        bm_manifest_fault(m, line, "byte %zu is not UTF-8",
                          bm_text_utf8(text) + 1);
        return BM_OK;
    }
    if (m->table.n > 0)
        return read_row(m, line, text);
    read_header(m, line, text);
    return BM_OK;
}
