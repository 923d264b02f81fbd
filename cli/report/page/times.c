/* times.c - where the time of runs goes, and their workers beside each other. */
#include "cli/report/journal_events.h"
#include "cli/report/page/figure.h"
#include "cli/report/page/page.h"
#include "cli/report/page/sections.h"

#include <math.h>
#include <stdlib.h>

/* ---- time --------------------------------------------------------------- */

/* The phases of the journal in as many parts as there are colours. */
static const struct part {
    const char *name;
    bm_phase phases[4];
    size_t n;
} parts[] = {
    {"forward", {BM_PHASE_forward}, 1},
    {"backward", {BM_PHASE_backward}, 1},
    {"rest of training",
     {BM_PHASE_loss, BM_PHASE_update, BM_PHASE_learning},
     3},
    {"waiting for data", {BM_PHASE_stall}, 1},
    {"waiting for ranks", {BM_PHASE_wait}, 1},
    {"exchange", {BM_PHASE_exchange}, 1},
    {"evaluation", {BM_PHASE_eval}, 1},
    {"start, files, other",
     {BM_PHASE_start, BM_PHASE_checkpoint, BM_PHASE_model, BM_PHASE_other},
     4},
};
enum { PARTS = sizeof parts / sizeof parts[0] };

static double part_of(const bm_run_summary *s, size_t part)
{
    double sum = 0;

    for (size_t i = 0; i < parts[part].n; i++)
        sum += fmax(s->phases.seconds[parts[part].phases[i]], 0);
    return sum;
}

typedef struct bars {
    const char **names;            /* [runs] */
    double *row, *from[PARTS + 1]; /* [runs]; from[p + 1]: where p ends */
    bm_plot_series series[PARTS];
} bars;

static void bars_free(bars *b)
{
    free((void *)b->names);
    free(b->row);
    for (size_t p = 0; p <= PARTS; p++)
        free(b->from[p]);
}

static bm_status bars_new(bars *b, size_t n)
{
    bool whole = false;

    b->names = calloc(n, sizeof(char *));
    b->row = calloc(n, sizeof *b->row);
    whole = b->names != NULL && b->row != NULL;
    for (size_t p = 0; p <= PARTS; p++) {
        b->from[p] = calloc(n, sizeof *b->from[p]);
        whole = whole && b->from[p] != NULL;
    }
    return whole ? BM_OK : BM_FAIL(BM_ERR_MEMORY, "no memory for a figure");
}

static double longest_seconds(const bm_run_set *r)
{
    double most = 0;

    for (size_t i = 0; i < r->n; i++)
        most = fmax(most, bm_phases_total(&r->all[i].phases));
    return most;
}

static bm_status draw_phases(FILE *f, const bm_run_set *r)
{
    double most = longest_seconds(r);
    double unit = most > 7200 ? 3600 : most > 120 ? 60 : 1;
    bars b = {0};
    bm_plot plot = {
        .title = "time of rank 0 by phase",
        .x = {.title = unit == 3600 ? "hours"
                       : unit == 60 ? "minutes"
                                    : "seconds",
              .from_zero = true},
        .y = {.n_names = r->n < BM_MOST_TICKS ? r->n : BM_MOST_TICKS},
        .series = b.series,
        .n = PARTS,
        .height = 40 + 28 * (double)r->n};
    bm_status status = BM_OK;

    BM_TRY_DONE(bars_new(&b, r->n));
    plot.y.names = b.names;
    for (size_t i = 0; i < r->n; i++) {
        b.names[i] = r->names[i];
        b.row[i] = (double)i;
        for (size_t p = 0; p < PARTS; p++)
            b.from[p + 1][i] = b.from[p][i] + part_of(&r->all[i], p) / unit;
    }
    for (size_t p = 0; p < PARTS; p++)
        b.series[p] = (bm_plot_series){.name = parts[p].name,
                                       .mark = BM_BARS,
                                       .colour = p,
                                       .n = r->n,
                                       .x = b.from[p],
                                       .x_end = b.from[p + 1],
                                       .y = b.row};
    bm_report_page_figure(
        f, &plot,
        "Each bar is the time of a run's first process: only forward, backward "
        "and the rest of training are learning; long waiting for data asks for "
        "faster disks, long exchange for longer blocks.");
done:
    bars_free(&b);
    return status;
}

static double speed(const bm_run_summary *s, size_t i)
{
    const bm_run_epoch *e = &s->epochs[i];

    return e->seconds > 0 ? e->frames / e->seconds : NAN;
}

static const bm_figure times[] = {
    {.title = "speed",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "frames a second", .from_zero = true},
     .count = bm_figure_epochs,
     .at = bm_figure_epoch_at,
     .solid = speed,
     .caption = "Frames that all workers together learn from in a second: a "
                "drop means that something else used the machine."},
    {0}};

bm_status bm_report_time(FILE *f, const bm_run_set *r)
{
    bm_report_page_section(f, "Where the time goes");
    BM_TRY(draw_phases(f, r));
    BM_TRY(bm_figures_draw(f, r, times, "No block is done yet."));
    bm_report_page_section_end(f);
    return BM_OK;
}

/* ---- workers ------------------------------------------------------------ */

static double waiting(const bm_run_summary *s, size_t i)
{
    return s->rows[i].seconds > 0 ? s->rows[i].wait / s->rows[i].seconds : NAN;
}

