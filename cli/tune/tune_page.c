/*
 * tune_page.c - report.html of a search: the best error against the budget, a
 * map of the error over two settings, all trials over all settings, and the
 * tables. Map and order of importance are those of the model (gauss.h).
 */
#include "cli/help/version.h"
#include "cli/report/page/page.h"
#include "cli/tune/tuning.h"
#include "core/file/file.h"
#include "core/file/path.h"
#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GRID = 24, MOST_SHOWN_AXES = 11 };

/* The axis of what the search makes small. */
static bm_plot_axis objective(const bm_tuning *t)
{
    if (t->set.target > 0)
        return (bm_plot_axis){.title = "seconds to the target",
                              .scale = BM_PLOT_LOG};
    return (bm_plot_axis){.title = "errors on dev", .percent = true};
}

/* Of a score of trial.c or cluster.c. */
static double value_of(const bm_tuning *t, double score)
{
    return t->set.target > 0 ? exp(score) : fmin(exp(score), 1);
}

/* ---- the best against the budget ----------------------------------------- */

/* Whether a result is of a trial's last rung and its first seed; the least of several
 * seeds would be luck. A finalist that the search did not train to its end has other
 * seeds only. */
static bool is_first_end(const bm_tuning *t, const bm_tune_result *r)
{
    bm_tune_job first = {r->job.trial, (int)t->set.rungs - 1, 0};

    if (bm_record_find(t, first) == NULL)
        first.seed = bm_final_seed(first.trial, 0);
    return r->job.rung == first.rung && r->job.seed == first.seed;
}

/* Steps: two points for each trial that was trained to its end. */
static void draw_progress(const bm_tuning *t, FILE *f)
{
    double *x = calloc(2 * t->n_results + 1, sizeof *x);
    double *y = calloc(2 * t->n_results + 1, sizeof *y);
    double least = NAN, epochs = 0;
    size_t n = 0;

    for (size_t i = 0; x != NULL && y != NULL && i < t->n_results; i++) {
        const bm_tune_result *r = &t->results[i];
        long before = 0;

        if (r->job.trial >= t->n_trials) /* of a larger budget */
            continue;
        if (r->job.rung > 0 && r->job.seed == 0)
            before = bm_trial_epochs(t, r->job.trial, r->job.rung - 1);
        epochs +=
            (double)(bm_trial_epochs(t, r->job.trial, r->job.rung) - before);
        if (!is_first_end(t, r) || isnan(bm_result_value(t, r)))
            continue;
        if (n > 0) {
            x[n] = epochs;
            y[n++] = least;
        }
        least = fmin(least, bm_result_value(t, r)); /* not NAN */
        x[n] = epochs;
        y[n++] = least;
    }
    if (n > 1) {
        bm_plot_series line = {.mark = BM_LINE, .n = n, .x = x, .y = y};

        bm_report_page_figure(
            f,
            &(bm_plot){.title = t->set.target > 0 ? "least time to the target"
                                                  : "best error on dev",
                       .x = {.title = "epochs of all trials"},
                       .y = objective(t),
                       .series = &line,
                       .n = 1},
            "The best trial that was trained to its end, after so much work, "
            "by the first of its seeds: the least of many, which flatters it; "
            "the means above do not. Where the line is flat, more budget does "
            "not help.");
    }
    free(x);
    free(y);
}

/* ---- the map ------------------------------------------------------------- */

static bm_plot_axis axis_of(const bm_axis *a)
{
    return (bm_plot_axis){.title = a->name,
                          .scale = a->scale == BM_AXIS_log     ? BM_PLOT_LOG
                                   : a->scale == BM_AXIS_logit ? BM_PLOT_LOGIT
                                                               : BM_PLOT_LINEAR,
                          .least = a->low,
                          .most = a->high};
}

/* The two axes of numbers that the error depends on most, or that block size
 * and block momentum are on. False: there are no two. */
