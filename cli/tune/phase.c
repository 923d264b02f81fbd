/*
 * phase.c - jobs of a phase run side by side. Those that are in the journal are
 * not trained again.
 */
#include "cli/tune/phase.h"

#include "cli/progress.h"
#include "cli/tune/places.h"
#include "core/clock.h"
#include "core/text/words.h"

#include <math.h>
#include <poll.h>
#include <signal.h>
#include <string.h>

enum { MOST_FAILURES = 3, RETRY_MS = 1000 };

static volatile sig_atomic_t signals;

static void note(int number)
{
    (void)number;
    signals++;
}

void bm_tune_catch_signals(void)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {0};

    action.sa_handler = note;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

typedef struct work {
    bm_tuning *t;
    const bm_tune_phase *phase;
    bm_children children;
    bm_tune_job running[BM_CHILDREN]; /* by place */
    bool in_use[BM_CHILDREN];
    bm_tune_job displaced[BM_CHILDREN]; /* [n_displaced]: their host is lost */
    size_t n_displaced;
    bool waits[BM_CHILDREN]; /* it has been said that the job waits */
    int failures;            /* in a row */
    double best;             /* the least value so far */
} work;

/* The part of the budget that is used, of whichever runs out first. */
static double used(const bm_tuning *t)
{
    double given = (double)(t->set.seeds * t->epochs);
    double part = t->search == NULL ? 0
                                    : (given + bm_search_spent(t->search)) /
                                          (double)t->set.epochs;

    if (t->set.trials > 0)
        part = fmax(part, (double)t->n_trials / (double)t->set.trials);
    if (t->set.minutes > 0)
        part = fmax(part, (bm_clock() - t->began) / 60 / t->set.minutes);
    return fmin(part, 1);
}

static void show(work *w)
{
    char where[128], fields[128], best[32];
    const bm_tuning *t = w->t;

    snprintf(where, sizeof where, "%s: %s", w->phase->name,
             bm_count_noun((long long)t->n_trials, "trial").text);
    bm_value_text(t, w->best, best);
    snprintf(fields, sizeof fields, "best %s  %zu running", best,
             w->children.n);
    bm_progress_show(
        &(bm_progress){used(t), where, isnan(w->best) ? "" : fields});
}

static void note_best(work *w, const bm_tune_result *r)
{
    double value = bm_result_value(w->t, r);

    if (r->job.rung == w->t->set.rungs - 1 && !isnan(value) &&
        !(value >= w->best))
        w->best = value;
}

static void log_result(work *w, const bm_tune_result *r)
{
    char name[32], time[32], more[80] = "";

    bm_trial_name(r->job, name);
    bm_value_text(w->t, r->target_s, time);
    if (!isnan(r->target_s))
        snprintf(more, sizeof more, ", %g %% after %s", w->t->set.target, time);
    if (!isfinite(r->score)) {
        bm_log(BM_WARNING, "%s %s: %s", name, r->state, r->reason);
        return;
    }
    note_best(w, r);
    bm_log(BM_NOTE, "%s: %.2f %% label errors on dev after %s%s", name,
           100 * r->ler, bm_count_noun(r->trained, "epoch").text, more);
}

/* The failure of a trial that has ended with this code: BM_ERR_CONFIG if its
 * settings or data are at fault, else that of the machine. */
static bm_status failure_of(int code)
{
    static const bm_status machine[] = {
        BM_ERR_COMM, BM_ERR_MEMORY, BM_ERR_CREATE, BM_ERR_IO, BM_ERR_MISSING};

    for (size_t i = 0; i < sizeof machine / sizeof *machine; i++)
        if (code == bm_status_exit(machine[i]))
            return machine[i];
    return code > 128 ? BM_ERR_COMM : BM_ERR_CONFIG;
}

/* A file is missing or cannot be written: the next trial would fail, too. */
static bool is_of_files(bm_status failure)
{
    return failure == BM_ERR_MISSING || failure == BM_ERR_CREATE ||
           failure == BM_ERR_IO;
}

/* The failure that ends the search: that of the given configuration, of files, or
 * of the last of several trials in a row. */
static bm_status check_failure(work *w, const bm_tune_result *r, int code)
{
    bool failed = strcmp(r->state, "failed") == 0;

    w->failures = failed ? w->failures + 1 : 0;
    return failed && (r->job.trial == 0 || w->failures >= MOST_FAILURES ||
                      is_of_files(failure_of(code)))
               ? failure_of(code)
               : BM_OK;
}

static bm_status report_failure(const bm_tune_result *r, bm_status failure)
{
    char name[32];
    const char *what = r->job.trial == 0 ? "the configuration as it was given"
                       : is_of_files(failure) ? name
                                              : "three trials in a row";

    bm_trial_name(r->job, name);
    if (failure == BM_ERR_CONFIG)
        return BM_FAIL(failure,
                       "%s cannot be trained: %s; correct it and run the same "
                       "command with a new --out",
                       what, r->reason);
    return BM_FAIL(
        failure, "%s failed: %s; once that is fixed, the same command goes on",
        what, r->reason);
}

