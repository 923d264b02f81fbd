#include "cli/report/page/figure.h"

#include "cli/report/journal_events.h"
#include "cli/report/page/page.h"
#include "core/sort.h"

#include <math.h>
#include <stdlib.h>

/* ---- axes --------------------------------------------------------------- */

size_t bm_figure_epochs(const bm_run_summary *s)
{
    return s->n_epochs;
}

double bm_figure_epoch_at(const bm_run_summary *s, size_t i)
{
    (void)s;
    return (double)i + 1;
}

size_t bm_figure_blocks(const bm_run_summary *s)
{
    return s->n_rows;
}

double bm_figure_start_number(const bm_run_summary *s, const char *key)
{
    return bm_event_number_or(s->last[BM_RUN_start], key, NAN);
}

/* Epochs done after the block. */
double bm_figure_block_at(const bm_run_summary *s, size_t i)
{
    const bm_run_block *b = &s->rows[i];

    if (!(b->blocks_per_epoch >= 1))
        return (double)i + 1;
    return (double)b->epoch + ((double)b->block + 1) / b->blocks_per_epoch;
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
static double mean_of(const bm_run_summary *s, bm_figure_pick p, size_t begin,
                      size_t end)
{
    double sum = 0;
    size_t n = 0;

    for (size_t i = begin; i < end; i++)
        include(p(s, i), &sum, &n);
    return n > 0 ? sum / (double)n : NAN;
}

static double when(const bm_run_summary *s, const bm_figure *c, size_t i)
{
    return c->when != NULL ? c->when(s, i) : c->at(s, i);
}

/* How many points of a run are not after `end`. */
static size_t reached(const bm_run_summary *s, const bm_figure *c, double end)
{
    size_t low = 0, high = c->count(s);

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (when(s, c, middle) <= end * (1 + 1e-9))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Where the points of a line end, by `when`: at the points of the run that has the fewest
 * in the same time, and from there on at its last step up to the end of the longest run. */
typedef struct grid {
    const bm_run_summary *run;
    size_t n, all; /* of the run; with those that follow */
    double last, step;
} grid;

static double place(const grid *g, const bm_figure *c, size_t i)
{
    return i < g->n ? when(g->run, c, i)
                    : g->last + (double)(i + 1 - g->n) * g->step;
}

static void set_grid(grid *g, const bm_run_set *r, const bm_run_group *group,
                     const bm_figure *c)
{
    double end = 0;

    *g = (grid){0};
    for (size_t k = 0; k < group->n; k++) {
        const bm_run_summary *s = &r->all[group->members[k]];
        size_t n = c->count(s);
        double last = n > 0 ? when(s, c, n - 1) : 0;

        end = fmax(end, last);
        if (n == 0 ||
            (g->run != NULL && (double)n * g->last >= (double)g->n * last))
            continue;
        *g = (grid){s, n, n, last, n > 1 ? last - when(s, c, n - 2) : last};
    }
    if (!(g->step > 0)) /* a journal that is not in order */
        g->step = g->last;
    if (end > g->last)
        g->all += (size_t)ceil((end - g->last) / g->step - 1e-6);
}

/* Point i of the line: the mean of the runs' points after `begin`, up to `end`. x grows
 * by the mean step of the runs that go on, so that it never falls where one ends. */
static void set_point(line *l, size_t i, double begin, double end,
                      const bm_run_set *r, const bm_run_group *g,
                      const bm_figure *c, bm_figure_pick p)
{
    double sum = 0, sum_x = 0, before = i > 0 ? l->x[i - 1] : 0;
    size_t n = 0, n_x = 0;

    l->low[i] = l->high[i] = NAN;
    for (size_t k = 0; k < g->n; k++) {
        const bm_run_summary *s = &r->all[g->members[k]];
        size_t first = reached(s, c, begin), after = reached(s, c, end);
        double y = mean_of(s, p, first, after);

        if (first < after && (i == 0 || first > 0))
            include(c->at(s, after - 1) - (i > 0 ? c->at(s, first - 1) : 0),
                    &sum_x, &n_x);
        if (!isfinite(y))
            continue;
        include(y, &sum, &n);
        l->low[i] = fmin(l->low[i], y);
        l->high[i] = fmax(l->high[i], y);
    }
    l->x[i] = before + (n_x > 0 ? sum_x / (double)n_x : 0);
    l->mean[i] = n > 0 ? sum / (double)n : NAN;
    l->known = l->known || n > 0;
}

static void set_line(line *l, const bm_run_set *r, const bm_run_group *g,
                     const bm_figure *c, bm_figure_pick p)
{
    double begin = 0;
    size_t every = 0;
    grid of;

    set_grid(&of, r, g, c);
    every = (of.all + MOST_POINTS - 1) / MOST_POINTS;
    l->known = false;
    for (l->n = 0; l->n * every < of.all; l->n++) {
        size_t next = (l->n + 1) * every;
        double end = place(&of, c, (next < of.all ? next : of.all) - 1);

        set_point(l, l->n, begin, end, r, g, c, p);
        begin = end;
    }
}

/* ---- figures ------------------------------------------------------------ */

/* Its plot, with room for the lines. */
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

static void add_group(drawing *d, const bm_run_set *r, const bm_figure *c,
                      size_t k)
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
        bm_sort(all, n);
        top = 3 * all[n * 9 / 10];
        if (top > 0 && all[n - 1] > 1.5 * top)
            d->plot.y.most = top;
    }
    free(all);
    return BM_OK;
}

/* *drawn <- whether there was anything to draw. */
static bm_status draw(FILE *f, const bm_run_set *r, const bm_figure *c,
                      bool *drawn)
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

bm_status bm_figures_draw(FILE *f, const bm_run_set *r,
                          const bm_figure *figures, const char *nothing)
{
    bool drawn = false, any = false;

    for (const bm_figure *c = figures; c->title != NULL; c++) {
        BM_TRY(draw(f, r, c, &drawn));
        any = any || drawn;
    }
    if (!any)
        bm_report_page_words(f, "%s", nothing);
    return BM_OK;
}
