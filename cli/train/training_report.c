/* training_report.c - reports of a training run: journal, log, progress bar and
 * final table. */
#include "cli/help/version.h"
#include "cli/hosts/remote.h"
#include "cli/launch/mpirun_command.h"
#include "cli/placement/own_place.h"
#include "cli/progress.h"
#include "cli/train/server_report.h"
#include "cli/train/training.h"
#include "core/clock.h"

#include <math.h>
#include <stdlib.h>

/* With a fraction. */
static double epochs_done(const bm_training *t)
{
    bm_position at = bm_trainer_position(t->trainer);

    return (double)at.epoch +
           (double)at.block / (double)bm_reader_blocks_of(t->reader, at.epoch);
}

bm_status bm_report_start(const bm_training *t)
{
    const bm_settings *s = t->set;
    char *places = NULL;
    bool new = t->origin.path[0] != '\0'; /* and starts from there */

    BM_TRY(bm_own_place_gather(&places, &t->device->place, t->comm));
    bm_journal_write(
        t->run->journal, "start",
        (bm_field[]){
            {"attempt", t->run->attempt, NULL},
            {"version", 0, bm_version()},
            {"workers", (double)s->job.workers, NULL},
            {"ranks", bm_comm_size(t->comm), NULL},
            {"threads", (double)s->job.threads, NULL},
            {"device", 0, s->job.device},
            {"hardware", 0, bm_backend_about(t->device->be)},
            {"precision", 0, s->job.precision},
            {"exchange", 0, bm_trainer_transport(t->trainer)},
            {"strategy", 0, s->train.strategy},
            {"block_momentum", s->filtered ? t->momentum : NAN, NULL},
            {"block_rate", s->filtered ? t->block_rate : NAN, NULL},
            {"nesterov", s->filtered ? s->filter.nesterov : NAN, NULL},
            {"net", 0, s->model.net},
            {"weights", (double)bm_training_params(t)->n, NULL},
            {"sequences", (double)t->train->n, NULL},
            {"frames", (double)t->train->frames, NULL},
            {"blocks_per_epoch", (double)bm_reader_blocks(t->reader), NULL},
            {"epochs", (double)t->n_epochs, NULL},
            {"blocks", (double)t->blocks, NULL},
            {"epochs_done", epochs_done(t), NULL},
            {"seconds", bm_clock() - t->began, NULL},
            {"command", NAN, getenv(BM_LAUNCH_COMMAND)},
            {"placement", NAN, places},
            {"from", NAN, new ? t->origin.path : NULL},
            {"from_epoch", new ? t->origin.epoch : NAN, NULL},
            {"from_block", new ? t->origin.block : NAN, NULL},
            {"from_digest", NAN, new ? t->origin.digest : NULL},
            {0}});
    free(places);
    return BM_OK;
}

void bm_report_eval(bm_training *t, const char *data, const bm_evaluation *e)
{
    bm_journal_write(
        t->run->journal, "eval",
        (bm_field[]){{"epoch", (double)t->epochs, NULL},
                     {"block", (double)t->blocks, NULL},
                     {"data", 0, data},
                     {"loss", bm_evaluation_loss(e), NULL},
                     {"ler", bm_evaluation_ler(e), NULL},
                     {"wer", bm_evaluation_wer(e), NULL},
                     {"sequences", e->sequences, NULL},
                     {"wrong", e->wrong, NULL},
                     {"skipped", e->score.skipped, NULL},
                     {"zeroed", e->score.zeroed, NULL},
                     {"blank", e->score.blank / e->score.frames, NULL},
                     {"frames", e->frames, NULL},
                     {"seconds", e->seconds, NULL},
                     {0}});
}

/* Mini-batches of each worker, "12 9 12 11", where block.seconds may cut them;
 * NULL: as planned. free() it. */
static char *worker_batches(const bm_training *t)
{
    enum { DIGITS = 21 };
    int n = (int)t->set->job.workers, at = 0;
    char *text = NULL;

    if (t->set->block.seconds > 0)
        text = malloc((size_t)n * DIGITS + 1);
    for (int k = 0; text != NULL && k < n; k++)
        at += snprintf(text + at, DIGITS + 1, k > 0 ? " %lld" : "%lld",
                       (long long)bm_trainer_batches(t->trainer, k));
    return text;
}

/* "18.2k", "950": at most 5 characters. */
static void format_rate(double per_s, char *out, size_t room)
{
    if (per_s < 1e3)
        snprintf(out, room, "%.0f", per_s);
    else if (per_s < 1e6)
        snprintf(out, room, "%.1fk", 1e-3 * per_s);
    else
        snprintf(out, room, "%.1fM", 1e-6 * per_s);
}

