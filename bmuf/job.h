/*
 * job.h - the settings of [job]: the number of workers, how their updates are
 * summed, and what computes.
 */
#ifndef BM_BMUF_JOB_H
#define BM_BMUF_JOB_H

#include "core/config/config.h"

typedef struct bm_job {
    long workers;    /* N; decides the result, unlike the number of ranks */
    const char *sum; /* of BM_SUMS */
    const char *topology;    /* for sum = hier: "4x8x8", or auto */
    const char *coordinator; /* sharded or root */
    long seed;               /* of weights, shuffling and dropout */
    long threads;            /* per rank; 0: not given */
    const char *bind;        /* auto or none */
    const char *device;      /* of BM_DEVICES */
    const char *precision;   /* of BM_PRECISIONS */
    const char *exchange;    /* auto, host, nccl or mpi */
    const char *trace;       /* "blocks A:B"; "": none */
    bool tensorboard;        /* write event files */
    const char *metrics;     /* a file for Prometheus; "": none */
    double start_limit;      /* s until all ranks have started */
    double hang_limit;       /* s of a rank without progress; 0: none */
    double hang_factor;      /* of its longest pause */
    double audit;            /* fraction of blocks that are computed twice */
} bm_job;
#define BM_DEVICES    "auto cpu cuda"
#define BM_PRECISIONS "auto fp32 tf32 bf16"

extern const bm_option bm_job_options[];

/* The check of the section, see bm_section: reports an invalid topology, and more
 * [block] workers than there are. */
void bm_job_check(const bm_config *config, bm_faults *faults);

#endif
