/* figure.h - a figure of a report that is a row of a table: what is on its axes,
 * and which numbers of a run are its lines. */
#ifndef BM_CLI_REPORT_PAGE_FIGURE_H
#define BM_CLI_REPORT_PAGE_FIGURE_H

#include "cli/plot/plot.h"
#include "cli/report/runs/groups.h"

#include <stdio.h>

/* A number of epoch or block i of a run; NAN: not known. */
typedef double (*bm_figure_pick)(const bm_run_summary *s, size_t i);

typedef struct bm_figure {
    const char *title;
    bm_plot_axis x, y;
    bool log_if_wide; /* the y axis, if numbers differ by a factor of 30 */
    bool cut;         /* the y axis, above what the first few points have */
    size_t (*count)(const bm_run_summary *s);
    bm_figure_pick at; /* on the x axis */
    /* Which points of several runs belong together; NULL: those at the same place of
     * the x axis. */
    bm_figure_pick when;
    bm_figure_pick solid, dashed; /* dashed may be NULL */
    const char *solid_name, *dashed_name;
    const char *caption;
} bm_figure;

/* Of epochs, and of blocks in epochs: how many, and where on the x axis. */
#define BM_EPOCH_AXIS                                                          \
    {                                                                          \
        .title = "epochs", .from_zero = true                                   \
    }
size_t bm_figure_epochs(const bm_run_summary *s);
double bm_figure_epoch_at(const bm_run_summary *s, size_t i);
size_t bm_figure_blocks(const bm_run_summary *s);
double bm_figure_block_at(const bm_run_summary *s, size_t i);

/* A number of the event `start` of a run; NAN: there is none. */
double bm_figure_start_number(const bm_run_summary *s, const char *key);

/* Draws all figures of a table that ends with {0}; `nothing` if there is none.
 * Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_figures_draw(FILE *f, const bm_run_set *r,
                                     const bm_figure *figures,
                                     const char *nothing);

#endif
