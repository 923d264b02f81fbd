/* check_clock.c - the difference between the clocks of hosts. */
#include "cli/doctor/check.h"
#include "comm/clock_offset.h"

#include <math.h>

#define MOST_S 0.5

static bm_status together(bm_exam *e)
{
    bm_offset offset = {0};

    BM_TRY(bm_clock_offset(e->comm, bm_time_of_day, &offset));
    json_object_set_new(e->facts, "offset_s", json_real(-offset.seconds));
    if (fabs(offset.seconds) > MOST_S + offset.round_trip)
        bm_find(e, BM_DOUBTFUL,
                "synchronise the clocks, with chrony or systemd-timesyncd",
                "the clock is %.3g s %s that of rank 0: times of files and "
                "journals mislead",
                fabs(offset.seconds),
                offset.seconds < 0 ? "ahead of" : "behind");
    return BM_OK;
}

static void compare(bm_exam *e, const json_t *ranks)
{
    double most = 0;

    for (size_t r = 0; r < json_array_size(ranks); r++)
        most =
            fmax(most, fabs(json_number_value(json_object_get(
                           json_object_get(json_array_get(ranks, r), "facts"),
                           "offset_s"))));
    if (json_array_size(ranks) > 1 && most <= MOST_S)
        bm_find(e, BM_FINE, "", "clocks differ by at most %.2g s", most);
}

const bm_check bm_check_clock = {
    .name = "clock",
    .help = "difference between the clocks of hosts",
    .seconds = 30,
    .together = together,
    .compare = compare,
};
