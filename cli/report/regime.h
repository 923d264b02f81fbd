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

/* Of the first epoch. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_regime_of(const bm_settings *s, const bm_dataset *data,
                                  const bm_plan *plan, bm_regime *out);

#endif
