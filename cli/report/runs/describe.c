#include "cli/report/runs/describe.h"

#include "cli/json_output.h"
#include "cli/report/journal_events.h"
#include "cli/report/runs/curve.h"
#include "core/log.h"
#include "core/text/printable.h"
#include "core/text/words.h"

#include <dirent.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- which directories --------------------------------------------------- */

bool bm_is_run(const char *directory)
{
    char path[4200];

    return snprintf(path, sizeof path, "%s/journal.jsonl", directory) <
               (int)sizeof path &&
           access(path, F_OK) == 0;
}

static const char *parent; /* of the names that scandir looks at */

/* path <- directory/name, without a slash too many. */
static void run_path(char path[4096], const char *directory, const char *name)
{
    size_t n = strlen(directory);

    while (n > 1 && directory[n - 1] == '/')
        n--;
    snprintf(path, 4096, "%.*s/%s", (int)n, directory, name);
}

static int is_run_in_parent(const struct dirent *entry)
{
    char path[4096];

    run_path(path, parent, entry->d_name);
    return entry->d_name[0] != '.' && bm_is_run(path);
}

/* The names of the runs in a directory, in order; none if it cannot be read. */
static size_t list_runs(const char *directory, struct dirent ***names)
{
    int n = 0;

    parent = directory;
    n = scandir(directory, names, is_run_in_parent, alphasort);
    return n > 0 ? (size_t)n : 0;
}

static void free_runs(struct dirent **names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    if (n > 0)
        free((void *)names);
}

bool bm_has_runs(const char *directory)
{
    struct dirent **names = NULL;
    size_t n = list_runs(directory, &names);

    free_runs(names, n);
    return n > 0;
}

bm_status bm_runs_each(const char *directory, bool quiet,
                       bm_status (*one)(void *self, const char *path,
                                        const char *name),
                       void *self)
{
    struct dirent **names = NULL;
    size_t n = list_runs(directory, &names), failed = 0;
    bm_status first = BM_OK;

    for (size_t i = 0; i < n; i++) {
        char path[4096];
        bm_status status = BM_OK;

        run_path(path, directory, names[i]->d_name);
        status = one(self, path, names[i]->d_name);
        if (status == BM_OK)
            continue;
        if (!quiet)
            bm_log(BM_WARNING, "%s", bm_last_message());
        first = failed++ == 0 ? status : first;
    }
    free_runs(names, n);
    return failed == 0
               ? BM_OK
               : BM_FAIL(first, "%zu of %s in %s cannot be read", failed,
                         bm_count_noun((long long)n, "run").text, directory);
}

/* ---- one run ------------------------------------------------------------- */

static double start_number(const bm_run_summary *s, const char *key)
{
    return bm_event_number(s->last[BM_RUN_start], key);
}

static double speed(const bm_run_summary *s)
{
    return s->seconds > 0 ? s->frames / s->seconds : NAN;
}

enum { WIDE = 2048 }; /* characters of a text of the journal */

/* A text of the start event, as it can be printed. */
static const char *shown(const bm_run_summary *s, const char *key,
                         char out[WIDE])
{
    return bm_printable(bm_run_text(s, key), out, WIDE);
}

static void print_end(const bm_run_summary *s, const char *key)
{
    const char *text =
        json_string_value(json_object_get(s->last[BM_RUN_end], key));
    char out[WIDE];

    if (text != NULL)
        printf("  %-10s %s\n", key, bm_printable(text, out, WIDE));
}

/* "3/12", or "3" if the number wanted is not known. */
static const char *epochs(const bm_run_summary *s, char *out, size_t room)
{
    if (s->epochs_wanted > 0)
        snprintf(out, room, "%zu/%zu", s->epochs_done, s->epochs_wanted);
    else
        snprintf(out, room, "%zu", s->epochs_done);
    return out;
}

static void print_state(const bm_run_summary *s)
{
    char of[40], text[WIDE];
    const json_t *start = s->last[BM_RUN_start];
    long long workers = (long long)bm_event_count(start, "workers");
    long long ranks = (long long)fmax(s->ranks, 0);

    printf("%s\n  state      %s; epochs %s, %s", s->directory, s->state,
           epochs(s, of, sizeof of),
           bm_count_noun((long long)s->blocks, "block").text);
    if (s->seconds > 0)
        printf(", %.4g s, %.0f frames/s", s->seconds, speed(s));
    printf("\n  strategy   %s, %s on %s", shown(s, "strategy", text),
           bm_count_noun(workers, "worker").text,
           bm_count_noun(ranks, "rank").text);
    printf(", %s", shown(s, "device", text));
    printf(" %s\n", shown(s, "precision", text));
    printf("  net        %s, %.0f weights\n", shown(s, "net", text),
           start_number(s, "weights"));
}

static void print_checkpoint(const bm_run_summary *s)
{
    const json_t *last = s->last[BM_RUN_checkpoint];
    const char *file = json_string_value(json_object_get(last, "file"));
    char out[WIDE];

    if (file == NULL)
        return;
    printf("  checkpoint block %.0f: %s", bm_event_number(last, "block"),
           bm_printable(file, out, WIDE));
    if (bm_event_number(last, "files") > 1)
        printf(", and in %s more",
               bm_count_noun((long long)bm_event_number(last, "files") - 1,
                             "folder")
                   .text);
    printf("\n");
}

/* A difference ends a run, and is its message. */
static void print_audits(const bm_run_summary *s)
{
    double shares = 0;
    size_t blocks = 0;

    for (size_t i = 0; i < s->n_rows; i++) {
        shares += s->rows[i].audited;
        blocks += s->rows[i].audited > 0;
    }
    if (blocks > 0)
        printf("  audits     %.0f shares in %s computed twice with the same "
               "bits\n",
               shares, bm_count_noun((long long)blocks, "block").text);
}

