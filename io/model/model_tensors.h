/*
 * model_tensors.h - the model's vector as tensors of a safetensors file: one
 * for each segment, named `prefix` and the segment's name, in the order of the
 * vector; without segments one flat tensor, "model".
 *
 * A tensor's name that does not fit into BM_ST_NAME bytes is BM_ERR_ARG.
 */
#ifndef BM_IO_MODEL_MODEL_TENSORS_H
#define BM_IO_MODEL_MODEL_TENSORS_H

#include "compute/params.h"
#include "io/model/safetensors.h"

/* Declares all of them. Their data, end to end, are the vector itself. */
BM_CHECKED bm_status bm_model_declare(bm_st_writer *w, const bm_params *params,
                                      const char *prefix);

/* Fails with BM_ERR_FORMAT unless the file has all of them, as F32 with the
 * shapes in params. `path` is for the message. */
BM_CHECKED bm_status bm_model_match(const bm_st_file *f, const char *path,
                                    const bm_params *params,
                                    const char *prefix);

/* True if one of them has this name. */
bool bm_model_has(const bm_params *params, const char *prefix,
                  const char *name);

/* Reads elements [offset, offset + count) of the vector into x, on the host.
 * Only after bm_model_match. Fails as bm_st_read does. */
BM_CHECKED bm_status bm_model_read(bm_st_file *f, const bm_params *params,
                                   const char *prefix, size_t offset,
                                   size_t count, float *x);

#endif
