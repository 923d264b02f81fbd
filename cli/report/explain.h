/* explain.h - what a configuration comes to, without training. */
#ifndef BM_CLI_REPORT_EXPLAIN_H
#define BM_CLI_REPORT_EXPLAIN_H

#include "cli/report/advice.h"
#include "cli/settings.h"
#include "io/batch/plan.h"

/* The plan of the first epoch, of borrowed data. */
BM_CHECKED bm_status bm_first_plan(const bm_settings *s, const bm_dataset *data,
                                   bm_plan **out);

/* What bm_advise is to judge. */
BM_CHECKED bm_status bm_setting_of(const bm_settings *s, const bm_dataset *data,
                                   const bm_plan *plan, bm_setting *out);

/* Opens the data and the network, prints gains, time constants, blocks,
 * padding, memory and the bytes of an exchange. Fails as training would at its
 * start. */
BM_CHECKED bm_status bm_explain(const bm_config *config, const bm_settings *s,
                                int ranks, FILE *out);

#endif
