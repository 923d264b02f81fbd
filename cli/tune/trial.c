/* trial.c - a trial: its configuration, its process, and what came of it. */
#include "cli/placement/placement.h"
#include "cli/tune/tuning.h"
#include "core/file/file.h"

#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_LOG = 1 << 24 };

void bm_trial_name(bm_tune_job job, char out[32])
{
    if (job.seed == 0)
        snprintf(out, 32, "t%03zu", job.trial);
    else
        snprintf(out, 32, "t%03zu-%ld", job.trial, job.seed + 1);
}

double bm_trial_value(const bm_tuning *t, size_t trial, size_t k)
{
    if (trial == 0 && !t->space.given[k].there)
        return NAN;
    return bm_axis_value(&t->space.axis[k],
                         bm_search_point(t->search, trial)[k]);
}

const char *bm_trial_text(const bm_tuning *t, size_t trial, size_t k,
                          char out[BM_AXIS_TEXT])
{
    const bm_given_value *given = &t->space.given[k];

    if (trial == 0)
        return given->text != NULL ? given->text : given->number;
    bm_axis_text(&t->space.axis[k], bm_search_point(t->search, trial)[k], out);
    return out;
}

static void path_of(const bm_tuning *t, bm_tune_job job, const char *ending,
                    char out[PATH_MAX])
{
    char name[32];

    bm_trial_name(job, name);
    snprintf(out, PATH_MAX, "%s/trials/%s%s", t->directory, name, ending);
}

void bm_trial_directory(const bm_tuning *t, bm_tune_job job, char out[PATH_MAX])
{
    path_of(t, job, "", out);
}

bm_status bm_trial_settings(const bm_tuning *t, const bm_assignments *a,
                            bm_config **config, bm_settings *out)
{
    const char *more[BM_SPACE_FIXED + BM_SEARCH_AXES + 2] = {NULL};
    bm_config *own = NULL;
    char epochs[64];
    size_t n = 0;
    bm_status status = BM_OK;

    snprintf(epochs, sizeof epochs, "train.epochs=%ld", t->epochs);
    more[n++] = epochs;
    for (size_t i = 0; i < a->n; i++)
        more[n++] = a->row[i].text;
    BM_TRY(bm_settings_read_with(t->arguments, t->path, more, &own, out));
    status = bm_settings_fit(own, out, t->ranks);
    if (status == BM_OK)
        *config = own;
    else
        bm_config_free(own);
    return status;
}

/* ---- what --over gives -------------------------------------------------- */

static bool is_valid(const bm_tuning *t, const bm_assignments *a)
{
    bm_config *config = NULL;
    bm_settings set;
    bool valid = bm_trial_settings(t, a, &config, &set) == BM_OK;

    bm_config_free(config);
    return valid;
}

/* What is checked of an axis: the values of a list, the ends of a range. */
static size_t choices_of(const bm_axis *a)
{
    return a->scale == BM_AXIS_WORDS ? (size_t)a->n_words : 2;
}

static void add_choice(const bm_axis *a, size_t i, bm_assignments *out)
{
    char value[BM_AXIS_TEXT];
    bool words = a->scale == BM_AXIS_WORDS;

    bm_axis_text(a, words ? ((double)i + 0.5) / a->n_words : (double)i, value);
    snprintf(out->row[out->n++].text, BM_SPACE_TEXT, "%s=%s", a->name, value);
}

/* Adds combination i of the choices of all axes but one. False: there are no
 * more. */
static bool add_choices(const bm_tuning *t, const bm_axis *but, size_t i,
                        bm_assignments *out)
{
    for (size_t k = 0; k < t->space.n; k++) {
        const bm_axis *a = &t->space.axis[k];

        if (a == but)
            continue;
        add_choice(a, i % choices_of(a), out);
        i /= choices_of(a);
    }
    return i == 0;
}

/* Looks in the section of the last assignment for a setting of the configuration
 * whose default makes all of them valid. out [room] <- "; --over block.steps=0 makes
 * it valid in all trials"; "": there is none. */