static const bm_figure waits[] = {
    {.title = "waiting for the slowest rank",
     .x = BM_EPOCH_AXIS,
     .y = {.title = "of the time of a block",
           .percent = true,
           .from_zero = true},
     .count = bm_figure_blocks,
     .at = bm_figure_block_at,
     .solid = waiting,
     .caption = "The part of a block in which the first process waits for the "
                "others: near 0 all are equally fast; bmuf trace names the "
                "slowest."},
    {0}};

enum { MOST_WORKERS = 4096 };

/* Sums over the journal of lists with a number for each worker. */
typedef struct worker_sums {
    double *sum; /* [MOST_WORKERS] */
    size_t workers, blocks;
    const char *field;
} worker_sums;

static void take(void *self, const char *kind, json_t *event)
{
    worker_sums *w = self;
    const char *text = json_string_value(json_object_get(event, w->field));
    char *end = NULL;

    (void)kind;
    if (text == NULL)
        return;
    w->blocks++;
    for (size_t i = 0; i < MOST_WORKERS; i++, text = end) {
        double x = strtod(text, &end);

        if (end == text)
            break;
        w->sum[i] += x;
        w->workers = i + 1 > w->workers ? i + 1 : w->workers;
    }
}

/* One of the two numbers that a journal may have for each worker. */
static const struct of_worker {
    const char *field, *title, *unit, *caption;
} of_workers[] = {
    {"batches_of_workers", "mini-batches of each worker",
     "mean of a block, within its time limit",
     "How many mini-batches a worker did before the time of a block was over: "
     "a "
     "low point is a slow worker, which counts less in the mean."},
    {"step_s", "time of a step of each worker", "seconds, mean of blocks",
     "A high point is a slow worker: it meets the server less often, with an "
     "older model."},
};

static bm_status draw_workers(FILE *f, const bm_run_set *r,
                              const struct of_worker *what, bool *drawn)
{
    double *numbers = calloc(2 * r->n * MOST_WORKERS, sizeof *numbers);
    bm_plot_series *series = calloc(r->n, sizeof *series);
    bm_plot plot = {.title = what->title,
                    .x = {.title = "worker"},
                    .y = {.title = what->unit, .from_zero = true},
                    .series = series};
    bm_status status = BM_OK;

    if (numbers == NULL || series == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for the workers");
    for (size_t k = 0; k < r->n; k++) {
        double *y = numbers + 2 * k * MOST_WORKERS, *x = y + MOST_WORKERS;
        worker_sums w = {.sum = y, .field = what->field};

        BM_TRY_DONE(bm_journal_events(r->all[k].directory, take, &w));
        for (size_t i = 0; i < w.workers; i++) {
            x[i] = (double)i;
            y[i] /= (double)w.blocks;
        }
        if (w.workers > 0)
            series[plot.n++] = (bm_plot_series){.name = r->names[k],
                                                .mark = BM_POINTS,
                                                .colour = k,
                                                .n = w.workers,
                                                .x = x,
                                                .y = y};
    }
    if (plot.n > 0)
        bm_report_page_figure(f, &plot, what->caption);
    *drawn = *drawn || plot.n > 0;
done:
    free(numbers);
    free(series);
    return status;
}

static const char *whole_number(double x, char out[32])
{
    snprintf(out, 32, "%.0f", x);
    return isfinite(x) ? out : "-";
}

static void write_workers(FILE *f, const bm_run_set *r)
{
    static const char *const head[] = {"run", "workers", "processes",
                                       "left out of a mean", "waiting"};
    enum { COLUMNS = sizeof head / sizeof head[0] };

    bm_report_table_begin(f, head, COLUMNS);
    for (size_t k = 0; k < r->n; k++) {
        const bm_run_summary *s = &r->all[k];
        char texts[COLUMNS][32];
        const char *cells[COLUMNS] = {r->names[k]};
        double left_out = 0;

        for (size_t i = 0; i < s->n_rows; i++)
            left_out += isfinite(s->rows[i].left_out) ? s->rows[i].left_out : 0;
        snprintf(texts[3], sizeof texts[3], "%.0f times", left_out);
        snprintf(texts[4], sizeof texts[4], "%.1f %%",
                 100 * s->phases.seconds[BM_PHASE_wait] /
                     fmax(s->seconds, 1e-9));
        cells[1] = whole_number(bm_figure_start_number(s, "workers"), texts[1]);
        cells[2] = whole_number(s->ranks, texts[2]);
        cells[3] = texts[3];
        cells[4] = texts[4];
        bm_report_table_row(f, cells, COLUMNS);
    }
    bm_report_table_end(f);
}

static bool any_ranks(const bm_run_set *r)
{
    for (size_t k = 0; k < r->n; k++)
        if (r->all[k].ranks > 1)
            return true;
    return false;
}

bm_status bm_report_workers(FILE *f, const bm_run_set *r)
{
    bool drawn = any_ranks(r);

    bm_report_page_section(f, "Workers against each other");
    bm_report_page_words(
        f,
        "Workers are logical: those of one process take turns. A worker is "
        "left out of the mean of a block when it diverges; waiting is the part "
        "of the time in which the first process waits for the slowest.");
    write_workers(f, r);
    if (drawn)
        BM_TRY(bm_figures_draw(f, r, waits, "No block is done yet."));
    for (size_t i = 0; i < sizeof of_workers / sizeof of_workers[0]; i++)
        BM_TRY(draw_workers(f, r, &of_workers[i], &drawn));
    if (!drawn)
        bm_report_page_words(
            f, "Each run had one process, which trained its workers one after "
               "the other with the same speed: there is nothing to compare.");
    bm_report_page_section_end(f);
    return BM_OK;
}
