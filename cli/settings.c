#include "cli/settings.h"

#include "core/file/file.h"
#include "core/file/path.h"
#include "core/file/search_folder.h"
#include "io/batch/batch_settings.h"
#include "io/model/model_file.h"
#include "recognise/recogniser.h"
#include "sgd/update.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static bm_status fill(const bm_config *config, bm_settings *s)
{
    bm_traits traits = {0};

    BM_TRY(bm_config_check(config, bm_train_sections()));
    BM_TRY(bm_config_fill(config, "data", bm_data_options, &s->data));
    BM_TRY(bm_config_fill(config, "model", bm_model_options, &s->model));
    BM_TRY(bm_config_fill(config, "train", bm_train_options, &s->train));
    BM_TRY(bm_config_fill(config, "job", bm_job_options, &s->job));
    BM_TRY(bm_config_fill(config, "sgd", bm_sgd_options, &s->sgd));
    BM_TRY(
        bm_config_fill(config, "schedule", bm_schedule_options, &s->schedule));
    BM_TRY(bm_config_fill(config, "clock", bm_clock_options, &s->clock));
    BM_TRY(bm_plan_read(config, &s->plan));
    s->plan.workers = (int)s->job.workers;
    BM_TRY(bm_config_fill(config, "augment", bm_augment_options, &s->augment));
    BM_TRY(bm_config_fill(config, "block", bm_block_options, &s->block));
    BM_TRY(bm_strategy_resolve(bm_strategy_find(s->train.strategy), config,
                               (int)s->job.workers, &traits));
    s->filter = traits.filter;
    s->filtered = traits.filtered;
    s->server_policy = traits.server_policy;
    s->code = traits.code;
    s->config = config;
    return BM_OK;
}

bm_status bm_settings_filter(const bm_settings *s, int workers, double epochs,
                             double block_frames, bm_filter *out)
{
    bm_run_point at = {workers, epochs,
                       block_frames * (double)s->block.fragments};
    bm_traits traits = {0};

    BM_TRY(bm_strategy_resolve_at(bm_strategy_find(s->train.strategy),
                                  s->config, &at, &traits));
    *out = traits.filter;
    return BM_OK;
}

bm_status bm_settings_locate_net(const bm_settings *s, bm_status status)
{
    static const char setting[] = "model.net: ";
    char *message = NULL;

    if (status != BM_ERR_CONFIG ||
        strncmp(bm_last_message(), setting, strlen(setting)) != 0)
        return status;
    message = strdup(bm_last_message());
    if (message != NULL)
        status = BM_FAIL(status, "%s: %s",
                         bm_config_origin(s->config, "model", "net"), message);
    free(message);
    return status;
}

/* Sets a setting that was not given, or is 0, to a derived value, so that the
 * run's config.ini has it. */
static bm_status set_derived(bm_config *config, const char *name, long value)
{
    char text[24], section[16] = "";
    size_t n = strcspn(name, ".");
    const char *given = NULL;

    memcpy(section, name, n);
    given = bm_config_text(config, section, name + n + 1);
    if (value == 0 || (given != NULL && strcmp(given, "0") != 0))
        return BM_OK;
    snprintf(text, sizeof text, "%ld", value);
    return bm_config_derive(config, section, name + n + 1, text);
}

/* Sets "section.key=value" where the setting was not given. */
static bm_status set_default(bm_config *config, const char *assignment)
{
    char section[16] = "", key[32] = "";
    size_t dot = strcspn(assignment, "."), end = strcspn(assignment, "=");

    BM_ASSERT(dot < sizeof section && end - dot <= sizeof key);
    memcpy(section, assignment, dot);
    memcpy(key, assignment + dot + 1, end - dot - 1);
    if (bm_config_text(config, section, key) != NULL)
        return BM_OK;
    return bm_config_derive(config, section, key, assignment + end + 1);
}

/* Does the configuration say how long a block is? */
static bool has_block_size(const bm_config *config)
{
    bm_block_settings block = {0};

    bm_config_peek(config, "block", bm_block_options, &block);
    return block.frames_per_worker.value[0] > 0 ||
           block.frames_total.value[0] > 0 || block.steps.value[0] > 0;
}

/* `usual`: up to NULL; may be NULL. */
static bm_status set_defaults(bm_config *config, const char *const *usual)
{
    for (; usual != NULL && *usual != NULL; usual++)
        BM_TRY(set_default(config, *usual));
    return BM_OK;
}

/* More workers than a few, N: short blocks, as models of many workers drift
 * apart, and a single momentum, that of the blocks. An update of several
 * mini-batches counts as one, as it does not go beyond the end of a block. */