static bool find_pair(const bm_tuning *t, const bm_gauss *g, size_t out[2])
{
    static const char *const known[] = {"block.steps", "time constant",
                                        "bmuf.momentum",
                                        "block.frames_per_worker"};
    double weight[2] = {-INFINITY, -INFINITY};

    for (size_t k = 0; k < t->space.n; k++) {
        double w = -bm_gauss_length(g, k);

        if (t->space.axis[k].scale == BM_AXIS_WORDS)
            continue;
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (strcmp(t->space.axis[k].name, known[i]) == 0)
                w += 1e6;
        if (w > weight[0]) {
            weight[1] = weight[0];
            out[1] = out[0];
            weight[0] = w;
            out[0] = k;
        } else if (w > weight[1]) {
            weight[1] = w;
            out[1] = k;
        }
    }
    return isfinite(weight[1]);
}

typedef struct cells {
    double x[GRID * GRID], x_end[GRID * GRID], y[GRID * GRID];
    double y_end[GRID * GRID], z[GRID * GRID];
} cells;

/* The other settings are those of the best trial. */
static void fill_cells(const bm_tuning *t, const bm_gauss *g,
                       const double *best, const size_t pair[2], cells *c)
{
    double row[BM_GAUSS_AXES], deviation = 0;
    bm_axis a = t->space.axis[pair[0]], b = t->space.axis[pair[1]];

    a.integer = b.integer = false;
    memcpy(row, best, t->space.n * sizeof *row);
    row[t->space.n] = 1;
    for (size_t i = 0; i < GRID * GRID; i++) {
        size_t column = i % GRID, line = i / GRID;
        double u = (double)column / GRID, v = (double)line / GRID;

        c->x[i] = bm_axis_value(&a, u);
        c->x_end[i] = bm_axis_value(&a, u + 1. / GRID);
        c->y[i] = bm_axis_value(&b, v);
        c->y_end[i] = bm_axis_value(&b, v + 1. / GRID);
        row[pair[0]] = u + 0.5 / GRID;
        row[pair[1]] = v + 0.5 / GRID;
        bm_gauss_predict(g, row, &c->z[i], &deviation);
        c->z[i] = value_of(t, c->z[i]);
    }
}

static void draw_map(const bm_tuning *t, const bm_gauss *g, size_t trial,
                     FILE *f)
{
    size_t pair[2] = {0};
    cells *c = calloc(1, sizeof *c);
    double *x = calloc(t->n_trials + 1, sizeof *x);
    double *y = calloc(t->n_trials + 1, sizeof *y);

    if (c != NULL && x != NULL && y != NULL && find_pair(t, g, pair)) {
        const bm_axis *a = &t->space.axis[pair[0]],
                      *b = &t->space.axis[pair[1]];
        bm_plot_series series[] = {{.mark = BM_CELLS,
                                    .n = (size_t)GRID * GRID,
                                    .x = c->x,
                                    .x_end = c->x_end,
                                    .y = c->y,
                                    .y_end = c->y_end,
                                    .z = c->z},
                                   {.mark = BM_POINTS, .x = x, .y = y}};

        fill_cells(t, g, bm_search_point(t->search, trial), pair, c);
        for (size_t i = 0; i < bm_search_trials(t->search); i++) {
            x[series[1].n] = bm_trial_value(t, i, pair[0]);
            y[series[1].n++] = bm_trial_value(t, i, pair[1]);
        }
        bm_report_page_figure(
            f,
            &(bm_plot){.title = "expected at the end of training",
                       .x = axis_of(a),
                       .y = axis_of(b),
                       .z = objective(t),
                       .series = series,
                       .n = 2},
            "Colour is what the model of all trials expects with the other "
            "settings as in the best trial; points are trials. Where the best "
            "colour reaches an edge, search beyond it.");
    }
    free(c);
    free(x);
    free(y);
}

/* ---- all settings -------------------------------------------------------- */

