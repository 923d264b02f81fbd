/*
 * train.c - bmuf train: blocks, evaluations and checkpoints, until all epochs
 * are done, the schedule ends training, or a signal asks for a stop.
 */
#include "cli/launch/dry_run.h"
#include "cli/launch/processes.h"
#include "cli/machine.h"
#include "cli/outputs.h"
#include "cli/report/explain.h"
#include "cli/telemetry/metrics.h"
#include "cli/train/dev_examples.h"
#include "cli/train/training.h"
#include "cli/verbs.h"
#include "core/text/words.h"
#include "core/trace/span.h"

#include <math.h>
#include <string.h>
#include <time.h>

/* Writes the global model, or its moving average, to x [n] on the backend. */
typedef bm_status global_model(bm_trainer *t, float *x);

/* Puts the model into the network and a copy on the host; leave() restores the
 * network's weights. */
static bm_status enter(bm_training *t, global_model *model)
{
    bm_params *p = bm_training_params(t);

    bm_axpby(p->be, p->n, 1, p->w, 0, t->kept);
    BM_TRY(model(t->trainer, p->w));
    bm_get(p->be, t->host, p->w, p->n);
    return bm_sync(p->be);
}

static bm_status leave(bm_training *t)
{
    bm_params *p = bm_training_params(t);

    bm_axpby(p->be, p->n, 1, t->kept, 0, p->w);
    return bm_sync(p->be);
}

static bm_status evaluate(bm_training *t, global_model *model, bm_evaluator *e,
                          const bm_observer *observer, const char *data,
                          bm_evaluation *out)
{
    double since = bm_clock();

    BM_TRY(enter(t, model));
    BM_TRY(bm_evaluate(e, observer, out));
    BM_TRY(leave(t));
    out->seconds = bm_clock() - since;
    bm_report_eval(t, data, out);
    return BM_OK;
}

/* The global model on data.dev, with examples of transcripts for TensorBoard. */
static bm_status evaluate_dev(bm_training *t, bm_evaluation *e)
{
    bool shown =
        t->set->job.tensorboard && !bm_model_loss(t->net.model)->per_frame;
    bm_dev_examples examples;
    bm_observer observer = bm_dev_examples_choose(&examples, t->dev);
    bm_status status = evaluate(t, bm_trainer_global, t->on_dev,
                                shown ? &observer : NULL, "dev", e);

    if (shown && status == BM_OK)
        status = bm_dev_examples_log(&examples, t->comm, t->telemetry);
    bm_dev_examples_free(&examples);
    return status;
}

/* The models at the end of an epoch, on data.dev; t->host keeps the global
 * one. */
static bm_status evaluate_epoch(bm_training *t)
{
    bm_evaluation e = {0};

    if (bm_trainer_has_ema(t->trainer)) {
        BM_TRY(evaluate(t, bm_trainer_ema, t->on_dev, NULL, "dev-ema", &e));
        bm_training_best_offer(t, "dev-ema", &e);
    }
    BM_TRY(evaluate_dev(t, &e));
    bm_training_best_offer(t, "dev", &e);
    t->ended = bm_schedule_evaluated(&t->schedule, bm_evaluation_ler(&e));
    bm_log(BM_NOTE,
           "epoch %lld/%ld: dev loss %.4g, label errors %.2f %%, blank %.0f %%",
           (long long)t->epochs, t->n_epochs, bm_evaluation_loss(&e),
           100 * bm_evaluation_ler(&e),
           100 * e.score.blank / fmax(e.score.frames, 1));
    return BM_OK;
}

/* Collective. Between two epochs: logs the global model in the telemetry, which
 * t->host has already if it is `copied`. */
static bm_status log_model(bm_training *t, bool copied)
{
    if (!t->set->job.tensorboard)
        return BM_OK;
    if (!copied) {
        BM_TRY(enter(t, bm_trainer_global));
        BM_TRY(leave(t));
    }
    bm_telemetry_model(t->telemetry, bm_training_params(t), t->host);
    return BM_OK;
}

