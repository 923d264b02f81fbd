/* interval_text.h - intervals of models/bootstrap.h in words and JSON. */
#ifndef BM_CLI_SCORE_INTERVAL_TEXT_H
#define BM_CLI_SCORE_INTERVAL_TEXT_H

#include "models/bootstrap.h"

#include <jansson.h>

/* "3.62 to 4.71", in percent; "unknown" of fewer than two sequences, or if the
 * rate is NAN, or 0, which draws cannot tell from a small one. */
const char *bm_interval_text(const bm_interval *i, char out[80]);

/* [low, high]; null where it is unknown. */
json_t *bm_interval_json(const bm_interval *i);

/* A difference: "lower by 0.40 points (0.10 to 0.70), probability 99.6 %";
 * "higher by 0.20 points (from 0.10 lower to 0.50 higher), not significant". */
const char *bm_difference_text(const bm_interval *i, char out[120]);

/* {"difference", "low", "high", "probability_lower"}; null where the interval
 * is unknown. */
json_t *bm_difference_json(const bm_interval *i);

/* Sequences, or speakers, from which on an interval is good. */
enum { BM_GOOD_DRAWN = 20 };

/* Warns if fewer of them are drawn; noun: "sequence". */
void bm_interval_warn(size_t n, const char *noun);

#endif
