/* score.c - bmuf score: recognised texts against references. */
#include "cli/json_output.h"
#include "cli/score/draws.h"
#include "cli/score/interval_text.h"
#include "cli/score/score_parts.h"
#include "core/grow.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* ---- counting ------------------------------------------------------------ */

static void add_edits(bm_error_rate *sum, bm_edits e, size_t total)
{
    sum->substitutions += (double)e.substitutions;
    sum->deletions += (double)e.deletions;
    sum->insertions += (double)e.insertions;
    sum->total += (double)total;
}

static bm_status keep_confused(bm_text_scoring *s, bm_text_tally *t)
{
    const bm_text_pairs *pairs = &t->last.word_pairs;

    if (s->of_characters) {
        BM_TRY(bm_text_pair_characters(s->scorer, &t->last));
        pairs = &t->last.character_pairs;
    }
    for (size_t k = 0; k < pairs->n; k++) {
        if (pairs->of[k].ref == pairs->of[k].hyp)
            continue;
        BM_TRY(bm_grow(&t->confused, t->n_confused, &t->room,
                       sizeof *t->confused));
        t->confused[t->n_confused++] = pairs->of[k];
    }
    return BM_OK;
}

/* t->last <- the errors of a reading of text i of the reference; heard: the
 * hypothesis that it belongs to, NULL: there is none. */
static bm_status compare_with(bm_text_scoring *s, size_t i, const char *reading,
                              const bm_utterance *heard, bm_text_tally *t)
{
    const bm_utterance *u = &s->ref.of[i];
    const char *path = s->ref.path;
    bm_status status =
        bm_text_score(s->scorer, u->text, s->alternatives, reading, &t->last);

    if (status != BM_ERR_FORMAT)
        return status;
    if (t->last.bad_hyp && heard != NULL) {
        u = heard;
        path = t->texts.path;
    }
    return BM_FAIL(BM_ERR_FORMAT, "id %s (%s:%zu): %s", u->id, path, u->line,
                   bm_last_message());
}

/* *out <- the reading with the fewest word errors, of equal ones the first. */
static bm_status find_best(bm_text_scoring *s, size_t i,
                           const bm_utterance *heard, bm_text_tally *t,
                           const char **out)
{
    const char *reading = heard->readings;
    size_t least = SIZE_MAX;

    for (size_t k = 0; k < heard->n_readings; k++) {
        BM_TRY(compare_with(s, i, reading, heard, t));
        if (bm_edits_total(t->last.words) < least) {
            least = bm_edits_total(t->last.words);
            *out = reading;
        }
        reading += strlen(reading) + 1;
    }
    return BM_OK;
}

/* t->last <- the errors of a system in text i of the reference. */
static bm_status compare_text(bm_text_scoring *s, size_t i, bm_text_tally *t)
{
    const bm_utterance *heard = NULL;
    const char *text = "";

    if (t->match[i] != BM_NO_UTTERANCE) {
        heard = &t->texts.of[t->match[i]];
        text = heard->text;
        if (s->scored.oracle)
            BM_TRY(find_best(s, i, heard, t, &text));
    }
    return compare_with(s, i, text, heard, t);
}

/* Adds the errors that the tables count. */
static void add_units(const bm_text_scoring *s, const bm_text_errors *e,
                      bm_error_rate *sum)
{
    if (s->of_characters)
        add_edits(sum, e->characters, e->n_characters);
    else
        add_edits(sum, e->words, e->n_words);
}

/* Counts of scored text n, number i of the reference, for the tables. */
static void fill_tables(const bm_text_scoring *s, const bm_text_errors *e,
                        size_t i, size_t n, bm_scored_system *out)
{
    if (s->want_speakers) {
        bm_speaker_errors *of = &out->speakers[s->speaker[n]];

        of->sequences++;
        add_units(s, e, &of->errors);
    }
    if (s->scored.n_listed > 0) {
        bm_sequence_errors *of = &out->worst[n];

        *of = (bm_sequence_errors){.id = s->ref.of[i].id, .text = i};
        add_units(s, e, &of->errors);
        out->n_faulty += bm_error_rate_errors(&of->errors) > 0;
    }
}

