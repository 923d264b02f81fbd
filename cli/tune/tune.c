/*
 * tune.c - bmuf tune: searches settings. A phase hands out jobs: the search,
 * then the finalists with several seeds. Jobs that are in the journal already
 * are not trained again.
 */
#include "cli/json_output.h"
#include "cli/launch/launcher.h"
#include "cli/progress.h"
#include "cli/report/regime.h"
#include "cli/report/scale/network.h"
#include "cli/terminal.h"
#include "cli/tune/phase.h"
#include "cli/tune/places.h"
#include "cli/verbs.h"
#include "core/clock.h"
#include "core/grow.h"
#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FULL_TRIALS = 24 };

/* ---- the space, as the search sees it ------------------------------------ */

/* The first warning, and how many there are. */
typedef struct heard {
    char first[512];
    int n;
} heard;

static void hear(void *self, const char *text)
{
    heard *h = self;

    if (h->n++ == 0)
        snprintf(h->first, sizeof h->first, "%s", text);
}

/* *rules: as bm_advise returns. */
static bm_status warnings_of(const bm_tuning *t, const bm_settings *set,
                             unsigned *rules, heard *out)
{
    bm_parts parts;

    *out = (heard){.n = 0};
    BM_TRY(bm_parts_of(set, t->train, &parts));
    *rules = bm_advise(parts.part, parts.n, hear, out);
    return BM_OK;
}

static bool is_block_size(const char *assignment)
{
    static const char *const keys[] = {
        "block.steps=", "block.frames_per_worker=", "block.frames_total="};

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strncmp(assignment, keys[i], strlen(keys[i])) == 0)
            return true;
    return false;
}

/* Blocks of an epoch, which are of even size. 0: they change, no size is searched,
 * or the settings are invalid. */
static int64_t blocks_of(const bm_tuning *t, const bm_assignments *a)
{
    bm_config *config = NULL;
    bm_settings set;
    bm_plan *plan = NULL;
    int64_t blocks = 0;
    size_t k = 0;

    while (k < a->n && !is_block_size(a->row[k].text))
        k++;
    if (k == a->n || bm_trial_settings(t, a, &config, &set) != BM_OK)
        return 0;
    if (bm_plan_changes(&set.plan).n == 1 &&
        bm_first_plan(&set, t->train, &plan) == BM_OK)
        blocks = bm_plan_blocks(plan);
    bm_plan_free(plan);
    bm_config_free(config);
    return blocks;
}

/* Whether two trials have the same settings but for the size of a block; *size:
 * that differs. */
static bool is_like(const bm_assignments *a, const bm_assignments *b,
                    bool *size)
{
    *size = false;
    for (size_t k = 0; k < a->n && a->n == b->n; k++) {
        if (strcmp(a->row[k].text, b->row[k].text) == 0)
            continue;
        if (!is_block_size(a->row[k].text))
            return false;
        *size = true;
    }
    return a->n == b->n;
}

/* Sizes of 9 and 10 steps are the same if they divide an epoch into as many
 * blocks. */
static bool is_repeated(const bm_tuning *t, const bm_assignments *a)
{
    int64_t blocks = -1;
    bool size = false;

    for (size_t i = 0; i < t->n_trials; i++) {
        if (!is_like(a, &t->trials[i], &size))
            continue;
        if (size && blocks < 0)
            blocks = blocks_of(t, a);
        if (!size || (blocks > 0 && blocks == t->blocks[i]))
            return true;
    }
    return false;
}

bool bm_has_own_axes(const bm_tuning *t)
{
    return t->set.over[strspn(t->set.over, " ")] != '\0';
}

/* What bm_advise warns of is unwise, but what the user wants to compare is not for
 * us to leave out. */
static bm_grade grade_settings(const bm_tuning *t, const bm_settings *set)
{
    unsigned rules = 0;
    heard h;

    if (warnings_of(t, set, &rules, &h) != BM_OK)
        return BM_REFUSED;
    if (rules == 0 || bm_has_own_axes(t))
        return BM_GOOD;
    return (rules & ~t->warnings) == 0 ? BM_AS_GIVEN : BM_VALID;
}

