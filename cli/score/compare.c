/* compare.c - bmuf compare: several runs on the same data set. */
#include "cli/json_output.h"
#include "cli/report/runs/differences.h"
#include "cli/report/runs/groups.h"
#include "cli/score/draws.h"
#include "cli/score/interval_text.h"
#include "cli/score/scoring.h"
#include "cli/score/session.h"
#include "cli/verbs.h"
#include "core/file/file_kind.h"
#include "core/text/printable.h"
#include "core/text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a run's errors are, and by how much they differ from the first run's. */
typedef struct rates {
    bm_interval of, than_first;
} rates;

typedef struct compared {
    char model[4096];
    rates labels, words;
} compared;

typedef struct comparison {
    const bm_arguments *a;
    bm_score_session session;
    bm_differences differences;
    const char *data;
    bm_draws draws;
    size_t sequences;
    bool words;                                 /* word errors are others */
    bm_error_count *first_labels, *first_words; /* [sequences] */
    size_t n;
    const char *names[BM_MOST_NOUNS]; /* [n], as they were given */
    compared runs[BM_MOST_NOUNS];
    bm_left_out left_out;
} comparison;

/* A pattern such as DIR/trials/t* may name texts, such as logs, beside runs. */
static bm_status choose_runs(comparison *c)
{
    for (int i = 0; i < c->a->n_nouns; i++) {
        const char *name = c->a->nouns[i];

        if (bm_text_kind(name) != NULL)
            bm_leave_out(&c->left_out, name);
        else if (c->n < BM_MOST_NOUNS)
            c->names[c->n++] = name;
        else
            return bm_too_many_runs(c->a->verb->name);
    }
    if (c->n >= 2)
        return BM_OK;
    return BM_FAIL(BM_ERR_ARG,
                   "compare: %s is a text, not a run, and fewer than two runs "
                   "are left; give two or more",
                   c->left_out.first);
}

/* --on, or data.dev of the first run. */
static bm_status choose_data(comparison *c)
{
    c->data = bm_argument(c->a, "on");
    if (c->data == NULL)
        c->data = bm_run_setting(&c->differences, 0, "data", "dev");
    if (c->data == NULL || c->data[0] == '\0')
        return BM_FAIL(BM_ERR_MISSING,
                       "compare: %s names no data.dev; give a data set with "
                       "--on DIR",
                       c->names[0]);
    return BM_OK;
}

static bool same_totals(const bm_error_count *a, const bm_error_count *b,
                        size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (a[i].total != b[i].total)
            return false;
    return true;
}

static bm_status keep_first(comparison *c, bm_scoring *s)
{
    c->sequences = s->data->n;
    c->words = !bm_vocab_words(s->net.vocab) && s->result.words > 0;
    c->first_labels = s->labels;
    c->first_words = s->words;
    s->labels = s->words = NULL;
    BM_TRY(
        bm_draws_interval(&c->draws, c->first_labels, &c->runs[0].labels.of));
    return bm_draws_interval(&c->draws, c->first_words, &c->runs[0].words.of);
}

/* Models of different losses count labels or frames. */
static bm_status check_same(const comparison *c, const bm_scoring *s,
                            const char *run)
{
    if (s->data->n == c->sequences &&
        same_totals(c->first_labels, s->labels, c->sequences))
        return BM_OK;
    return BM_FAIL(
        BM_ERR_FORMAT,
        "%s and %s have different reference labels on %s, so they cannot be "
        "compared; compare models of the same loss and vocabulary",
        c->names[0], run, c->data);
}

static bm_status set_rates(const comparison *c, const bm_error_count *first,
                           const bm_error_count *count, rates *out)
{
    BM_TRY(bm_draws_interval(&c->draws, count, &out->of));
    return bm_draws_difference(&c->draws, first, count, &out->than_first);
}

/* Each rank by itself. Of a set that fits the first run, but not this one, both
 * are named. */
static bm_status open_run(comparison *c, size_t k, bm_scoring *s)
{
    const char *run = c->names[k];
    bm_status status =
        bm_scoring_open(s, run, c->data, bm_argument(c->a, "force") != NULL);
    char why[2048];

    if (status == BM_OK && k == 0)
        return bm_draws_open(&c->draws, c->a, s->data);
    if (status != BM_ERR_FORMAT || k == 0)
        return status;
    snprintf(why, sizeof why, "%s", bm_last_message());
    return BM_FAIL(status, "%s and %s cannot be compared on %s: %s",
                   c->names[0], run, c->data, why);
}

static bm_status score(comparison *c, size_t k)
{
    bm_scoring s = {.comm = c->session.comm, .be = c->session.device.be};
    bm_status status = BM_OK;

    BM_TRY_DONE(bm_comm_agree(s.comm, open_run(c, k, &s)));
    BM_TRY_DONE(bm_scoring_run(&s, &c->session.plan, NULL));
    snprintf(c->runs[k].model, sizeof c->runs[k].model, "%s", s.model);
    if (k == 0) {
        status = keep_first(c, &s);
        goto done;
    }
    BM_TRY_DONE(check_same(c, &s, c->names[k]));
    BM_TRY_DONE(set_rates(c, c->first_labels, s.labels, &c->runs[k].labels));
    status = set_rates(c, c->first_words, s.words, &c->runs[k].words);
done:
    bm_scoring_close(&s);
    return status;
}

/* ---- results ------------------------------------------------------------ */

static void print_rates(const comparison *c, const char *title, bool words)
{
    printf("\nrun  %-12s  %-16s  than run 1\n", title, "95 %");
    for (int k = 0; k < (int)c->n; k++) {
        const rates *r = words ? &c->runs[k].words : &c->runs[k].labels;
        char rate[32], range[80], difference[120];

        snprintf(rate, sizeof rate, "%.2f %%", 100 * r->of.rate);
        bm_interval_text(&r->of, range);
        printf("%-3d  %12s  %-16s  %s\n", k + 1, isnan(r->of.rate) ? "-" : rate,
               range,
               k > 0 ? bm_difference_text(&r->than_first, difference) : "");
    }
}