static void find_remedy(const bm_tuning *t, const bm_assignments *some,
                        char *out, size_t room)
{
    const char *last = some->row[some->n - 1].text;
    const bm_section *s = bm_train_sections();
    size_t n = strcspn(last, ".");

    out[0] = '\0';
    while (strlen(s->name) != n || strncmp(s->name, last, n) != 0)
        s++;
    for (const bm_option *o = s->options; o->key != NULL; o++) {
        bm_assignments all = *some;
        char *text = all.row[all.n++].text;

        if (o->fallback == NULL ||
            !bm_config_changed(t->config, s->name, s->options, o->key))
            continue;
        snprintf(text, BM_SPACE_TEXT, "%s.%s=%s", s->name, o->key, o->fallback);
        if (is_valid(t, &all)) {
            snprintf(out, room, "; --over %s makes it valid in all trials",
                     text);
            return;
        }
    }
}

/* A choice may be valid with some choices of other axes alone. axis: NULL: none, the
 * fixed settings are checked. */
static bm_status check_choice(const bm_tuning *t, const bm_axis *axis, size_t i)
{
    enum { MOST_COMBINATIONS = 1000 };
    bm_assignments some = t->space.fixed, all;
    char fault[2048], remedy[BM_SPACE_TEXT + 64];

    if (axis != NULL)
        add_choice(axis, i, &some);
    if (some.n == 0 || is_valid(t, &some))
        return BM_OK;
    snprintf(fault, sizeof fault, "%s", bm_last_message());
    for (size_t k = 0; k < MOST_COMBINATIONS; k++) {
        all = some;
        if (!add_choices(t, axis, k, &all))
            break;
        if (is_valid(t, &all))
            return BM_OK;
    }
    find_remedy(t, &some, remedy, sizeof remedy);
    return BM_FAIL(BM_ERR_CONFIG, "tune.over: %s: %s%s",
                   some.row[some.n - 1].text, fault, remedy);
}

bm_status bm_trial_check_over(const bm_tuning *t)
{
    if (!bm_has_own_axes(t))
        return BM_OK; /* the usual ones */
    BM_TRY(check_choice(t, NULL, 0));
    for (size_t k = 0; k < t->space.n; k++)
        for (size_t i = 0; i < choices_of(&t->space.axis[k]); i++)
            BM_TRY(check_choice(t, &t->space.axis[k], i));
    return BM_OK;
}

/* ---- a trial ------------------------------------------------------------- */

/* Trials keep the last checkpoint alone, from which the next rung goes on. What
 * is for one run is not for all trials. */
bm_status bm_trial_write(bm_tuning *t, size_t trial)
{
    bm_config *config = NULL;
    bm_settings set;
    char path[PATH_MAX];
    bm_status status = BM_OK;

    path_of(t, (bm_tune_job){.trial = trial}, ".ini", path);
    BM_TRY(bm_trial_settings(t, &t->trials[trial], &config, &set));
    BM_TRY_DONE(bm_config_set(config, "train.checkpoint_every=0"));
    BM_TRY_DONE(bm_config_set(config, "train.keep=1"));
    BM_TRY_DONE(bm_config_set(config, "train.checkpoint_copies="));
    BM_TRY_DONE(bm_config_set(config, "job.metrics="));
    BM_TRY_DONE(bm_record_check(t, path, config));
    status = bm_settings_write(config, path);
done:
    bm_config_free(config);
    return status;
}

long bm_assigned_epochs(const bm_tuning *t, const bm_assignments *a, int rung)
{
    long last = t->set.rungs - 1, all = t->epochs;
    double first = (double)t->first_rung / (double)t->epochs;

    for (size_t i = 0; i < a->n; i++)
        (void)sscanf(a->row[i].text, "train.epochs=%ld", &all);
    if (rung == last)
        return all;
    /* the rounding of pow() must not add an epoch */
    return (long)ceil(
        (double)all * pow(first, (double)(last - rung) / (double)last) - 1e-6);
}

