#include "bmuf/async/service.h"

#include <math.h>
#include <string.h>

void bm_service_begin(bm_service *s, double *stale, size_t n_stale)
{
    memset(stale, 0, n_stale * sizeof *stale);
    *s = (bm_service){.stale = stale, .n_stale = n_stale, .shards = 1};
}

void bm_service_push(bm_service *s, double *stale, double tau, size_t n)
{
    size_t last = s->n_stale - 1;

    stale[tau < (double)last ? (size_t)tau : last]++;
    s->mean += tau;
    s->most = fmax(s->most, tau);
    s->pushes++;
    s->pushed += (double)(n * sizeof(float));
}

void bm_service_pull(bm_service *s, size_t n)
{
    s->pulled += (double)(n * sizeof(float));
}

void bm_service_end(bm_service *s)
{
    s->mean /= s->pushes;
}
