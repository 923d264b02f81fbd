/* error_rate.h - an error rate with its counts and interval: the line and the
 * JSON fields of it in eval and score. */
#ifndef BM_CLI_SCORE_ERROR_RATE_H
#define BM_CLI_SCORE_ERROR_RATE_H

#include "models/bootstrap.h"

#include <jansson.h>
#include <stdio.h>

typedef struct bm_error_rate {
    double substitutions, deletions, insertions;
    double total; /* of the reference: labels, words, characters */
    bm_interval interval;
} bm_error_rate;

double bm_error_rate_errors(const bm_error_rate *r);
/* errors / total; NAN without a reference. */
double bm_error_rate_value(const bm_error_rate *r);

/* "word errors     3.12 %  (95 %: 2.50 to 3.80; 3 substitutions, ..)"; no line
 * without a reference. */
void bm_error_rate_print(const char *title, const bm_error_rate *r, FILE *out);

#endif
