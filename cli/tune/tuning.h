/*
 * tuning.h - the state of bmuf tune, in a directory:
 *
 *     DIR/config.ini          the configuration as it was given, with [tune]
 *     DIR/trials/t007.ini     the configuration of trial 7
 *     DIR/trials/t007/        its run; t007-2/ with the second seed, ..
 *     DIR/trials/t007.log     what bmuf train printed
 *     DIR/record/journal.jsonl  data, given_apart, first_rung: with what the
 *                             search began; an event for each result
 *     DIR/trials.tsv, DIR/best.ini
 *
 * The journal is what a stopped search goes on from: the search (search.h) is
 * repeated from its start, with the results that are in the journal.
 */
#ifndef BM_CLI_TUNE_TUNING_H
#define BM_CLI_TUNE_TUNING_H

#include "cli/hosts/hosts.h"
#include "cli/report/runs/summary.h"
#include "cli/report/scale/load.h"
#include "cli/tune/children.h"
#include "cli/tune/search.h"
#include "cli/tune/space.h"
#include "cli/tune/tune_settings.h"
#include "core/log.h"

/* A rung of a trial, or its last rung with another seed. */
typedef struct bm_tune_job {
    size_t trial;
    int rung;
    long seed; /* 0: job.seed; k: job.seed + k */
} bm_tune_job;

enum { BM_TUNE_REASON = 600 }; /* bytes: a whole message of a trial */

typedef struct bm_tune_result {
    bm_tune_job job;
    double score;     /* what the search minimises; INFINITY: failed */
    double ler, loss; /* on data.dev; NAN: failed */
    double seconds;   /* of training, of all rungs so far */
    double cluster_s; /* the same, on the cluster; NAN: no tune.target */
    double target_s;  /* until the target there; NAN: not reached */
    long trained;     /* epochs; -1: as many as its rung has */
    double spent;     /* of the search's budget, when the result came */
    char state[16];   /* "done", "diverged", "failed" */
    char reason[BM_TUNE_REASON]; /* of a failure */
} bm_tune_result;

enum { BM_MOST_FINALISTS = 102 };

/* tune.epochs of a search whose budget is time or trials alone. */
enum { BM_TUNE_MOST_EPOCHS = 1000000000 };

/* Where a trial runs (places.h). */
typedef struct bm_trial_place {
    const char *host; /* borrowed; NULL: this one, without a name */
    bool here;        /* its name is this host's */
    long share, of;   /* which one, from 0, of how many on its host */
    bool lost;        /* the host does not answer */
} bm_trial_place;

typedef struct bm_tuning {
    const bm_arguments *arguments; /* borrowed */
    const char *path, *directory;  /* of CONFIG; --out; borrowed */
    bm_tune_settings set;
    long ranks; /* of a trial */
    bm_hosts hosts;
    bm_trial_place *places; /* [n_places] of places.h, in hosts */
    size_t n_places;

    bm_config *config; /* as given */
    bm_settings given;
    bm_regime regime;  /* of its part with the most workers */
    unsigned warnings; /* of bm_advise for the given configuration */
    unsigned noted;    /* warnings of trials that were logged */
    bm_dataset *train, *dev;
    long epochs;     /* of a whole trial, unless that is searched */
    long first_rung; /* of these, the epochs of the first rung; 0: not known */
    bm_space space;
    bool given_apart; /* as in space; older programs began searches without it,
                         which go on so */
    bm_search *search;
    bool accepted;      /* the space has a valid point */
    char refusal[1024]; /* why the last one was invalid; "": none was */

    bm_assignments *trials; /* [n_trials] */
    int64_t *blocks;        /* [n_trials], of an epoch, if their size is
                               searched; 0: it is not, or they change */
    size_t n_trials, room_trials, room_blocks;
    bm_tune_result *results; /* [n_results] in the order of their ends */
    size_t n_results, room_results;
    bm_journal *journal;
    int lock;
    double began;
} bm_tuning;

/* ---- trial.c ------------------------------------------------------------- */

/* Settings of a trial in full; free *config with bm_config_free. Fails with
 * BM_ERR_CONFIG if they are invalid. */
BM_CHECKED bm_status bm_trial_settings(const bm_tuning *t,
                                       const bm_assignments *a,
                                       bm_config **config, bm_settings *out);

/* Whether tune.over gives the settings to search, in place of the usual ones. */
bool bm_has_own_axes(const bm_tuning *t);

/* Fails with BM_ERR_CONFIG if tune.over fixes or lists a value, or has a range with an
 * end, that is invalid with the given values of the other settings, and with all
 * that are listed or are ends. */
BM_CHECKED bm_status bm_trial_check_over(const bm_tuning *t);

/* Writes the configuration of a new trial. */
BM_CHECKED bm_status bm_trial_write(bm_tuning *t, size_t trial);

/* Starts the job as a process at a place, whose number is its id. */
BM_CHECKED bm_status bm_trial_start(bm_tuning *t, bm_children *c, size_t place,
                                    bm_tune_job job);

/* Whether the trial has been trained so far already; then *out is its result. */
bool bm_trial_done(const bm_tuning *t, bm_tune_job job, bm_tune_result *out);

/* DIR/trials/t007 */
void bm_trial_directory(const bm_tuning *t, bm_tune_job job,
                        char out[PATH_MAX]);

/* The first epoch after which the given configuration has fewer label errors
 * than this on dev; one more than there are if none has; 0: it diverged. */
