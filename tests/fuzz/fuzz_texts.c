/* fuzz_texts.c - texts with ids in every form that bmuf score reads, each scored
 * against itself. */
#include "cli/score/text_errors.h"
#include "cli/score/transcripts/transcripts.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum {
    LONGEST = 1000,
    MOST = 50
}; /* of a text, of the texts that are scored */

/* A text has no errors against itself. With alternatives it may not end, and
 * another alternative may be as good. */
static void score(bm_text_scorer *s, const char *text)
{
    bm_text_errors e = {0};

    if (strlen(text) > LONGEST)
        return;
    if (bm_text_score(s, text, false, text, &e) == BM_OK)
        FUZZ_RULE(bm_edits_total(e.words) + bm_edits_total(e.characters) == 0);
    if (bm_text_score(s, text, true, text, &e) == BM_OK) {
        FUZZ_RULE(bm_text_pair_characters(s, &e) == BM_OK);
        FUZZ_RULE(e.character_pairs.n >= e.n_characters);
    }
    bm_text_errors_free(&e);
}

static void score_all(const bm_transcripts *ref)
{
    static const bm_text_rules rules = {BM_TEXT_NFKC, true, true};
    bm_text_scorer *s = NULL;

    FUZZ_RULE(bm_text_scorer_new(&s, &rules, &bm_edit_sclite) == BM_OK);
    for (size_t i = 0; i < ref->n && i < MOST; i++)
        score(s, ref->of[i].text);
    bm_text_scorer_free(s);
}

static void read_pair(const char *path, const char *form, const char *other)
{
    bm_transcripts ref = {0}, hyp = {0};
    size_t outside = 0, more = 0;
    long *match = NULL;

    if (bm_transcripts_read(&ref, path, form, BM_REFERENCE) == BM_OK &&
        bm_transcripts_read(&hyp, path, other, BM_HYPOTHESIS) == BM_OK &&
        bm_transcripts_pair(&ref, &hyp, 1, &outside) == BM_OK) {
        match = calloc(ref.n + 1, sizeof *match);
        FUZZ_RULE(match != NULL);
        if (bm_transcripts_match(&ref, &hyp, BM_MISSING_EMPTY, match, &more) ==
            BM_OK)
            for (size_t i = 0; i < ref.n; i++)
                FUZZ_RULE(match[i] == BM_NO_UTTERANCE ||
                          (size_t)match[i] < hyp.n);
        score_all(&ref);
    }
    free(match);
    bm_transcripts_free(&ref);
    bm_transcripts_free(&hyp);
}

static void run(const char *path, const uint8_t *data, size_t size)
{
    static const char *const forms[] = {"auto", "trn",  "txt",   "stm",
                                        "ctm",  "json", "pylaia"};

    (void)data;
    (void)size;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        read_pair(path, forms[i], forms[i]);
    read_pair(path, "stm", "ctm");
}

const fuzz_target fuzz_texts = {"texts", "texts", run, NULL};
