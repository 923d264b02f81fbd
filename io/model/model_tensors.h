/*
 * model_tensors.h - the model's vector as tensors of a safetensors file: one
 * for each segment, named `prefix` and the segment's name, in the order of the
 * vector; without segments one flat tensor, "model".
 *
 * A file may also have the matrices in fewer bits: as halves (F16), or as bytes
 * (I8) with a second tensor of floats, "<name>.scale" [rows], by which each row
 * is multiplied. A row has the last dimension. Reading gives floats.
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

typedef enum bm_weight_type {
    BM_WEIGHTS_FP32,
    BM_WEIGHTS_FP16, /* matrices; everything else stays float */
    BM_WEIGHTS_INT8, /* likewise, with scales */
} bm_weight_type;

/* Declares them in fewer bits, and writes all of the vector, `model`. Fails
 * with BM_ERR_NUMERIC if a weight is not finite or too large for a half. */
BM_CHECKED bm_status bm_model_write_narrow(bm_st_writer *w,
                                           const bm_params *params,
                                           bm_weight_type type,
                                           const float *model);

/* out [params->n] <- the floats that reading such a file gives. `type` is not
 * fp32. Fails likewise. */
BM_CHECKED bm_status bm_model_narrow(const bm_params *params,
                                     bm_weight_type type, const float *model,
                                     float *out);

/* Fails with BM_ERR_FORMAT unless the file has all of them, with the shapes in
 * params, and the scales. `path` is for the message. */
BM_CHECKED bm_status bm_model_match(const bm_st_file *f, const char *path,
                                    const bm_params *params,
                                    const char *prefix);

/* True if one of them, or the scale of one, has this name. */
bool bm_model_has(const bm_st_file *f, const bm_params *params,
                  const char *prefix, const char *name);

/* Reads elements [offset, offset + count) of the vector into x, on the host.
 * Only after bm_model_match. Fails as bm_st_read does, or with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_model_read(bm_st_file *f, const bm_params *params,
                                   const char *prefix, size_t offset,
                                   size_t count, float *x);

#endif