static void draw_parallel(const bm_tuning *t, size_t best, FILE *f)
{
    size_t shown = t->space.n < MOST_SHOWN_AXES ? t->space.n : MOST_SHOWN_AXES;
    size_t n = bm_search_trials(t->search), columns = shown + 1;
    double *values = calloc(n * columns + 1, sizeof *values);
    bm_plot_axis axes[MOST_SHOWN_AXES + 1];
    const char *names[MOST_SHOWN_AXES][BM_AXIS_MOST_WORDS];

    if (values == NULL)
        return;
    for (size_t k = 0; k < shown; k++) {
        const bm_axis *a = &t->space.axis[k];

        axes[k] = axis_of(a);
        if (a->scale != BM_AXIS_WORDS)
            continue;
        for (int w = 0; w < a->n_words; w++)
            names[k][w] = a->words[w];
        axes[k] = (bm_plot_axis){
            .title = a->name, .names = names[k], .n_names = (size_t)a->n_words};
    }
    axes[shown] = objective(t);
    axes[shown].scale = BM_PLOT_LOG;
    for (size_t i = 0; i < n; i++) {
        const bm_tune_result *r = bm_last_result(t, i);

        for (size_t k = 0; k < shown; k++)
            values[i * columns + k] = bm_trial_value(t, i, k);
        values[i * columns + shown] = NAN;
        if (r != NULL && isfinite(r->score))
            values[i * columns + shown] =
                t->set.target > 0 ? value_of(t, r->score) : r->ler;
    }
    bm_report_page_parallel(
        f,
        &(bm_parallel){.title = "all trials",
                       .axes = axes,
                       .n_axes = columns,
                       .n = n,
                       .values = values,
                       .colour = shown,
                       .best = best},
        "A line is a trial: its settings from left to right, then its result "
        "where it ended. The thick line is the best. Where lines of good "
        "colour meet on an axis, that setting matters.");
    free(values);
}

/* ---- tables -------------------------------------------------------------- */

static void describe_settings(const bm_tuning *t, size_t trial,
                              const char *name, FILE *f)
{
    char settings[900] = "as it was given";
    const bm_assignments *a = &t->trials[trial];

    for (size_t k = 0; k < a->n; k++)
        snprintf(settings + (k > 0 ? strlen(settings) : 0),
                 sizeof settings - (k > 0 ? strlen(settings) : 0), "%s%s",
                 k > 0 ? ", " : "", a->row[k].text);
    bm_report_page_words(f, "%s: %s", name, settings);
}

static void text_of(const bm_tuning *t, double value, const char *unknown,
                    char out[32])
{
    if (isnan(value))
        snprintf(out, 32, "%s", unknown);
    else
        bm_value_text(t, value, out);
}

static void list_finalists(const bm_tuning *t, const bm_finalist *list,
                           size_t n, FILE *f)
{
    const char *const head[] = {"trial", t->set.target > 0 ? "time" : "errors",
                                "from", "to", "seeds"};
    char name[32], number[4][32];

    bm_report_table_begin(f, head, 5);
    for (size_t i = 0; i < n; i++) {
        bm_trial_name((bm_tune_job){.trial = list[i].trial}, name);
        text_of(t, list[i].value, t->set.target > 0 ? "not reached" : "failed",
                number[0]);
        text_of(t, list[i].low, "", number[1]);
        text_of(t, list[i].high, "", number[2]);
        snprintf(number[3], 32, "%zu", list[i].n);
        bm_report_table_row(f,
                            (const char *const[]){name, number[0], number[1],
                                                  number[2], number[3]},
                            5);
    }
    bm_report_table_end(f);
    for (size_t i = 0; i < n; i++) {
        bm_trial_name((bm_tune_job){.trial = list[i].trial}, name);
        describe_settings(t, list[i].trial, name, f);
    }
}

static void list_axes(const bm_tuning *t, const bm_gauss *g, FILE *f)
{
    static const char *const head[] = {"setting", "searched", "effect"};

    bm_report_table_begin(f, head, 3);
    for (size_t k = 0; k < t->space.n; k++) {
        char range[200], effect[32] = "";
        double length = g != NULL ? bm_gauss_length(g, k) : NAN;

        bm_axis_describe(&t->space.axis[k], range, sizeof range);
        if (g != NULL)
            snprintf(effect, sizeof effect, "%s",
                     length < 0.4   ? "strong"
                     : length < 1.2 ? "some"
                                    : "little");
        bm_report_table_row(
            f, (const char *const[]){t->space.axis[k].name, range, effect}, 3);
    }
    bm_report_table_end(f);
}

