/*
 * pool.c - the maximum or mean of each window of frames and rows, for each
 * channel. Unless the words say so, windows do not overlap, and the last ones
 * may be incomplete. pool:all is one window over a whole sequence.
 */
#include "models/layers/layer.h"

#include <stdio.h>
#include <string.h>

enum { WHOLE = 1 << 30 }; /* more places than any sequence has */

static bm_window adjacent(size_t size)
{
    return (bm_window){size, size, 0, size - 1};
}

/* Is one of the words a stride or padding? Then windows may overlap. */
static bool slides(const char *rest)
{
    return rest != NULL && (strstr(rest, "stride:") || strstr(rest, "pad:"));
}

/* "2x2", "3x3,stride:2x2,pad:1x1,mean", "all,mean" */
static bm_status read_arguments(bm_layer *l)
{
    bm_window_words words = {
        .what = "window", .size = {WHOLE, WHOLE}, .averages = true};
    char args[sizeof l->args], *rest = args;
    const char *word = NULL;
    bool slide = false;

    snprintf(args, sizeof args, "%s", l->args);
    word = bm_layer_argument(&rest);
    slide = slides(rest);
    if (strcmp(word, "all") != 0)
        BM_TRY(bm_layer_pair(l, "window", word, 1, words.size));
    else if (slide)
        return bm_layer_fail(l, "pool:all takes no stride and no padding");
    memcpy(words.stride, words.size, sizeof words.stride);
    BM_TRY(bm_layer_windows(l, &words, rest));
    if (!slide) {
        l->time = adjacent(words.size[0]);
        l->rows = adjacent(words.size[1]);
    }
    return BM_OK;
}

static bm_pooling view(const bm_layer *l)
{
    return (bm_pooling){l->n_in / l->channels, l->channels, l->time, l->rows,
                        l->mean};
}

static bm_status plan(bm_layer *l)
{
    size_t C = bm_layer_channels_in(l);
    bm_pooling p = {0};

    BM_TRY(read_arguments(l));
    l->channels = C;
    l->n_out = bm_windows(l->rows, l->n_in / C) * C;
    p = view(l);
    if (bm_pooling_is_plain(&p) && l->time.size < WHOLE)
        l->does =
            (bm_epilogue){.pools = true, .time = l->time, .rows = l->rows};
    return BM_OK;
}

static void forward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y)
{
    bm_pooling v = view(l);
    bm_pooling_forward(l->be, &v, p->in, p->out, x.data, y.data);
}

static void backward(bm_layer *l, const bm_pass *p, bm_tensor x, bm_tensor y,
                     bm_tensor dy, bm_tensor dx)
{
    bm_pooling v = view(l);

    if (dx.data != NULL)
        bm_pooling_backward(l->be, &v, p->in, p->out, x.data, y.data, dy.data,
                            dx.data);
}

const bm_layer_ops bm_layer_pool = {
    .name = "pool",
    .others = "maxpool maxpool2d",
    .help = "pool:TIMExHEIGHT[,mean][,stride:TxH][,pad:TxH]  the maximum or "
            "mean of each window; pool:all[,mean] of a whole sequence",
    .plan = plan,
    .forward = forward,
    .backward = backward,
};
