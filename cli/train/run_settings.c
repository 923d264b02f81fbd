/* run_settings.c - whether a run goes on with the settings that it began with, and
 * all ranks have the same ones. */
#define _GNU_SOURCE /* gethostname, open_memstream */
#include "cli/train/run.h"
#include "core/text/shell_word.h"
#include "core/text/words.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* [tune] is none of this run's. The data may lie elsewhere: a checkpoint knows
 * their contents. */
static bool may_change(const char *section, const char *key)
{
    char name[100];

    snprintf(name, sizeof name, "%s.%s", section, key);
    return strcmp(section, "tune") == 0 ||
           bm_is_word_of(name, "train.epochs train.keep train.keep_every "
                               "train.keep_best train.checkpoint_every "
                               "train.checkpoint_copies data.train data.dev "
                               "data.test job.threads "
                               "job.bind job.exchange job.trace job.metrics "
                               "job.tensorboard job.audit job.start_limit "
                               "job.hang_limit job.hang_factor");
}

/* bm_run_check compares before the device and precision are resolved. */
static bool is_unresolved(const bm_option *o, const char *value)
{
    return o->type == BM_CHOICE && strcmp(value, "auto") == 0;
}

/* Runs of old versions have no settings for the device: it was the CPU. */
static bm_status add_device(bm_config *then)
{
    if (bm_config_text(then, "job", "device") == NULL)
        BM_TRY(bm_config_set(then, "job.device=cpu"));
    if (bm_config_text(then, "job", "precision") == NULL)
        BM_TRY(bm_config_set(then, "job.precision=fp32"));
    return BM_OK;
}

/* cosine and onecycle end at the last epoch: with another one, the resumed run
 * differs from one that had it from the start. */
static void warn_of_change(const bm_config *now, const char *section,
                           const char *key, const char *was, const char *is)
{
    bm_schedule_settings schedule = {0};

    bm_config_peek(now, "schedule", bm_schedule_options, &schedule);
    if (strcmp(section, "train") == 0 && strcmp(key, "epochs") == 0 &&
        bm_schedule_spans_run(&schedule))
        bm_log(BM_WARNING,
               "train.epochs was %s, now %s: the learning rate jumps to the "
               "%s of the new length; train from scratch for the model of a "
               "run that had this length from the start",
               strcmp(was, "0") == 0 ? "not set" : was,
               strcmp(is, "0") == 0 ? "not set" : is, schedule.kind);
}

typedef struct comparison {
    const bm_config *now;
    bool warns; /* of changes that are allowed */
    char list[2048];
    int differing;
} comparison;

static void take(void *self, const char *section, const bm_option *o,
                 const char *was, const char *is)
{
    comparison *c = self;

    if (is_unresolved(o, is))
        return;
    if (may_change(section, o->key)) {
        if (c->warns)
            warn_of_change(c->now, section, o->key, was, is);
        return;
    }
    c->differing++;
    snprintf(c->list + strlen(c->list), sizeof c->list - strlen(c->list),
             "\n  %s.%s: was %s, now %s%s", section, o->key,
             was[0] != '\0' ? was : "(none)", is[0] != '\0' ? is : "(none)",
             strcmp(bm_config_origin(c->now, section, o->key), "default") == 0
                 ? ", the default"
                 : "");
}

/* The settings in which `then`, which is changed, differs from now. */
static bm_status compare(bm_config *then, const bm_config *now, bool warns,
                         comparison *c)
{
    *c = (comparison){.now = now, .warns = warns};
    BM_TRY(add_device(then));
    bm_config_compare(then, now, bm_train_sections(), take, c);
    return BM_OK;
}

bm_status bm_run_compare(const bm_run *run, const bm_config *now)
{
    comparison c;
    bm_config *then = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_config_new(&then));
    BM_TRY_DONE(bm_config_read(then, run->config_path));
    BM_TRY_DONE(compare(then, now, true, &c));
    if (c.differing > 0)
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "%s was started with other settings:%s\nGive another "
                     "--out, or use the settings in %s, or go on with the new "
                     "settings: --from %s --out NEW",
                     run->directory, c.list, run->config_path,
                     bm_shell_word(run->directory).text);
done:
    bm_config_free(then);
    return status;
}

bm_status bm_run_compare_text(const bm_config *now, const char *path,
                              const char *text)
{
    comparison c;
    bm_config *then = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_config_new(&then));
    BM_TRY_DONE(bm_config_read_text(then, path, text));
    BM_TRY_DONE(compare(then, now, false, &c));
    if (c.differing > 0)
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "%s is of another run, with other settings:%s", path,
                     c.list);
done:
    bm_config_free(then);
    return status;
}

bm_status bm_run_settings_text(const bm_config *config, char **text)
{
    size_t size = 0;
    FILE *memory = open_memstream(text, &size);
    bm_status status = BM_OK;

    if (memory == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a configuration");
    status = bm_config_write(config, bm_train_sections(), memory);
    if (fclose(memory) != 0 && status == BM_OK)
        status = BM_FAIL(BM_ERR_MEMORY, "no memory for a configuration");
    return status;
}

/* Files may lie elsewhere on each host: bm_same_contents compares what they hold. */
static void take_of_rank(void *self, const char *section, const bm_option *o,
                         const char *first, const char *own)
{
    comparison *c = self;
    char name[100];

    snprintf(name, sizeof name, "%s.%s", section, o->key);
    if (strcmp(section, "tune") == 0 ||
        bm_is_word_of(name,
                      "data.train data.dev data.test train.init train.from "
                      "augment.noise_sound augment.reverb job.threads"))
        return;
    c->differing++;
    snprintf(c->list + strlen(c->list), sizeof c->list - strlen(c->list),
             "\n  %s: %s on rank 0, %s here", name,
             first[0] != '\0' ? first : "(none)",
             own[0] != '\0' ? own : "(none)");
}

static bm_status compare_with_first(const bm_config *config, const char *text,
                                    int rank)
{
    comparison c = {.now = config};
    char host[64] = "";
    bm_config *first = NULL;
    bm_status status = BM_OK;

    (void)gethostname(host, sizeof host - 1);
    BM_TRY_DONE(bm_config_new(&first));
    BM_TRY_DONE(bm_config_read_text(first, "the settings of rank 0", text));
    bm_config_compare(first, config, bm_train_sections(), take_of_rank, &c);
    if (c.differing > 0)
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "rank %d (host %s) was started with other settings than "
                     "rank 0:%s\nStart all ranks with the same configuration "
                     "file and the same options",
                     rank, host, c.list);
done:
    bm_config_free(first);
    return status;
}

bm_status bm_run_same_settings(bm_comm *comm, const bm_config *config)
{
    char *text = NULL;
    uint64_t size = 0;
    int rank = bm_comm_rank(comm);
    bm_status status = BM_OK;

    if (bm_comm_size(comm) == 1)
        return BM_OK;
    if (rank == 0) {
        status = bm_run_settings_text(config, &text);
        size = status == BM_OK ? strlen(text) + 1 : 0;
    }
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(bm_comm_broadcast_bytes(comm, &size, sizeof size, 0));
    if (rank != 0) {
        text = malloc(size);
        if (text == NULL)
            status = BM_FAIL(BM_ERR_MEMORY, "no memory for a configuration");
    }
    BM_TRY_DONE(bm_comm_agree(comm, status));
    BM_TRY_DONE(bm_comm_broadcast_bytes(comm, text, size, 0));
    if (rank != 0)
        status = compare_with_first(config, text, rank);
    status = bm_comm_agree(comm, status);
done:
    free(text);
    return status;
}