static bm_status end_epoch(bm_training *t)
{
    t->epochs++;
    if (t->on_dev != NULL)
        BM_TRY(evaluate_epoch(t));
    return log_model(t, t->on_dev != NULL);
}

/* Of the next block: that of the schedule, times the fraction of the workers that
 * take part. */
static double rate_now(const bm_training *t)
{
    bm_position at = bm_trainer_position(t->trainer);
    int64_t blocks = bm_reader_blocks_of(t->reader, at.epoch);
    int n = (int)t->set->job.workers;
    double epochs =
        (double)t->epochs + (double)(at.block % blocks) / (double)blocks;

    return bm_schedule_rate(&t->schedule, epochs) *
           bm_block_workers(&t->set->block, t->epochs, n) / n;
}

/* Why no sequence of so many frames, all together, could be used. */
static const char *why_unusable(double frames)
{
    return frames > 0 ? "all sequences have more labels than model.net leaves "
                        "frames"
                      : "the features of all sequences are NaN or infinite";
}

/* Collective. Nothing in the block could be used. It has changed nothing;
 * training ends if the epoch ends with it, and no block of the run had a loss
 * before. */
static bm_status report_unusable(const bm_training *t, bm_position at,
                                 double frames)
{
    bool last = at.block + 1 == bm_reader_blocks_of(t->reader, at.epoch);

    if (last && bm_trainer_numbers(t->trainer).loss == 0)
        return bm_comm_agree(
            t->comm, BM_FAIL(BM_ERR_FORMAT,
                             "nothing in epoch %lld can be learned from: %s; "
                             "look at the data with bmuf check",
                             (long long)at.epoch + 1, why_unusable(t->frames)));
    if (bm_training_first(t))
        bm_log(BM_WARNING,
               "nothing in block %lld of epoch %lld can be learned from: %s; "
               "the block changes nothing; look at the data with bmuf check",
               (long long)at.block + 1, (long long)at.epoch + 1,
               why_unusable(frames));
    return BM_OK;
}

static bm_status train_block(bm_training *t)
{
    bm_block_report r = {0};
    double since = bm_clock(), rate = rate_now(t), seconds = 0;
    bm_passed passed = {0};
    bm_span meeting;

    BM_TRY(bm_trainer_block(t->trainer, rate, &r));
    passed = bm_learner_passed(t->learner);
    meeting = bm_span_begin("wait");
    BM_TRY(bm_comm_sum(t->comm, (double *)(void *)&passed,
                       sizeof passed / sizeof(double)));
    r.wait_s += bm_span_end(meeting);
    seconds = bm_clock() - since;
    t->blocks++;
    t->frames += passed.frames;
    t->seconds += seconds;
    if (r.samples == 0 && passed.batches > 0)
        BM_TRY(report_unusable(t, r.at, passed.frames));
    bm_report_block(t, &r, rate, passed, seconds);
    if (r.at.block + 1 == bm_reader_blocks_of(t->reader, r.at.epoch))
        BM_TRY(end_epoch(t));
    return BM_OK;
}

/* What all ranks know after a block. */
typedef struct block_flags {
    int asked; /* to stop, by a signal to any rank */
    int busy;  /* writing a checkpoint */
    int best;  /* the model is the best on data.dev so far */
} block_flags;

/* Collective. Ends a checkpoint that all ranks have written. */
static bm_status agree_on_flags(bm_training *t, block_flags *out)
{
    bool pending = bm_saver_pending(t->saver);

    *out = (block_flags){bm_job_signal(), pending && !bm_saver_done(t->saver),
                         t->best_is_new};
    t->best_is_new = false;
    BM_TRY(bm_comm_max(t->comm, (int *)(void *)out, sizeof *out / sizeof(int)));
    return out->busy ? BM_OK : bm_training_saved(t);
}

