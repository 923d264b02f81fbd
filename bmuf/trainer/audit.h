/*
 * audit.h - looks for silent corruption: a processor, memory or a link that
 * gives wrong numbers without an error. In audited blocks (io/batch/audited.h)
 * each worker's share is computed twice, by its own rank and by the next one,
 * and both models must have the same bits; the ordered sum makes any difference
 * a fault. What is computed a second time leaves no trace.
 *
 * Turn j of a block audits the j-th worker of each rank:
 *
 *     bm_audit_lend(a, j, sgd)     its local state goes to the next rank
 *     .. the worker's own share ..
 *     bm_audit_keep(a, j)          params->w is its result
 *     sgd = bm_audit_begin(a)      for the share of the rank before
 *     .. that share ..
 *     bm_audit_compare(a, j)
 */
#ifndef BM_BMUF_TRAINER_AUDIT_H
#define BM_BMUF_TRAINER_AUDIT_H

#include "bmuf/local_state.h"
#include "io/batch/audited.h"

typedef struct bm_audit bm_audit;

/* Collective. The comm and params are borrowed. Reads [sgd]. Fails with
 * BM_ERR_CONFIG or BM_ERR_MEMORY. */
BM_CHECKED bm_status bm_audit_open(bm_audit **out, const bm_config *config,
                                   bm_comm *comm, bm_params *params,
                                   int workers);
/* a may be NULL. */
void bm_audit_close(bm_audit *a);

/* Number of turns of a block, equal on all ranks; in turn j, the worker hosted
 * here and the worker of the rank before, -1 if that rank has fewer. */
int bm_audit_turns(const bm_audit *a);
int bm_audit_own(const bm_audit *a, int j);
int bm_audit_other(const bm_audit *a, int j);

/* Collective. `sgd`: the state that the own worker begins turn j with; NULL if
 * bm_audit_own is -1. Fails as the backend does or with BM_ERR_COMM. */
BM_CHECKED bm_status bm_audit_lend(bm_audit *a, int j, bm_sgd *sgd);

/* Notes params->w as the result of the own worker of this turn. */
BM_CHECKED bm_status bm_audit_keep(bm_audit *a, int j);

/* The local update for the share of the other worker, with the state that was
 * lent, or for the own one again; borrowed. */
bm_sgd *bm_audit_begin(bm_audit *a);
bm_sgd *bm_audit_begin_own(bm_audit *a);

/* Collective, when params->w is the result of the other worker. *differs <-
 * whether any rank found a difference in this turn. */
BM_CHECKED bm_status bm_audit_compare(bm_audit *a, int j, bool *differs);

/*
 * Collective, after a difference. Each rank has computed both shares of the
 * turn once more: these say whether params->w is what it got before. _verdict
 * then fails with BM_ERR_DEVICE and says, of the first worker that differs, the
 * ranks, their hosts, how many weights differ, and which rank is to be
 * suspected.
 */
BM_CHECKED bm_status bm_audit_repeat_own(bm_audit *a, int j);
BM_CHECKED bm_status bm_audit_repeat_other(bm_audit *a, int j);
BM_CHECKED bm_status bm_audit_verdict(bm_audit *a, bm_position at);

/* Adds what an audit keeps: see bm_footprint. */
void bm_audit_footprint(const bm_sgd_settings *set, bm_footprint *sum);

#endif
