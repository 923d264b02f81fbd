/* sections.c - the sections of configurations, and what is checked beyond a
 * single setting. */
#include "bmuf/async/server_shards.h"
#include "bmuf/compress_check.h"
#include "bmuf/exchange/bucketed.h"
#include "bmuf/exchange/compress.h"
#include "cli/habits.h"
#include "cli/settings.h"
#include "cli/train/tracing.h"
#include "cli/tune/tune_settings.h"
#include "io/batch/batch_settings.h"
#include "sgd/update.h"

#include <string.h>

#define BM_ONE(name) 1 +

const bm_option bm_data_options[] = {
    {"train", BM_TEXT, offsetof(bm_data_settings, train), NULL, 0, 0, "FOLDER",
     "directory of training shards, written by bmuf pack"},
    {"dev", BM_TEXT, offsetof(bm_data_settings, dev), "", 0, 0, "FOLDER",
     "directory of shards to evaluate after every epoch"},
    {"test", BM_TEXT, offsetof(bm_data_settings, test), "", 0, 0, "FOLDER",
     "directory of shards to evaluate at the end"},
    {0},
};

bm_status bm_settings_check_buckets(const bm_config *config, const bm_job *job)
{
    bm_train_settings train = {0};
    bm_block_settings block = {0};
    bm_bucketed_settings bucketed = {0};

    bm_config_peek(config, "train", bm_train_options, &train);
    bm_config_peek(config, "block", bm_block_options, &block);
    if (strcmp(train.strategy, "ssgd") != 0 && block.warmup == 0)
        return BM_OK;
    bm_config_peek(config, "ssgd", bm_strategy_ssgd.settings.options,
                   &bucketed);
    return bm_bucketed_check(&bucketed, job);
}

/* The first setting of a strategy that changes; NULL: none does. */
static const char *changing(const bm_config *config, const char *section,
                            const bm_option *options)
{
    for (; options != NULL && options->key != NULL; options++) {
        const char *text = bm_config_text(config, section, options->key);
        bm_series s;

        if (options->type == BM_SERIES && text != NULL &&
            bm_series_read(text, true, &s) && bm_series_changes(&s))
            return options->key;
    }
    return NULL;
}

/* The start models of fragments are made at different times, with one eta. */
static void check_steady(const bm_config *config, bm_faults *faults,
                         const bm_strategy_ops *ops, const char *late)
{
    const char *section = ops->name;
    const char *key = changing(config, section, ops->settings.options);

    if (key == NULL && ops == &bm_strategy_bmuf &&
        bm_config_changed(config, section, ops->settings.options,
                          "time_constant")) {
        section = "block";
        key = changing(config, section, bm_block_sizes);
    }
    if (key != NULL)
        bm_config_fault(faults, config, section, key,
                        "%s.%s changes in the course of training, which "
                        "block.%s does not support; give one value",
                        section, key, late);
}

/* Settings of [block] that the strategy does not support. */
static void check_blocks(const bm_config *config, bm_faults *faults,
                         const bm_strategy_ops *ops)
{
    bm_block_settings block = {0};
    bm_job job = {0};
    bm_traits traits = {0};
    const char *late = NULL;

    bm_config_peek(config, "block", bm_block_options, &block);
    bm_config_peek(config, "job", bm_job_options, &job);
    late = block.overlap ? "overlap" : "fragments";
    if (ops->per == BM_STEP && block.warmup > 0 &&
        bm_strategy_resolve(ops, config, (int)job.workers, &traits) == BM_OK &&
        traits.code.ops == NULL)
        bm_config_fault(faults, config, "block", "warmup",
                        "block.warmup = %ld has no effect: train.strategy = %s "
                        "averages gradients at every step anyway; remove it",
                        block.warmup, ops->name);
    if (ops->per != BM_BLOCK && bm_fragments_wanted(&block))
        bm_config_fault(
            faults, config, "block", late,
            "block.%s needs a strategy that exchanges models at "
            "block ends, which train.strategy = %s does not; remove "
            "it",
            late, ops->name);
    if (bm_fragments_wanted(&block))
        check_steady(config, faults, ops, late);
    if (bm_fragments_wanted(&block) && block.workers.value[0] > 0)
        bm_config_fault(faults, config, "block", "workers",
                        "block.workers = %s: with block.%s all workers take "
                        "part in each block; remove one of the two",
                        bm_config_text(config, "block", "workers"), late);
    if (ops->per == BM_STEP && block.seconds > 0)
        bm_config_fault(faults, config, "block", "seconds",
                        "block.seconds = %g: with train.strategy = %s all "
                        "ranks exchange at every step, so none can stop early; "
                        "remove it",
                        block.seconds, ops->name);
    if (ops->per == BM_EVENT && block.seconds > 0)
        bm_config_fault(faults, config, "block", "seconds",
                        "block.seconds = %g: with train.strategy = %s workers "
                        "do not wait for each other within a block; remove it",
                        block.seconds, ops->name);
}

