/*
 * trace.c - bmuf trace: merges the traces of all ranks of a run and prints a
 * table of their times.
 */
#include "cli/json_output.h"
#include "cli/outputs.h"
#include "cli/report/runs/describe.h"
#include "cli/report/trace_table.h"
#include "cli/verbs.h"
#include "core/file/file.h"
#include "core/file/search_folder.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* Handles one rank's file at a time, as they are large. */
typedef struct merger {
    const char *run;
    int ranks, attempt; /* of rank 0's file */
    bm_trace_table table;
    FILE *out;
    bool first; /* no event has been written yet */
} merger;

static void path_of(const char *run, int rank, char *out, size_t room)
{
    snprintf(out, room, "%s/trace/rank-%d.json", run, rank);
}

static bm_status check_exists(const char *run, const char *path)
{
    if (access(path, F_OK) == 0)
        return BM_OK;
    if (access(run, F_OK) != 0)
        return BM_FAIL(BM_ERR_MISSING, "%s: %s", run, strerror(errno));
    BM_TRY(bm_search_folder_refuse(run));
    if (!bm_is_run(run))
        return BM_FAIL(BM_ERR_MISSING,
                       "%s is not a run; give the folder of one run, which has "
                       "a journal.jsonl",
                       run);
    return BM_FAIL(BM_ERR_MISSING,
                   "%s does not exist; to record a trace, train with job.trace "
                   "= blocks A:B, of blocks that the run has",
                   path);
}

static bm_status load(const char *run, int rank, const char *path, json_t **out)
{
    json_error_t error;
    json_t *file = NULL;

    if (rank > 0 && access(path, F_OK) != 0)
        return BM_FAIL(BM_ERR_MISSING,
                       "%s does not exist, but the run has the trace of rank "
                       "0; copy the file from the host of rank %d",
                       path, rank);
    BM_TRY(check_exists(run, path));
    file = json_load_file(path, 0, &error);
    if (file == NULL)
        return BM_FAIL(BM_ERR_FORMAT, "%s:%d: %s", path, error.line,
                       error.text);
    if (json_is_array(json_object_get(file, "traceEvents")) &&
        json_is_object(json_object_get(file, "otherData")) &&
        json_integer_value(json_object_get(json_object_get(file, "otherData"),
                                           "rank")) == rank) {
        *out = file;
        return BM_OK;
    }
    json_decref(file);
    return BM_FAIL(BM_ERR_FORMAT, "%s is not a trace of rank %d", path, rank);
}

static int header_number(const json_t *file, const char *key)
{
    return (int)json_integer_value(
        json_object_get(json_object_get(file, "otherData"), key));
}

static bm_status check_together(const merger *m, const json_t *file,
                                const char *path)
{
    if (header_number(file, "ranks") == m->ranks &&
        header_number(file, "attempt") == m->attempt)
        return BM_OK;
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s belongs to attempt %d with %d ranks, but rank 0's trace "
                   "to attempt %d with %d; trace the run again",
                   path, header_number(file, "attempt"),
                   header_number(file, "ranks"), m->attempt, m->ranks);
}

static void write_events(merger *m, const json_t *file)
{
    const json_t *event = NULL;
    size_t i = 0;

    json_array_foreach(json_object_get(file, "traceEvents"), i, event)
    {
        fputs(m->first ? "\n" : ",\n", m->out);
        json_dumpf(event, m->out, JSON_COMPACT);
        m->first = false;
    }
}

static bm_status add(merger *m, const json_t *file, int rank, const char *path)
{
    BM_TRY(check_together(m, file, path));
    BM_TRY(bm_trace_table_add(&m->table, rank, file, path));
    write_events(m, file);
    return BM_OK;
}

static bm_status begin(merger *m, const json_t *file, const char *path)
{
    m->ranks = header_number(file, "ranks");
    m->attempt = header_number(file, "attempt");
    if (m->ranks < 1 || m->ranks > 1 << 20)
        return BM_FAIL(BM_ERR_FORMAT, "%s: invalid number of ranks, %d", path,
                       m->ranks);
    return bm_trace_table_init(&m->table, m->ranks);
}

static bm_status merge(merger *m)
{
    char path[4200];
    bm_status status = BM_OK;

    m->ranks = 1;
    for (int r = 0; r < m->ranks && status == BM_OK; r++) {
        json_t *file = NULL;
        path_of(m->run, r, path, sizeof path);
        BM_TRY(load(m->run, r, path, &file));
        if (r == 0)
            status = begin(m, file, path);
        if (status == BM_OK)
            status = add(m, file, r, path);
        json_decref(file);
    }
    return status;
}

/* Replaces an existing merged trace only when the new one is complete. */
static bm_status write_merged(merger *m, const char *path)
{
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    m->out = r.stream;
    fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[", m->out);
    BM_TRY_DONE(merge(m));
    fputs("\n]}\n", m->out);
    status = bm_file_replace_commit(&r, true);
done:
    bm_file_replace_abort(&r);
    return status;
}

static void print_json(const merger *m, const char *path)
{
    json_t *o = bm_trace_table_json(&m->table);

    json_object_set_new(o, "file", bm_json_text(path));
    bm_json_print(o, JSON_REAL_PRECISION(9));
}

static bm_status trace(const bm_arguments *a)
{
    merger m = {.run = a->nouns[0], .first = true};
    const char *out = bm_argument(a, "out");
    const bm_output merged = {"--out", out};
    char path[4200];
    bm_status status = BM_OK;

    if (strlen(m.run) > 4096 || (out != NULL && strlen(out) > 4096))
        return BM_FAIL(BM_ERR_ARG,
                       "trace: a path is longer than 4096 characters");
    path_of(m.run, 0, path, sizeof path);
    BM_TRY(check_exists(m.run, path));
    BM_TRY(bm_outputs_check(&merged, 1, (const char *const[]){NULL}));
    snprintf(path, sizeof path, "%s%s", out != NULL ? out : m.run,
             out != NULL ? "" : "/trace.json");
    BM_TRY_DONE(write_merged(&m, path));
    if (bm_argument(a, "json") != NULL) {
        print_json(&m, path);
    } else {
        bm_trace_table_print(&m.table, stdout);
        printf("\nwrote %s, for Perfetto or chrome://tracing\n", path);
    }
done:
    bm_trace_table_free(&m.table);
    return status;
}

static const bm_flag flags[] = {
    {"out", "FILE", "file for the merged trace; default: RUN/trace.json", 'o',
     false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_trace = {
    .name = "trace",
    .nouns = "RUN",
    .help = "merge the traces of all ranks, and find the slowest rank",
    .text = "  bmuf train my.ini --out run/1 -n 4 --set 'job.trace=blocks "
            "10:12'\n"
            "  bmuf trace run/1\n\n"
            "docs/jobs/trace.md describes the columns.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = trace,
};
