/*
 * check.h - the checks of `bmuf doctor`. A check looks at the host of each
 * rank, or at all ranks together, and reports findings: one line each, with the
 * remedy. doctor.c runs the checks, merges equal findings of several hosts, and
 * prints them.
 *
 * To add a check: write cli/doctor/check_<name>.c, then add its line to
 * BM_CHECKS.
 */
#ifndef BM_CLI_DOCTOR_CHECK_H
#define BM_CLI_DOCTOR_CHECK_H

#include "comm/comm.h"

#include <jansson.h>

#define BM_CHECKS(X)                                                           \
    X(program)                                                                 \
    X(cores) X(limits) X(device) X(data) X(clock) X(folder) X(network)

/* What is to be checked. */
typedef struct bm_check_target {
    const char *folder;    /* that all hosts share */
    const char *data;      /* folder of the training data; "": none */
    const char *others[2]; /* data.dev and data.test, likewise */
    const char *device;    /* a word of BM_DEVICES */
} bm_check_target;

/* What a check says about a host. */
typedef enum bm_severity {
    BM_FINE,
    BM_SKIPPED, /* the check could not run */
    BM_DOUBTFUL,
    BM_FATAL, /* no job would start */
} bm_severity;

/* "ok", "skipped", "warning" or "error". */
const char *bm_severity_word(bm_severity severity);

/* One check at work on one rank. */
typedef struct bm_check_context {
    const bm_check_target *target;
    bm_comm *comm;    /* of checks of all ranks together; else NULL */
    json_t *facts;    /* object: for the other checks and --json */
    json_t *findings; /* array of {"severity", "text", "remedy"} */
    char doing[200];  /* what it waits for, in case it does not end */
} bm_check_context;

/* Reports a finding about this rank's host; `remedy` "": none is needed. */
void bm_find(bm_check_context *e, bm_severity severity, const char *remedy,
             const char *format, ...) __attribute__((format(printf, 4, 5)));

typedef struct bm_check {
    const char *name, *help;
    double seconds; /* after which it is given up */
    /* On every rank, by a thread of its own: a rank whose check does not end
     * goes on without it. May be NULL, like the others. */
    void (*host)(bm_check_context *e);
    /* Collective. Fails if ranks cannot go on. */
    bm_status (*together)(bm_check_context *e);
    /* On rank 0, with an array of {"host", "facts"} of all ranks. */
    void (*compare)(bm_check_context *e, const json_t *ranks);
} bm_check;

#define X(name) extern const bm_check bm_check_##name;
BM_CHECKS(X)
#undef X

/* The time of day in seconds. */
double bm_time_of_day(void);

#endif
