/*
 * feature_text.h - how features were made, as a JSON object that shards and
 * models hold: the settings of `pack`, and for features that were normalised
 * over a whole set the numbers that did it, so that other sets can be
 * normalised by the same ones.
 */
#ifndef BM_IO_FEATURES_FEATURE_TEXT_H
#define BM_IO_FEATURES_FEATURE_TEXT_H

#include "core/config/config.h"
#include "core/status.h"

#include <stdbool.h>
#include <stddef.h>

struct json_t;

/* Mean and variance normalisation by fixed numbers: x <- (x - mean) * scale, for
 * each of `dim` features; dim = 0: none. Starts as {0}; free with
 * bm_cmvn_free. */
typedef struct bm_cmvn {
    size_t dim;
    double *mean, *scale; /* [dim] */
} bm_cmvn;

/* Allocates both lists. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_cmvn_make(bm_cmvn *n, size_t dim);
BM_CHECKED bm_status bm_cmvn_copy(bm_cmvn *n, const bm_cmvn *from);
void bm_cmvn_free(bm_cmvn *n);

/* x [frames, columns]; columns: a multiple of n->dim, as frames that were put
 * side by side have. */
void bm_cmvn_apply(const bm_cmvn *n, float *x, size_t frames, size_t columns);

/* Adds it to a description, an object of jansson's. Returns 0, or -1 without
 * memory, as jansson does. */
int bm_cmvn_describe(const bm_cmvn *n, struct json_t *description);

/* Describes the settings that made features of a kind, "audio", and the
 * normalisation; norm: NULL or dim = 0 if there is none. free(*out). Fails with
 * BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_features_describe(char **out, const char *kind,
                                          const bm_option *options,
                                          const void *settings,
                                          const bm_cmvn *norm);

/* Adds settings as an object `key` to a description, which is replaced; these
 * differ freely between a model and a set. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_features_describe_more(char **description,
                                               const char *key,
                                               const bm_option *options,
                                               const void *settings);

/* The kind of features that a description names, "audio"; free(*out). NULL: it
 * is not known how they were made. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_features_kind(const char *description, char **out);

/* Whether a description is of line images whose frames go from right to left. */
bool bm_features_right_to_left(const char *description);

/* Fills settings from a description by their table, which checks them. Texts
 * are borrowed from *config; bm_config_free. Fails with BM_ERR_FORMAT if a
 * setting is invalid, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_features_settings(const char *description,
                                          const bm_option *options,
                                          bm_config **config, void *settings);

/* The normalisation that a description holds; n->dim is 0 if it holds none.
 * Fails with BM_ERR_FORMAT if it is invalid, or with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_cmvn_read(bm_cmvn *n, const char *description);

/*
 * Compares the settings that made a model's and a set's features. Writes "\n
 * features.mels is 8, should be 40: --set features.mels=40" for each difference
 * to `out`, cut to `room` bytes, and returns how many there are. An empty
 * description is not known and differs in nothing; neither do `channel`, `seed`
 * and `copies` count, which belong to the recordings.
 *
 * *raw: the set has what the model's features were before they were normalised
 * over the training set, and nothing else differs.
 */
size_t bm_features_differ(const char *model, const char *data, char *out,
                          size_t room, bool *raw);

/* Gives a configuration the settings of a description of this kind that it does
 * not set, without `channel` and `seed`, which belong to the recordings. Writes
 * those that are not defaults to `out`, "features.mels = 8, ..", cut to `room`
 * bytes. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_features_follow(const char *description,
                                        const char *kind,
                                        const bm_option *options,
                                        bm_config *config, char *out,
                                        size_t room);

/* The description without the numbers of a normalisation; free(). NULL: no
 * memory. */
char *bm_features_brief(const char *description);

#endif
