/* Clock offsets: from the fastest echo, within its error bound. */
#include "comm/clock_offset.h"
#include "core/clock.h"
#include "tests/support/support.h"

#include <math.h>

static bm_comm *comm;

/* Each rank's clock is half an hour behind that of the rank before. */
static double clock_of_rank(void)
{
    return bm_clock() - 1800 * bm_comm_rank(comm);
}

static void test_the_fastest_echo_is_used(void **_)
{
    /* Rank 0 is 7 s ahead; ways there and back take 1 and 3, 2 and 0.5, .. */
    static const double there[] = {1, 2, 0.25, 4}, back[] = {3, 0.5, 0.5, 4};
    bm_echo echoes[4];
    bm_offset o;

    (void)_;
    FOR_EACH (i, there) {
        double sent = 100 + 10. * (double)i;
        echoes[i] =
            (bm_echo){sent, sent + there[i] + 7, sent + there[i] + back[i]};
    }
    o = bm_offset_of(echoes, 4);
    assert_true(near(o.round_trip, 0.75, 1e-12));
    assert_true(near(o.seconds, 7 + (0.25 - 0.5) / 2, 1e-12));
    o = bm_offset_of(echoes, 1);
    assert_true(near(o.seconds, 7 - 1, 1e-12));
}

/* Ranks of one host have one clock, so that the offset is known. */
static void test_offsets_are_right_within_half_an_echo(void **_)
{
    bm_offset o;
    double truth = 0;

    (void)_;
    assert_ok(bm_comm_open(&comm));
    truth = 1800 * bm_comm_rank(comm);
    for (int i = 0; i < 5; i++) {
        assert_ok(bm_clock_offset(comm, clock_of_rank, &o));
        assert_true(o.round_trip >= 0);
        assert_true(fabs(o.seconds - truth) <= o.round_trip / 2 + 1e-6);
        assert_true(bm_comm_rank(comm) > 0 ||
                    (o.seconds == 0 && o.round_trip == 0));
    }
    bm_comm_close(comm);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_fastest_echo_is_used),
        cmocka_unit_test(test_offsets_are_right_within_half_an_echo),
    };
    return RUN_GROUP_MPI("offset", tests);
}
