/*
 * training_save.c - writes checkpoints of a training run while it goes on, and
 * reports what became of them.
 */
#include "cli/help/version.h"
#include "cli/train/training.h"
#include "core/trace/span.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is kept -------------------------------------------------------- */

/* Blocks that are done after `epochs` epochs. */
static int64_t blocks_after(const bm_training *t, int64_t epochs)
{
    int64_t n = 0;

    for (int64_t e = 0; e < epochs; e++)
        n += bm_reader_blocks_of(t->reader, e);
    return n;
}

bool bm_training_keeps(const bm_training *t)
{
    long every = t->set->train.keep_every;

    return every > 0 && t->epochs > 0 && t->epochs % every == 0 &&
           t->blocks == blocks_after(t, t->epochs);
}

/* *out, to be freed, are the blocks of *stay. */
static bm_status retain(const bm_training *t, bm_retention *stay, int64_t **out)
{
    const bm_train_settings *set = &t->set->train;
    int64_t every = set->keep_every, n = every > 0 ? t->epochs / every : 0;
    int64_t *blocks = calloc((size_t)n + 2, sizeof *blocks), done = 0, at = 0;

    if (blocks == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %lld checkpoints",
                       (long long)n);
    for (int64_t e = 0; n > 0 && e < t->epochs; e++) {
        done += bm_reader_blocks_of(t->reader, e);
        if ((e + 1) % every == 0)
            blocks[at++] = done;
    }
    if (set->keep_best && t->best.epoch > 0)
        blocks[at++] = blocks_after(t, t->best.epoch);
    *stay = (bm_retention){t->blocks, (size_t)set->keep, blocks, (size_t)at};
    *out = blocks;
    return BM_OK;
}

/* ---- begin and end ------------------------------------------------------- */

/* The path of the checkpoint under way, 0 in RUN. */
static void path_of(const bm_training *t, int place, char *out, size_t room)
{
    bm_run_checkpoint_path(t->run, (bm_run_checkpoint){t->saving, place}, out,
                           room);
}

/* Collective. */
static bm_status start(bm_training *t, const bm_retention *stay, bool behind)
{
    enum { OWN = 3 };
    bm_text texts[OWN + BM_RECOGNISER_TEXTS] = {{"config", t->config_text},
                                                {"program", bm_version()},
                                                {"dev", t->dev_about}};
    char files[BM_CHECKPOINT_PATHS][2200];
    const char *paths[BM_CHECKPOINT_PATHS + 1] = {NULL};
    bm_checkpoint c = bm_training_describe(t);

    bm_recogniser_texts(&t->net, texts + OWN); /* eval reads it as a model */
    c.texts = texts;
    for (int i = 0; i <= t->run->n_copies; i++) {
        path_of(t, i, files[i], sizeof files[i]);
        paths[i] = files[i];
    }
    return bm_saver_start(t->saver, paths, &c, stay, behind);
}

/* On rank 0: a folder that someone has removed is made again, but not in place
 * of a disk that is gone with the whole run. If that fails, so will writing. */
static void make_folder(const bm_training *t)
{
    if (bm_training_first(t) && access(t->run->config_path, F_OK) == 0)
        (void)mkdir(t->run->checkpoints, 0777);
}

/* Collective. */
static bm_status begin(bm_training *t, bool behind)
{
    bm_span span = bm_span_begin("checkpoint");
    bm_retention stay = {0};
    int64_t *blocks = NULL;
    bm_status status = BM_OK;

    t->saving = t->blocks;
    make_folder(t);
    status = bm_trainer_compare(t->trainer);
    if (status == BM_OK)
        status = bm_comm_agree(t->comm, retain(t, &stay, &blocks));
    if (status == BM_OK)
        status = start(t, &stay, behind);
    free(blocks);
    t->still_s = bm_span_end(span);
    return status;
}

/* A folder that failed while another did not: once, until all succeed. */
static void log_lost(bm_training *t, const bm_saved *saved, const char *path)
{
    if (saved->lost > 0 && t->lost == 0)
        bm_log(BM_WARNING,
               "the checkpoint of block %lld is in %s, but not in all folders: "
               "%s; training goes on and tries again with the next one",
               (long long)t->saving, path, saved->why);
    t->lost = saved->lost;
}

static void report(bm_training *t, const bm_saver_report *r)
{
    char path[2200];
    size_t inside = strlen(t->run->directory) + 1;

    if (!bm_training_first(t))
        return;
    path_of(t, r->saved.which, path, sizeof path);
    log_lost(t, &r->saved, path);
    bm_journal_write(
        t->run->journal, "checkpoint",
        (bm_field[]){{"block", (double)t->saving, NULL},
                     {"file", 0, r->saved.which == 0 ? path + inside : path},
                     {"bytes", (double)r->saved.bytes, NULL},
                     {"files", 1 + t->run->n_copies - r->saved.lost, NULL},
                     {"copied_bytes", (double)r->copied, NULL},
                     {"seconds", t->still_s, NULL},
                     {"write_s", r->write_s, NULL},
                     {"verify_s", r->saved.verify_s, NULL},
                     {0}});
}

/* Collective. Ends the checkpoint under way; a failing disk is a failure. */
static bm_status finish(bm_training *t)
{
    bm_span span = bm_span_begin("checkpoint");
    bm_saver_report r = {0};
    bm_status status = bm_saver_wait(t->saver, &r);

    t->still_s += bm_span_end(span);
    if (status != BM_OK)
        return status;
    t->saved = t->saving;
    report(t, &r);
    return BM_OK;
}

/* ---- what the loop calls ------------------------------------------------- */

/* Once for each time that the disk is full, not once for each block. */
static void log_unsaved(const bm_training *t)
{
    if (t->tries == 1 && bm_training_first(t))
        bm_log(BM_WARNING,
               "no checkpoint of block %lld: %s; training goes on and tries "
               "again after each block",
               (long long)t->saving, bm_last_message());
}

bm_status bm_training_saved(bm_training *t)
{
    bm_status status = BM_OK;

    if (!bm_saver_pending(t->saver))
        return BM_OK;
    status = finish(t);
    if (bm_disk_failed(status)) {
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
    return BM_OK;
}

bm_status bm_training_save(bm_training *t, bool behind)
{
    BM_TRY(bm_training_saved(t));
    t->unsaved = BM_OK;
    BM_TRY(begin(t, behind));
    return behind ? BM_OK : bm_training_saved(t);
}

const char *bm_training_remedy(bm_status status)
{
    return status == BM_ERR_CREATE
               ? "restore its folder, or the permission to write to it,"
               : "free space, or see to the disk,";
}

bm_status bm_training_save_last(bm_training *t)
{
    bm_status status = BM_OK;

    BM_TRY(bm_training_saved(t));
    BM_TRY(begin(t, false));
    status = finish(t);
    t->unsaved = status;
    if (!bm_disk_failed(status))
        return status;
    return BM_FAIL(
        status,
        "%s; no checkpoint has the blocks after block %lld, of %lld: "
        "%s and run the same command again",
        bm_last_message(), (long long)t->saved, (long long)t->blocks,
        bm_training_remedy(status));
}