/* Whether to write a checkpoint of this block. */
static bool is_due(const bm_training *t, const block_flags *flags)
{
    const bm_train_settings *set = &t->set->train;

    return (t->unsaved != BM_OK && !flags->busy) ||
           (set->checkpoint_every > 0 &&
            t->blocks % set->checkpoint_every == 0) ||
           (set->keep_best && flags->best) || bm_training_keeps(t);
}

static bool over(const bm_training *t)
{
    return t->ended || t->epochs >= t->n_epochs;
}

/* The run was over before this job. */
static void log_over(const bm_training *t)
{
    const char *run = t->run->directory;
    char why[60];

    bm_schedule_explain(&t->schedule, why, sizeof why);
    if (t->ended)
        bm_log(BM_NOTE,
               "%s is complete, nothing to train: the schedule ended it (%s); "
               "to go on with another schedule, train with --from %s and "
               "another --out",
               run, why, run);
    else
        bm_log(BM_NOTE,
               "%s is complete, nothing to train; to continue it, increase "
               "train.epochs",
               run);
}

/* Done for this time: --until. */
static bool enough(const bm_training *t)
{
    return t->until > 0 && t->epochs >= t->until;
}

static bm_status train_blocks(bm_training *t, bool *stopped)
{
    bm_span span;
    block_flags flags;

    *stopped = enough(t);
    while (!over(t) && !*stopped) {
        BM_TRY(bm_tracing_block(&t->tracing, t->comm, t->run->directory,
                                t->run->attempt, t->blocks));
        span = bm_span_begin("block");
        BM_TRY(train_block(t));
        BM_TRY(agree_on_flags(t, &flags));
        *stopped = flags.asked || enough(t);
        if (*stopped && !over(t))
            BM_TRY(bm_training_save_last(t));
        else if (over(t) || is_due(t, &flags))
            BM_TRY(bm_training_save(t, !over(t)));
        (void)bm_span_end(span);
    }
    bm_tracing_close(&t->tracing);
    return BM_OK;
}

/* Collective. Copies the model to the host; rank 0 writes it to `path` unless
 * that is NULL. */
static bm_status write_model(bm_training *t, global_model *model,
                             const char *path)
{
    double since = bm_clock();
    bm_status status = BM_OK;

    BM_TRY(enter(t, model));
    BM_TRY(leave(t));
    if (bm_comm_rank(t->comm) == 0 && path != NULL)
        status = bm_recogniser_write(&t->net, path, t->host);
    status = bm_comm_agree(t->comm, status);
    t->model_s += bm_clock() - since;
    return status;
}

static bm_status write_models(bm_training *t)
{
    if (bm_trainer_has_ema(t->trainer))
        BM_TRY(write_model(t, bm_trainer_ema, t->run->ema_path));
    return write_model(t, bm_trainer_global, t->run->model_path);
}

/* Collective. Calls write(), and again some seconds later while the disk is
 * full. */
static bm_status try_to(bm_training *t, bm_status (*write)(bm_training *))
{
    static const struct timespec pauses[] = {{1, 0}, {3, 0}};
    bm_status status = write(t);

    for (size_t i = 0; i < 2 && bm_disk_failed(status); i++) {
        nanosleep(&pauses[i], NULL);
        status = write(t);
    }
    return status;
}

/* The last checkpoint, if it is missing, and the models. What can be written is
 * written, before the first failure is returned. A failure that a later success
 * followed is agreed on again, so that one rank reports it. */
