/*
 * settings.h - all settings of a training run: the sections, in the order of
 * docs/options.md, and their values.
 */
#ifndef BM_CLI_SETTINGS_H
#define BM_CLI_SETTINGS_H

#include "bmuf/async/virtual_clock.h"
#include "bmuf/block_settings.h"
#include "bmuf/filter.h"
#include "bmuf/trainer/trainer.h"
#include "cli/arguments.h"
#include "io/augment/augment_settings.h"
#include "io/import/importer.h"
#include "models/model.h"
#include "sgd/schedule.h"

/* [data] */
typedef struct bm_data_settings {
    const char *train, *dev, *test; /* directories of shards; "": none */
} bm_data_settings;
extern const bm_option bm_data_options[];

typedef struct bm_settings {
    bm_data_settings data;
    bm_model_settings model;
    bm_train_settings train;
    bm_job job;
    bm_plan_settings plan;
    bm_augment_settings augment;
    bm_block_settings block; /* as given: no default size, as in plan */
    bm_sgd_settings sgd;
    bm_schedule_settings schedule;
    bm_filter filter; /* at the start, derived from the strategy's own settings:
                         see bm_settings_filter */
    bool filtered;    /* the strategy has a filter */
    bm_server_policy server_policy; /* derived likewise; {0}: no server */
    bm_clock_settings clock;
    bm_code code; /* of the vectors that are exchanged; ops NULL: none */
    const bm_config *config; /* borrowed */
} bm_settings;

/* The sections of a training configuration, ended by {0}; static, not for use
 * by several threads at a time. */
const bm_section *bm_train_sections(void);

/* The sections of `bmuf pack` with one importer: out [4], ended by {0}. */
void bm_pack_sections(const bm_importer_ops *importer, bm_section *out);

/*
 * Reads the file `path`, or that of the run `path` (may be NULL), and every --set,
 * checks all settings and fills *out, which borrows texts of *config. Free *config
 * with bm_config_free. Fails with BM_ERR_CONFIG and a message that lists all
 * invalid settings, with BM_ERR_MISSING or BM_ERR_IO if the file cannot be
 * read, with BM_ERR_ARG if a --set has no key or value.
 */
BM_CHECKED bm_status bm_settings_read(const bm_arguments *a, const char *path,
                                      bm_config **config, bm_settings *out);

/* The same with more settings, each "section.key=value", which count like a
 * --set after the others; the list ends with NULL. */
BM_CHECKED bm_status bm_settings_read_with(const bm_arguments *a,
                                           const char *path,
                                           const char *const *more,
                                           bm_config **config,
                                           bm_settings *out);

/* Passes on what making the network of the settings returned. A message about
 * model.net, whose sizes the data decide, begins with where it was set, as those
 * of bm_settings_read do. */
bm_status bm_settings_locate_net(const bm_settings *s, bm_status status);

/* Writes all settings to a file, durably. Fails as bm_file_write. */
BM_CHECKED bm_status bm_settings_write(const bm_config *config,
                                       const char *path);

/* Replaces `auto` of job.device and job.precision by what the run uses, also in
 * the configuration that the run keeps. Fails with BM_ERR_CONFIG if other
 * settings exclude the device. */
BM_CHECKED bm_status bm_settings_resolve(bm_settings *s, bm_config *config,
                                         const char *device,
                                         const char *precision);

/* Fails with BM_ERR_CONFIG if buckets of [ssgd] do not suit the device. They apply
 * to strategy ssgd and to block.warmup, which uses it. */
BM_CHECKED bm_status bm_settings_check_buckets(const bm_config *config,
                                               const bm_job *job);

/* Fails with BM_ERR_CONFIG if there are more ranks than workers, or several
 * ranks and job.workers is not set. */
BM_CHECKED bm_status bm_settings_fit(const bm_config *config,
                                     const bm_settings *s, long ranks);

/* The filter with so many workers, at a time, and with a block's size, on which eta
 * depends under bmuf.time_constant. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_settings_filter(const bm_settings *s, int workers,
                                        double epochs, double block_frames,
                                        bm_filter *out);

/* Opens data.train, with units that are small enough for the workers
 * (bm_plan_fit). Fails as bm_dataset_open does. */
BM_CHECKED bm_status bm_settings_open_data(const bm_settings *s,
                                           bm_dataset **out);

/* The epochs of a run on this training set: train.epochs or, if that is 0, 30,
 * and up to 100 for a set so small that 30 have fewer than 3000
 * mini-batches. */
long bm_settings_epochs(const bm_settings *s, const bm_dataset *train);

#endif