static bm_status take_result(work *w, const bm_tune_result *r)
{
    bm_tune_result now = *r;

    now.spent = w->t->search != NULL ? bm_search_spent(w->t->search) : 0;
    if (bm_record_find(w->t, r->job) == NULL)
        BM_TRY(bm_record_add(w->t, &now));
    w->phase->tell(w->phase->self, r);
    return BM_OK;
}

/* Starts a job again whose run another process uses. */
static bm_status start_again(work *w, size_t id, const char *reason)
{
    char name[32];

    bm_trial_name(w->running[id], name);
    if (!w->waits[id])
        bm_log(BM_NOTE, "%s waits: %s", name, reason);
    w->waits[id] = true;
    poll(NULL, 0, RETRY_MS);
    return bm_trial_start(w->t, &w->children, id, w->running[id]);
}

/* A job whose host is lost goes on at the next free place. */
static bm_status move(work *w, size_t id, bool left)
{
    char name[32];

    w->in_use[id] = w->waits[id] = false;
    if (!left)
        return BM_FAIL(BM_ERR_COMM, "no host of the search is left; run the "
                                    "same command again to go on");
    bm_trial_name(w->running[id], name);
    bm_log(BM_WARNING, "%s has lost its host %s and goes on elsewhere", name,
           w->t->places[id].host);
    w->displaced[w->n_displaced++] = w->running[id];
    return BM_OK;
}

static bm_status end_job(work *w, size_t id, int code)
{
    bm_tune_result r;
    char reason[BM_TUNE_REASON];
    bool left = false;
    bm_status failure = BM_OK;

    if (code != 0 && signals > 0)
        return BM_STOPPED; /* whoever stops the search may stop trials, too */
    if (bm_places_lost(w->t, id, code, &left))
        return move(w, id, left);
    if (bm_trial_waits(w->t, w->running[id], code, reason))
        return start_again(w, id, reason);
    w->in_use[id] = w->waits[id] = false;
    BM_TRY(bm_trial_result(w->t, w->running[id], code, &r));
    log_result(w, &r);
    failure = check_failure(w, &r, code);
    /* after a failure of the machine the same command tries the trial again */
    if (failure == BM_OK || failure == BM_ERR_CONFIG) {
        BM_TRY(take_result(w, &r));
        BM_TRY(bm_outcome_tsv(w->t));
    }
    return failure == BM_OK ? BM_OK : report_failure(&r, failure);
}

/* The first free place; n_places: there is none. */
static size_t free_place(const work *w)
{
    size_t k = 0;

    while (k < w->t->n_places && (w->in_use[k] || w->t->places[k].lost))
        k++;
    return k;
}

static bm_status start_at(work *w, size_t place, bm_tune_job job)
{
    BM_TRY(bm_trial_start(w->t, &w->children, place, job));
    w->running[place] = job;
    w->in_use[place] = true;
    return BM_OK;
}

/* Trains, unless the result is known. */
static bm_status start_job(work *w, size_t place, bm_tune_job job)
{
    const bm_tune_result *known = bm_record_find(w->t, job);
    bm_tune_result r;

    if (known == NULL && bm_trial_done(w->t, job, &r))
        known = &r;
    if (known != NULL) {
        note_best(w, known);
        return take_result(w, known);
    }
    return start_at(w, place, job);
}

/* Waits for all processes; a second signal kills them. */
static bm_status stop(work *w)
{
    size_t id = 0;
    int code = 0;

    bm_children_signal(&w->children, SIGTERM);
    for (bool killed = false; w->children.n > 0;) {
        if (signals > 1 && !killed) {
            bm_children_signal(&w->children, SIGKILL);
            killed = true;
        }
        (void)bm_children_wait(&w->children, &id, &code);
    }
    return BM_STOPPED;
}

bm_status bm_tune_phase_run(bm_tuning *t, const bm_tune_phase *p)
{
    work w = {.t = t, .phase = p, .best = NAN};
    bm_search_state state = BM_SEARCH_JOB;
    bm_status status = BM_OK;

    while (status == BM_OK && signals == 0) {
        bm_tune_job job;
        size_t id = 0, place = free_place(&w);
        int code = 0;

        if (place < t->n_places && w.n_displaced > 0) {
            BM_TRY_DONE(start_at(&w, place, w.displaced[--w.n_displaced]));
            continue;
        }
        if (place < t->n_places) {
            BM_TRY_DONE(p->next(p->self, &job, &state));
            if (state == BM_SEARCH_JOB) {
                BM_TRY_DONE(start_job(&w, place, job));
                continue;
            }
            if (w.children.n == 0)
                break;
        }
        if (bm_children_wait(&w.children, &id, &code))
            status = end_job(&w, id, code);
        show(&w);
    }
done:
    if (w.children.n > 0) {
        bm_log(BM_NOTE, "stopping %s",
               bm_count_noun((long long)w.children.n, "trial").text);
        if (stop(&w) == BM_STOPPED && status == BM_OK)
            status = BM_STOPPED;
    }
    return status == BM_OK && signals > 0 ? BM_STOPPED : status;
}
