/* report.c - bmuf report: runs as one HTML page. */
#include "cli/outputs.h"
#include "cli/report/journal_events.h"
#include "cli/report/page/examples.h"
#include "cli/report/page/page.h"
#include "cli/report/page/sections.h"
#include "cli/score/interval_text.h"
#include "cli/score/session.h"
#include "cli/verbs.h"
#include "core/file/file.h"
#include "core/text/printable.h"
#include "core/text/words.h"
#include "io/shard/dataset.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The model of a run on its data. */
typedef struct scored {
    bm_interval labels;
    char data[4096];
    char failure[1024]; /* why it could not be scored; "": it was */
} scored;

typedef struct report {
    const bm_arguments *a;
    bm_score_session session;
    bm_run_set runs;
    scored *scored;  /* [runs.n]; NULL: --no-examples */
    bm_scoring best; /* the one with the fewest errors, and what it made of */
    bm_examples examples; /* the sequences */
    size_t best_run;      /* runs.n: none */
    FILE *f;
} report;

/* ---- scoring ------------------------------------------------------------ */

static bm_status score_open(bm_scoring *s, const report *r, size_t k,
                            const char *data)
{
    if (data[0] == '\0')
        return BM_FAIL(BM_ERR_MISSING, "it has no data.dev; give a data set "
                                       "with --on DIR");
    return bm_scoring_open(s, r->runs.all[k].directory, data,
                           bm_argument(r->a, "force") != NULL);
}

static void keep_best(report *r, size_t k, bm_scoring *s, bm_examples *e)
{
    if (r->best_run < r->runs.n &&
        !(r->scored[k].labels.rate < r->scored[r->best_run].labels.rate))
        return;
    bm_examples_free(&r->examples);
    bm_scoring_close(&r->best);
    r->examples = *e;
    r->best = *s;
    r->best_run = k;
    *e = (bm_examples){0};
    *s = (bm_scoring){0};
}

/* A run that cannot be scored is reported without examples. */
static bm_status score(report *r, size_t k)
{
    const char *data = bm_argument(r->a, "on");
    bm_scoring s = {.comm = r->session.comm, .be = r->session.device.be};
    bm_examples examples = {0};
    bm_observer observer = {&examples, bm_examples_see};
    bm_status status = BM_OK;

    if (data == NULL)
        data = bm_run_setting(&r->runs.differences, k, "data", "dev");
    if (data == NULL)
        data = "";
    snprintf(r->scored[k].data, sizeof r->scored[k].data, "%s", data);
    BM_TRY_DONE(score_open(&s, r, k, data));
    examples.per_frame = bm_model_loss(s.net.model)->per_frame;
    BM_TRY_DONE(bm_scoring_run(&s, &r->session.plan, &observer));
    BM_TRY_DONE(bm_bootstrap(s.labels, s.data->n, &r->scored[k].labels));
    keep_best(r, k, &s, &examples);
done:
    bm_scoring_close(&s);
    bm_examples_free(&examples);
    if (status == BM_OK || status == BM_ERR_MEMORY)
        return status;
    snprintf(r->scored[k].failure, sizeof r->scored[k].failure, "%s",
             bm_last_message());
    return BM_OK;
}

/* ---- results ------------------------------------------------------------ */

static const char *percent(double x, char out[48])
{
    if (isnan(x))
        return "-";
    snprintf(out, 48, "%.2f %%", 100 * x);
    return out;
}

static const char *duration(double seconds, char out[48])
{
    if (seconds < 120)
        snprintf(out, 48, "%.1f s", seconds);
    else if (seconds < 7200)
        snprintf(out, 48, "%.1f min", seconds / 60);
    else
        snprintf(out, 48, "%.1f h", seconds / 3600);
    return out;
}

static const char *scored_text(const report *r, size_t k, char out[48])
{
    char range[80];

    if (r->scored == NULL || r->scored[k].failure[0] != '\0' ||
        isnan(r->scored[k].labels.rate))
        return "-";
    snprintf(out, 48, "%.2f %% (%s)", 100 * r->scored[k].labels.rate,
             bm_interval_text(&r->scored[k].labels, range));
    return out;
}

