/* training_state.c - writing and loading checkpoints of a training run. */
#include "cli/help/version.h"
#include "cli/train/training.h"
#include "core/span.h"

#include <string.h>

/* Indices of a checkpoint's numbers, after those of the schedule. */
enum {
    LOSS = BM_SCHEDULE_STATE,
    EPOCHS_DONE,
    BLOCKS_DONE,
    FRAMES,
    SECONDS,
    ENDED, /* the schedule ended training */
    RATE,
    RHO, /* of bmuf/local_state.h */
};

static bm_checkpoint describe(bm_training *t)
{
    bm_checkpoint c = {.params = bm_training_params(t),
                       .states = t->states,
                       .position = bm_trainer_position(t->trainer),
                       .manifest = t->train->hash};
    bm_memory memory = bm_trainer_memory(t->trainer);

    c.n_states = bm_trainer_state(t->trainer, t->states, t->n_states);
    bm_schedule_save(&t->schedule, c.numbers);
    c.numbers[LOSS] = memory.loss;
    c.numbers[RATE] = memory.rate;
    c.numbers[RHO] = memory.rho;
    c.numbers[EPOCHS_DONE] = (double)t->epochs;
    c.numbers[BLOCKS_DONE] = (double)t->blocks;
    c.numbers[FRAMES] = t->frames;
    c.numbers[SECONDS] = t->seconds;
    c.numbers[ENDED] = t->ended;
    return c;
}

static bm_status save(bm_training *t)
{
    enum { OWN = 3 };
    bm_text texts[OWN + BM_RECOGNISER_TEXTS] = {{"config", t->config_text},
                                                {"program", bm_version()},
                                                {"dev", t->dev_about}};
    bm_checkpoint c = describe(t);
    char path[2200];
    uint64_t bytes = 0;
    double seconds = 0;
    bm_span span;
    bm_status status = BM_OK;

    bm_recogniser_texts(&t->net, texts + OWN); /* eval reads it as a model */
    c.texts = texts;
    bm_checkpoint_path(t->run->checkpoints, t->blocks, path, sizeof path);
    span = bm_span_begin("checkpoint");
    status = bm_checkpoint_save(path, t->comm, &c, &bytes);
    if (status == BM_OK && bm_comm_rank(t->comm) == 0)
        bm_checkpoint_prune(t->run->checkpoints, (size_t)t->set->train.keep);
    seconds = bm_span_end(span);
    BM_TRY(status);
    bm_journal_write(
        t->run->journal, "checkpoint",
        (bm_field[]){{"block", (double)t->blocks, NULL},
                     {"file", 0, path + strlen(t->run->directory) + 1},
                     {"bytes", (double)bytes, NULL},
                     {"seconds", seconds, NULL},
                     {0}});
    return BM_OK;
}

bool bm_training_disk_failed(bm_status status)
{
    return status == BM_ERR_IO || status == BM_ERR_CREATE;
}

/* Once for each time that the disk is full, not once for each block. */
static void log_unsaved(const bm_training *t)
{
    if (t->tries == 1 && bm_training_first(t))
        bm_log(BM_WARNING,
               "no checkpoint of block %lld: %s; training goes on and tries "
               "again after each block",
               (long long)t->blocks, bm_last_message());
}

bm_status bm_training_save(bm_training *t)
{
    bm_status status = save(t);

    t->unsaved = BM_OK;
    if (bm_training_disk_failed(status)) {
        t->unsaved = status;
        t->tries++;
        log_unsaved(t);
        return BM_OK;
    }
    BM_TRY(status);
    if (t->tries > 0)
        bm_log(BM_NOTE, "checkpoints are written again, after %lld failures",
               (long long)t->tries);
    t->tries = 0;
    t->saved = t->blocks;
    return BM_OK;
}

bm_status bm_training_save_last(bm_training *t)
{
    bm_status status = save(t);

    t->unsaved = status;
    if (status == BM_OK)
        t->saved = t->blocks;
    if (!bm_training_disk_failed(status))
        return status;
    return BM_FAIL(
        status,
        "%s; no checkpoint has the blocks after block %lld, of %lld: "
        "free space and run the same command again",
        bm_last_message(), (long long)t->saved, (long long)t->blocks);
}

static void restore(bm_training *t, const bm_checkpoint *c)
{
    bm_schedule_load(&t->schedule, c->numbers);
    t->epochs = (int64_t)c->numbers[EPOCHS_DONE];
    t->blocks = t->saved = (int64_t)c->numbers[BLOCKS_DONE];
    t->frames = c->numbers[FRAMES];
    t->seconds = c->numbers[SECONDS];
    t->ended = c->numbers[ENDED] != 0;
}

static bm_status check_manifest(const bm_training *t, const bm_checkpoint *c,
                                const char *path)
{
    if (c->manifest == t->train->hash)
        return BM_OK;
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s: the training data in %s have changed since; give "
                   "another --out to train on them",
                   path, t->set->data.train);
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
               "model is chosen anew",
               t->set->data.dev, path, then, t->dev_about);
    bm_st_free(f);
}

/* Rank 0 lists the checkpoints, as other hosts may see an older state of the
 * directory. */
bm_status bm_training_resume(bm_training *t)
{
    enum { MOST = 1024 };
    int64_t blocks[MOST] = {0};
    size_t n = bm_checkpoint_list(t->run->checkpoints, blocks, MOST);

    BM_TRY(bm_comm_broadcast_bytes(t->comm, &n, sizeof n, 0));
    BM_TRY(bm_comm_broadcast_bytes(t->comm, blocks, sizeof blocks, 0));
    for (size_t i = 0; i < n; i++) {
        bm_checkpoint c = {0};
        char path[2200];
        bm_status status = BM_OK;

        BM_TRY(bm_trainer_seek(t->trainer, blocks[i]));
        c = describe(t);
        bm_checkpoint_path(t->run->checkpoints, blocks[i], path, sizeof path);
        status = bm_checkpoint_load(path, t->comm, &c);
        if (status == BM_ERR_MEMORY || status == BM_ERR_COMM)
            return status;
        if (status != BM_OK) {
            if (bm_comm_rank(t->comm) == 0)
                bm_log(BM_WARNING,
                       "skipped checkpoint %s, trying an older one: %s", path,
                       bm_last_message());
            continue;
        }
        BM_TRY(bm_comm_agree(t->comm, check_manifest(t, &c, path)));
        restore(t, &c);
        remark_dev(t, path);
        bm_log(BM_NOTE, "resuming from %s", path);
        return bm_trainer_resume(
            t->trainer, c.position,
            (bm_memory){c.numbers[LOSS], c.numbers[RATE], c.numbers[RHO]});
    }
    if (n == 0)
        return BM_OK;
    return bm_comm_agree(
        t->comm, BM_FAIL(BM_ERR_FORMAT,
                         "%s: none of the %zu checkpoints can be loaded; give "
                         "another --out to train from the start",
                         t->run->checkpoints, n));
}