long bm_trial_plateau(const bm_tuning *t, double ler);

/* Epochs that the result of a job is of: those of its rung, or fewer if the run
 * has converged. */
size_t bm_trial_trained(const bm_tuning *t, const bm_run_summary *run,
                        bm_tune_job job);

/* Whether a job has ended with this code because another process, such as a
 * trial of a search that was killed, still uses its run: it has no result, and
 * can be started again later. `reason`: its message. */
bool bm_trial_waits(const bm_tuning *t, bm_tune_job job, int code,
                    char reason[BM_TUNE_REASON]);

/* The result of a job whose process has ended with this code. Fails with
 * BM_STOPPED if the process was stopped by SIGTERM. */
BM_CHECKED bm_status bm_trial_result(const bm_tuning *t, bm_tune_job job,
                                     int code, bm_tune_result *out);

/* Epochs of a trial with these settings up to the end of a rung. */
long bm_assigned_epochs(const bm_tuning *t, const bm_assignments *a, int rung);
long bm_trial_epochs(const bm_tuning *t, size_t trial, int rung);

/* The value of an axis in a trial: its number, or that of a word; NAN if the axis
 * does not have the value of the given configuration. As text: borrowed, or
 * `out`. */
double bm_trial_value(const bm_tuning *t, size_t trial, size_t axis);
const char *bm_trial_text(const bm_tuning *t, size_t trial, size_t axis,
                          char out[BM_AXIS_TEXT]);

/* "t007", or "t007-2" for its second seed. */
void bm_trial_name(bm_tune_job job, char out[32]);

/* ---- cluster.c ----------------------------------------------------------- */

/* Fills cluster_s, target_s and score of a result with tune.target. Before the
 * target is reached, the score is the log of the time so far times (errors /
 * target). Fails as bm_load_run and bm_network_read. */
BM_CHECKED bm_status bm_trial_time(const bm_tuning *t,
                                   const bm_run_summary *run,
                                   bm_tune_result *r);

/* ---- record.c ------------------------------------------------------------ */

/* Whether there is a search in the directory to go on with. */
bool bm_record_exists(const bm_tuning *t);

/* Opens the directory, or continues in it; reads the results in its journal.
 * Fails with BM_ERR_CREATE, or with BM_ERR_CONFIG if it belongs to another
 * search, or to one on other data. */
BM_CHECKED bm_status bm_record_open(bm_tuning *t);
void bm_record_close(bm_tuning *t);

/* Fails with BM_ERR_CONFIG if the file is that of a trial with other settings: the
 * results in the record are not this trial's. */
BM_CHECKED bm_status bm_record_check(const bm_tuning *t, const char *path,
                                     const bm_config *trial);

/* Keeps the epochs of the first rung, t->first_rung. */
void bm_record_first_rung(const bm_tuning *t);

/* The epochs and trials of the results that a search has. A search with a smaller
 * budget, or with more seeds, does not end before it has them again. */
double bm_record_spent(const bm_tuning *t);
size_t bm_record_trials(const bm_tuning *t);

/* NULL: not known. */
const bm_tune_result *bm_record_find(const bm_tuning *t, bm_tune_job job);

BM_CHECKED bm_status bm_record_add(bm_tuning *t, const bm_tune_result *r);

/* ---- outcome.c ----------------------------------------------------------- */

/* What the search makes small: label errors, or seconds to the target. NAN:
 * the trial has failed, or has not reached it. */
double bm_result_value(const bm_tuning *t, const bm_tune_result *r);

/* "4.32 %", "71.3 s" */
void bm_value_text(const bm_tuning *t, double value, char out[32]);

/* A finalist: its value over the seeds, with a 95 % interval. */
typedef struct bm_finalist {
    size_t trial;
    size_t n;                /* seeds with a value */
    double value, low, high; /* NAN: not known, from too few seeds */
    double change;           /* of the given configuration's value */
    double change_half;      /* half of its 95 % interval; NAN: not known */
} bm_finalist;

/* Seed k of a trial in the comparison at the end: job.seed + this. A trial that
 * was chosen by seed 0, which flatters it, has other seeds. */
long bm_final_seed(size_t trial, long k);

/* The trials to compare at the end; out [tune.finalists + 1]: the given one
 * last. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_finalists(const bm_tuning *t, size_t *out, size_t *n);

/* Fills n .. high of each; the interval is of the mean, by Student's t with
 * the standard deviation pooled over all finalists. Sorts, the best first. */
void bm_finalists_judge(const bm_tuning *t, bm_finalist *list, size_t n);

/* out [room] <- how much better the best one is than the given configuration;
 * false: that is the best. */
bool bm_change_text(const bm_tuning *t, const bm_finalist *best, char *out,
                    size_t room);

/* ---- tune_page.c --------------------------------------------------------- */

/* Writes report.html: what was found, and what the model makes of it. */
BM_CHECKED bm_status bm_tune_page(const bm_tuning *t, const bm_finalist *list,
                                  size_t n);

/* The result of a trial's highest rung; NULL: none yet. */
const bm_tune_result *bm_last_result(const bm_tuning *t, size_t trial);

/* Writes trials.tsv, once the search has begun; the tables on stdout; best.ini. */
BM_CHECKED bm_status bm_outcome_tsv(const bm_tuning *t);
void bm_outcome_print(const bm_tuning *t, const bm_finalist *list, size_t n);
BM_CHECKED bm_status bm_outcome_best(const bm_tuning *t, size_t trial);

#endif