static bm_grade grade(void *self, const double *x)
{
    bm_tuning *t = self;
    bm_assignments a;
    bm_config *config = NULL;
    bm_settings set;
    bm_grade out = BM_REFUSED;

    if (bm_search_trials(t->search) == 0) /* the given configuration */
        return BM_GOOD;
    bm_space_assign(&t->space, x, &a);
    if (is_repeated(t, &a) || bm_space_is_given(&t->space, x))
        return BM_REFUSED;
    if (bm_trial_settings(t, &a, &config, &set) != BM_OK) {
        snprintf(t->refusal, sizeof t->refusal, "%s", bm_last_message());
        return BM_REFUSED;
    }
    t->accepted = true;
    out = grade_settings(t, &set);
    bm_config_free(config);
    return out;
}

static long epochs_at(void *self, const double *x, int rung)
{
    bm_tuning *t = self;
    bm_assignments a;

    bm_space_assign(&t->space, x, &a);
    return bm_assigned_epochs(t, &a, rung);
}

/* Below this error a network has left the plateau with which CTC begins. */
#define PLATEAU 0.8

/* ---- phases -------------------------------------------------------------- */

/* Logs a warning of a new trial if no earlier trial had it. */
static bm_status note_warnings(bm_tuning *t, size_t trial)
{
    bm_config *config = NULL;
    bm_settings set;
    unsigned rules = 0;
    heard h;
    char name[32], more[40] = "";
    bm_status status = BM_OK;

    BM_TRY(bm_trial_settings(t, &t->trials[trial], &config, &set));
    status = warnings_of(t, &set, &rules, &h);
    bm_config_free(config);
    BM_TRY(status);
    if ((rules & ~t->noted) == 0)
        return BM_OK;
    t->noted |= rules;
    bm_trial_name((bm_tune_job){.trial = trial}, name);
    if (h.n > 1)
        snprintf(more, sizeof more, "; and %d more", h.n - 1);
    bm_log(BM_NOTE,
           "bmuf explain warns of %s, and perhaps of later trials: %s%s", name,
           h.first, more);
    return BM_OK;
}

static bm_status add_trial(bm_tuning *t, const bm_assignments *a)
{
    BM_TRY(
        bm_grow(&t->trials, t->n_trials, &t->room_trials, sizeof *t->trials));
    BM_TRY(
        bm_grow(&t->blocks, t->n_trials, &t->room_blocks, sizeof *t->blocks));
    t->blocks[t->n_trials] = blocks_of(t, a);
    t->trials[t->n_trials++] = *a;
    return bm_trial_write(t, t->n_trials - 1);
}

static bool out_of_time(const bm_tuning *t)
{
    return t->set.minutes > 0 && bm_clock() - t->began > 60 * t->set.minutes;
}

static bm_status next_of_search(void *self, bm_tune_job *out,
                                bm_search_state *state)
{
    bm_tuning *t = self;
    bm_search_job job = {0};
    bm_assignments a;

    *state = BM_SEARCH_END;
    if (bm_search_trials(t->search) > 0 && out_of_time(t))
        return BM_OK;
    BM_TRY(bm_search_next(t->search, &job, state));
    if (*state != BM_SEARCH_JOB)
        return BM_OK;
    *out = (bm_tune_job){job.trial, job.rung, 0};
    if (job.trial < t->n_trials)
        return BM_OK;
    bm_space_assign(&t->space, bm_search_point(t->search, job.trial), &a);
    BM_TRY(add_trial(t, &a));
    return note_warnings(t, job.trial);
}

static void tell_search(void *self, const bm_tune_result *r)
{
    bm_tuning *t = self;

    bm_search_tell(t->search, (bm_search_job){r->job.trial, r->job.rung},
                   r->score);
}

/* Some trials, each with every seed. */
typedef struct repeats {
    bm_tuning *t;
    size_t trial[BM_MOST_FINALISTS], n;
    size_t at; /* handed out */
} repeats;

static bm_status next_repeat(void *self, bm_tune_job *out,
                             bm_search_state *state)
{
    repeats *r = self;
    size_t seeds = (size_t)r->t->set.seeds, trial = 0;

    *state = r->at < r->n * seeds ? BM_SEARCH_JOB : BM_SEARCH_END;
    if (*state != BM_SEARCH_JOB)
        return BM_OK;
    trial = r->trial[r->at / seeds];
    *out = (bm_tune_job){trial, (int)r->t->set.rungs - 1,
                         bm_final_seed(trial, (long)(r->at % seeds))};
    r->at++;
    return BM_OK;
}

