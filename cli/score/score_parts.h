/* score_parts.h - what bmuf score reads and counts; internal to cli/score/score*.c. */
#ifndef BM_CLI_SCORE_SCORE_PARTS_H
#define BM_CLI_SCORE_SCORE_PARTS_H

#include "cli/score/score_report.h"
#include "cli/score/text_errors.h"
#include "cli/score/transcripts/transcripts.h"
#include "cli/verbs.h"

/* What is collected for a system while texts are scored. */
typedef struct bm_text_tally {
    bm_transcripts texts;
    long *match; /* [utterances of the reference] */
    bm_text_errors last;
    bm_error_count *words, *characters; /* [n], and then of each speaker */
    bm_pair *confused;                  /* [n_confused]: pairs with an error */
    size_t n_confused, room;
} bm_text_tally;

typedef struct bm_text_scoring {
    bm_text_rules rules;
    const bm_edit_costs *costs;
    bm_missing missing;
    bool by_speaker; /* draws are of speakers */
    bool want_speakers;
    bool of_characters; /* the tables */
    bm_text_scorer *scorer;
    bm_transcripts ref, utt2spk;
    bool alternatives;
    bm_text_tally tallies[BM_MOST_NOUNS];
    size_t *speaker;    /* [n]: of the texts that are scored */
    const char **names; /* [n]: of all speakers, sorted; texts in ref */
    bm_scored_system systems[BM_MOST_NOUNS];
    bm_scored scored;
} bm_text_scoring;

/* Reads the reference, the hypotheses and the list of speakers, and finds the
 * texts that belong together. The options have been read. Fails as
 * bm_transcripts_read, _pair and _match, with BM_ERR_ARG for an unknown form, and
 * with BM_ERR_FORMAT without readings for the oracle. */
BM_CHECKED bm_status bm_text_scoring_read(bm_text_scoring *s,
                                          const bm_arguments *a);

/* Fills in names and speaker, of the texts that are scored. which [n]: their
 * numbers in the reference. Fails with BM_ERR_FORMAT if one has no speaker, or with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_text_scoring_speakers(bm_text_scoring *s,
                                              const size_t *which, size_t n);

#endif
