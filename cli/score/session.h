/*
 * session.h - ranks, device and mini-batches of the verbs that score models:
 * their options, and opening them.
 */
#ifndef BM_CLI_SCORE_SESSION_H
#define BM_CLI_SCORE_SESSION_H

#include "cli/arguments.h"
#include "cli/device.h"
#include "io/batch/plan.h"

/* Rows of a verb's options. */
#define BM_DEVICE_FLAGS                                                        \
    {"threads", "N", "CPU threads per rank; default 1", 0, false},             \
        BM_DEVICE_FLAGS_LESS_THREADS
#define BM_DEVICE_FLAGS_LESS_THREADS                                           \
    {"device", "cpu|cuda|auto", "default: cuda if available", 0, false},       \
        {"precision", "fp32|tf32|bf16|auto",                                   \
         "default: bf16 on GPUs with units for it, else fp32", 0, false},      \
        {"force", NULL,                                                        \
         "score features that were made with other settings than the "         \
         "model's",                                                            \
         0, false},                                                            \
    {                                                                          \
        "set", "SECTION.KEY=VALUE",                                            \
            "set batch.sequences or batch.frames; may be repeated", 0, true    \
    }
#define BM_RANKS_FLAG                                                          \
    {                                                                          \
        "ranks", "RANKS", "number of MPI processes to start", 'n', false       \
    }

typedef struct bm_score_session {
    bm_comm *comm; /* borrowed; NULL in the supervisor of -n, which is done */
    bm_device device;
    bm_plan_settings plan;
} bm_score_session;

/* Collective. threads: the default of --threads. Fails with BM_ERR_ARG or
 * BM_ERR_CONFIG for an invalid option, and as bm_job_start and bm_device_open.
 * Close it after a failure, too. */
BM_CHECKED bm_status bm_score_session_open(bm_score_session *s,
                                           const bm_arguments *a, long threads);
void bm_score_session_close(bm_score_session *s);

#endif
