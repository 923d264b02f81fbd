#include "cli/machine.h"

#include "bmuf/async/realtime.h"
#include "cli/placement/own_place.h"

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