static void show_progress(const bm_training *t, const char *fields)
{
    int64_t epochs = t->n_epochs, epoch = t->epochs + 1;
    char where[64];

    snprintf(where, sizeof where, "epoch %lld/%lld",
             (long long)(epoch < epochs ? epoch : epochs), (long long)epochs);
    bm_progress_show(
        &(bm_progress){.done = fmin(epochs_done(t) / (double)epochs, 1),
                       .where = where,
                       .fields = fields});
}

void bm_report_begin(bm_training *t)
{
    t->terminal = bm_progress_open(bm_comm_rank(t->comm) == 0);
    if (t->terminal)
        show_progress(t, "");
}

/* The progress line after a block, most important fields first. */
static void show_block(const bm_training *t, const bm_block_report *r,
                       double loss, double error, double per_s, double seconds)
{
    char fields[256], rate[32], of_dev[32] = "";

    format_rate(per_s, rate, sizeof rate);
    if (t->schedule.state.last >= 0)
        snprintf(of_dev, sizeof of_dev, "dev %.1f%%  ",
                 100 * t->schedule.state.last);
    snprintf(fields, sizeof fields,
             "loss %.4g  error %.1f%%  %s frames/s  %sblock %lld/%lld  "
             "exchange %.0f%%  %ld workers",
             loss, 100 * error, rate, of_dev, (long long)r->at.block + 1,
             (long long)bm_reader_blocks_of(t->reader, r->at.epoch),
             100 * (r->exchange_s + r->wait_s) / seconds, t->set->job.workers);
    show_progress(t, fields);
}

void bm_report_block(bm_training *t, const bm_block_report *r, double rate,
                     bm_passed passed, double seconds)
{
    int64_t blocks = bm_reader_blocks_of(t->reader, r->at.epoch);
    double stall = bm_reader_stall(t->reader), frames = passed.frames;
    bool per_frame = bm_model_loss(t->net.model)->per_frame;
    bm_model_times spent = bm_model_spent(t->net.model);
    double counted = per_frame ? r->score.frames : r->score.sequences;
    double loss = r->score.loss / counted;
    double error = r->score.errors / r->score.count;
    char *of_workers = worker_batches(t);

    t->error = error;
    bm_journal_write(
        t->run->journal, "block",
        (bm_field[]){
            {"epoch", (double)r->at.epoch, NULL},
            {"block", (double)r->at.block, NULL},
            {"blocks_per_epoch", (double)blocks, NULL},
            {"loss", loss, NULL},
            {"error", error, NULL},
            {"rate", rate, NULL},
            {"frames", frames, NULL},
            {"batches", passed.batches, NULL},
            {"batches_of_workers", NAN, of_workers},
            {"left", passed.left, NULL},
            {"seconds", seconds, NULL},
            {"frames_per_s", frames / seconds, NULL},
            {"padding", 1 - frames / passed.padded, NULL},
            {"compute_s", r->compute_s - stall, NULL},
            {"forward_s", spent.forward, NULL},
            {"loss_s", spent.loss, NULL},
            {"backward_s", spent.backward, NULL},
            {"update_s", r->update_s, NULL},
            {"wait_s", r->wait_s, NULL},
            {"exchange_s", r->exchange_s, NULL},
            {"stall_s", stall, NULL},
            {"sent_bytes", (double)r->traffic.sent, NULL},
            {"shared_bytes", (double)r->traffic.shared, NULL},
            {"block_momentum", r->filtered ? r->filter.momentum : NAN, NULL},
            {"block_rate", r->filtered ? r->filter.rate : NAN, NULL},
            {"g_norm", r->update.g_norm, NULL},
            {"delta_norm", r->update.delta_norm, NULL},
            {"cos_g_delta", r->update.cos, NULL},
            {"worker_norm", r->update.worker_norm, NULL},
            {"cos_workers", r->update.g_norm / r->update.worker_norm, NULL},
            {"skipped", r->score.skipped, NULL},
            {"zeroed", r->score.zeroed, NULL},
            {"bad_steps", r->bad_steps, NULL},
            {"left_out", r->left_out, NULL},
            {"audited", r->audited, NULL},
            {"audit_s", r->audit_s, NULL},
            {"blank", r->score.blank / r->score.frames, NULL},
            {0}});
    bm_report_server(t->run->journal, r, t->terminal);
    free(of_workers);
    if (isnan(loss)) /* the loss could use no sequence, which is warned of */
        return;
    if (t->terminal)
        show_block(t, r, loss, error, frames / seconds, seconds);
    else
        bm_log(BM_NOTE,
               "epoch %lld/%ld block %lld/%lld loss %.4g error %.1f %% rate "
               "%.3g %.0f frames/s",
               (long long)r->at.epoch + 1, t->n_epochs,
               (long long)r->at.block + 1, (long long)blocks, loss, 100 * error,
               rate, frames / seconds);
}

