/*
 * dev_examples.h - some sequences of data.dev, the same ones in each epoch: what
 * the model makes of them, for TensorBoard.
 *
 *     bm_dev_examples x;
 *     bm_observer observer = bm_dev_examples_choose(&x, data);
 *
 *     status = bm_evaluate(evaluator, &observer, &evaluation);
 *     if (status == BM_OK)
 *         status = bm_dev_examples_log(&x, comm, telemetry);
 *     bm_dev_examples_free(&x);
 */
#ifndef BM_CLI_TRAIN_DEV_EXAMPLES_H
#define BM_CLI_TRAIN_DEV_EXAMPLES_H

#include "bmuf/trainer/evaluate.h"
#include "cli/telemetry/telemetry.h"

enum { BM_DEV_EXAMPLES = 8 };

typedef struct bm_dev_examples {
    const bm_dataset *data;            /* borrowed */
    int64_t sequence[BM_DEV_EXAMPLES]; /* [n], evenly spread over the data */
    size_t n;
    /* [n]: the tag with a '\0', then reference and transcript, of what this rank
     * has seen; NULL: another rank has. */
    char *seen[BM_DEV_EXAMPLES];
    size_t size[BM_DEV_EXAMPLES]; /* of seen, with both '\0' */
} bm_dev_examples;

/* The observer borrows *x and notes the chosen sequences among those that it
 * sees. It fails with BM_ERR_MEMORY. */
bm_observer bm_dev_examples_choose(bm_dev_examples *x, const bm_dataset *data);

/* Collective. Rank 0 collects what all ranks have seen, and hands it to t.
 * Fails with BM_ERR_MEMORY, or as the communication does. */
BM_CHECKED bm_status bm_dev_examples_log(bm_dev_examples *x, bm_comm *comm,
                                         bm_telemetry *t);

void bm_dev_examples_free(bm_dev_examples *x);

#endif
