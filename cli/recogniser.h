/*
 * recogniser.h - a network with the symbols it writes and the features it
 * reads: as training makes it, and as model.safetensors keeps it.
 */
#ifndef BM_CLI_RECOGNISER_H
#define BM_CLI_RECOGNISER_H

#include "io/checkpoint.h"
#include "io/dataset.h"
#include "models/model.h"

typedef struct bm_recogniser {
    bm_backend *be;
    bm_model *model;
    bm_vocab *vocab;
    size_t features;
    char *features_text; /* how the features are made */
    bm_model_settings settings;
    char *texts[3]; /* that settings point to, when read from a file */
} bm_recogniser;

/* For a data set. n_scores: see models/model.h. */
BM_CHECKED bm_status bm_recogniser_new(bm_recogniser *r,
                                       const bm_model_settings *settings,
                                       const bm_dataset *data, int n_scores,
                                       uint64_t seed);

/* From model.safetensors. */
BM_CHECKED bm_status bm_recogniser_read(bm_recogniser *r, const char *path,
                                        int n_scores);
void bm_recogniser_close(bm_recogniser *r);

/* The data set has this recogniser's features and symbols, or the message says
 * in what they differ. `tell`: warn if features were made in another way. */
BM_CHECKED bm_status bm_recogniser_fits(const bm_recogniser *r,
                                        const bm_dataset *data, bool tell);

/* Writes `model`, n floats on the host, with all that _read needs. */
BM_CHECKED bm_status bm_recogniser_write(const bm_recogniser *r,
                                         const char *path, const float *model);

#endif
