/*
 * attempt.h - one start of mpirun: watches its ranks, passes on its output and
 * the user's signals, and ends it if it hangs. restarts.h decides what comes
 * after.
 */
#ifndef BM_CLI_LAUNCH_ATTEMPT_H
#define BM_CLI_LAUNCH_ATTEMPT_H

#include "cli/launch/returns.h"
#include "cli/launch/watch/watchdog.h"

#include <stdbool.h>

typedef struct bm_attempt {
    char **words; /* mpirun's command line; borrowed, as all of these */
    int ranks;
    const char *folder; /* of scratch.h */
    const char *shared; /* for heartbeats of other hosts; "": none */
    bm_watchdog_limits limits;
    bm_returns *returns; /* a clean stop once hosts are back */
    bool resumes;        /* the same command goes on after a stop */
} bm_attempt;

typedef struct bm_outcome {
    int code;      /* mpirun's, or 128 + n after signal n; that of BM_ERR_COMM
                      if the supervisor ended the job */
    bool asked;    /* a signal asked for a stop */
    bool returned; /* stopped cleanly, as hosts are back */
    int killed_by; /* the second signal, which ended the job at once; 0: none */
    bool ended;    /* by the supervisor, as it hung or a death was missed */
    bool absent;   /* ranks did not start */
    bool alive;    /* the rank that hung was neither stopped nor gone */
    int rank;      /* that died or hung; -1: unknown */
    char host[64], phase[16];
    double seconds; /* that it hung */
    char why[600];  /* "": the ranks have reported it */
} bm_outcome;

/* Whether a signal asked for a stop since the first attempt. */
bool bm_attempt_stop_requested(void);

/* Runs mpirun to its end. Fails with BM_ERR_MEMORY if it cannot be started. */
BM_CHECKED bm_status bm_attempt_run(const bm_attempt *a, bm_outcome *out);

#endif
