/*
 * telemetry.h - what follows a training job from outside: [job] metrics and
 * tensorboard (docs/jobs/telemetry.md), made from the events of the journal. Nothing
 * here fails because a file cannot be written: that is a
 * warning.
 */
#ifndef BM_CLI_TELEMETRY_TELEMETRY_H
#define BM_CLI_TELEMETRY_TELEMETRY_H

#include "bmuf/job.h"
#include "compute/params.h"
#include "core/log.h"

typedef struct bm_telemetry bm_telemetry;

/* On rank 0: follows the journal from now on, which is borrowed and must outlive
 * *out; `directory` is that of the run. On other ranks, where the journal is
 * NULL, *out is NULL, and so it is if nothing is to be written. Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_telemetry_open(bm_telemetry **out, const bm_job *job,
                                       const char *directory,
                                       bm_journal *journal);
/* t may be NULL, here and below. */
void bm_telemetry_close(bm_telemetry *t);

/* The global model [n] on the host, before the first block of an epoch with
 * which the job begins, and at the end of each epoch. */
void bm_telemetry_model(bm_telemetry *t, const bm_params *params,
                        const float *model);

/* After an evaluation: what the model made of a sequence, in Markdown. */
void bm_telemetry_example(bm_telemetry *t, const char *sequence,
                          const char *text);

#endif
