/*
 * job.h - [job]: the number of workers, how their models are summed up, and
 * what computes.
 */
#ifndef BM_BMUF_JOB_H
#define BM_BMUF_JOB_H

#include "core/config.h"

/* [job]: what decides the result, and how it is computed. */
typedef struct bm_job {
    long workers;            /* N; part of the experiment */
    const char *sum;         /* of BM_SUMS */
    const char *topology;    /* of sum = hier: "4x8x8", or auto */
    const char *coordinator; /* sharded or root */
    long seed;               /* of weights, shuffling and dropout */
    long threads;            /* per rank */
    const char *device;      /* of BM_DEVICES */
    const char *precision;   /* of BM_PRECISIONS */
    const char *exchange;    /* auto, host, nccl or mpi */
    const char *trace;       /* "blocks A:B"; "": none */
} bm_job;
#define BM_DEVICES    "auto cpu cuda"
#define BM_PRECISIONS "auto fp32 tf32 bf16"

extern const bm_option bm_job_options[];
void bm_job_check(const bm_config *config, bm_faults *faults);

#endif