static void tell_repeat(void *self, const bm_tune_result *r)
{
    (void)self;
    (void)r;
}

/* Runs to the end: the given configuration and the finalists, with all seeds. A
 * finalist may be one that the search has hardly trained. */
static long repeated_runs(const bm_tuning *t)
{
    return (t->set.finalists + 1) * t->set.seeds;
}

/* A budget that these runs take leaves nothing to search. */
static bm_status check_budget(const bm_tuning *t)
{
    long runs = repeated_runs(t);

    if (t->set.epochs < t->epochs)
        return BM_FAIL(BM_ERR_CONFIG,
                       "tune.epochs: %s of all trials together %s less than "
                       "one trial of %ld; give --epochs %ld, the "
                       "default, or shorter trials with --set train.epochs=N",
                       bm_count_noun(t->set.epochs, "epoch").text,
                       t->set.epochs == 1 ? "is" : "are", t->epochs,
                       FULL_TRIALS * t->epochs);
    if (t->set.epochs <= runs * t->epochs && !bm_record_exists(t))
        bm_log(BM_WARNING,
               "a budget of %ld epochs leaves nothing to search: the given "
               "configuration and %s with %s each take %ld; raise --epochs, or "
               "lower train.epochs, tune.finalists or tune.seeds",
               t->set.epochs, bm_count_noun(t->set.finalists, "finalist").text,
               bm_count_noun(t->set.seeds, "seed").text, runs * t->epochs);
    return BM_OK;
}

/* The epochs that remain for the search when the repeated runs have theirs, at least
 * those that it has spent already. */
static double search_budget(const bm_tuning *t)
{
    long finals = repeated_runs(t) * t->epochs;
    double left = fmax((double)(t->set.epochs - finals), 0);
    double spent = bm_record_spent(t);

    if (left >= spent)
        return left;
    bm_log(
        BM_NOTE,
        "the search has had %.0f epochs, and a budget of %ld with %s and "
        "%s each leaves it %.0f: its trials stay, and it has no new ones; "
        "for more give --epochs above %.0f",
        spent, t->set.epochs, bm_count_noun(t->set.finalists, "finalist").text,
        bm_count_noun(t->set.seeds, "seed").text, left, spent + (double)finals);
    return spent;
}

static size_t most_trials(const bm_tuning *t)
{
    size_t trials = (size_t)t->set.trials, had = bm_record_trials(t);

    if (trials == 0)
        return SIZE_MAX;
    if (trials < had)
        bm_log(BM_NOTE,
               "the search has had %s: they stay, also with --trials %zu",
               bm_count_noun((long long)had, "trial").text, trials);
    return trials < had ? had : trials;
}

static bm_status open_search(bm_tuning *t)
{
    double given[BM_SEARCH_AXES];
    const bm_search_settings settings = {.seed = (uint64_t)t->given.job.seed,
                                         .axes = t->space.n,
                                         .given = given,
                                         .given_apart = t->given_apart,
                                         .rungs = (int)t->set.rungs,
                                         .reduction = (int)t->set.reduction,
                                         .slots = (int)t->set.ahead,
                                         .model = t->set.model,
                                         .epochs = search_budget(t),
                                         .trials = most_trials(t)};

    bm_space_given(&t->space, given);
    return bm_search_new(&t->search, &settings,
                         (bm_search_space){t, epochs_at, grade});
}

/*
 * The given configuration is trained first, with all seeds. A first rung within
 * the plateau of blanks with which CTC begins would tell nothing, so it is half
 * as long again as that of the given configuration.
 */
static bm_status train_given(bm_tuning *t)
{
    repeats given = {.t = t, .n = 1};
    const bm_tune_phase p = {"given", next_repeat, tell_repeat, &given};
    long least = t->epochs, left = 0;

    BM_TRY(add_trial(t, &(bm_assignments){.n = 0}));
    BM_TRY(bm_tune_phase_run(t, &p));
    if (t->first_rung > 0)
        return BM_OK;
    for (long k = 1; k < t->set.rungs; k++)
        least = (least + t->set.reduction - 1) / t->set.reduction;
    left = (3 * bm_trial_plateau(t, PLATEAU) + 1) / 2;
    t->first_rung = left < least ? least : left < t->epochs ? left : t->epochs;
    bm_record_first_rung(t);
    return BM_OK;
}

