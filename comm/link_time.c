#include "comm/link_time.h"

#include "core/clock.h"
#include "core/sort.h"

#include <stdlib.h>

enum { MESSAGES = 21, FIRST = 1 << 16 }; /* floats of the first exchange */

#define SECONDS 0.1

static bool is_first(const bm_comm *comm, int other)
{
    return bm_comm_rank(comm) < other;
}

/* Seconds of a message: half the median round trip. */
static bm_status ping(bm_comm *comm, int other, float *x, double *out)
{
    double seconds[MESSAGES];

    for (size_t i = 0; i < MESSAGES; i++) {
        double since = bm_clock();

        if (!is_first(comm, other)) {
            bm_comm_receive(comm, x, 1, other);
            BM_TRY(bm_comm_wait(comm));
        }
        bm_comm_send(comm, x, 1, other);
        BM_TRY(bm_comm_wait(comm));
        if (is_first(comm, other)) {
            bm_comm_receive(comm, x, 1, other);
            BM_TRY(bm_comm_wait(comm));
        }
        seconds[i] = bm_clock() - since;
    }
    bm_sort(seconds, MESSAGES);
    *out = seconds[MESSAGES / 2] / 2;
    return BM_OK;
}

/* Returns when the other rank is here, too. The larger of both numbers, on
 * both. */
static bm_status agree(bm_comm *comm, int other, double *number)
{
    int64_t theirs = 0, ours = (int64_t)(1e9 * *number);

    bm_comm_receive_ints(comm, &theirs, 1, other);
    bm_comm_send_ints(comm, &ours, 1, other);
    BM_TRY(bm_comm_wait(comm));
    *number = 1e-9 * (double)(theirs > ours ? theirs : ours);
    return BM_OK;
}

/* Seconds in which both send n floats and receive as many. x [2 n] */
static bm_status swap(bm_comm *comm, int other, float *x, size_t n,
                      double *seconds)
{
    double since = 0, nothing = 0;

    BM_TRY(agree(comm, other, &nothing));
    since = bm_clock();
    bm_comm_receive(comm, x + n, n, other);
    bm_comm_send(comm, x, n, other);
    BM_TRY(bm_comm_wait(comm));
    *seconds = bm_clock() - since;
    return agree(comm, other, seconds);
}

static size_t limited(double floats)
{
    return floats < 1                ? 1
           : floats > BM_LINK_FLOATS ? BM_LINK_FLOATS
                                     : (size_t)floats;
}

bm_status bm_link_measure(bm_comm *comm, int other, size_t floats,
                          bm_link_time *out)
{
    float *x = calloc(2 * BM_LINK_FLOATS, sizeof *x);
    double latency = 0, seconds = 0;
    size_t n = floats;
    bm_status status = BM_OK;

    if (x == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %d floats",
                       2 * BM_LINK_FLOATS);
    BM_TRY_DONE(swap(comm, other, x, 1, &seconds)); /* connects */
    BM_TRY_DONE(ping(comm, other, x, &latency));
    BM_TRY_DONE(agree(comm, other, &latency));
    if (n == 0) {
        BM_TRY_DONE(swap(comm, other, x, FIRST, &seconds));
        n = limited(FIRST * SECONDS / (seconds > 1e-9 ? seconds : 1e-9));
    }
    BM_TRY_DONE(swap(comm, other, x, n, &seconds));
    *out = (bm_link_time){latency, (double)n * sizeof *x /
                                       (seconds > 1e-9 ? seconds : 1e-9)};
done:
    free(x);
    return status;
}
