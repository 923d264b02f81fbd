#include "bmuf/async/clock_settings.h"

#include <stddef.h>
#include <string.h>

const bm_option bm_clock_options[] = {
    {"kind", BM_CHOICE, offsetof(bm_clock_settings, kind), "virtual", 0, 0,
     "virtual real",
     "asgd, softsync, easgd: virtual: the order of pushes to the server is "
     "computed; real: pushes are served as they arrive"},
    {"times", BM_TEXT, offsetof(bm_clock_settings, times), "1", 0, 0, NULL,
     "virtual: seconds of a step (batch.accumulate mini-batches) of worker 0, "
     "1 and so on, as in step_s of a journal; or one number for all"},
    {"spread", BM_FLOAT, offsetof(bm_clock_settings, spread), "0.05", 0, 1,
     NULL, "virtual: standard deviation of a step's time over its mean"},
    {"shards", BM_INT, offsetof(bm_clock_settings, shards), "0", 0, 32768, NULL,
     "real: slices of the server's model, each served by another rank; 0: one "
     "on each rank, or one in all where the strategy needs the whole model"},
    {0},
};

bool bm_clock_is_real(const bm_clock_settings *settings)
{
    return strcmp(settings->kind, "real") == 0;
}
