/* explain.h - describes what a configuration does, without training. */
#ifndef BM_CLI_REPORT_EXPLAIN_H
#define BM_CLI_REPORT_EXPLAIN_H

#include "cli/settings.h"

/* Opens device, data and network; prints the network, gains, time constants,
 * blocks, padding, memory, the bytes of an exchange, and warnings. Replaces
 * `auto` of job.device and job.precision. newest: a checkpoint of a run that
 * has begun, "": none; see bm_origin_find. Fails as training would before its
 * first block. */
BM_CHECKED bm_status bm_explain(bm_config *config, bm_settings *s, int ranks,
                                const char *newest, FILE *out);

#endif
