/*
 * matched_pairs.h - whether two systems differ: the matched-pairs test on
 * segments of sentences (MAPSSWE; Gillick and Cox 1989), as NIST's sc_stats
 * applies it.
 *
 * A segment begins with an error of either system and ends before two reference
 * words in a row that both have right, or with the sentence. Segments are taken
 * to be independent, which sentences that a system fails on as a whole are not
 * word by word. Of each the difference of the numbers of errors counts; z is
 * their mean over its standard error, p the probability of a z so far from 0
 * if the systems were equally good (two-tailed, normal).
 */
#ifndef BM_MODELS_MATCHED_PAIRS_H
#define BM_MODELS_MATCHED_PAIRS_H

#include "models/edit.h"

/* Starts as {0}. */
typedef struct bm_matched_pairs {
    size_t segments;
    double sum, squares; /* of errors of a minus errors of b */
} bm_matched_pairs;

/* Adds a sentence: how its reference is aligned with what a and b recognised.
 * Where they chose different alternatives of the reference, it is one segment.
 * Fails only with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_matched_pairs_add(bm_matched_pairs *m, const bm_pair *a,
                                          size_t n_a, const bm_pair *b,
                                          size_t n_b);

/* Segments from which on the normal distribution is used. */
enum { BM_LEAST_SEGMENTS = 20 };

/* *z > 0: a has more errors. Both are NAN with fewer than BM_LEAST_SEGMENTS
 * segments, or if all differences are equal and not 0: their variance is then
 * unknown. */
void bm_matched_pairs_test(const bm_matched_pairs *m, double *z, double *p);

#endif
