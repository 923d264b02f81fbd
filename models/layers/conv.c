/*
 * conv.c - convolution over time and height, see bm_conv_forward for the
 * equation. The default padding is "same": with stride 1 it keeps the numbers
 * of frames and rows.
 */
#include "models/layers/layer.h"

#include <stdio.h>
#include <string.h>

/* "32,3x3,stride:2x2,pad:1x1,dilation:2x1" */
static bm_status read_arguments(bm_layer *l)
{
    bm_window_words words = {
        .what = "kernel", .stride = {1, 1}, .dilates = true};
    char args[sizeof l->args], *rest = args;

    snprintf(args, sizeof args, "%s", l->args);
    BM_TRY(
        bm_layer_count(l, "channels", bm_layer_argument(&rest), &l->channels));
    BM_TRY(bm_layer_pair(l, "kernel", bm_layer_argument(&rest), 1, words.size));
    return bm_layer_windows(l, &words, rest);
}

static bm_status plan(bm_layer *l)
{
    size_t C = bm_layer_channels_in(l), H = l->n_in / C, N = 0;

    BM_TRY(read_arguments(l));
    N = l->channels;
    l->n_out = bm_windows(l->rows, H) * N;
    l->weights[0] =
        (bm_weight){.name = "w",
                    .rank = 4,
                    .dim = {bm_window_taps(l->time, l->dilation[0]),
                            bm_window_taps(l->rows, l->dilation[1]), C, N}};
    l->weights[1] = (bm_weight){
        .name = "b", .torch = "bias", .rank = 1, .dim = {N, 1, 1, 1}};
    l->n_weights = 2;
    return BM_OK;
}

/* Numbers of x in a window. */
static size_t kernel(const bm_layer *l)
{
    const bm_weight *w = &l->weights[0];

    return w->dim[0] * w->dim[1] * w->dim[2];
}

static void init(const bm_layer *l, float *w, bm_rng *rng)
{
    size_t C = bm_layer_channels_in(l), N = l->channels, n = kernel(l) * N;

    bm_layer_glorot(w, n, kernel(l), kernel(l) / C * N, rng);
    memset(w + n, 0, N * sizeof *w);
}

static bm_conv view(const bm_layer *l)
{
    size_t C = bm_layer_channels_in(l);

    return (bm_conv){
        .height = l->n_in / C,
        .channels = C,
        .out_channels = l->channels,
        .time = l->time,
        .rows = l->rows,
        .dilation = {l->dilation[0], l->dilation[1]},
        .w = l->w,
        .b = l->w + kernel(l) * l->channels,
    };
}

static size_t work(const bm_layer *l, const bm_pass *p)
{
    bm_conv c = view(l);

    (void)p;
    return bm_conv_work(l->be, &c);
}

/* Includes products with the padding of columns, as most programs count. */
static bm_flops flops(const bm_layer *l, const bm_pass *p)
{
    double columns = (double)(p->out.T * p->out.B);

    return (bm_flops){.input =
                          2 * columns * (double)l->n_out * (double)kernel(l)};
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_conv c = view(l);
    bm_conv_forward(l->be, &c, p->in, p->out, x.data, y.data, l->work);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_conv c = view(l);

    (void)y;
    bm_conv_backward(l->be, &c, p->in, p->out, x.data, dy.data, l->work,
                     dx.data, l->g, l->g + kernel(l) * l->channels);
}

const bm_layer_ops bm_layer_conv = {
    .name = "conv",
    .others = "conv2d",
    .help = "conv:CHANNELS,TIMExHEIGHT[,stride:TxH][,pad:TxH][,dilation:TxH]  "
            "convolution of columns of pixels",
    .plan = plan,
    .init = init,
    .work = work,
    .flops = flops,
    .forward = forward,
    .backward = backward,
};
