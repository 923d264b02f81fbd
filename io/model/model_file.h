/*
 * model_file.h - the model's vector as tensors, one for each segment, under
 * names that begin with `prefix`; without segments one flat tensor, "model".
 */
#ifndef BM_IO_MODEL_MODEL_FILE_H
#define BM_IO_MODEL_MODEL_FILE_H

#include "compute/params.h"
#include "io/model/safetensors.h"

#define BM_CHECKPOINT_FORMAT "bmuf-checkpoint 1"
#define BM_MODEL_FORMAT      "bmuf-model 1"

/* A checkpoint, which is taken only whole, or a model of any origin. */
BM_CHECKED bm_status bm_model_open(bm_st_file **out, const char *path,
                                   bool *checkpoint);

/* One of the texts it was written with; free() it. BM_ERR_FORMAT: there is none
 * of that name. `path`: for words. */
BM_CHECKED bm_status bm_model_text(const bm_st_file *f, const char *path,
                                   const char *key, char **out);

/* Its data are then the vector as it lies. */
BM_CHECKED bm_status bm_model_declare(bm_st_writer *w, const bm_params *params,
                                      const char *prefix);

/* BM_ERR_FORMAT unless all are there, with their shapes. `path`: for words. */
BM_CHECKED bm_status bm_model_match(const bm_st_file *f, const char *path,
                                    const bm_params *params,
                                    const char *prefix);

/* Is this the name of one of them? */
bool bm_model_has(const bm_params *params, const char *prefix,
                  const char *name);

/* Elements [offset, offset + count) of the vector, after bm_model_match. */
BM_CHECKED bm_status bm_model_read(bm_st_file *f, const bm_params *params,
                                   const char *prefix, size_t offset,
                                   size_t count, float *x);

#endif
