/* priors.h - how often each label occurs, for the search. */
#ifndef BM_RECOGNISE_PRIORS_H
#define BM_RECOGNISE_PRIORS_H

#include "io/vocab.h"

/*
 * *out [classes] <- log priors as bm_log_priors makes them (search.h), of the
 * labels of a packed set, usually the training set: it reads the whole set, of
 * which sequences without a reference do not count. free(*out). Fails as
 * bm_dataset_open and bm_dataset_read, with BM_ERR_FORMAT if the set has
 * another vocabulary, labels of frames, or no labels, or with BM_ERR_ARG unless
 * blank_scale is greater than 0.
 */
BM_CHECKED bm_status bm_priors_read(float **out, const char *path,
                                    const bm_vocab *vocab, double blank_scale);

#endif
