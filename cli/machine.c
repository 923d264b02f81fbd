#include "cli/machine.h"

#include "bmuf/async/realtime.h"
#include "cli/placement/own_place.h"
#include "core/memory.h"
#include "core/text/words.h"

#include <stdio.h>
#include <string.h>

/* What this process can tell by itself. */
static bm_status check(const bm_device *device, bm_config *config,
                       bm_settings *s, int ranks)
{
    bool events = bm_strategy_find(s->train.strategy)->per == BM_EVENT;

    BM_TRY(bm_settings_resolve(s, config, device->name, device->precision));
    BM_TRY(bm_exchange_check(&s->job, device->be));
    if (events && bm_clock_is_real(&s->clock))
        BM_TRY(bm_realtime_check((int)s->job.workers, s->clock.shards, ranks));
    return BM_OK;
}

bm_status bm_machine_open(bm_device *out, bm_comm *comm, bm_config *config,
                          bm_settings *s, int ranks)
{
    bm_device device = {0};
    bm_placement place;
    bool gpus = strcmp(s->job.device, "cpu") != 0;
    bm_status status = bm_settings_fit(config, s, ranks);

    BM_TRY(comm != NULL ? bm_comm_agree(comm, status) : status);
    bm_own_place_take(&place, comm, gpus,
                      comm != NULL && strcmp(s->job.bind, "auto") == 0);
    if (s->job.threads == 0)
        s->job.threads = ranks > 1 ? place.cores : 1;
    BM_TRY(bm_device_open(&device, comm, s->job.device, s->job.precision,
                          s->job.threads));
    status = check(&device, config, s, ranks);
    if (comm != NULL)
        status = bm_comm_agree(comm, status);
    device.place = place;
    if (status == BM_OK)
        *out = device;
    else
        bm_device_close(&device);
    return status;
}

static int ranks_here(const bm_comm *comm)
{
    int rank = comm != NULL ? bm_comm_rank(comm) : 0, n = 0;

    for (int r = 0; comm != NULL && r < bm_comm_size(comm); r++)
        n += bm_comm_host(comm, r) == bm_comm_host(comm, rank);
    return comm != NULL ? n : 1;
}

void bm_machine_advise(const bm_footprint *size, size_t weights,
                       const bm_comm *comm,
                       void (*warn)(void *self, const char *text), void *self)
{
    int ranks = ranks_here(comm);
    double bytes = size->memory * (double)weights * sizeof(float) * ranks;
    double room = bm_memory_room();
    char text[300];

    if (room == 0 || bytes <= room)
        return;
    snprintf(text, sizeof text,
             "%s on this host will need about %.3g GB of memory for weights "
             "and states, and %.3g GB are free; the system may end the run",
             bm_count_noun(ranks, "rank").text, 1e-9 * bytes, 1e-9 * room);
    warn(self, text);
}
