/* clock_settings.h - the section [clock]: when asynchronous workers exchange. */
#ifndef BM_BMUF_ASYNC_CLOCK_SETTINGS_H
#define BM_BMUF_ASYNC_CLOCK_SETTINGS_H

#include "core/config/config.h"

#include <stdbool.h>

typedef struct bm_clock_settings {
    const char *kind;  /* virtual or real */
    const char *times; /* seconds of a step: of each worker, or one */
    double spread;
    long shards; /* real: of the server's model; 0: one on each rank */
} bm_clock_settings;

extern const bm_option bm_clock_options[];
bool bm_clock_is_real(const bm_clock_settings *settings);

#endif
