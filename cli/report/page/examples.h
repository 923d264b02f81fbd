/*
 * examples.h - the sections of a report that need an evaluation: the sequences
 * with the most and the fewest errors, aligned, and which labels are confused.
 */
#ifndef BM_CLI_REPORT_PAGE_EXAMPLES_H
#define BM_CLI_REPORT_PAGE_EXAMPLES_H

#include "cli/score/scoring.h"

#include <stdio.h>

typedef struct bm_example bm_example;

/* What a model made of every sequence with a reference. Initialise with {0}. */
typedef struct bm_examples {
    bm_example *all; /* [n] */
    size_t n, room;
    bool per_frame; /* a label for each frame: compared without alignment */
} bm_examples;

/* For bm_observer.see, with a bm_examples as self. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_examples_see(void *self, const bm_seen *seen);

/* Writes both sections; sorts the examples. `of`: the scored model, which has
 * the vocabulary. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_examples_write(FILE *f, bm_examples *e,
                                       const bm_scoring *of);

void bm_examples_free(bm_examples *e);

#endif
