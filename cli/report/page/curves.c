/* curves.c - a figure is a row of a table: what is on its axes, and which
 * numbers of a run are its lines. */
#include "cli/report/page/curves.h"

#include "cli/report/journal_events.h"
#include "cli/report/page/page.h"

#include <math.h>
#include <stdlib.h>

/* A number of epoch or block i of a run; NAN: not known. */
typedef double (*pick)(const bm_run_summary *s, size_t i);

typedef struct curve {
    const char *title;
    bm_plot_axis x, y;
    bool log_if_wide; /* the y axis, if numbers differ by a factor of 30 */
    bool cut;         /* the y axis, above what the first few points have */
    size_t (*count)(const bm_run_summary *s);
    pick at, solid, dashed; /* dashed may be NULL */
    const char *solid_name, *dashed_name;
    const char *caption;
} curve;

/* ---- numbers of a run --------------------------------------------------- */

static size_t epochs(const bm_run_summary *s)
{
    return s->n_epochs;
}

static size_t blocks(const bm_run_summary *s)
{
    return s->n_rows;
}

static double start_number(const bm_run_summary *s, const char *key)
{
    const json_t *value = json_object_get(s->last[BM_RUN_start], key);

    return json_is_number(value) ? json_number_value(value) : NAN;
}

static double epoch_at(const bm_run_summary *s, size_t i)
{
    (void)s;
    return (double)i + 1;
}

static double minutes_at(const bm_run_summary *s, size_t i)
{
    double seconds = 0;

    for (size_t k = 0; k <= i; k++)
        seconds += s->epochs[k].seconds;
    return seconds / 60;
}

/* Epochs done after the block. */
static double block_at(const bm_run_summary *s, size_t i)
{
    double in_epoch = start_number(s, "blocks_per_epoch");

    if (!(in_epoch >= 1))
        return (double)i + 1;
    return (double)s->rows[i].epoch + ((double)s->rows[i].block + 1) / in_epoch;
}

static double dev_loss(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].dev_loss;
}

static double train_loss(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].loss;
}

static double dev_error(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].dev_ler;
}

static double train_error(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].error;
}

static double rate(const bm_run_summary *s, size_t i)
{
    return s->epochs[i].rate;
}

static double g_norm(const bm_run_summary *s, size_t i)
{
    return s->rows[i].g_norm;
}

static double delta_norm(const bm_run_summary *s, size_t i)
{
    return s->rows[i].delta_norm;
}

static double cosine(const bm_run_summary *s, size_t i)
{
    return s->rows[i].cosine;
}

/* How far Delta goes along G, in lengths of G. */
static double gain(const bm_run_summary *s, size_t i)
{
    const bm_run_block *b = &s->rows[i];

    return b->g_norm > 0 ? b->delta_norm * b->cosine / b->g_norm : NAN;
}

/* zeta / (1 - eta) */
static double steady_gain(const bm_run_summary *s, size_t i)
{
    (void)i;
    return start_number(s, "block_rate") /
           (1 - start_number(s, "block_momentum"));
}

static double speed(const bm_run_summary *s, size_t i)
{
    const bm_run_epoch *e = &s->epochs[i];

    return e->seconds > 0 ? e->frames / e->seconds : NAN;
}

static double waiting(const bm_run_summary *s, size_t i)
{
    return s->rows[i].seconds > 0 ? s->rows[i].wait / s->rows[i].seconds : NAN;
}

/* ---- lines -------------------------------------------------------------- */

enum { MOST_POINTS = 200 };

/* Of a group, over epochs or blocks: the mean of its runs, the smallest and the
 * largest. */
typedef struct line {
    size_t n;
    double x[MOST_POINTS], mean[MOST_POINTS];
    double low[MOST_POINTS], high[MOST_POINTS];
    bool known; /* any point */
} line;

static void include(double value, double *sum, size_t *n)
{
    if (isfinite(value)) {
        *sum += value;
        (*n)++;
    }
}

/* The mean of points begin .. end - 1 of a run. */
static double mean_of(const bm_run_summary *s, pick p, size_t begin, size_t end)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = begin; i < end; i++)
        include(p(s, i), &sum, &n);
    return n > 0 ? sum / (double)n : NAN;
}

