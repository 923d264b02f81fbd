/* transcripts_parts.h - internal to cli/score/transcripts*.c. */
#ifndef BM_CLI_SCORE_TRANSCRIPTS_TRANSCRIPTS_PARTS_H
#define BM_CLI_SCORE_TRANSCRIPTS_TRANSCRIPTS_PARTS_H

#include "cli/score/transcripts/transcripts.h"

BM_CHECKED bm_status bm_transcripts_add(bm_transcripts *t,
                                        const bm_utterance *u);

/* Takes a text over, which is freed with the list, also after a failure. NULL, for
 * lack of memory, fails. */
BM_CHECKED bm_status bm_transcripts_own(bm_transcripts *t, char *text);

/* The same for a copy; *out: borrowed from the list. */
BM_CHECKED bm_status bm_transcripts_copy(bm_transcripts *t, const char *text,
                                         char **out);

/* The next line of a text, cut off, without blanks at its end; NULL: there is none.
 * ++*number. */
char *bm_transcripts_line(char **at, size_t *number);

/* Read JSON lines; the packed set at t->path. Fail as bm_transcripts_read. */
BM_CHECKED bm_status bm_transcripts_read_json(bm_transcripts *t, char *text,
                                              bm_transcript_role role);
BM_CHECKED bm_status bm_transcripts_read_shards(bm_transcripts *t);

const char *bm_form_name(bm_transcript_form form);

/* Are utterances of this form words or segments with times? */
bool bm_form_is_timed(bm_transcript_form form);

#endif
