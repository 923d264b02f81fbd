/*
 * The watchdog on a virtual clock: heartbeats of ranks are made up second by
 * second, and who is said to hang follows from them.
 */
#include "cli/launch/watch/watchdog.h"
#include "tests/support/support.h"

#include <stdio.h>
#include <string.h>

enum { MOST = 4 };

/* A job whose ranks do as they are told. */
typedef struct play {
    bm_watchdog w;
    double now;
    bm_heartbeat ranks[MOST];
    bool stopped[MOST]; /* its heart does not beat */
    double cpu[MOST];   /* seconds of the processor in each second */
} play;

static const bm_watchdog_limits minute = {60, 60, 10, false};

static play begin(int ranks, const bm_watchdog_limits *limits)
{
    play p = {.now = 1000};

    assert_ok(bm_watchdog_new(&p.w, ranks, limits, p.now));
    for (int r = 0; r < ranks; r++)
        p.ranks[r] = (bm_heartbeat){.state = BM_HEARTBEAT_ALIVE,
                                    .here = true,
                                    .beats = 1,
                                    .progress = 1,
                                    .phase = "setup",
                                    .pid = 100 + r};
    return p;
}

static void go_to(play *p, int rank, const char *phase)
{
    snprintf(p->ranks[rank].phase, sizeof p->ranks[rank].phase, "%s", phase);
    p->ranks[rank].progress++;
}

/* Some seconds in which nothing changes but hearts that beat. Returns the first
 * verdict that is not fine, or the last one. */
static bm_verdict pass(play *p, double seconds)
{
    bm_verdict v = {0};
    double until = p->now + seconds;

    while (p->now < until && v.what == BM_WATCHDOG_FINE) {
        p->now += 0.5;
        for (int r = 0; r < p->w.ranks; r++) {
            if (!p->stopped[r]) {
                p->ranks[r].beats++;
                p->ranks[r].cpu_s += 0.5 * p->cpu[r];
            }
            bm_watchdog_update(&p->w, r, &p->ranks[r], p->now);
        }
        v = bm_watchdog_look(&p->w, p->now);
    }
    return v;
}

/* Passes over one warning. */
static bm_verdict pass_warning(play *p, double seconds)
{
    double until = p->now + seconds;
    bm_verdict v = pass(p, seconds);

    if (v.what == BM_WATCHDOG_WARN)
        v = pass(p, until - p->now);
    return v;
}

static void end(play *p)
{
    bm_watchdog_free(&p->w);
}

static void test_ranks_that_do_not_start_are_named(void **_)
{
    play p = begin(3, &minute);
    bm_verdict v;

    (void)_;
    p.ranks[2].beats = p.ranks[2].progress = 0;
    p.ranks[2].state = BM_HEARTBEAT_NONE;
    p.stopped[2] = true;
    assert_int_equal(pass(&p, 60).what, BM_WATCHDOG_FINE);
    v = pass(&p, 2);
    assert_int_equal(v.what, BM_WATCHDOG_HANGS);
    assert_int_equal(v.why, BM_WATCHDOG_ABSENT);
    assert_int_equal(v.rank, 2);
    assert_true(v.seconds > 60 && v.seconds < 61);
    end(&p);
    p = begin(2, &minute); /* rank 0 waits for nobody in MPI_Init */
    snprintf(p.ranks[0].phase, sizeof p.ranks[0].phase, "start");
    v = pass(&p, 70);
    assert_int_equal(v.why, BM_WATCHDOG_ABSENT);
    assert_int_equal(v.rank, 0);
    assert_string_equal(v.phase, "start");
    end(&p);
}

