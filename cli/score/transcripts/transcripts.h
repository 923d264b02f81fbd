/*
 * transcripts.h - reads texts with ids, of references and of recognisers: NIST's
 * trn, stm and ctm, lines that begin with an id as Kaldi and PyLaia have them,
 * JSON lines as manifests and bmuf decode have them, and packed sets.
 *
 *     bm_transcripts ref = {0};
 *
 *     BM_TRY_DONE(
 *         bm_transcripts_read(&ref, "test.trn", "auto", BM_REFERENCE));
 *   done:
 *     bm_transcripts_free(&ref);
 */
#ifndef BM_CLI_SCORE_TRANSCRIPTS_TRANSCRIPTS_H
#define BM_CLI_SCORE_TRANSCRIPTS_TRANSCRIPTS_H

#include "core/status.h"
#include "io/import/lines/list_words.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Of files: name, what a line has. */
#define BM_TRANSCRIPT_FORMS(X)                                                 \
    X(trn, "words (id)")                                                       \
    X(txt, "id words")                                                         \
    X(stm, "file channel speaker begin end [<label>] words")                   \
    X(ctm, "file channel start duration word [confidence]")                    \
    X(json, "{\"id\": .., \"text\": ..}")                                      \
    X(pylaia, "id t h e <space> t e x t")

typedef enum bm_transcript_form {
#define X(name, line) BM_FORM_##name,
    BM_TRANSCRIPT_FORMS(X)
#undef X
        BM_FORM_shards /* a packed set */
} bm_transcript_form;

typedef enum bm_transcript_role {
    BM_REFERENCE,
    BM_HYPOTHESIS
} bm_transcript_role;

typedef struct bm_utterance {
    char *id, *text, *speaker; /* speaker: "" if unknown */
    size_t line;    /* of the file, or number of the sequence, from 1 */
    bool has_text;  /* false: of JSON without a "text", of a sequence without a
                       reference */
    bool predicted; /* the text is NeMo's "pred_text" */
    char *readings; /* of "nbest", [n_readings], each ends with '\0' */
    size_t n_readings;
    char *channel; /* of stm and ctm, which have times in seconds */
    double begin, end;
} bm_utterance;

/* Texts belong to it. Starts as {0}. */
typedef struct bm_transcripts {
    const char *path; /* borrowed */
    bm_transcript_form form;
    bm_utterance *of; /* [n], in the order of the file */
    size_t n, room;
    char *bytes;  /* of the file, into which texts may point */
    char **owned; /* [n_owned]: other texts */
    size_t n_owned, room_owned;
} bm_transcripts;

/* form: a name, or "auto", by the ending of the name or the text. Segments
 * of an stm file, and words of a ctm file, are an utterance each until
 * bm_transcripts_pair; a ctm file may have none. A hypothesis is no packed set, and
 * its text is "pred_text" where JSON has that. Fails with BM_ERR_MISSING or
 * BM_ERR_IO, or with BM_ERR_FORMAT, file and line. */
BM_CHECKED bm_status bm_transcripts_read(bm_transcripts *t, const char *path,
                                         const char *form,
                                         bm_transcript_role role);
void bm_transcripts_free(bm_transcripts *t);

/* What the words of all texts are. */
bm_list_words bm_transcripts_words(const bm_transcripts *t);

/*
 * Makes utterances with the same ids of a reference and hypotheses: words of ctm
 * go to the segments of stm in whose time their middle is, and those of no
 * segment are counted in outside [n_hyp]; else segments and words of a file
 * become one text. Words and segments are in the order in which they begin, and
 * ignored segments are left out. Fails with BM_ERR_FORMAT if forms do not fit, or
 * with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_transcripts_pair(bm_transcripts *ref,
                                         bm_transcripts *hyp, size_t n_hyp,
                                         size_t *outside);

/* Prints an id for trn, whose id is in the last pair of parentheses that is not in
 * another: blanks, and parentheses that make no pairs, become _. */
void bm_trn_id_print(FILE *out, const char *id);

/* Sets the speaker of utterance i by its id, as sclite does: what is before the
 * first - or _. Fails with BM_ERR_FORMAT if there is neither, or with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_transcripts_speaker(bm_transcripts *t, size_t i);

/* What becomes of an id that only one of two files has. */
typedef enum bm_missing {
    BM_MISSING_ERROR,
    BM_MISSING_SKIP, /* it is not scored */
    BM_MISSING_EMPTY /* nothing was recognised; others are not scored */
} bm_missing;

enum { BM_NO_UTTERANCE = -1 };

/* match [ref->n] <- the number of the hypothesis with the same id, or
 * BM_NO_UTTERANCE. *more: those that only hyp has. With BM_MISSING_ERROR fails
 * with BM_ERR_FORMAT and names what is missing or additional; fails with
 * BM_ERR_FORMAT if an id occurs twice, and with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_transcripts_match(const bm_transcripts *ref,
                                          const bm_transcripts *hyp,
                                          bm_missing missing, long *match,
                                          size_t *more);

#endif
