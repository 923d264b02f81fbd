/*
 * server_policy.h - the protocol between workers and a parameter server, as the
 * settings of asgd, softsync and easgd define it. A worker trains for a period
 * of `push_every` steps (task.h), or until its share ends, and then pushes g:
 *
 *     BM_GRADIENT    g = the sum of the period's gradients; between them the
 *                    worker's model moves by plain SGD. The server applies
 *                    [sgd]'s update with g to its model W
 *     BM_CHANGE      g = the change that the worker's own update made to its
 *                    model in the period; W <- W + g
 *     BM_ELASTIC     g = alpha (w - W); W <- W + g; on the worker w <- w - g
 *
 * Each update of W makes a new version. The staleness tau of a push is the
 * number of updates of W, made of other workers' pushes, since the worker
 * fetched W. An update merges c = `group` pushes of n_l samples each:
 *
 *     g = sum n_l a(tau_l) g_l / sum n_l
 *     a(tau) = 1              scaling = none
 *              1 / tau        inverse (Zhang et al. 2016), 1 for tau = 0
 *
 * A worker fetches W every `fetch_every` steps and where a block begins.
 * With BM_ELASTIC a worker keeps its own model for the whole run, unless that is
 * no longer finite: then it takes W.
 */
#ifndef BM_BMUF_ASYNC_SERVER_POLICY_H
#define BM_BMUF_ASYNC_SERVER_POLICY_H

#include <stdbool.h>

typedef enum bm_push { BM_GRADIENT, BM_CHANGE, BM_ELASTIC } bm_push;

typedef struct bm_server_policy {
    bm_push push;
    int group;        /* c, at least 1 */
    long push_every;  /* steps */
    long fetch_every; /* steps, a multiple of push_every */
    double alpha;     /* BM_ELASTIC */
    bool scaled;      /* a(tau) = 1 / tau */
} bm_server_policy;

/* a(tau) */
double bm_server_policy_scale(const bm_server_policy *policy, double tau);

#endif
