/*
 * depthwise.c - convolution over time of each feature alone, see
 * bm_depthwise_forward. The padding is "same": with stride 1 it keeps the
 * number of frames.
 */
#include "models/layers/layer.h"

#include <stdio.h>
#include <string.h>

/* "31", "31,stride:2" */
static bm_status read_arguments(bm_layer *l)
{
    size_t size = 0, stride = 1;
    char args[sizeof l->args], *rest = args;
    const char *word = NULL;
    bool strides = false;

    snprintf(args, sizeof args, "%s", l->args);
    BM_TRY(bm_layer_count_up_to(l, "frames", bm_layer_argument(&rest),
                                BM_LAYER_WINDOW, &size));
    while ((word = bm_layer_argument(&rest)) != NULL) {
        if (strncmp(word, "stride:", 7) != 0)
            return bm_layer_fail(l, "'%s' is not stride:FRAMES", word);
        BM_TRY(bm_layer_once(l, word, &strides));
        BM_TRY(bm_layer_count_up_to(l, "frames", word + 7, BM_LAYER_WINDOW,
                                    &stride));
    }
    l->time = (bm_window){size, stride, (size - 1) / 2, size / 2};
    return BM_OK;
}

static bm_status plan(bm_layer *l)
{
    BM_TRY(read_arguments(l));
    l->n_out = l->n_in;
    l->weights[0] = (bm_weight){.name = "w",
                                .rank = 2,
                                .dim = {l->time.size, l->n_in, 1, 1},
                                .stacked = BM_NO_MATRIX};
    l->weights[1] = (bm_weight){
        .name = "b", .torch = "bias", .rank = 1, .dim = {l->n_in, 1, 1, 1}};
    l->n_weights = 2;
    return BM_OK;
}

static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    size_t n = l->time.size * l->n_in;

    bm_layer_glorot(w, n, l->time.size, l->time.size, rng);
    memset(w + n, 0, l->n_in * sizeof *w);
}

static bm_depthwise view(const bm_layer *l)
{
    return (bm_depthwise){l->n_in, l->time, l->w,
                          l->w + l->time.size * l->n_in};
}

static bm_flops flops(const bm_layer *l, const bm_pass *p)
{
    double numbers = (double)(p->out.T * p->out.B * l->n_out);

    return (bm_flops){.input = 2 * numbers * (double)l->time.size};
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_depthwise c = view(l);
    bm_depthwise_forward(l->be, &c, p->in, p->out, x.data, y.data);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_depthwise c = view(l);

    (void)y;
    bm_depthwise_backward(l->be, &c, p->in, p->out, x.data, dy.data, dx.data,
                          l->g, l->g + l->time.size * l->n_in);
}

const bm_layer_ops bm_layer_depthwise = {
    .name = "depthwise",
    .others = "depthwiseconv separableconv",
    .help = "depthwise:FRAMES[,stride:FRAMES]  convolution over time of each "
            "feature alone",
    .plan = plan,
    .init = init,
    .flops = flops,
    .forward = forward,
    .backward = backward,
};