/* Text i of the reference with what system k recognised, as scored text n. */
static bm_status score_text(bm_text_scoring *s, size_t i, size_t k, size_t n)
{
    bm_text_tally *t = &s->tallies[k];
    bm_scored_system *sum = &s->systems[k];
    const bm_text_pairs *first = &s->tallies[0].last.word_pairs;

    BM_TRY(compare_text(s, i, t));
    t->words[n] = (bm_error_count){(double)bm_edits_total(t->last.words),
                                   (double)t->last.n_words};
    t->characters[n] =
        (bm_error_count){(double)bm_edits_total(t->last.characters),
                         (double)t->last.n_characters};
    add_edits(&sum->words, t->last.words, t->last.n_words);
    add_edits(&sum->characters, t->last.characters, t->last.n_characters);
    sum->wrong += bm_edits_total(t->last.words) > 0;
    fill_tables(s, &t->last, i, n, sum);
    if (k > 0)
        BM_TRY(bm_matched_pairs_add(&sum->pairs, first->of, first->n,
                                    t->last.word_pairs.of,
                                    t->last.word_pairs.n));
    return s->scored.n_shown > 0 ? keep_confused(s, t) : BM_OK;
}

/* Is this text scored? A text that a system lacks is, unless they are
 * skipped. */
static bool is_scored(bm_text_scoring *s, size_t i)
{
    bool all = true;

    if (!s->ref.of[i].has_text) {
        s->scored.unlabelled++;
        return false;
    }
    for (size_t k = 0; k < s->scored.n; k++)
        if (s->tallies[k].match[i] == BM_NO_UTTERANCE) {
            s->systems[k].missing++;
            all = false;
        }
    return all || s->missing == BM_MISSING_EMPTY;
}

