/*
 * watchdog.h - decides from heartbeats which rank hangs. Knows no processes and
 * no clock: the caller passes both in.
 *
 * A rank is silent if its heart does not beat: it is stopped, or its host is
 * gone. It is stuck if no span begins or ends in it. Mini-batches are spans, so
 * that a long block is not stuck. A rank that waits for others is not: the one
 * that they wait for is. If all wait, the exchange itself hangs.
 *
 * The limit for a phase is hang_s, or hang_factor times the longest pause that
 * any rank made in that phase, whichever is longer; ten times as long if the
 * rank uses the processor, as it is then slow rather than hung. Docs:
 * docs/decisions/17-watchdog.md.
 */
#ifndef BM_CLI_LAUNCH_WATCH_WATCHDOG_H
#define BM_CLI_LAUNCH_WATCH_WATCHDOG_H

#include "cli/launch/watch/heartbeat.h"
#include "core/status.h"

typedef struct bm_watchdog_limits {
    double start_s;     /* until all ranks have met */
    double hang_s;      /* 0: nothing hangs */
    double hang_factor; /* of the longest pause so far */
    bool near;          /* only ranks on this host are heard */
} bm_watchdog_limits;

/* What is known of a rank. */
typedef struct bm_watched {
    bm_heartbeat last;
    bool seen;
    bool warned;  /* of its present pause */
    double beat;  /* when its heart beat last */
    double moved; /* when it began its present pause */
    double cpu_s; /* that it had used then */
} bm_watched;

enum { BM_WATCHDOG_PHASES = 16 };

typedef struct bm_watchdog {
    bm_watchdog_limits limits;
    int ranks;
    bm_watched *of; /* [ranks] */
    bool met;       /* all ranks have met once */
    double began, looked;
    double longest[BM_WATCHDOG_PHASES]; /* pauses, by phase */
    double longest_wait, waited; /* pauses of all ranks: longest, and last */
    bool warned_of_wait;
} bm_watchdog;

typedef struct bm_verdict {
    enum { BM_WATCHDOG_FINE, BM_WATCHDOG_WARN, BM_WATCHDOG_HANGS } what;
    enum {
        BM_WATCHDOG_ABSENT, /* did not start */
        BM_WATCHDOG_SILENT,
        BM_WATCHDOG_STUCK,
        BM_WATCHDOG_ALL_WAIT
    } why;
    int rank;
    double seconds, limit_s;
    const char *phase; /* as users know it: start, read, compute, .. */
} bm_verdict;

/* Free with bm_watchdog_free. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_watchdog_new(bm_watchdog *w, int ranks,
                                     const bm_watchdog_limits *limits,
                                     double now);
void bm_watchdog_free(bm_watchdog *w);

/* Records what a rank wrote last. Call it for all ranks, then
 * bm_watchdog_look. */
void bm_watchdog_update(bm_watchdog *w, int rank, const bm_heartbeat *h,
                        double now);

/* Warns once of each pause, after a quarter of its limit. */
bm_verdict bm_watchdog_look(bm_watchdog *w, double now);

#endif