/* Without a folder that all hosts share. */
static void test_ranks_that_cannot_be_heard_are_not_missed(void **_)
{
    static const bm_watchdog_limits near = {60, 60, 10, true};
    play p = begin(2, &near);
    bm_verdict v;

    (void)_;
    p.ranks[1].beats = 0;
    p.ranks[1].state = BM_HEARTBEAT_NONE;
    p.stopped[1] = true;
    go_to(&p, 0, "wait");
    assert_int_equal(pass(&p, 1000).what, BM_WATCHDOG_FINE);
    go_to(&p, 0, "forward");
    v = pass_warning(&p, 100);
    assert_int_equal(v.rank, 0);
    assert_int_equal(v.why, BM_WATCHDOG_STUCK);
    end(&p);
    p = begin(2, &near);
    p.ranks[0].beats = p.ranks[1].beats = 0;
    p.stopped[0] = p.stopped[1] = true;
    v = pass(&p, 70);
    assert_int_equal(v.what, BM_WATCHDOG_HANGS);
    assert_int_equal(v.why, BM_WATCHDOG_ABSENT);
    end(&p);
}

static void test_a_stopped_rank_is_named_with_its_phase(void **_)
{
    play p = begin(2, &minute);
    bm_verdict v;

    (void)_;
    pass(&p, 5);
    go_to(&p, 0, "wait");
    go_to(&p, 1, "backward");
    pass(&p, 1);
    p.stopped[1] = true;
    v = pass(&p, 20);
    assert_int_equal(v.what, BM_WATCHDOG_WARN);
    assert_true(v.seconds > 15 && v.seconds < 16);
    v = pass(&p, 100);
    assert_int_equal(v.what, BM_WATCHDOG_HANGS);
    assert_int_equal(v.why, BM_WATCHDOG_SILENT);
    assert_int_equal(v.rank, 1);
    assert_string_equal(v.phase, "compute");
    assert_true(v.seconds > 60 && v.seconds < 61);
    end(&p);
}

static void test_the_rank_that_others_wait_for_is_named(void **_)
{
    static const struct {
        const char *span, *phase;
    } rows[] = {{"stall", "read"},      {"forward", "compute"},
                {"learn", "compute"},   {"eval", "dev"},
                {"no such", "no such"}, {"block", "compute"}};

    (void)_;
    FOR_EACH (i, rows) {
        play p = begin(3, &minute);
        bm_verdict v;

        pass(&p, 1);
        for (int r = 0; r < 3; r++)
            go_to(&p, r, r == 1 ? rows[i].span : "exchange");
        v = pass_warning(&p, 100);
        assert_int_equal(v.what, BM_WATCHDOG_HANGS);
        assert_int_equal(v.why, BM_WATCHDOG_STUCK);
        assert_int_equal(v.rank, 1);
        assert_string_equal(v.phase, rows[i].phase);
        assert_true(v.seconds > 60 && v.seconds < 62);
        end(&p);
    }
}

static void test_an_exchange_that_hangs_is_noticed(void **_)
{
    play p = begin(2, &minute);
    bm_verdict v;

    (void)_;
    pass(&p, 1);
    go_to(&p, 0, "wait");
    pass(&p, 10); /* rank 1 is the last to come */
    go_to(&p, 1, "exchange");
    v = pass_warning(&p, 100);
    assert_int_equal(v.what, BM_WATCHDOG_HANGS);
    assert_int_equal(v.why, BM_WATCHDOG_ALL_WAIT);
    assert_int_equal(v.rank, 1);
    assert_true(v.seconds > 60 && v.seconds < 62);
    end(&p);
}

/* Blocks that take an hour, in mini-batches of ten minutes that become slower:
 * ranks wait an hour for each other. */
static void test_slow_blocks_are_left_alone(void **_)
{
    static const bm_watchdog_limits limits = {60, 60, 3, false};
    play p = begin(2, &limits);
    double batch = 30;

    (void)_;
    pass(&p, 1);
    go_to(&p, 1, "wait");
    for (int i = 0; i < 20; i++) {
        go_to(&p, 0, "forward");
        assert_int_not_equal(pass_warning(&p, batch).what, BM_WATCHDOG_HANGS);
        batch *= 1.5;
    }
    assert_true(batch > 3600);
    end(&p);
}

