/*
 * probe.h - the largest mini-batch of a data set, computed once before training,
 * so that memory runs out at the start or not at all.
 *
 *     bm_probe_choose(&p, plan, t->train, 1, "data.train")    no reader is open
 *     bm_probe_run(&p, model)                           before the first block
 *     bm_probe_free(&p)
 */
#ifndef BM_CLI_TRAIN_PROBE_H
#define BM_CLI_TRAIN_PROBE_H

#include "io/batch/plan.h"
#include "models/model.h"

/* {0}: no mini-batch yet. */
typedef struct bm_probe {
    size_t B;                 /* sequences */
    int32_t *frames, *labels; /* [B], longest first; frames are stretched */
    size_t features, classes;
    char about[400]; /* for messages */
} bm_probe;

/*
 * Takes the largest mini-batch of a set, whose name is for messages, unless *p
 * has one with as many frames already, padding included: as many of the longest
 * sequences as fit. Each frame becomes up to `stretch` when it is augmented.
 * Fails with BM_ERR_MEMORY, or as bm_dataset_tag does.
 */
BM_CHECKED bm_status bm_probe_choose(bm_probe *p, const bm_plan_settings *plan,
                                     bm_dataset *d, double stretch,
                                     const char *name);

/* Computes the gradient of such a mini-batch of zeros, which overwrites
 * params->g and nothing else. Fails with BM_ERR_MEMORY, naming the sequence and
 * the remedy, or as the backend does. */
BM_CHECKED bm_status bm_probe_run(bm_probe *p, bm_model *model);

void bm_probe_free(bm_probe *p);

#endif
