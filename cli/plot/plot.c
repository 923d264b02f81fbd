/* plot.c - figures over two axes. */
#include "cli/plot/plot.h"

#include "cli/plot/markup.h"
#include "cli/plot/plot_parts.h"
#include "core/file/file.h"

#include <math.h>

enum { WIDTH = BM_PLOT_WIDTH, LINE = BM_PLOT_LINE, GAP = BM_PLOT_GAP };

/* A figure with its ranges and its place on the paper. */
typedef struct figure {
    const bm_plot *p;
    FILE *f;
    bm_plot_axis x, y, z;
    bm_plot_tick x_ticks[BM_MOST_TICKS], y_ticks[BM_MOST_TICKS];
    size_t n_x, n_y;
    double left, right, top, bottom; /* of the area within the axes */
    double legend, height;           /* its top; of everything */
} figure;

/* ---- ranges ------------------------------------------------------------- */

typedef struct range {
    double least, most;
} range;

static void widen(range *r, const bm_plot_axis *a, const double *v, size_t n)
{
    for (size_t i = 0; v != NULL && i < n; i++)
        if (bm_plot_axis_shows(a, v[i])) {
            r->least = fmin(r->least, v[i]);
            r->most = fmax(r->most, v[i]);
        }
}

static void fit(figure *g)
{
    range x = {NAN, NAN}, y = x, z = x;

    for (size_t k = 0; k < g->p->n; k++) {
        const bm_plot_series *s = &g->p->series[k];

        widen(&x, &g->x, s->x, s->n);
        widen(&x, &g->x, s->x_end, s->n);
        widen(&y, &g->y, s->y, s->n);
        widen(&y, &g->y, s->y_end, s->n);
        widen(&z, &g->z, s->z, s->n);
    }
    bm_plot_axis_fit(&g->x, x.least, x.most);
    bm_plot_axis_fit(&g->y, y.least, y.most);
    bm_plot_axis_fit(&g->z, z.least, z.most);
}

static double at_x(const figure *g, double x)
{
    return g->left + (g->right - g->left) * bm_plot_axis_place(&g->x, x);
}

/* Names of rows are read from the top. */
static double at_y(const figure *g, double y)
{
    double place = bm_plot_axis_place(&g->y, y);

    if (g->y.names != NULL)
        place = 1 - place;
    return g->bottom - (g->bottom - g->top) * place;
}

static bool shows(const figure *g, const bm_plot_series *s, size_t i)
{
    return bm_plot_axis_shows(&g->x, s->x[i]) &&
           bm_plot_axis_shows(&g->y, s->y[i]);
}

/* ---- legend ------------------------------------------------------------- */

static bool has_z(const bm_plot *p)
{
    for (size_t k = 0; k < p->n; k++)
        if (p->series[k].z != NULL)
            return true;
    return false;
}

/* Of a line: "l3 dash". Colours that repeat are pale and thick. */
static const char *line_class(const bm_plot_series *s, char out[32])
{
    char colour[8];

    snprintf(out, 32, "%s%s%s", bm_plot_class('l', s->colour, colour),
             s->colour / BM_COLOURS % 2 == 1 ? " pale" : "",
             s->dashed ? " dash" : "");
    return out;
}

static void sample(FILE *f, const bm_plot_series *s, double x, double y)
{
    char class[32];

    if (s->mark == BM_LINE)
        fprintf(f, "<path class='%s' d='M%.1f %.1fh20'/>", line_class(s, class),
                x, y);
    else if (s->mark == BM_POINTS)
        fprintf(f, "<circle class='%s' cx='%.1f' cy='%.1f' r='4'/>",
                bm_plot_class('f', s->colour, class), x + 10, y);
    else
        fprintf(f,
                "<rect class='%s%s' x='%.1f' y='%.1f' width='20' "
                "height='10'/>",
                bm_plot_class('f', s->colour, class),
                s->mark == BM_BAND ? " band" : "", x, y - 5);
}

/* Places the entries in rows, and draws them if `draw`. Returns where the last
 * row ends. */
static double legend(const figure *g, bool draw)
{
    double x = GAP, end = g->legend;

    for (size_t k = 0; k < g->p->n; k++) {
        const bm_plot_series *s = &g->p->series[k];
        double width = 0;

        if (s->name == NULL)
            continue;
        width = fmin(26 + bm_plot_text_width(s->name) + 14, WIDTH - 2 * GAP);
        if (x + width > WIDTH - GAP && x > GAP) {
            x = GAP;
            end += LINE;
        }
        if (draw) {
            sample(g->f, s, x, end + LINE / 2.);
            bm_plot_text(g->f, x + 26, end + LINE / 2. + 4, "start", width - 39,
                         s->name);
        }
        x += width;
    }
    end += x > GAP ? LINE : 0;
    if (has_z(g->p)) {
        if (draw)
            bm_plot_colour_key(g->f, &g->z, GAP, end + 3);
        end += LINE;
    }
    return end;
}