static size_t longest(const bm_run_set *r, const bm_run_group *g,
                      const curve *c)
{
    size_t most = 0;

    for (size_t k = 0; k < g->n; k++) {
        size_t n = c->count(&r->all[g->members[k]]);

        most = n > most ? n : most;
    }
    return most;
}

/* Point i of the line, which is the mean of `every` points of each run. */
static void set_point(line *l, size_t i, size_t every, const bm_run_set *r,
                      const bm_run_group *g, const curve *c, pick p)
{
    double sum = 0, sum_x = 0;
    size_t n = 0, n_x = 0;

    l->low[i] = l->high[i] = NAN;
    for (size_t k = 0; k < g->n; k++) {
        const bm_run_summary *s = &r->all[g->members[k]];
        size_t all = c->count(s), begin = i * every;
        size_t end = begin + every < all ? begin + every : all;
        double y = begin < all ? mean_of(s, p, begin, end) : NAN;

        if (!isfinite(y))
            continue;
        include(y, &sum, &n);
        include(c->at(s, end - 1), &sum_x, &n_x);
        l->low[i] = fmin(l->low[i], y);
        l->high[i] = fmax(l->high[i], y);
    }
    l->x[i] = n_x > 0 ? sum_x / (double)n_x : NAN;
    l->mean[i] = n > 0 ? sum / (double)n : NAN;
    l->known = l->known || n > 0;
}

static void set_line(line *l, const bm_run_set *r, const bm_run_group *g,
                     const curve *c, pick p)
{
    size_t n = longest(r, g, c), every = (n + MOST_POINTS - 1) / MOST_POINTS;

    l->known = false;
    for (l->n = 0; l->n * every < n; l->n++)
        set_point(l, l->n, every, r, g, c, p);
}

/* ---- figures ------------------------------------------------------------ */

/* A plot of a curve, with room for its lines. */
typedef struct drawing {
    line *solid, *dashed;   /* [groups] */
    bm_plot_series *series; /* [3 * groups] */
    bm_plot plot;
} drawing;

static void drawing_free(drawing *d)
{
    free(d->solid);
    free(d->dashed);
    free(d->series);
}

static void add(drawing *d, const char *name, bm_mark mark, const line *l,
                size_t colour)
{
    d->series[d->plot.n++] =
        (bm_plot_series){.name = name,
                         .mark = mark,
                         .colour = colour,
                         .n = l->n,
                         .x = l->x,
                         .y = mark == BM_BAND ? l->low : l->mean,
                         .y_end = mark == BM_BAND ? l->high : NULL};
}

static void add_group(drawing *d, const bm_run_set *r, const curve *c, size_t k)
{
    bool alone = r->n_groups == 1;
    const char *name =
        alone && c->solid_name != NULL ? c->solid_name : r->groups[k].name;

    if (r->groups[k].n > 1)
        add(d, NULL, BM_BAND, &d->solid[k], k);
    if (d->dashed[k].known) {
        add(d, alone ? c->dashed_name : NULL, BM_LINE, &d->dashed[k], k);
        d->series[d->plot.n - 1].dashed = true;
    }
    if (d->solid[k].known)
        add(d, name, BM_LINE, &d->solid[k], k);
}

static bool is_wide(const drawing *d, size_t n)
{
    double least = NAN, most = NAN;

    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < d->solid[k].n; i++) {
            least = fmin(least, d->solid[k].mean[i]);
            most = fmax(most, d->solid[k].mean[i]);
        }
    return least > 0 && most / least > 30;
}