/* A first mini-batch that takes nine minutes: the rank computes. */
static void test_a_rank_that_uses_the_processor_gets_longer(void **_)
{
    play p = begin(2, &minute);
    bm_verdict v;

    (void)_;
    pass(&p, 1);
    go_to(&p, 0, "wait");
    go_to(&p, 1, "forward");
    p.cpu[1] = 1;
    assert_int_not_equal(pass_warning(&p, 550).what, BM_WATCHDOG_HANGS);
    v = pass(&p, 100);
    assert_int_equal(v.what, BM_WATCHDOG_HANGS);
    assert_int_equal(v.rank, 1);
    end(&p);
}

/* The first save takes long in an fsync, without the processor. */
static void test_a_checkpoint_gets_longer(void **_)
{
    play p = begin(2, &minute);

    (void)_;
    pass(&p, 1);
    go_to(&p, 0, "checkpoint");
    go_to(&p, 1, "checkpoint");
    assert_int_not_equal(pass_warning(&p, 550).what, BM_WATCHDOG_HANGS);
    assert_int_equal(pass_warning(&p, 100).what, BM_WATCHDOG_HANGS);
    end(&p);
}

/* A wait does not make its own limit longer. */
static void test_a_pause_counts_when_it_has_ended(void **_)
{
    static const bm_watchdog_limits limits = {60, 10, 4, false};
    play p = begin(2, &limits);
    bm_verdict v;

    (void)_;
    pass(&p, 1);
    for (int k = 0; k < 2; k++) { /* 9 s are no reason */
        go_to(&p, 0, "exchange");
        go_to(&p, 1, "exchange");
        assert_int_not_equal(pass_warning(&p, 9).what, BM_WATCHDOG_HANGS);
    }
    go_to(&p, 0, "exchange"); /* now 36 s are none */
    go_to(&p, 1, "exchange");
    v = pass_warning(&p, 60);
    assert_int_equal(v.what, BM_WATCHDOG_HANGS);
    assert_true(v.seconds > 33 && v.seconds < 37);
    end(&p);
}

static void test_a_supervisor_that_was_stopped_blames_nobody(void **_)
{
    play p = begin(2, &minute);

    (void)_;
    pass(&p, 1);
    go_to(&p, 0, "forward");
    go_to(&p, 1, "forward");
    pass(&p, 10);
    p.now += 3600;
    assert_int_equal(pass(&p, 4).what, BM_WATCHDOG_FINE);
    end(&p);
}

static void test_ranks_that_have_ended_are_not_watched(void **_)
{
    play p = begin(2, &minute);

    (void)_;
    pass(&p, 1);
    go_to(&p, 0, "wait");
    go_to(&p, 1, "wait");
    p.ranks[0] = p.ranks[1] = (bm_heartbeat){.state = BM_HEARTBEAT_NONE};
    p.stopped[0] = p.stopped[1] = true;
    assert_int_equal(pass(&p, 1000).what, BM_WATCHDOG_FINE);
    end(&p);
}

static void test_without_a_limit_nothing_hangs(void **_)
{
    static const bm_watchdog_limits none = {60, 0, 10, false};
    play p = begin(2, &none);

    (void)_;
    pass(&p, 1);
    p.stopped[0] = p.stopped[1] = true;
    assert_int_equal(pass(&p, 10000).what, BM_WATCHDOG_FINE);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_that_do_not_start_are_named),
        cmocka_unit_test(test_ranks_that_cannot_be_heard_are_not_missed),
        cmocka_unit_test(test_a_stopped_rank_is_named_with_its_phase),
        cmocka_unit_test(test_the_rank_that_others_wait_for_is_named),
        cmocka_unit_test(test_an_exchange_that_hangs_is_noticed),
        cmocka_unit_test(test_slow_blocks_are_left_alone),
        cmocka_unit_test(test_a_rank_that_uses_the_processor_gets_longer),
        cmocka_unit_test(test_a_checkpoint_gets_longer),
        cmocka_unit_test(test_a_pause_counts_when_it_has_ended),
        cmocka_unit_test(test_a_supervisor_that_was_stopped_blames_nobody),
        cmocka_unit_test(test_ranks_that_have_ended_are_not_watched),
        cmocka_unit_test(test_without_a_limit_nothing_hangs),
    };

    return cmocka_run_group_tests_name("watchdog", tests, NULL, NULL);
}
