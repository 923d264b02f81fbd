/* score_report.h - what bmuf score found, and printing it. */
#ifndef BM_CLI_SCORE_SCORE_REPORT_H
#define BM_CLI_SCORE_SCORE_REPORT_H

#include "cli/score/error_rate.h"
#include "models/matched_pairs.h"

#include <stdbool.h>

/* A word or character taken for another; "" for none: an insertion or a deletion. */
typedef struct bm_confusion {
    const char *ref, *hyp; /* borrowed */
    size_t n;
} bm_confusion;

/* Errors in the texts of a speaker; without an interval. */
typedef struct bm_speaker_errors {
    size_t sequences;
    bm_error_rate errors;
} bm_speaker_errors;

/* A sequence with errors, likewise, and its texts as they were compared. */
typedef struct bm_sequence_errors {
    const char *id; /* borrowed */
    size_t text;    /* its number in the reference */
    bm_error_rate errors;
    char *ref, *hyp;
} bm_sequence_errors;

typedef struct bm_scored_system {
    const char *path; /* borrowed */
    bm_error_rate words, characters;
    size_t wrong;             /* sequences with an error in words */
    size_t missing, more;     /* ids that only the reference, or only it has */
    size_t outside;           /* words of ctm in no segment */
    size_t readings;          /* with an oracle: the most that a text has */
    bm_confusion *confusions; /* [n_confusions], the most frequent first */
    size_t n_confusions;
    bm_speaker_errors *speakers; /* [n_speakers] */
    bm_sequence_errors *worst;   /* [sequences], with the most errors first; the
                                    first n_worst with their texts */
    size_t n_worst, n_faulty;    /* n_faulty: sequences with errors in units */
    bm_interval words_than_first, characters_than_first;
    bm_matched_pairs pairs; /* a: the first system */
} bm_scored_system;

typedef struct bm_scored {
    const char *reference, *align, *draw; /* borrowed */
    const char *units;            /* of all tables: words or characters */
    size_t sequences, unlabelled; /* scored; without a reference */
    const char *const *speakers;  /* [n_speakers]; borrowed */
    size_t n_speakers;            /* 0: not wanted */
    size_t n_shown;               /* confusions */
    bool oracle;                  /* of the readings the best one counts */
    size_t n_listed;              /* sequences with the most errors */
    bm_scored_system *systems;    /* [n] */
    size_t n;
} bm_scored;

void bm_scored_print(const bm_scored *s);
void bm_scored_print_json(const bm_scored *s);

#endif