/* ---- layout ------------------------------------------------------------- */

static void place(figure *g)
{
    double height = g->p->height > 0 ? g->p->height : 240;
    double widest = 0;

    g->n_y =
        bm_plot_axis_ticks(&g->y, (size_t)fmax(height / 40, 2), g->y_ticks);
    for (size_t i = 0; i < g->n_y; i++)
        widest = fmax(widest, bm_plot_text_width(g->y_ticks[i].label));
    g->left = fmin(widest, 200) + 2 * GAP;
    g->right = WIDTH - 3 * GAP;
    g->n_x = bm_plot_axis_ticks(&g->x, 8, g->x_ticks);
    g->top = (g->p->title != NULL ? LINE + GAP : GAP) +
             (g->y.title != NULL ? LINE + GAP : 0);
    g->bottom = g->top + height;
    g->legend = g->bottom + LINE + (g->x.title != NULL ? LINE : 0) + GAP;
    g->height = legend(g, false) + GAP;
}

static void draw_axes(const figure *g)
{
    double before = -1e9;

    for (size_t i = 0; i < g->n_y; i++) {
        double y = at_y(g, g->y_ticks[i].at);

        if (g->y.names == NULL)
            fprintf(g->f, "<path class='grid' d='M%.1f %.1fH%.1f'/>", g->left,
                    y, g->right);
        bm_plot_text(g->f, g->left - GAP, y + 4, "end", g->left - GAP,
                     g->y_ticks[i].label);
    }
    for (size_t i = 0; i < g->n_x; i++) {
        double x = at_x(g, g->x_ticks[i].at);
        double half = bm_plot_text_width(g->x_ticks[i].label) / 2;

        fprintf(g->f, "<path class='grid' d='M%.1f %.1fV%.1f'/>", x, g->top,
                g->bottom);
        if (x - half < before || x + half > WIDTH)
            continue; /* its number would touch the one before */
        bm_plot_text(g->f, x, g->bottom + LINE - 2, "middle", 200,
                     g->x_ticks[i].label);
        before = x + half + GAP;
    }
    fprintf(g->f, "<path class='axis' d='M%.1f %.1fV%.1fH%.1f'/>\n", g->left,
            g->top, g->bottom, g->right);
    if (g->y.title != NULL)
        bm_plot_text(g->f, GAP, g->top - GAP - 5, "start", WIDTH - 2 * GAP,
                     g->y.title);
    if (g->x.title != NULL)
        bm_plot_text(g->f, (g->left + g->right) / 2, g->bottom + 2 * LINE - 2,
                     "middle", g->right - g->left, g->x.title);
}

/* ---- marks -------------------------------------------------------------- */

/* A point without neighbours is drawn as a dot. */
static void draw_line(const figure *g, const bm_plot_series *s)
{
    char class[32];
    bool pen = false;

    fprintf(g->f, "<path class='%s' d='", line_class(s, class));
    for (size_t i = 0; i < s->n; i++) {
        if (!shows(g, s, i)) {
            pen = false;
            continue;
        }
        fprintf(g->f, "%c%.1f %.1f", pen ? 'L' : 'M', at_x(g, s->x[i]),
                at_y(g, s->y[i]));
        if (!pen && (i + 1 == s->n || !shows(g, s, i + 1)))
            fputs("h0", g->f);
        pen = true;
    }
    fputs("'/>\n", g->f);
}

/* From i, the first index from which the band is interrupted, or n. */
static size_t band_end(const figure *g, const bm_plot_series *s, size_t i)
{
    while (i < s->n && shows(g, s, i) && bm_plot_axis_shows(&g->y, s->y_end[i]))
        i++;
    return i;
}

static void draw_band(const figure *g, const bm_plot_series *s)
{
    char class[8];

    for (size_t i = 0; i < s->n; i++) {
        size_t end = band_end(g, s, i);

        if (end == i)
            continue;
        fprintf(g->f, "<polygon class='%s band' points='",
                bm_plot_class('f', s->colour, class));
        for (size_t k = i; k < end; k++)
            fprintf(g->f, "%.1f,%.1f ", at_x(g, s->x[k]), at_y(g, s->y[k]));
        for (size_t k = end; k-- > i;)
            fprintf(g->f, "%.1f,%.1f ", at_x(g, s->x[k]), at_y(g, s->y_end[k]));
        fputs("'/>\n", g->f);
        i = end;
    }
}

/* "class='f3'" or, coloured by z, "class='seq' fill='#440154'". */
static void fill(const figure *g, const bm_plot_series *s, size_t i)
{
    char text[8];

    if (s->z != NULL)
        fprintf(g->f, "class='seq' fill='%s'",
                bm_plot_sequential(bm_plot_axis_place(&g->z, s->z[i]), text));
    else
        fprintf(g->f, "class='%s'", bm_plot_class('f', s->colour, text));
}

