/* outcome.c - what a search has found: finalists, tables, best.ini. */
#include "cli/tune/tuning.h"
#include "core/file/file.h"
#include "core/file/path.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SHOWN = 10 }; /* rows of the table on the terminal */

/* A trial, and its score at the end of training as far as it is known. */
typedef struct candidate {
    size_t trial;
    double expected;
} candidate;

static int by_expected(const void *a, const void *b)
{
    const candidate *x = a, *y = b;

    if (x->expected != y->expected)
        return x->expected < y->expected ? -1 : 1;
    return x->trial < y->trial ? -1 : x->trial > y->trial;
}

/* Trials that have not failed, the best first: by what the model of all results
 * expects at the end of training, or by the rung they have reached. So a trial
 * that was begun late counts, and luck at the end counts for less. */
static bm_status rank_trials(const bm_tuning *t, candidate *out, size_t *n)
{
    size_t all = bm_search_trials(t->search);
    size_t *rank = malloc((all + 1) * sizeof *rank);
    double x[BM_GAUSS_AXES], deviation = 0;
    bm_gauss *g = NULL;
    bm_status status = BM_OK;

    *n = 0;
    if (rank == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu trials", all);
    bm_search_rank(t->search, rank);
    if (t->set.model)
        BM_TRY_DONE(bm_search_model(t->search, &g));
    for (size_t i = 0; i < all; i++) {
        int rung = bm_search_rung(t->search, rank[i]);
        double expected = (double)*n;

        if (rung < 0 || !isfinite(bm_search_score(t->search, rank[i], rung)))
            continue;
        memcpy(x, bm_search_point(t->search, rank[i]), t->space.n * sizeof *x);
        x[t->space.n] = 1;
        if (g != NULL)
            bm_gauss_predict(g, x, &expected, &deviation);
        out[(*n)++] = (candidate){rank[i], expected};
    }
    qsort(out, *n, sizeof *out, by_expected);
done:
    bm_gauss_free(g);
    free(rank);
    return status;
}

bm_status bm_finalists(const bm_tuning *t, size_t *out, size_t *n)
{
    size_t all = bm_search_trials(t->search), ranked = 0;
    candidate *list = malloc((all + 1) * sizeof *list);
    bm_status status = BM_OK;

    *n = 0;
    if (list == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu trials", all);
    BM_TRY_DONE(rank_trials(t, list, &ranked));
    for (size_t i = 0; i < ranked && *n < (size_t)t->set.finalists; i++)
        if (list[i].trial != 0)
            out[(*n)++] = list[i].trial;
    out[(*n)++] = 0; /* the given one */
done:
    free(list);
    return status;
}

double bm_result_value(const bm_tuning *t, const bm_tune_result *r)
{
    return t->set.target > 0 ? r->target_s : r->ler;
}

void bm_value_text(const bm_tuning *t, double value, char out[32])
{
    if (isnan(value))
        snprintf(out, 32, "not reached");
    else if (t->set.target > 0)
        snprintf(out, 32, value < 1000 ? "%.3g s" : "%.0f s", value);
    else
        snprintf(out, 32, "%.2f %%", 100 * value);
}

/* The 97.5 % quantile of Student's t. */
static double student(size_t freedom)
{
    static const double table[] = {NAN,   12.71, 4.303, 3.182, 2.776, 2.571,
                                   2.447, 2.365, 2.306, 2.262, 2.228, 2.201,
                                   2.179, 2.160, 2.145, 2.131, 2.120, 2.110,
                                   2.101, 2.093, 2.086};
    size_t n = sizeof table / sizeof *table;

    /* Beyond: its expansion in 1 / freedom (Abramowitz & Stegun 26.7.5). */
    return freedom < n ? table[freedom] : 1.960 + 2.372 / (double)freedom;
}

long bm_final_seed(size_t trial, long k)
{
    return trial == 0 ? k : k + 1;
}

/* *squares grows by the squared distances from the mean. */
static void sum_up(const bm_tuning *t, bm_finalist *f, double *squares)
{
    double sum = 0;

    f->n = 0;
    f->value = NAN;
    for (int pass = 0; pass < 2; pass++)
        for (long k = 0; k < t->set.seeds; k++) {
            bm_tune_job job = {f->trial, (int)t->set.rungs - 1,
                               bm_final_seed(f->trial, k)};
            const bm_tune_result *r = bm_record_find(t, job);

            double value = r != NULL ? bm_result_value(t, r) : NAN;

            if (isnan(value))
                continue;
            if (pass == 1) {
                *squares += (value - f->value) * (value - f->value);
                continue;
            }
            sum += value;
            f->n++;
            f->value = sum / (double)f->n;
        }
}

/* One whose seeds do not all have a value comes after those that have. Of equal
 * ones the given configuration is the best. */
static int by_value(const void *a, const void *b)
{
    const bm_finalist *x = a, *y = b;

    if (x->n != y->n)
        return x->n < y->n ? 1 : -1;
    if (x->value < y->value || x->value > y->value)
        return x->value < y->value ? -1 : 1;
    return (x->trial > y->trial) - (x->trial < y->trial);
}

/* Half of the 95 % interval of a mean, or of the difference of two, from the
 * pooled variance: `inverse` is 1 / n, or 1 / n + 1 / m. */
static double half_of(double squares, size_t freedom, double inverse)
{
    return student(freedom) * sqrt(squares / (double)freedom * inverse);
}

void bm_finalists_judge(const bm_tuning *t, bm_finalist *list, size_t n)
{
    bm_finalist given = {0};
    double squares = 0;
    size_t freedom = 0;

    for (size_t i = 0; i < n; i++) {
        sum_up(t, &list[i], &squares);
        freedom += list[i].n > 0 ? list[i].n - 1 : 0;
    }
    for (size_t i = 0; i < n; i++)
        if (list[i].trial == 0)
            given = list[i];
    for (size_t i = 0; i < n; i++) {
        bm_finalist *f = &list[i];
        double half = half_of(squares, freedom, 1 / (double)f->n);
        double low = f->value - half;

        f->low = isnan(low) ? NAN : fmax(low, 0);
        f->high = f->value + half;
        f->change = f->value - given.value;
        f->change_half =
            half_of(squares, freedom, 1 / (double)f->n + 1 / (double)given.n);
    }
    qsort(list, n, sizeof *list, by_value);
}

/* The epochs that a result was trained for. */
static long trained(const bm_tuning *t, const bm_tune_result *r)
{
    return r->trained >= 0 ? r->trained
                           : bm_trial_epochs(t, r->job.trial, r->job.rung);
}

static const char *origin(const bm_tuning *t, size_t trial)
{
    static const char *const words[] = {[BM_ORIGIN_GIVEN] = "given",
                                        [BM_ORIGIN_SEQUENCE] = "sequence",
                                        [BM_ORIGIN_MODEL] = "model"};

    return words[bm_search_origin_of(t->search, trial)];
}

const bm_tune_result *bm_last_result(const bm_tuning *t, size_t trial)
{
    const bm_tune_result *r = NULL;

    for (int rung = (int)t->set.rungs - 1; rung >= 0 && r == NULL; rung--)
        r = bm_record_find(t, (bm_tune_job){trial, rung, 0});
    return r;
}

static void print_number(FILE *to, const char *format, double x)
{
    fputc('\t', to);
    if (isfinite(x))
        fprintf(to, format, x);
}

static void print_row(const bm_tuning *t, const bm_tune_result *r, FILE *to)
{
    char text[BM_AXIS_TEXT], label[32];

    bm_trial_name(r->job, label);
    fprintf(to, "%s\t%s\t%d\t%ld\t%ld\t%s", label, origin(t, r->job.trial),
            r->job.rung + 1, trained(t, r), t->given.job.seed + r->job.seed,
            r->state);
    print_number(to, "%.6f", r->ler);
    print_number(to, "%.6g", r->loss);
    print_number(to, "%.1f", r->seconds);
    print_number(to, "%.6g", r->cluster_s);
    print_number(to, "%.6g", r->target_s);
    for (size_t k = 0; k < t->space.n; k++)
        fprintf(to, "\t%s", bm_trial_text(t, r->job.trial, k, text));
    for (size_t i = 0; i < t->trials[r->job.trial].n; i++)
        fprintf(to, "%s%s", i == 0 ? "\t" : " ",
                t->trials[r->job.trial].row[i].text);
    fprintf(to, "\t%s\n", r->reason);
}

static void print_table(const bm_tuning *t, FILE *to)
{
    fprintf(to, "trial\torigin\trung\tepochs\tseed\tstate\tler\tloss\tseconds\t"
                "cluster_s\ttarget_s");
    for (size_t k = 0; k < t->space.n; k++)
        fprintf(to, "\t%s", t->space.axis[k].name);
    fprintf(to, "\tsettings\treason\n");
    for (size_t i = 0; i < t->n_results; i++)
        if (t->results[i].job.trial < t->n_trials)
            print_row(t, &t->results[i], to);
}

bm_status bm_outcome_tsv(const bm_tuning *t)
{
    char path[PATH_MAX];
    bm_file_replacement r;
    bm_status status = BM_OK;

    if (t->search == NULL)
        return BM_OK;
    BM_TRY(bm_path_join(path, t->directory, "trials.tsv"));
    BM_TRY(bm_file_replace_begin(&r, path));
    BM_TRY_DONE(bm_file_replace_stream(&r));
    print_table(t, r.stream);
    status = bm_file_replace_commit(&r, true);
done:
    bm_file_replace_abort(&r);
    return status;
}

static void print_head(const bm_tuning *t)
{
    printf("%-6s %-8s %6s %8s", "trial", "origin", "epochs", "errors");
    if (t->set.target > 0)
        printf("  %11s", "to target");
    for (size_t k = 0; k < t->space.n; k++)
        printf("  %s", t->space.axis[k].name);
    printf("\n");
}

static void print_trial(const bm_tuning *t, size_t trial)
{
    const bm_tune_result *r = bm_last_result(t, trial);
    char label[32], text[BM_AXIS_TEXT];

    if (r == NULL)
        return;
    bm_trial_name(r->job, label);
    printf("%-6s %-8s %6ld ", label, origin(t, trial), trained(t, r));
    if (isfinite(r->score))
        printf("%6.2f %%", 100 * r->ler);
    else
        printf("%8s", r->state);
    if (t->set.target > 0) {
        bm_value_text(t, r->target_s, text);
        printf("  %11s", text);
    }
    for (size_t k = 0; k < t->space.n; k++)
        printf("  %*s", (int)strlen(t->space.axis[k].name),
               bm_trial_text(t, trial, k, text));
    printf("\n");
}

static void print_finals(const bm_tuning *t, const bm_finalist *list, size_t n)
{
    if (t->set.target > 0)
        printf("\nMean time over seeds until %g %% errors on dev, on %s, with "
               "95 %% intervals\n",
               t->set.target, t->set.network);
    else
        printf("\nMean errors on dev after the last epoch, over seeds, with "
               "95 %% intervals\n");
    for (size_t i = 0; i < n; i++) {
        char label[32], mean[32], low[32], high[32];

        bm_trial_name((bm_tune_job){.trial = list[i].trial}, label);
        bm_value_text(t, list[i].value, mean);
        bm_value_text(t, list[i].low, low);
        bm_value_text(t, list[i].high, high);
        if (list[i].n == 0)
            printf("%-6s no seed %s", label,
                   t->set.target > 0 ? "reached it" : "ended well");
        else if (isnan(list[i].low))
            printf("%-6s %8s, one seed", label, mean);
        else
            printf("%-6s %8s (%s to %s), %zu of %ld seeds", label, mean, low,
                   high, list[i].n, t->set.seeds);
        printf("%s\n",
               list[i].trial == 0 ? ", the configuration as it was given" : "");
    }
}

bool bm_change_text(const bm_tuning *t, const bm_finalist *best, char *out,
                    size_t room)
{
    bool time = t->set.target > 0;
    double unit = time ? 1 : 100;
    char label[32];

    if (best->trial == 0 || !isfinite(best->change))
        return false;
    bm_trial_name((bm_tune_job){.trial = best->trial}, label);
    if (!isfinite(best->change_half)) {
        snprintf(out, room,
                 "%s is better than the given configuration by %.3g %s with "
                 "one seed, which may be chance: a larger tune.seeds tells",
                 label, -unit * best->change, time ? "s" : "points");
        return true;
    }
    snprintf(out, room,
             "%s is better than the given configuration by %.3g %s (%.3g to "
             "%.3g)%s",
             label, -unit * best->change, time ? "s" : "points",
             unit * (-best->change - best->change_half),
             unit * (-best->change + best->change_half),
             best->change + best->change_half < 0
                 ? ""
                 : ", which may be chance: a larger tune.seeds tells");
    return true;
}

/* Prints what the errors are of, and warns if most labels are wrong. */
static void print_doubts(const bm_tuning *t, const bm_finalist *best)
{
    if (t->set.target > 0)
        return;
    printf(
        "\nThese errors are of the last epoch; bmuf eval, decode, compare and "
        "info take the best one of a run\n");
    if (best->value > 0.5)
        printf("More than half of all labels are wrong with the best settings, "
               "too: raise train.epochs, or see \"When most labels stay "
               "wrong\" in docs/tuning.md\n");
}

typedef struct merit {
    long epochs;
    double score;
    size_t trial;
} merit;

static int by_merit(const void *a, const void *b)
{
    const merit *x = a, *y = b;

    if (isinf(x->score) != isinf(y->score))
        return isinf(x->score) ? 1 : -1;
    if (x->epochs != y->epochs)
        return x->epochs > y->epochs ? -1 : 1;
    if (x->score != y->score)
        return x->score < y->score ? -1 : 1;
    return x->trial < y->trial ? -1 : 1;
}

/* By the epochs they have had, those of the last rung included. */
static void print_best_trials(const bm_tuning *t)
{
    merit *list = calloc(t->n_trials + 1, sizeof *list);

    if (list == NULL)
        return;
    for (size_t i = 0; i < t->n_trials; i++) {
        const bm_tune_result *r = bm_last_result(t, i);

        list[i] = (merit){r != NULL ? bm_trial_epochs(t, i, r->job.rung) : 0,
                          r != NULL ? r->score : INFINITY, i};
    }
    qsort(list, t->n_trials, sizeof *list, by_merit);
    for (size_t i = 0; i < t->n_trials && i < SHOWN; i++)
        print_trial(t, list[i].trial);
    if (t->n_trials > SHOWN)
        printf("and %zu more in %s/trials.tsv\n", t->n_trials - SHOWN,
               t->directory);
    free(list);
}

/* The values of a list that no trial had. */
static void print_untried(const bm_tuning *t)
{
    for (size_t k = 0; k < t->space.n; k++) {
        const bm_axis *a = &t->space.axis[k];
        bool tried[BM_AXIS_MOST_WORDS] = {false};

        if (a->scale != BM_AXIS_WORDS)
            continue;
        for (size_t i = 0; i < t->n_trials; i++)
            if (!isnan(bm_trial_value(t, i, k)))
                tried[(int)bm_trial_value(t, i, k)] = true;
        for (int w = 0; w < a->n_words; w++)
            if (!tried[w])
                printf("no trial had %s = %s: there were too few trials, or "
                       "bmuf explain warns of it\n",
                       a->name, a->words[w]);
    }
}

void bm_outcome_print(const bm_tuning *t, const bm_finalist *list, size_t n)
{
    char change[300];

    print_head(t);
    print_best_trials(t);
    print_untried(t);
    print_finals(t, list, n);
    if (n == 0 || list[0].n == 0)
        return;
    if (bm_change_text(t, &list[0], change, sizeof change))
        printf("%s\n", change);
    printf("\nFigures in %s/report.html. The best settings, in "
           "%s/best.ini\n",
           t->directory, t->directory);
    for (size_t i = 0; i < t->trials[list[0].trial].n; i++)
        printf("  %s\n", t->trials[list[0].trial].row[i].text);
    if (t->trials[list[0].trial].n == 0)
        printf("  are those that were given\n");
    print_doubts(t, &list[0]);
}

bm_status bm_outcome_best(const bm_tuning *t, size_t trial)
{
    bm_config *config = NULL;
    bm_settings set;
    char path[PATH_MAX];
    bm_status status = BM_OK;

    snprintf(path, sizeof path, "%s/best.ini", t->directory);
    BM_TRY(bm_trial_settings(t, &t->trials[trial], &config, &set));
    status = bm_settings_write(config, path);
    bm_config_free(config);
    return status;
}
