/*
 * server.h - the parameter server in real time: a thread on rank 0, next to the
 * worker there, that serves messages in the order in which they arrive
 * (server_policy.h).
 *
 *     BM_TRY(bm_server_start(server, rate, stale, n_stale));
 *     ... all workers, rank 0's too, send messages and at last BM_DONE ...
 *     BM_TRY(bm_server_join(server, &service));
 *
 * A worker's message (bm_message.word, then floats), and the answer:
 *
 *     BM_PUSH   samples, known, wants    a vector; answered once an update of W
 *                                        contains it, with W if `wants`
 *     BM_PULL                            answered with W
 *     BM_DONE                            not answered: the share has ended
 *
 *     answer    accepted, version        accepted = 0: the vector was not
 *                                        finite and was skipped
 *
 * `known` is the version of W that the worker's model contains.
 */
#ifndef BM_BMUF_ASYNC_SERVER_H
#define BM_BMUF_ASYNC_SERVER_H

#include "bmuf/async/server_policy.h"
#include "bmuf/task.h"
#include "comm/comm.h"
#include "sgd/sgd.h"

/* Words of a message to the server: kind and its arguments; of an answer. */
enum { BM_KIND, BM_SAMPLES, BM_KNOWN, BM_WANTS };
enum { BM_PUSH, BM_PULL, BM_DONE };
enum { BM_ACCEPTED, BM_VERSION };

/* Channels of the comm: to the server, and to workers. */
enum { BM_TO_SERVER, BM_TO_WORKER };

typedef struct bm_server bm_server;

/*
 * Allocates the server's own model, of as many weights as params, on the host,
 * and reads [sgd]. `comm` carries these messages only and is borrowed. Fails
 * with BM_ERR_CONFIG or BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_server_open(bm_server **out, const bm_config *config,
                                    bm_comm *comm, const bm_params *params,
                                    const bm_server_policy *policy,
                                    int workers);
void bm_server_close(bm_server *s);

/* The server's W and the state of its update, in host memory, owned by the
 * server: write before a start, read after a join. */
bm_params *bm_server_params(bm_server *s);
bm_sgd *bm_server_sgd(bm_server *s);

/* Starts the thread. stale [n_stale] is borrowed until bm_server_join and gets
 * the histogram of staleness. Fails with BM_ERR_MEMORY without a thread. */
BM_CHECKED bm_status bm_server_start(bm_server *s, float rate, double *stale,
                                     size_t n_stale);

/* Waits for the BM_DONE of all workers and writes the counters to *service.
 * Fails with the error of the thread: BM_ERR_COMM or the backend's. */
BM_CHECKED bm_status bm_server_join(bm_server *s, bm_service *service);

#endif