static void write_result(const report *r, size_t k)
{
    enum { COLUMNS = 9 };
    const bm_run_summary *s = &r->runs.all[k];
    char text[COLUMNS][48];
    const char *cells[COLUMNS] = {r->runs.names[k], s->state};

    snprintf(text[2], sizeof text[2], "%zu of %zu", s->epochs_done,
             s->epochs_wanted);
    cells[2] = text[2];
    cells[3] = percent(s->best_ler, text[3]);
    snprintf(text[4], sizeof text[4], "%zu", s->best + 1);
    cells[4] = s->best < s->n_epochs ? text[4] : "-";
    cells[5] = scored_text(r, k, text[5]);
    cells[6] = percent(s->test_ler, text[6]);
    cells[7] = duration(bm_phases_total(&s->phases), text[7]);
    snprintf(text[8], sizeof text[8], "%.0f",
             s->seconds > 0 ? s->frames / s->seconds : 0);
    cells[8] = text[8];
    bm_report_table_row(r->f, cells, COLUMNS);
}

/* The words of an event of the last job, if it has them. */
static void write_message(const report *r, size_t k)
{
    const char *message = json_string_value(
        json_object_get(r->runs.all[k].last[BM_RUN_end], "message"));

    if (message != NULL)
        bm_report_page_words(r->f, "%s ended with: %.800s", r->runs.names[k],
                             message);
    if (r->scored != NULL && r->scored[k].failure[0] != '\0')
        bm_report_page_words(r->f, "%s was not scored for this report: %.800s",
                             r->runs.names[k], r->scored[k].failure);
}

/* One that has converged is at the end of its training. */
static size_t epochs_reached(const bm_run_summary *s)
{
    return strcmp(s->state, "converged") == 0 ? s->epochs_wanted
                                              : s->epochs_done;
}

/* The mean of the runs of a group that have come as far as the furthest, and how
 * far they are apart; the others, such as trials that were stopped, would make it
 * worse. */
static void write_group(const report *r, const bm_run_group *g)
{
    double sum = 0, low = NAN, high = NAN;
    size_t n = 0, epochs = 0;
    char of[140] = "";

    for (size_t i = 0; i < g->n; i++) {
        const bm_run_summary *s = &r->runs.all[g->members[i]];

        if (!isnan(s->best_ler) && epochs_reached(s) > epochs)
            epochs = epochs_reached(s);
    }
    for (size_t i = 0; i < g->n; i++) {
        const bm_run_summary *s = &r->runs.all[g->members[i]];

        if (isnan(s->best_ler) || epochs_reached(s) != epochs)
            continue;
        sum += s->best_ler;
        low = fmin(low, s->best_ler);
        high = fmax(high, s->best_ler);
        n++;
    }
    if (g->n < 2 || n == 0)
        return;
    if (n < g->n)
        snprintf(of, sizeof of, " of the %zu that have come to %s", n,
                 bm_count_noun((long long)epochs, "epoch").text);
    bm_report_page_words(
        r->f, "%s: best dev error %.2f %% in the mean%s, from %.2f to %.2f %%.",
        g->name, 100 * sum / (double)n, of, 100 * low, 100 * high);
}

static void write_results(const report *r)
{
    static const char *const head[] = {
        "run",           "state",      "epochs", "best dev error", "in epoch",
        "scored (95 %)", "test error", "time",   "frames/s"};

    bm_report_page_section(r->f, "Results");
    bm_report_page_words(
        r->f,
        "Errors are wrong labels of all labels, lower is better; dev and "
        "test are as the runs measured them.%s",
        r->scored == NULL
            ? ""
            : " Scored: the best model of a run once more, now, and the "
              "interval of 95 % in which the rate of similar sequences is to "
              "be "
              "expected; it is unknown without errors. Whether two runs really "
              "differ is what bmuf compare answers.");
    bm_report_table_begin(r->f, head, sizeof head / sizeof head[0]);
    for (size_t k = 0; k < r->runs.n; k++)
        write_result(r, k);
    bm_report_table_end(r->f);
    for (size_t k = 0; k < r->runs.n_groups; k++)
        write_group(r, &r->runs.groups[k]);
    for (size_t k = 0; k < r->runs.n; k++)
        write_message(r, k);
    bm_report_page_section_end(r->f);
}

