#include "cli/score/score_report.h"

#include "cli/json_output.h"
#include "cli/score/interval_text.h"
#include "core/text/words.h"

#include <math.h>

/* Two-tailed; the customary bound of NIST's tests. */
static const double significant = 0.05;

/* ---- text ---------------------------------------------------------------- */

static void print_system(const bm_scored *s, const bm_scored_system *one)
{
    printf("hypothesis      %s\n", one->path);
    if (s->oracle)
        printf("oracle          the best of up to %s of a sequence\n",
               bm_count_noun((long long)one->readings, "reading").text);
    printf("sequences       %zu, %zu of them with errors (%.2f %%)\n",
           s->sequences, one->wrong,
           100 * (double)one->wrong / (double)s->sequences);
    bm_error_rate_print("word errors", &one->words, stdout);
    bm_error_rate_print("char errors", &one->characters, stdout);
    if (one->missing + one->more > 0)
        printf("other ids       %zu only in the reference, %zu only in the "
               "hypothesis\n",
               one->missing, one->more);
    if (one->outside > 0)
        printf("outside         %s outside all segments of the reference\n",
               bm_count_noun((long long)one->outside, "word").text);
}

static void print_speakers(const bm_scored *s, const bm_scored_system *one)
{
    printf("\n%-24s  sequences  %10s   errors    subst    delet    insert\n",
           "speaker", s->units);
    for (size_t k = 0; k < s->n_speakers; k++) {
        const bm_speaker_errors *of = &one->speakers[k];

        printf("%-24s  %9zu  %10.0f  %5.2f %%  %7.0f  %7.0f  %8.0f\n",
               s->speakers[k], of->sequences, of->errors.total,
               100 * bm_error_rate_value(&of->errors), of->errors.substitutions,
               of->errors.deletions, of->errors.insertions);
    }
}

static void print_confusions(const bm_scored *s, const bm_scored_system *one)
{
    size_t shown =
        one->n_confusions < s->n_shown ? one->n_confusions : s->n_shown;

    printf("\ntimes  %-24s  %s\n", "reference", "hypothesis");
    for (size_t k = 0; k < shown; k++) {
        const bm_confusion *c = &one->confusions[k];

        printf("%5zu  %-24s  %s\n", c->n, c->ref[0] != '\0' ? c->ref : "(none)",
               c->hyp[0] != '\0' ? c->hyp : "(none)");
    }
    if (shown < one->n_confusions)
        printf(
            "       .. and %s\n",
            bm_count_noun((long long)(one->n_confusions - shown), "other pair")
                .text);
}

static void print_sequences(const bm_scored *s, const bm_scored_system *one)
{
    printf("\nerrors    subst    delet    insert  %10s  sequence\n", s->units);
    for (size_t k = 0; k < one->n_worst; k++) {
        const bm_sequence_errors *of = &one->worst[k];

        printf("%6.0f  %7.0f  %7.0f  %8.0f  %10.0f  %s\n",
               bm_error_rate_errors(&of->errors), of->errors.substitutions,
               of->errors.deletions, of->errors.insertions, of->errors.total,
               of->id);
        printf("   reference   %s\n   hypothesis  %s\n", of->ref, of->hyp);
    }
    if (one->n_worst < one->n_faulty)
        printf("        .. and %s with errors\n",
               bm_count_noun((long long)(one->n_faulty - one->n_worst),
                             "other sequence")
                   .text);
}

/* "34 segments, z = -2.31, p = 0.0209: fewer errors" */
static void print_pairs(size_t k, const bm_scored_system *one)
{
    double z = 0, p = 0;

    bm_matched_pairs_test(&one->pairs, &z, &p);
    printf("matched pairs   %zu against 1: %s", k + 1,
           bm_count_noun((long long)one->pairs.segments, "segment").text);
    if (isnan(z))
        printf(", too few to test\n");
    else
        printf(", z = %.2f, p %s %.4f: %s\n", z, p < 1e-4 ? "<" : "=",
               fmax(p, 1e-4),
               p >= significant ? "not significant"
               : z > 0          ? "fewer errors"
                                : "more errors");
}

static void print_comparison(const bm_scored *s)
{
    char text[120];

    printf("\n");
    for (size_t k = 1; k < s->n; k++) {
        const bm_scored_system *one = &s->systems[k];

        printf("word errors     %zu than 1: %s\n", k + 1,
               bm_difference_text(&one->words_than_first, text));
        printf("char errors     %zu than 1: %s\n", k + 1,
               bm_difference_text(&one->characters_than_first, text));
        print_pairs(k, one);
    }
}

