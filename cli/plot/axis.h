/*
 * axis.h - an axis of a plot: where a number is on it, and its ticks. Nothing
 * here fails.
 */
#ifndef BM_CLI_PLOT_AXIS_H
#define BM_CLI_PLOT_AXIS_H

#include <stdbool.h>
#include <stddef.h>

typedef enum bm_plot_scale {
    BM_PLOT_LINEAR,
    BM_PLOT_LOG,   /* ticks at 1, 2, 5, 10, .. */
    BM_PLOT_LOG2,  /* ticks at powers of two */
    BM_PLOT_LOGIT, /* ln (x / (1 - x)) of 0 < x < 1, as for block momentum */
} bm_plot_scale;

typedef struct bm_plot_axis {
    const char *title; /* what is shown, with its unit; NULL: none */
    bm_plot_scale scale;
    bool from_zero;           /* a linear axis begins at 0 */
    bool percent;             /* of fractions: 0.1 is written as 10 % */
    double least, most;       /* range; equal: that of the data */
    const char *const *names; /* [n_names] words for 0, 1, ..; NULL: numbers */
    size_t n_names;
} bm_plot_axis;

enum { BM_MOST_TICKS = 64 };

typedef struct bm_plot_tick {
    double at;
    char label[64];
} bm_plot_tick;

/* Can x be shown? It is finite, not absurdly large, and the scale is defined
 * there. */
bool bm_plot_axis_shows(const bm_plot_axis *a, double x);

/* Sets the range, unless it is given, to contain [least, most] with a margin.
 * NaN, if nothing can be shown: to any valid range. */
void bm_plot_axis_fit(bm_plot_axis *a, double least, double most);

/* 0 at a->least, 1 at a->most, and outside the nearer of both. */
double bm_plot_axis_place(const bm_plot_axis *a, double x);

/* Round numbers within the range, in increasing order: about `wanted`, at least
 * 2 in most ranges. Names are all ticks. Returns how many. */
size_t bm_plot_axis_ticks(const bm_plot_axis *a, size_t wanted,
                          bm_plot_tick out[BM_MOST_TICKS]);

/* A number for people: 0.05, 12, 25k, 1.5M; with `percent` 4.1 %. */
const char *bm_plot_axis_number(const bm_plot_axis *a, double x, char out[32]);

#endif
