/*
 * training_resume.c - continues a run from its newest checkpoint that is whole,
 * and says which blocks are trained again.
 */
#include "cli/report/journal_events.h"
#include "cli/train/numbers.h"
#include "cli/train/training.h"
#include "core/text/shell_word.h"
#include "core/text/words.h"

#include <stdio.h>
#include <string.h>

static void restore(bm_training *t, const bm_checkpoint *c)
{
    t->schedule.state =
        (bm_schedule_state){.factor = c->numbers[BM_NUMBER_FACTOR],
                            .last = c->numbers[BM_NUMBER_LAST],
                            .bad = c->numbers[BM_NUMBER_BAD],
                            .best = c->numbers[BM_NUMBER_BEST],
                            .waited = c->numbers[BM_NUMBER_WAITED]};
    t->epochs = (int64_t)c->numbers[BM_NUMBER_EPOCHS];
    t->blocks = t->saved = (int64_t)c->numbers[BM_NUMBER_BLOCKS];
    t->frames = c->numbers[BM_NUMBER_FRAMES];
    t->seconds = c->numbers[BM_NUMBER_SECONDS];
    t->ended = c->numbers[BM_NUMBER_ENDED] != 0;
}

/* The data have other contents than those of the checkpoint. */
static bm_status refuse_data(const bm_training *t, const char *path)
{
    const char *now = t->set->data.train, *then = NULL;
    bm_config *config = NULL;
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_config_new(&config));
    BM_TRY_DONE(bm_config_read(config, t->run->config_path));
    then = bm_config_text(config, "data", "train");
    if (then != NULL && strcmp(then, now) != 0)
        BM_FAIL_DONE(BM_ERR_CONFIG,
                     "data.train = %s has other data than %s, with which the "
                     "run was begun; give another --out to train on them",
                     now, then);
    BM_FAIL_DONE(BM_ERR_CONFIG,
                 "%s: the training data in %s have changed since; give another "
                 "--out to train on them",
                 path, now);
done:
    bm_config_free(config);
    return status;
}

static bm_status check_manifest(const bm_training *t, const bm_checkpoint *c,
                                const char *path)
{
    if (c->manifest == t->train->hash)
        return BM_OK;
    return refuse_data(t, path);
}

/* Warns if data.dev was another set when the checkpoint was written. */
static void remark_dev(const bm_training *t, const char *path)
{
    const char *then = NULL;
    bm_st_file *f = NULL;

    if (!bm_training_first(t) || bm_st_open(&f, path, false) != BM_OK)
        return;
    then = bm_st_text(f, "dev");
    if (then != NULL && then[0] != '\0' && strcmp(then, t->dev_about) != 0)
        bm_log(BM_WARNING,
               "data.dev: %s has changed since %s: it had %s, now %s; errors "
               "from before and from now on cannot be compared, and the best "
               "model is chosen again",
               t->set->data.dev, path, then, t->dev_about);
    bm_st_free(f);
}

/* ---- work that is done again --------------------------------------------- */

/* The blocks of the journal, as of the last job. */
typedef struct progress {
    double from;    /* blocks in the checkpoint that training resumes from */
    double done;    /* blocks that were done */
    double seconds; /* of those after `from` */
} progress;

static void count_event(void *self, const char *kind, json_t *event)
{
    progress *p = self;

    if (strcmp(kind, "start") == 0) {
        p->done = bm_event_number(event, "blocks");
        p->seconds = 0;
    } else if (strcmp(kind, "block") == 0) {
        p->done++;
        if (p->done > p->from)
            p->seconds += bm_event_number(event, "seconds");
    }
}

/* On rank 0. */
static void log_repeated(const bm_training *t)
{
    progress p = {.from = (double)t->blocks};

    if (bm_journal_events(t->run->directory, count_event, &p) != BM_OK ||
        p.done <= p.from)
        return;
    bm_log(BM_NOTE,
           "repeating %s after block %.0f (%.3g s of training) that no "
           "checkpoint contains",
           bm_count_noun((long long)(p.done - p.from), "block").text, p.from,
           p.seconds);
}

/* ---- loading ------------------------------------------------------------- */

/* On rank 0: the settings in a checkpoint are those of this run. */
static bm_status check_settings(const bm_training *t, const char *path)
{
    const char *text = NULL;
    bm_st_file *f = NULL;
    bm_status status = BM_OK;

    if (!bm_training_first(t))
        return BM_OK;
    BM_TRY(bm_st_open(&f, path, false));
    text = bm_st_text(f, "config");
    status = bm_run_compare_text(t->config, path, text != NULL ? text : "");
    bm_st_free(f);
    return status;
}

/* Collective. Fills the states from one checkpoint; t is unchanged if it
 * fails. */
static bm_status load(bm_training *t, bm_run_checkpoint which, const char *path,
                      bm_checkpoint *c)
{
    BM_TRY(bm_comm_agree(t->comm, check_settings(t, path)));
    BM_TRY(bm_trainer_seek(t->trainer, which.blocks));
    *c = bm_training_describe(t);
    return bm_checkpoint_load(path, t->comm, c);
}

