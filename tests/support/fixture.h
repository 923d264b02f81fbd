/* fixture.h - n weights and what a strategy is opened with, for as many workers
 * on the ranks that there are. */
#ifndef BM_TESTS_SUPPORT_FIXTURE_H
#define BM_TESTS_SUPPORT_FIXTURE_H

#include "comm/comm.h"
#include "compute/params.h"
#include "core/config.h"

typedef struct fixture {
    bm_comm *comm;
    bm_config *config;
    bm_params params; /* zeros */
} fixture;

/* Collective, both. */
fixture fixture_open(int workers, size_t n);
void fixture_close(fixture *f);

#endif
