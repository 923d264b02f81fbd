#include "cli/report/chart.h"

#include "core/file.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>

enum { WIDTH = 720, LEFT = 60, RIGHT = 130, PLOT = 300, TOP = 50, GAP = 60 };

/* Distinguishable for colour-blind readers (Okabe and Ito). */
static const char *const colours[] = {"#0072b2", "#d55e00", "#009e73",
                                      "#cc79a7", "#e69f00", "#56b4e9",
                                      "#000000", "#999999", "#f0e442"};

typedef struct panel {
    double top, lowest, highest; /* of y, after `scale` */
    double most;                 /* log2 of the largest x */
    double (*scale)(double y);
} panel;

static double identity(double y)
{
    return y;
}

static double at_x(const panel *p, double x)
{
    return LEFT + (WIDTH - LEFT - RIGHT) * log2(x) / fmax(p->most, 1);
}

static double at_y(const panel *p, double y)
{
    double height =
        (p->scale(y) - p->lowest) / fmax(p->highest - p->lowest, 1e-9);

    return p->top + PLOT * (1 - fmin(fmax(height, 0), 1));
}

static void grid_line(FILE *f, const panel *p, double y, const char *label)
{
    fprintf(f,
            "<line x1='%d' x2='%d' y1='%.1f' y2='%.1f' stroke='#ddd'/>"
            "<text x='%d' y='%.1f' text-anchor='end'>%s</text>\n",
            LEFT, WIDTH - RIGHT, at_y(p, y), at_y(p, y), LEFT - 6,
            at_y(p, y) + 4, label);
}

static void columns(FILE *f, const panel *p, size_t n, const int *x)
{
    for (size_t i = 0; i < n; i++)
        fprintf(f,
                "<line x1='%.1f' x2='%.1f' y1='%.1f' y2='%.1f' "
                "stroke='#eee'/><text x='%.1f' y='%.1f' "
                "text-anchor='middle'>%d</text>\n",
                at_x(p, x[i]), at_x(p, x[i]), p->top, p->top + PLOT,
                at_x(p, x[i]), p->top + PLOT + 16, x[i]);
}

static void draw(FILE *f, const panel *p, size_t n, const int *x,
                 const double *y, bool per_worker, const char *colour)
{
    fprintf(f, "<polyline fill='none' stroke='%s' stroke-width='2' points='",
            colour);
    for (size_t i = 0; i < n; i++)
        fprintf(f, "%.1f,%.1f ", at_x(p, x[i]),
                at_y(p, per_worker ? y[i] / x[i] : y[i]));
    fprintf(f, "'/>\n");
}

static void speed(FILE *f, const panel *p, size_t n, const int *x, size_t lines,
                  const bm_chart_line *line)
{
    columns(f, p, n, x);
    for (double y = 1; log2(y) <= p->highest; y *= 2) {
        char label[16];
        snprintf(label, sizeof label, "%.0f", y);
        grid_line(f, p, y, label);
    }
    for (size_t i = 0; i < lines; i++) {
        const char *colour = colours[i % (sizeof colours / sizeof *colours)];

        draw(f, p, n, x, line[i].y, false, colour);
        fprintf(f, "<text x='%d' y='%.1f' fill='%s'>%s</text>\n",
                WIDTH - RIGHT + 10, p->top + 14 + 18 * (double)i, colour,
                line[i].name);
    }
}

static void efficiency(FILE *f, const panel *p, size_t n, const int *x,
                       size_t lines, const bm_chart_line *line)
{
    columns(f, p, n, x);
    for (int y = 0; y <= 100; y += 20) {
        char label[16];
        snprintf(label, sizeof label, "%d %%", y);
        grid_line(f, p, y / 100., label);
    }
    for (size_t i = 0; i < lines; i++)
        draw(f, p, n, x, line[i].y, true,
             colours[i % (sizeof colours / sizeof *colours)]);
}

bm_status bm_chart_write(const char *path, const char *title, size_t n,
                         const int *x, size_t lines, const bm_chart_line *line)
{
    double most = log2((double)x[n - 1]);
    panel fast = {TOP, -1, fmax(most, 1), most, log2};
    panel worth = {TOP + PLOT + GAP, 0, 1, most, identity};
    bm_file_replacement r;
    FILE *f = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    f = r.stream;
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' "
            "font-family='sans-serif' font-size='12'>\n"
            "<rect width='100%%' height='100%%' fill='white'/>\n"
            "<text x='%d' y='20' font-size='14'>%s</text>\n"
            "<text x='%d' y='40'>speed-up over one worker, by workers</text>\n",
            WIDTH, TOP + 2 * (PLOT + GAP), LEFT, title, LEFT);
    speed(f, &fast, n, x, lines, line);
    fprintf(f, "<text x='%d' y='%.1f'>efficiency: speed-up / workers</text>\n",
            LEFT, worth.top - 10);
    efficiency(f, &worth, n, x, lines, line);
    fprintf(f, "</svg>\n");
    status = bm_file_replace_commit(&r, false);
done:
    bm_file_replace_abort(&r);
    return status;
}
