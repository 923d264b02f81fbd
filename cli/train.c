/*
 * train.c - bmuf train: blocks, evaluations, checkpoints, until the epochs are
 * over or somebody asks for an end.
 */
#include "bmuf/evaluate.h"
#include "bmuf/learner.h"
#include "cli/explain.h"
#include "cli/job.h"
#include "cli/progress.h"
#include "cli/recogniser.h"
#include "cli/run.h"
#include "cli/verbs.h"
#include "cli/version.h"
#include "core/clock.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Numbers of a checkpoint, after those of the schedule. */
enum {
    REFERENCE = BM_SCHEDULE_STATE,
    EPOCHS_DONE,
    BLOCKS_DONE,
    FRAMES,
    SECONDS,
    BEST_LER, /* of the evaluations on dev; negative: none yet */
    ENDED,    /* the schedule ended training */
};

typedef struct training {
    bm_comm *comm;
    const bm_settings *set;
    const bm_config *config;
    bm_run *run;

    bm_dataset *train, *dev, *test;
    bm_recogniser net;
    bm_reader *reader;
    bm_learner *learner;
    bm_trainer *trainer;
    bm_evaluator *on_dev, *on_test;
    bm_schedule schedule;
    float *kept; /* [n] on the backend: w, while something else is in it */
    float *host; /* [n] */
    bm_state *states;
    size_t n_states;
    char *config_text;

    int64_t epochs, blocks; /* done */
    double frames, seconds, best;
    bool ended;
    bool terminal;
} training;

static bm_params *params_of(const training *t)
{
    return bm_model_params(t->net.model);
}

static int hosted(const training *t, int *first)
{
    int rank = bm_comm_rank(t->comm), n = (int)t->set->job.workers;

    *first = bm_comm_first(t->comm, n, rank);
    return bm_comm_first(t->comm, n, rank + 1) - *first;
}

static bm_status open_data(training *t)
{
    const bm_data_settings *d = &t->set->data;

    BM_TRY(bm_dataset_open(&t->train, d->train));
    if (d->dev[0] != '\0')
        BM_TRY(bm_dataset_open(&t->dev, d->dev));
    if (d->test[0] != '\0')
        BM_TRY(bm_dataset_open(&t->test, d->test));
    return BM_OK;
}