/* Why sgd.local_state = average or extrapolate is invalid; NULL: valid. */
static const char *invalid_local_state(const bm_config *config,
                                       const bm_strategy_ops *ops,
                                       bm_local_policy local, bool filtered)
{
    bm_block_settings block = {0};

    bm_config_peek(config, "block", bm_block_options, &block);
    if (ops->per == BM_STEP)
        return "has no effect, as all workers use one momentum; remove it";
    if (ops->per == BM_EVENT)
        return "needs a strategy that exchanges models at block ends; remove "
               "it";
    if (bm_fragments_wanted(&block))
        return "needs the whole model exchanged at the block's end, but "
               "block.fragments and block.overlap exchange it otherwise; set "
               "it to keep or reset";
    if (local == BM_LOCAL_EXTRAPOLATE && !filtered)
        return "needs a strategy with a filter; set it to average, or set "
               "train.strategy = bmuf";
    return NULL;
}

static void check_scaling(const bm_config *config, bm_faults *faults,
                          const bm_strategy_ops *ops,
                          const bm_server_policy *server_policy)
{
    bm_sgd_settings sgd = {0};

    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    if (server_policy->push == BM_GRADIENT && server_policy->scaled &&
        bm_update_of(&sgd)->unscaled)
        bm_config_fault(faults, config, ops->name, "scaling",
                        "%s.scaling scales gradients, which has no effect with "
                        "sgd.update = %s; remove one of them",
                        ops->name, sgd.update);
}

/* A server in several shards where it needs the whole model. */
static void check_shards(const bm_config *config, bm_faults *faults,
                         const bm_strategy_ops *ops,
                         const bm_server_policy *server_policy)
{
    bm_clock_settings clock = {0};
    bm_sgd_settings sgd = {0};
    const char *why = NULL;

    bm_config_peek(config, "clock", bm_clock_options, &clock);
    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    why = bm_server_shards_whole(server_policy, &sgd);
    if (clock.shards > 1 && bm_clock_is_real(&clock) && why != NULL)
        bm_config_fault(faults, config, "clock", "shards",
                        "clock.shards = %ld with train.strategy = %s: %s; "
                        "remove it",
                        clock.shards, ops->name, why);
}

static void check_origin(const bm_config *config, bm_faults *faults)
{
    bm_train_settings train = {0};

    bm_config_peek(config, "train", bm_train_options, &train);
    if (train.init[0] != '\0' && train.from[0] != '\0')
        bm_config_fault(faults, config, "train", "init",
                        "train.init = %s and train.from = %s: a run starts "
                        "from one of them; leave one out",
                        train.init, train.from);
}

static void check_train(const bm_config *config, bm_faults *faults)
{
    bm_train_settings train = {0};
    bm_sgd_settings sgd = {0};
    bm_job job = {0};
    const bm_strategy_ops *ops = NULL;
    bm_traits traits = {0};
    bool resolved = false; /* else the check of its section reports it */
    bm_local_policy local = BM_LOCAL_RESET;
    const char *why = NULL;

    bm_config_peek(config, "train", bm_train_options, &train);
    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    bm_config_peek(config, "job", bm_job_options, &job);
    ops = bm_strategy_find(train.strategy);
    local = bm_sgd_local_state(&sgd);
    if (strcmp(train.strategy, "local") == 0 && job.workers > 1)
        bm_config_fault(faults, config, "train", "strategy",
                        "train.strategy = local needs one worker, not %ld; set "
                        "job.workers = 1, or strategy ssgd, average or bmuf",
                        job.workers);
    resolved =
        bm_strategy_resolve(ops, config, (int)job.workers, &traits) == BM_OK;
    check_blocks(config, faults, ops);
    check_scaling(config, faults, ops, &traits.server_policy);
    check_shards(config, faults, ops, &traits.server_policy);
    if (bm_settings_check_buckets(config, &job) != BM_OK)
        bm_config_fault(faults, config, "ssgd", "overlap", "%s",
                        bm_last_message());
    if (local == BM_LOCAL_AVERAGE || local == BM_LOCAL_EXTRAPOLATE)
        why = invalid_local_state(config, ops, local,
                                  traits.filtered || !resolved);
    if (why != NULL)
        bm_config_fault(faults, config, "sgd", "local_state",
                        "sgd.local_state = %s with train.strategy = %s %s",
                        sgd.local_state, train.strategy, why);
    check_origin(config, faults);
}

