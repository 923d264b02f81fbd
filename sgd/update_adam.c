/* update_adam.c - AdamW and RMSProp, which are one operation of the backend. */
#include "sgd/update.h"

static void adam_step(bm_sgd *sgd, float rate, bool rms)
{
    bm_params *p = sgd->params;
    bm_adam a = {.rate = rate,
                 .beta1 = rms ? sgd->set.momentum : sgd->set.beta1,
                 .beta2 = sgd->set.beta2,
                 .epsilon = sgd->set.epsilon,
                 .decay = sgd->set.weight_decay,
                 .clip = sgd->set.clip,
                 .rms = rms};

    bm_adam_step(p->be, &a, p->n_learned, p->n - p->n_learned, p->g, sgd->x[0],
                 sgd->x[1], p->w, sgd->t, (double *)(void *)sgd->skipped);
}

static void adamw(bm_sgd *sgd, float rate)
{
    adam_step(sgd, rate, false);
}

static void rmsprop(bm_sgd *sgd, float rate)
{
    adam_step(sgd, rate, true);
}

const bm_update_ops bm_update_adamw = {
    .name = "adamw",
    .title = "AdamW",
    .uses = "beta1 beta2 epsilon",
    .presets = (const char *const[]){"train.rate=0.001", NULL},
    .states = (const char *const[]){"adam.m", "adam.v", NULL},
    .count = "adam.t",
    .unscaled = true,
    .extrapolates = true,
    .step = adamw,
};

/* Momentum and beta2 of PyTorch. */
const bm_update_ops bm_update_rmsprop = {
    .name = "rmsprop",
    .title = "RMSProp",
    .uses = "momentum beta2 epsilon",
    .presets = (const char *const[]){"train.rate=0.001", "sgd.momentum=0",
                                     "sgd.beta2=0.99", NULL},
    .states = (const char *const[]){"rmsprop.m", "rmsprop.v", NULL},
    .count = "rmsprop.t",
    .unscaled = true,
    .step = rmsprop,
};
