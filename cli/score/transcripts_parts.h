/* transcripts_parts.h - internal to cli/score/transcripts*.c. */
#ifndef BM_CLI_SCORE_TRANSCRIPTS_PARTS_H
#define BM_CLI_SCORE_TRANSCRIPTS_PARTS_H

#include "cli/score/transcripts.h"

BM_CHECKED bm_status bm_transcripts_add(bm_transcripts *t,
                                        const bm_utterance *u);

/* Takes a text over, which is freed with the list, also after a failure. NULL, for
 * lack of memory, fails. */
BM_CHECKED bm_status bm_transcripts_own(bm_transcripts *t, char *text);

/* Are utterances of this form words or segments with times? */
bool bm_form_is_timed(bm_transcript_form form);

#endif
