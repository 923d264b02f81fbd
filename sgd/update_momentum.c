/* update_momentum.c - momentum SGD. */
#include "sgd/update.h"

void bm_update_add_momentum(bm_sgd *sgd, float rate, float decay, float *w)
{
    bm_params *p = sgd->params;
    bm_momentum m = {.rate = rate,
                     .momentum = (float)sgd->set.momentum,
                     .decay = decay,
                     .clip = (float)sgd->set.clip,
                     .nesterov = sgd->set.nesterov};

    bm_momentum_step(p->be, &m, p->n_learned, p->n - p->n_learned, p->g,
                     sgd->x[0], w, (double *)(void *)sgd->skipped);
}

static void step(bm_sgd *sgd, float rate)
{
    bm_update_add_momentum(sgd, rate, (float)sgd->set.weight_decay,
                           sgd->params->w);
}

const bm_update_ops bm_update_momentum = {
    .name = "momentum",
    .title = "momentum SGD",
    .uses = "momentum nesterov",
    .states = (const char *const[]){"sgd.v", NULL},
    .momentum_only = true,
    .step = step,
};
