/* traffic.h - the bytes that ranks exchange with a given configuration. */
#ifndef BM_CLI_REPORT_TRAFFIC_H
#define BM_CLI_REPORT_TRAFFIC_H

#include "cli/settings.h"
#include "compute/params.h"

typedef struct bm_sending {
    double bytes;    /* that the busiest rank delivers to others */
    const char *per; /* per what: "block", "step", .. */
} bm_sending;

/* The bytes of one exchange of a model between `ranks` ranks on one host; with
 * block.fragments their mean. A warm-up is not counted. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_sending_of(const bm_settings *s, int ranks,
                                   const bm_params *p, bm_sending *out);

#endif
