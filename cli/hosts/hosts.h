/*
 * hosts.h - the hosts of a job and how many ranks each takes: from --hosts, from
 * a hostfile of Open MPI, or from Slurm (slurm.h).
 */
#ifndef BM_CLI_HOSTS_HOSTS_H
#define BM_CLI_HOSTS_HOSTS_H

#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    BM_MOST_HOSTS = 4096,
    BM_MOST_SLOTS = 1 << 16, /* of a host, and of all hosts */
    BM_HOST_NAME = 256,      /* with the '\0' */
    BM_HOSTFILE_BYTES = 1 << 20
};

typedef struct bm_host {
    char name[BM_HOST_NAME]; /* "a", "a.cluster", "user@a" */
    long slots; /* ranks that it takes; 0: not given, as many as it has cores */
    long most;  /* ranks that it takes where all slots of the job are full */
} bm_host;

typedef struct bm_hosts {
    bm_host *list; /* [n], each name once */
    size_t n;
} bm_hosts;

/*
 * Adds the hosts of "a:4,b:4"; without a number a host has one slot. A host that
 * is named again gets the slots of both.
 *
 * Fails with BM_ERR_ARG, naming the host and the reason, if a name is invalid
 * or a number is not in [1, BM_MOST_SLOTS]; with BM_ERR_MEMORY. Call
 * bm_hosts_free after a failure, too; start with {0}.
 */
BM_CHECKED bm_status bm_hosts_parse(bm_hosts *h, const char *text);

/*
 * Adds the hosts of a hostfile: lines "a slots=4 max_slots=8", with comments
 * that begin with #. Without slots a host has as many as cores, at most
 * max_slots, and slots are 0 until somebody asks it.
 *
 * Fails as bm_file_read, and with BM_ERR_FORMAT, file and line.
 */
BM_CHECKED bm_status bm_hosts_read(bm_hosts *h, const char *path);

/* Adds a host, or slots to the host of this name. Fails as bm_hosts_parse. */
BM_CHECKED bm_status bm_hosts_add(bm_hosts *h, const char *name, size_t length,
                                  long slots, long most);

/* Adds the hosts of another list. Fails as bm_hosts_parse. */
BM_CHECKED bm_status bm_hosts_copy(bm_hosts *out, const bm_hosts *h);

void bm_hosts_free(bm_hosts *h);

/* The sum of all slots, and of all max_slots. */
long bm_hosts_slots(const bm_hosts *h);
long bm_hosts_most(const bm_hosts *h);

/*
 * Deals `ranks` ranks, 0: as many as there are slots: each host in turn takes as
 * many as it has slots, and what is left over goes to hosts with a larger
 * max_slots. Then h has only the hosts with ranks, and slots are these ranks.
 *
 * Fails with BM_ERR_ARG if there are too few slots.
 */
BM_CHECKED bm_status bm_hosts_deal(bm_hosts *h, long ranks);

/* "a:4,b:4" for mpirun --host; free() it. NULL: no memory. */
char *bm_hosts_text(const bm_hosts *h);

#endif