/* sum and message may be NULL. */
static void write_end(const bm_training *t, const char *reason, const char *sum,
                      const char *message)
{
    bm_journal_write(
        t->run->journal, "end",
        (bm_field[]){{"reason", 0, reason},
                     {"epochs", (double)t->epochs, NULL},
                     {"blocks", (double)t->blocks, NULL},
                     {"frames", t->frames, NULL},
                     {"seconds", t->seconds, NULL},
                     {"model_s", t->model_s, NULL},
                     {"total_s", bm_clock() - t->began, NULL},
                     {"digest", NAN, sum},
                     {message != NULL ? "message" : NULL, 0, message},
                     {0}});
    bm_progress_close();
}

void bm_report_failure(const bm_training *t, bm_status status)
{
    write_end(t, bm_status_text(status), NULL, bm_last_message());
}

void bm_report_stop(const bm_training *t, bool enough)
{
    char sum[BM_WEIGHTS_DIGEST];

    bm_training_digest(t, sum);
    write_end(t, "stopped", sum, NULL);
    if (enough && t->epochs > t->until)
        bm_log(BM_NOTE,
               "%s has %lld epochs already, more than --until %ld; the same "
               "command without --until goes on",
               t->run->directory, (long long)t->epochs, t->until);
    else if (enough)
        bm_log(BM_NOTE,
               "stopped after epoch %lld (--until %ld); the same command "
               "without --until goes on",
               (long long)t->epochs, t->until);
    else
        bm_log(BM_NOTE,
               "stopped after block %lld; run the same command again to resume",
               (long long)t->blocks);
}

/* Writes what to say of a run that learned little to `out`, "" if it learned or
 * if that is not known: by the best model on data.dev, or without one by the
 * labels of the last block. */
static void judge(const bm_training *t, char *out, size_t room)
{
    bool dev = t->best.epoch > 0;
    double error = dev ? t->best.ler : t->error;

    out[0] = '\0';
    if (error > 0.5)
        snprintf(out, room,
                 "more than half of all labels are wrong (%.1f %% on %s): try "
                 "a larger train.epochs, or another train.rate; see \"When "
                 "most labels stay wrong\" in docs/tuning.md",
                 100 * error, dev ? "dev" : "the training data");
}

/* The command that evaluates the run, as a shell takes it. */
static void print_evaluation(const bm_training *t)
{
    const char *test = t->set->data.test;

    printf("evaluate  bmuf eval ");
    bm_remote_word(t->run->directory, stdout);
    putchar(' ');
    bm_remote_word(test[0] != '\0' ? test : "DATA", stdout);
    putchar('\n');
}

void bm_report_end(bm_training *t, const bm_evaluation *test)
{
    char sum[BM_WEIGHTS_DIGEST], verdict[256];

    bm_training_digest(t, sum);
    judge(t, verdict, sizeof verdict);
    if (verdict[0] != '\0')
        bm_journal_write(t->run->journal, "warning",
                         (bm_field[]){{"message", 0, verdict}, {0}});
    write_end(t, t->ended ? "converged" : "done", sum, NULL);
    if (bm_comm_rank(t->comm) != 0)
        return;
    printf("epochs    %lld%s\nblocks    %lld\nframes    %.0f\n"
           "seconds   %.1f (%.0f frames/s)\n",
           (long long)t->epochs, t->ended ? " (ended by the schedule)" : "",
           (long long)t->blocks, t->frames, t->seconds,
           t->frames / fmax(t->seconds, 1e-9));
    if (t->schedule.state.last >= 0)
        printf("dev LER   %.2f %%, best %.2f %%\n",
               100 * t->schedule.state.last, 100 * t->schedule.state.best);
    if (test != NULL)
        printf("test LER  %.2f %%\n", 100 * bm_evaluation_ler(test));
    printf("model     %s\n", t->run->model_path);
    if (t->best.epoch > 0)
        printf("best      %s (%s LER %.2f %%, epoch %lld)\n", t->run->best_path,
               t->best.data, 100 * t->best.ler, (long long)t->best.epoch);
    printf("digest    %s\n", sum);
    print_evaluation(t);
    if (verdict[0] != '\0')
        printf("%s\n", verdict);
}
