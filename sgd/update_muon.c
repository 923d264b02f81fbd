/* update_muon.c - Muon, on the step of momentum SGD. */
#include "sgd/muon.h"
#include "sgd/update.h"

#include <stdlib.h>

typedef struct muon {
    bm_muon *muon;
    float *d; /* [n], the step */
} muon;

static void close(bm_sgd *sgd)
{
    muon *m = sgd->self;

    if (m == NULL)
        return;
    bm_free(sgd->params->be, m->d);
    bm_muon_free(m->muon);
    free(m);
    sgd->self = NULL;
}

static bm_status open(bm_sgd *sgd)
{
    muon *m = sgd->self = calloc(1, sizeof *m);

    if (m == NULL)
        return BM_FAIL(BM_ERR_MEMORY, "no memory for muon");
    BM_TRY(bm_muon_new(&m->muon, sgd->params));
    return bm_alloc(sgd->params->be, sgd->params->n, &m->d);
}

/* The step of momentum SGD is what moves zeros. */
static void step(bm_sgd *sgd, float rate)
{
    muon *m = sgd->self;

    bm_axpby(sgd->params->be, sgd->params->n, 0, m->d, 0, m->d);
    bm_update_add_momentum(sgd, rate, 0, m->d);
    bm_muon_step(m->muon, m->d, rate, (float)sgd->set.weight_decay);
}

const bm_update_ops bm_update_muon = {
    .name = "muon",
    .title = "Muon",
    .uses = "momentum nesterov",
    .states = (const char *const[]){"sgd.v", NULL},
    .scratch = 2, /* the step, and matrices beside it */
    .momentum_only = true,
    .whole = "sgd.update = muon needs whole matrices",
    .open = open,
    .close = close,
    .step = step,
};
