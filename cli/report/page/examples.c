#include "cli/report/page/examples.h"

#include "cli/plot/markup.h"
#include "cli/report/page/page.h"
#include "core/grow.h"

#include <stdlib.h>
#include <string.h>

struct bm_example {
    int64_t sequence; /* its number in the data set */
    char *tag;
    int32_t *labels; /* [n_ref + n_hyp]: the reference, then the result */
    size_t n_ref, n_hyp, errors;
};

enum { WORST = 8, BEST = 4, MOST_PAIRS = 150, MOST_ROWS = 12 };

/* ---- collecting --------------------------------------------------------- */

bm_status bm_examples_see(void *self, const bm_seen *seen)
{
    bm_examples *e = self;
    bm_example x = {.sequence = seen->sequence,
                    .n_ref = seen->n_reference,
                    .n_hyp = seen->n,
                    .errors = bm_edits_total(seen->edits)};

    if (!seen->has_reference)
        return BM_OK;
    BM_TRY(bm_grow(&e->all, e->n, &e->room, sizeof *e->all));
    x.tag = strdup(seen->tag);
    x.labels = malloc((x.n_ref + x.n_hyp + 1) * sizeof *x.labels);
    if (x.tag == NULL || x.labels == NULL) {
        free(x.tag);
        free(x.labels);
        return BM_FAIL(BM_ERR_MEMORY, "no memory for examples");
    }
    if (x.n_ref > 0)
        memcpy(x.labels, seen->reference, x.n_ref * sizeof *x.labels);
    if (x.n_hyp > 0)
        memcpy(x.labels + x.n_ref, seen->labels, x.n_hyp * sizeof *x.labels);
    e->all[e->n++] = x;
    return BM_OK;
}

void bm_examples_free(bm_examples *e)
{
    for (size_t i = 0; i < e->n; i++) {
        free(e->all[i].tag);
        free(e->all[i].labels);
    }
    free(e->all);
    *e = (bm_examples){0};
}

/* ---- order -------------------------------------------------------------- */

static double rate_of(const bm_example *x)
{
    return (double)x->errors / (double)(x->n_ref > 0 ? x->n_ref : 1);
}

/* Highest error rate first; of equal ones the most errors, then the longest,
 * then the order of the data set, so that ties do not depend on anything
 * else. */