static bm_status make_room(bm_text_scoring *s, size_t n)
{
    for (size_t k = 0; k < s->scored.n; k++) {
        bm_text_tally *t = &s->tallies[k];

        t->words = calloc(n + 1, sizeof *t->words);
        t->characters = calloc(n + 1, sizeof *t->characters);
        s->systems[k].speakers =
            calloc(s->scored.n_speakers + 1, sizeof *s->systems[k].speakers);
        s->systems[k].worst = calloc(s->scored.n_listed > 0 ? n + 1 : 1,
                                     sizeof *s->systems[k].worst);
        if (t->words == NULL || t->characters == NULL ||
            s->systems[k].speakers == NULL || s->systems[k].worst == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory to score %zu texts", n);
    }
    return BM_OK;
}

static bm_status score_all(bm_text_scoring *s)
{
    size_t *which = calloc(s->ref.n + 1, sizeof *which), n = 0;
    bm_status status = BM_OK;

    if (which == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to score %zu texts", s->ref.n);
    for (size_t i = 0; i < s->ref.n; i++)
        if (is_scored(s, i))
            which[n++] = i;
    if (n == 0)
        BM_FAIL_DONE(BM_ERR_FORMAT, "%s: %s", s->ref.path,
                     s->scored.unlabelled < s->ref.n
                         ? "no id is in all files, so there is no text to score"
                         : "there is no text to score");
    s->scored.sequences = n;
    if (s->want_speakers)
        BM_TRY_DONE(bm_text_scoring_speakers(s, which, n));
    BM_TRY_DONE(make_room(s, n));
    for (size_t j = 0; j < n; j++)
        for (size_t k = 0; k < s->scored.n; k++)
            BM_TRY_DONE(score_text(s, which[j], k, j));
done:
    free(which);
    return status;
}

/* ---- results ------------------------------------------------------------- */

/* count [n] <- its sums over speakers, if those are drawn; returns how many. */
static size_t pool(const bm_text_scoring *s, bm_error_count *count,
                   bm_error_count *sum)
{
    size_t n = s->scored.sequences, speakers = s->scored.n_speakers;

    if (!s->by_speaker)
        return n;
    bm_speakers_sum(s->speaker, count, n, sum, speakers);
    memcpy(count, sum, speakers * sizeof *sum);
    return speakers;
}

/* Alternatives of the reference may have other numbers of words for other
 * systems: both rates are then of the mean of these numbers. */
static bm_status compare(const bm_error_count *first,
                         const bm_error_count *count, size_t n,
                         bm_error_count *a, bm_error_count *b, bm_interval *out)
{
    for (size_t i = 0; i < n; i++) {
        double total = (first[i].total + count[i].total) / 2;

        a[i] = (bm_error_count){first[i].errors, total};
        b[i] = (bm_error_count){count[i].errors, total};
    }
    return bm_bootstrap_difference(a, b, n, out);
}

static int by_pair(const void *a, const void *b)
{
    const bm_pair *x = a, *y = b;

    return x->ref != y->ref ? (x->ref > y->ref) - (x->ref < y->ref)
                            : (x->hyp > y->hyp) - (x->hyp < y->hyp);
}

static int by_times(const void *a, const void *b)
{
    const bm_confusion *x = a, *y = b;
    int order = (x->n < y->n) - (x->n > y->n);

    order = order != 0 ? order : strcmp(x->ref, y->ref);
    return order != 0 ? order : strcmp(x->hyp, y->hyp);
}

static const char *symbol(const bm_text_scoring *s, int32_t class)
{
    return class < 0          ? ""
           : s->of_characters ? bm_text_character(s->scorer, class)
                              : bm_text_word(s->scorer, class);
}

static bm_status count_confusions(const bm_text_scoring *s, bm_text_tally *t,
                                  bm_scored_system *out)
{
    bm_confusion *list = calloc(t->n_confused + 1, sizeof *list);
    size_t n = 0;

    if (list == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu errors",
                       t->n_confused);
    if (t->n_confused > 0)
        qsort(t->confused, t->n_confused, sizeof *t->confused, by_pair);
    for (size_t k = 0; k < t->n_confused; k++) {
        const bm_pair *p = &t->confused[k];

        if (k == 0 || by_pair(p, p - 1) != 0)
            list[n++] = (bm_confusion){symbol(s, p->ref), symbol(s, p->hyp), 0};
        list[n - 1].n++;
    }
    qsort(list, n, sizeof *list, by_times);
    out->confusions = list;
    out->n_confusions = n;
    return BM_OK;
}

static int by_errors(const void *a, const void *b)
{
    const bm_sequence_errors *x = a, *y = b;
    double m = bm_error_rate_errors(&x->errors),
           n = bm_error_rate_errors(&y->errors);

    return m != n ? (m < n) - (m > n) : strcmp(x->id, y->id);
}

/* Sorts the sequences of a system, and compares the first of them again for their
 * texts. */
static bm_status list_sequences(bm_text_scoring *s, bm_text_tally *t,
                                bm_scored_system *out)
{
    if (s->scored.n_listed == 0)
        return BM_OK;
    qsort(out->worst, s->scored.sequences, sizeof *out->worst, by_errors);
    while (out->n_worst < s->scored.n_listed && out->n_worst < out->n_faulty) {
        bm_sequence_errors *of = &out->worst[out->n_worst];

        BM_TRY(compare_text(s, of->text, t));
        BM_TRY(bm_text_aligned(s->scorer, &t->last, true, &of->ref));
        out->n_worst++; /* with which ref is freed */
        BM_TRY(bm_text_aligned(s->scorer, &t->last, false, &of->hyp));
    }
    return BM_OK;
}

static bm_status finish(bm_text_scoring *s)
{
    size_t room = s->scored.sequences + 1;
    bm_error_count *a = calloc(room, sizeof *a), *b = calloc(room, sizeof *b);
    const bm_text_tally *first = &s->tallies[0];
    bm_status status = BM_OK;

    if (a == NULL || b == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for intervals");
    for (size_t k = 0; k < s->scored.n; k++) {
        bm_text_tally *t = &s->tallies[k];
        bm_scored_system *out = &s->systems[k];
        size_t n = pool(s, t->words, a);

        pool(s, t->characters, a);
        BM_TRY_DONE(bm_bootstrap(t->words, n, &out->words.interval));
        BM_TRY_DONE(bm_bootstrap(t->characters, n, &out->characters.interval));
        if (k > 0) {
            BM_TRY_DONE(compare(first->words, t->words, n, a, b,
                                &out->words_than_first));
            BM_TRY_DONE(compare(first->characters, t->characters, n, a, b,
                                &out->characters_than_first));
        }
        BM_TRY_DONE(count_confusions(s, t, out));
        BM_TRY_DONE(list_sequences(s, t, out));
    }
done:
    free(a);
    free(b);
    return status;
}

/* ---- the verb ------------------------------------------------------------ */

static bm_status read_rules(const bm_arguments *a, bm_text_rules *rules)
{
    const char *form = NULL;

    BM_TRY(bm_argument_word(a, "text", "nfc nfkc none", "nfc", &form));
    rules->form = strcmp(form, "nfc") == 0    ? BM_TEXT_NFC
                  : strcmp(form, "nfkc") == 0 ? BM_TEXT_NFKC
                                              : BM_TEXT_AS_IS;
    rules->lower = bm_argument(a, "lower") != NULL;
    rules->punctuation = bm_argument(a, "no-punctuation") != NULL;
    return BM_OK;
}

static bm_status read_options(bm_text_scoring *s, const bm_arguments *a)
{
    const char *missing = NULL;
    long shown = 0, listed = 0;

    BM_TRY(read_rules(a, &s->rules));
    BM_TRY(
        bm_argument_word(a, "align", "unit sclite", "unit", &s->scored.align));
    BM_TRY(bm_argument_word(a, "draw", "sequences speakers", "sequences",
                            &s->scored.draw));
    BM_TRY(
        bm_argument_word(a, "missing", "error skip empty", "error", &missing));
    BM_TRY(bm_argument_word(a, "units", "words characters", "words",
                            &s->scored.units));
    BM_TRY(bm_argument_number(a, "confusions", 0, 0, 1 << 20, &shown));
    BM_TRY(bm_argument_number(a, "sequences", 0, 0, 1 << 20, &listed));
    s->costs = strcmp(s->scored.align, "sclite") == 0 ? &bm_edit_sclite
                                                      : &bm_edit_unit;
    s->by_speaker = strcmp(s->scored.draw, "speakers") == 0;
    s->missing = strcmp(missing, "skip") == 0    ? BM_MISSING_SKIP
                 : strcmp(missing, "empty") == 0 ? BM_MISSING_EMPTY
                                                 : BM_MISSING_ERROR;
    s->scored.n_shown = (size_t)shown;
    s->scored.n_listed = (size_t)listed;
    s->want_speakers = s->by_speaker || bm_argument(a, "speakers") != NULL ||
                       bm_argument(a, "utt2spk") != NULL;
    s->scored.oracle = bm_argument(a, "oracle") != NULL;
    s->of_characters = strcmp(s->scored.units, "characters") == 0;
    if (s->of_characters && !s->want_speakers && shown == 0 && listed == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "score: --units characters is for the tables of "
                       "--speakers, --confusions and --sequences; add one of "
                       "them");
    return BM_OK;
}

static void scoring_free(bm_text_scoring *s)
{
    if (s == NULL)
        return;
    for (size_t k = 0; k < s->scored.n; k++) {
        bm_text_tally *t = &s->tallies[k];

        bm_transcripts_free(&t->texts);
        bm_text_errors_free(&t->last);
        free(t->match);
        free(t->words);
        free(t->characters);
        free(t->confused);
        free(s->systems[k].confusions);
        free(s->systems[k].speakers);
        for (size_t j = 0; j < s->systems[k].n_worst; j++) {
            free(s->systems[k].worst[j].ref);
            free(s->systems[k].worst[j].hyp);
        }
        free(s->systems[k].worst);
    }
    bm_text_scorer_free(s->scorer);
    bm_transcripts_free(&s->ref);
    bm_transcripts_free(&s->utt2spk);
    free(s->speaker);
    free((void *)s->names);
    free(s);
}

static bm_status score(const bm_arguments *a)
{
    bm_text_scoring *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to score texts");
    s->scored.reference = a->nouns[0];
    s->scored.systems = s->systems;
    s->scored.n = (size_t)a->n_nouns - 1;
    BM_TRY_DONE(read_options(s, a));
    BM_TRY_DONE(bm_text_scoring_read(s, a));
    BM_TRY_DONE(bm_text_scorer_new(&s->scorer, &s->rules, s->costs));
    BM_TRY_DONE(score_all(s));
    BM_TRY_DONE(finish(s));
    bm_interval_warn(s->by_speaker ? s->scored.n_speakers : s->scored.sequences,
                     s->by_speaker ? "speaker" : "sequence");
    if (bm_argument(a, "json") != NULL)
        bm_scored_print_json(&s->scored);
    else
        bm_scored_print(&s->scored);
done:
    scoring_free(s);
    return status;
}

#define FORMS "auto|trn|txt|stm|ctm|json|pylaia"

static const bm_flag flags[] = {
    {"align", "unit|sclite",
     "costs of edits: 1 each, or those of NIST's sclite; default: unit", 0,
     false},
    {"lower", NULL, "compare texts in lower case", 0, false},
    {"no-punctuation", NULL,
     "compare texts without punctuation; apostrophes within words stay", 0,
     false},
    {"text", "nfc|nfkc|none",
     "Unicode's normalisation of both texts; default: nfc", 0, false},
    {"missing", "error|skip|empty",
     "an id that HYP lacks is an error, is left out, or has no words; default: "
     "error",
     0, false},
    {"speakers", NULL, "print a table of speakers", 0, false},
    {"utt2spk", "FILE", "lines of an id and its speaker", 0, false},
    BM_DRAW_FLAG,
    {"confusions", "N", "print the N most frequent errors", 0, false},
    {"sequences", "N",
     "print the N sequences with the most errors, and their texts", 0, false},
    {"units", "words|characters", "what the tables count; default: words", 0,
     false},
    {"oracle", NULL,
     "score the reading of HYP's \"nbest\" that has the fewest word errors", 0,
     false},
    {"ref-form", FORMS "|shards",
     "form of REF; default: by its name, or its text; shards: a packed set", 0,
     false},
    {"hyp-form", FORMS, "form of HYP, likewise", 0, false},
    BM_JSON_FLAG,
    {0},
};

const bm_verb bm_verb_score = {
    .name = "score",
    .nouns = "REF HYP...",
    .help = "score texts: word and character errors, significance",
    .text =
        "  bmuf score test.jsonl test.trn\n"
        "  bmuf score test.stm test.ctm --align sclite --speakers\n"
        "  bmuf score test.trn one.trn two.trn\n"
        "  bmuf score data/test test.trn --sequences 20 --units characters\n\n"
        "REF and HYP are texts with ids: trn, lines that begin with an id, "
        "stm, ctm, or\nJSON lines such as manifests (docs/results/scoring.md). "
        "REF may be a packed set.\nFurther HYP are compared with the first, "
        "by draws of the same sequences and by\nNIST's matched-pairs test.\n",
    .flags = flags,
    .least = 2,
    .most = BM_MOST_NOUNS,
    .run = score,
};
