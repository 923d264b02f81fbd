/*
 * remote.h - runs a shell command on several hosts at the same time, as mpirun
 * would: with ssh, or with the program of OMPI_MCA_plm_rsh_agent, and with the
 * arguments of OMPI_MCA_plm_rsh_args. ssh never asks for a password.
 */
#ifndef BM_CLI_HOSTS_REMOTE_H
#define BM_CLI_HOSTS_REMOTE_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { BM_REMOTE_TEXT = 1 << 16 }; /* bytes that are kept of what it prints */

typedef struct bm_remote {
    const char *host; /* borrowed */
    int code;         /* exit code; -1: it did not end in time */
    char *out, *err;  /* what it printed; free(), as bm_remote_free does */
} bm_remote;

/*
 * Runs the command on each host, on this one with sh, and waits for at most so
 * many seconds, longer for more than 64 hosts. Fails with BM_ERR_MEMORY if no
 * process can be started; what happens on a host is no failure.
 */
BM_CHECKED bm_status bm_remote_run(bm_remote *list, size_t n,
                                   const char *command, double seconds);
void bm_remote_free(bm_remote *list, size_t n);

/* Is it a name or an address of this host? */
bool bm_remote_is_here(const char *host);

/* The arguments of ssh with which mpirun never asks for a password either, those
 * of the user first; "": another program is used. Valid until the next call. */
const char *bm_remote_arguments(void);

/* out [room] <- the path of this program. False: unknown. */
bool bm_program_path(char *out, size_t room);

/* Writes a word for a shell, in quotes. */
void bm_remote_quote(const char *word, FILE *out);
/* Likewise, in quotes only where a shell needs them. */
void bm_remote_word(const char *word, FILE *out);

#endif
