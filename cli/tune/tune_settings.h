/* tune_settings.h - [tune]: how bmuf tune searches. bmuf train ignores it. */
#ifndef BM_CLI_TUNE_TUNE_SETTINGS_H
#define BM_CLI_TUNE_TUNE_SETTINGS_H

#include "core/config/config.h"

#include <stdbool.h>

typedef struct bm_tune_settings {
    const char *over; /* ranges, see range.h; "": the usual ones, see space.h */
    long epochs;      /* budget, of all trials together; 0: 24 full trials */
    double minutes;   /* budget; 0: unlimited */
    long trials;      /* budget; 0: unlimited */
    long rungs, reduction, ahead;
    bool model;
    double target;       /* dev label errors in %; 0: fewest errors */
    const char *network; /* of the time to the target, see network.h */
    double step_ms;      /* likewise; 0: measured */
    long finalists, seeds;
} bm_tune_settings;

extern const bm_option bm_tune_options[];

#endif