/* The messages and models that a run leaves. */
static void print_results(const bm_run_summary *s)
{
    static const char *const models[] = {"model-best.safetensors",
                                         "model.safetensors"};

    if (s->best < s->n_epochs)
        printf("  best       epoch %zu: dev error %.2f %%\n", s->best + 1,
               100 * s->best_ler);
    if (!isnan(s->test_ler))
        printf("  test       error %.2f %%\n", 100 * s->test_ler);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char path[4200];

        snprintf(path, sizeof path, "%s/%s", s->directory, models[i]);
        if (access(path, F_OK) == 0)
            printf("  model      %s\n", path);
    }
    print_checkpoint(s);
    print_audits(s);
    print_end(s, "digest");
    print_end(s, "message");
}

static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

/* What a table of runs has of each. */
static json_t *outline(const bm_run_summary *s)
{
    return json_pack(
        "{s:o, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o, s:o}", "run",
        bm_json_text(s->directory), "state", s->state, "strategy",
        bm_run_text(s, "strategy"), "workers",
        (json_int_t)bm_event_count(s->last[BM_RUN_start], "workers"),
        "epochs_done", (json_int_t)s->epochs_done, "epochs_wanted",
        (json_int_t)s->epochs_wanted, "blocks", (json_int_t)s->blocks,
        "best_epoch",
        s->best < s->n_epochs ? json_integer((json_int_t)s->best + 1)
                              : json_null(),
        "best_ler", real(s->best_ler), "last_ler", real(s->last_ler),
        "test_ler", real(s->test_ler), "frames_per_s", real(speed(s)));
}

static void print_run_json(const bm_run_summary *s)
{
    static const char *const kinds[] = {
#define X(name) #name,
        BM_RUN_EVENTS(X)
#undef X
    };
    json_t *all = outline(s);

    for (size_t i = 0; i < BM_RUN_EVENTS_COUNT; i++)
        if (s->last[i] != NULL)
            json_object_set(all, kinds[i], s->last[i]);
    json_object_set_new(all, "epochs", bm_curve_json(s));
    json_object_set_new(all, "phases", bm_phases_json(&s->phases));
    json_object_set_new(all, "exchanged_bytes", json_real(s->bytes));
    bm_json_print(all, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
}

bm_status bm_describe_run(const char *directory, bool json)
{
    bm_run_summary s;

    BM_TRY(bm_run_summary_read(&s, directory));
    if (json) {
        print_run_json(&s);
    } else {
        print_state(&s);
        print_results(&s);
        printf("\n");
        bm_curve_table(&s, stdout);
        printf("\n");
        bm_curve_chart(&s, stdout);
        printf("\n");
        bm_phases_print(&s.phases, stdout);
        printf("exchanged by the busiest rank of each block: %.4g MB in "
               "total\n",
               1e-6 * s.bytes);
    }
    bm_run_summary_free(&s);
    return BM_OK;
}

/* ---- several runs -------------------------------------------------------- */

static void percent(double x)
{
    char text[24];

    snprintf(text, sizeof text, "%.2f %%", 100 * x);
    printf(" %9s", isnan(x) ? "-" : text);
}

static int characters(const char *text)
{
    int n = 0;

    for (; *text != '\0'; n++)
        text += bm_utf8_character(text, NULL);
    return n;
}

static void print_name(const char *name, int width)
{
    char text[NAME_MAX + 1];

    bm_printable(name, text, sizeof text);
    printf("%s%*s", text, width - characters(text), "");
}

static void print_row(const bm_run_summary *s, const char *name, int width)
{
    char of[40], text[WIDE];

    print_name(name, width);
    printf(" %-9s %5.0f %9s", shown(s, "strategy", text),
           start_number(s, "workers"), epochs(s, of, sizeof of));
    percent(s->best_ler);
    percent(s->last_ler);
    percent(s->test_ler);
    printf(" %10.0f  %s\n", isnan(speed(s)) ? 0 : speed(s), s->state);
}

typedef struct run_table {
    int width;    /* of the names */
    json_t *list; /* NULL: rows are printed */
} run_table;

static bm_status widen(void *self, const char *path, const char *name)
{
    run_table *t = self;
    char text[NAME_MAX + 1];

    (void)path;
    t->width =
        (int)fmax(t->width, characters(bm_printable(name, text, sizeof text)));
    return BM_OK;
}

static bm_status add_run(void *self, const char *path, const char *name)
{
    const run_table *t = self;
    bm_run_summary s;
    bm_status status = bm_run_summary_read(&s, path);

    if (status == BM_OK && t->list != NULL)
        json_array_append_new(t->list, outline(&s));
    else if (status == BM_OK)
        print_row(&s, name, t->width);
    else if (t->list == NULL) {
        print_name(name, t->width);
        printf(" unreadable\n");
    }
    if (status == BM_OK)
        bm_run_summary_free(&s);
    return status;
}

bm_status bm_describe_runs(const char *directory, bool json)
{
    run_table t = {3, json ? json_array() : NULL};
    bm_status status = BM_OK;

    BM_TRY(bm_runs_each(directory, false, widen, &t));
    if (!json)
        printf("%-*s %-9s %5s %9s %9s %9s %9s %10s  %s\n", t.width, "run",
               "strategy", "N", "epochs", "best dev", "last dev", "test",
               "frames/s", "state");
    status = bm_runs_each(directory, false, add_run, &t);
    if (json)
        bm_json_print(json_pack("{s:o}", "runs", t.list),
                      JSON_INDENT(1) | JSON_REAL_PRECISION(9));
    return status;
}