void bm_scored_print(const bm_scored *s)
{
    printf("reference       %s\n", s->reference);
    if (s->unlabelled > 0)
        printf("not scored      %s without a reference\n",
               bm_count_noun((long long)s->unlabelled, "sequence").text);
    for (size_t k = 0; k < s->n; k++) {
        const bm_scored_system *one = &s->systems[k];

        if (s->n > 1)
            printf("\nsystem          %zu\n", k + 1);
        print_system(s, one);
        if (s->n_speakers > 0)
            print_speakers(s, one);
        if (s->n_shown > 0)
            print_confusions(s, one);
        if (s->n_listed > 0)
            print_sequences(s, one);
    }
    if (s->n > 1)
        print_comparison(s);
}

/* ---- JSON ---------------------------------------------------------------- */

static json_t *real(double x)
{
    return isfinite(x) ? json_real(x) : json_null();
}

static json_t *rate_json(const bm_error_rate *r)
{
    return json_pack(
        "{s:o, s:o, s:I, s:I, s:I, s:I}", "rate", real(bm_error_rate_value(r)),
        "interval_95", bm_interval_json(&r->interval), "total",
        (json_int_t)r->total, "substitutions", (json_int_t)r->substitutions,
        "deletions", (json_int_t)r->deletions, "insertions",
        (json_int_t)r->insertions);
}

static json_t *speakers_json(const bm_scored *s, const bm_scored_system *one)
{
    json_t *list = json_array();

    for (size_t k = 0; k < s->n_speakers; k++) {
        json_t *row = rate_json(&one->speakers[k].errors);

        json_object_del(row, "interval_95");
        json_object_set_new(row, "speaker", bm_json_text(s->speakers[k]));
        json_object_set_new(
            row, "sequences",
            json_integer((json_int_t)one->speakers[k].sequences));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *confusions_json(const bm_scored *s, const bm_scored_system *one)
{
    json_t *list = json_array();

    for (size_t k = 0; k < one->n_confusions && k < s->n_shown; k++)
        json_array_append_new(list,
                              json_pack("{s:I, s:s, s:s}", "times",
                                        (json_int_t)one->confusions[k].n,
                                        "reference", one->confusions[k].ref,
                                        "hypothesis", one->confusions[k].hyp));
    return list;
}

static json_t *sequences_json(const bm_scored_system *one)
{
    json_t *list = json_array();

    for (size_t k = 0; k < one->n_worst; k++) {
        const bm_sequence_errors *of = &one->worst[k];
        json_t *row = rate_json(&of->errors);

        json_object_del(row, "interval_95");
        json_object_set_new(row, "id", bm_json_text(of->id));
        json_object_set_new(row, "reference", bm_json_text(of->ref));
        json_object_set_new(row, "hypothesis", bm_json_text(of->hyp));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *than_first_json(const bm_scored_system *one)
{
    double z = 0, p = 0;

    bm_matched_pairs_test(&one->pairs, &z, &p);
    return json_pack("{s:o, s:o, s:{s:I, s:o, s:o}}", "words",
                     bm_difference_json(&one->words_than_first), "characters",
                     bm_difference_json(&one->characters_than_first),
                     "matched_pairs", "segments",
                     (json_int_t)one->pairs.segments, "z", real(z), "p",
                     real(p));
}

static json_t *system_json(const bm_scored *s, size_t k)
{
    const bm_scored_system *one = &s->systems[k];
    json_t *o = json_pack(
        "{s:o, s:I, s:o, s:o, s:I, s:I, s:I}", "hypothesis",
        bm_json_text(one->path), "wrong", (json_int_t)one->wrong, "words",
        rate_json(&one->words), "characters", rate_json(&one->characters),
        "missing", (json_int_t)one->missing, "additional",
        (json_int_t)one->more, "outside", (json_int_t)one->outside);

    if (s->oracle)
        json_object_set_new(o, "readings",
                            json_integer((json_int_t)one->readings));
    if (s->n_speakers > 0)
        json_object_set_new(o, "speakers", speakers_json(s, one));
    if (s->n_shown > 0)
        json_object_set_new(o, "confusions", confusions_json(s, one));
    if (s->n_listed > 0)
        json_object_set_new(o, "sequences", sequences_json(one));
    if (k > 0)
        json_object_set_new(o, "than_first", than_first_json(one));
    return o;
}

void bm_scored_print_json(const bm_scored *s)
{
    json_t *systems = json_array();

    for (size_t k = 0; k < s->n; k++)
        json_array_append_new(systems, system_json(s, k));
    bm_json_print(json_pack("{s:o, s:s, s:s, s:s, s:I, s:I, s:o}", "reference",
                            bm_json_text(s->reference), "align", s->align,
                            "draw", s->draw, "units", s->units, "sequences",
                            (json_int_t)s->sequences, "unlabelled",
                            (json_int_t)s->unlabelled, "systems", systems),
                  JSON_INDENT(1) | JSON_REAL_PRECISION(9));
}
