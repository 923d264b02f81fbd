/* curve.h - the learning curve of a run: a table of its epochs, and a chart of
 * characters. */
#ifndef BM_CLI_REPORT_RUNS_CURVE_H
#define BM_CLI_REPORT_RUNS_CURVE_H

#include "cli/report/runs/summary.h"

#include <stdio.h>

/* One line per epoch; of many epochs every n-th, the best and the last. */
void bm_curve_table(const bm_run_summary *s, FILE *out);

/* Label errors over epochs, on dev (*) and in training (o); nothing with fewer
 * than two epochs. */
void bm_curve_chart(const bm_run_summary *s, FILE *out);

/* [{"epoch": 1, "loss": .., ..}, ..] */
json_t *bm_curve_json(const bm_run_summary *s);

#endif
