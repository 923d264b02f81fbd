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

static size_t longest(const bm_run_set *r, const bm_run_group *g,
                      const bm_figure *c)
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
                      const bm_run_group *g, const bm_figure *c,
                      bm_figure_pick p)
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
                     const bm_figure *c, bm_figure_pick p)
{
    size_t n = longest(r, g, c), every = (n + MOST_POINTS - 1) / MOST_POINTS;

    l->known = false;
    for (l->n = 0; l->n * every < n; l->n++)
        set_point(l, l->n, every, r, g, c, p);
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
