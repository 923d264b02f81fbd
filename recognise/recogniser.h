/*
 * recogniser.h - a network with its vocabulary and its features: new for
 * training, or read from model.safetensors.
 */
#ifndef BM_RECOGNISE_RECOGNISER_H
#define BM_RECOGNISE_RECOGNISER_H

#include "io/model/checkpoint.h"
#include "io/shard/dataset.h"
#include "models/model.h"

typedef struct bm_recogniser {
    bm_backend *be; /* borrowed */
    bm_model *model;
    bm_vocab *vocab;
    bool in_bytes; /* the file has matrices in bytes */
    size_t features;
    char width[24];      /* features as text */
    char *features_text; /* settings that made the features */
    char *symbols;       /* the vocabulary as text */
    bm_model_settings settings;
    char *texts[3];      /* owned texts of settings, if read from a file */
    char called[300];    /* in messages: "the model FILE", "data.train (DIR)" */
    char train_set[256]; /* likewise, for --vocab: DIR, or "TRAINING-DATA" */
} bm_recogniser;

/* A new network for a data set. It has no weights before bm_model_draw: see
 * bm_model_plan. Copies what it needs of data; borrows `be` and the texts of
 * settings. n_scores: see models/model.h. Free with bm_recogniser_close. Fails with BM_ERR_FORMAT if the labels do not
 * fit the loss, with BM_ERR_CONFIG if the network does not fit the data, or
 * with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_recogniser_plan(bm_recogniser *r, bm_backend *be,
                                        const bm_model_settings *settings,
                                        const bm_dataset *data, int n_scores);

/* Reads model.safetensors or a checkpoint. Fails with BM_ERR_MISSING, BM_ERR_IO
 * or BM_ERR_FORMAT if the file cannot be read or is no model. */
BM_CHECKED bm_status bm_recogniser_read(bm_recogniser *r, bm_backend *be,
                                        const char *path, int n_scores);
void bm_recogniser_close(bm_recogniser *r);

/* out [room] <- the file of a model: the path itself or, of a run,
 * model-best.safetensors, without one model.safetensors. Fails with
 * BM_ERR_MISSING if the run has neither, with BM_ERR_FORMAT if the file is a
 * text. */
BM_CHECKED bm_status bm_recogniser_find(const char *path, char *out,
                                        size_t room);

/* Fails with BM_ERR_FORMAT if the data set has another number of features than
 * the recogniser, or features made with other settings, which the message
 * lists; `force`: then go on. Features that are not normalised are from now on
 * normalised as those of the training set, if those were over the whole set.
 * Fails with BM_ERR_MEMORY as well. */
BM_CHECKED bm_status bm_recogniser_reads(const bm_recogniser *r,
                                         bm_dataset *data, bool force);

/* Fails with BM_ERR_FORMAT if the data set has other labels or symbols, too, and
 * otherwise as bm_recogniser_reads, which it calls. */
BM_CHECKED bm_status bm_recogniser_fits(const bm_recogniser *r,
                                        bm_dataset *data, bool force);

/*
 * For a new recogniser r whose weights come from another one: fails with
 * BM_ERR_FORMAT if the data set has other features than that, as
 * bm_recogniser_fits does. Features that are not normalised are normalised as
 * there, and so are from now on those of r. `from`: its features as text.
 */
BM_CHECKED bm_status bm_recogniser_adopt_features(bm_recogniser *r,
                                                  const char *from,
                                                  bm_dataset *data);

/* As bm_recogniser_fits for data.dev or data.test, which may be NULL: it must
 * have labels, too. */
BM_CHECKED bm_status bm_recogniser_scores(const bm_recogniser *r,
                                          bm_dataset *data);

/* The texts that bm_recogniser_read needs besides weights, ended by {0};
 * borrowed from *r. */
enum { BM_RECOGNISER_TEXTS = 8 };
void bm_recogniser_texts(const bm_recogniser *r,
                         bm_text out[BM_RECOGNISER_TEXTS]);

/* XXH3-128 of n weights on the host, hexadecimal: equal digests, equal bits. */
enum { BM_WEIGHTS_DIGEST = 33 }; /* 32 digits */
void bm_weights_digest(const float *w, size_t n, char out[BM_WEIGHTS_DIGEST]);

/* Writes `model` [n] (host) with these texts. Fails with BM_ERR_IO or
 * BM_ERR_CREATE if the file cannot be written. */
BM_CHECKED bm_status bm_recogniser_write(const bm_recogniser *r,
                                         const char *path, const float *model);

/* The same with matrices in fewer bits. Fails with BM_ERR_NUMERIC or
 * BM_ERR_MEMORY, too. */
BM_CHECKED bm_status bm_recogniser_write_narrow(const bm_recogniser *r,
                                                const char *path,
                                                const float *model,
                                                bm_weight_type type);

#endif