static bm_status search(bm_tuning *t)
{
    const bm_tune_phase p = {"search", next_of_search, tell_search, t};

    BM_TRY(open_search(t));
    BM_TRY(bm_tune_phase_run(t, &p));
    if (!t->accepted && t->refusal[0] != '\0')
        return BM_FAIL(BM_ERR_CONFIG,
                       "no settings of the search are valid: %s; give another "
                       "--over, and another --out than %s",
                       t->refusal, t->directory);
    return BM_OK;
}

static bm_status compare_finalists(bm_tuning *t)
{
    repeats all = {.t = t};
    const bm_tune_phase p = {"finalists", next_repeat, tell_repeat, &all};
    bm_finalist list[BM_MOST_FINALISTS] = {{0}};

    BM_TRY(bm_finalists(t, all.trial, &all.n));
    BM_TRY(bm_tune_phase_run(t, &p));
    for (size_t i = 0; i < all.n; i++)
        list[i].trial = all.trial[i];
    bm_finalists_judge(t, list, all.n);
    bm_progress_close();
    BM_TRY(bm_outcome_tsv(t));
    if (list[0].n == 0 && t->set.target > 0)
        return BM_FAIL(BM_ERR_NUMERIC,
                       "no finalist came to %g %% errors in %ld epochs; raise "
                       "tune.target or train.epochs, with another --out, and "
                       "see %s/trials.tsv",
                       t->set.target, t->epochs, t->directory);
    if (list[0].n == 0)
        return BM_FAIL(BM_ERR_NUMERIC, "no trial ended well; see %s/trials.tsv",
                       t->directory);
    BM_TRY(bm_outcome_best(t, list[0].trial));
    BM_TRY(bm_tune_page(t, list, all.n));
    bm_outcome_print(t, list, all.n);
    return BM_OK;
}

/* ---- the verb ------------------------------------------------------------ */

static void describe(const bm_tuning *t)
{
    char text[200], epochs[40] = "", minutes[40] = "";

    if (t->set.epochs < BM_TUNE_MOST_EPOCHS)
        snprintf(epochs, sizeof epochs, "; at most %ld epochs", t->set.epochs);
    if (t->set.minutes > 0)
        snprintf(minutes, sizeof minutes, "; at most %g min", t->set.minutes);
    bm_log(BM_NOTE, "%s of %ld epochs in %ld %s%s%s; %s",
           t->set.trials > 0 ? bm_count_noun(t->set.trials, "trial").text
                             : "trials",
           t->epochs, t->set.rungs, t->set.rungs == 1 ? "rung" : "rungs",
           epochs, minutes, bm_places_text(t));
    if ((long)t->n_places > t->set.ahead)
        bm_log(BM_NOTE,
               "the search has %ld at a time; for all places begin it with "
               "--set tune.ahead=%zu",
               t->set.ahead, t->n_places);
    for (size_t k = 0; k < t->space.n; k++) {
        bm_axis_describe(&t->space.axis[k], text, sizeof text);
        bm_log(BM_NOTE, "  %-18s %s", t->space.axis[k].name, text);
    }
    for (size_t k = 0; k < t->space.fixed.n; k++)
        bm_log(BM_NOTE, "  %s in all trials", t->space.fixed.row[k].text);
}

/* With fewer labels an error of 10 % has a standard deviation of about 2 points. */
enum { FEW_LABELS = 300 };

static void warn_of_few_labels(const bm_dataset *dev)
{
    if (dev->labels > 0 && dev->labels < FEW_LABELS)
        bm_log(BM_WARNING,
               "data.dev: %s has %s with %s, of which one is %.2g points: "
               "small differences between trials are chance; take a larger set",
               dev->directory,
               bm_count_noun((long long)dev->n, "sequence").text,
               bm_count_noun((long long)dev->labels, "label").text,
               100. / (double)dev->labels);
}

