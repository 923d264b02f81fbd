/* score.c - bmuf score: recognised texts against references. */
#include "cli/json_output.h"
#include "cli/score/draws.h"
#include "cli/score/interval_text.h"
#include "cli/score/score_report.h"
#include "cli/score/text_errors.h"
#include "cli/score/transcripts.h"
#include "cli/verbs.h"
#include "core/grow.h"
#include "core/log.h"
#include "core/words.h"

#include <stdlib.h>
#include <string.h>

/* What is collected for a system while texts are scored. */
typedef struct tally {
    bm_transcripts texts;
    long *match; /* [utterances of the reference] */
    bm_text_errors last;
    bm_error_count *words, *characters; /* [n], and then of each speaker */
    bm_pair *confused;                  /* [n_confused]: pairs with an error */
    size_t n_confused, room;
} tally;

typedef struct scoring {
    bm_text_rules rules;
    const bm_edit_costs *costs;
    bm_missing missing;
    bool by_speaker; /* draws are of speakers */
    bool want_speakers;
    bool of_characters; /* the tables of speakers and confusions */
    bm_text_scorer *scorer;
    bm_transcripts ref, utt2spk;
    bool alternatives;
    tally tallies[BM_MOST_NOUNS];
    size_t *speaker;    /* [n]: of the texts that are scored */
    const char **names; /* [n]: of all speakers, sorted; texts in ref */
    bm_scored_system systems[BM_MOST_NOUNS];
    bm_scored scored;
} scoring;

/* ---- speakers ------------------------------------------------------------ */

/* Fills in the speakers of the texts that are scored. which [n]: the texts in the
 * reference. */
