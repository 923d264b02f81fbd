/*
 * same_model.h - ranks that all make the same updates of one model must have the
 * same bits. Ranks on hosts with other processors, libraries or builds may not,
 * and one with a processor or memory that computes wrongly does not; nothing
 * else would show it, as such ranks send gradients and never the model.
 */
#ifndef BM_BMUF_TRAINER_SAME_MODEL_H
#define BM_BMUF_TRAINER_SAME_MODEL_H

#include "comm/comm.h"
#include "compute/params.h"
#include "io/batch/plan.h"

/* Collective. Fails with BM_ERR_DEVICE, on all ranks, unless params->w has the
 * same bits on all of them; the message names the ranks and their hosts, and `at`,
 * the next block. Fails with BM_ERR_MEMORY or as the backend does. */
BM_CHECKED bm_status bm_same_model(bm_comm *comm, const bm_params *params,
                                   bm_position at);

#endif
