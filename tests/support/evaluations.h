/*
 * evaluations.h - a model of the corpus of tones (speech.h) that makes some
 * errors, results of bmuf eval with it, and other sets of the same recordings.
 */
#ifndef BM_TESTS_SUPPORT_EVALUATIONS_H
#define BM_TESTS_SUPPORT_EVALUATIONS_H

#include "tests/support/command.h"
#include "tests/support/results.h"

/* The number of recordings of test/; more than the characters of a line of
 * their transcripts. */
enum { N = 21, LONGEST = 80 };

/* Setup of a group: make_corpus, and half.safetensors, trained on train/ for 5
 * epochs. */
int make_half_trained(void **state);

/* ---- results ------------------------------------------------------------- */

/* Parses stdout, after exit code 0; json_decref. */
json_t *result_of(outcome o);

/* Runs bmuf eval half.safetensors DATA --json --hyp HYP, which must print
 * nothing to stderr except that an interval is unreliable; json_decref. */
json_t *evaluate(const char *data, const char *hyp);

/* Compares two texts of bmuf eval --json, without the time and the name of the
 * model. */
void assert_same_result(const char *a, const char *b);

/* A file of the folder, of less than N * LONGEST bytes; until the fourth call
 * from here. */
char *read_file(const char *name);

/* The words of line i of a trn file, which must end with " (test-i)". */
void read_trn(const char *name, char words[N][LONGEST]);

/* ---- sets ---------------------------------------------------------------- */

/* A manifest of recordings [first, end) of test/, with texts for those below
 * `n`. */
void write_manifest(const char *name, size_t first, size_t n, size_t end);

/* Packs a manifest with 8 mel bands and one more setting, "section.key=value". */
void pack_speech(const char *manifest, const char *set, const char *vocab,
                 const char *setting);

#endif