static bm_status find_speakers(scoring *s, const size_t *which, size_t n)
{
    size_t more = 0;
    long *match = calloc(s->ref.n + 1, sizeof *match);
    bm_status status = BM_OK;

    if (match == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu speakers", s->ref.n);
    if (s->utt2spk.n > 0)
        BM_TRY_DONE(bm_transcripts_match(&s->ref, &s->utt2spk, BM_MISSING_SKIP,
                                         match, &more));
    for (size_t k = 0; k < n; k++) {
        size_t i = which[k];
        bm_utterance *u = &s->ref.of[i];

        if (s->utt2spk.n > 0 && match[i] == BM_NO_UTTERANCE)
            BM_FAIL_DONE(BM_ERR_FORMAT, "%s has no speaker in %s", u->id,
                         s->utt2spk.path);
        if (s->utt2spk.n > 0)
            u->speaker = s->utt2spk.of[match[i]].text;
        else if (u->speaker[0] == '\0')
            BM_TRY_DONE(bm_transcripts_speaker(&s->ref, i));
    }
done:
    free(match);
    return status;
}

/* s->names <- these speakers, s->speaker <- their numbers. */
static bm_status number_speakers(scoring *s, const size_t *which, size_t n)
{
    size_t unique = 0;

    s->names = calloc(n + 1, sizeof *s->names);
    s->speaker = calloc(n + 1, sizeof *s->speaker);
    if (s->names == NULL || s->speaker == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu speakers", n);
    for (size_t k = 0; k < n; k++)
        s->names[k] = s->ref.of[which[k]].speaker;
    BM_TRY(bm_speakers_number(s->names, n, s->speaker, &unique));
    s->scored.speakers = s->names;
    s->scored.n_speakers = unique;
    return BM_OK;
}

/* ---- counting ------------------------------------------------------------ */

static void add_edits(bm_error_rate *sum, bm_edits e, size_t total)
{
    sum->substitutions += (double)e.substitutions;
    sum->deletions += (double)e.deletions;
    sum->insertions += (double)e.insertions;
    sum->total += (double)total;
}

static bm_status keep_confused(scoring *s, tally *t)
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

/* Text i of the reference with what system k recognised, as scored text n. */
static bm_status score_text(scoring *s, size_t i, size_t k, size_t n)
{
    const bm_utterance *u = &s->ref.of[i];
    tally *t = &s->tallies[k];
    bm_scored_system *sum = &s->systems[k];
    const bm_text_pairs *first = &s->tallies[0].last.word_pairs;
    const char *heard =
        t->match[i] == BM_NO_UTTERANCE ? "" : t->texts.of[t->match[i]].text;
    bm_status status =
        bm_text_score(s->scorer, u->text, s->alternatives, heard, &t->last);

    if (status == BM_ERR_FORMAT)
        return BM_FAIL(BM_ERR_FORMAT, "id %s (%s:%zu): %s", u->id, s->ref.path,
                       u->line, bm_last_message());
    BM_TRY(status);
    t->words[n] = (bm_error_count){(double)bm_edits_total(t->last.words),
                                   (double)t->last.n_words};
    t->characters[n] =
        (bm_error_count){(double)bm_edits_total(t->last.characters),
                         (double)t->last.n_characters};
    add_edits(&sum->words, t->last.words, t->last.n_words);
    add_edits(&sum->characters, t->last.characters, t->last.n_characters);
    sum->wrong += bm_edits_total(t->last.words) > 0;
    if (s->want_speakers) {
        bm_speaker_errors *of = &sum->speakers[s->speaker[n]];

        of->sequences++;
        if (s->of_characters)
            add_edits(&of->errors, t->last.characters, t->last.n_characters);
        else
            add_edits(&of->errors, t->last.words, t->last.n_words);
    }
    if (k > 0)
        BM_TRY(bm_matched_pairs_add(&sum->pairs, first->of, first->n,
                                    t->last.word_pairs.of,
                                    t->last.word_pairs.n));
    return s->scored.n_shown > 0 ? keep_confused(s, t) : BM_OK;
}

/* Is this text scored? A text that a system lacks is, unless they are
 * skipped. */
static bool is_scored(scoring *s, size_t i)
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

static bm_status make_room(scoring *s, size_t n)
{
    for (size_t k = 0; k < s->scored.n; k++) {
        tally *t = &s->tallies[k];

        t->words = calloc(n + 1, sizeof *t->words);
        t->characters = calloc(n + 1, sizeof *t->characters);
        s->systems[k].speakers =
            calloc(s->scored.n_speakers + 1, sizeof *s->systems[k].speakers);
        if (t->words == NULL || t->characters == NULL ||
            s->systems[k].speakers == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory to score %zu texts", n);
    }
    return BM_OK;
}

static bm_status score_all(scoring *s)
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
    if (s->want_speakers) {
        BM_TRY_DONE(find_speakers(s, which, n));
        BM_TRY_DONE(number_speakers(s, which, n));
    }
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
static size_t pool(const scoring *s, bm_error_count *count, bm_error_count *sum)
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

static const char *symbol(const scoring *s, int32_t class)
{
    return class < 0          ? ""
           : s->of_characters ? bm_text_character(s->scorer, class)
                              : bm_text_word(s->scorer, class);
}

static bm_status count_confusions(const scoring *s, tally *t,
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

static bm_status finish(scoring *s)
{
    size_t room = s->scored.sequences + 1;
    bm_error_count *a = calloc(room, sizeof *a), *b = calloc(room, sizeof *b);
    const tally *first = &s->tallies[0];
    bm_status status = BM_OK;

    if (a == NULL || b == NULL)
        BM_FAIL_DONE(BM_ERR_MEMORY, "no memory for intervals");
    for (size_t k = 0; k < s->scored.n; k++) {
        tally *t = &s->tallies[k];
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

static bm_status read_options(scoring *s, const bm_arguments *a)
{
    const char *missing = NULL;
    long shown = 0;

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
    s->costs = strcmp(s->scored.align, "sclite") == 0 ? &bm_edit_sclite
                                                      : &bm_edit_unit;
    s->by_speaker = strcmp(s->scored.draw, "speakers") == 0;
    s->missing = strcmp(missing, "skip") == 0    ? BM_MISSING_SKIP
                 : strcmp(missing, "empty") == 0 ? BM_MISSING_EMPTY
                                                 : BM_MISSING_ERROR;
    s->scored.n_shown = (size_t)shown;
    s->want_speakers = s->by_speaker || bm_argument(a, "speakers") != NULL ||
                       bm_argument(a, "utt2spk") != NULL;
    s->of_characters = strcmp(s->scored.units, "characters") == 0;
    if (s->of_characters && !s->want_speakers && shown == 0)
        return BM_FAIL(BM_ERR_ARG,
                       "score: --units characters is for the tables of "
                       "--speakers and --confusions; add one of them");
    return BM_OK;
}

static bm_status read_texts(scoring *s, const bm_arguments *a)
{
    const char *ref = NULL, *hyp = NULL, *speakers = bm_argument(a, "utt2spk");
    bm_transcripts *heard = calloc(s->scored.n, sizeof *heard);
    size_t outside[BM_MOST_NOUNS] = {0};
    bm_status status = BM_OK;

#define X(name, line) #name " "
    static const char forms[] = "auto " BM_TRANSCRIPT_FORMS(X);
#undef X
    if (heard == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for texts");
    BM_TRY_DONE(bm_argument_word(a, "ref-form", forms, "auto", &ref));
    BM_TRY_DONE(bm_argument_word(a, "hyp-form", forms, "auto", &hyp));
    BM_TRY_DONE(bm_transcripts_read(&s->ref, a->nouns[0], ref));
    for (size_t k = 0; k < s->scored.n; k++)
        BM_TRY_DONE(bm_transcripts_read(&heard[k], a->nouns[k + 1], hyp));
    if (speakers != NULL)
        BM_TRY_DONE(bm_transcripts_read(&s->utt2spk, speakers, "txt"));
    s->alternatives = s->ref.form == BM_FORM_trn || s->ref.form == BM_FORM_stm;
    status = bm_transcripts_pair(&s->ref, heard, s->scored.n, outside);
done:
    for (size_t k = 0; k < s->scored.n; k++) {
        s->tallies[k].texts = heard[k];
        s->systems[k].path = a->nouns[k + 1];
        s->systems[k].outside = outside[k];
    }
    free(heard);
    return status;
}

static bm_status match_all(scoring *s)
{
    for (size_t k = 0; k < s->scored.n; k++) {
        tally *t = &s->tallies[k];

        t->match = calloc(s->ref.n + 1, sizeof *t->match);
        if (t->match == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu texts", s->ref.n);
        BM_TRY(bm_transcripts_match(&s->ref, &t->texts, s->missing, t->match,
                                    &s->systems[k].more));
    }
    return BM_OK;
}

static void scoring_free(scoring *s)
{
    if (s == NULL)
        return;
    for (size_t k = 0; k < s->scored.n; k++) {
        tally *t = &s->tallies[k];

        bm_transcripts_free(&t->texts);
        bm_text_errors_free(&t->last);
        free(t->match);
        free(t->words);
        free(t->characters);
        free(t->confused);
        free(s->systems[k].confusions);
        free(s->systems[k].speakers);
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
    scoring *s = calloc(1, sizeof *s);
    bm_status status = BM_OK;

    if (s == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory to score texts");
    s->scored.reference = a->nouns[0];
    s->scored.systems = s->systems;
    s->scored.n = (size_t)a->n_nouns - 1;
    BM_TRY_DONE(read_options(s, a));
    BM_TRY_DONE(read_texts(s, a));
    BM_TRY_DONE(match_all(s));
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

#define FORMS "auto|trn|txt|stm|ctm|json"

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
    {"units", "words|characters",
     "what the tables of speakers and errors count; default: words", 0, false},
    {"ref-form", FORMS, "form of REF; default: by its name, or first line", 0,
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
        "  bmuf score test.trn one.trn two.trn\n\n"
        "REF and HYP are texts with ids: trn, lines that begin with an id, "
        "stm, ctm, or\nJSON lines such as manifests (docs/results/scoring.md). "
        "Further HYP are compared\nwith the first, by draws of the same "
        "sequences and by NIST's matched-pairs test.\n",
    .flags = flags,
    .least = 2,
    .most = BM_MOST_NOUNS,
    .run = score,
};
