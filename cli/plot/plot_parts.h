/* plot_parts.h - what the figures have in common: texts, colours, the frame of
 * an <svg>. Internal to cli/plot. */
#ifndef BM_CLI_PLOT_PLOT_PARTS_H
#define BM_CLI_PLOT_PLOT_PARTS_H

#include "cli/plot/plot.h"

/* In units of the SVG, which are pixels at its own size. */
enum { BM_PLOT_WIDTH = 480, BM_PLOT_LINE = 18, BM_PLOT_GAP = 8 };

/* An upper bound of the width of a text at the size of the labels. */
double bm_plot_text_width(const char *text);

/* Writes <text>; anchor: start, middle or end. What is wider than `room` is cut,
 * ends with "..." and is whole in a tooltip. */
void bm_plot_text(FILE *f, double x, double y, const char *anchor, double room,
                  const char *text);

/* The bold title at the top. */
void bm_plot_title(FILE *f, const char *text);

/* "#rrggbb" of viridis, t in [0, 1]. */
const char *bm_plot_sequential(double t, char out[8]);

/* A bar of colours with the numbers at its ends, and the axis' title. */
void bm_plot_colour_key(FILE *f, const bm_plot_axis *z, double x, double y);

#endif
