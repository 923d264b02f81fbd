/*
 * block_settings.h - the settings of [block]: how much data a block has, and
 * how it is trained and exchanged.
 */
#ifndef BM_BMUF_BLOCK_SETTINGS_H
#define BM_BMUF_BLOCK_SETTINGS_H

#include "core/config/config.h"
#include "io/batch/plan.h"

#include <stdbool.h>

typedef struct bm_block_settings {
    bm_series frames_per_worker; /* size of a block: one of these is set, or */
    bm_series frames_total;      /* none, which is steps = 20 */
    bm_series steps;
    bm_series workers; /* that take part, of [job] workers; 0: all */
    long warmup; /* blocks that exchange at every step: bmuf/trainer/warmup.c */
    double seconds; /* a rank stops its shares after this time; 0: never */
    long fragments; /* exchanged in turn: bmuf/strategies/fragments.h */
    bool overlap;   /* late exchange: bmuf/strategies/fragments.h */
} bm_block_settings;

/* The table of bm_block_settings; and the part of it that sets the size, for a
 * program that only evaluates. */
extern const bm_option bm_block_options[];
extern const bm_option bm_block_sizes[];

/* The check of a bm_section: at most one size of a block is set. */
void bm_block_check(const bm_config *config, bm_faults *faults);

/* True if each worker keeps a model of its own between blocks, as fragments and
 * a late exchange need. */
bool bm_fragments_wanted(const bm_block_settings *block);

/* Workers that take part in the blocks of an epoch, of n. */
int bm_block_workers(const bm_block_settings *block, int64_t epoch, int n);

/* Fills the settings of a plan from [batch], and size and workers of blocks;
 * without a size: 20 mini-batches per worker. Fails with BM_ERR_CONFIG for a
 * value that a table forbids. */
BM_CHECKED bm_status bm_plan_read(const bm_config *config,
                                  bm_plan_settings *out);

#endif
