/*
 * server.h - the parameter server in real time: a thread on rank 0, beside the
 * worker there, which takes what comes in the order in which it comes
 * (server_policy.h).
 *
 *     BM_TRY(bm_server_start(server, rate));
 *     ... all workers, rank 0's too, post to it, and in the end BM_DONE ...
 *     BM_TRY(bm_server_join(server));
 *
 * A worker's letter and the answer to it, with a model or without:
 *
 *     BM_PUSH   samples, known, wants    a vector; answered when it is in an
 *                                        update, with W if the worker wants it
 *     BM_PULL                            answered with W
 *     BM_DONE                            not answered: its share has ended
 *
 *     answer    accepted, version        not accepted: the vector held a number
 *                                        that is none
 *
 * `known` is the stamp: how many updates of W are in the worker's model.
 */
#ifndef BM_BMUF_ASYNC_SERVER_H
#define BM_BMUF_ASYNC_SERVER_H

#include "bmuf/async/server_policy.h"
#include "bmuf/task.h"
#include "comm/comm.h"
#include "sgd/sgd.h"

/* The words of a letter to it, and of its answer. */
enum { BM_KIND, BM_SAMPLES, BM_KNOWN, BM_WANTS };
enum { BM_PUSH, BM_PULL, BM_DONE };
enum { BM_ACCEPTED, BM_VERSION };

/* Boxes of the comm: the server's, and each worker's. */
enum { BM_TO_SERVER, BM_TO_WORKER };

typedef struct bm_server bm_server;

/* Reads [sgd]. `mail` is a comm for these letters alone, borrowed. It has a
 * model of its own, on the host, of as many weights as params. */
BM_CHECKED bm_status bm_server_open(bm_server **out, const bm_config *config,
                                    bm_comm *mail, const bm_params *params,
                                    const bm_server_policy *server_policy,
                                    int workers);
void bm_server_close(bm_server *s);

/* Its model and what its update remembers, on the host, to be filled before a
 * start and read after a join. */
bm_params *bm_server_params(bm_server *s);
bm_sgd *bm_server_sgd(bm_server *s);

/* stale [n_stale], zeros, gets the pushes of each staleness. */
BM_CHECKED bm_status bm_server_start(bm_server *s, float rate, double *stale,
                                     size_t n_stale);

/* Waits until all workers are done. What went to and fro, but for times. */
BM_CHECKED bm_status bm_server_join(bm_server *s, bm_service *service);

#endif
