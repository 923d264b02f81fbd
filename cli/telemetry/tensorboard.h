/*
 * tensorboard.h - [job] tensorboard: which values a job writes for TensorBoard,
 * and under which tags (docs/jobs/telemetry.md). The step of all of them is the
 * number of blocks done in the run.
 */
#ifndef BM_CLI_TELEMETRY_TENSORBOARD_H
#define BM_CLI_TELEMETRY_TENSORBOARD_H

#include "compute/params.h"
#include "core/log.h"

typedef struct bm_tensorboard bm_tensorboard;

/* The file appears in `directory`, which is copied, with the event start. Free
 * with bm_tensorboard_close, which accepts NULL. Fails with BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_tensorboard_open(bm_tensorboard **out,
                                         const char *directory);
void bm_tensorboard_close(bm_tensorboard *b);

/* Writes the numbers of an event of the journal; `now`: seconds since 1970. An
 * event of no concern changes nothing, so that any thread may pass it on. */
void bm_tensorboard_take(bm_tensorboard *b, const char *event,
                         const bm_field *fields, double now);

/*
 * The global model [n] at the end of an epoch, or before the first block of the
 * job if that begins an epoch: writes histograms of each weight matrix and bias,
 * and of what it has changed by since the last such call. A model that a
 * resumed job begins with was written before.
 */
void bm_tensorboard_model(bm_tensorboard *b, const bm_params *params,
                          const float *model, double now);

/* The text of a sequence, under its name. */
void bm_tensorboard_example(bm_tensorboard *b, const char *sequence,
                            const char *text, double now);

#endif
