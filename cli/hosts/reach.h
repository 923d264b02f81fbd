/*
 * reach.h - asks hosts whether they can take part in a job, before it starts.
 */
#ifndef BM_CLI_HOSTS_REACH_H
#define BM_CLI_HOSTS_REACH_H

#include "cli/hosts/hosts.h"

/*
 * Asks all hosts at the same time: is ssh possible without a password, is the
 * current folder there, and `folder` (or its nearest parent that exists) the
 * same, this program, of the same version, and Open MPI? Hosts whose slots are
 * not known get as many as they have cores, at most their max_slots. Logs a
 * warning if a host computes with other libraries than this one, as then results
 * depend on the host.
 *
 * Fails with BM_ERR_COMM and a line for each host that cannot take part.
 */
BM_CHECKED bm_status bm_reach_check(bm_hosts *h, const char *folder);

/* The same for a job that lost a host: moves hosts that cannot take part to
 * `lost`, with a warning each. Fails as bm_reach_check if none is left. */
BM_CHECKED bm_status bm_reach_keep(bm_hosts *h, bm_hosts *lost,
                                   const char *folder);

/* Removes a folder of a job, "..bmuf-XXXXXX", from the other hosts. */
void bm_reach_remove(const bm_hosts *h, const char *folder);

#endif
