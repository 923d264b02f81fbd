/*
 * allocation.h - where the ranks of a job run: as many as -n says on this host,
 * on the hosts of --hosts or --hostfile, or on those that Slurm has given.
 */
#ifndef BM_CLI_HOSTS_ALLOCATION_H
#define BM_CLI_HOSTS_ALLOCATION_H

#include "cli/arguments.h"
#include "cli/hosts/hosts.h"

typedef enum bm_allocator {
    BM_BY_NUMBER,
    BM_BY_HOSTS,
    BM_BY_SLURM
} bm_allocator;

typedef struct bm_allocation {
    long ranks;
    bm_hosts hosts; /* with slots for all ranks; none: this host alone */
    bm_hosts given; /* by BM_BY_HOSTS: all of them, with all their slots */
    bm_hosts lost;  /* of `given`, those that did not answer last, if the others
                       have fewer slots than there are ranks */
    bm_allocator by;
    const char
        *interface; /* of the network between hosts; NULL: all; borrowed */
} bm_allocation;

/* The options of a verb that runs on several hosts, for its table. */
#define BM_ALLOCATION_FLAGS                                                    \
    {"ranks", "RANKS",                                                         \
     "number of MPI processes to start; default with hosts: all their slots",  \
     'n', false},                                                              \
        {"hosts", "HOST:SLOTS,..",                                             \
         "start them over ssh on these hosts, on each as many as it has "      \
         "slots; without a number one",                                        \
         0, false},                                                            \
        {"hostfile", "FILE",                                                   \
         "the hosts are lines \"a slots=4 max_slots=8\", as for mpirun", 0,    \
         false},                                                               \
    {                                                                          \
        "interface", "NAME|CIDR",                                              \
            "network between the hosts, as eth0 or 10.0.0.0/24; default: all", \
            0, false                                                           \
    }

/*
 * Reads -n, --hosts and --hostfile; in an allocation of Slurm its environment,
 * if the verb has these options. One rank on this host: nothing is started.
 * Hosts are asked first whether they can take part (reach.h); `folder`, where all
 * ranks work, need not exist.
 *
 * Fails with BM_ERR_ARG if options are invalid, contradict each other or ask for
 * more ranks than there are slots; as bm_hosts_read, bm_slurm_hosts and
 * bm_reach_check. Free with bm_allocation_free, after a failure, too.
 */
BM_CHECKED bm_status bm_allocation_read(bm_allocation *out,
                                        const bm_arguments *a,
                                        const char *folder);
void bm_allocation_free(bm_allocation *allocation);

/*
 * Deals the ranks of `whole` again, to those of its hosts that answer: all, if
 * there are enough slots. Logs a line for each host that cannot take part. Fails
 * as bm_reach_check if none can. Free *out with bm_allocation_free.
 */
BM_CHECKED bm_status bm_allocation_again(bm_allocation *out,
                                         const bm_allocation *whole,
                                         const char *folder);

/* Is mpirun needed? */
bool bm_allocation_is_parallel(const bm_allocation *allocation);

#endif