static bm_status open_network(training *t)
{
    const bm_settings *s = t->set;
    int first = 0, n = hosted(t, &first);
    bm_params *p = NULL;

    BM_TRY(bm_recogniser_new(&t->net, &s->model, t->train, n,
                             (uint64_t)s->job.seed));
    if (t->dev != NULL)
        BM_TRY(bm_recogniser_fits(&t->net, t->dev));
    if (t->test != NULL)
        BM_TRY(bm_recogniser_fits(&t->net, t->test));
    p = params_of(t);
    t->host = malloc((p->n + 1) * sizeof *t->host);
    if (t->host == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu weights", p->n);
    return bm_alloc(p->be, p->n, &t->kept);
}

/* Every rank for itself; what can fail on one of them only. */
static bm_status open_alone(training *t)
{
    BM_TRY(open_data(t));
    return open_network(t);
}

static bm_status open_evaluator(training *t, bm_dataset *data,
                                bm_evaluator **out)
{
    if (data == NULL)
        return BM_OK;
    return bm_evaluator_open(out, t->comm, t->net.model, t->net.be, data,
                             &t->set->plan, (int)t->set->job.workers);
}

static bm_status open_trainer(training *t)
{
    bm_task task = {0};
    int first = 0, n = hosted(t, &first);
    uint64_t seed = (uint64_t)t->set->job.seed;
    bm_reader_settings reading = {.plan = t->set->plan,
                                  .workers = (int)t->set->job.workers,
                                  .first = first,
                                  .last = first + n,
                                  .seed = seed};
    bm_position start = {0, 0};

    BM_TRY(bm_reader_open(&t->reader, t->train, t->net.be, &reading, start));
    BM_TRY(bm_learner_open(&t->learner, t->net.model, t->reader, &t->set->model,
                           seed, first));
    task = bm_learner_task(t->learner);
    BM_TRY(
        bm_trainer_open(&t->trainer, t->config, t->comm, params_of(t), &task));
    BM_TRY(open_evaluator(t, t->dev, &t->on_dev));
    BM_TRY(open_evaluator(t, t->test, &t->on_test));
    t->schedule = bm_schedule_make(&t->set->schedule, t->set->train.rate);
    t->n_states = bm_trainer_states(t->trainer);
    t->states = calloc(t->n_states, sizeof *t->states);
    if (t->states == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a list of states");
    t->best = -1;
    return BM_OK;
}

static void close_all(training *t)
{
    bm_evaluator_close(t->on_dev);
    bm_evaluator_close(t->on_test);
    bm_trainer_close(t->trainer);
    bm_learner_close(t->learner);
    bm_reader_close(t->reader);
    bm_free(t->net.be, t->kept);
    free(t->host);
    free(t->states);
    free(t->config_text);
    bm_recogniser_close(&t->net);
    bm_dataset_close(t->train);
    bm_dataset_close(t->dev);
    bm_dataset_close(t->test);
}

/* ---- checkpoints -------------------------------------------------------- */

static bm_checkpoint describe(training *t)
{
    bm_checkpoint c = {.params = params_of(t),
                       .states = t->states,
                       .position = bm_trainer_position(t->trainer),
                       .manifest = t->train->hash};

    c.n_states = bm_trainer_state(t->trainer, t->states, t->n_states);
    bm_schedule_save(&t->schedule, c.numbers);
    c.numbers[REFERENCE] = bm_trainer_reference(t->trainer);
    c.numbers[EPOCHS_DONE] = (double)t->epochs;
    c.numbers[BLOCKS_DONE] = (double)t->blocks;
    c.numbers[FRAMES] = t->frames;
    c.numbers[SECONDS] = t->seconds;
    c.numbers[BEST_LER] = t->best;
    c.numbers[ENDED] = t->ended;
    return c;
}

static bm_status save(training *t)
{
    bm_text texts[] = {
        {"config", t->config_text}, {"program", bm_version()}, {0}};
    bm_checkpoint c = describe(t);
    char path[2200];
    uint64_t bytes = 0;
    double since = bm_clock();

    c.texts = texts;
    bm_checkpoint_path(t->run->checkpoints, t->blocks, path, sizeof path);
    BM_TRY(bm_checkpoint_save(path, t->comm, &c, &bytes));
    if (bm_comm_rank(t->comm) == 0)
        bm_checkpoint_prune(t->run->checkpoints, (size_t)t->set->train.keep);
    bm_journal_write(
        t->run->journal, "checkpoint",
        (bm_field[]){{"block", (double)t->blocks, NULL},
                     {"file", 0, path + strlen(t->run->directory) + 1},
                     {"bytes", (double)bytes, NULL},
                     {"seconds", bm_clock() - since, NULL},
                     {0}});
    return BM_OK;
}

static void take_over(training *t, const bm_checkpoint *c)
{
    bm_schedule_load(&t->schedule, c->numbers);
    t->epochs = (int64_t)c->numbers[EPOCHS_DONE];
    t->blocks = (int64_t)c->numbers[BLOCKS_DONE];
    t->frames = c->numbers[FRAMES];
    t->seconds = c->numbers[SECONDS];
    t->best = c->numbers[BEST_LER];
    t->ended = c->numbers[ENDED] != 0;
}

static bm_status check_manifest(const training *t, const bm_checkpoint *c,
                                const char *path)
{
    if (c->manifest == t->train->hash)
        return BM_OK;
    return BM_FAIL(BM_ERR_CONFIG,
                   "%s was trained on other data than %s holds now; give "
                   "another --out",
                   path, t->set->data.train);
}

/* The newest checkpoint that is whole; each that is not is named. Directories
 * may look different to other hosts: what rank 0 sees is what there is. */
static bm_status resume(training *t)
{
    enum { MOST = 1024 };
    int64_t blocks[MOST] = {0};
    size_t n = bm_checkpoint_list(t->run->checkpoints, blocks, MOST);

    BM_TRY(bm_comm_broadcast_bytes(t->comm, &n, sizeof n, 0));
    BM_TRY(bm_comm_broadcast_bytes(t->comm, blocks, sizeof blocks, 0));
    for (size_t i = 0; i < n; i++) {
        bm_checkpoint c = describe(t);
        char path[2200];
        bm_status status = BM_OK;

        bm_checkpoint_path(t->run->checkpoints, blocks[i], path, sizeof path);
        status = bm_checkpoint_load(path, t->comm, &c);
        if (status == BM_ERR_MEMORY || status == BM_ERR_COMM)
            return status;
        if (status != BM_OK) {
            if (bm_comm_rank(t->comm) == 0)
                bm_log(BM_WARNING, "%s cannot be used, trying an older one: %s",
                       path, bm_last_error());
            continue;
        }
        BM_TRY(bm_comm_agree(t->comm, check_manifest(t, &c, path)));
        take_over(t, &c);
        bm_log(BM_NOTE, "going on from %s", path);
        return bm_trainer_resume(t->trainer, c.position, c.numbers[REFERENCE]);
    }
    if (n == 0)
        return BM_OK;
    return bm_comm_agree(
        t->comm, BM_FAIL(BM_ERR_FORMAT,
                         "%s: none of the %zu checkpoints can be used; to "
                         "begin anew give another --out",
                         t->run->checkpoints, n));
}

/* ---- evaluation --------------------------------------------------------- */

static void journal_eval(training *t, const char *data, const bm_evaluation *e)
{
    bm_journal_write(
        t->run->journal, "eval",
        (bm_field[]){
            {"epoch", (double)t->epochs, NULL},
            {"block", (double)t->blocks, NULL},
            {"data", 0, data},
            {"loss", bm_evaluation_loss(e), NULL},
            {"ler", bm_evaluation_ler(e), NULL},
            {"wer", e->words > 0 ? e->word_errors / e->words : NAN, NULL},
            {"sequences", e->sequences, NULL},
            {"wrong", e->wrong, NULL},
            {"skipped", e->score.skipped, NULL},
            {"blank", e->score.blank / e->score.frames, NULL},
            {"frames", e->frames, NULL},
            {"seconds", e->seconds, NULL},
            {0}});
}

/* The network gets the global model, the host a copy of it; what was in the
 * network is kept. */
static bm_status enter_global(training *t)
{
    bm_params *p = params_of(t);

    bm_axpby(p->be, p->n, 1, p->w, 0, t->kept);
    BM_TRY(bm_trainer_global(t->trainer, p->w));
    bm_get(p->be, t->host, p->w, p->n);
    return bm_sync(p->be);
}

static bm_status leave_global(training *t)
{
    bm_params *p = params_of(t);

    bm_axpby(p->be, p->n, 1, t->kept, 0, p->w);
    return bm_sync(p->be);
}

static bm_status evaluate(training *t, bm_evaluator *e, const char *data,
                          bm_evaluation *out)
{
    BM_TRY(enter_global(t));
    BM_TRY(bm_evaluate(e, NULL, out));
    BM_TRY(leave_global(t));
    journal_eval(t, data, out);
    return BM_OK;
}

static bm_status end_epoch(training *t)
{
    bm_evaluation e = {0};

    t->epochs++;
    if (t->on_dev == NULL)
        return BM_OK;
    BM_TRY(evaluate(t, t->on_dev, "dev", &e));
    t->ended = bm_schedule_evaluated(&t->schedule, bm_evaluation_ler(&e));
    if (t->best < 0 || bm_evaluation_ler(&e) < t->best)
        t->best = bm_evaluation_ler(&e);
    bm_log(BM_NOTE,
           "epoch %lld/%ld: dev loss %.4g, label errors %.2f %%, blank %.0f %%",
           (long long)t->epochs, t->set->train.epochs, bm_evaluation_loss(&e),
           100 * bm_evaluation_ler(&e),
           100 * e.score.blank / fmax(e.score.frames, 1));
    return BM_OK;
}

/* ---- blocks ------------------------------------------------------------- */

static void report_block(training *t, const bm_block_report *r, double rate,
                         double frames, double seconds, double stall,
                         int64_t blocks)
{
    bool per_frame = bm_model_loss(t->net.model)->per_frame;
    double counted = per_frame ? r->score.frames : r->score.sequences;
    double loss = r->score.loss / counted;
    double error = r->score.errors / r->score.count;

    bm_journal_write(
        t->run->journal, "block",
        (bm_field[]){{"epoch", (double)r->at.epoch, NULL},
                     {"block", (double)r->at.block, NULL},
                     {"loss", loss, NULL},
                     {"error", error, NULL},
                     {"rate", rate, NULL},
                     {"frames", frames, NULL},
                     {"seconds", seconds, NULL},
                     {"frames_per_s", frames / seconds, NULL},
                     {"compute_s", r->compute_s - stall, NULL},
                     {"wait_s", r->wait_s, NULL},
                     {"exchange_s", r->exchange_s, NULL},
                     {"stall_s", stall, NULL},
                     {"g_norm", r->update.g_norm, NULL},
                     {"delta_norm", r->update.delta_norm, NULL},
                     {"cos_g_delta", r->update.cos, NULL},
                     {"skipped", r->score.skipped, NULL},
                     {"bad_steps", r->bad_steps, NULL},
                     {"left_out", r->left_out, NULL},
                     {"blank", r->score.blank / r->score.frames, NULL},
                     {0}});
    if (t->terminal)
        bm_progress_show(&(bm_progress){
            .epoch = (long)r->at.epoch + 1,
            .epochs = t->set->train.epochs,
            .block = (long)r->at.block + 1,
            .blocks = (long)blocks,
            .loss = loss,
            .frames_per_s = frames / seconds,
            .exchange_share = (r->exchange_s + r->wait_s) / seconds,
            .workers = t->set->job.workers});
    else
        bm_log(BM_NOTE,
               "epoch %lld/%ld block %lld/%lld loss %.4g error %.1f %% rate "
               "%.3g %.0f frames/s",
               (long long)r->at.epoch + 1, t->set->train.epochs,
               (long long)r->at.block + 1, (long long)blocks, loss, 100 * error,
               rate, frames / seconds);
}

static double rate_now(const training *t)
{
    bm_position at = bm_trainer_position(t->trainer);
    int64_t blocks = bm_reader_blocks(t->reader);

    return bm_schedule_rate(&t->schedule,
                            (double)t->epochs +
                                (double)(at.block % blocks) / (double)blocks);
}

static bm_status train_block(training *t)
{
    bm_block_report r = {0};
    double since = bm_clock(), rate = rate_now(t), seconds = 0, frames = 0;
    double met = 0;

    BM_TRY(bm_trainer_block(t->trainer, rate, &r));
    frames = bm_learner_frames(t->learner);
    met = bm_clock();
    BM_TRY(bm_comm_sum(t->comm, &frames, 1));
    seconds = bm_clock() - since;
    r.wait_s += bm_clock() - met;
    t->blocks++;
    t->frames += frames;
    t->seconds += seconds;
    report_block(t, &r, rate, frames, seconds, bm_reader_stall(t->reader),
                 bm_reader_blocks(t->reader));
    if (r.at.block + 1 == bm_reader_blocks(t->reader))
        BM_TRY(end_epoch(t));
    return BM_OK;
}

/* The same answer on all ranks: has any of them been asked to stop? */
static bm_status asked_to_stop(training *t, bool *out)
{
    int asked = bm_job_signal();

    BM_TRY(bm_comm_max(t->comm, &asked, 1));
    *out = asked != 0;
    return BM_OK;
}

static bool over(const training *t)
{
    return t->ended || t->epochs >= t->set->train.epochs;
}

static bm_status train_blocks(training *t, bool *stopped)
{
    long every = t->set->train.checkpoint_every;
    int64_t saved = t->blocks;

    *stopped = false;
    while (!over(t) && !*stopped) {
        BM_TRY(train_block(t));
        BM_TRY(asked_to_stop(t, stopped));
        if (*stopped || over(t) || (every > 0 && t->blocks % every == 0)) {
            BM_TRY(save(t));
            saved = t->blocks;
        }
    }
    return saved == t->blocks ? BM_OK : save(t);
}

/* ---- the whole ---------------------------------------------------------- */

static void journal_start(const training *t)
{
    const bm_settings *s = t->set;

    bm_journal_write(t->run->journal, "start",
                     (bm_field[]){{"attempt", t->run->attempt, NULL},
                                  {"version", 0, bm_version()},
                                  {"workers", (double)s->job.workers, NULL},
                                  {"ranks", bm_comm_size(t->comm), NULL},
                                  {"threads", (double)s->job.threads, NULL},
                                  {"strategy", 0, s->train.strategy},
                                  {"net", 0, s->model.net},
                                  {"weights", (double)params_of(t)->n, NULL},
                                  {"sequences", (double)t->train->n, NULL},
                                  {"frames", (double)t->train->frames, NULL},
                                  {"blocks_per_epoch",
                                   (double)bm_reader_blocks(t->reader), NULL},
                                  {0}});
}

static void digest(const training *t, char *out, size_t room)
{
    XXH128_hash_t sum = XXH3_128bits(t->host, params_of(t)->n * sizeof(float));

    snprintf(out, room, "%016llx%016llx", (unsigned long long)sum.high64,
             (unsigned long long)sum.low64);
}

/* What is left when it is over: the model, the last numbers, a table. */
static bm_status finish(training *t)
{
    char sum[40];
    bm_evaluation e = {0};
    bm_status status = BM_OK;

    BM_TRY(enter_global(t));
    BM_TRY(leave_global(t));
    if (bm_comm_rank(t->comm) == 0)
        status = bm_recogniser_write(&t->net, t->run->model_path, t->host);
    BM_TRY(bm_comm_agree(t->comm, status));
    if (t->on_test != NULL)
        BM_TRY(evaluate(t, t->on_test, "test", &e));
    digest(t, sum, sizeof sum);
    bm_journal_write(
        t->run->journal, "end",
        (bm_field[]){{"reason", 0, t->ended ? "converged" : "done"},
                     {"epochs", (double)t->epochs, NULL},
                     {"blocks", (double)t->blocks, NULL},
                     {"frames", t->frames, NULL},
                     {"seconds", t->seconds, NULL},
                     {"digest", 0, sum},
                     {0}});
    bm_progress_close();
    if (bm_comm_rank(t->comm) != 0)
        return BM_OK;
    printf("epochs    %lld%s\nblocks    %lld\nframes    %.0f\n"
           "seconds   %.1f (%.0f frames/s)\n",
           (long long)t->epochs, t->ended ? " (ended by the schedule)" : "",
           (long long)t->blocks, t->frames, t->seconds,
           t->frames / fmax(t->seconds, 1e-9));
    if (t->best >= 0)
        printf("dev LER   %.2f %% at best\n", 100 * t->best);
    if (t->on_test != NULL)
        printf("test LER  %.2f %%\n", 100 * bm_evaluation_ler(&e));
    printf("model     %s\ndigest    %s\n", t->run->model_path, sum);
    return BM_OK;
}

static void journal_stop(training *t)
{
    bm_journal_write(t->run->journal, "end",
                     (bm_field[]){{"reason", 0, "stopped"},
                                  {"epochs", (double)t->epochs, NULL},
                                  {"blocks", (double)t->blocks, NULL},
                                  {"frames", t->frames, NULL},
                                  {"seconds", t->seconds, NULL},
                                  {0}});
    bm_progress_close();
    bm_log(BM_NOTE, "stopped after block %lld; the same command goes on",
           (long long)t->blocks);
}

/* All ranks find the same; one tells it. */
static void log_advice(void *self, const char *text)
{
    const training *t = self;

    if (bm_comm_rank(t->comm) == 0)
        bm_log(BM_WARNING, "%s", text);
}

/* What is unwise about the settings, or too much so. */
static bm_status warn(training *t)
{
    bm_setting what = bm_setting_of(t->set, t->train);

    return bm_advise(&what, log_advice, t);
}

static bm_status work(training *t)
{
    bool stopped = false;

    BM_TRY(bm_comm_agree(t->comm, open_alone(t)));
    BM_TRY(bm_comm_agree(t->comm, open_trainer(t)));
    BM_TRY(bm_comm_agree(t->comm, warn(t)));
    if (!t->run->fresh)
        BM_TRY(resume(t));
    if (over(t))
        bm_log(BM_NOTE,
               "%s has been trained to its end already; a larger train.epochs "
               "goes on",
               t->run->directory);
    journal_start(t);
    if (bm_comm_rank(t->comm) == 0 && t->blocks == 0)
        bm_model_print(t->net.model, stderr);
    t->terminal = bm_progress_open(bm_comm_rank(t->comm) == 0);
    BM_TRY(train_blocks(t, &stopped));
    if (!stopped || over(t))
        return finish(t);
    journal_stop(t);
    return BM_STOPPED;
}

static bm_status keep_config_text(training *t)
{
    size_t size = 0;
    FILE *memory = open_memstream(&t->config_text, &size);
    bm_status status = BM_OK;

    if (memory == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for a configuration");
    status = bm_config_write(t->config, bm_train_sections(), memory);
    fclose(memory);
    return status;
}

static bm_status train_in(bm_comm *comm, const bm_config *config,
                          const bm_settings *set, const char *directory)
{
    bm_run run;
    training t = {.comm = comm, .set = set, .config = config, .run = &run};
    bm_status status = BM_OK;

    BM_TRY(bm_job_threads(comm, set->job.threads));
    status = bm_run_open(&run, directory, comm, config);
    if (status == BM_OK)
        status = keep_config_text(&t);
    if (status == BM_OK)
        status = work(&t);
    if (status != BM_OK && status != BM_STOPPED && run.journal != NULL)
        bm_journal_write(run.journal, "end",
                         (bm_field[]){{"reason", 0, bm_status_text(status)},
                                      {"message", 0, bm_last_error()},
                                      {0}});
    bm_progress_close();
    close_all(&t);
    bm_run_close(&run);
    return status;
}

static bm_status train(const bm_arguments *a)
{
    const char *out = bm_argument(a, "out");
    bm_settings set;
    bm_config *config = NULL;
    bm_comm *comm = NULL;
    long ranks = 0;
    bm_status status = BM_OK;

    /* Before anything starts: settings are wrong on all ranks alike. */
    BM_TRY(bm_argument_number(a, "ranks", 1, 1, 1 << 20, &ranks));
    BM_TRY(bm_settings_read(a, a->nouns[0], ranks, &config, &set));
    if (bm_argument(a, "dry-run") != NULL) {
        status = bm_explain(&set, (int)ranks, stdout);
        goto done;
    }
    BM_TRY_DONE(bm_job_start(a, &comm));
    if (comm == NULL) {
        status = bm_job_result();
        goto done;
    }
    if (bm_argument(a, "ranks") == NULL) { /* as many as mpirun started */
        bm_config_free(config);
        config = NULL;
        BM_TRY_DONE(bm_settings_read(a, a->nouns[0], bm_comm_size(comm),
                                     &config, &set));
    }
    status = train_in(comm, config, &set, out != NULL ? out : "run");
done:
    bm_config_free(config);
    return status;
}

static const bm_flag flags[] = {
    {"out", 'o', "RUN", "directory of the run; default: run", false},
    {"ranks", 'n', "RANKS", "start so many MPI processes", false},
    {"set", 0, "SECTION.KEY=VALUE", "change a setting; may be repeated", true},
    {"dry-run", 0, NULL, "check everything and say what would be done", false},
    {0},
};

const bm_verb bm_verb_train = {
    .name = "train",
    .nouns = "CONFIG",
    .help = "train a recogniser, or go on with one",
    .text = "  bmuf train my.ini --out run/1 -n 4\n"
            "  mpirun -np 16 bmuf train my.ini --out run/1\n\n"
            "The same command on the same directory goes on where it stopped, "
            "also on\nanother number of ranks. SIGTERM or Ctrl-C finishes the "
            "block and writes a\ncheckpoint (exit 75); a second one stops at "
            "once. bmuf options lists the settings.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = train,
};