static bm_status write_results(bm_training *t)
{
    bm_status checkpoint = BM_OK, models = BM_OK;
    char why[1024] = "";

    if (t->unsaved != BM_OK) {
        checkpoint = try_to(t, bm_training_save_last);
        snprintf(why, sizeof why, "%s", bm_last_message());
    }
    if (checkpoint != BM_OK && !bm_disk_failed(checkpoint))
        return checkpoint;
    models = try_to(t, write_models);
    if (bm_disk_failed(models))
        return BM_FAIL(models,
                       "%s; %s and run the same command again: it resumes "
                       "after block %lld of %lld",
                       bm_last_message(), bm_training_remedy(models),
                       (long long)t->saved, (long long)t->blocks);
    BM_TRY(models);
    if (checkpoint != BM_OK)
        checkpoint = BM_FAIL(checkpoint,
                             "the model is complete, but its last checkpoint "
                             "is not: %s",
                             why);
    return bm_comm_agree(t->comm, checkpoint);
}

/* After the last epoch: writes the models, evaluates data.test, reports. */
static bm_status finish(bm_training *t)
{
    bm_evaluation e = {0};

    BM_TRY(write_results(t));
    if (t->on_test != NULL)
        BM_TRY(evaluate(t, bm_trainer_global, t->on_test, NULL, "test", &e));
    bm_report_end(t, t->on_test != NULL ? &e : NULL);
    return BM_OK;
}

/* Blocks done of the epoch that is under way. */
static int64_t blocks_within(const bm_training *t)
{
    bm_position at = bm_trainer_position(t->trainer);

    return at.block % bm_reader_blocks_of(t->reader, at.epoch);
}

/* A model of fewer epochs cannot be had any more. */
static bm_status check_epochs(const bm_training *t)
{
    int64_t more = blocks_within(t);

    if (t->epochs > t->n_epochs)
        return BM_FAIL(BM_ERR_CONFIG,
                       "train.epochs = %ld, but %lld epochs are done; give "
                       "another --out to train so few",
                       t->n_epochs, (long long)t->epochs);
    if (t->epochs == t->n_epochs && more > 0)
        return BM_FAIL(BM_ERR_CONFIG,
                       "train.epochs = %ld, but %s of epoch %lld %s done; give "
                       "another --out to train so few",
                       t->n_epochs,
                       bm_count_noun((long long)more, "block").text,
                       (long long)t->epochs + 1, more == 1 ? "is" : "are");
    return BM_OK;
}

/* job.metrics must not replace a file of a run or of the data, the configuration, or
 * anything but metrics. */
static bm_status check_metrics(const bm_settings *set, const char *config)
{
    const char *metrics = set->job.metrics;
    const bm_output out = {"job.metrics", metrics[0] != '\0' ? metrics : NULL};
    const char *const inputs[] = {set->data.train, set->data.dev,
                                  set->data.test, config, NULL};

    BM_TRY(bm_outputs_check(&out, 1, inputs));
    if (out.path != NULL && !bm_metrics_may_replace(metrics))
        return BM_FAIL(BM_ERR_CREATE,
                       "job.metrics = %s would replace a file that is not of "
                       "metrics; give another file",
                       metrics);
    return BM_OK;
}

static bm_status work(bm_training *t)
{
    bool stopped = false;

    BM_TRY(bm_training_start(t));
    if (!t->run->fresh || t->newest[0] != '\0') {
        BM_TRY(bm_training_resume(t));
        bm_training_best_read(t);
    }
    if (t->origin.branches)
        BM_TRY(bm_training_branch(t));
    BM_TRY(bm_comm_agree(t->comm, check_epochs(t)));
    if (over(t))
        log_over(t);
    BM_TRY(bm_run_begin(t->run, t->comm, t->config));
    BM_TRY(bm_comm_agree(t->comm, bm_comm_rank(t->comm) == 0
                                      ? check_metrics(t->set, NULL)
                                      : BM_OK));
    BM_TRY(bm_comm_agree(t->comm, bm_telemetry_open(&t->telemetry, &t->set->job,
                                                    t->run->directory,
                                                    t->run->journal)));
    BM_TRY(bm_report_start(t));
    t->started = true;
    if (bm_comm_rank(t->comm) == 0 && t->blocks == 0 && bm_log_shows(BM_NOTE))
        bm_model_print(t->net.model, stderr);
    if (t->origin.path[0] != '\0') /* from now on it is not needed */
        BM_TRY(bm_training_save(t, false));
    if (blocks_within(t) == 0)
        BM_TRY(log_model(t, false));
    bm_report_begin(t);
    BM_TRY(train_blocks(t, &stopped));
    if (!stopped || over(t))
        return finish(t);
    BM_TRY(write_model(t, bm_trainer_global, NULL));
    bm_report_stop(t, enough(t));
    return enough(t) ? BM_OK : BM_STOPPED;
}

