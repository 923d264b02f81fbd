/* traffic.h - what ranks send each other, as a configuration has it. */
#ifndef BM_CLI_REPORT_TRAFFIC_H
#define BM_CLI_REPORT_TRAFFIC_H

#include "cli/settings.h"
#include "compute/params.h"

typedef struct bm_sending {
    double bytes; /* that the busiest rank brings to others */
    const char *per;
} bm_sending;

/* Of so many ranks, of one host, and an exchange of this model; of fragments on
 * an average. Not of a warm-up. */
BM_CHECKED bm_status bm_sending_of(const bm_settings *s, int ranks,
                                   const bm_params *p, bm_sending *out);

#endif