/* " 80 epochs, 30 min" */
static void budget_of(const bm_tuning *t, char *out, size_t room)
{
    size_t n = 0;

    out[0] = '\0';
    if (t->set.epochs < BM_TUNE_MOST_EPOCHS)
        n += (size_t)snprintf(out, room, " %s,",
                              bm_count_noun(t->set.epochs, "epoch").text);
    if (t->set.trials > 0)
        n += (size_t)snprintf(out + n, room - n, " %s,",
                              bm_count_noun(t->set.trials, "trial").text);
    if (t->set.minutes > 0)
        n += (size_t)snprintf(out + n, room - n, " %g min,", t->set.minutes);
    out[n > 0 ? n - 1 : 0] = '\0';
}

/* Data, budget, network and program of the search. */
static void describe_search(const bm_tuning *t, FILE *f)
{
    char budget[120];

    budget_of(t, budget, sizeof budget);
    bm_report_page_words(
        f, "Net %s; %s for a whole trial, in all at most%s; bmuf %s.",
        t->given.model.net, bm_count_noun(t->epochs, "epoch").text, budget,
        bm_version());
    bm_report_page_words(
        f, "data.train is %s, with %s; data.dev is %s, with %s and %s.",
        t->given.data.train,
        bm_count_noun((long long)t->train->n, "sequence").text,
        t->given.data.dev, bm_count_noun((long long)t->dev->n, "sequence").text,
        bm_count_noun((long long)t->dev->labels, "label").text);
}

static void write_page(const bm_tuning *t, const bm_gauss *g,
                       const bm_finalist *list, size_t n, FILE *f)
{
    char title[PATH_MAX + 20], change[300];

    snprintf(title, sizeof title, "Search %s", t->directory);
    bm_report_page_head(f, title);
    bm_report_page_section(f, "What was found");
    bm_report_page_words(
        f,
        "%zu trials were begun with %s, for %d workers. The best were trained "
        "with seeds that the search had not used, and so was the configuration "
        "as it was given (t000) with as many. Errors are of labels on "
        "data.dev, with 95 %% intervals of the "
        "mean over seeds; where intervals overlap, more seeds have to tell.",
        bm_search_trials(t->search), t->path, t->regime.workers);
    if (t->set.target > 0)
        bm_report_page_words(
            f,
            "The search was for the least time to %g %% errors on %s: epochs "
            "as the runs needed them, seconds of an epoch from the model of "
            "bmuf scale. For a trial that has not reached the target, the "
            "figures show its time so far multiplied by errors / target.",
            t->set.target, t->set.network);
    describe_search(t, f);
    list_finalists(t, list, n, f);
    if (bm_change_text(t, &list[0], change, sizeof change))
        bm_report_page_words(f, "%s.", change);
    bm_report_page_section_end(f);
    bm_report_page_section(f, "Where good settings are");
    draw_progress(t, f);
    if (g != NULL && !(list[0].trial == 0 && t->space.given_apart))
        draw_map(t, g, list[0].trial, f);
    draw_parallel(t, list[0].trial, f);
    bm_report_page_section_end(f);
    bm_report_page_section(f, "What was searched");
    bm_report_page_words(f, "How much the error changes over the range of a "
                            "setting, as the model of the trials has it.");
    list_axes(t, g, f);
    bm_report_page_section_end(f);
    bm_report_page_foot(f);
}

bm_status bm_tune_page(const bm_tuning *t, const bm_finalist *list, size_t n)
{
    char path[PATH_MAX];
    bm_file_replacement r = {0};
    bm_gauss *g = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_search_model(t->search, &g));
    BM_TRY_DONE(bm_path_join(path, t->directory, "report.html"));
    BM_TRY_DONE(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    write_page(t, g, list, n, r.stream);
    status = bm_file_replace_commit(&r, true);
done:
    bm_file_replace_abort(&r);
    bm_gauss_free(g);
    return status;
}
