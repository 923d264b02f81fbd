/* aligned.h - a CTC model of a corpus of tones, and the alignment of its set
 * "test". */
#ifndef BM_TESTS_CLI_ALIGN_ALIGNED_H
#define BM_TESTS_CLI_ALIGN_ALIGNED_H

#include "tests/support/command.h"
#include "tests/support/results.h"
#include "tests/support/support.h"

#include <jansson.h>

enum { N = 21, STRIDE = 3, CLASSES = 5 }; /* of test/, of the network */

/* Classes in their order: the blank, then bytes. */
extern const char symbols[];

extern json_t *aligned[N]; /* the lines of --format json */

/* The sets "train" and "test", the model "run", and aligned. */
int align_set_up(void **state);
int align_tear_down(void **state);

#endif
