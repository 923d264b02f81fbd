/*
 * update.h - the updates that a gradient can make, [sgd] update. To add one, write
 * sgd/update_<name>.c, then add its line to BM_UPDATES; formulas are in sgd.h.
 */
#ifndef BM_SGD_UPDATE_H
#define BM_SGD_UPDATE_H

#include "sgd/sgd_settings.h"

#define BM_UPDATES(X)                                                          \
    X(momentum)                                                                \
    X(adamw)                                                                   \
    X(rmsprop)                                                                 \
    X(muon)

typedef struct bm_update_ops bm_update_ops;

/* What a step works on. */
struct bm_sgd {
    bm_sgd_settings set;
    const bm_update_ops *ops;
    bm_params *params;        /* borrowed */
    float *x[BM_SGD_VECTORS]; /* [n_x] vectors of the state */
    size_t n_x;
    float *t;       /* [1], updates made; NULL: they are not counted */
    float *skipped; /* one double, on the backend */
    float *kept;    /* w where params->layer_rates are, during a step; NULL:
                       nowhere */
    void *self;     /* of the update */
};

struct bm_update_ops {
    const char *name, *title; /* "adamw", "AdamW" */

    /* Which of momentum, nesterov, beta1, beta2 and epsilon it uses. */
    const char *uses;

    /* "section.key=value", the usual settings with it, up to NULL; may be NULL. */
    const char *const *presets;

    /* Names of the vectors of its state, up to NULL, and of t; NULL: it does not
     * count. A name that two updates have is of one thing, which `train --from`
     * may take over. */
    const char *const *states, *count;
    double scratch; /* vectors of memory that it needs besides */

    bool momentum_only; /* its state is the momentum; where that is 0, none */
    bool unscaled;      /* a step does not depend on the length of a gradient */
    bool extrapolates;  /* sgd.local_state = extrapolate knows its moments */
    const char
        *whole; /* why a part of a matrix cannot be updated alone; NULL: it
                           can */

    /* Memory of its own in sgd->self, and its end, which takes NULL there. Fails
     * with BM_ERR_MEMORY. Optional. */
    bm_status (*open)(bm_sgd *sgd);
    void (*close)(bm_sgd *sgd);

    /* Queued. See bm_sgd_step; the weights of frozen layers are restored after
     * it. */
    void (*step)(bm_sgd *sgd, float rate);
};

#define X(name) extern const bm_update_ops bm_update_##name;
BM_UPDATES(X)
#undef X

/* All, up to NULL. */
extern const bm_update_ops *const bm_updates[];

const bm_update_ops *bm_update_of(const bm_sgd_settings *settings);

/* Does it use this setting? */
bool bm_update_uses(const bm_update_ops *ops, const char *setting);

/* How many vectors its state has. */
size_t bm_update_vectors(const bm_update_ops *ops);

/* Is this, of n characters, a vector or count of some update? */
bool bm_update_is_state(const char *name, size_t n);

/* For updates that begin with the step of momentum SGD: adds it to w [n]. */
void bm_update_add_momentum(bm_sgd *sgd, float rate, float decay, float *w);

#endif