static bm_status train_on(bm_device *device, bm_comm *comm,
                          const bm_config *config, const bm_settings *set,
                          const char *directory, long until, double began)
{
    bm_run run = BM_RUN_CLOSED;
    bm_training t = {.comm = comm,
                     .set = set,
                     .config = config,
                     .run = &run,
                     .device = device,
                     .until = until,
                     .began = began,
                     .error = NAN};
    bm_status status = BM_OK;

    BM_TRY(bm_run_newest(directory, config, comm, t.newest, sizeof t.newest));
    status = bm_training_open(&t);
    if (status == BM_OK)
        status = bm_run_open(&run, directory, comm, config);
    if (status == BM_OK)
        status = work(&t);
    if (status != BM_OK && status != BM_STOPPED && t.started)
        bm_report_failure(&t, status);
    bm_training_close(&t);
    bm_run_close(&run);
    return status;
}

/* One rank computes for all workers: other cores are idle. */
static void log_idle_cores(const bm_device *device, const bm_settings *s,
                           int ranks)
{
    long cores = bm_cores();
    long use = s->job.workers < cores ? s->job.workers : cores;

    if (ranks == 1 && s->job.threads == 1 && use > 1 &&
        strcmp(device->name, "cpu") == 0)
        bm_log(
            BM_NOTE,
            "one of %ld cores is used; -n %ld uses %ld, with the same result",
            cores, use, use);
}

/* A run may be meant that goes on in another folder. */
static void log_random_start(const char *config, const char *directory,
                             const bm_train_settings *s)
{
    char from[2048], other[2048];

    if (s->init[0] == '\0' && s->from[0] == '\0' &&
        bm_run_of(config, from, sizeof from) &&
        !bm_run_of(directory, other, sizeof other))
        bm_log(BM_NOTE,
               "begins with random weights and the settings of %s; to go on "
               "from its model add --from %s",
               from, from);
}

static bm_status train_in(bm_comm *comm, bm_config *config, bm_settings *set,
                          const char *directory, long until, double began)
{
    bm_device device = {0};
    bm_status status = BM_OK;

    BM_TRY(bm_run_same_settings(comm, config));
    BM_TRY(bm_machine_open(&device, comm, config, set, bm_comm_size(comm)));
    bm_device_log(&device);
    log_idle_cores(&device, set, bm_comm_size(comm));
    status = train_on(&device, comm, config, set, directory, until, began);
    bm_device_close(&device);
    return status;
}

/* --dry-run: prints what would be done, and fails as training would. */
static bm_status dry_run(const bm_arguments *a, bm_settings *set,
                         bm_config *config, const char *directory, long ranks)
{
    char newest[2200];
    long threads = set->job.threads; /* which bm_explain settles for itself */
    bool gpus = strcmp(set->job.device, "cpu") != 0;
    bool bound = strcmp(set->job.bind, "auto") == 0;

    BM_TRY(bm_run_newest(directory, config, NULL, newest, sizeof newest));
    BM_TRY(bm_explain(config, set, (int)ranks, newest, stdout));
    BM_TRY(
        bm_dry_run_print(a, bm_job_allocation(), gpus, bound, threads, stdout));
    return bm_run_check(directory, config);
}

