/*
 * returns.h - while a run goes on without some of its hosts, asks them now and
 * then whether they are back. A child process does it, as an answer may take
 * seconds.
 */
#ifndef BM_CLI_LAUNCH_RETURNS_H
#define BM_CLI_LAUNCH_RETURNS_H

#include "cli/hosts/allocation.h"

#include <stdbool.h>
#include <sys/types.h>

typedef struct bm_returns {
    const bm_hosts *lost; /* borrowed, as `folder` */
    const char *folder;   /* of the run */
    double every_s;       /* from one question to the next */
    pid_t child;          /* that asks; 0: none */
    double next;          /* when to ask */
} bm_returns;

/* The next every_s of a run that was restarted so often for hosts that were back:
 * 20 s at first, twice as long each time, at most about 20 minutes. So a host
 * that comes and goes does not keep the run from training. */
double bm_returns_every(int made);

/* True if one of the hosts can take part again. Call it often. */
bool bm_returns_look(bm_returns *r, double now);

/* Ends the child. */
void bm_returns_close(bm_returns *r);

#endif