/* ---- settings ----------------------------------------------------------- */

static bm_status write_settings(const report *r)
{
    const bm_differences *d = &r->runs.differences;
    const char **cells = calloc(d->n + 1, sizeof(char *));
    char(*names)[64] = calloc(d->n + 1, sizeof *names);
    bm_status status = BM_OK;

    if (cells == NULL || names == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu settings", d->n);
    bm_report_page_section(r->f, "Settings that differ");
    if (d->n == 0) {
        bm_report_page_words(r->f, "All settings of these runs are equal.");
    } else {
        bm_report_page_words(r->f, "All other settings are equal.");
        cells[0] = "run";
        for (size_t k = 0; k < d->n; k++)
            cells[k + 1] = bm_difference_name(d, k, names[k]);
        bm_report_table_begin(r->f, cells, d->n + 1);
        for (size_t i = 0; i < r->runs.n; i++) {
            cells[0] = r->runs.names[i];
            for (size_t k = 0; k < d->n; k++)
                cells[k + 1] = bm_difference_value(d, i, k);
            bm_report_table_row(r->f, cells, d->n + 1);
        }
        bm_report_table_end(r->f);
        for (size_t k = 0; k < d->n; k++)
            bm_report_page_words(r->f, "%s: %s.", names[k],
                                 d->settings[k].option->help);
    }
    bm_report_page_section_end(r->f);
done:
    free((void *)cells);
    free(names);
    return status;
}

static void write_setup(const report *r)
{
    const bm_run_summary *s = &r->runs.all[0];
    const json_t *start = s->last[BM_RUN_start];

    bm_report_page_words(
        r->f,
        "%s, %s on %s; net %s with %.0f weights; %.0f training sequences, %.0f "
        "frames; bmuf %s.",
        bm_run_text(s, "strategy"),
        bm_count_noun((long long)bm_event_count(start, "workers"), "worker")
            .text,
        bm_run_text(s, "device"), bm_run_text(s, "net"),
        bm_event_number(start, "weights"), bm_event_number(start, "sequences"),
        bm_event_number(start, "frames"), bm_run_text(s, "version"));
}

static bm_status write_scored(report *r)
{
    if (r->scored == NULL)
        return BM_OK;
    if (r->best_run == r->runs.n) {
        bm_report_page_section(r->f, "Examples");
        bm_report_page_words(r->f, "No run could be scored: see Results.");
        bm_report_page_section_end(r->f);
        return BM_OK;
    }
    return bm_examples_write(r->f, &r->examples, &r->best);
}

static bm_status write_page(report *r)
{
    char name[128], title[160];

    if (r->runs.n == 1)
        snprintf(title, sizeof title, "Report of %s",
                 bm_printable(r->runs.all[0].directory, name, sizeof name));
    else
        snprintf(title, sizeof title, "Report of %zu runs", r->runs.n);
    bm_report_page_head(r->f, title);
    if (r->runs.n == 1)
        write_setup(r);
    write_results(r);
    if (r->runs.n > 1)
        BM_TRY(write_settings(r));
    BM_TRY(bm_report_learning(r->f, &r->runs));
    BM_TRY(bm_report_filter(r->f, &r->runs));
    BM_TRY(bm_report_time(r->f, &r->runs));
    BM_TRY(bm_report_workers(r->f, &r->runs));
    BM_TRY(write_scored(r));
    bm_report_page_foot(r->f);
    return BM_OK;
}

static bm_status write_file(report *r, const char *path)
{
    bm_file_replacement to;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&to, path));
    BM_TRY_DONE(bm_file_replace_stream(&to));
    r->f = to.stream;
    BM_TRY_DONE(write_page(r));
    status = bm_file_replace_commit(&to, false);
done:
    bm_file_replace_abort(&to);
    return status;
}

/* ---- the verb ----------------------------------------------------------- */

