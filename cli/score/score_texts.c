/* score_texts.c - reads the texts of bmuf score, and finds their speakers. */
#include "cli/score/draws.h"
#include "cli/score/score_parts.h"
#include "core/log.h"

#include <stdlib.h>
#include <string.h>

/* ---- texts --------------------------------------------------------------- */

static bool are_characters(bm_list_words w)
{
    return w.n > 0 && w.characters == w.n;
}

/* A list of PyLaia without a blank is read as words. */
static void warn_of_characters(const bm_transcripts *list,
                               const bm_transcripts *other, const char *role)
{
    bm_list_words words = bm_transcripts_words(other);

    if (list->form == BM_FORM_txt &&
        are_characters(bm_transcripts_words(list)) &&
        2 * words.characters < words.n)
        bm_log(BM_WARNING,
               "%s: all words have one character, but most of %s have more; if "
               "it is a list of PyLaia, give --%s-form pylaia",
               list->path, other->path, role);
}

/* Both may be such lists. */
static void warn_of_lists(const bm_transcripts *ref, const bm_transcripts *hyp)
{
    bm_list_words words = bm_transcripts_words(ref);

    if (ref->form == BM_FORM_txt && hyp->form == BM_FORM_txt &&
        are_characters(words) && words.n > ref->n &&
        are_characters(bm_transcripts_words(hyp)))
        bm_log(BM_WARNING,
               "%s, %s: all words have one character; if they are lists of "
               "PyLaia, give --ref-form pylaia --hyp-form pylaia",
               ref->path, hyp->path);
}

static bm_status read_texts(bm_text_scoring *s, const bm_arguments *a)
{
    const char *ref = NULL, *hyp = NULL, *speakers = bm_argument(a, "utt2spk");
    bm_transcripts *heard = calloc(s->scored.n, sizeof *heard);
    size_t outside[BM_MOST_NOUNS] = {0};
    bm_status status = BM_OK;

#define X(name, line) #name " "
    static const char forms[] = "auto " BM_TRANSCRIPT_FORMS(X);
    static const char ref_forms[] = "auto shards " BM_TRANSCRIPT_FORMS(X);
#undef X
    if (heard == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for texts");
    BM_TRY_DONE(bm_argument_word(a, "ref-form", ref_forms, "auto", &ref));
    BM_TRY_DONE(bm_argument_word(a, "hyp-form", forms, "auto", &hyp));
    BM_TRY_DONE(bm_transcripts_read(&s->ref, a->nouns[0], ref, BM_REFERENCE));
    for (size_t k = 0; k < s->scored.n; k++)
        BM_TRY_DONE(bm_transcripts_read(&heard[k], a->nouns[k + 1], hyp,
                                        BM_HYPOTHESIS));
    if (speakers != NULL)
        BM_TRY_DONE(
            bm_transcripts_read(&s->utt2spk, speakers, "txt", BM_REFERENCE));
    warn_of_characters(&s->ref, &heard[0], "ref");
    for (size_t k = 0; k < s->scored.n; k++)
        warn_of_characters(&heard[k], &s->ref, "hyp");
    warn_of_lists(&s->ref, &heard[0]);
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

/* An oracle needs readings to choose from. */
static bm_status count_readings(bm_text_scoring *s)
{
    for (size_t k = 0; k < s->scored.n && s->scored.oracle; k++) {
        const bm_transcripts *t = &s->tallies[k].texts;
        size_t *most = &s->systems[k].readings;

        for (size_t i = 0; i < t->n; i++)
            *most = t->of[i].n_readings > *most ? t->of[i].n_readings : *most;
        if (*most == 0)
            return BM_FAIL(BM_ERR_FORMAT,
                           "%s has no \"nbest\" with texts, of which --oracle "
                           "takes the best; write them with bmuf decode "
                           "--format json --nbest N",
                           t->path);
    }
    return BM_OK;
}

static bm_status match_all(bm_text_scoring *s)
{
    for (size_t k = 0; k < s->scored.n; k++) {
        bm_text_tally *t = &s->tallies[k];

        t->match = calloc(s->ref.n + 1, sizeof *t->match);
        if (t->match == NULL)
            return BM_FAIL(BM_ERR_MEMORY, "no memory for %zu texts", s->ref.n);
        BM_TRY(bm_transcripts_match(&s->ref, &t->texts, s->missing, t->match,
                                    &s->systems[k].more));
    }
    return BM_OK;
}

bm_status bm_text_scoring_read(bm_text_scoring *s, const bm_arguments *a)
{
    BM_TRY(read_texts(s, a));
    BM_TRY(count_readings(s));
    return match_all(s);
}

/* ---- speakers ------------------------------------------------------------ */

/* Fills in the speakers of the texts that are scored. which [n]: the texts in the
 * reference. *guessed: of how many the id has the speaker. */
static bm_status find_speakers(bm_text_scoring *s, const size_t *which,
                               size_t n, size_t *guessed)
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
        if (s->utt2spk.n > 0) {
            u->speaker = s->utt2spk.of[match[i]].text;
        } else if (u->speaker[0] == '\0') {
            BM_TRY_DONE(bm_transcripts_speaker(&s->ref, i));
            ++*guessed;
        }
    }
done:
    free(match);
    return status;
}

/* s->names <- these speakers, s->speaker <- their numbers. */
static bm_status number_speakers(bm_text_scoring *s, const size_t *which,
                                 size_t n)
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

/* Ids that begin with the name of the data set have no speaker there. */
static void warn_of_one_speaker(const bm_text_scoring *s, size_t n,
                                size_t guessed)
{
    if (guessed == n && n > 1 && s->scored.n_speakers == 1)
        bm_log(BM_WARNING,
               "%s: all %zu sequences have the speaker %s, which is what their "
               "ids have before the first - or _; if there are more, list them "
               "with --utt2spk FILE",
               s->ref.path, n, s->names[0]);
}

bm_status bm_text_scoring_speakers(bm_text_scoring *s, const size_t *which,
                                   size_t n)
{
    size_t guessed = 0;

    BM_TRY(find_speakers(s, which, n, &guessed));
    BM_TRY(number_speakers(s, which, n));
    warn_of_one_speaker(s, n, guessed);
    return BM_OK;
}
