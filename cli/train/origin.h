/*
 * origin.h - what a new run starts from: the layers of a trained model ([train]
 * init), or a checkpoint of another run (bmuf train --from, [train] from).
 */
#ifndef BM_CLI_TRAIN_ORIGIN_H
#define BM_CLI_TRAIN_ORIGIN_H

#include "bmuf/trainer/trainer.h"
#include "comm/comm.h"
#include "models/transfer.h"
#include "recognise/recogniser.h"

typedef struct bm_origin {
    char path[4200];     /* the file; "": weights are drawn at random */
    bool branches;       /* of train.from: its states are to be taken, too */
    bm_transfer layers;  /* that were taken */
    double epoch, block; /* a checkpoint's epochs and blocks; NAN: a model */
    char digest[BM_WEIGHTS_DIGEST]; /* of the weights in the file */
} bm_origin;

/*
 * Collective; comm NULL: this process alone. *o <- the file that the settings
 * name; with neither setting it is empty. Rank 0 looks for it: others may see an
 * older state of the directory. newest: the run has this checkpoint already, so
 * there is nothing to find; "": none.
 *
 * Fails with BM_ERR_MISSING if there is no such model, run or epoch, with
 * BM_ERR_FORMAT if the file is no model.
 */
BM_CHECKED bm_status bm_origin_find(bm_origin *o, const bm_train_settings *set,
                                    const char *newest, bm_comm *comm);

/*
 * Each rank by itself, after bm_origin_find. Copies layers into the new network
 * `net`. Features of `data` must be those of the model. With `newest` nothing is
 * copied, and only features are normalised as they were.
 *
 * Fails with BM_ERR_MISSING if this rank does not have the file, with
 * BM_ERR_FORMAT if it is damaged, no layer fits or features differ.
 */
BM_CHECKED bm_status bm_origin_take(bm_origin *o, const bm_train_settings *set,
                                    const char *newest, bm_recogniser *net,
                                    bm_dataset *data);

/* Calls say() for each line about what was copied and what is initialised
 * randomly. */
void bm_origin_describe(const bm_origin *o,
                        void (*say)(void *self, const char *text), void *self);

#endif
