/*
 * journal_csv.c - reads the journals twice: for the names of the columns, then
 * for the rows. The format is RFC 4180: lines end with CR LF, a value with a
 * comma, a quote or a line break is quoted, null is empty.
 */
#include "cli/report/journal_csv.h"

#include "cli/report/journal_events.h"
#include "cli/report/runs/describe.h"
#include "core/file/file.h"
#include "core/text/printable.h"

#include <stdlib.h>
#include <string.h>

typedef struct table {
    const char *run;  /* the name of the run that is read */
    const char *kind; /* of the events that are wanted; NULL: all */
    json_t *columns;  /* an object, whose keys keep their order */
    json_t *kinds;    /* all kinds of events that were seen, likewise */
    json_int_t attempt;
    FILE *out; /* NULL: columns are collected */
} table;

/* ---- one row ------------------------------------------------------------- */

/* A value that RFC 4180 lets stand without quotes is written as it is. */
static void write_text(const char *text, FILE *out)
{
    if (strpbrk(text, ",\"\r\n") == NULL) {
        fputs(text, out);
        return;
    }
    fputc('"', out);
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"')
            fputc('"', out);
        fputc(*c, out);
    }
    fputc('"', out);
}

/* Texts without control characters; numbers with the digits of the journal. */
static void write_value(const json_t *value, FILE *out)
{
    char *text = json_is_string(value)
                     ? bm_printable_copy(json_string_value(value))
                     : json_dumps(value, JSON_ENCODE_ANY | JSON_COMPACT |
                                             JSON_REAL_PRECISION(9));

    if (text != NULL && !json_is_null(value))
        write_text(text, out);
    free(text);
}

static void write_row(const table *t, const json_t *event)
{
    const char *key = NULL;
    json_t *unused = NULL;

    write_text(t->run, t->out);
    fprintf(t->out, ",%lld", (long long)t->attempt);
    json_object_foreach(t->columns, key, unused)
    {
        fputc(',', t->out);
        write_value(json_object_get(event, key), t->out);
    }
    fputs("\r\n", t->out);
}

static void write_header(const table *t)
{
    const char *key = NULL;
    json_t *unused = NULL;

    fputs("run,attempt", t->out);
    json_object_foreach(t->columns, key, unused)
    {
        fputc(',', t->out);
        write_text(key, t->out);
    }
    fputs("\r\n", t->out);
}

/* ---- journals ------------------------------------------------------------ */

static void collect(table *t, const json_t *event)
{
    const char *key = NULL;
    json_t *unused = NULL;

    json_object_foreach((json_t *)event, key, unused)
        /* The field `attempt` of a start is the column of every event. */
        if (strcmp(key, "attempt") != 0)
            json_object_set_new(t->columns, key, json_null());
}

static void take(void *self, const char *kind, json_t *event)
{
    table *t = self;

    if (strcmp(kind, "start") == 0)
        t->attempt = json_integer_value(json_object_get(event, "attempt"));
    json_object_set_new(t->kinds, kind, json_null());
    if (t->kind != NULL && strcmp(t->kind, kind) != 0)
        return;
    if (t->out != NULL)
        write_row(t, event);
    else
        collect(t, event);
}

static bm_status read_one(void *self, const char *path, const char *name)
{
    table *t = self;

    t->run = name;
    t->attempt = 0;
    return bm_journal_events(path, take, t);
}

/* It warns when it reads them for the second time. */
static bm_status read_all(table *t, const char *directory)
{
    char name[256];

    if (!bm_is_run(directory))
        return bm_runs_each(directory, t->out == NULL, read_one, t);
    bm_file_name(directory, name, sizeof name);
    return read_one(t, directory, name);
}

/* Names the kinds that there are. */
static bm_status no_such_kind(const table *t, const char *directory)
{
    char list[512] = "";
    const char *key = NULL;
    json_t *unused = NULL;

    json_object_foreach(t->kinds, key, unused)
        snprintf(list + strlen(list), sizeof list - strlen(list), " %s", key);
    return BM_FAIL(BM_ERR_ARG, "--event %s: %s has no such event, only%s",
                   t->kind, directory, list[0] != '\0' ? list : " none");
}

bm_status bm_journal_csv(const char *directory, const char *kind, FILE *out)
{
    table t = {.kind = kind, .columns = json_object(), .kinds = json_object()};
    bm_status status = BM_OK;

    if (t.columns == NULL || t.kinds == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for a table");
    status = read_all(&t, directory);
    if (json_object_size(t.kinds) == 0)
        BM_TRY_DONE(status);
    if (kind != NULL && json_object_get(t.kinds, kind) == NULL)
        BM_TRY_DONE(no_such_kind(&t, directory));
    t.out = out;
    write_header(&t);
    status = read_all(&t, directory);
done:
    json_decref(t.columns);
    json_decref(t.kinds);
    return status;
}