static int compare_numbers(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Ends the axis at three times what nine of ten points have, so that a few
 * large ones do not flatten the rest. */
static bm_status cut_axis(drawing *d, size_t groups)
{
    double *all = calloc(2 * groups * MOST_POINTS, sizeof *all), top = 0;
    size_t n = 0;

    if (all == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a figure");
    for (size_t k = 0; k < 2 * groups; k++) {
        const line *l = k < groups ? &d->solid[k] : &d->dashed[k - groups];

        for (size_t i = 0; i < l->n; i++)
            if (isfinite(l->mean[i]))
                all[n++] = l->mean[i];
    }
    if (n > 0) {
        qsort(all, n, sizeof *all, compare_numbers);
        top = 3 * all[n * 9 / 10];
        if (top > 0 && all[n - 1] > 1.5 * top)
            d->plot.y.most = top;
    }
    free(all);
    return BM_OK;
}

/* *drawn <- whether there was anything to draw. */
static bm_status draw(FILE *f, const bm_run_set *r, const curve *c, bool *drawn)
{
    drawing d = {.solid = calloc(r->n_groups, sizeof(line)),
                 .dashed = calloc(r->n_groups, sizeof(line)),
                 .series = calloc(3 * r->n_groups, sizeof(bm_plot_series)),
                 .plot = {.title = c->title, .x = c->x, .y = c->y}};
    bm_status status = BM_OK;

    if (d.solid == NULL || d.dashed == NULL || d.series == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory to draw %s", c->title);
    *drawn = false;
    for (size_t k = 0; k < r->n_groups; k++) {
        set_line(&d.solid[k], r, &r->groups[k], c, c->solid);
        if (c->dashed != NULL)
            set_line(&d.dashed[k], r, &r->groups[k], c, c->dashed);
        *drawn = *drawn || d.solid[k].known;
        add_group(&d, r, c, k);
    }
    if (c->log_if_wide && is_wide(&d, r->n_groups))
        d.plot.y.scale = BM_PLOT_LOG;
    if (c->cut)
        BM_TRY_DONE(cut_axis(&d, r->n_groups));
    d.plot.series = d.series;
    if (*drawn)
        bm_report_page_figure(f, &d.plot, c->caption);
done:
    drawing_free(&d);
    return status;
}

/* All figures of a table that ends with {0}; `nothing` if there is none. */
static bm_status draw_all(FILE *f, const bm_run_set *r, const curve *curves,
                          const char *nothing)
{
    bool drawn = false, any = false;

    for (const curve *c = curves; c->title != NULL; c++) {
        BM_TRY(draw(f, r, c, &drawn));
        any = any || drawn;
    }
    if (!any)
        bm_report_page_words(f, "%s", nothing);
    return BM_OK;
}

/* ---- learning ----------------------------------------------------------- */

#define EPOCHS                                                                 \
    {                                                                          \
        .title = "epochs", .from_zero = true                                   \
    }

static const curve learning[] = {
    {.title = "loss",
     .x = EPOCHS,
     .y = {.title = "nats"},
     .log_if_wide = true,
     .count = epochs,
     .at = epoch_at,
     .solid = dev_loss,
     .solid_name = "dev",
     .dashed = train_loss,
     .dashed_name = "training",
     .caption =
         "Loss on dev (solid) and in training (dashed): lower is better; "
         "where dev rises while training falls, the network learns the "
         "training data by heart."},
    {.title = "label errors",
     .x = EPOCHS,
     .y = {.title = "of all labels", .percent = true, .from_zero = true},
     .cut = true,
     .count = epochs,
     .at = epoch_at,
     .solid = dev_error,
     .solid_name = "dev",
     .dashed = train_error,
     .dashed_name = "training",
     .caption =
         "Wrong labels on dev (solid) and in training (dashed): lower is "
         "better; this is the number to choose a run by. The first epochs "
         "may be above the figure."},
    {.title = "label errors on dev over time",
     .x = {.title = "minutes of training", .from_zero = true},
     .y = {.title = "of all labels", .percent = true, .from_zero = true},
     .cut = true,
     .count = epochs,
     .at = minutes_at,
     .solid = dev_error,
     .caption = "The same over the time that training took: the curve further "
                "to the left is faster on the machine that was used."},
    {.title = "learning rate",
     .x = EPOCHS,
     .y = {.title = "train.rate by its schedule"},
     .log_if_wide = true,
     .count = epochs,
     .at = epoch_at,
     .solid = rate,
     .caption = "Step size of the local update: errors usually fall further "
                "while it becomes small."},
    {0}};

bm_status bm_report_learning(FILE *f, const bm_run_set *r)
{
    bm_report_page_section(f, "Learning curves");
    if (r->n_groups < r->n)
        bm_report_page_words(
            f, "Runs that differ in their seed only are drawn as one line, "
               "their mean, in a band from the smallest to the largest: a "
               "difference within the bands may be luck.");
    BM_TRY(draw_all(f, r, learning,
                    "No block is done yet, so there is nothing to draw."));
    bm_report_page_section_end(f);
    return BM_OK;
}

/* ---- the filter --------------------------------------------------------- */

static const curve filter[] = {
    {.title = "length of updates",
     .x = EPOCHS,
     .y = {.title = "norm of weights", .scale = BM_PLOT_LOG},
     .count = blocks,
     .at = block_at,
     .solid = delta_norm,
     .solid_name = "filtered update Delta",
     .dashed = g_norm,
     .dashed_name = "mean update G",
     .caption =
         "How far a block moves the workers' mean (G, dashed) and how "
         "far the filter moves the model (Delta, solid): Delta is longer "
         "where blocks agree."},
    {.title = "cosine of G and Delta",
     .x = EPOCHS,
     .y = {.title = "1: the same direction; 0: no relation"},
     .count = blocks,
     .at = block_at,
     .solid = cosine,
     .caption = "Near 1 blocks go on in one direction and could be longer, or "
                "have more momentum; near 0 a mean update is mostly noise."},
    {.title = "effective gain",
     .x = EPOCHS,
     .y = {.title = "cosine x |Delta| / |G|", .from_zero = true},
     .cut = true,
     .count = blocks,
     .at = block_at,
     .solid = gain,
     .solid_name = "effective gain",
     .dashed = steady_gain,
     .dashed_name = "steady gain zeta / (1 - eta)",
     .caption = "How much further than G the model moves along G: it comes to "
                "the steady gain (dashed), which should be about the number of "
                "workers, where blocks agree; above that, G is shrinking, as "
                "at the end of training."},
    {0}};

bm_status bm_report_filter(FILE *f, const bm_run_set *r)
{
    bm_report_page_section(f, "What the filter does");
    bm_report_page_words(
        f,
        "After each block the mean G of the workers' changes is filtered: "
        "Delta = eta Delta + zeta G, and the model moves by Delta. eta is the "
        "block momentum, zeta the block rate.");
    BM_TRY(draw_all(f, r, filter,
                    "These runs exchange no models after blocks, or have no "
                    "block yet: there is no filter to look at."));
    bm_report_page_section_end(f);
    return BM_OK;
}

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

static const curve times[] = {
    {.title = "speed",
     .x = EPOCHS,
     .y = {.title = "frames a second", .from_zero = true},
     .count = epochs,
     .at = epoch_at,
     .solid = speed,
     .caption = "Frames that all workers together learn from in a second: a "
                "drop means that something else used the machine."},
    {0}};

bm_status bm_report_time(FILE *f, const bm_run_set *r)
{
    bm_report_page_section(f, "Where the time goes");
    BM_TRY(draw_phases(f, r));
    BM_TRY(draw_all(f, r, times, "No block is done yet."));
    bm_report_page_section_end(f);
    return BM_OK;
}

/* ---- workers ------------------------------------------------------------ */

static const curve waits[] = {
    {.title = "waiting for the slowest rank",
     .x = EPOCHS,
     .y = {.title = "of the time of a block",
           .percent = true,
           .from_zero = true},
     .count = blocks,
     .at = block_at,
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
    {"step_s", "time of a mini-batch of each worker", "seconds, mean of blocks",
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
        cells[1] = whole_number(start_number(s, "workers"), texts[1]);
        cells[2] = whole_number(start_number(s, "ranks"), texts[2]);
        cells[3] = texts[3];
        cells[4] = texts[4];
        bm_report_table_row(f, cells, COLUMNS);
    }
    bm_report_table_end(f);
}

static bool any_ranks(const bm_run_set *r)
{
    for (size_t k = 0; k < r->n; k++)
        if (start_number(&r->all[k], "ranks") > 1)
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
        BM_TRY(draw_all(f, r, waits, "No block is done yet."));
    for (size_t i = 0; i < sizeof of_workers / sizeof of_workers[0]; i++)
        BM_TRY(draw_workers(f, r, &of_workers[i], &drawn));
    if (!drawn)
        bm_report_page_words(
            f, "Each run had one process, which trained its workers one after "
               "the other with the same speed: there is nothing to compare.");
    bm_report_page_section_end(f);
    return BM_OK;
}
