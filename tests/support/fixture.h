/* fixture.h - a comm, a configuration and n weights, from which tests open
 * strategies and sums. */
#ifndef BM_TESTS_SUPPORT_FIXTURE_H
#define BM_TESTS_SUPPORT_FIXTURE_H

#include "comm/comm.h"
#include "compute/params.h"
#include "core/config/config.h"

typedef struct fixture {
    bm_comm *comm;
    bm_config *config;
    bm_params params; /* zeros */
} fixture;

/* Collective. All ranks, `workers` workers, weights 0 on the cpu. */
fixture fixture_open(int workers, size_t n);
void fixture_close(fixture *f);

/* "section.key=value" */
void fixture_set(fixture *f, const char *assignment);

/* The largest grid a x b x c of so many workers that is not a single ring, if
 * there is one: a text for [job] topology. */
void topology(int workers, char out[32]);

#endif
