/* scale.c - y = F x, with a fixed factor: the half step of a Conformer's
 * feed-forward layers. */
#include "models/layers/layer.h"

#include <math.h>
#include <stdlib.h>

static bm_status plan(bm_layer *l)
{
    char *end = NULL;
    float f = strtof(l->args, &end);

    if (l->args[0] == '\0')
        return bm_layer_fail(l, "the factor is missing, as in scale:0.5");
    if (*end != '\0' || !isfinite(f) || f == 0)
        return bm_layer_fail(l, "'%s' is not a factor other than 0", l->args);
    l->factor = f;
    l->n_out = l->n_in;
    l->channels = l->channels_in;
    return BM_OK;
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    (void)p;
    bm_axpby(l->be, bm_count(x), l->factor, x.data, 0, y.data);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    (void)p;
    (void)y;
    if (dx.data != NULL)
        bm_axpby(l->be, bm_count(x), l->factor, dy.data, 0, dx.data);
}

const bm_layer_ops bm_layer_scale = {
    .name = "scale",
    .help = "scale:FACTOR  y = FACTOR x",
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