static bm_status set_for_many(bm_config *config, const bm_strategy_ops *ops,
                              long workers)
{
    bm_sgd_settings sgd = {0};
    bm_plan_settings batch = {0};
    bool many = workers > BM_FEW_WORKERS && ops->per == BM_BLOCK;
    double updates = 20;

    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    if (many && ops->settings.one_momentum &&
        bm_update_of(&sgd) == &bm_update_momentum)
        BM_TRY(set_default(config, "sgd.momentum=0"));
    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    if (bm_batch_read(config, &batch) != BM_OK)
        return BM_OK; /* reported later, with all other faults */
    if (has_block_size(config) || (!many && batch.accumulate <= 1))
        return BM_OK;
    if (many)
        updates *= (double)BM_FEW_WORKERS / (double)workers;
    if (many && bm_sgd_local_state(&sgd) == BM_LOCAL_RESET)
        updates = fmax(updates, 1 / (1 - sgd.momentum));
    return set_derived(config, "block.steps",
                       (long)fmax(round(updates), 5) * batch.accumulate);
}

/*
 * Defaults that follow from other settings: what the strategy's publication
 * uses, and what is usual with the update; the momentum of one worker, whose
 * model no exchange replaces; those of many workers; the rate without momentum,
 * half of what makes steps as long as 0.02 with 0.9.
 */
static bm_status set_usual(bm_config *config)
{
    bm_train_settings train = {0};
    bm_sgd_settings sgd = {0};
    bm_job job = {0};
    const bm_strategy_ops *ops = NULL;

    bm_config_peek(config, "train", bm_train_options, &train);
    ops = bm_strategy_find(train.strategy);
    BM_TRY(set_defaults(config, ops->settings.presets));
    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    BM_TRY(set_defaults(config, bm_update_of(&sgd)->presets));
    bm_config_peek(config, "job", bm_job_options, &job);
    if (job.workers == 1 && ops->per == BM_BLOCK)
        BM_TRY(set_default(config, "sgd.local_state=keep"));
    BM_TRY(set_for_many(config, ops, job.workers));
    bm_config_peek(config, "sgd", bm_sgd_options, &sgd);
    if (bm_update_of(&sgd) == &bm_update_momentum && sgd.momentum == 0)
        BM_TRY(set_default(config, "train.rate=0.1"));
    return BM_OK;
}

/* ---- the network of train.init ------------------------------------------ */

/* The network of a model, or of the best model of a run; free(*net). */
static bm_status net_of_model(const char *init, char **net)
{
    char path[4200];
    bm_st_file *f = NULL;
    bool checkpoint = false;
    bm_status status = BM_OK;

    BM_TRY(bm_recogniser_find(init, path, sizeof path));
    BM_TRY(bm_model_open(&f, path, &checkpoint));
    status = bm_model_text(f, path, "net", net);
    bm_st_free(f);
    return status;
}

/* Derives model.net from the config.ini of a run; *own: it began with `init`. */
static bm_status take_net_of_run(bm_config *config, const char *path,
                                 const char *init, bool *own)
{
    bm_config *then = NULL;
    const char *net = NULL, *began = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_config_new(&then));
    BM_TRY_DONE(bm_config_read(then, path));
    net = bm_config_text(then, "model", "net");
    began = bm_config_text(then, "train", "init");
    *own = net != NULL && began != NULL && strcmp(began, init) == 0;
    if (*own)
        status = bm_config_derive(config, "model", "net", net);
done:
    bm_config_free(then);
    return status;
}

/* path <- config.ini of the run that --out names; false: there is none. */
static bool find_own(const bm_arguments *a, char path[PATH_MAX])
{
    const char *run = bm_argument(a, "out");

    return bm_path_join(path, run != NULL ? run : "run", "config.ini") ==
               BM_OK &&
           access(path, F_OK) == 0;
}

/* Without model.net the network is that of train.init. A run that goes on does
 * not need this model any more: it has its network in config.ini. */
static bm_status set_net(const bm_arguments *a, bm_config *config)
{
    bm_train_settings train = {0};
    char run[PATH_MAX], *net = NULL;
    bool own = false;
    bm_status status = BM_OK;

    bm_config_peek(config, "train", bm_train_options, &train);
    if (bm_config_text(config, "model", "net") != NULL || train.init[0] == '\0')
        return BM_OK;
    status = net_of_model(train.init, &net);
    if (status == BM_OK)
        status = bm_config_derive(config, "model", "net", net);
    else if (status == BM_ERR_MISSING && find_own(a, run))
        BM_TRY(take_net_of_run(config, run, train.init, &own));
    if (own)
        status = BM_OK;
    free(net);
    return status;
}

