/*
 * columns.h - the columns of a model, of which 1-bit codes are made: runs along
 * the last dimension of each tensor, which lie one behind the other. In a
 * linear layer they are the weights that lead to one unit.
 */
#ifndef BM_BMUF_EXCHANGE_COLUMNS_H
#define BM_BMUF_EXCHANGE_COLUMNS_H

#include "comm/code/code_plan.h"
#include "compute/params.h"

/* How the vector of all its numbers is cut for a code. Without segments it is
 * one column, and one of statistics. */
BM_CHECKED bm_status bm_columns_plan(bm_code_plan *out, bm_code code,
                                     const bm_params *params);

#endif
