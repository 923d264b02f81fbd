/*
 * recogniser.h - a network with the symbols it writes and the features it
 * reads: as training makes it, and as model.safetensors keeps it.
 */
#ifndef BM_CLI_RECOGNISER_H
#define BM_CLI_RECOGNISER_H

#include "io/model/checkpoint.h"
#include "io/shard/dataset.h"
#include "models/model.h"

typedef struct bm_recogniser {
    bm_backend *be; /* borrowed */
    bm_model *model;
    bm_vocab *vocab;
    size_t features;
    char width[24];      /* that number as text */
    char *features_text; /* how the features are made */
    char *symbols;       /* the vocabulary as text */
    bm_model_settings settings;
    char *texts[3]; /* that settings point to, when read from a file */
} bm_recogniser;

/* For a data set. n_scores: see models/model.h. */
BM_CHECKED bm_status bm_recogniser_new(bm_recogniser *r, bm_backend *be,
                                       const bm_model_settings *settings,
                                       const bm_dataset *data, int n_scores,
                                       uint64_t seed);

/* From model.safetensors, or from a checkpoint. */
BM_CHECKED bm_status bm_recogniser_read(bm_recogniser *r, bm_backend *be,
                                        const char *path, int n_scores);
void bm_recogniser_close(bm_recogniser *r);

/* The data set has this recogniser's features and symbols, or the message says
 * in what they differ. `tell`: warn if features were made in another way. */
BM_CHECKED bm_status bm_recogniser_fits(const bm_recogniser *r,
                                        const bm_dataset *data, bool tell);

/* All that _read needs besides weights, ended by {0}; borrowed. */
enum { BM_RECOGNISER_TEXTS = 8 };
void bm_recogniser_texts(const bm_recogniser *r,
                         bm_text out[BM_RECOGNISER_TEXTS]);

/* Writes `model`, n floats on the host, with these texts. */
BM_CHECKED bm_status bm_recogniser_write(const bm_recogniser *r,
                                         const char *path, const float *model);

#endif
