/* limits.h - what the system allows a process: files, processes, memory. */
#ifndef BM_CLI_DOCTOR_LIMITS_H
#define BM_CLI_DOCTOR_LIMITS_H

#include "core/status.h"

#include <stddef.h>

typedef struct bm_limit {
    const char *name; /* "open files" */
    int resource;     /* RLIMIT_NOFILE */
    double unit;      /* of the numbers below, in those of the resource */
    const char *unit_name;
    double least;    /* below it no job starts; 0: it always does */
    double enough;   /* below it there is a warning */
    const char *why; /* what needs it */
    const char *remedy;
} bm_limit;

/* All limits; the last row has name NULL. */
extern const bm_limit bm_limits[];

/* The limit of this process, in its unit; infinity: none. */
double bm_limit_now(const bm_limit *l);

/* out [room] <- "open files are limited to 24; ..", with what needs more. */
void bm_limit_text(const bm_limit *l, char *out, size_t room);

/* Fails with BM_ERR_COMM if mpirun cannot start this number of ranks on this host,
 * and would wait for them; logs a warning if it perhaps cannot. */
BM_CHECKED bm_status bm_limits_check(long ranks);

#endif