static void draw_points(const figure *g, const bm_plot_series *s)
{
    for (size_t i = 0; i < s->n; i++) {
        if (!shows(g, s, i) ||
            (s->z != NULL && !bm_plot_axis_shows(&g->z, s->z[i])))
            continue;
        fprintf(g->f, "<circle cx='%.1f' cy='%.1f' r='4' ", at_x(g, s->x[i]),
                at_y(g, s->y[i]));
        fill(g, s, i);
        fputs("/>\n", g->f);
    }
}

static void box(const figure *g, double x, double x_end, double y, double y_end)
{
    fprintf(g->f, "<rect x='%.1f' y='%.1f' width='%.1f' height='%.1f' ",
            fmin(x, x_end), fmin(y, y_end), fabs(x_end - x), fabs(y_end - y));
}

static void draw_bars(const figure *g, const bm_plot_series *s)
{
    char class[8];

    for (size_t i = 0; i < s->n; i++) {
        if (!shows(g, s, i) || !bm_plot_axis_shows(&g->x, s->x_end[i]))
            continue;
        box(g, at_x(g, s->x[i]), at_x(g, s->x_end[i]), at_y(g, s->y[i] - 0.35),
            at_y(g, s->y[i] + 0.35));
        fprintf(g->f, "class='%s bar'/>\n",
                bm_plot_class('f', s->colour, class));
    }
}

static void draw_cells(const figure *g, const bm_plot_series *s)
{
    for (size_t i = 0; i < s->n; i++) {
        char text[32];

        if (!shows(g, s, i) || !bm_plot_axis_shows(&g->z, s->z[i]))
            continue;
        box(g, at_x(g, s->x[i]), at_x(g, s->x_end[i]), at_y(g, s->y[i]),
            at_y(g, s->y_end[i]));
        fill(g, s, i);
        fputs("><title>", g->f);
        bm_markup(g->f, bm_plot_axis_number(&g->z, s->z[i], text));
        fputs("</title></rect>\n", g->f);
    }
}

static void draw_series(const figure *g, const bm_plot_series *s)
{
    switch (s->mark) {
    case BM_LINE:
        draw_line(g, s);
        break;
    case BM_POINTS:
        draw_points(g, s);
        break;
    case BM_BAND:
        draw_band(g, s);
        break;
    case BM_BARS:
        draw_bars(g, s);
        break;
    case BM_CELLS:
        draw_cells(g, s);
        break;
    }
}

static bool is_empty(const figure *g)
{
    for (size_t k = 0; k < g->p->n; k++)
        for (size_t i = 0; i < g->p->series[k].n; i++)
            if (shows(g, &g->p->series[k], i))
                return false;
    return true;
}

/* ---- figures ------------------------------------------------------------ */

static void open_figure(figure *g, const bm_plot *p, FILE *f)
{
    *g = (figure){.p = p, .f = f, .x = p->x, .y = p->y, .z = p->z};
    fit(g);
    place(g);
}

static void draw(const figure *g)
{
    bm_plot_title(g->f, g->p->title);
    draw_axes(g);
    for (size_t k = 0; k < g->p->n; k++)
        draw_series(g, &g->p->series[k]);
    if (is_empty(g))
        bm_plot_text(g->f, (g->left + g->right) / 2, (g->top + g->bottom) / 2,
                     "middle", 200, "no data");
    (void)legend(g, true);
}

void bm_plot_write(const bm_plot *p, FILE *f)
{
    figure g;

    open_figure(&g, p, f);
    fprintf(f, "<svg class='plot' viewBox='0 0 %d %.0f' role='img'>", WIDTH,
            g.height);
    if (p->title != NULL) {
        fputs("<title>", f);
        bm_markup(f, p->title);
        fputs("</title>\n", f);
    }
    draw(&g);
    fputs("</svg>\n", f);
}

static void write_svg(const bm_plot *p, size_t n, FILE *f)
{
    double height = 0;
    figure g;

    for (size_t i = 0; i < n; i++) {
        open_figure(&g, &p[i], f);
        height += g.height;
    }
    fprintf(f,
            "<svg xmlns='http://www.w3.org/2000/svg' class='plot' width='%d' "
            "height='%.0f' viewBox='0 0 %d %.0f'>\n<style>\n",
            WIDTH, height, WIDTH, height);
    bm_plot_style(f);
    fputs("</style>\n<rect class='paper' width='100%' height='100%'/>\n", f);
    height = 0;
    for (size_t i = 0; i < n; i++) {
        open_figure(&g, &p[i], f);
        fprintf(f, "<g transform='translate(0 %.1f)'>\n", height);
        draw(&g);
        fputs("</g>\n", f);
        height += g.height;
    }
    fputs("</svg>\n", f);
}

bm_status bm_plot_file(const char *path, const bm_plot *p, size_t n)
{
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    write_svg(p, n, r.stream);
    status = bm_file_replace_commit(&r, false);
done:
    bm_file_replace_abort(&r);
    return status;
}
