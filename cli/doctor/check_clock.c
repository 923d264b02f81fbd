/* check_clock.c - the difference between the clocks of hosts. */
#include "cli/doctor/check.h"
#include "comm/clock_offset.h"

#include <math.h>

#define MOST_S 0.5

static bm_status together(bm_check_context *e)
{
    bm_offset offset = {0};

    BM_TRY(bm_clock_offset(e->comm, bm_time_of_day, &offset));
    json_object_set_new(e->facts, "offset_s", json_real(-offset.seconds));
    json_object_set_new(e->facts, "within_s", json_real(offset.round_trip / 2));
    return BM_OK;
}

static double fact(const json_t *rank, const char *key)
{
    return json_number_value(
        json_object_get(json_object_get(rank, "facts"), key));
}

static void compare(bm_check_context *e, const json_t *ranks)
{
    double most = 0;

    for (size_t r = 1; r < json_array_size(ranks); r++) {
        const json_t *rank = json_array_get(ranks, r);
        double offset = fact(rank, "offset_s");

        most = fmax(most, fabs(offset));
        if (fabs(offset) > MOST_S + fact(rank, "within_s"))
            bm_find(e, BM_DOUBTFUL,
                    "synchronise the clocks, with chrony or systemd-timesyncd",
                    "the clock of %s is %.3g s %s that of %s: times of files "
                    "and journals mislead",
                    json_string_value(json_object_get(rank, "host")),
                    fabs(offset), offset > 0 ? "ahead of" : "behind",
                    json_string_value(
                        json_object_get(json_array_get(ranks, 0), "host")));
    }
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
