#include "cli/tune/tune_settings.h"

#include "cli/tune/search.h"

#include <stddef.h>

const bm_option bm_tune_options[] = {
    {"over", BM_TEXT, offsetof(bm_tune_settings, over), "", 0, 0, NULL,
     "settings to search, each as train.rate=0.01..0.2:log or "
     "sgd.local_state=reset,keep, with blanks between them; a comma with a "
     "blank separates values that have commas; empty: those that matter for "
     "the strategy"},
    {"epochs", BM_INT, offsetof(bm_tune_settings, epochs), "0", 0, 1e9, NULL,
     "budget: epochs of all trials together; 0: 24 times train.epochs"},
    {"minutes", BM_FLOAT, offsetof(bm_tune_settings, minutes), "0", 0, 1e6,
     NULL, "budget of time; results then depend on the machine; 0: none"},
    {"trials", BM_INT, offsetof(bm_tune_settings, trials), "0", 0, 1e6, NULL,
     "budget: number of trials; 0: tune.epochs decides"},
    {"rungs", BM_INT, offsetof(bm_tune_settings, rungs), "3", 1,
     BM_SEARCH_RUNGS, NULL,
     "stages of successive halving, each with more epochs"},
    {"reduction", BM_INT, offsetof(bm_tune_settings, reduction), "3", 2, 10,
     NULL,
     "r: one of r trials goes on to the next rung, which has r times the "
     "epochs"},
    {"ahead", BM_INT, offsetof(bm_tune_settings, ahead), "4", 1, 1000, NULL,
     "trials that are decided before the first of them has ended; the most "
     "that run side by side"},
    {"model", BM_FLAG, offsetof(bm_tune_settings, model), "yes", 0, 0, NULL,
     "propose trials by a Gaussian process over the results; no: by a sequence "
     "of low discrepancy"},
    {"target", BM_FLOAT, offsetof(bm_tune_settings, target), "0", 0, 99,
     "percent",
     "search for the least time in which label errors on data.dev fall to this "
     "on job.workers workers of tune.network; 0: for the fewest errors"},
    {"network", BM_TEXT, offsetof(bm_tune_settings, network), "10gbe", 0, 0,
     NULL,
     "between the workers, for tune.target: a name or file as of bmuf scale"},
    {"step_ms", BM_FLOAT, offsetof(bm_tune_settings, step_ms), "0", 0, 1e9,
     "milliseconds",
     "of a mini-batch of the given configuration on a worker, for "
     "tune.target; 0: as measured here"},
    {"finalists", BM_INT, offsetof(bm_tune_settings, finalists), "2", 1, 100,
     NULL,
     "best trials that are trained with tune.seeds seeds at the end, beside "
     "the configuration as it was given"},
    {"seeds", BM_INT, offsetof(bm_tune_settings, seeds), "3", 1, 100, NULL,
     "of the final comparison: job.seed and those that follow"},
    {0},
};
