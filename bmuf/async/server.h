/*
 * server.h - the parameter server in real time: a thread, next to the rank's
 * worker, that serves messages in the order in which they arrive
 * (server_policy.h). It has the whole model W, or a shard of it with versions of
 * its own (server_shards.h). Below, W is the part that the server owns.
 *
 *     BM_TRY(bm_server_start(server, rate, stale, n_stale));
 *     ... all workers, the rank's own too, send messages and at last BM_DONE ...
 *     BM_TRY(bm_server_join(server, &service));
 *
 * A worker's message (bm_message.word, then floats), and the answer, whose word
 * is the version of W:
 *
 *     BM_PUSH     samples, known, norm    a vector; answered once an update of W
 *                                         contains it
 *     BM_SWAP     samples, known, norm    the same, answered with W
 *     BM_PULL                             answered with W
 *     BM_DONE                             not answered: the share has ended
 *
 * `known` is the version of W that the worker's model contains, `norm` that of
 * the worker's whole vector without statistics, for sgd.clip where W is a shard.
 * A vector of 0 samples is not finite, and is skipped.
 */
#ifndef BM_BMUF_ASYNC_SERVER_H
#define BM_BMUF_ASYNC_SERVER_H

#include "bmuf/async/server_policy.h"
#include "bmuf/trainer/task.h"
#include "comm/comm.h"
#include "sgd/sgd.h"

/* Words of a message to a server: kind and its arguments; of an answer.
 * BM_END: from the server's own rank; stops the server at once. */
enum { BM_KIND, BM_SAMPLES, BM_KNOWN, BM_NORM };
enum { BM_PUSH, BM_SWAP, BM_PULL, BM_DONE, BM_END };
enum { BM_VERSION };

/* Channels of the comm: to each rank's server, and to each rank's worker. */
enum { BM_TO_SERVER, BM_TO_WORKER };

typedef struct bm_server bm_server;

/*
 * Allocates the server's own model, weights [offset, offset + count) of the
 * params, on the host, and reads [sgd]. `comm` carries these messages only; it,
 * the policy, whose group may change between blocks, and what params point to
 * are borrowed. Fails with BM_ERR_CONFIG or BM_ERR_MEMORY.
 */
BM_CHECKED bm_status bm_server_open(bm_server **out, const bm_config *config,
                                    bm_comm *comm, const bm_params *params,
                                    size_t offset, size_t count,
                                    const bm_server_policy *policy,
                                    int workers);
void bm_server_close(bm_server *s);

/* The server's W and the state of its update, in host memory, owned by the
 * server: write before a start, read after a join. */
bm_params *bm_server_params(bm_server *s);
bm_sgd *bm_server_sgd(bm_server *s);

/* Starts the thread. stale [n_stale] is borrowed until bm_server_join and gets
 * the histogram of staleness. Fails with BM_ERR_MEMORY if no thread can be
 * started. */
BM_CHECKED bm_status bm_server_start(bm_server *s, float rate, double *stale,
                                     size_t n_stale);

/* Ends a thread to which no worker has sent anything. */
void bm_server_cancel(bm_server *s);

/* Waits for the BM_DONE of all workers and writes the counters to *service.
 * Fails with the error of the thread: BM_ERR_COMM or the backend's. */
BM_CHECKED bm_status bm_server_join(bm_server *s, bm_service *service);

#endif
