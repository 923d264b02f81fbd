/*
 * server_policy.h - the terms on which workers deal with a parameter server:
 * what the settings of asgd, softsync and easgd come to. A worker learns for a
 * period of `push_every` mini-batches, or until its share ends, and pushes
 *
 *     gradient    g = the sum of the period's gradients, between which the
 *                 worker's own model moves by plain SGD; the server makes
 *                 [sgd]'s update of its model W with g
 *     change      g = what the worker's own update made of its model in the
 *                 period; W <- W + g
 *     elastic     g = alpha (w - W);  W <- W + g  and, here,  w <- w - g
 *
 * W has versions: each update makes a new one. The staleness tau of a push is
 * how many updates W has seen, of others, since the worker's model was W. With
 * c = `group` pushes in an update, of workers with samples n_l,
 *
 *     g = sum n_l a(tau_l) g_l / sum n_l
 *     a(tau) = 1             none
 *              tau^-1        inverse (Zhang et al. 2016), 1 for tau = 0
 *              tau^-power    power, 1 for tau = 0
 *
 * Every `fetch_every` mini-batches, and where a block begins, the worker's
 * model becomes W (not with elastic: that one is the worker's own, for ever).
 */
#ifndef BM_BMUF_ASYNC_SERVER_POLICY_H
#define BM_BMUF_ASYNC_SERVER_POLICY_H

#include "core/config.h"

typedef enum bm_push { BM_GRADIENT, BM_CHANGE, BM_ELASTIC } bm_push;

typedef struct bm_server_policy {
    bm_push push;
    int group; /* c, at least 1 */
    long push_every;
    long fetch_every; /* a multiple of push_every */
    double alpha;     /* elastic */
    double power;     /* of 1 / tau; 0: a(tau) = 1 */
} bm_server_policy;

/* a(tau) */
double bm_server_policy_scale(const bm_server_policy *server_policy,
                              double tau);

/* For a strategy's table: a choice, and the power if it is `power`. */
typedef struct bm_scaling {
    const char *scaling;
    double power;
} bm_scaling;
#define BM_SCALING_OPTIONS(type, field)                                        \
    {"scaling",                                                                \
     BM_CHOICE,                                                                \
     offsetof(type, field.scaling),                                            \
     "none",                                                                   \
     0,                                                                        \
     0,                                                                        \
     "none inverse power",                                                     \
     "of a push that is stale by tau updates: by 1, 1 / tau, tau^-power"},     \
    {                                                                          \
        "power", BM_FLOAT, offsetof(type, field.power), "0.5", 0, 10, NULL,    \
            "of scaling = power"                                               \
    }
double bm_scaling_power(const bm_scaling *s);

/* A power that nothing is raised to, told as a fault of `section`. */
void bm_scaling_check(const bm_scaling *s, const char *section,
                      const bm_config *config, bm_faults *faults);

#endif