long bm_trial_epochs(const bm_tuning *t, size_t trial, int rung)
{
    return bm_assigned_epochs(t, &t->trials[trial], rung);
}

bm_status bm_trial_start(bm_tuning *t, bm_children *c, size_t place,
                         bm_tune_job job)
{
    const bm_trial_place *p = &t->places[place];
    char config[PATH_MAX], run[PATH_MAX], log[PATH_MAX];
    char until[32], ranks[32], seed[64], share[64];
    char host[BM_HOST_NAME + 40], network[300];
    char *words[16] = {"bmuf", "train", config, "--out", run, "-v"};
    size_t n = 6;

    path_of(t, (bm_tune_job){.trial = job.trial}, ".ini", config);
    path_of(t, job, "", run);
    path_of(t, job, ".log", log);
    if (job.rung < t->set.rungs - 1) {
        snprintf(until, sizeof until, "--until=%ld",
                 bm_trial_epochs(t, job.trial, job.rung));
        words[n++] = until;
    }
    if (job.seed > 0) {
        snprintf(seed, sizeof seed, "--set=job.seed=%ld",
                 t->given.job.seed + job.seed);
        words[n++] = seed;
    }
    if (t->given.job.threads == 0) /* trials share the cores */
        words[n++] = "--set=job.threads=1";
    snprintf(ranks, sizeof ranks, "--ranks=%ld", t->ranks);
    words[n++] = ranks;
    if (p->host != NULL && !p->here) {
        snprintf(host, sizeof host, "--hosts=%s:%ld", p->host, t->ranks);
        words[n++] = host;
        if (bm_argument(t->arguments, "interface") != NULL) {
            snprintf(network, sizeof network, "--interface=%s",
                     bm_argument(t->arguments, "interface"));
            words[n++] = network;
        }
    }
    snprintf(share, sizeof share, "%ld/%ld", p->share, p->of);
    setenv(BM_PLACE_SHARE, share, 1); /* for the trial */
    return bm_children_start(c, place, words, log);
}

/* The last line that the trial printed as an error, without "bmuf: ". */
static void read_reason(const bm_tuning *t, bm_tune_job job, char *out,
                        size_t room)
{
    char path[PATH_MAX], *text = NULL, *rest = NULL;
    size_t size = 0;

    path_of(t, job, ".log", path);
    snprintf(out, room, "see its log");
    if (bm_file_read(path, MOST_LOG, &text, &size) != BM_OK)
        return;
    for (char *line = strtok_r(text, "\n", &rest); line != NULL;
         line = strtok_r(NULL, "\n", &rest))
        if (strncmp(line, "bmuf: ", 6) == 0)
            snprintf(out, room, "%s", line + 6);
    free(text);
}

/* Errors decide; among equal ones, as on the plateau with which CTC begins, the
 * loss. Half an error stands for none. */
static double score_of(const bm_tuning *t, double ler, double loss)
{
    double least = 0.5 / fmax((double)t->dev->labels, 1);

    return log(fmax(ler, least)) + 1e-3 * log(fmax(loss, 1e-9));
}

size_t bm_trial_trained(const bm_tuning *t, const bm_run_summary *run,
                        bm_tune_job job)
{
    size_t epochs = (size_t)bm_trial_epochs(t, job.trial, job.rung);
    bool converged = strcmp(run->state, "converged") == 0;

    return converged && run->n_epochs < epochs ? run->n_epochs : epochs;
}

/* The epoch, from 0, whose evaluation is the result of a run so long: the last
 * one, or of a run that has converged the best one, if it is kept. */
static size_t counting_epoch(const bm_tuning *t, const bm_run_summary *run,
                             bm_tune_job job, size_t epochs)
{
    bool early = epochs < (size_t)bm_trial_epochs(t, job.trial, job.rung);

    return early && t->given.train.keep_best && run->best < epochs ? run->best
                                                                   : epochs - 1;
}

