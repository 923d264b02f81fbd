/*
 * groups.h - several runs, and which of them differ in their seed alone: a
 * report draws those as their mean with a band.
 */
#ifndef BM_CLI_REPORT_RUNS_GROUPS_H
#define BM_CLI_REPORT_RUNS_GROUPS_H

#include "cli/report/runs/differences.h"
#include "cli/report/runs/summary.h"

typedef struct bm_run_group {
    char name[64];
    size_t n, *members; /* indices of runs */
} bm_run_group;

typedef struct bm_run_set {
    size_t n;
    bm_run_summary *all; /* [n] */
    char (*names)[64];   /* [n]: directories without what all have in common */
    bm_differences differences;
    size_t n_groups;
    bm_run_group *groups; /* [n_groups], by their first runs */
} bm_run_set;

/* What was given in place of runs, as by a * of the shell. Warns of it in one
 * line; nothing if n = 0. */
typedef struct bm_left_out {
    const char *first; /* borrowed */
    size_t n;
} bm_left_out;
void bm_leave_out(bm_left_out *l, const char *name);
void bm_left_out_warn(const bm_left_out *l);

/* Fails with BM_ERR_ARG: there are more than BM_MOST_NOUNS. */
BM_CHECKED bm_status bm_too_many_runs(const char *verb);

/* Reads the runs among n >= 1 directories; warns of the others. `band`: a setting
 * that may differ within a group, besides job.seed, or NULL. Fails with
 * BM_ERR_MISSING or BM_ERR_ARG if none is a run or too many are, and as bm_run_summary_read and
 * bm_differences_read. */
BM_CHECKED bm_status bm_run_set_read(bm_run_set *r, size_t n,
                                     const char *const *directories,
                                     const char *band);
void bm_run_set_free(bm_run_set *r);

#endif