/* A set that was asked for by name and is not there fails at once. */
static bm_status check_set(const char *directory)
{
    bm_dataset *d = NULL;
    bm_status status = BM_OK;

    if (directory == NULL)
        return BM_OK;
    status = bm_dataset_open(&d, directory);
    bm_dataset_close(d);
    return status;
}

static bm_status score_all(report *r)
{
    BM_TRY(check_set(bm_argument(r->a, "on")));
    r->scored = calloc(r->runs.n, sizeof *r->scored);
    if (r->scored == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu runs", r->runs.n);
    BM_TRY(bm_score_session_open(&r->session, r->a, 1));
    for (size_t k = 0; k < r->runs.n; k++)
        BM_TRY(score(r, k));
    return BM_OK;
}

static bm_status check_band(const char *band)
{
    if (band == NULL || bm_is_setting(band))
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "report: --band %s is not a setting; give one such as "
                   "job.workers (bmuf options lists them)",
                   band);
}

/* --out, or report.html in the only run. */
static bm_status choose_path(const bm_arguments *a, char path[4200])
{
    const char *out = bm_argument(a, "out");

    if (out == NULL && a->n_nouns > 1)
        return BM_FAIL(
            BM_ERR_ARG,
            "report: a report of several runs needs --out FILE.html");
    if (snprintf(path, 4200, "%s%s", out != NULL ? out : a->nouns[0],
                 out != NULL ? "" : "/report.html") >= 4200)
        return BM_FAIL(BM_ERR_ARG, "report: the path is too long");
    return BM_OK;
}

/* The page must not replace a file of a run or of the set of the examples. */
static bm_status check_path(const report *r, const char *path)
{
    const bm_output out = {"--out", path};
    const char *on = bm_argument(r->a, "on");

    for (size_t k = 0; k < r->runs.n; k++) {
        const char *dev =
            bm_run_setting(&r->runs.differences, k, "data", "dev");
        const char *const inputs[] = {on != NULL ? on : dev, NULL};

        BM_TRY(bm_outputs_check(&out, 1, inputs));
    }
    return bm_file_try(path);
}

static bm_status report_runs(const bm_arguments *a)
{
    report r = {.a = a};
    const char *band = bm_argument(a, "band");
    char path[4200];
    bm_status status = BM_OK;

    BM_TRY(check_band(band));
    BM_TRY(choose_path(a, path));
    BM_TRY(bm_run_set_read(&r.runs, (size_t)a->n_nouns, a->nouns, band));
    r.best_run = r.runs.n;
    BM_TRY_DONE(check_path(&r, path));
    if (bm_argument(a, "no-examples") == NULL)
        BM_TRY_DONE(score_all(&r));
    BM_TRY_DONE(write_file(&r, path));
    printf("wrote %s\n", path);
done:
    bm_examples_free(&r.examples);
    bm_scoring_close(&r.best);
    bm_score_session_close(&r.session);
    free(r.scored);
    bm_run_set_free(&r.runs);
    return status;
}

static const bm_flag flags[] = {
    {"out", "FILE.html", "default, of one run: RUN/report.html", 'o', false},
    {"on", "DIR", "data set of the examples; default: each run's data.dev", 0,
     false},
    {"no-examples", NULL, "from the journals alone: score nothing", 0, false},
    {"band", "SECTION.KEY",
     "draw runs that differ in this setting, too, as one band", 0, false},
    BM_DEVICE_FLAGS,
    {0},
};

const bm_verb bm_verb_report = {
    .name = "report",
    .nouns = "RUN...",
    .help = "write runs as one HTML page: curves, time, examples",
    .text = "  bmuf report run/1\n"
            "  bmuf report run/* --out report.html\n"
            "  bmuf report run/seed-* run/other --out report.html "
            "--no-examples\n\n"
            "The page needs no network and no script. Runs that differ in "
            "job.seed only are\ndrawn as their mean with a band. Runs that "
            "are still going on, or were killed,\nare shown as far as they "
            "came (docs/results/report.md).\n",
    .flags = flags,
    .least = 1,
    .most = BM_MOST_INPUTS,
    .run = report_runs,
};
