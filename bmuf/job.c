/* job.c - which settings of [job] do not go together. */
#include "bmuf/exchange.h"
#include "comm/grid.h"

#include <string.h>

void bm_job_check(const bm_config *config, bm_faults *faults)
{
    bm_job job = {0};
    bm_grid grid;

    bm_config_peek(config, "job", bm_job_options, &job);
    if (strcmp(job.topology, "auto") == 0)
        return;
    if (strcmp(job.sum, "hier") != 0)
        bm_config_fault(faults, config, "job", "topology",
                        "job.topology = %s has no meaning with job.sum = %s; "
                        "take job.sum = hier",
                        job.topology, job.sum);
    else if (bm_grid_read(job.topology, (int)job.workers, &grid) != BM_OK)
        bm_config_fault(faults, config, "job", "topology", "job.topology: %s",
                        bm_last_message());
}
