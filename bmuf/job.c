/* job.c - the settings of [job], and which of them conflict. */
#include "bmuf/job.h"

#include "bmuf/block_settings.h"
#include "comm/grid.h"
#include "comm/sum/sum.h"
#include "core/text/words.h"

#include <string.h>

const bm_option bm_job_options[] = {
    {"workers", BM_INT, offsetof(bm_job, workers), "1", 1, 32768, NULL,
     "N: number of logical workers, on up to N ranks; required with several "
     "ranks"},
    {"sum", BM_CHOICE, offsetof(bm_job, sum), "tree", 0, 0, BM_SUMS(BM_WORD),
     "order of the sum over workers"},
    {"topology", BM_TEXT, offsetof(bm_job, topology), "auto", 0, 0, NULL,
     "for sum = hier: sizes of a grid of workers, as 4x8x8, whose product is "
     "N; auto: workers of a host x hosts"},
    {"coordinator", BM_CHOICE, offsetof(bm_job, coordinator), "sharded", 0, 0,
     "sharded root",
     "where updates are averaged and filtered; sharded: each rank its slice; "
     "root: rank 0"},
    {"seed", BM_INT, offsetof(bm_job, seed), "1", 0, 9007199254740992., NULL,
     "seed of weights, shuffling and dropout"},
    {"threads", BM_INT, offsetof(bm_job, threads), "0", 0, 1024, NULL,
     "threads of each rank; 0: the cores of its share of the host, and one in "
     "a job of one rank"},
    {"bind", BM_CHOICE, offsetof(bm_job, bind), "auto", 0, 0, "auto none",
     "auto: ranks divide the cores of their host among them, near their GPUs, "
     "and stay there"},
    {"device", BM_CHOICE, offsetof(bm_job, device), "auto", 0, 0, BM_DEVICES,
     "device that computes; auto: cuda if there is one, else cpu"},
    {"precision", BM_CHOICE, offsetof(bm_job, precision), "auto", 0, 0,
     BM_PRECISIONS,
     "precision of matrix products; bf16, tf32: factors rounded to 8, 11 bits; "
     "auto: bf16 on GPUs with units for it, else fp32; the CPU has no tf32"},
    {"exchange", BM_CHOICE, offsetof(bm_job, exchange), "auto", 0, 0,
     "auto host nccl mpi",
     "how vectors travel between devices, with the same bits; mpi: by a "
     "CUDA-aware MPI; auto: by NCCL if each rank has a device of its own and "
     "sum is not exact or mpi, else by way of the host"},
    {"trace", BM_TEXT, offsetof(bm_job, trace), "", 0, 0, NULL,
     "blocks A:B: writes spans of blocks A to B - 1 of the run, counted from "
     "0, to trace/ in its directory; empty: no trace"},
    {"tensorboard", BM_FLAG, offsetof(bm_job, tensorboard), "no", 0, 0, NULL,
     "write event files for TensorBoard to the directory of the run"},
    {"metrics", BM_TEXT, offsetof(bm_job, metrics), "", 0, 0, "FILE",
     "a file of metrics for Prometheus, replaced after each block, such as "
     "one in the textfile directory of node_exporter; empty: none"},
    {"start_limit", BM_FLOAT, offsetof(bm_job, start_limit), "60", 1, 1e6,
     "seconds", "all ranks must start within this time"},
    {"hang_limit", BM_FLOAT, offsetof(bm_job, hang_limit), "60", 0, 1e6,
     "seconds",
     "with -n: a rank without progress for this time ends the job, which "
     "restarts; 0: no limit"},
    {"hang_factor", BM_FLOAT, offsetof(bm_job, hang_factor), "10", 1, 1e6, NULL,
     "hang_limit is at least this times the longest pause of a rank so far"},
    {"audit", BM_FLOAT, offsetof(bm_job, audit), "0", 0, 1, NULL,
     "fraction of blocks whose shares are computed twice, on two ranks, and "
     "compared bit for bit, to find hardware that computes wrongly; 0: none"},
    {0},
};

void bm_job_check(const bm_config *config, bm_faults *faults)
{
    bm_job job = {0};
    bm_block_settings block = {0};
    bm_grid grid;

    bm_config_peek(config, "job", bm_job_options, &job);
    bm_config_peek(config, "block", bm_block_options, &block);
    if (job.audit > 0 &&
        (block.seconds > 0 || block.fragments > 1 || block.overlap))
        bm_config_fault(faults, config, "job", "audit",
                        "job.audit is for shares that are computed whole from "
                        "a common model, not for block.seconds, "
                        "block.fragments and block.overlap; leave one of them "
                        "out");
    for (int i = 0; i < block.workers.n; i++)
        if (block.workers.value[i] > (double)job.workers)
            bm_config_fault(faults, config, "block", "workers",
                            "block.workers: %g is more than job.workers = %ld; "
                            "set job.workers to the largest of them",
                            block.workers.value[i], job.workers);
    if (strcmp(job.topology, "auto") != 0 &&
        bm_grid_read(job.topology, (int)job.workers, &grid) != BM_OK)
        bm_config_fault(faults, config, "job", "topology", "job.topology: %s",
                        bm_last_message());
}