/* ---- reading ------------------------------------------------------------- */

/* --from RUN is short for --set train.from=RUN. */
static bm_status set_from(const bm_arguments *a, bm_config *config)
{
    const char *run = bm_argument(a, "from");
    char text[4200];

    if (run == NULL)
        return BM_OK;
    snprintf(text, sizeof text, "train.from=%s", run);
    return bm_config_set(config, text);
}

/* `path` is a configuration, or a run, which has one. */
static bm_status read_file(bm_config *config, const char *path)
{
    char own[PATH_MAX];

    BM_TRY(bm_search_folder_refuse(path));
    BM_TRY(bm_path_join(own, path, "config.ini"));
    if (access(own, F_OK) == 0)
        return bm_config_read(config, own);
    if (bm_is_folder(path))
        return BM_FAIL(BM_ERR_MISSING,
                       "%s is a folder without config.ini, so it is not a run; "
                       "give a configuration or a run",
                       path);
    return bm_config_read(config, path);
}

bm_status bm_settings_read_with(const bm_arguments *a, const char *path,
                                const char *const *more, bm_config **config,
                                bm_settings *out)
{
    bm_config *c = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_config_new(&c));
    if (path != NULL)
        BM_TRY_DONE(read_file(c, path));
    BM_TRY_DONE(bm_arguments_set(a, c));
    for (; *more != NULL; more++)
        BM_TRY_DONE(bm_config_set(c, *more));
    BM_TRY_DONE(set_from(a, c));
    BM_TRY_DONE(set_net(a, c));
    BM_TRY_DONE(set_usual(c));
    BM_TRY_DONE(fill(c, out));
    BM_TRY_DONE(set_derived(c, "block.steps", out->plan.steps));
    *config = c;
    c = NULL;
done:
    bm_config_free(c);
    return status;
}

bm_status bm_settings_read(const bm_arguments *a, const char *path,
                           bm_config **config, bm_settings *out)
{
    const char *const none[] = {NULL};

    return bm_settings_read_with(a, path, none, config, out);
}

bm_status bm_settings_write(const bm_config *config, const char *path)
{
    bm_file_replacement r;
    bm_status status = BM_OK;

    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    BM_TRY_DONE(bm_config_write(config, bm_train_sections(), r.stream));
    status = bm_file_replace_commit(&r, true);
done:
    bm_file_replace_abort(&r);
    return status;
}

bm_status bm_settings_resolve(bm_settings *s, bm_config *config,
                              const char *device, const char *precision)
{
    char text[80];

    snprintf(text, sizeof text, "job.device=%s", device);
    BM_TRY(bm_config_set(config, text));
    snprintf(text, sizeof text, "job.precision=%s", precision);
    BM_TRY(bm_config_set(config, text));
    s->job.device = device;
    s->job.precision = precision;
    return bm_settings_check_buckets(config, &s->job);
}

bm_status bm_settings_fit(const bm_config *config, const bm_settings *s,
                          long ranks)
{
    if (ranks > 1 && bm_config_text(config, "job", "workers") == NULL)
        return BM_FAIL(BM_ERR_CONFIG,
                       "job.workers is not set, and there are %ld ranks. The "
                       "result depends on the number of workers, never on that "
                       "of ranks; for one worker a rank add to the "
                       "configuration:\n  [job]\n  workers = %ld",
                       ranks, ranks);
    if (ranks > s->job.workers)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%ld ranks, but job.workers = %ld: every rank needs a "
                       "worker; start fewer ranks, or increase job.workers",
                       ranks, s->job.workers);
    return BM_OK;
}

bm_status bm_settings_open_data(const bm_settings *s, bm_dataset **out)
{
    bm_dataset *d = NULL;
    bm_status status = BM_OK;

    BM_TRY(bm_dataset_open(&d, s->data.train));
    status = bm_plan_fit(&s->plan, d, (int)s->job.workers);
    if (status == BM_OK)
        *out = d;
    else
        bm_dataset_close(d);
    return status;
}

long bm_settings_epochs(const bm_settings *s, const bm_dataset *train)
{
    bm_plan_settings sized = bm_plan_sized(&s->plan, train);
    double batches = sized.frames > 0
                         ? (double)train->frames / (double)sized.frames
                         : (double)train->n / (double)sized.sequences;

    if (s->train.epochs > 0)
        return s->train.epochs;
    return (long)fmin(fmax(30, ceil(3000 / fmax(batches, 1))), 100);
}