static int compare_worst(const void *a, const void *b)
{
    const bm_example *x = a, *y = b;

    if (rate_of(x) != rate_of(y))
        return rate_of(x) > rate_of(y) ? -1 : 1;
    if (x->errors != y->errors)
        return x->errors > y->errors ? -1 : 1;
    if (x->n_ref != y->n_ref)
        return x->n_ref > y->n_ref ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* Lowest error rate first; of equal ones the longest. */
static int compare_best(const void *a, const void *b)
{
    const bm_example *x = a, *y = b;

    if (rate_of(x) != rate_of(y))
        return rate_of(x) < rate_of(y) ? -1 : 1;
    if (x->n_ref != y->n_ref)
        return x->n_ref > y->n_ref ? -1 : 1;
    return (x->sequence > y->sequence) - (x->sequence < y->sequence);
}

/* ---- alignments --------------------------------------------------------- */

/* pairs [n_ref + n_hyp]; *n of them */
static bm_status align(const bm_examples *e, const bm_example *x,
                       bm_pair *pairs, size_t *n)
{
    const int32_t *hyp = x->labels + x->n_ref;

    if (!e->per_frame)
        return bm_align(x->labels, x->n_ref, hyp, x->n_hyp, &bm_edit_unit,
                        pairs, n);
    for (size_t i = 0; i < x->n_ref; i++)
        pairs[i] = (bm_pair){x->labels[i], hyp[i]};
    *n = x->n_ref;
    return BM_OK;
}

/* The symbol of a label, with a sign for what cannot be seen. */
static const char *symbol(const bm_vocab *vocab, int32_t label)
{
    const char *text = label < 0 ? "" : bm_vocab_symbol(vocab, label);

    if (label < 0)
        return "\xe2\x80\x93";                             /* a dash */
    return strcmp(text, " ") == 0 ? "\xe2\x90\xa3" : text; /* an open box */
}

static const char *kind_of(bm_pair p)
{
    return p.ref < 0        ? " ins"
           : p.hyp < 0      ? " del"
           : p.ref != p.hyp ? " sub"
                            : "";
}

static void write_pair(FILE *f, const bm_vocab *vocab, bm_pair p)
{
    fprintf(f, "<span class='pair%s'><span>", kind_of(p));
    bm_markup(f, symbol(vocab, p.ref));
    fputs("</span><span>", f);
    bm_markup(f, symbol(vocab, p.hyp));
    fputs("</span></span>", f);
}

static bm_status write_example(FILE *f, const bm_examples *e,
                               const bm_example *x, const bm_vocab *vocab)
{
    bm_pair *pairs = malloc((x->n_ref + x->n_hyp + 1) * sizeof *pairs);
    size_t n = 0;
    bm_status status = BM_OK;

    if (pairs == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for examples");
    BM_TRY_DONE(align(e, x, pairs, &n));
    fputs("<div class='example'><small>", f);
    bm_markup_format(f, "%s: %zu of %zu labels wrong", x->tag, x->errors,
                     x->n_ref);
    fprintf(f, "</small><div class='%spairs'>",
            bm_vocab_words(vocab) ? "words " : "");
    for (size_t i = 0; i < n && i < MOST_PAIRS; i++)
        write_pair(f, vocab, pairs[i]);
    fprintf(f, "%s</div></div>\n", n > MOST_PAIRS ? " ..." : "");
done:
    free(pairs);
    return status;
}

static bm_status write_examples(FILE *f, bm_examples *e, const bm_scoring *of)
{
    const bm_vocab *vocab = of->net.vocab;

    bm_report_page_section(f, "Examples");
    bm_report_page_words(
        f,
        "Above what was said or written (the reference), below what the model "
        "recognised. Labels without a colour are right. The model is %.400s, "
        "the data set %.400s.",
        of->model, of->data->directory);
    fputs("<p><span class='key sub'>taken for another</span> <span class='key "
          "del'>missing</span> <span class='key ins'>too many</span></p>\n",
          f);
    if (e->n > 0) /* qsort of NULL is undefined */
        qsort(e->all, e->n, sizeof *e->all, compare_worst);
    fputs("<h3>Most errors</h3>\n", f);
    if (e->n == 0 || e->all[0].errors == 0)
        bm_report_page_words(f, "No sequence has an error.");
    for (size_t i = 0; i < e->n && i < WORST && e->all[i].errors > 0; i++)
        BM_TRY(write_example(f, e, &e->all[i], vocab));
    if (e->n > 0)
        qsort(e->all, e->n, sizeof *e->all, compare_best);
    fputs("<h3>Fewest errors</h3>\n", f);
    for (size_t i = 0; i < e->n && i < BEST; i++)
        BM_TRY(write_example(f, e, &e->all[i], vocab));
    bm_report_page_section_end(f);
    return BM_OK;
}

/* ---- confusions --------------------------------------------------------- */

/* A kind of error, and how often it occurs. */
typedef struct confusion {
    bm_pair pair;
    size_t count;
} confusion;

static int compare_pairs(const void *a, const void *b)
{
    const confusion *x = a, *y = b;

    if (x->pair.ref != y->pair.ref)
        return x->pair.ref < y->pair.ref ? -1 : 1;
    return (x->pair.hyp > y->pair.hyp) - (x->pair.hyp < y->pair.hyp);
}

static int compare_counts(const void *a, const void *b)
{
    const confusion *x = a, *y = b;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return compare_pairs(a, b);
}

/* all <- errors of all sequences, each kind once, the commonest first; returns
 * how many kinds. `all` has room for every error. */
static size_t merge(confusion *all, size_t n)
{
    size_t kinds = 0;

    if (n == 0)
        return 0;
    qsort(all, n, sizeof *all, compare_pairs);
    for (size_t i = 0; i < n; i++)
        if (kinds > 0 && compare_pairs(&all[kinds - 1], &all[i]) == 0)
            all[kinds - 1].count++;
        else
            all[kinds++] = all[i];
    qsort(all, kinds, sizeof *all, compare_counts);
    return kinds;
}

static bm_status collect(const bm_examples *e, confusion **out, size_t *kinds)
{
    size_t errors = 0, longest = 0, at = 0, n = 0;
    confusion *all = NULL;
    bm_pair *pairs = NULL;
    bm_status status = BM_OK;

    for (size_t i = 0; i < e->n; i++) {
        size_t length = e->all[i].n_ref + e->all[i].n_hyp;

        errors += e->all[i].errors;
        longest = length > longest ? length : longest;
    }
    all = malloc((errors + 1) * sizeof *all);
    pairs = malloc((longest + 1) * sizeof *pairs);
    if (all == NULL || pairs == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for %zu errors", errors);
    for (size_t i = 0; i < e->n; i++) {
        if (e->all[i].errors == 0)
            continue;
        BM_TRY_DONE(align(e, &e->all[i], pairs, &n));
        for (size_t k = 0; k < n; k++)
            if (pairs[k].ref != pairs[k].hyp && at < errors)
                all[at++] = (confusion){pairs[k], 1};
    }
    *kinds = merge(all, at);
    *out = all;
    all = NULL;
done:
    free(all);
    free(pairs);
    return status;
}

enum kind { SUBSTITUTIONS, DELETIONS, INSERTIONS };

static bool is_of(bm_pair p, enum kind kind)
{
    return kind == DELETIONS    ? p.hyp < 0
           : kind == INSERTIONS ? p.ref < 0
                                : p.ref >= 0 && p.hyp >= 0;
}

/* The commonest errors of a kind. */
static void write_table(FILE *f, const bm_vocab *vocab, const confusion *all,
                        size_t kinds, enum kind kind)
{
    static const char *const heads[][3] = {
        {"reference", "recognised", "times"},
        {"missing", "times"},
        {"too many", "times"},
    };
    size_t rows = 0, columns = kind == SUBSTITUTIONS ? 3 : 2;

    for (size_t i = 0; i < kinds && rows < MOST_ROWS; i++) {
        bm_pair p = all[i].pair;
        const char *cells[3] = {
            symbol(vocab, kind == INSERTIONS ? p.hyp : p.ref),
            symbol(vocab, p.hyp)};
        char times[32];

        if (!is_of(p, kind))
            continue;
        if (rows++ == 0)
            bm_report_table_begin(f, heads[kind], columns);
        snprintf(times, sizeof times, "%zu", all[i].count);
        cells[columns - 1] = times;
        bm_report_table_row(f, cells, columns);
    }
    if (rows > 0)
        bm_report_table_end(f);
}

static bm_status write_confusions(FILE *f, const bm_examples *e,
                                  const bm_scoring *of)
{
    confusion *all = NULL;
    size_t kinds = 0;

    BM_TRY(collect(e, &all, &kinds));
    bm_report_page_section(f, "Confusions");
    bm_report_page_words(
        f,
        "The commonest errors of each kind, of %.0f labels taken for another, "
        "%.0f missing and %.0f too many: a pair that stands out points to "
        "sounds or shapes that the features do not tell apart, or to errors "
        "in the references.",
        of->result.substitutions, of->result.deletions, of->result.insertions);
    fputs("<div class='side'>\n", f);
    for (int kind = SUBSTITUTIONS; kind <= INSERTIONS; kind++)
        write_table(f, of->net.vocab, all, kinds, (enum kind)kind);
    fputs("</div>\n", f);
    bm_report_page_section_end(f);
    free(all);
    return BM_OK;
}

bm_status bm_examples_write(FILE *f, bm_examples *e, const bm_scoring *of)
{
    BM_TRY(write_examples(f, e, of));
    return write_confusions(f, e, of);
}
