/* parallel.c - parallel coordinates: an axis for each setting, a line for each
 * trial. */
#include "cli/plot/markup.h"
#include "cli/plot/plot_parts.h"

#include <math.h>

enum {
    TOP = 74,
    HEIGHT = 220,
    LEFT = 40,
    RIGHT = BM_PLOT_WIDTH - 60,
    MOST_AXES = 12
};

static double value(const bm_parallel *p, size_t row, size_t axis)
{
    return p->values[row * p->n_axes + axis];
}

static void fit(const bm_parallel *p, size_t n_axes, bm_plot_axis *axes)
{
    for (size_t k = 0; k < n_axes; k++) {
        double least = NAN, most = NAN;

        axes[k] = p->axes[k];
        for (size_t i = 0; i < p->n; i++)
            if (bm_plot_axis_shows(&axes[k], value(p, i, k))) {
                least = fmin(least, value(p, i, k));
                most = fmax(most, value(p, i, k));
            }
        bm_plot_axis_fit(&axes[k], least, most);
    }
}

static double column(size_t k, size_t n_axes)
{
    return n_axes < 2 ? (LEFT + RIGHT) / 2.
                      : LEFT + (double)(RIGHT - LEFT) * (double)k /
                                   ((double)n_axes - 1);
}

static void draw_axis(FILE *f, const bm_plot_axis *a, size_t k, size_t n_axes)
{
    double x = column(k, n_axes), before = 1e9;
    double apart = n_axes < 2 ? RIGHT - LEFT : column(1, n_axes) - LEFT;
    bm_plot_tick ticks[BM_MOST_TICKS];
    size_t n = bm_plot_axis_ticks(a, 5, ticks);

    fputs("<g class='halo'>", f); /* labels stand on lines */
    fprintf(f, "<path class='axis' d='M%.1f %dV%d'/>", x, TOP, TOP + HEIGHT);
    for (size_t i = 0; i < n; i++) {
        double y = TOP + HEIGHT * (1 - bm_plot_axis_place(a, ticks[i].at));

        if (y > before - BM_PLOT_LINE)
            continue;
        bm_plot_text(f, x + 5, y + 4, "start",
                     fmin(apart, BM_PLOT_WIDTH - x) - BM_PLOT_GAP,
                     ticks[i].label);
        before = y;
    }
    if (a->title != NULL) /* titles of neighbours alternate in height */
        bm_plot_text(f,
                     k == 0            ? BM_PLOT_GAP
                     : k + 1 == n_axes ? BM_PLOT_WIDTH - 8
                                       : x,
                     k % 2 == 0 ? TOP - 12 : TOP - 12 - BM_PLOT_LINE,
                     k == 0            ? "start"
                     : k + 1 == n_axes ? "end"
                                       : "middle",
                     (k == 0 || k + 1 == n_axes ? 1.4 : 2) * apart -
                         BM_PLOT_GAP,
                     a->title);
    fputs("</g>\n", f);
}

static void draw_row(FILE *f, const bm_parallel *p, const bm_plot_axis *axes,
                     size_t n_axes, size_t row)
{
    const bm_plot_axis *z = &axes[p->colour];
    double by = value(p, row, p->colour);
    bool pen = false, best = row == p->best;
    char colour[8];

    if (!bm_plot_axis_shows(z, by))
        return;
    fprintf(f,
            "<path class='seq' "
            "style='stroke:%s;stroke-width:%s;stroke-opacity:%s' d='",
            bm_plot_sequential(bm_plot_axis_place(z, by), colour),
            best ? "5" : "1.5", best ? "1" : ".7");
    for (size_t k = 0; k < n_axes; k++) {
        bool shown = bm_plot_axis_shows(&axes[k], value(p, row, k));

        if (shown)
            fprintf(f, "%c%.1f %.1f", pen ? 'L' : 'M', column(k, n_axes),
                    TOP + HEIGHT * (1 - bm_plot_axis_place(&axes[k],
                                                           value(p, row, k))));
        pen = shown;
    }
    fputs("'/>\n", f);
}

void bm_parallel_write(const bm_parallel *p, FILE *f)
{
    size_t n_axes = p->n_axes < MOST_AXES ? p->n_axes : MOST_AXES;
    bm_plot_axis axes[MOST_AXES];

    BM_ASSERT(n_axes > 0 && p->colour < n_axes);
    fit(p, n_axes, axes);
    fprintf(f, "<svg class='plot' viewBox='0 0 %d %d' role='img'>",
            BM_PLOT_WIDTH, TOP + HEIGHT + 2 * BM_PLOT_LINE + BM_PLOT_GAP);
    bm_plot_title(f, p->title);
    for (size_t i = 0; i < p->n; i++)
        if (i != p->best)
            draw_row(f, p, axes, n_axes, i);
    if (p->best < p->n)
        draw_row(f, p, axes, n_axes, p->best);
    for (size_t k = 0; k < n_axes; k++)
        draw_axis(f, &axes[k], k, n_axes);
    bm_plot_colour_key(f, &axes[p->colour], BM_PLOT_GAP,
                       TOP + HEIGHT + BM_PLOT_LINE);
    fputs("</svg>\n", f);
}
