/*
 * dropout.c - in training each number becomes zero with probability p, and the
 * others are scaled by 1 / (1 - p) (Srivastava et al. 2014). The mask is a
 * function of the pass's key, so that backward draws it again.
 */
#include "models/layers/layer.h"

static bm_status plan(bm_layer *l)
{
    BM_TRY(bm_layer_probability(l, l->args, &l->drop));
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    return BM_OK;
}

static void apply(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    if (p->training && l->drop > 0)
        bm_dropout(l->be, bm_count(x), l->drop, p->key, x.data, y.data);
    else
        bm_axpby(l->be, bm_count(x), 1, x.data, 0, y.data);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    (void)x;
    (void)y;
    if (dx.data != NULL)
        apply(l, p, dy, dx);
}

const bm_layer_ops bm_layer_dropout = {
    .name = "dropout",
    .help = "dropout:P  in training, zeros with probability P",
    .plan = plan,
    .forward = apply,
    .backward = backward,
};
