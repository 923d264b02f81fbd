/*
 * settings.h - all settings of a training run: the sections, in the order of
 * docs/options.md, and their values.
 */
#ifndef BM_CLI_SETTINGS_H
#define BM_CLI_SETTINGS_H

#include "bmuf/async/virtual_clock.h"
#include "bmuf/block_settings.h"
#include "bmuf/filter.h"
#include "bmuf/trainer.h"
#include "cli/arguments.h"
#include "io/import/importer.h"
#include "models/model.h"
#include "sgd/schedule.h"

/* [data] */
typedef struct bm_data_settings {
    const char *train, *dev, *test; /* directories of shards; "": none */
} bm_data_settings;

typedef struct bm_settings {
    bm_data_settings data;
    bm_model_settings model;
    bm_train_settings train;
    bm_job job;
    bm_plan_settings plan;
    bm_block_settings block; /* as given: no default size, as in plan */
    bm_sgd_settings sgd;
    bm_schedule_settings schedule;
    bm_filter filter; /* that the strategy's own settings come to */
    bool filtered;    /* it has one */
    bm_server_policy server_policy; /* likewise; {0}: it has none */
    bm_clock_settings clock;
    bm_code code; /* that the strategy's vectors travel as, or none */
} bm_settings;

/* Sections of a training configuration; of `bmuf pack` with one importer, three
 * with the end. They end with {0}. */
const bm_section *bm_train_sections(void);
void bm_pack_sections(const bm_importer_ops *importer, bm_section *out);

/*
 * Reads and checks everything: all faults at once. `path` may be NULL. ranks:
 * for [job] workers, where it is not set.
 */
BM_CHECKED bm_status bm_settings_read(const bm_arguments *a, const char *path,
                                      long ranks, bm_config **config,
                                      bm_settings *out);

/* What was left to the machine, as it came out: a run keeps that. */
BM_CHECKED bm_status bm_settings_decide(bm_settings *s, bm_config *config,
                                        const char *device,
                                        const char *precision);

/* No rank is without a worker. */
BM_CHECKED bm_status bm_settings_fit(const bm_settings *s, long ranks);

#endif
