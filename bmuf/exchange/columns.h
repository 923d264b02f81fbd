/*
 * columns.h - the columns of a model, which 1-bit codes quantise: contiguous
 * runs along the last dimension of each tensor. In a linear layer a column is
 * the weights of one output.
 */
#ifndef BM_BMUF_EXCHANGE_COLUMNS_H
#define BM_BMUF_EXCHANGE_COLUMNS_H

#include "comm/code/code_plan.h"
#include "compute/params.h"

/* Plans the code of the vector of all weights. Without segments it is one
 * column, and one of statistics. Fails with BM_ERR_MEMORY. Free with
 * bm_code_plan_free. */
BM_CHECKED bm_status bm_columns_plan(bm_code_plan *out, bm_code code,
                                     const bm_params *params);

#endif
