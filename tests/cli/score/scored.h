/* scored.h - what bmuf score --json prints. */
#ifndef BM_TESTS_CLI_SCORE_SCORED_H
#define BM_TESTS_CLI_SCORE_SCORED_H

#include "tests/support/command.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <jansson.h>
#include <stddef.h>

/* Runs bmuf score .. --json, without a message except that a confidence interval
 * is unreliable or that texts may be lists of PyLaia; json_decref. */
#define SCORE(...) score_of(BMUF("score", __VA_ARGS__, "--json"))

json_t *score_of(outcome o);

/* System k of a result; the word and character errors of the first one. */
const json_t *system_of(const json_t *result, size_t k);
const json_t *words_of(const json_t *result);
const json_t *characters_of(const json_t *result);

#define assert_rate(rate, s, d, i, n)                                          \
    do {                                                                       \
        assert_true(number((rate), "substitutions") == (s));                   \
        assert_true(number((rate), "deletions") == (d));                       \
        assert_true(number((rate), "insertions") == (i));                      \
        assert_true(number((rate), "total") == (n));                           \
        assert_true(near(number((rate), "rate"),                               \
                         ((s) + (d) + (i)) / (double)(n), 1e-8));              \
    } while (0)

#endif