/* Fails if the run has not come so far. */
static bm_status take_run(const bm_tuning *t, const bm_run_summary *run,
                          bm_tune_result *r)
{
    size_t epochs = bm_trial_trained(t, run, r->job);

    if (run->n_epochs >= epochs && epochs > 0) {
        size_t at = counting_epoch(t, run, r->job, epochs);

        r->ler = run->epochs[at].dev_ler;
        r->loss = run->epochs[at].dev_loss;
    }
    r->seconds = run->seconds;
    r->trained = (long)epochs;
    if (isnan(r->ler))
        return BM_FAIL(BM_ERR_FORMAT,
                       "%s/journal.jsonl: no evaluation on dev after epoch %zu",
                       run->directory, epochs);
    r->score = score_of(t, r->ler, r->loss);
    return t->set.target > 0 ? bm_trial_time(t, run, r) : BM_OK;
}

static bm_status read_run(const bm_tuning *t, bm_tune_result *r)
{
    char directory[PATH_MAX];
    bm_run_summary run = {0};
    bm_status status = BM_OK;

    path_of(t, r->job, "", directory);
    BM_TRY(bm_run_summary_read(&run, directory));
    status = take_run(t, &run, r);
    bm_run_summary_free(&run);
    return status;
}

static bm_tune_result new_result(bm_tune_job job)
{
    return (bm_tune_result){.job = job,
                            .score = INFINITY,
                            .ler = NAN,
                            .loss = NAN,
                            .cluster_s = NAN,
                            .target_s = NAN,
                            .trained = -1,
                            .state = "done"};
}

/* Epochs that a run has ended that has failed or diverged. */
static void count_trained(const bm_tuning *t, bm_tune_result *r)
{
    char directory[PATH_MAX];
    bm_run_summary run = {0};

    r->trained = 0;
    path_of(t, r->job, "", directory);
    if (bm_run_summary_read(&run, directory) != BM_OK)
        return;
    while ((size_t)r->trained < run.n_epochs &&
           !isnan(run.epochs[r->trained].dev_ler))
        r->trained++;
    bm_run_summary_free(&run);
}

bool bm_trial_done(const bm_tuning *t, bm_tune_job job, bm_tune_result *out)
{
    *out = new_result(job);
    return read_run(t, out) == BM_OK;
}

long bm_trial_plateau(const bm_tuning *t, double ler)
{
    char directory[PATH_MAX];
    bm_run_summary run = {0};
    long epochs = 0;

    path_of(t, (bm_tune_job){0}, "", directory);
    if (bm_run_summary_read(&run, directory) != BM_OK)
        return 0;
    while ((size_t)epochs < run.n_epochs && !(run.epochs[epochs].dev_ler < ler))
        epochs++;
    bm_run_summary_free(&run);
    return epochs + 1;
}

bool bm_trial_waits(const bm_tuning *t, bm_tune_job job, int code,
                    char reason[BM_TUNE_REASON])
{
    if (code != bm_status_exit(BM_ERR_CREATE))
        return false;
    read_reason(t, job, reason, BM_TUNE_REASON);
    return strstr(reason, "is in use by another job") != NULL;
}

bm_status bm_trial_result(const bm_tuning *t, bm_tune_job job, int code,
                          bm_tune_result *out)
{
    bm_tune_result r = new_result(job);
    char name[32];

    bm_trial_name(job, name);
    if (code == bm_status_exit(BM_STOPPED) || code == 128 + SIGTERM)
        return BM_FAIL(BM_STOPPED, "%s was stopped (exit %d)", name, code);
    if (code == 0) {
        BM_TRY(read_run(t, &r));
    } else {
        snprintf(r.state, sizeof r.state, "%s",
                 code == bm_status_exit(BM_ERR_NUMERIC) ? "diverged"
                                                        : "failed");
        if (code == 128 + SIGKILL)
            snprintf(r.reason, sizeof r.reason,
                     "killed by signal 9, as the system does where memory runs "
                     "out; run fewer trials at a time with --jobs");
        else
            read_reason(t, job, r.reason, sizeof r.reason);
        count_trained(t, &r);
    }
    *out = r;
    return BM_OK;
}
