/* regime.h - the numbers that bm_advise judges, from settings and data. */
#ifndef BM_CLI_REPORT_REGIME_H
#define BM_CLI_REPORT_REGIME_H

#include "cli/report/advice.h"
#include "cli/settings.h"
#include "io/batch/plan.h"

/* The plan of the first epoch; borrows `data`. Free with bm_plan_free. Fails as
 * bm_plan_new. */
BM_CHECKED bm_status bm_first_plan(const bm_settings *s, const bm_dataset *data,
                                   bm_plan **out);

/* *out <- the blocks of this number of epochs, whose size may change. Fails
 * likewise. */
BM_CHECKED bm_status bm_count_blocks(const bm_settings *s,
                                     const bm_dataset *data, long epochs,
                                     double *out);

/* Calls see() for every setting that applies and has other values in later epochs,
 * "section.key", its text and what that says. */
void bm_each_change(const bm_config *config,
                    void (*see)(void *self, const char *name, const char *text,
                                const bm_series *x),
                    void *self);

/* The parts of training: one begins wherever a setting of blocks or of the filter
 * has another value (VALUE@EPOCH). The first one is that of epoch 0. */
typedef struct bm_parts {
    bm_regime part[BM_SERIES_MOST];
    size_t n;
} bm_parts;

/* Fails as bm_plan_new, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_parts_of(const bm_settings *s, const bm_dataset *data,
                                 bm_parts *out);

/* Calls warn() for every setting whose last value VALUE@EPOCH training does not
 * come to, and for workers that block.workers never lets train. */
void bm_advise_on_changes(const bm_settings *s, const bm_parts *parts,
                          void (*warn)(void *self, const char *text),
                          void *self);

#endif
