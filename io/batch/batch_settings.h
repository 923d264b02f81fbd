/*
 * batch_settings.h - the settings of [batch]: size and order of mini-batches.
 */
#ifndef BM_IO_BATCH_BATCH_SETTINGS_H
#define BM_IO_BATCH_BATCH_SETTINGS_H

#include "core/config/config.h"
#include "io/batch/plan.h"

extern const bm_option bm_batch_options[];

/* The check of a bm_section: batch.sequences and batch.frames exclude each
 * other. */
void bm_batch_check(const bm_config *config, bm_faults *faults);

/* Sets sequences, frames, order, buckets and accumulate of *out, and leaves its
 * other fields. Fails with BM_ERR_CONFIG for a value that the table forbids. */
BM_CHECKED bm_status bm_batch_read(const bm_config *config,
                                   bm_plan_settings *out);

#endif
