/*
 * model_file.h - models in safetensors files: written for any program, read
 * from a model or a checkpoint.
 */
#ifndef BM_IO_MODEL_MODEL_FILE_H
#define BM_IO_MODEL_MODEL_FILE_H

#include "compute/params.h"
#include "io/model/model_tensors.h"

#define BM_CHECKPOINT_FORMAT "bmuf-checkpoint 1"
#define BM_MODEL_FORMAT      "bmuf-model 1"

/* A text for the header of a file; lists of them end with {0}. Both fields are
 * borrowed. */
typedef struct bm_text {
    const char *key, *text;
} bm_text;

/* Opens a model or a checkpoint, as bm_st_open; the checksum of a checkpoint is
 * verified. *checkpoint: which of them it is. Free with bm_st_free. */
BM_CHECKED bm_status bm_model_open(bm_st_file **out, const char *path,
                                   bool *checkpoint);

/* Copies the text of `key` in the header; free(*out). Fails with BM_ERR_FORMAT
 * if there is no such text. `path` is for the message. */
BM_CHECKED bm_status bm_model_text(const bm_st_file *f, const char *path,
                                   const char *key, char **out);

/*
 * Not collective: one rank writes the model to `path`, one tensor per segment,
 * as docs/jobs/checkpoints.md describes. The file has no date and no host name, so
 * that equal runs write equal files. model: params->n floats on the host;
 * texts: may be NULL. Fails with BM_ERR_CREATE or BM_ERR_IO, or with
 * BM_ERR_NUMERIC if a weight is not finite; an older file then stays.
 */
BM_CHECKED bm_status bm_model_export(const char *path, const bm_params *params,
                                     const float *model, const bm_text *texts);

/* The same with matrices in fewer bits. BM_ERR_NUMERIC: or too large. */
BM_CHECKED bm_status bm_model_export_narrow(const char *path,
                                            const bm_params *params,
                                            const float *model,
                                            bm_weight_type type,
                                            const bm_text *texts);

/* Fails with BM_ERR_FORMAT if names or shapes of the tensors in an open model
 * or checkpoint differ from those of params, which may have no memory yet. */
BM_CHECKED bm_status bm_model_check_tensors(const bm_st_file *f,
                                            const char *path, bool checkpoint,
                                            const bm_params *params);

/* Whether matrices of an open model are in bytes. */
bool bm_model_in_bytes(const bm_st_file *f);

/* Reads params->n floats into `model`, on the host, from an open file that
 * passed this check. `model` is unspecified on failure. */
BM_CHECKED bm_status bm_model_load(bm_st_file *f, bool checkpoint,
                                   const bm_params *params, float *model);

#endif
