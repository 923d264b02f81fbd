/*
 * host_sum.h - the ordered sum (comm/sum/sum.h) for vectors on a backend, by
 * way of the host. What a device has comes piece by piece into pinned memory:
 * of a worker that is not the last one here, while the next one learns; of the
 * last one, each piece while the one before is added up and filtered, which
 * goes back meanwhile. The bits are those of comm/sum/sum.h.
 */
#ifndef BM_BMUF_EXCHANGE_HOST_SUM_H
#define BM_BMUF_EXCHANGE_HOST_SUM_H

#include "bmuf/exchange/exchange.h"

typedef struct bm_host_sum bm_host_sum;

/* Collective. For vectors of n floats. All arguments are borrowed. */
BM_CHECKED bm_status bm_host_sum_open(bm_host_sum **out, bm_comm *comm,
                                      bm_backend *be, size_t n,
                                      const bm_job *job);
void bm_host_sum_close(bm_host_sum *h);

/* See bm_exchange_code. */
void bm_host_sum_code(bm_host_sum *h, bm_coded_sum *coded);
bm_coded_sum *bm_host_sum_coded(const bm_host_sum *h);

/* See bm_exchange_apart. */
void bm_host_sum_apart(bm_host_sum *h);

bm_slice bm_host_sum_slice(const bm_host_sum *h);

/* Takes in x - from of the next worker hosted here, `from` being the common
 * vector; from = NULL: x. What holds a number that is none gets weight 0, and
 * *good is false. */
BM_CHECKED bm_status bm_host_sum_add(bm_host_sum *h, int worker, const float *x,
                                     const float *from, double weight,
                                     bool *good);

/* Collective, after all workers were added. x on the backend = their mean. */
BM_CHECKED bm_status bm_host_sum_mean(bm_host_sum *h, float *x);

/* Collective, after all workers were added: as bm_sum_update. */
BM_CHECKED bm_status bm_host_sum_update(bm_host_sum *h, bm_sum_work *work,
                                        void *self, double *weight);

/* Collective. x on the backend = all ranks' slices `part`. */
BM_CHECKED bm_status bm_host_sum_gather(bm_host_sum *h, const float *part,
                                        float *x);

/* n floats on the host, see bm_sum_common. */
float *bm_host_sum_common(const bm_host_sum *h);
BM_CHECKED bm_status bm_host_sum_share(bm_host_sum *h);

/* x on the backend = the common vector. Queued. */
void bm_host_sum_fetch(bm_host_sum *h, float *x);

/* Only tests have reason to change it: see bm_sum_limit. */
void bm_host_sum_limit(bm_host_sum *h, size_t n);

#endif