static void check_job(const bm_config *config, bm_faults *faults)
{
    bm_job job = {0};
    bm_trace_window window = {0};

    bm_job_check(config, faults);
    bm_config_peek(config, "job", bm_job_options, &job);
    if (!bm_trace_window_read(job.trace, &window))
        bm_config_fault(faults, config, "job", "trace",
                        "job.trace = %s is invalid; it is \"blocks A:B\" with "
                        "0 <= A < B",
                        job.trace);
}

static void check_schedule(const bm_config *config, bm_faults *faults)
{
    bm_schedule_settings schedule = {0};
    bm_data_settings data = {0};

    bm_config_peek(config, "schedule", bm_schedule_options, &schedule);
    bm_config_peek(config, "data", bm_data_options, &data);
    if (strcmp(schedule.kind, "newbob") == 0 && data.dev[0] == '\0')
        bm_config_fault(faults, config, "schedule", "kind",
                        "schedule.kind = newbob needs data.dev, which is not "
                        "set; set it, or leave schedule.kind out");
    if (schedule.stop_after > 0 && data.dev[0] == '\0')
        bm_config_fault(faults, config, "schedule", "stop_after",
                        "schedule.stop_after = %ld needs data.dev, which is "
                        "not set; set it, or leave schedule.stop_after out",
                        schedule.stop_after);
    if (strcmp(schedule.kind, "noam") == 0 && schedule.warmup == 0)
        bm_config_fault(faults, config, "schedule", "kind",
                        "schedule.kind = noam needs schedule.warmup, the "
                        "epochs until its peak; set it, for example to a tenth "
                        "of train.epochs");
}

static void check_compress(const bm_config *config, bm_faults *faults)
{
    bm_train_settings train = {0};
    bm_compress set = {0};

    bm_config_peek(config, "train", bm_train_options, &train);
    bm_config_peek(config, "compress", bm_compress_options, &set);
    if (strcmp(set.code, "onebit") == 0 && train.freeze[0] != '\0')
        bm_config_fault(faults, config, "compress", "code",
                        "compress.code = onebit moves all weights, since one "
                        "bit cannot be 0, but train.freeze = %s; take another "
                        "code",
                        train.freeze);
    if (bm_compress_check(config, bm_strategy_find(train.strategy)) != BM_OK)
        bm_config_fault(faults, config, "compress", "code", "%s",
                        bm_last_message());
}

static const bm_section train_sections[] = {
    {"data", bm_data_options, NULL, bm_habit_words},
    {"model", bm_model_options, bm_model_check, bm_habit_words},
    {"train", bm_train_options, check_train, bm_habit_words},
    {"job", bm_job_options, check_job, bm_habit_words},
    {"batch", bm_batch_options, bm_batch_check, bm_habit_words},
    {"augment", bm_augment_options, bm_augment_check, bm_habit_words},
    {"block", bm_block_options, bm_block_check, bm_habit_words},
    {"compress", bm_compress_options, check_compress, bm_habit_words},
    {"sgd", bm_sgd_options, bm_sgd_check, bm_habit_words},
    {"schedule", bm_schedule_options, check_schedule, bm_habit_words},
    {"clock", bm_clock_options, bm_clock_check, bm_habit_words},
    {"tune", bm_tune_options, NULL, bm_habit_words},
};

enum { N_SECTIONS = sizeof train_sections / sizeof train_sections[0] };

/* After these, a section for each strategy that has settings of its own. */
const bm_section *bm_train_sections(void)
{
    static bm_section all[N_SECTIONS + BM_STRATEGIES(BM_ONE) 1];
    const bm_strategy_ops *const *strategies = bm_strategy_list();
    size_t n = N_SECTIONS;

    memcpy(all, train_sections, sizeof train_sections);
    for (; *strategies != NULL; strategies++)
        if ((*strategies)->settings.options != NULL)
            all[n++] = (bm_section){
                (*strategies)->name, (*strategies)->settings.options,
                (*strategies)->settings.check, bm_habit_words};
    return all;
}

void bm_pack_sections(const bm_importer_ops *importer, bm_section *out)
{
    *out++ = (bm_section){importer->section, importer->options, NULL,
                          bm_habit_words};
    if (importer->recordings)
        *out++ =
            (bm_section){"copies", bm_copies_options, bm_copies_check, NULL};
    *out++ = (bm_section){"shard", bm_shard_options, NULL, NULL};
    *out = (bm_section){0};
}
