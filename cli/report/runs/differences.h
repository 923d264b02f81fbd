/*
 * differences.h - the settings in which runs differ, from their config.ini. A
 * setting that a run does not have, because it is older, is taken with its
 * default.
 */
#ifndef BM_CLI_REPORT_RUNS_DIFFERENCES_H
#define BM_CLI_REPORT_RUNS_DIFFERENCES_H

#include "core/config/config.h"

#include <stdbool.h>

typedef struct bm_differences {
    size_t n_runs;
    bm_config **configs; /* [n_runs]; NULL: the run has no config.ini */
    size_t n;            /* settings in which they differ */
    struct bm_difference {
        const char *section;
        const bm_option *option;
    } * settings; /* [n] */
} bm_differences;

/* Reads the config.ini of each run. A run without one differs in nothing. Fails
 * with BM_ERR_CONFIG or BM_ERR_IO if one cannot be read, or with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_differences_read(bm_differences *d, size_t n_runs,
                                         const char *const *runs);
void bm_differences_free(bm_differences *d);

/* The value of setting k, of n; borrowed. "?" without config.ini. */
const char *bm_difference_value(const bm_differences *d, size_t run, size_t k);

/* The name of setting k, "bmuf.momentum". */
const char *bm_difference_name(const bm_differences *d, size_t k, char out[64]);

/* The value of any setting; NULL without config.ini, or if it does not exist. */
const char *bm_run_setting(const bm_differences *d, size_t run,
                           const char *section, const char *key);

/* Is there a setting of this name, "bmuf.momentum"? */
bool bm_is_setting(const char *name);

/* Do two runs differ in nothing but job.seed, what they record, and `key`, such as
 * "data.train"? `key` may be NULL. A run without config.ini is alone. */
bool bm_differ_in_seed_only(const bm_differences *d, size_t a, size_t b,
                            const char *key);

#endif
