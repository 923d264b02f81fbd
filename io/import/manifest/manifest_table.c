/*
 * manifest_table.c - tables with a header. Where values are separated by commas
 * or semicolons, one may be in double quotes, in which "" is a quote.
 */
#include "io/import/manifest/manifest_parts.h"

#include "core/text/printable.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { UNKNOWN = -1 };

#define FIELD(name) offsetof(bm_manifest_fields, name)

/* Tab, |, ; or else a comma: the first of them that the header has. */
char bm_manifest_delimiter(const char *header)
{
    static const char delimiters[] = "\t|;";

    for (const char *d = delimiters; *d != '\0'; d++)
        if (strchr(header, *d) != NULL)
            return *d;
    return ',';
}

/* Cuts the value at *at off, without its quotes and the blanks around it, and ends
 * it with '\0'. *at becomes NULL after the last one. Returns NULL if a quote is not
 * closed. */
static char *next_value(char **at, char delimiter)
{
    char *from = *at + strspn(*at, " "), *to = from, *c = from, *quoted = from;

    if (strchr(",;", delimiter) != NULL && *c == '"') {
        for (c++; *c != '\0' && (*c != '"' || c[1] == '"'); c++) {
            c += *c == '"';
            *to++ = *c;
        }
        if (*c == '\0')
            return NULL;
        c++;
        quoted = to;
    }
    while (*c != '\0' && *c != delimiter)
        *to++ = *c++;
    while (to > quoted && to[-1] == ' ')
        to--;
    *at = *c != '\0' ? c + 1 : NULL;
    *to = '\0';
    return from;
}

/* Is the name of a file among the columns, or are there several with another? */
bool bm_manifest_is_header(const char *line)
{
    char delimiter = bm_manifest_delimiter(line), word[64];
    bool several = strchr(line, delimiter) != NULL;

    for (const char *at = line; at != NULL;) {
        const char *end = strchr(at, delimiter);
        size_t n = end != NULL ? (size_t)(end - at) : strlen(at);
        int name = UNKNOWN;

        while (n > 0 && (at[n - 1] == '"' || at[n - 1] == ' '))
            n--;
        while (n > 0 && (*at == '"' || *at == ' '))
            at++, n--;
        if (n < sizeof word) {
            memcpy(word, at, n);
            word[n] = '\0';
            name = bm_manifest_find_name(word);
        }
        if (name != UNKNOWN &&
            (several || bm_manifest_names[name].field == FIELD(path)))
            return true;
        at = end != NULL ? end + 1 : NULL;
    }
    return false;
}

static bool has(const bool chosen[], size_t field)
{
    for (int k = 0; k < BM_MANIFEST_NAMES; k++)
        if (chosen[k] && bm_manifest_names[k].field == field)
            return true;
    return false;
}

/* Fails unless a column is of files. columns: their names, for the message. */
static bm_status check_header(bm_manifest *m, size_t line, const bool chosen[],
                              const char *columns)
{
    const char *wanted = "features (feats, path, file ..)";

    if (bm_manifest_is_audio(m))
        wanted = "recording (audio, path, file, wav_filename ..)";
    else if (strcmp(m->kind, "image") == 0)
        wanted = "image (image, path, file, file_name ..)";
    if (!has(chosen, FIELD(text)))
        snprintf(m->no_texts, sizeof m->no_texts,
                 "%.4000s has no column text, transcription, sentence ..",
                 m->path);
    if (has(chosen, FIELD(path)) || m->faults.n > 0)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s:%zu: no column names the %s; the columns are %s",
                   m->path, line, wanted, columns);
}

static bm_status read_header(bm_manifest *m, size_t line, char *text)
{
    bm_manifest_table *t = &m->table;
    const char *spelled[BM_MANIFEST_NAMES] = {NULL};
    bool chosen[BM_MANIFEST_NAMES] = {false};
    char columns[600] = "";

    t->delimiter = bm_manifest_delimiter(text);
    while (text != NULL && t->n < BM_MOST_COLUMNS) {
        const char *column = next_value(&text, t->delimiter);
        int name = column != NULL ? bm_manifest_find_name(column) : UNKNOWN;
        size_t used = strlen(columns);

        if (column == NULL)
            break;
        snprintf(columns + used, sizeof columns - used, "%s%.40s",
                 t->n > 0 ? ", " : "", column);
        if (name == UNKNOWN)
            bm_manifest_count_unknown(m, column);
        else if (spelled[name] != NULL)
            bm_manifest_fault(m, line, "two columns \"%s\"; give only one",
                              column);
        else
            spelled[name] = column;
        t->name[t->n++] = name;
    }
    bm_manifest_choose(m, line, spelled, chosen);
    for (size_t k = 0; k < t->n; k++)
        if (t->name[k] != UNKNOWN && !chosen[t->name[k]])
            t->name[k] = UNKNOWN;
    return check_header(m, line, chosen, columns);
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

static void set_field(bm_manifest *m, size_t line, const bm_manifest_name *name,
                      const char *value, bm_manifest_fields *f)
{
    char *field = (char *)f + name->field;
    double x = 0;

    if (!name->number) {
        memcpy(field, &value, sizeof value);
        return;
    }
    if (value[0] != '\0')
        x = seconds(m, line, name->name, value);
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
        if (t->name[n] != UNKNOWN)
            set_field(m, line, &bm_manifest_names[t->name[n]], value, &f);
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
    if (bm_utf8_length(text) != length) {
        bm_manifest_fault_utf8(m, line, bm_utf8_length(text) + 1);
        return BM_OK;
    }
    return m->table.n > 0 ? read_row(m, line, text)
                          : read_header(m, line, text);
}
