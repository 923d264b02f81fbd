/*
 * infeasible.h - sequences that the loss cannot use: more labels than frames
 * allow. They are found before anything is computed and logged by name, or are
 * errors, as model.infeasible says.
 */
#ifndef BM_BMUF_TRAINER_INFEASIBLE_H
#define BM_BMUF_TRAINER_INFEASIBLE_H

#include "io/batch/reader.h"
#include "models/model.h"

/* For augmentation: whether the model, which is borrowed, can use a sequence of
 * this number of frames. */
bm_fit bm_infeasible_fit(const bm_model *model);

typedef struct bm_infeasible_check bm_infeasible_check;

/* The model is borrowed and must outlive it. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_infeasible_check_new(bm_infeasible_check **out,
                                             const bm_model *model);
/* m may be NULL. */
void bm_infeasible_check_free(bm_infeasible_check *m);

/*
 * Checks a batch of the reader, and logs the first infeasible sequences of all;
 * reader NULL: logs nothing, and refuses none.
 * bad [B]: whether sequence b is infeasible; borrowed until the next call.
 * Fails with BM_ERR_FORMAT at the first one if model.infeasible = error, or
 * with BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_infeasible_check_look(bm_infeasible_check *m,
                                              bm_reader *reader,
                                              const bm_batch *batch,
                                              const bool **bad);

/* The number of sequences of a data set that have more labels than the model
 * leaves frames, by their lengths alone: equal neighbours, which CTC separates
 * by a blank, are not looked at. 0 for a loss per frame. */
int64_t bm_infeasible_count(const bm_model *model, const bm_dataset *data);

/* Writes a sentence about this number; false: it is 0. `name`: of the data,
 * "data.train". */
bool bm_infeasible_describe(const bm_model *model, const bm_dataset *data,
                            const char *name, char *out, size_t room);

/* Fails with BM_ERR_FORMAT if less than half of the sequences can be used: the
 * network does not suit the data. Or if there are none, or if one cannot be used
 * and model.infeasible = error. `name`: of the data, "data.train". */
BM_CHECKED bm_status bm_infeasible_check_data(const bm_model *model,
                                              bm_dataset *data,
                                              const char *name);

/* Fails with BM_ERR_CONFIG if a sequence of the data, which may be NULL, is too
 * long for the model, as attention has a limit, and names the longest. */
BM_CHECKED bm_status bm_infeasible_check_longest(const bm_model *model,
                                                 bm_dataset *data,
                                                 const char *name);

#endif