enum { WIDE = 40 }; /* a column of values */

static const char *shown_value(const comparison *c, size_t run, size_t k,
                               char out[WIDE])
{
    return bm_printable(bm_difference_value(&c->differences, run, k), out,
                        WIDE);
}

/* A row for each setting that differs, a column for each run. */
static void print_settings(const comparison *c)
{
    int width[BM_MOST_NOUNS];
    char value[WIDE], name[64];

    for (int r = 0; r < (int)c->n; r++) {
        width[r] = 3;
        for (size_t k = 0; k < c->differences.n; k++)
            width[r] = (int)fmax(
                width[r], (double)strlen(shown_value(c, (size_t)r, k, value)));
    }
    printf("\n%-24s", c->differences.n > 0 ? "setting" : "equal settings");
    for (int r = 0; r < (int)c->n && c->differences.n > 0; r++)
        printf("  %-*d", width[r], r + 1);
    for (size_t k = 0; k < c->differences.n; k++) {
        printf("\n%-24s", bm_difference_name(&c->differences, k, name));
        for (int r = 0; r < (int)c->n; r++)
            printf("  %-*s", width[r], shown_value(c, (size_t)r, k, value));
    }
    printf("\n");
}

static void print_text(const comparison *c)
{
    char draws[200];

    printf("on %s: %s\n", c->data,
           bm_count_noun((long long)c->sequences, "sequence").text);
    if (bm_draws_text(&c->draws, draws)[0] != '\0')
        printf("intervals from %s\n", draws);
    for (int k = 0; k < (int)c->n; k++)
        printf("%s%-3d  %s\n", k == 0 ? "\nrun  model\n" : "", k + 1,
               c->runs[k].model);
    print_rates(c, "label errors", false);
    if (c->words)
        print_rates(c, "word errors", true);
    print_settings(c);
}

static json_t *settings_json(const comparison *c, size_t k)
{
    json_t *o = json_object();
    char name[64];

    for (size_t i = 0; i < c->differences.n; i++)
        json_object_set_new(
            o, bm_difference_name(&c->differences, i, name),
            bm_json_text(bm_difference_value(&c->differences, k, i)));
    return o;
}

static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *run_json(const comparison *c, size_t k)
{
    const compared *r = &c->runs[k];
    json_t *o = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "run", bm_json_text(c->names[k]),
        "model", bm_json_text(r->model), "settings", settings_json(c, k), "ler",
        real(r->labels.of.rate), "ler_95", bm_interval_json(&r->labels.of),
        "wer", real(r->words.of.rate), "wer_95",
        bm_interval_json(&r->words.of));

    if (k > 0)
        json_object_set_new(
            o, "than_first",
            json_pack("{s:o, s:o}", "ler",
                      bm_difference_json(&r->labels.than_first), "wer",
                      bm_difference_json(&r->words.than_first)));
    return o;
}

static void print_json(const comparison *c)
{
    json_t *runs = json_array();
    json_t *o = json_pack("{s:o, s:I}", "data", bm_json_text(c->data),
                          "sequences", (json_int_t)c->sequences);

    for (int k = 0; k < (int)c->n; k++)
        json_array_append_new(runs, run_json(c, (size_t)k));
    bm_draws_json(&c->draws, o);
    json_object_set_new(o, "runs", runs);
    bm_json_print(o, JSON_INDENT(1) | JSON_REAL_PRECISION(9));
}

static bm_status score_all(comparison *c)
{
    for (int k = 0; k < (int)c->n; k++)
        BM_TRY(score(c, (size_t)k));
    if (bm_comm_rank(c->session.comm) != 0)
        return BM_OK;
    bm_left_out_warn(&c->left_out);
    bm_draws_warn(&c->draws, c->sequences);
    if (bm_argument(c->a, "json") != NULL)
        print_json(c);
    else
        print_text(c);
    return BM_OK;
}

static bm_status compare(const bm_arguments *a)
{
    comparison *c = calloc(1, sizeof *c);
    bm_status status = BM_OK;

    if (c == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to compare runs");
    c->a = a;
    BM_TRY_DONE(choose_runs(c));
    BM_TRY_DONE(bm_differences_read(&c->differences, c->n, c->names));
    BM_TRY_DONE(choose_data(c));
    BM_TRY_DONE(bm_score_session_open(&c->session, a, 1));
    if (c->session.comm != NULL)
        status = score_all(c);
done:
    bm_score_session_close(&c->session);
    bm_differences_free(&c->differences);
    bm_draws_free(&c->draws);
    free(c->first_labels);
    free(c->first_words);
    free(c);
    return status;
}

static const bm_flag flags[] = {
    {"on", "DIR", "data set; default: data.dev of the first run", 0, false},
    BM_DRAW_FLAG,
    BM_JSON_FLAG,
    BM_RANKS_FLAG,
    BM_DEVICE_FLAGS,
    {0},
};

const bm_verb bm_verb_compare = {
    .name = "compare",
    .nouns = "RUN RUN...",
    .help = "compare runs: settings, error rates, significance",
    .text = "  bmuf compare run/a run/b\n"
            "  bmuf compare run/* --on data/test\n\n"
            "Scores the model of each run on the same data set, and compares "
            "it with that of\nthe first: sequences are drawn again, the same "
            "ones for both\n(docs/results/eval.md).\n",
    .flags = flags,
    .least = 2,
    .most = BM_MOST_INPUTS,
    .run = compare,
};
