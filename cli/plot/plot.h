/*
 * plot.h - figures as SVG: lines, bands, points, bars and coloured cells over
 * two axes, and parallel coordinates. A figure is described, then written:
 *
 *     bm_plot_series lines[] = {
 *         {.name = "dev", .mark = BM_LINE, .n = n, .x = epoch, .y = error}};
 *     bm_plot plot = {.title = "label errors", .x = {.title = "epochs"},
 *                     .y = {.percent = true, .from_zero = true},
 *                     .series = lines, .n = 1};
 *
 *     bm_plot_write(&plot, stream);             // part of an HTML page
 *     status = bm_plot_file(path, &plot, 1);    // a file of its own
 *
 * Colours are told apart by colour-blind readers (Okabe and Ito; viridis for
 * numbers) and follow the reader's choice of light or dark. All texts are
 * escaped; arrays and texts are borrowed. Only bm_plot_file can fail.
 */
#ifndef BM_CLI_PLOT_PLOT_H
#define BM_CLI_PLOT_PLOT_H

#include "cli/plot/axis.h"
#include "core/status.h"

#include <stdio.h>

typedef enum bm_mark {
    BM_LINE,   /* through (x, y) in this order; a NaN interrupts it */
    BM_POINTS, /* at (x, y), coloured by z if there is one */
    BM_BAND,   /* from y to y_end, over x */
    BM_BARS,   /* horizontal, from x to x_end, in row y */
    BM_CELLS,  /* from (x, y) to (x_end, y_end), coloured by z */
} bm_mark;

typedef struct bm_plot_series {
    const char *name; /* in the legend; NULL: not in it */
    bm_mark mark;
    bool dashed;
    size_t colour; /* number of a colour; from BM_COLOURS on they repeat,
                      as pale and thick lines */
    size_t n;
    const double *x, *x_end, *y, *y_end, *z; /* [n], those that `mark` needs */
} bm_plot_series;

enum { BM_COLOURS = 8 };

typedef struct bm_plot {
    const char *title;
    bm_plot_axis x, y, z; /* z: of colours */
    const bm_plot_series *series;
    size_t n;
    double height; /* of the area within the axes; 0: 240 */
} bm_plot;

/* Writes <svg> for an HTML page that has the rules of bm_plot_style. */
void bm_plot_write(const bm_plot *p, FILE *f);

/* Writes n figures below each other to an SVG file. Fails as bm_file_write. */
BM_CHECKED bm_status bm_plot_file(const char *path, const bm_plot *p, size_t n);

/* Several axes side by side, and a line across all of them for each row. */
typedef struct bm_parallel {
    const char *title;
    const bm_plot_axis *axes; /* [n_axes] */
    size_t n_axes, n;
    const double *values; /* [n, n_axes]; a NaN interrupts a line */
    size_t colour;        /* the axis whose numbers colour the lines */
    size_t best;          /* a row that is drawn thick; n: none */
} bm_parallel;

void bm_parallel_write(const bm_parallel *p, FILE *f);

/* The rules of CSS that figures need, for <style>. */
void bm_plot_style(FILE *f);

/* The class of a colour: "l3" as a stroke, "f3" as a fill. */
const char *bm_plot_class(char kind, size_t colour, char out[8]);

#endif
