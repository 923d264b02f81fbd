/*
 * infeasible.h - sequences that the loss cannot use, found before anything is
 * computed: they are told by name, or they end the work, as model.infeasible
 * says.
 */
#ifndef BM_BMUF_INFEASIBLE_H
#define BM_BMUF_INFEASIBLE_H

#include "io/batch/reader.h"
#include "models/model.h"

typedef struct bm_infeasible_check bm_infeasible_check;

/* The model is borrowed. */
BM_CHECKED bm_status bm_infeasible_check_new(bm_infeasible_check **out,
                                             const bm_model *model);
void bm_infeasible_check_free(bm_infeasible_check *m);

/*
 * Looks at a batch of the reader's and tells the first few that do not fit.
 * bad [B] says of each sequence whether it is one; borrowed until the next
 * call. Fails with BM_ERR_FORMAT at the first one if they are errors.
 */
BM_CHECKED bm_status bm_infeasible_check_look(bm_infeasible_check *m,
                                              bm_reader *reader,
                                              const bm_batch *batch,
                                              const bool **bad);

/* Says how many more there were, and begins anew. */
void bm_infeasible_check_end(bm_infeasible_check *m);

#endif