static bm_status resume_from(bm_training *t, const bm_checkpoint *c,
                             const char *path)
{
    BM_TRY(bm_comm_agree(t->comm, check_manifest(t, c, path)));
    restore(t, c);
    remark_dev(t, path);
    bm_log(BM_NOTE, "resuming from %s", path);
    if (bm_training_first(t))
        log_repeated(t);
    return bm_trainer_resume(t->trainer, c->position,
                             (bm_restart_numbers){c->numbers[BM_NUMBER_LOSS],
                                                  c->numbers[BM_NUMBER_CHANCE],
                                                  c->numbers[BM_NUMBER_RATE],
                                                  c->numbers[BM_NUMBER_RHO]});
}

/* Whether a file with this failure may be whole: it could not be read. */
static bool is_unread(bm_status status)
{
    return status == BM_ERR_MISSING || status == BM_ERR_CREATE ||
           status == BM_ERR_IO;
}

/* None of the n checkpoints in the list can be loaded. unread: why the first of
 * those could not be read that are perhaps whole, with message `why`; BM_OK:
 * there are none of these. newest: why the first of the list was not loaded. */
static bm_status none_loaded(const bm_training *t,
                             const bm_run_checkpoint *list, size_t n,
                             bm_status newest, bm_status unread,
                             const char *why)
{
    bool own = false;

    for (size_t i = 0; i < n; i++)
        own = own || list[i].place == 0;
    if (unread != BM_OK)
        return BM_FAIL(unread,
                       "%s: none of the %zu checkpoints can be loaded, and "
                       "some cannot be read (%s); make them readable and run "
                       "the same command again",
                       t->run->checkpoints, n, why);
    if (t->run->fresh && !own)
        return BM_FAIL(BM_ERR_FORMAT,
                       "train.checkpoint_copies: a folder has checkpoints that "
                       "are of no use to this run; give it folders of its own: "
                       "%s",
                       bm_last_message());
    if (t->run->fresh)
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s has checkpoints that are of no use to this run; "
                       "give another --out: %s",
                       t->run->checkpoints, bm_last_message());
    if (newest == BM_ERR_CONFIG)
        return BM_FAIL(BM_ERR_CONFIG,
                       "%s has other settings than its checkpoints: restore "
                       "them, or go on with the new settings: --from %s --out "
                       "NEW",
                       t->run->config_path,
                       bm_shell_word(t->run->directory).text);
    return BM_FAIL(BM_ERR_FORMAT,
                   "%s: none of the %zu checkpoints can be loaded; give "
                   "another --out to train from the start",
                   t->run->checkpoints, n);
}

/* On rank 0: a warning for a checkpoint that was not loaded. */
static void log_skipped(const bm_training *t, const bm_run_checkpoint *list,
                        size_t i, size_t n, const char *path)
{
    bool copy = i + 1 < n && list[i + 1].blocks == list[i].blocks;

    if (bm_training_first(t))
        bm_log(BM_WARNING, "skipped checkpoint %s%s: %s", path,
               i + 1 == n ? ""
               : copy     ? ", trying its copy"
                          : ", trying an older one",
               bm_last_message());
}

/* Collective. */
static bm_status load_newest(bm_training *t, const bm_run_checkpoint *list,
                             size_t n)
{
    bm_status newest = BM_OK, unread = BM_OK;
    char why[1024] = "";

    for (size_t i = 0; i < n; i++) {
        bm_checkpoint c = {0};
        char path[2200];
        bm_status status = BM_OK;

        bm_run_checkpoint_path(t->run, list[i], path, sizeof path);
        status = load(t, list[i], path, &c);
        if (status == BM_ERR_MEMORY || status == BM_ERR_COMM)
            return status;
        if (status == BM_OK)
            return resume_from(t, &c, path);
        if (i == 0)
            newest = status;
        if (is_unread(status) && unread == BM_OK) {
            unread = status;
            snprintf(why, sizeof why, "%s", bm_last_message());
        }
        log_skipped(t, list, i, n, path);
    }
    return bm_comm_agree(t->comm, none_loaded(t, list, n, newest, unread, why));
}

/* Rank 0 lists the checkpoints, as other hosts may see an older state of the
 * directory. Without any, the last job was killed before the first one. */
bm_status bm_training_resume(bm_training *t)
{
    enum { MOST = 1024 };
    bm_run_checkpoint list[MOST] = {{0}};
    size_t n = 0;
    bm_status status = BM_OK;

    if (bm_training_first(t))
        status = bm_run_list(t->run, list, MOST, &n);
    BM_TRY(bm_comm_agree(t->comm, status));
    BM_TRY(bm_comm_broadcast_bytes(t->comm, &n, sizeof n, 0));
    BM_TRY(bm_comm_broadcast_bytes(t->comm, list, sizeof list, 0));
    if (n > 0)
        return load_newest(t, list, n);
    if (bm_training_first(t))
        log_repeated(t);
    return BM_OK;
}