static bm_status open_data(bm_tuning *t)
{
    bm_parts parts;
    heard h;

    if (t->given.data.dev[0] == '\0')
        return BM_FAIL(BM_ERR_CONFIG,
                       "bmuf tune compares errors on data.dev, which is not "
                       "set; add [data] dev = FOLDER");
    BM_TRY(bm_settings_open_data(&t->given, &t->train));
    BM_TRY(bm_dataset_open(&t->dev, t->given.data.dev));
    warn_of_few_labels(t->dev);
    t->epochs = bm_settings_epochs(&t->given, t->train);
    BM_TRY(bm_parts_of(&t->given, t->train, &parts));
    t->regime = *bm_most_workers(parts.part, parts.n);
    return warnings_of(t, &t->given, &t->warnings, &h);
}

/* 0 is how a setting of [tune] says that there is no such budget. */
static bm_status check_budget_options(const bm_arguments *a)
{
    static const char *const names[] = {"epochs", "minutes", "trials"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *text = bm_argument(a, names[i]);
        char *end = NULL;

        if (text != NULL && strtod(text, &end) == 0 && end > text &&
            *end == '\0')
            return BM_FAIL(BM_ERR_ARG,
                           "tune: --%s %s: a budget is more than 0; give one, "
                           "or leave out --%s for the default",
                           names[i], text, names[i]);
    }
    return BM_OK;
}

/* out [room] <- "tune.over=.." with each --over. */
static bm_status join_over(const bm_arguments *a, char *out, size_t room)
{
    size_t n = (size_t)snprintf(out, room, "tune.over=");

    for (int i = 0; i < a->n_given; i++) {
        const char *value = a->given[i].value;

        if (strcmp(a->given[i].flag->name, "over") != 0)
            continue;
        if (strchr(value, '=') == NULL)
            return BM_FAIL(BM_ERR_CONFIG,
                           "--over %s: expected SECTION.KEY=LOW..HIGH or "
                           "SECTION.KEY=A,B; a value with blanks is quoted "
                           "together with its setting",
                           value);
        if (n + strlen(value) + 2 > room)
            return BM_FAIL(BM_ERR_ARG,
                           "--over: more than %zu characters in all", room);
        n += (size_t)snprintf(out + n, room - n, " %s", value);
    }
    return BM_OK;
}

/* --over, --epochs, .. are short for settings of [tune]. */
static bm_status read_settings(bm_tuning *t)
{
    static const char *const keys[] = {"epochs", "minutes", "trials", "target",
                                       "network"};
    enum { KEYS = sizeof keys / sizeof *keys };
    const bm_arguments *a = t->arguments;
    char over[1 << 14];
    char text[KEYS][PATH_MAX];
    const char *more[KEYS + 2] = {NULL};
    size_t n = 0;

    BM_TRY(join_over(a, over, sizeof over));
    if (bm_argument(a, "over") != NULL)
        more[n++] = over;
    for (size_t i = 0; i < KEYS; i++)
        if (bm_argument(a, keys[i]) != NULL) {
            snprintf(text[i], sizeof text[i], "tune.%s=%s", keys[i],
                     bm_argument(a, keys[i]));
            more[n++] = text[i];
        }
    BM_TRY(bm_settings_read_with(a, t->path, more, &t->config, &t->given));
    return bm_config_fill(t->config, "tune", bm_tune_options, &t->set);
}

/* Its trials are jobs of their own. */
static bm_status check_launcher(const bm_arguments *a)
{
    bm_launcher launcher = BM_LAUNCHER_NONE;

    BM_TRY(bm_launcher_find(a, &launcher));
    if (launcher != BM_LAUNCHER_NONE)
        return BM_FAIL(
            BM_ERR_ARG,
            "tune starts its trials itself: call it without mpirun "
            "or srun, and with -n RANKS for trials of several ranks");
    return BM_OK;
}