static bm_status train(const bm_arguments *a)
{
    const char *out = bm_argument(a, "out");
    char own[2048];
    bm_settings set;
    bm_config *config = NULL;
    bm_comm *comm = NULL;
    bm_job_plan plan = {.stoppable = true};
    long ranks = 0, until = 0;
    double began = bm_clock();
    bm_status status = BM_OK;

    if (out == NULL)
        out = bm_run_of(a->nouns[0], own, sizeof own) ? own : "run";
    /* Reports invalid settings before mpirun starts. */
    BM_TRY(bm_argument_number(a, "until", 0, 1, 1000000, &until));
    BM_TRY(bm_argument_number(a, "max-restarts", 100, 0, 1000000,
                              &plan.launch.max_restarts));
    BM_TRY_DONE(bm_settings_read(a, a->nouns[0], &config, &set));
    BM_TRY_DONE(check_metrics(&set, a->nouns[0]));
    BM_TRY_DONE(bm_job_ranks(a, out, &ranks));
    BM_TRY_DONE(bm_settings_fit(config, &set, ranks));
    if (bm_argument(a, "dry-run") != NULL) {
        status = dry_run(a, &set, config, out, ranks);
        goto done;
    }
    plan.launch.run = out;
    plan.launch.limits =
        (bm_watchdog_limits){.start_s = set.job.start_limit,
                             .hang_s = set.job.hang_limit,
                             .hang_factor = set.job.hang_factor};
    BM_TRY_DONE(bm_job_start(a, &plan, &comm));
    if (comm == NULL)
        goto done;
    if (bm_comm_rank(comm) == 0)
        log_random_start(a->nouns[0], out, &set.train);
    status = train_in(comm, config, &set, out, until, began);
done:
    bm_config_free(config);
    return status;
}

static const bm_flag flags[] = {
    {"out", "RUN", "directory of the run; default: run, or CONFIG if it is one",
     'o', false},
    BM_ALLOCATION_FLAGS,
    {"set", "SECTION.KEY=VALUE", "change a setting; may be repeated", 0, true},
    {"from", "RUN[@EPOCH]",
     "start from the model and the states of another run, at its newest "
     "checkpoint or after EPOCH epochs",
     0, false},
    {"until", "EPOCH",
     "stop after this epoch; the same command without it goes on", 0, false},
    {"max-restarts", "N",
     "with -n: restart after lost or hanging ranks at most so often; default: "
     "100, 0: never",
     0, false},
    {"dry-run", NULL,
     "check settings and data, print what would be done, and exit", 0, false},
    {0},
};

const bm_verb bm_verb_train = {
    .name = "train",
    .nouns = "CONFIG|RUN",
    .help = "train a recogniser, or resume a run",
    .text = "  bmuf train my.ini --out run/1 -n 4\n"
            "  bmuf train my.ini --out run/1 -n 16 --hosts a:8,b:8\n"
            "  bmuf train run/1 --set train.epochs=60\n"
            "  mpirun -np 16 bmuf train my.ini --out run/1\n"
            "  bmuf train new.ini --from run/1@10 --out run/2\n\n"
            "CONFIG is a text file. It needs data and a network:\n"
            "  [data]\n"
            "  train = data/train\n"
            "  dev = data/dev\n"
            "  [model]\n"
            "  net = stack:3 blstm:320*4 linear\n"
            "and with -n a number of workers, of which ranks carry some each:\n"
            "  [job]\n"
            "  workers = 16\n\n"
            "The same command on the same directory, or bmuf train RUN, "
            "resumes the run from\nits last checkpoint, also on another "
            "number of ranks. On SIGTERM or Ctrl-C it\nfinishes the block, "
            "writes a checkpoint and exits with 75; a second signal kills\n"
            "it. bmuf options lists the settings.\n\n"
            "--from starts a new run from another one, whose settings may "
            "differ. It is\nresumed as any run, and does not need the other "
            "one again.\n\n"
            "With -n, Open MPI sends messages of up to 8 MiB over TCP without "
            "a handshake,\nunless the environment sets its limits. If you "
            "call mpirun yourself, set them as\ndocs/scaling.md describes.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = train,
};
