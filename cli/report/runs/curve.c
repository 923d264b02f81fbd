#include "cli/report/runs/curve.h"

#include <math.h>
#include <string.h>

enum { MOST_LINES = 30, HEIGHT = 10, WIDTH = 60 };

/* ---- the table ----------------------------------------------------------- */

static bool has_ema(const bm_run_summary *s)
{
    for (size_t i = 0; i < s->n_epochs; i++)
        if (!isnan(s->epochs[i].ema_ler))
            return true;
    return false;
}

/* A number in a column of `width` characters; "-": not known. */
static void cell(FILE *out, const char *format, int width, double x)
{
    char text[40];

    snprintf(text, sizeof text, format, x);
    fprintf(out, " %*s", width, isnan(x) ? "-" : text);
}

static double speed(const bm_run_epoch *e)
{
    return e->seconds > 0 ? e->frames / e->seconds : NAN;
}

static void row(const bm_run_summary *s, size_t i, bool ema, FILE *out)
{
    const bm_run_epoch *e = &s->epochs[i];

    fprintf(out, "%5zu", i + 1);
    cell(out, "%.4g", 11, e->loss);
    cell(out, "%.2f %%", 12, 100 * e->error);
    cell(out, "%.4g", 9, e->dev_loss);
    cell(out, "%.2f %%", 10, 100 * e->dev_ler);
    if (ema)
        cell(out, "%.2f %%", 10, 100 * e->ema_ler);
    cell(out, "%.4g", 10, e->rate);
    cell(out, "%.0f", 10, speed(e));
    fprintf(out, "%s\n", i == s->best ? "  best" : "");
}

void bm_curve_table(const bm_run_summary *s, FILE *out)
{
    size_t every = (s->n_epochs + MOST_LINES - 1) / MOST_LINES;
    bool ema = has_ema(s);

    if (s->n_epochs == 0)
        return;
    fprintf(out,
            "epoch  train loss  train error  dev loss  dev error%s       "
            "rate   frames/s\n",
            ema ? "  ema error" : "");
    for (size_t i = 0; i < s->n_epochs; i++)
        if ((i + 1) % every == 0 || i == 0 || i == s->best ||
            i + 1 == s->n_epochs)
            row(s, i, ema, out);
}

/* ---- the chart ----------------------------------------------------------- */

typedef struct chart {
    char cells[HEIGHT][WIDTH + 1];
    size_t n, columns; /* epochs, characters */
    double most;       /* at the top */
} chart;

static void draw(chart *c, size_t epoch, double y, char mark)
{
    size_t x = epoch * (c->columns - 1) / (c->n - 1);
    double height = y / c->most * (HEIGHT - 1);

    if (isnan(y))
        return;
    c->cells[HEIGHT - 1 - (size_t)lround(fmax(height, 0))][x] = mark;
}

static double largest(const bm_run_summary *s)
{
    double most = 0;

    for (size_t i = 0; i < s->n_epochs; i++)
        most = fmax(most, fmax(s->epochs[i].error, s->epochs[i].dev_ler));
    return most;
}

void bm_curve_chart(const bm_run_summary *s, FILE *out)
{
    chart c = {.n = s->n_epochs, .most = largest(s)};
    size_t apart = 0;

    if (c.n < 2 || !(c.most > 0) || !isfinite(c.most))
        return;
    apart = (WIDTH - 1) / (c.n - 1);
    apart = apart < 1 ? 1 : apart > 12 ? 12 : apart;
    c.columns = (c.n - 1) * apart + 1;
    c.columns = c.columns > WIDTH ? WIDTH : c.columns;
    for (size_t y = 0; y < HEIGHT; y++)
        memset(c.cells[y], ' ', c.columns);
    for (size_t i = 0; i < c.n; i++)
        draw(&c, i, s->epochs[i].error, 'o');
    for (size_t i = 0; i < c.n; i++)
        draw(&c, i, s->epochs[i].dev_ler, '*');
    fprintf(out, "label errors over epochs: * on dev, o in training\n");
    for (size_t y = 0; y < HEIGHT; y++) {
        if (y % 3 == 0)
            fprintf(out, "%7.1f %% |",
                    100 * c.most * (double)(HEIGHT - 1 - y) / (HEIGHT - 1));
        else
            fprintf(out, "          |");
        for (size_t x = c.columns; x > 0 && c.cells[y][x - 1] == ' '; x--)
            c.cells[y][x - 1] = '\0';
        fprintf(out, "%s\n", c.cells[y]);
    }
    fprintf(out, "          +");
    for (size_t x = 0; x < c.columns; x++)
        fputc('-', out);
    fprintf(out, "\n           1%*zu\n", (int)c.columns - 1, c.n);
}

/* ---- JSON ---------------------------------------------------------------- */

static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

json_t *bm_curve_json(const bm_run_summary *s)
{
    json_t *list = json_array();

    for (size_t i = 0; i < s->n_epochs; i++) {
        const bm_run_epoch *e = &s->epochs[i];

        json_array_append_new(
            list,
            json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o}", "epoch",
                      (json_int_t)i + 1, "loss", real(e->loss), "error",
                      real(e->error), "rate", real(e->rate), "dev_loss",
                      real(e->dev_loss), "dev_ler", real(e->dev_ler), "ema_ler",
                      real(e->ema_ler), "frames", e->frames, "frames_per_s",
                      real(speed(e))));
    }
    return list;
}