static bm_status prepare(bm_tuning *t)
{
    const bm_arguments *a = t->arguments;
    bm_network network;

    BM_TRY(check_launcher(a));
    BM_TRY(check_budget_options(a));
    BM_TRY(read_settings(t));
    BM_TRY(bm_network_read(t->set.network, &network)); /* before it is needed */
    BM_TRY(bm_argument_number(a, "ranks", 1, 1, 1 << 20, &t->ranks));
    BM_TRY(bm_settings_fit(t->config, &t->given, t->ranks));
    BM_TRY(bm_places_find(t));
    BM_TRY(open_data(t));
    if (t->set.epochs == 0)
        t->set.epochs = t->set.trials > 0 || t->set.minutes > 0
                            ? BM_TUNE_MOST_EPOCHS
                            : FULL_TRIALS * t->epochs;
    BM_TRY(check_budget(t));
    BM_TRY(bm_space_new(&t->space, t->set.over, &t->given, &t->regime));
    return bm_record_exists(t) ? BM_OK : bm_trial_check_over(t);
}

static bm_status tune(const bm_arguments *a)
{
    bm_tuning t = {.arguments = a,
                   .path = a->nouns[0],
                   .directory = bm_argument(a, "out"),
                   .lock = -1,
                   .began = bm_clock()};
    bm_status status = BM_OK;

    if (t.directory == NULL)
        return BM_FAIL(BM_ERR_ARG, "tune needs --out DIR");
    BM_TRY_DONE(prepare(&t));
    BM_TRY_DONE(bm_record_open(&t));
    describe(&t);
    bm_tune_catch_signals();
    (void)bm_progress_open(true);
    status = train_given(&t);
    if (status == BM_OK)
        status = search(&t);
    if (status == BM_OK)
        status = compare_finalists(&t);
    bm_progress_close();
    if (status == BM_STOPPED)
        bm_log(BM_NOTE, "stopped; the same command goes on from here");
done:
    bm_search_free(t.search);
    bm_places_free(&t);
    free(t.trials);
    free(t.blocks);
    bm_record_close(&t);
    bm_dataset_close(t.train);
    bm_dataset_close(t.dev);
    bm_config_free(t.config);
    return status;
}

static const bm_flag flags[] = {
    {"out", "DIR", "directory of the search", 'o', false},
    {"over", "RANGE", "a setting to search, as train.rate=0.01..0.2:log", 0,
     true},
    {"epochs", "N", "budget: epochs of all trials together", 0, false},
    {"minutes", "N", "budget: time", 0, false},
    {"trials", "N", "budget: number of trials", 0, false},
    {"target", "PERCENT",
     "search for the least time to this error, not for the fewest errors", 0,
     false},
    {"network", "NAME",
     "of that time: 1gbe, 10gbe (default), .., or a file; see bmuf scale", 0,
     false},
    {"jobs", "N",
     "trials side by side; default: as many as there are GPUs, or else cores, "
     "or "
     "as fit on the hosts",
     'j', false},
    {"ranks", "RANKS", "number of MPI processes of each trial", 'n', false},
    {"hosts", "HOST:SLOTS,..",
     "run trials over ssh on these hosts, each trial on one of them", 0, false},
    {"hostfile", "FILE", "the hosts are lines \"a slots=4\", as for mpirun", 0,
     false},
    {"interface", "NAME|CIDR",
     "network to the hosts, as eth0 or 10.0.0.0/24; default: all", 0, false},
    {"set", "SECTION.KEY=VALUE", "change a setting; may be repeated", 0, true},
    {0},
};

const bm_verb bm_verb_tune = {
    .name = "tune",
    .nouns = "CONFIG",
    .help = "search block size, block momentum, rates",
    .text = "  bmuf tune my.ini --out tune/1 --set job.workers=16\n"
            "  bmuf tune my.ini --out tune/2 --over block.steps=5..200 \\\n"
            "      --over bmuf.momentum=0.5..0.99:logit --over "
            "train.rate=0.01..0.2\n"
            "  bmuf tune my.ini --out tune/3 --target 5 --network 10gbe \\\n"
            "      --over block.steps=5..200 --over job.workers=4,16,64\n"
            "  bmuf tune my.ini --out tune/4 --hosts a:8,b:8\n\n"
            "Trains trials, stops most of them early, and trains the best with "
            "several seeds.\nWithout --over it searches what matters for the "
            "strategy. Workers are logical:\none computer can tune for 64. The "
            "same command goes on with a stopped search.\nLeaves best.ini, a "
            "configuration to train with, and trials.tsv; bmuf info\n"
            "DIR/trials shows the runs. See docs/tuning.md.\n",
    .flags = flags,
    .least = 1,
    .most = 1,
    .run = tune,
};
