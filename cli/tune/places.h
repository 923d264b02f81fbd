/*
 * places.h - where the trials of a search run: places on this host or on others,
 * each with room for the ranks of one trial.
 */
#ifndef BM_CLI_TUNE_PLACES_H
#define BM_CLI_TUNE_PLACES_H

#include "cli/hosts/hosts.h"
#include "cli/tune/tuning.h"

/* Finds the places of --hosts or --hostfile: as many of each host as its slots
 * have room for, one host after another, at most --jobs. On this host alone there
 * are --jobs places, or one for each GPU or core of a trial. Sets t->places.
 *
 * Fails with BM_ERR_ARG if a host has no room for a trial, as bm_hosts_read, and
 * as bm_reach_check. Free with bm_places_free. */
BM_CHECKED bm_status bm_places_find(bm_tuning *t);
void bm_places_free(bm_tuning *t);

/* Whether a trial that ended with this code at a place has lost its host, which is
 * asked. Then its places are given up; with *left <- whether there are others. */
bool bm_places_lost(bm_tuning *t, size_t place, int code, bool *left);

/* "4 places", "4 places on 2 hosts"; valid until the next call. */
const char *bm_places_text(const bm_tuning *t);

#endif
